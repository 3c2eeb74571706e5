"""
PyTorch: measure a module of your own
=====================================

You have a trained ``torch.nn.Module``. This tutorial counts its decision regions, draws a plane, and measures how dense its kinks are. The module is
left exactly as it was found: mode, gradients, buffers and random state.
"""

# %%
# Train a small network
# ---------------------
# Any module will do. This one learns scikit-learn's 8 x 8 digits.

import copy

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits

import inscape

digits = load_digits()
x, y = torch.tensor(digits.images / 16, dtype=torch.float32), torch.tensor(digits.target)
x_train, y_train, x_test, y_test = x[:900], y[:900], x[900:], y[900:]

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Flatten(),
    torch.nn.Linear(64, 48),
    torch.nn.ReLU(),
    torch.nn.Linear(48, 48),
    torch.nn.ReLU(),
    torch.nn.Linear(48, 10),
)
optimiser = torch.optim.Adam(net.parameters(), lr=0.005)
for step in range(150):
    if step == 20:
        early = copy.deepcopy(net)
    optimiser.zero_grad()
    torch.nn.functional.cross_entropy(net(x_train), y_train).backward()
    optimiser.step()

# %%
# Count
# -----
# A *decision region* is a connected set of inputs with one prediction. ``region_count`` draws 100 segments between pairs of test
# images and counts the regions on each. The result says whether the counts are exact, and how large the error of the mean is.

count = inscape.region_count(net, x_test, random_state=0)
count

# %%
# A number means little alone. ``rank`` compares models on the same segments, with accuracy and gap beside the count. Here the network after
# 20 steps stands beside the trained one: it has more regions, and it is worse.

inscape.rank(
    {"after 20 steps": early, "after 150 steps": net},
    x_test,
    y=y_test,
    train=(x_train, y_train),
    random_state=0,
)

# %%
# Look
# ----
# Three images span a plane. The regions on it are exact.

figure, ax = plt.subplots(figsize=(8, 5.4), layout="constrained")
plane = inscape.Patch.through(x_test[[125, 717, 828]])
inscape.decision_regions(net, plane).plot(ax)
plt.show()

# %%
# Measure more
# ------------
# ``measure`` takes any set of measures and gives a table. :doc:`/which-measure` says which one answers which question.

inscape.measure(
    net,
    x_test[:60],
    y_test[:60],
    measures={"region_count": {}, "total_variation": {}, "local_complexity": {"sigma": 0.1}, "margin": {}},
    random_state=0,
)
