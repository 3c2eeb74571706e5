"""Li et al. 2025, Appendix G: the network f(x) = sum_j a_j relu(w_j . x), its descent and its regions.

All statements on region count, active units and sharpness hold as stated. A segment that k units change their
activity on has at most k + 1 linear pieces, each with one zero at most (Lemma 7); the Hessian is a mean of
rank-one matrices, one per point (Lemma 8).
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arguments import positive_number, whole_number
from inscape.arrays import Bools, Floats, Ints
from inscape.errors import NotApplicableError, TheoryError
from inscape.measures.measurement import mean_with_error
from inscape.partition import decision_regions
from inscape.probes import Segment
from inscape.progress import Meter, meter
from inscape.seeding import RandomState, as_generator
from inscape.status import CONVERGED, DIVERGED, STEP_LIMIT, Status
from inscape.theory.check import Check, compare, only_stated
from inscape.theory.layers import Layers, as_points, layers_of

if TYPE_CHECKING:
    import torch


STEPS_BETWEEN_REPORTS = 100
"""Of descent: a step takes microseconds."""
_DENSE_UP_TO_POINTS = 2000
"""Points up to which the Gram matrix is written out."""


@dataclass(frozen=True, eq=False)
class TwoLayer:
    """f(x) = sum_j a_j relu(w_j . x + b_j) + c, of which w and b are trained and a and c are fixed.

    The paper has b = c = 0 and a_j = +-1. A bias is the weight of a constant input 1, so its lemmas hold with
    (x, 1) in place of x; for other a_j a unit counts a_j^2 times in the sharpness.

    Attributes:
        w: (p, d).
        a: (p,).
        b: (p,); all zero means that there are no biases to train.
        c: output bias.

    >>> net = TwoLayer(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0]), np.zeros(2))
    >>> x = np.array([[2.0, 1.0], [-1.0, 3.0]])
    >>> net(x).tolist(), net.active(x).tolist()
    ([1.0, -3.0], [[True, True], [False, True]])
    """

    w: Floats
    a: Floats
    b: Floats
    c: float = 0.0

    def __call__(self, x: Floats) -> Floats:
        """The value f at points (n, d)."""
        return np.asarray(np.maximum(x @ self.w.T + self.b, 0.0) @ self.a + self.c)

    def active(self, x: Floats) -> Bools:
        """Which unit is active at which point, (n, p)."""
        return np.asarray(x @ self.w.T + self.b > 0)

    def inputs(self, x: Floats) -> Floats:
        """What the trained weights multiply: x, or (x, 1) if there are biases."""
        return np.hstack([x, np.ones((len(x), 1))]) if self.b.any() else x

    def sharpness(self, x: Floats) -> float:
        """The top eigenvalue of the Hessian of L = 1/(2N) sum (y - f)^2 by the trained weights.

        f is linear in them between kinks, so the Hessian is the Gram matrix of the features a_j 1_j x, and
        does not depend on y.
        """
        from scipy.sparse.linalg import LinearOperator, eigsh

        on, points, n = self.active(x) * self.a, self.inputs(x), len(x)
        if n <= _DENSE_UP_TO_POINTS:
            return float(np.linalg.eigvalsh((points @ points.T) * (on @ on.T) / n)[-1])

        def product(u: Floats) -> Floats:
            return np.asarray((on * (points @ ((on * u.reshape(-1, 1)).T @ points).T)).sum(axis=1) / n)

        operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
        return float(eigsh(operator, k=1, v0=np.ones(n), return_eigenvectors=False)[0])

    def n_regions(self, starts: Floats, ends: Floats) -> Ints:
        """The number of regions of equal sign on each segment, exactly, (m,)."""
        counts = np.ones(len(starts), dtype=np.int64)
        apart = np.flatnonzero((starts != ends).any(axis=1))
        segments = [Segment(starts[i], ends[i]) for i in apart]
        if segments:
            results = decision_regions(self.to_module(), segments, method="exact")
            counts[apart] = [result.n_regions for result in results]
        return counts

    def to_module(self) -> "torch.nn.Sequential":
        """This network as a torch module in float64."""
        import torch
        from torch import nn

        p, d = self.w.shape
        module = nn.Sequential(nn.Linear(d, p), nn.ReLU(), nn.Linear(p, 1)).double()
        values = (self.w, self.b, self.a[None, :], np.array([self.c]))
        with torch.no_grad():
            for parameter, value in zip(module.parameters(), values, strict=True):
                parameter.copy_(torch.from_numpy(np.array(value)))
        return module


def two_layer(model: Any, x: Any) -> TwoLayer:
    """The network with one hidden layer and one score, or two of which the difference decides.

    A pair of arrays (w, a) stands for the paper's own network, without biases.
    """
    if isinstance(model, tuple) and len(model) == 2:
        w, a = (np.asarray(weights, dtype=np.float64) for weights in model)
        if w.ndim != 2 or a.shape != w.shape[:1]:
            raise TheoryError(f"w {w.shape} and a {a.shape} are no two-layer network: give (p, d) and (p,)")
        model = TwoLayer(w, a, np.zeros(len(a)))
    if isinstance(model, TwoLayer):
        n_inputs = model.w.shape[1]
        if np.shape(x)[1] != n_inputs:
            raise TheoryError(f"the points have {np.shape(x)[1]} coordinates, the network {n_inputs} inputs")
        return model
    layers: Layers = layers_of(model, x)
    if layers.n_hidden != 1:
        raise NotApplicableError(f"the statement is about one hidden layer, not {layers.n_hidden}")
    (w, out), (b, c) = layers.weights, layers.offsets
    if len(out) > 2:
        raise NotApplicableError(f"the statement is about two classes, not {len(out)} scores")
    if len(out) == 2:
        out, c = out[1:] - out[:1], c[1:] - c[:1]
    return TwoLayer(w, out[0], b, float(c[0]))


def all_pairs(n: int) -> tuple[Ints, Ints]:
    """The n (n - 1) / 2 pairs i < j."""
    i, j = np.triu_indices(n, 1)
    return i.astype(np.int64), j.astype(np.int64)


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoLayerDescent:
    """A run of gradient descent on L = 1/(2N) sum (y - f)^2.

    Attributes:
        steps: after how many steps each record was made, (m,).
        losses: the loss there, (m,).
        nets: the network there.
        status: "converged" (loss below 1e-10), "diverged", or "step limit".
    """

    steps: Ints
    losses: Floats
    nets: tuple[TwoLayer, ...]
    status: Status


def two_layer_descent(
    net: TwoLayer,
    x: Floats,
    y: Floats,
    step_size: float,
    n_steps: int,
    *,
    warm_up: int = 0,
    n_records: int = 16,
    progress: bool | Meter | None = None,
) -> TwoLayerDescent:
    """Full-batch gradient descent on w (b and c stay), recorded at about geometric times.

    Args:
        net: where to start.
        x: points, (N, d).
        y: targets, (N,).
        step_size: eta.
        n_steps: how many steps at most.
        warm_up: over how many steps the step size rises linearly from 0.
        n_records: how many networks to keep, the first and last among them.
        progress: None for a bar after two seconds, False for none; a function gets (steps done, steps).

    >>> start = TwoLayer(np.array([[1.0]]), np.ones(1), np.zeros(1))
    >>> run = two_layer_descent(start, np.ones((1, 1)), np.full(1, 3.0), 0.5, 100)  # w halves its way to 3
    >>> run.status, [n.w.item() for n in run.nets[:3]]
    ('converged', [1.0, 2.0, 2.5])
    """
    eta = positive_number(step_size, "step_size", TheoryError)
    n_steps = whole_number(n_steps, "n_steps", 1, TheoryError)
    n_records = whole_number(n_records, "n_records", 2, TheoryError)
    warm_up = whole_number(warm_up, "warm_up", 0, TheoryError)
    wanted = set((np.geomspace(1, n_steps + 1, n_records).round().astype(int) - 1).tolist())
    w, n = net.w.copy(), len(x)
    steps, losses, nets, status = [], [], [], STEP_LIMIT
    with meter(progress, "steps") as show:
        for t in range(n_steps + 1):
            if t % STEPS_BETWEEN_REPORTS == 0:
                show(t, n_steps)
            z = x @ w.T + net.b
            rest = np.maximum(z, 0.0) @ net.a + net.c - y
            loss = float(rest @ rest) / (2 * n)
            if not loss < 1e12:
                status = DIVERGED
                break
            done = loss < 1e-10 and t >= warm_up
            if t in wanted or done:
                steps.append(t)
                losses.append(loss)
                nets.append(TwoLayer(w.copy(), net.a, net.b, net.c))
            if done:
                status = CONVERGED
                break
            w -= eta * min(1.0, (t + 1) / (warm_up + 1)) / n * (((z > 0) * net.a).T * rest) @ x
    return TwoLayerDescent(steps=np.array(steps), losses=np.array(losses), nets=tuple(nets), status=status)


_EDGE_TOLERANCE = 0.02
"""By how much sharpness may exceed 2 / eta: at the edge it oscillates about it."""


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
