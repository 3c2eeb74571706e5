"""Li et al. 2025, Appendix G: region count, active units and sharpness of a two-layer network.

All hold as stated. A segment that k units change their activity on has at most k + 1 linear pieces, each with
one zero at most (Lemma 7); the Hessian is a mean of rank-one matrices, one per point (Lemma 8).
"""

import math
from typing import Any

import numpy as np

from inscape.arguments import positive_number, whole_number
from inscape.arrays import Floats
from inscape.errors import TheoryError
from inscape.measures.result import mean_with_error
from inscape.seeding import RandomState, as_generator
from inscape.theory.check import Check, compare, only_stated
from inscape.theory.layers import as_points
from inscape.theory.region_counts.two_layer import TwoLayer, all_pairs, two_layer

_EDGE_TOLERANCE = 0.02


def rc_lemma7(model: Any, xa: Any, xb: Any, *, form: str = "stated") -> Check:
    """Lemma 7: the regions on the segment from xa to xb are at most N(xa) + N(xb) + 2, N the active units.

    Args:
        model: a network with one hidden layer and one score (or two), a `TwoLayer`, or arrays (w, a).
        xa: starts of segments, (m, d), or one point.
        xb: their ends; of several segments the one with the least slack is reported.
        form: "stated" is the only one: it holds so.

    >>> from inscape.univariate import ShallowNet
    >>> wave = ShallowNet([1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -3.0, 4.0], -0.5)
    >>> rc_lemma7(wave, [-2.0], [2.0])
    <rc_lemma7 (stated): 4 <= 5, holds>
    """
    only_stated("rc_lemma7", form)
    starts, ends = np.atleast_2d(as_points(xa)), np.atleast_2d(as_points(xb))
    if np.ndim(xa) == 1:
        starts, ends = starts.reshape(1, -1), ends.reshape(1, -1)
    if starts.shape != ends.shape:
        raise TheoryError(f"xa {starts.shape} and xb {ends.shape} must have one shape: ends of segments")
    net = two_layer(model, starts)
    counts = net.n_regions(starts, ends)
    bounds = net.active(starts).sum(axis=1) + net.active(ends).sum(axis=1) + 2
    worst = int(np.argmin(bounds - counts))
    note = f"the worst of {len(counts)} segments; {int((counts <= bounds).sum())} of them satisfy it"
    return compare("rc_lemma7", float(counts[worst]), float(bounds[worst]), note=note)


def rc_lemma8(model: Any, x: Any, y: Any = None, *, form: str = "stated") -> Check:
    """Lemma 8: r^2 / N^2 sum_i N(x_i) <= lambda_max of the Hessian by the first layer, r = min |x_i|.

    For a_j other than +-1 each active unit counts a_j^2 times; with biases |x| is |(x, 1)|.

    Args:
        model: as for `rc_lemma7`.
        x: the training points, (N, d).
        y: not needed: f is linear in w between kinks, so the Hessian of the square loss has no y in it.
        form: "stated" is the only one: it holds so.

    >>> from inscape.theory import TwoLayer
    >>> rc_lemma8(TwoLayer(np.eye(2), np.ones(2), np.zeros(2)), [[1.0, -1.0], [-1.0, 2.0]])
    <rc_lemma8 (stated): 1 <= 2.5, holds>
    """
    only_stated("rc_lemma8", form)
    points = as_points(x)
    net = two_layer(model, points)
    active = float((net.active(points) * net.a**2).sum())
    lhs = _radius(net, points) ** 2 / len(points) ** 2 * active
    return compare(
        "rc_lemma8",
        lhs,
        net.sharpness(points),
        assumptions=_differentiable(net, points),
        note=_model_note(net),
    )


def rc_theorem6(
    model: Any,
    x: Any,
    y: Any = None,
    *,
    form: str = "stated",
    step_size: float | None = None,
    n_pairs: int = 2000,
    random_state: RandomState = None,
) -> Check:
    """Theorem 6: the mean region count over pairs of data is at most 2 N lambda_max / r^2 + 2.

    With a step size eta, at the edge of stability where lambda_max <= 2 / eta: at most 4 N / (r^2 eta) + 2.
    The paper hides both constants in O(N / (r^2 eta)).

    Args:
        model: as for `rc_lemma7`.
        x: the training points, (N, d).
        y: not needed, as for `rc_lemma8`.
        form: "stated" is the only one: it holds so.
        step_size: eta of gradient descent; None for the form with the sharpness.
        n_pairs: all pairs are counted if there are no more than this, else this many random ones.
        random_state: of those pairs.

    >>> from inscape.theory import TwoLayer
    >>> net = TwoLayer(np.eye(2), np.array([1.0, -1.0]), np.zeros(2))
    >>> rc_theorem6(net, [[1.0, -1.0], [-1.0, 1.0]])  # (1 + 1 + 2 + 2) / 4 regions, sharpness 1
    <rc_theorem6 (stated): 1.5 <= 4, holds>
    """
    only_stated("rc_theorem6", form)
    points = as_points(x)
    net, n = two_layer(model, points), len(points)
    least = float((net.a**2).min())
    mean, error = _mean_count(net, points, n_pairs, random_state)
    sharpness, r = net.sharpness(points), _radius(net, points)
    assumptions = _differentiable(net, points) | {"every |x_i| > 0 and every a_j != 0": r > 0 and least > 0}
    note = f"sharpness {sharpness:.4g}{_model_note(net, '; ')}"
    if step_size is not None:
        edge = 2 / positive_number(step_size, "step_size", TheoryError)
        assumptions[f"sharpness <= 2 / eta, up to {_EDGE_TOLERANCE:.0%}"] = sharpness <= edge * (
            1 + _EDGE_TOLERANCE
        )
        note += f", 2 / eta = {edge:.4g}"
        sharpness = edge
    rhs = 2 * n * sharpness / (r**2 * least) + 2 if r > 0 and least > 0 else math.inf
    interval = None if error == 0 else (rhs - mean - error, rhs - mean + error)
    return compare("rc_theorem6", mean, rhs, assumptions=assumptions, note=note, interval=interval)


def _mean_count(net: TwoLayer, x: Floats, n_pairs: int, random_state: RandomState) -> tuple[float, float]:
    """The mean over all N^2 ordered pairs and how far it may be off; a point with itself has one region."""
    n = len(x)
    if n * (n - 1) // 2 <= whole_number(n_pairs, "n_pairs", 2, TheoryError):
        i, j = all_pairs(n)
        return (2 * float(net.n_regions(x[i], x[j]).sum()) + n) / n**2, 0.0
    i, j = as_generator(random_state).integers(n, size=(2, n_pairs))
    mean, _, (low, high) = mean_with_error(net.n_regions(x[i], x[j]))
    return mean, (high - low) / 2


def _radius(net: TwoLayer, x: Floats) -> float:
    return float(np.linalg.norm(net.inputs(x), axis=1).min())


def _differentiable(net: TwoLayer, x: Floats) -> dict[str, bool | None]:
    return {"no unit at its kink at a data point": not bool((x @ net.w.T + net.b == 0).any())}


def _model_note(net: TwoLayer, before: str = "") -> str:
    """Where the network is more general than the paper's."""
    more = [] if np.allclose(np.abs(net.a), 1.0) else ["a_j^2 in place of 1"]
    more += ["(x, 1) in place of x"] if net.b.any() else []
    return before + ", ".join(more) if more else ""
