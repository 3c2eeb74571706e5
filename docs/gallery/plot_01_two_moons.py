"""
Two moons, and every linear region
==================================

A small network learns two moons. It is an affine function on each of the polygons below, and no polygon is missed: they are
computed, not sampled. The thick line is where the prediction changes.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import make_moons

import inscape

x, y = make_moons(300, noise=0.15, random_state=0)
points, classes = torch.tensor(x, dtype=torch.float32), torch.tensor(y)

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Linear(2, 24),
    torch.nn.ReLU(),
    torch.nn.Linear(24, 24),
    torch.nn.ReLU(),
    torch.nn.Linear(24, 2),
)
optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(600):
    optimiser.zero_grad()
    torch.nn.functional.cross_entropy(net(points), classes).backward()
    optimiser.step()

# %%
# ``Patch.around`` is the rectangle around the data. Each result says what it is in one line.

plane = inscape.Patch.around(x)
linear = inscape.linear_regions(net, plane)
decision = inscape.decision_regions(net, plane)
print(linear)
print(decision)

# %%
# Linear regions on the left; on the right the same polygons under the prediction, and the data.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
linear.plot(left, title=f"{linear.n_regions} linear regions")
decision.plot(
    right, title=f"{decision.n_regions} decision regions", points=(x, y), class_names=["upper", "lower"]
)
plt.show()
