"""
How dense are the kinks?
========================

Local complexity is the density of a network's kinks where data lie. ``density_map`` draws that density over a plane: dark bands are where
many linear regions meet, and they gather along the ring that the network has to learn.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

import inscape
from inscape.training import mlp

x = np.random.default_rng(0).uniform(-1, 1, size=(800, 2))
classes = torch.tensor((np.abs(np.linalg.norm(x, axis=1) - 0.55) < 0.2).astype(np.int64))
points = torch.tensor(x, dtype=torch.float32)
net = mlp(2, (32, 32), 2, random_state=0)
optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(800):
    optimiser.zero_grad()
    torch.nn.functional.cross_entropy(net(points), classes).backward()
    optimiser.step()

# %%
# The linear regions themselves, and their density under a little noise on every bias.

plane = inscape.Patch([0.0, 0.0], np.eye(2))
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
inscape.linear_regions(net, plane).plot(left)
inscape.density_map(net, plane, 150, sigma=0.05, random_state=0).plot(right)
plt.show()
