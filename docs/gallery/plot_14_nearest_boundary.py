"""
The nearest image of another class
==================================

``boundary_distance`` walks the linear regions around a digit, from the nearest outwards, until it has found the closest point at which the
prediction changes, and proved that there is no closer one. It differs from the digit by less than the eye would call a change.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import inscape
from inscape.training import Recipe, mlp, train

digits = load_digits()
x, y = (digits.data / 16).astype("float32"), digits.target
net = mlp(64, (16,), 10, random_state=0)
train(net, x[:900], y[:900], Recipe(0.05, 32, 30), random_state=0)
image = x[905]
found = inscape.boundary_distance(net, image)
print(found)

# %%
# The digit, the nearest point of another label, and their difference in stretched colours.

model = inscape.wrap(net)
beyond = image + 1.001 * (np.asarray(found.point) - image)
before, after = int(model.labels(image[None])[0]), int(model.labels(beyond[None].astype("float32"))[0])
figure, axes = plt.subplots(1, 3, figsize=(9, 3.4), layout="constrained")
reach = np.abs(beyond - image).max()
for ax, shown, title in zip(
    axes,
    (image, beyond, beyond - image),
    (f"seen as {before}", f"seen as {after}", f"difference of length {found.upper:.2f}"),
    strict=True,
):
    centred = title.startswith("difference")
    ax.imshow(
        shown.reshape(8, 8),
        cmap="RdBu" if centred else "gray_r",
        vmin=-reach if centred else 0,
        vmax=reach if centred else 1,
    )
    ax.set(title=title, xticks=[], yticks=[])
plt.show()
