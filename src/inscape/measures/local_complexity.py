"""Local complexity: how densely a network's kinks lie near the data.

What high and low mean: a high value says that a small step from a data point is likely to meet a place
where the network's slope changes; late in training it often falls while robustness rises (Patel and Montufar
2025, Humayun et al. 2024). When it does not hold: it depends on sigma and on the scale of the inputs, so only
networks on the same data with the same sigma compare; multiplying a layer by c and the next by 1 / c leaves
the function as it is but changes the value, since sigma does not scale along; and it says nothing of how
much the slope changes at a kink.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arguments import whole_number
from inscape.errors import MeasureError, unknown_name
from inscape.measures.complexity_result import DensityMap, LocalComplexity, grid_of
from inscape.measures.jacobian import MEMORY
from inscape.measures.points import graph_at
from inscape.measures.statistics import crossed_mean
from inscape.models import wrap
from inscape.probes import Patch
from inscape.progress import Meter, meter
from inscape.provenance import Provenance
from inscape.seeding import RandomState, as_seed
from inscape.status import COMPLETE, Status

if TYPE_CHECKING:
    from inscape.measures.jacobian.blocks import Settings
    from inscape.measures.jacobian.tallies import ComplexityTally
    from inscape.models.graph import Graph

ESTIMATORS = ("theorem", "authors")
PRECISIONS = ("float64", "float32")


def local_complexity(
    model: Any,
    x: Any,
    *,
    sigma: float,
    n_noise: int = 32,
    noise: str = "bias",
    with_density: bool = True,
    estimator: str = "theorem",
    precision: str = "float64",
    n_probes: int | None = None,
    memory: int = MEMORY,
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
) -> LocalComplexity:
    """LC of Theorem 2: the expected density of the non-linear locus of a network with noisy biases, at data.

    LC = sum_i E_{x, noise} [ |grad z_i(x)| rho_i(z_i(x)) 1{i good at x} ], where z_i is what unit i reads
    before its bias, b_i = beta_i + N(0, sigma^2) its noisy bias, rho_i the density of b_i, and i is good at
    x if a path of active units joins it to the output (Patel and Montufar, "On the local complexity of linear
    regions in deep ReLU networks", submission of 2024, Def. 1 and eq. 6). In one dimension it is the expected
    number of knots per length, in two the expected length of boundary per area.

    Where we depart from the text: 1{i good at x} is taken with unit i at its kink, b_i = z_i(x), not with b_i
    drawn independently, because that is what the co-area formula gives; with the independent reading eq. 6
    misses the number of knots (a test shows by how much). Every place of a convolution is a unit with a
    noise of its own; the kinks of max-pooling have no bias, so they are not counted, and the status says so.

    Args:
        model: anything that `inscape.wrap` takes whose structure is piecewise affine.
        x: the points, as for `inscape.sample_probes`.
        sigma: the standard deviation of the noise.
        n_noise: how many noisy networks; all are looked at in every point.
        noise: "bias", or "bias+weights" to add N(0, sigma^2) to every weight of linear maps and convolutions
        too
            (batch-norm merged in).
        with_density: False for eq. 41, sum_i E |grad z_i|, without density and indicator.
        estimator: "theorem"; or "authors", what the published code computes: exp(-z_i^2 / (2 sigma^2)) in
        place of
            rho_i, so neither normalised nor centred at the bias, and no indicator.
        precision: "float64" or "float32".
        n_probes: None for exact gradients. A number k estimates |grad z_i| without bias from k random
            directions, at the cost of k evaluations instead of one per input (multilayer perceptrons have
            exact gradients for less).
        memory: bytes that derivatives may fill at once, for networks other than perceptrons.
        random_state: a seed, a generator, or None; the seed is recorded.
        progress: True shows a bar on stderr; a function gets (work done, work in all).

    One neuron, v relu(w x - beta): |w| times the normal density at w x - beta.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU(), torch.nn.Linear(1, 1))
    >>> with torch.no_grad():
    ...     _ = net[0].weight.fill_(3.0), net[0].bias.fill_(-1.5)
    >>> result = local_complexity(net, [[0.5]], sigma=1.0, random_state=0)
    >>> round(result.value, 4), round(3 / (2 * torch.pi) ** 0.5, 4)
    (1.1968, 1.1968)
    """
    from inscape.measures.jacobian.passes import jacobian_pass

    seed = as_seed(random_state)
    tally = tally_of(sigma, n_noise, noise, with_density, estimator, seed)
    wrapped = wrap(model)
    with (
        meter(progress, "local complexity") as show,
        graph_at(wrapped, x, "local complexity") as (graph, points),
    ):
        jacobian_pass(graph, points, [tally], pass_settings(precision, memory, n_probes, seed), show)
        return complexity_of(
            tally, graph, Provenance.of(wrapped, seed, precision), precision=precision, n_probes=n_probes
        )


def density_map(
    model: Any,
    patch: Patch,
    resolution: int = 200,
    *,
    sigma: float,
    n_noise: int = 32,
    within: str = "space",
    noise: str = "bias",
    with_density: bool = True,
    estimator: str = "theorem",
    precision: str = "float64",
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
) -> DensityMap:
    """The density f(x) of kinks on a grid of a patch, as in Fig. 1 and 4 to 6 of the paper.

    Args:
        model: as for `local_complexity`.
        patch: where to look.
        resolution: grid points per axis.
        sigma: the standard deviation of the noise.
        n_noise: how many noisy networks.
        within: "space" for the density in the whole input space; "patch" for that of the lines that are seen
            on the patch, where gradients are projected to its plane. On a patch of a plane they are equal.
        noise: see `local_complexity`.
        with_density: likewise.
        estimator: likewise.
        precision: likewise.
        random_state: likewise.
        progress: likewise.
    """
    import torch

    from inscape.measures.jacobian.passes import jacobian_pass

    seed, r = as_seed(random_state), whole_number(resolution, "resolution", 2, MeasureError)
    if within not in ("space", "patch"):
        raise MeasureError(unknown_name("within", within, ("space", "patch")))
    tally = tally_of(sigma, n_noise, noise, with_density, estimator, seed)
    wrapped = wrap(model)
    plane = None
    if within == "patch":
        q = np.linalg.qr(patch.axes.reshape(2, -1).T)[0].T
        plane = torch.from_numpy(np.ascontiguousarray(q))
    grid = grid_of(patch, r)
    with (
        meter(progress, "density map") as show,
        graph_at(wrapped, grid, "local complexity") as (graph, points),
    ):
        if plane is not None:
            plane = plane.reshape(2, *graph.input_shape)
        settings = pass_settings(precision, MEMORY, None, seed, plane)
        jacobian_pass(graph, points, [tally], settings, show)
        result = complexity_of(
            tally, graph, Provenance.of(wrapped, seed, precision), precision=precision, n_probes=None
        )
    return DensityMap(
        value=result.value,
        n=r * r,
        method=result.method,
        status=result.status,
        settings=result.settings | {"within": within, "resolution": r},
        provenance=result.provenance,
        density=result.density.reshape(r, r),
        bounds=np.array(patch.bounds),
        marks=np.asarray(patch.marks),
    )


def tally_of(
    sigma: float, n_noise: int, noise: str, with_density: bool, estimator: str, seed: int
) -> "ComplexityTally":
    """What adds up the sum, its settings checked."""
    from inscape.measures.jacobian.perturbation import Draws
    from inscape.measures.jacobian.tallies import ComplexityTally

    if estimator not in ESTIMATORS:
        raise MeasureError(unknown_name("estimator", estimator, ESTIMATORS))
    if not with_density and estimator != "theorem":
        raise MeasureError('with_density=False and estimator="authors" exclude each other: drop one')
    if sigma is None:
        raise MeasureError("sigma=None is not possible: give the standard deviation of the noise")
    draws = Draws(sigma, whole_number(n_noise, "n_noise", 1, MeasureError), noise, seed)
    return ComplexityTally(draws, estimator if with_density else "norms")


def pass_settings(
    precision: str, memory: int, n_probes: int | None, seed: int, directions: Any = None
) -> "Settings":
    """How to compute, checked."""
    from inscape.measures.jacobian.blocks import Settings

    if precision not in PRECISIONS:
        raise MeasureError(unknown_name("precision", precision, PRECISIONS))
    if n_probes is not None:
        n_probes = whole_number(n_probes, "n_probes", 1, MeasureError, ", or None for exact gradients")
    memory = whole_number(memory, "memory", 1, MeasureError)
    return Settings(precision, memory, n_probes, seed, directions)


def complexity_of(
    tally: "ComplexityTally", graph: "Graph", provenance: Provenance, *, precision: str, n_probes: int | None
) -> LocalComplexity:
    """The result that a tally adds up to."""
    from inscape.measures.jacobian.layers import window_nodes

    value, error, interval = crossed_mean(tally.terms.sum(axis=2))
    n_pools = window_nodes(graph)
    status = COMPLETE
    if n_pools:
        status = Status("complete", f"the kinks of {n_pools} max-pooling layers are not counted")
    if not tally.layers:
        status = Status("complete", "the network has no units, it is affine")
    n, m = tally.terms.shape[:2]
    draws = tally.draws
    return LocalComplexity(
        value=value,
        std_error=error,
        interval=interval,
        n=n,
        method="exact gradients" if n_probes is None else f"{n_probes} random directions",
        status=status,
        settings={
            "sigma": draws.sigma,
            "n_noise": draws.n,
            "noise": draws.kind,
            "variant": tally.variant,
            "precision": precision,
            "n_probes": n_probes,
        },
        provenance=provenance,
        per_layer=tally.terms.mean(axis=(0, 1)),
        layers=tuple(layer.name for layer in tally.layers),
        density=tally.terms.sum(axis=2).mean(axis=1),
        n_not_good=tally.n_not_good / (n * m),
        n_units=tally.n_units,
    )
