"""
A network from somebody else's file
===================================

An ONNX file can come from any framework. This one is written by skl2onnx, not by inscape: it takes a table, casts and scales it, and
ends in labels and probabilities. ``inscape`` reads the operations of the file and finds its regions exactly, without the
library that trained it.
"""

from pathlib import Path

import matplotlib.pyplot as plt
from skl2onnx import to_onnx
from sklearn.datasets import load_wine
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import inscape

wine = load_wine()
x, y = wine.data.astype("float32"), wine.target
pipeline = make_pipeline(StandardScaler(), MLPClassifier((24, 24), max_iter=2000, random_state=0)).fit(x, y)
path = Path("wine.onnx")
path.write_bytes(to_onnx(pipeline, x[:1], options={"zipmap": False}).SerializeToString())

# %%
# From here on only the file is used.

network = inscape.wrap(str(path))
print(network, network.structure)
print(inscape.region_count(network, x, random_state=0))

# %%
# A plane through one wine of each grower, measured in standard deviations: linear regions, and what is predicted on them.

plane = inscape.Patch.through(x, rows=[10, 70, 150], scale="std")
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
linear = inscape.linear_regions(network, plane)
linear.plot(left, title=f"{linear.n_regions} linear regions")
regions = inscape.decision_regions(network, plane)
regions.plot(
    right,
    class_names=["grower 1", "grower 2", "grower 3"],
    points=(x, y),
    title=f"{regions.n_regions} decision regions",
)
plt.show()
path.unlink()
