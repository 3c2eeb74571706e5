"""
A film of training
==================

``Monitor`` looks at a network while it trains, and leaves the training bit for bit as it would have been. With ``keep_models=True`` it
keeps a copy at every look, and ``animate`` draws the decision regions of the copies one after the other.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

import inscape

rng = np.random.default_rng(0)
angle = rng.uniform(0.5, 3.5, 400) * np.pi
arm = rng.integers(0, 2, 400)
x = (angle / 11)[:, None] * np.c_[np.cos(angle + np.pi * arm), np.sin(angle + np.pi * arm)]
x += rng.normal(scale=0.02, size=x.shape)
points, classes = torch.tensor(x, dtype=torch.float32), torch.tensor(arm)

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2)
)
optimiser = torch.optim.Adam(net.parameters(), lr=0.005)
monitor = inscape.Monitor(x, arm, measures=["region_count", "accuracy"], every=10, keep_models=True)
for step in range(161):
    monitor.step(net, step)
    optimiser.zero_grad()
    torch.nn.functional.cross_entropy(net(points), classes).backward()
    optimiser.step()

# %%
# What was measured on the way can be read as a table and drawn as a picture.

monitor.to_frame().tail(3)

# %%
# Decision regions between data points, and accuracy, over training.

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
monitor.plot(ax)
plt.show()

# sphinx_gallery_thumbnail_number = 2

# %%
# The film: one frame for each look.

frames = {f"step {step}": model for step, model in monitor.models.items()}
film = inscape.animate(frames, "training.gif", inscape.Patch.around(x), seconds=0.25, dpi=80, points=(x, arm))
