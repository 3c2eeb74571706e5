"""
ONNX: a file, and nothing else
==============================

You have a ``.onnx`` file and data, and no training code. This tutorial writes such a file, then uses only the file.
"""

# %%
# Write a file
# ------------
# Skip this part if you have one. ``torch.onnx.export`` or another exporter writes it; this one is skl2onnx.

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from skl2onnx import to_onnx
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import inscape

digits = load_digits()
x, y = (digits.data / 16).astype("float32"), digits.target
model = MLPClassifier((40,), max_iter=800, random_state=0).fit(x[:900], y[:900])
Path("digits.onnx").write_bytes(to_onnx(model, x[:1], options={"zipmap": False}).SerializeToString())

# %%
# Open it
# -------
# ``wrap`` reads the graph. ``structure`` says whether regions can be exact. Opening an ONNX file runs no code that it carries.

network = inscape.wrap("digits.onnx")
print(network.structure, "accuracy", np.mean(network.labels(x[900:]) == y[900:]).round(3))

# %%
# Every function takes the path as well as the wrapped model.

inscape.region_count("digits.onnx", x[900:], random_state=0)

# %%
# The linear regions on the plane through three digits, and the decision regions on top.

plane = inscape.Patch.through(x[[1025, 1617, 1728]])
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
inscape.linear_regions(network, plane).plot(left)
inscape.decision_regions(network, plane).plot(right)
plt.show()

# %%
# From a terminal
# ---------------
# The same without Python::
#
#     inscape measure digits.onnx --data digits.npz
#     inscape plot digits.onnx --data digits.npz --points 3 17 42 -o plane.png
#
# If a file cannot be exact, the message names the operation that stands in the way, and ``method="adaptive"`` still counts.

Path("digits.onnx").unlink()
