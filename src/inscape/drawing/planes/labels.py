"""The picture of predicted labels on a rectangle of a plane."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.drawing.axes import axes_or_new
from inscape.drawing.palette import class_colours, ink_on


def draw_labels(
    labels: npt.NDArray[np.int64],
    bounds: Sequence[Sequence[float]],
    marks: npt.NDArray[np.float64],
    classes: Sequence[int],
    *,
    ax: Any = None,
) -> Any:
    """Draw the label of each grid point, the boundaries between them, and marked points.

    Args:
        labels: (rows, columns); rows go up, columns to the right.
        bounds: the two intervals of the rectangle.
        marks: coordinates of the marked points, (m, 2).
        classes: the class of each, written on it.
        ax: where to draw; new Axes if None.
    """
    ax = axes_or_new(ax, (4.0, 4.0))
    (s0, s1), (t0, t1) = bounds
    colours = class_colours([*np.unique(labels).tolist(), *(int(c) for c in classes)])
    image = np.array([colours[label] for label in labels.ravel().tolist()]).reshape(*labels.shape, 3)
    ax.imshow(image, origin="lower", extent=(s0, s1, t0, t1), interpolation="nearest")
    s, t = np.linspace(s0, s1, labels.shape[1]), np.linspace(t0, t1, labels.shape[0])
    for label in np.unique(labels).tolist():
        inside = (labels == label).astype(float)
        if 0 < inside.mean() < 1:
            ax.contour(s, t, inside, levels=[0.5], colors="black", linewidths=0.8)
    for (x, y), label in zip(marks, classes, strict=True):
        ax.plot(x, y, "o", ms=11, mfc=colours[int(label)], mec="black", mew=1.5)
        ax.text(
            x, y, str(int(label)), ha="center", va="center", fontsize=7, color=ink_on(colours[int(label)])
        )
    ax.set_xticks([])
    ax.set_yticks([])
    return ax
