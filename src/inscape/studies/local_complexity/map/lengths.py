"""How long the edges of a network's exact linear regions are in each square of a grid."""

from typing import TYPE_CHECKING

import numpy as np

from inscape.arrays import Floats
from inscape.studies.local_complexity.map.coordinate_network import PROBE, patch

if TYPE_CHECKING:
    from torch import nn


def lengths_in_squares(starts: Floats, ends: Floats, low: float, high: float, n_squares: int) -> Floats:
    """The length of segments within each square of a grid on [low, high]^2, (n_squares, n_squares).

    Each segment is cut where it crosses a line of the grid; a piece belongs to the square of its middle.
    Exact up to rounding; a segment along a line of the grid belongs to one of the two squares.

    Args:
        starts: one end of each segment, (m, 2).
        ends: the other.
        low: where the square begins, on both axes.
        high: where it ends.
        n_squares: squares per axis; the first axis of the result is that of the first coordinate.

    >>> lengths_in_squares(np.array([[0.0, 0.25]]), np.array([[1.0, 0.25]]), 0.0, 1.0, 2).tolist()
    [[0.5, 0.0], [0.5, 0.0]]
    """
    lines = np.linspace(low, high, n_squares + 1)
    steps = ends - starts
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = (lines - starts[:, :, None]) / steps[:, :, None]
    crossings = np.nan_to_num(crossings, nan=0.0, posinf=1.0, neginf=0.0).reshape(len(starts), -1)
    cuts = np.sort(np.clip(np.column_stack([np.zeros(len(starts)), crossings, np.ones(len(starts))]), 0, 1))
    share, middle = np.diff(cuts), (cuts[:, 1:] + cuts[:, :-1]) / 2
    places = starts[:, None] + middle[..., None] * steps[:, None]
    at = np.floor((places - low) / (high - low) * n_squares).astype(np.int64)
    inside = ((at >= 0) & (at < n_squares)).all(axis=2) & (share > 0)
    lengths = share * np.linalg.norm(steps, axis=1)[:, None]
    flat = at[inside] @ np.array([n_squares, 1])
    sums = np.bincount(flat, weights=lengths[inside], minlength=n_squares**2)
    return np.asarray(sums, dtype=np.float64).reshape(n_squares, n_squares)


def edge_lengths(net: "nn.Sequential", n_squares: int) -> Floats:
    """The length of the edges of the exact linear regions per area, in each square, flat."""
    from inscape.partition import linear_regions

    regions = linear_regions(net, patch())
    inner = regions.edges[regions.edge_layers > 0]
    a, b = regions.vertices[inner[:, 0]], regions.vertices[inner[:, 1]]
    area = (2 * PROBE / n_squares) ** 2
    return lengths_in_squares(a, b, -PROBE, PROBE, n_squares).ravel() / area
