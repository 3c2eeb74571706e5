"""
scikit-learn: a pipeline on a DataFrame
=======================================

You have a table with named columns and a fitted pipeline. This tutorial draws what the pipeline predicts around one row of the table, in the units of the
table, and compares it with a forest.
"""

# %%
# Fit two models
# --------------
# 178 wines, 13 measurements each, three growers. The classes are names, and every picture and table shows these names.

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import inscape

wine = load_wine(as_frame=True)
table, grower = wine.data, wine.target.map({0: "first", 1: "second", 2: "third"})
perceptron = make_pipeline(StandardScaler(), MLPClassifier((32,), max_iter=2000, random_state=0)).fit(
    table, grower
)
forest = RandomForestClassifier(50, random_state=0).fit(table, grower)

# %%
# Both are read as they are, the scaler too, and both are counted exactly.

for model in (perceptron, forest):
    print(inscape.region_count(model, table, random_state=0))

# %%
# A plane through three rows
# --------------------------
# In raw units proline, with values up to 1,680, would decide the whole picture. ``scale="std"`` measures distances in standard deviations of the table.

plane = inscape.Patch.through(table, rows=[0, 70, 150], scale="std")
figure = inscape.side_by_side({"perceptron": perceptron, "forest": forest}, plane, points=(table, grower))
figure

# %%
# Two columns
# -----------
# ``Patch.features`` varies two columns and keeps the others as in one row.

plane = inscape.Patch.features(table, "flavanoids", "proline", at=121)
figure, ax = plt.subplots(figsize=(8, 5.4), layout="constrained")
inscape.decision_regions(forest, plane).plot(ax, points=(table, grower), title="A forest around wine 121")
plt.show()

# %%
# Where do they differ?
# ---------------------
# ``agreement`` says on how much of random lines between wines the two models predict the same.

inscape.agreement(perceptron, forest, table, n_probes=100, random_state=0)
