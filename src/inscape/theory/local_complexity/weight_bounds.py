"""Patel and Montufar (submission of 2024), Propositions 8, 9 and 17 and Corollary 10: LC and the weights.

Each line has its counter-example in the tests and in docs/theory.md:

- Proposition 8 uses |A|_F <= n^{1/2 - 1/p} |A|_p, which is false for rank-one A if p < 2, and Claim 2 of
  Theorem 5. True is |J_l|_F <= prod_{j <= l} |W_j|_F <= (sum_{j <= l} |W_j|_F^2 / l)^{l/2}.
- It then replaces |theta| by the representation cost of the function, the least |theta| of any network that
  computes it. But local complexity belongs to the parameters: relu(x) = (1/c) relu(c x) has LC = c C_bias at
  0 for every c, and cost sqrt 2.
- Proposition 9 inherits all this.
- Proposition 17 asserts that some constant exists, and one does, since LC is locally Lipschitz. Its proof
  drops the change of the density: the explicit C = n_1 / (sqrt(2 pi) sigma) is too small once a bias moves.
"""

import math
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from inscape.arguments import positive_number
from inscape.arrays import Floats
from inscape.errors import NotApplicableError, TheoryError
from inscape.theory.check import Check, checked_form, compare, compare_means, only_stated
from inscape.theory.layers import Layers, as_points, layers_of
from inscape.theory.local_complexity.moments import MomentSettings, moments
from inscape.theory.local_complexity.representation_cost import (
    checked_labels,
    least_norm,
    representation_cost,
    shallower_bound,
)


def lc_proposition8(
    model: Any,
    x: Any = None,
    *,
    form: str = "corrected",
    cost: float | str | None = None,
    **settings: Unpack[MomentSettings],
) -> Check:
    """Eq. 14: n_0 LC / C_bias <= n^{(1-L)/2} L^{1-L/2} R^L, n the largest width, R the representation cost.

    Args:
        model: a relu network, or `moments(...)` of it.
        x: points.
        form: "stated", in the more generous of two readings of L (hidden layers, or all matrices); or
            "corrected": LC <= C_bias sum_l sqrt(n_l) (sum_{j <= l} |W_j|_F^2 / l)^{l/2}.
        cost: R, if known; "computed" for `representation_cost`, exact for one hidden layer and one output;
            |theta|, which is at least R, if None. Only the stated form uses it.
        settings: see `moments`.

    >>> from inscape.univariate import ShallowNet
    >>> unit = ShallowNet([3.0], [-1.5], [1.0])  # one unit, at its kink
    >>> lc_proposition8(unit, [[0.5]], sigma=1.0, random_state=0)
    <lc_proposition8 (corrected): 1.197 <= 1.197, holds>
    """
    m = moments(model, x, **settings)
    net = m.layers
    note = f"norm of the parameters {net.size:.4g}"
    if cost == "computed":
        least = representation_cost(net, np.zeros((1, net.n_inputs)))
        r, note = (
            least.value,
            f"{note}, representation cost {'' if least.is_exact else '<= '}{least.value:.4g}",
        )
    else:
        r = net.size if cost is None else positive_number(cost, "cost", TheoryError)
    if checked_form(form):
        depth = np.arange(1, net.n_hidden + 1)
        powers = (np.cumsum(net.squares[:-1]) / depth) ** (depth / 2)
        bound = float((np.sqrt(net.widths) * powers).sum())
    else:
        bound = max(_stated_cost(net, r, depth) for depth in (net.n_hidden, net.n_hidden + 1)) / net.n_inputs
    return compare_means(
        "lc_proposition8",
        m.draws,
        lambda mean: (mean.complexity.sum(), m.density * bound),
        form=form,
        note=note,
    )


def _stated_cost(net: Layers, r: float, depth: int) -> float:
    n = float(net.widths.max())
    return float(n ** ((1 - depth) / 2) * depth ** (1 - depth / 2) * r**depth)


def lc_proposition9(
    model: Any,
    x: Any,
    y: Any,
    reference: Any,
    *,
    form: str = "corrected",
    is_optimum: bool = False,
    **settings: Unpack[MomentSettings],
) -> Check:
    """Eq. 16: local complexity at a global optimum of min |theta| subject to y_i N(x_i) >= 1.

    (n_0 LC / (C_bias n^{(1-L)/2} L^{1-L/2}))^{1/L} / (L O) - gamma <= sqrt 2 (B / sqrt 2)^{k/L}
    sqrt((L + 1) / L), where O is the largest operator norm of a matrix, gamma = (sqrt a_max - sqrt a_min)^2
    over a_l = |W_l|_F / |W_l|, and the reference network has depth k < L, margins of at least 1 and
    Frobenius norms of at most B.

    Args:
        model: the network, without biases.
        x: points, (n, d).
        y: labels, -1 or +1.
        reference: the shallower network.
        form: "stated"; or "corrected", where the first term is (LC / (C_bias sum_l sqrt(n_l) O^l))^{1/L}: by
            the corrected Proposition 8, LC <= C_bias sum_l sqrt(n_l) O^l prod_{j <= l} a_j, and the product
            of all a_l >= 1 is at most their mean to the power L.
        is_optimum: whether the network is a global optimum. Nothing here can tell; only what contradicts it
            is looked for: biases, a margin that is not 1, Frobenius norms that differ, KKT conditions that
            are not met (`margin_kkt`).
        settings: see `moments`.

    >>> import torch
    >>> def relu_net(depth):
    ...     layers = [torch.nn.Linear(1, 1) for _ in range(depth)]
    ...     return torch.nn.Sequential(*[m for layer in layers for m in (layer, torch.nn.ReLU())][:-1])
    >>> lc_proposition9(relu_net(3), [[1.0]], [1], relu_net(2), n_noise=2, random_state=0).unmet[0]
    'no biases'
    """
    points = as_points(x)
    m = moments(model, points, **settings)
    net, other = m.layers, layers_of(reference, points)
    labels = checked_labels(y, len(points))
    depth = len(net.weights)
    ratios = np.sqrt(net.squares) / net.norms
    gamma = float((np.sqrt(ratios.max()) - np.sqrt(ratios.min())) ** 2)
    largest = float(net.norms.max())
    corrected = checked_form(form)
    powers = largest ** np.arange(1, net.n_hidden + 1)

    def sides(mean: Any) -> tuple[float, float]:
        lc = mean.complexity.sum() / m.density
        if corrected:
            first = (lc / float((np.sqrt(net.widths) * powers).sum())) ** (1 / depth)
        else:
            first = (net.n_inputs * lc / _stated_cost(net, 1.0, depth)) ** (1 / depth) / (depth * largest)
        return first - gamma, shallower_bound(net, other)

    met = least_norm(net, other, points, labels, is_optimum)
    note = f"gamma {gamma:.4g}"
    return compare_means("lc_proposition9", m.draws, sides, form=form, assumptions=met, note=note)


def lc_proposition17(start: Any, end: Any, x: Any, *, sigma: float = 0.1, form: str = "corrected") -> Check:
    """Proposition 17: |LC(theta_t) - LC(theta_0)| <= C |theta_t - theta_0| for one hidden layer.

    Args:
        start: the network at theta_0.
        end: the network at theta_t, of the same shape.
        x: points.
        sigma: the standard deviation of the noise on the biases.
        form: "stated", C = n_1 C_bias as in the proof; or "corrected", C = C_bias |(1 + e^{-1/2} s_k E
            sqrt(1 + |x|^2) / sigma)_k|, s_k the larger norm of w_k: a bound of the slope of |w| rho(w.x - b).

    The local complexity of one hidden layer needs no noise: sum_k E |w_k| rho(w_k.x - beta_k).

    >>> from inscape.univariate import ShallowNet
    >>> start, end = ShallowNet([3.0], [-1.5], [1.0]), ShallowNet([3.0], [-1.4], [1.0])
    >>> lc_proposition17(start, end, [[0.5]], sigma=1.0)
    <lc_proposition17 (corrected): 0.005969 <= 0.1211, holds>
    """
    corrected = checked_form(form)
    sigma = positive_number(sigma, "sigma", TheoryError)
    points = as_points(x)
    before, after = layers_of(start, points), layers_of(end, points)
    if before.n_hidden != 1 or after.n_hidden != 1:
        raise NotApplicableError("the proposition is about one hidden layer")
    if [w.shape for w in before.weights] != [w.shape for w in after.weights]:
        raise TheoryError("the two networks have different shapes: give one network at two times")
    first, last = (_closed_form(net, points, sigma) for net in (before, after))
    pairs = zip(before.weights + before.offsets, after.weights + after.offsets, strict=True)
    distance = math.sqrt(sum(float(((a - b) ** 2).sum()) for a, b in pairs))
    density = 1 / (math.sqrt(2 * math.pi) * sigma)
    sizes = np.maximum(*(np.linalg.norm(net.weights[0], axis=1) for net in (before, after)))
    reach = float(np.sqrt(1 + (points**2).sum(axis=1)).mean())
    constant = density * float(np.linalg.norm(1 + math.exp(-0.5) * sizes * reach / sigma))
    if not corrected:
        constant = density * len(sizes)
    note = f"LC {first:.4g} and {last:.4g}, parameters moved by {distance:.4g}, C = {constant:.4g}"
    return compare("lc_proposition17", abs(last - first), constant * distance, form=form, note=note)


def _closed_form(net: Layers, x: Floats, sigma: float) -> float:
    w, u = net.weights[0], x @ net.weights[0].T + net.offsets[0]
    density = np.exp(-0.5 * (u / sigma) ** 2) / (math.sqrt(2 * math.pi) * sigma)
    return float((np.linalg.norm(w, axis=1) * density).sum(axis=1).mean())


def lc_corollary10(
    weight_decays: npt.ArrayLike,
    complexities: npt.ArrayLike,
    *,
    form: str = "stated",
    norms: npt.ArrayLike | None = None,
    depth: int = 2,
) -> Check:
    """Eq. 17, as a fitted slope: LC grows at most like log(1 / lambda) with the weight decay lambda.

    Left is the slope of log LC over log log(1 / lambda), least squares over runs, with its interval; right is
    1. The corrected Proposition 8 gives the smaller exponent (L - 1) / L under the same assumption, so the
    order is right though the constant is not. The note has the straight line LC = a + b log(1 / lambda) of
    the paper's figure.

    Args:
        weight_decays: lambda of each run, between 0 and 1, (m,).
        complexities: its LC late in training, (m,).
        form: "stated" is the only one: it holds so.
        norms: |theta| of each run: the assumption |theta| = Theta(log(1 / lambda)^{1/L}) is then tested, as
            that the fitted exponent is not significantly different from 1 / L.
        depth: L, the number of weight matrices.

    >>> decays = np.array([1e-1, 1e-2, 1e-3, 1e-4])
    >>> lc_corollary10(decays, 2 * np.log(1 / decays) ** 0.5)
    <lc_corollary10 (stated): 0.5 <= 1, holds>
    """
    only_stated("lc_corollary10", form)
    decays, values = (np.asarray(v, dtype=np.float64).reshape(-1) for v in (weight_decays, complexities))
    if decays.shape != values.shape or len(np.unique(decays)) < 3:
        raise TheoryError("a slope needs one complexity per run and three different weight decays")
    if not ((decays > 0) & (decays < 1)).all() or not (values > 0).all():
        raise TheoryError("weight decays must lie between 0 and 1, and complexities be positive")
    pull = np.log(1 / decays)
    slope, reach, _ = _line(np.log(pull), np.log(values))
    assumptions: dict[str, bool | None] = {"|theta| grows like log(1 / lambda)^(1/L)": None}
    if norms is not None:
        sizes = np.asarray(norms, dtype=np.float64).reshape(-1)
        if sizes.shape != decays.shape or not (sizes > 0).all():
            raise TheoryError("norms must hold one positive number per run")
        power, spread, _ = _line(np.log(pull), np.log(sizes))
        met = abs(power - 1 / depth) <= spread
        assumptions = {
            f"|theta| grows like log(1 / lambda)^(1/{depth}): fitted {power:.2g} +- {spread:.1g}": met
        }
    straight, _, r2 = _line(pull, values)
    note = (
        f"over {len(decays)} runs; LC changes by {straight:.3g} per unit of log(1 / lambda), R^2 = {r2:.2f}"
    )
    interval = (1 - slope - reach, 1 - slope + reach)
    return compare("lc_corollary10", slope, 1.0, assumptions=assumptions, note=note, interval=interval)


def _line(x: Floats, y: Floats) -> tuple[float, float, float]:
    """The slope of least squares, half its 95 % interval, and R^2."""
    from scipy.special import stdtrit

    n, dx, dy = len(x), x - x.mean(), y - y.mean()
    slope = float(dx @ dy / (dx @ dx))
    rest = float(((dy - slope * dx) ** 2).sum())
    error = math.sqrt(rest / (n - 2) / float(dx @ dx))
    total = float(dy @ dy)
    return slope, float(stdtrit(n - 2, 0.975)) * error, 1 - rest / total if total > 0 else 1.0
