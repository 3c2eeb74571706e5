"""The representation cost of Patel and Montufar (submission of 2024), sec. 6.1: least norms for functions.

R(f) = inf { |theta| : N_theta = f } over networks of one hidden layer of any width. With inputs (x, 1) and
unit vectors u a network is sum_u a(u) relu(u.(x, 1)), and rescaling makes |theta|^2 = 2 sum |a|. The kinks of
f fix a(u) + a(-u) = c_u; what is free is t_u = (a(u) - a(-u)) / 2, through which the affine part of f is
shared out. Up to |t_u| = |c_u| / 2 it costs nothing, beyond that no less than a unit of its own, so that

    R(f)^2 = 2 sum |c_u| + min_{k, |t_u| <= |c_u| / 2} 4 |l - sum t_u u - k e| + h(k),

l.(x, 1) the affine part, e = (0, 1), and h the cost of the constant k: 2 |k| by a unit that is always on, or
the least of that and an output bias. The minimum over t is a bounded least-squares problem, that over k
convex on the line.

What high and low mean: a high cost: every network of one hidden layer that computes this function has large
weights; a low one: small weights are enough. When it does not hold: it is a property of the function alone;
the network at hand may have a far larger norm.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from inscape.arguments import renamed
from inscape.arrays import Floats
from inscape.errors import NotApplicableError, TheoryError
from inscape.pictures import Shown
from inscape.serialising import Written
from inscape.theory.check import Check, compare, only_stated
from inscape.theory.layers import Layers, as_points, layers_of
from inscape.univariate import KKTResidual

_SAME_VECTORS_BELOW = 1e-10
"""Unit vectors closer than this are one."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RepresentationCost(Written, Shown):
    """The least norm of the parameters of a network that computes a function.

    Attributes:
        value: R(f), or an upper bound of it.
        is_exact: whether it is R(f): for networks of one hidden layer and one output. Of others it is the
            norm of the network itself.
        norm: |theta| of the network that was given.
        n_kinks: hyperplanes on which f bends; -1 where they were not looked for.
    """

    measure: ClassVar[str] = "representation cost"
    _error: ClassVar = TheoryError

    value: float
    is_exact: bool
    norm: float
    n_kinks: int

    def __repr__(self) -> str:
        sign = "=" if self.is_exact else "<="
        return f"<representation cost {sign} {self.value:.4g}, norm of the network {self.norm:.4g}>"


def representation_cost(model: Any, x: Any, *, output_bias: bool = True) -> RepresentationCost:
    """The representation cost of what a network computes on all of its input space.

    Biases are parameters and count. Exact to 1e-6 for one hidden layer and one output, at any width; else an
    upper bound.

    Args:
        model: a relu network of layers in a row.
        x: points, of which only the shape matters.
        output_bias: whether networks may have an output bias; it counts too.

    relu(x) = relu(10 x) / 10 costs sqrt 2 however it is written, and x = relu(x) - relu(-x) costs 2.

    >>> from inscape.univariate import ShallowNet
    >>> representation_cost(ShallowNet([10.0], [0.0], [0.1]), [[0.0]])
    <representation cost = 1.414, norm of the network 10>
    >>> round(representation_cost(ShallowNet([1.0, -5.0], [0.0, 0.0], [1.0, -0.2]), [[0.0]]).value, 6)
    2.0
    """
    net = layers_of(model, x)
    if net.n_hidden != 1 or len(net.weights[-1]) != 1:
        return RepresentationCost(value=net.size, is_exact=False, norm=net.size, n_kinks=-1)
    kinks, directions, affine = _canonical(net)
    if not output_bias and net.offsets[-1][0] != 0:
        raise TheoryError("the network has an output bias: give output_bias=True")
    least = _affine_cost(affine, directions, kinks, output_bias)
    value = math.sqrt(2 * float(np.abs(kinks).sum()) + least)
    return RepresentationCost(value=value, is_exact=True, norm=net.size, n_kinks=int((kinks != 0).sum()))


def _canonical(net: Layers) -> tuple[Floats, Floats, Floats]:
    """c_u and u of each hyperplane, (m,) and (m, d + 1), and the affine part l, (d + 1,)."""
    w = np.column_stack([net.weights[0], net.offsets[0]])
    v = net.weights[1][0]
    affine = np.zeros(w.shape[1])
    affine[-1] = net.offsets[1][0]
    lengths = np.linalg.norm(w, axis=1)
    kinks: list[float] = []
    directions: list[Floats] = []
    for row, length, weight in zip(w, lengths, v, strict=True):
        if not row[:-1].any():  # a constant
            affine[-1] += weight * max(row[-1], 0.0)
            continue
        u, a = row / length, weight * length
        affine += a / 2 * u
        for i, known in enumerate(directions):
            if min(np.abs(known - u).max(), np.abs(known + u).max()) < _SAME_VECTORS_BELOW:
                kinks[i] += a
                break
        else:
            kinks.append(a)
            directions.append(u)
    c = np.array(kinks)
    c = np.where(np.abs(c) <= 1e-12 * max(1.0, float(np.abs(v * lengths).sum())), 0.0, c)
    return c, np.array(directions).reshape(-1, w.shape[1]), affine


def _affine_cost(affine: Floats, directions: Floats, kinks: Floats, output_bias: bool) -> float:
    """The least of 4 |l - sum t u - k e| + h(k) over t within its bounds and over k."""
    from scipy.optimize import lsq_linear, minimize_scalar

    free = kinks != 0
    u, bound = directions[free].T, np.abs(kinks[free]) / 2

    def cost(k: float) -> float:
        rest = affine.copy()
        rest[-1] -= k
        if bound.size:
            rest = rest - u @ lsq_linear(u, rest, (-bound, bound), method="bvls", tol=1e-14).x
        constant = k * k if output_bias and abs(k) <= 1 else 2 * abs(k) - output_bias
        return 4 * float(np.linalg.norm(rest)) + constant

    reach = float(np.linalg.norm(affine)) + float(bound.sum()) + 1
    optimum = minimize_scalar(cost, bounds=(-reach, reach), method="bounded", options={"xatol": 1e-12})
    return min(float(optimum.fun), cost(0.0), cost(float(affine[-1])))


KKT_TOLERANCE = 1e-6
"""Up to which residual a network counts as a KKT point."""


@renamed(active_tol="active_tolerance")
def margin_kkt(model: Any, x: Any, y: Any, *, active_tolerance: float = 1e-2) -> KKTResidual:
    """How far a relu network of any depth is from a KKT point of problem (15).

    Without biases, which are then no parameters, the network is scaled to least margin 1 by one factor on all
    matrices; one with biases is taken as it is. Multipliers are found by non-negative least squares
    over the points whose margin is within `active_tolerance` of the least; the derivative of relu at 0 is 0.

    Args:
        model: a relu network of layers in a row with one output, or two.
        x: points, (n, d).
        y: labels, -1 or +1.
        active_tolerance: points with margin up to (1 + active_tolerance) times the least may have a
            multiplier.

    >>> import torch
    >>> first, last = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)
    >>> net = torch.nn.Sequential(first, torch.nn.ReLU(), last)
    >>> with torch.no_grad():
    ...     _ = first.weight.fill_(1.0), last.weight.fill_(1.0)
    >>> margin_kkt(net.double(), [[1.0]], [1.0]).stationarity < 1e-12  # of least norm with margin 1
    True
    """
    from scipy.optimize import nnls

    points, net = as_points(x), layers_of(model, x)
    labels = checked_labels(y, len(points))
    margins = labels * output_of(net, points)
    least = float(margins.min())
    has_biases = any(c.any() for c in net.offsets)
    if least > 0 and not has_biases:
        factor = least ** (-1 / len(net.weights))
        net = Layers(tuple(w * factor for w in net.weights), net.offsets)
        margins = margins / least
    gradients = labels[:, None] * _gradients(net, points, has_biases)
    pairs = zip(net.weights, net.offsets, strict=True)
    theta = np.concatenate([p.ravel() for w, c in pairs for p in ((w, c) if has_biases else (w,))])
    active = margins <= max(float(margins.min()), 0.0) * (1 + active_tolerance) + 1e-12
    weights, _ = nnls(gradients[active].T, theta)
    multipliers = np.zeros(len(points))
    multipliers[active] = weights
    total, norm = float(multipliers.sum()), float(np.linalg.norm(theta))
    return KKTResidual(
        stationarity=float(np.linalg.norm(theta - multipliers @ gradients)) / norm if norm else 0.0,
        feasibility=max(0.0, 1 - float(margins.min())),
        complementarity=abs(float(multipliers @ (margins - 1))) / total if total else 0.0,
        multipliers=multipliers,
        margins=margins,
        n_kinks=0,
        norm=norm,
        settings={"active_tolerance": active_tolerance, "kink_tolerance": 0.0},
    )


def _gradients(net: Layers, x: Floats, with_biases: bool) -> Floats:
    """The gradient of the score by the weights of each layer in turn, and its biases if so asked, (n, p)."""
    inputs = [x]
    for w, c in zip(net.weights[:-1], net.offsets[:-1], strict=True):
        inputs.append(np.maximum(inputs[-1] @ w.T + c, 0.0))
    last = len(net.weights[-1])
    back = np.tile(np.array([[1.0]] if last == 1 else [[-1.0, 1.0]]), (len(x), 1))
    blocks: list[Floats] = []
    for i in range(len(net.weights) - 1, -1, -1):
        by_weights = np.einsum("no,ni->noi", back, inputs[i]).reshape(len(x), -1)
        blocks[:0] = [by_weights, back] if with_biases else [by_weights]
        back = (back @ net.weights[i]) * (inputs[i] > 0)
    return np.concatenate(blocks, axis=1)


def checked_labels(y: Any, n: int) -> Floats:
    """Labels -1 and +1, one per point."""
    labels = np.asarray(y, dtype=np.float64).reshape(-1)
    if labels.shape != (n,) or not np.isin(labels, (-1.0, 1.0)).all():
        raise TheoryError("y must hold a label -1 or +1 for every point")
    return labels


def output_of(net: Layers, x: Floats) -> Floats:
    """The only score, or the difference of two, (n,)."""
    for w, c in zip(net.weights[:-1], net.offsets[:-1], strict=True):
        x = np.maximum(x @ w.T + c, 0.0)
    scores = x @ net.weights[-1].T + net.offsets[-1]
    if scores.shape[1] > 2:
        raise NotApplicableError(f"the statement is about two classes, not {scores.shape[1]}")
    return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0])


def least_norm(
    net: Layers, other: Layers, points: Floats, labels: Floats, is_optimum: bool
) -> dict[str, bool | None]:
    """What Theorem 18 and Proposition 9 presuppose of the network and of its reference.

    Of a global optimum what contradicts it is looked for: a margin that is not 1, Frobenius norms that
    differ, and KKT conditions that are not met.
    """
    margins, frobenius = labels * output_of(net, points), np.sqrt(net.squares)
    may_be = bool(abs(margins.min() - 1) <= 1e-6 and np.ptp(frobenius) <= 1e-6 * frobenius.max())
    is_kkt = bool(margin_kkt(net, points, labels).residual <= KKT_TOLERANCE)
    return {
        "no biases": not any(c.any() for c in net.offsets),
        "a KKT point of the margin problem": is_kkt,
        "a global optimum of the margin problem": is_optimum and may_be and is_kkt,
        "a point with |x| <= 1": bool((np.linalg.norm(points, axis=1) <= 1 + 1e-12).any()),
        "the reference has margins of at least 1": bool(
            (labels * output_of(other, points)).min() >= 1 - 1e-9
        ),
        "the reference has 2 <= depth < L and width of at least 2": bool(
            2 <= len(other.weights) < len(net.weights)
            and other.widths.min() >= 2
            and other.widths.max() <= net.widths.min()
        ),
    }


def shallower_bound(net: Layers, other: Layers) -> float:
    """The right side, sqrt 2 (B / sqrt 2)^{k / L} sqrt((L + 1) / L), B of the largest matrix of the other."""
    depth, b = len(net.weights), math.sqrt(float(other.squares.max()))
    power = math.pow(b / math.sqrt(2), len(other.weights) / depth)
    return math.sqrt(2) * power * math.sqrt((depth + 1) / depth)


def lc_theorem18(
    model: Any, x: Any, y: Any, reference: Any, *, form: str = "stated", is_optimum: bool = False
) -> Check:
    """Theorem 18 (Timor et al. 2023), eq. 38: the harmonic mean of |W_l|_F / |W_l| at an optimum of (15).

    It is at most sqrt 2 (B / sqrt 2)^{k / L} sqrt((L + 1) / L), where a reference network of depth k < L has
    margins of at least 1 and Frobenius norms of at most B.

    Args:
        model: the network, without biases.
        x: points, (n, d).
        y: labels, -1 or +1.
        reference: the shallower network.
        form: "stated" is the only one: it holds so.
        is_optimum: whether the network is a global optimum; see `margin_kkt` for what can be tested of that.

    >>> import torch
    >>> def relu_net(depth):
    ...     layers = [torch.nn.Linear(1, 1) for _ in range(depth)]
    ...     return torch.nn.Sequential(*[m for layer in layers for m in (layer, torch.nn.ReLU())][:-1])
    >>> lc_theorem18(relu_net(3), [[1.0]], [1], relu_net(2)).unmet[0]
    'no biases'
    """
    only_stated("lc_theorem18", form)
    points = as_points(x)
    net, other = layers_of(model, points), layers_of(reference, points)
    labels = checked_labels(y, len(points))
    ratios = np.sqrt(net.squares) / net.norms
    mean = len(ratios) / float((1 / ratios).sum())
    met = least_norm(net, other, points, labels, is_optimum)
    return compare("lc_theorem18", mean, shallower_bound(net, other), assumptions=met)
