"""What Li et al. 2025 (arXiv 2505.11370) report, on CIFAR-10; each number as it stands in the paper.

Where a table is not in the text that we have, the number is what their published result files give, and is
marked so. Three things that text and files leave open:

- Table 8, "random": the published files come from directions of length .5 from *test* points; the text says
  training points. A later rerun in their repository, at .1, scatters from r = -.81 to +.95.
- Table 2, two dimensions: 2.76 to 2.78 repeats the row of one dimension. Their files give 4.3 with 10 x 10
  points and 8.7 with 40 x 40: the first were counted over the triangle, the second over the whole
  parallelogram, which has twice the area. That, and not the grid, is the factor of two.
- Fig. 4: the text calls the correlations of distance and margin with the gap low; their file of ResNet18
  gives .74 and .60, and .16 for margin over distance.
"""

DATA = "cifar10"
"""The data set of every number here: those of other data sets are not in the text that we have."""

CORRELATION = {
    "resnet18": 0.98,
    "resnet34": 0.98,
    "vgg19": 0.94,
    "mobilenet_v2": 0.95,
    "senet18": 0.98,
    "shufflenet_v2": 0.95,
    "efficientnet_b0": 0.98,
    "regnet_x_200mf": 0.98,
    "simple_dla": 0.98,
    "tree": 0.96,
    "forest": 0.98,
    "knn": -0.53,
    "svm": -0.50,
    "networks together": 0.93,
    "trees and forests": 0.90,
}
"""Fig. 2 and Table 7, averaged over seeds; kNN and SVM are not in the paper: from their files."""
ADAM = (0.92, 0.92, 0.92, 0.95, 0.78, 0.83, 0.97, 0.95, 0.95)
ADAGRAD = (0.96, 0.91, 0.87, 0.99, 0.91, 0.99, 0.99, 0.99, 0.88)
"""Table 7, in the order of the nine networks above."""
TRAIN_PAIRS = (0.98, 0.96, 0.89, 0.94, 0.96, 0.95, 0.98, 0.97, 0.97)
DIRECTION = (0.98, 0.94, 0.78, 0.88, 0.99, 0.92, 0.92, 0.92, 0.96)
"""Table 8."""
DIMENSIONS = {2: 0.961, 3: 0.969, 4: 0.972, 5: 0.963}
"""The correlation of ResNet18; from their files."""
GRIDS = {50: 2.74, 100: 2.76, 200: 2.78, 300: 2.78, 500: 2.78}
PLANES = {10: 2.76, 20: 2.76, 30: 2.78, 40: 2.78, 50: 2.78}
"""Mean counts by grid points on a line and along each side of a plane, Table 2."""
LINES = {10: 2.24, 50: 2.56, 100: 2.78, 300: 2.80, 500: 2.79}
"""Mean counts by the number of lines, Table 3."""
EVOLUTION = {0: 1.57, 10: 3.14, 20: 3.28, 50: 3.30, 200: 3.31}
"""Mean counts of ResNet18 by epoch; from their files."""
AUGMENTATION = {"plain": 3.31, "mixup": 2.65, "crop+flip": 2.72}
"""Mean counts of ResNet18; from their files."""
BASELINES = {"distance": 0.74, "margin": 0.60, "margin_over_distance": 0.16}
"""Correlations with the gap of ResNet18, Fig. 4; from their files."""


def correlation(model: str, data: str) -> float | None:
    """Pearson's correlation of count and gap that was reported for a model, on the data set that it was of.

    >>> correlation("tree", "cifar10"), correlation("tree", "digits")
    (0.96, None)
    """
    return CORRELATION.get(model) if data == DATA else None


def of_network(values: tuple[float, ...], net: str, data: str) -> float | None:
    """The entry of a network in one of the lists above, on the data set that they are of.

    >>> of_network(ADAM, "senet18", "cifar10")
    0.78
    """
    names = list(CORRELATION)[: len(values)]
    return values[names.index(net)] if net in names and data == DATA else None
