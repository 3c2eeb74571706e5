"""
Boosted trees on a table, with units on the axes
================================================

Sepals of 150 iris flowers, in centimetres: too little to tell two of the species apart, and the trees try. ``Patch.features`` spans two columns
of a table, so the axes are in the table's units. The regions are exact: every step that you see is a threshold of the model.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier

import inscape

iris = load_iris(as_frame=True)
sepals = iris.data[["sepal length (cm)", "sepal width (cm)"]]
species = iris.target_names[iris.target]
model = GradientBoostingClassifier(n_estimators=100, random_state=0).fit(sepals, species)

# %%
# A table of more columns would keep the others as they are in the row ``at``.

plane = inscape.Patch.features(sepals, *sepals.columns, at=0)
regions = inscape.decision_regions(model, plane, method="exact")
print(regions)
figure, ax = plt.subplots(figsize=(8, 5.6), layout="constrained")
regions.plot(ax, points=(sepals, species), title="Which species? Boosted trees on two measurements")
plt.show()
