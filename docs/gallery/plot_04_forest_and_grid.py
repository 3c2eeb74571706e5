"""
A random forest: exact regions, and what a grid sees
====================================================

A forest cuts its input space along the axes, far finer than any grid that one would draw it with. On the left are its regions as they
are, on the right those that a grid of 30 x 30 points finds: thin regions are missed, or torn to pieces.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.ensemble import RandomForestClassifier

import inscape

x, y = make_moons(400, noise=0.35, random_state=0)
forest = RandomForestClassifier(60, random_state=0).fit(x, y)
plane = inscape.Patch([0.0, 0.0], np.eye(2), ((-0.8, 1.7), (-0.6, 0.9)))

exact = inscape.decision_regions(forest, plane, method="exact")
grid = inscape.decision_regions(forest, plane, method="grid", resolution=30)

figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
exact.plot(axes[0], title=f"exact: {exact.n_regions} regions", class_names=["upper", "lower"], legend=False)
grid.plot(axes[1], title=f"30 x 30 grid: {grid.n_regions} regions", class_names=["upper", "lower"])
plt.show()
