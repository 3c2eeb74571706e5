"""
Grokking: it fits early, and becomes simple late
================================================

A network that starts with large weights fits 150 digits long before it predicts new ones. The number of decision regions between two
images doubles while it learns the training images by heart, and drops when it begins to understand the others. The data are
scikit-learn's digits and the loss is the square error. What falls in the setting of the published runs, and what does not, is
on :doc:`the page of results </results/local-complexity>`.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits

import inscape
from inscape.training import mlp

digits = load_digits()
x, y = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
few, targets = x[:150], torch.nn.functional.one_hot(y[:150], 10).float()

net = mlp(64, (100, 100), 10, random_state=0)
with torch.no_grad():
    for weights in net.parameters():
        weights.mul_(3.0)
optimiser = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.3)


def accuracies(model):
    """On the 150 images that were learned, and on new ones."""
    return {
        "train": (model.labels(few) == y[:150].numpy()).mean(),
        "test": (model.labels(x[900:]) == y[900:].numpy()).mean(),
    }


measures = {"region_count": {"n_probes": 100}}
monitor = inscape.Monitor(x[900:], y[900:], measures=measures, every="log", also=accuracies)
for step in range(2001):
    monitor.step(net, step)
    optimiser.zero_grad()
    torch.nn.functional.mse_loss(net(few), targets).backward()
    optimiser.step()

# %%
# Accuracy above, decision regions below, over the same steps.

curves = monitor.to_frame().query("step > 0")
figure, (top, bottom) = plt.subplots(2, 1, figsize=(8, 6), sharex=True, layout="constrained")
top.plot(curves["step"], curves["train"], label="150 training images", color="#3f90da")
top.plot(curves["step"], curves["test"], label="new images", color="#bd1f01")
top.set(ylabel="accuracy", title="Grokking on handwritten digits")
top.legend()
bottom.plot(curves["step"], curves["region_count"], color="#94a4a2", lw=3)
bottom.set(xscale="log", xlabel="step of training", ylabel="decision regions between two images")
plt.show()
