"""Patel and Montufar (submission of 2024), Lemma 12 for k = 2: where kinks of a network of two inputs meet.

For two units of one layer the expected number of places where both are at their kinks is the integral of
|det(grad z_i, grad z_j)| rho_i(z_i) rho_j(z_j) (Hanin and Rolnick 2019). For units of different layers it is
the same with the earlier one at its kink while the later one is evaluated: on which side of it the gradient
of the later is taken changes it by a multiple of the earlier's, and the determinant not at all. All pairs
together are the vertices of the partition into activation regions: with Euler's formula they give the
expected number of regions, as local complexity gives the length of their edges.

What high and low mean: a high density: kinks of two units meet often near the points; 0: kinks nowhere cross.
When it does not hold: as with all densities of kinks it depends on `sigma`, so compare networks at one value
of it.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from inscape.arguments import positive_number, whole_number
from inscape.arrays import Floats
from inscape.errors import NotApplicableError, TheoryError
from inscape.pictures import Shown
from inscape.progress import Meter, meter
from inscape.seeding import RandomState, as_seed
from inscape.serialising import Written
from inscape.theory.layers import Layers, as_points, layers_of

_NUMBERS_IN_CHUNK = 2**22
"""Numbers in the largest array of a chunk of points."""


@dataclass(frozen=True, eq=False, kw_only=True)
class VertexDensity(Written, Shown):
    """The expected number of vertices of the activation regions per area.

    Attributes:
        value: its mean over the points.
        std_error: of that mean, over noisy networks.
        density: at each point, the mean over noisy networks, (n,).
        same_layer: what pairs of one layer contribute to the value, to which Lemma 12 is restricted.
        settings: sigma, n_noise, seed.
    """

    measure: ClassVar[str] = "vertex density"
    _error: ClassVar = TheoryError

    value: float
    std_error: float
    density: Floats
    same_layer: float
    settings: dict[str, float]

    def __repr__(self) -> str:
        return (
            f"<vertex density {self.value:.4g} +- {self.std_error:.2g}, {self.same_layer:.4g} within layers>"
        )


def vertex_density(
    model: Any,
    x: Any,
    *,
    sigma: float,
    n_noise: int = 32,
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
) -> VertexDensity:
    """The density of vertices of the activation regions of a network with noisy biases, at points.

    Units count whether or not they are good: the partition into activation regions has the kinks of all.

    Args:
        model: a relu network of layers in a row with two inputs.
        x: points, (n, 2).
        sigma: the standard deviation of the noise on the biases.
        n_noise: how many noisy networks; two units of the first layer need none.
        random_state: a seed, a generator, or None.
        progress: None for a bar after two seconds, False for none; a function gets (points done, points).

    Two units of one layer at their kinks, |det| = 2: 2 rho(0)^2.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)).double()
    >>> with torch.no_grad():
    ...     _ = net[0].weight.copy_(torch.tensor([[2.0, 0.0], [0.0, 1.0]])), net[0].bias.zero_()
    >>> round(vertex_density(net, [[0.0, 0.0]], sigma=1.0).value, 6), round(1 / math.pi, 6)
    (0.31831, 0.31831)
    """
    sigma = positive_number(sigma, "sigma", TheoryError)
    n = whole_number(n_noise, "n_noise", 1, TheoryError)
    points = as_points(x)
    net = layers_of(model, points)
    if net.n_inputs != 2:
        raise NotApplicableError(f"vertices are of networks of two inputs, not {net.n_inputs}")
    seed = as_seed(random_state)
    rng = np.random.default_rng(seed)
    size = max(1, _NUMBERS_IN_CHUNK // int(2 * net.widths.max() ** 2))
    draws = np.zeros((n, len(points), 2))
    with meter(progress, "vertices") as show:
        for k in range(n):
            perturbation = [sigma * rng.standard_normal(int(width)) for width in net.widths]
            for start in range(0, len(points), size):
                show(k * len(points) + start, n * len(points))
                some = slice(start, start + size)
                draws[k, some] = _density(net, points[some], perturbation, sigma)
    whole = draws.sum(axis=2)
    each = whole.mean(axis=1)
    return VertexDensity(
        value=float(each.mean()),
        std_error=float(each.std(ddof=1) / math.sqrt(n)) if n > 1 else 0.0,
        density=whole.mean(axis=0),
        same_layer=float(draws[:, :, 0].mean()),
        settings={"sigma": sigma, "n_noise": n, "seed": seed},
    )


def _density(net: Layers, x: Floats, perturbation: list[Floats], sigma: float) -> Floats:
    """At each point what pairs of one layer add, and what pairs of different layers add, (n, 2)."""
    total = np.zeros((len(x), 2))
    values, slopes = x, np.broadcast_to(np.eye(2), (len(x), 2, 2))
    for layer in range(net.n_hidden):
        w = net.weights[layer]
        u = values @ w.T + net.offsets[layer]  # without the perturbation of the units themselves
        g = np.einsum("oi,nid->nod", w, slopes)
        rho = _normal(u, sigma)
        crossed = np.abs(g[:, :, None, 0] * g[:, None, :, 1] - g[:, :, None, 1] * g[:, None, :, 0])
        total[:, 0] += np.einsum("nij,ni,nj->n", crossed, rho, rho) / 2
        on = u - perturbation[layer] > 0
        values, slopes = np.where(on, u - perturbation[layer], 0.0), g * on[:, :, None]
        total[:, 1] += _later(net, layer, values, slopes, g, rho, perturbation, sigma)
    return total


def _later(
    net: Layers,
    layer: int,
    values: Floats,
    slopes: Floats,
    g: Floats,
    rho: Floats,
    perturbation: list[Floats],
    sigma: float,
) -> Floats:
    """What pairs of a unit of a layer, at its kink, and any unit of a later layer add, (n,)."""
    h, total = values.shape[1], np.zeros(len(values))
    kept = 1 - np.eye(h)
    state = values[:, None, :] * kept  # (n, unit at its kink, h): its own output is zero there
    tangent = slopes[:, None] * kept[:, :, None]
    for later in range(layer + 1, net.n_hidden):
        w = net.weights[later]
        u = state @ w.T + net.offsets[later]
        tangent = np.einsum("oi,nkid->nkod", w, tangent)
        crossed = np.abs(g[:, :, None, 0] * tangent[..., 1] - g[:, :, None, 1] * tangent[..., 0])
        total += np.einsum("nko,nk,nko->n", crossed, rho, _normal(u, sigma))
        on = u - perturbation[later] > 0
        state, tangent = np.where(on, u - perturbation[later], 0.0), tangent * on[..., None]
    return total


def _normal(u: Floats, sigma: float) -> Floats:
    return np.asarray(np.exp(-0.5 * (u / sigma) ** 2) / (math.sqrt(2 * math.pi) * sigma))
