"""Where a function of one variable bends, found from its values alone."""

import numpy as np


def bends(function, n=64, width=1e-6, rounding=1e-13):
    """The places in (0, 1) where a piecewise-linear function t (n,) -> values (n, c) changes its slope.

    Intervals on which the function is not linear at three inner points are halved until they are short.
    """
    edges = np.linspace(0, 1, n + 1)
    left, right = edges[:-1], edges[1:]
    scale = np.abs(function(edges)).max()
    found = []
    while len(left):
        a, b = function(left), function(right)
        is_bent = np.zeros(len(left), dtype=bool)
        for s in (0.31, 0.5, 0.77):
            error = np.abs(function(left + s * (right - left)) - (a + s * (b - a))).max(axis=1)
            is_bent |= error > rounding * scale
        left, right = left[is_bent], right[is_bent]
        done = right - left < width
        found += [*((left + right) / 2)[done]]
        middle = (left + right)[~done] / 2
        left, right = np.concatenate([left[~done], middle]), np.concatenate([middle, right[~done]])
    found = np.sort(np.array([t for t in found if 1e-5 < t < 1 - 1e-5]))
    return found[np.diff(found, prepend=-1.0) > 4e-6]


def bends_on(scores, segment):
    """Those of a network's scores (a function of points, in float64) along a segment."""
    return bends(lambda t: np.asarray(scores(segment.points(t))).reshape(len(t), -1))
