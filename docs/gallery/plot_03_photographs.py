"""
The plane through three photographs
===================================

Three images span a plane in pixel space. Every point of it is an image, a mixture of the three, and the picture shows what a residual
network sees in each. The photographs are crops of the two that come with scikit-learn; the network is trained here, to tell apart the
sky, the temple and the flower, so that nothing has to be downloaded.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_images

import inscape
from inscape.training import Recipe, build, train

temple, flower = (image.astype(np.float32) / 255 for image in load_sample_images().images)
areas = {"sky": temple[:100], "temple": temple[170:], "flower": flower}
names = list(areas)
rng = np.random.default_rng(0)


def crops(image, n, side=96, step=6):
    """Random squares of a photograph, scaled down to 16 x 16 pixels by averaging."""
    rows = rng.integers(0, image.shape[0] - side, n)
    columns = rng.integers(0, image.shape[1] - side, n)
    cut = np.stack([image[r : r + side, c : c + side] for r, c in zip(rows, columns, strict=True)])
    small = cut.reshape(n, side // step, step, side // step, step, 3).mean(axis=(2, 4))
    return small.transpose(0, 3, 1, 2)


x = np.concatenate([crops(image, 150) for image in areas.values()])
y = np.repeat(np.arange(3), 150)
net = build("resnet18", x.shape[1:], 3, width=1 / 16, normalise=(x.mean(), x.std()), random_state=0)
history = train(net, x, y, Recipe(0.02, 32, 6), random_state=0)
print(f"loss {history.losses[0]:.2f} in the first epoch, {history.loss:.2f} in the last")

# %%
# One image of each class spans the plane and is drawn where it lies. The flower is the brightest one that the network labels correctly.

right = inscape.wrap(net).labels(x) == y
bright = np.where(right & (y == 2), x.mean(axis=(1, 2, 3)), -1).argmax()
plane = inscape.Patch.through(x[[20, 165, bright]])
regions = inscape.decision_regions(net, plane, method="adaptive")
print(regions)
figure, ax = plt.subplots(figsize=(8, 5.6), layout="constrained")
regions.plot(ax, class_names=names, title="What a ResNet sees between three photographs")
plt.show()
