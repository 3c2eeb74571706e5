"""Li et al. 2025, Theorem 5: the VC dimension of classifiers by their largest region count on a line.

Let F_k be the classifiers of R^d into two classes with at most k regions on every line. The theorem says that
its VC dimension is at most k. Its proof puts k + 1 points on one line; but a class that shatters k + 1 points
need not shatter any that lie on a line. What is true:

- d = 1: the VC dimension is k, as stated.
- k = 1: constants, VC dimension 1.
- k = 2: both classes are convex. By Radon's theorem no d + 2 points are shattered, and half-spaces shatter
  any d + 1 points in general position: d + 1, not 2.
- k >= 3, d >= 2: every convex set is in F_3, and convex sets shatter any number of points on a circle:
  infinite.
"""

import math
from typing import Any

import numpy as np

from inscape.arguments import whole_number
from inscape.arrays import Floats
from inscape.errors import DataError, ModelError, TheoryError
from inscape.models import Model, wrap
from inscape.models.class_names import as_labels
from inscape.partition import decision_regions
from inscape.probes import Segment, sample_probes
from inscape.probes.probe import Probe
from inscape.seeding import RandomState, as_seed
from inscape.theory.check import Check, checked_form, compare, inapplicable
from inscape.theory.layers import as_module, as_points

_CONFIDENCE = math.log(40)  # one side of a 95 % interval


def rc_theorem5(
    model: Any,
    x: Any,
    y: Any = None,
    *,
    x_test: Any = None,
    y_test: Any = None,
    form: str = "corrected",
    n_lines: int = 100,
    random_state: RandomState = None,
) -> Check:
    """Theorem 5: classifiers with at most k regions on every line shatter at most k points.

    Without test data, left is a number of points of x that such classifiers shatter (those in general
    position, by half-spaces; in the plane those in convex position, by convex sets), right their VC
    dimension, k or the corrected one (see the module). With y, x_test and y_test it is the resulting bound
    of the generalisation gap: left |training error - test error|, right
    2 sqrt(2 (v log(e n / v) + log 2) / n) for VC dimension v, from symmetrisation, Massart's lemma and
    Sauer's, where the paper has O(sqrt(k / n)).

    Args:
        model: a classifier into two classes.
        x: training points, (n, ...).
        y: their classes, 0 and 1.
        x_test: test points.
        y_test: their classes.
        form: "corrected" or "stated".
        n_lines: k is the largest count on this many lines through pairs of points, extended by their length
            at both ends: a lower bound of the largest on any line, in one dimension exact over the range of
            x.
        random_state: of the lines.

    >>> import inscape
    >>> half_plane = inscape.wrap(lambda x: (x[:, 0] > 0.1).astype(int), input_shape=(2,))
    >>> corners = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    >>> rc_theorem5(half_plane, corners, form="stated")
    <rc_theorem5 (stated): 3 > 2, violated>
    >>> rc_theorem5(half_plane, corners)
    <rc_theorem5 (corrected): 3 <= 3, holds>
    """
    corrected = checked_form(form)
    wrapped, points = wrap(as_module(model)), as_points(x)
    with_gap = x_test is not None or y_test is not None
    if with_gap and (x_test is None or y_test is None or y is None):
        raise TheoryError("the generalisation bound needs all of y, x_test and y_test")
    x = points if np.ndim(x) < 3 else x
    if _n_classes(wrapped, x) > 2:
        return inapplicable("rc_theorem5", "about two classes", form)
    k = _largest_count(wrapped, x, points, n_lines, random_state)
    d = points.shape[1]
    vc = vc_dimension(k, d) if corrected else float(k)
    note = f"{k} regions on a line at most, over {n_lines} lines in dimension {d}; VC dimension {vc:g}"
    if not with_gap:
        return compare("rc_theorem5", _shattered(k, points), vc, form=form, note=note)
    train, test = _errors(wrapped, x, y), _errors(wrapped, x_test, y_test)
    n, m = len(train), len(test)
    rhs = _gap_bound(vc, n)
    reach = math.sqrt(_CONFIDENCE / (2 * n)) + math.sqrt(_CONFIDENCE / (2 * m))
    gap = abs(float(train.mean() - test.mean()))
    interval = (rhs - gap - reach, rhs - gap + reach)
    return compare("rc_theorem5", gap, rhs, form=form, note=note, interval=interval, trivial=1.0)


def vc_dimension(k: int, d: int) -> float:
    """The VC dimension of all classifiers of R^d into two classes with at most k regions on every line.

    >>> vc_dimension(5, 1), vc_dimension(2, 10), vc_dimension(3, 2)
    (5.0, 11.0, inf)
    """
    if k == 1 or d == 1:
        return float(k)
    return d + 1.0 if k == 2 else math.inf


def _shattered(k: int, x: Floats) -> float:
    """How many of the points some classifiers with at most k regions on every line are known to shatter."""
    from scipy.spatial import ConvexHull

    distinct = np.unique(x, axis=0)
    n, d = distinct.shape
    if d == 1 or k == 1:
        return float(min(k, n))
    independent = int(np.linalg.matrix_rank(distinct - distinct[0])) + 1
    if k == 2 or d > 2 or independent < 3:
        return float(independent)
    return float(len(ConvexHull(distinct).vertices))


def _gap_bound(vc: float, n: int) -> float:
    """2 sqrt(2 log(2 S(n)) / n), S(n) <= (e n / v)^v the number of ways to label n points."""
    if math.isinf(vc):
        return math.inf
    growth = n * math.log(2) if n <= vc else vc * math.log(math.e * n / vc)
    return 2 * math.sqrt(2 * (growth + math.log(2)) / n)


def _largest_count(model: Model, x: Any, points: Floats, n_lines: int, random_state: RandomState) -> int:
    """The most regions on a line through two of the points."""
    n_lines = whole_number(n_lines, "n_lines", 1, TheoryError)
    if len(np.unique(points, axis=0)) < 2:
        raise TheoryError("x has fewer than two different points: no line goes through them")
    if points.shape[1] == 1:
        probes: list[Probe] = [Segment(points.min(axis=0), points.max(axis=0))]
    else:
        probes = sample_probes(x, n=n_lines, span=(-1.0, 2.0), random_state=as_seed(random_state))
    return max(regions.n_regions for regions in decision_regions(model, probes))


def _n_classes(model: Model, x: Any) -> int:
    """How many classes there are; one score stands for two."""
    try:
        return max(2, int(model.scores(x[:1]).shape[1]))
    except ModelError:  # labels alone
        return max(2, int(model.labels(x).max()) + 1)


def _errors(model: Model, x: Any, y: Any) -> Floats:
    points = as_points(x) if np.ndim(x) < 3 else x
    labels, truth = model.labels(points), as_labels(y, DataError).reshape(-1)
    if len(labels) != len(truth) or not np.isin(truth, (0, 1)).all():
        raise DataError("y must hold the class 0 or 1 of every point")
    return np.asarray(labels != truth, dtype=np.float64)
