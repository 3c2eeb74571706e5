"""Local complexity: how densely a network's kinks lie near the data.

What high and low mean: a high value says that a small step from a data point is likely to meet a place
where the network's slope changes; late in training it often falls while robustness rises (Patel and Montufar
2025, Humayun et al. 2024). When it does not hold: it depends on sigma and on the scale of the inputs, so only
networks on the same data with the same sigma compare; multiplying a layer by c and the next by 1 / c leaves
the function as it is but changes the value, since sigma does not scale along; and it says nothing of how
much the slope changes at a kink.
"""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from inscape.arguments import renamed, superseded, whole_number
from inscape.arrays import Floats
from inscape.budget import BUDGET, MEMORY, as_budget, within_budget
from inscape.errors import MeasureError, unknown_name
from inscape.measures.measurement import Measurement, crossed_mean
from inscape.models import Model, wrap
from inscape.parallel import working
from inscape.pictures import Drawn, DrawnByClass, Style
from inscape.probes import Patch
from inscape.probes.plane import domain_of, scene_of
from inscape.progress import Meter, meter
from inscape.provenance import Provenance
from inscape.seeding import RandomState, as_seed
from inscape.status import COMPLETE, Status

if TYPE_CHECKING:
    from inscape.measures.jacobian.passes import JacobianRequest, PassSettings
    from inscape.measures.jacobian.tallies import ComplexityTally
    from inscape.models.graph import Graph

FORMS = ("theorem", "density", "norms", "authors")
PRECISIONS = ("float64", "float32")
REMEDY = "give fewer points, a smaller n_noise, or a number of random n_directions"
MAP_REMEDY = "lower the resolution or n_noise"
N_NETWORKS_OF_MAP = 8
"""Perturbed networks of a map, where neighbouring points are averaged together anyway."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LocalComplexity(Measurement, Drawn):
    """The mean density of a network's kinks at data points.

    Attributes:
        per_layer: what each layer of units adds to the value, (L,).
        layers: the names of the layers.
        density: f(x) at each point, the mean over perturbed networks, (n,).
        n_not_good: B, the expected number of units that are not good: without a path of active units to
            the output.
        n_units: how many units there are.
    """

    measure: ClassVar[str] = "local_complexity"

    per_layer: Floats
    layers: tuple[str, ...]
    density: Floats
    n_not_good: float
    n_units: int

    def _draw(self, ax: Any) -> Any:
        """What each layer adds."""
        from inscape.drawing.measures import draw_layers

        title = f"local complexity {self.value:.4g} of {self.provenance.model}"
        return draw_layers(self.per_layer, self.layers, ylabel="density of kinks", title=title, ax=ax)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DensityMap(DrawnByClass, Measurement):
    """The density f(x) of kinks on a grid of a patch.

    Attributes:
        density: f at the grid points, (resolution, resolution); the first axis is s, the second t. The value
            is its mean over the patch.
        bounds: the intervals of s and t.
        marks: coordinates of data points on the patch, (m, 2).
        patch: the patch itself; None in results of older files.
        class_names: the class name of each label, if the model has names: for data points in a picture.
    """

    measure: ClassVar[str] = "density_map"

    density: Floats
    bounds: Floats
    marks: Floats
    patch: Patch | None = None
    class_names: tuple[str, ...] | None = None

    def _draw(self, ax: Any, style: Style) -> Any:
        """The map."""
        from inscape.drawing.measures import draw_density

        (s0, s1), (t0, t1) = self.bounds.tolist()
        patch = self.patch or Patch([0.0, 0.0], np.eye(2), ((s0, s1), (t0, t1)), marks=self.marks)
        scene, classes = scene_of(patch, domain_of(patch), style, (), self.class_names)
        title = f"density of kinks, sigma = {self.settings['sigma']:g}"
        return draw_density(self.density, scene, classes=classes, title=title, ax=ax)


def _form(*, with_density: bool = True, estimator: str = "theorem") -> dict[str, Any]:
    """The form that two arguments named before."""
    if not with_density and estimator != "theorem":
        raise MeasureError('with_density=False and estimator="authors" exclude each other: drop one')
    return {"form": estimator if with_density else "norms"}


@superseded("with_density", "estimator", by=_form, spelling='form="theorem", "norms" or "authors"')
@renamed(n_probes="n_directions")
def local_complexity(
    model: Any,
    x: Any,
    *,
    sigma: float,
    n_noise: int = 32,
    noise: str = "bias",
    form: str = "theorem",
    precision: str = "float64",
    n_directions: int | Literal["auto"] | None = "auto",
    memory: int = MEMORY,
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
    budget: float | None = BUDGET,
    n_jobs: int | None = None,
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
        n_noise: how many noisy networks; all are evaluated at every point.
        noise: "bias", or "bias+weights" to add N(0, sigma^2) to every weight of linear maps and convolutions
            too (batch-norm merged in).
        form: "theorem"; "density" for eq. 40, sum_i E |grad z_i| rho_i without the indicator, which is what
            the appendix says is estimated, an upper bound that wide networks attain; "norms" for eq. 41,
            sum_i E |grad z_i|, without density and indicator; or "authors", what the published code computes:
            exp(-z_i^2 / (2 sigma^2)) in place of rho_i, so neither normalised nor centred at the bias, and no
            indicator.
        precision: "float64" or "float32".
        n_directions: None for exact gradients. A number k estimates |grad z_i| without bias from k random
            directions in each noisy network, at the cost of k evaluations instead of one per input
            (multilayer perceptrons have exact gradients for less). "auto" is exact for perceptrons and up to
            64 inputs, and takes 8 directions else; the result's `method` says which.
        memory: bytes that derivatives may fill at once in each thread, for networks other than perceptrons.
        random_state: a seed, a generator, or None; the seed is recorded.
        progress: None for a bar after two seconds, False for none; a function gets (work done, work in all).
        budget: seconds that it may take as its first second foresees it, else a `BudgetError` says how long
            it would; None for no limit.
        n_jobs: threads, as for `inscape.linear_regions`.

    One unit, v relu(w x - beta): |w| times the normal density at w x - beta.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU(), torch.nn.Linear(1, 1))
    >>> with torch.no_grad():
    ...     _ = net[0].weight.fill_(3.0), net[0].bias.fill_(-1.5)
    >>> result = local_complexity(net, [[0.5]], sigma=1.0, random_state=0)
    >>> round(result.value, 4), round(3 / (2 * torch.pi) ** 0.5, 4)
    (1.1968, 1.1968)
    """
    from inscape.measures.jacobian.passes import measured

    request = complexity_request(
        sigma=sigma,
        n_noise=n_noise,
        noise=noise,
        form=form,
        precision=precision,
        n_directions=n_directions,
        memory=memory,
        seed=as_seed(random_state),
    )
    limit = as_budget(budget)
    with meter(progress, "local complexity") as show, working(n_jobs):
        watch = within_budget(show, limit, "local complexity of these points", REMEDY)
        (result,) = measured(wrap(model), x, [request], watch)
    assert isinstance(result, LocalComplexity)
    return result


@superseded("with_density", "estimator", by=_form, spelling='form="theorem", "norms" or "authors"')
def density_map(
    model: Any,
    patch: Patch,
    resolution: int = 200,
    *,
    sigma: float,
    n_noise: int = N_NETWORKS_OF_MAP,
    within: str = "space",
    noise: str = "bias",
    form: str = "theorem",
    precision: str = "float64",
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
    budget: float | None = BUDGET,
    n_jobs: int | None = None,
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
        form: likewise.
        precision: likewise.
        random_state: likewise.
        progress: likewise.
        budget: likewise.
        n_jobs: likewise.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> square = Patch([0.0, 0.0], np.eye(2))
    >>> density_map(net, square, 20, sigma=0.1, random_state=0).density.shape
    (20, 20)
    """
    from inscape.measures.jacobian.passes import measured

    r = whole_number(resolution, "resolution", 2, MeasureError)
    if within not in ("space", "patch"):
        raise MeasureError(unknown_name("within", within, ("space", "patch")))
    request = complexity_request(
        sigma=sigma,
        n_noise=n_noise,
        noise=noise,
        form=form,
        precision=precision,
        n_directions="auto",
        seed=as_seed(random_state),
        plane=patch.axes if within == "patch" else None,
    )
    limit = as_budget(budget)
    with meter(progress, "density map") as show, working(n_jobs):
        watch = within_budget(show, limit, f"a density map of {r} x {r} points", MAP_REMEDY)
        (result,) = measured(wrapped := wrap(model), _grid_of(patch, r), [request], watch)
    assert isinstance(result, LocalComplexity)
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
        patch=patch,
        class_names=wrapped.classes,
    )


def complexity_request(
    *,
    sigma: float,
    n_noise: int,
    noise: str,
    form: str,
    precision: str,
    seed: int,
    n_directions: int | Literal["auto"] | None = None,
    memory: int = MEMORY,
    plane: Floats | None = None,
) -> "JacobianRequest":
    """What local complexity asks of a pass, its settings checked.

    Args:
        sigma: as for `local_complexity`, like all that follows but the last two.
        n_noise: likewise.
        noise: likewise.
        form: likewise.
        precision: likewise.
        n_directions: likewise.
        memory: likewise.
        seed: of noise and directions.
        plane: two axes, (2, ...), to whose plane gradients are projected; None for the whole space.
    """
    import torch

    from inscape.measures.jacobian.passes import Draws, JacobianRequest, PassSettings
    from inscape.measures.jacobian.tallies import ComplexityTally

    if form not in FORMS:
        raise MeasureError(unknown_name("form", form, FORMS))
    if sigma is None:
        raise MeasureError("sigma=None is not possible: give the standard deviation of the noise")
    draws = Draws(sigma, whole_number(n_noise, "n_noise", 1, MeasureError), noise, seed)
    if precision not in PRECISIONS:
        raise MeasureError(unknown_name("precision", precision, PRECISIONS))
    if n_directions is not None and n_directions != "auto":
        hint = ", None for exact gradients, or 'auto'"
        n_directions = whole_number(n_directions, "n_directions", 1, MeasureError, hint)
    memory = whole_number(memory, "memory", 1, MeasureError)
    directions = None
    if plane is not None:
        directions = torch.from_numpy(np.ascontiguousarray(np.linalg.qr(plane.reshape(2, -1).T)[0].T))
    tally = ComplexityTally(draws, form)
    settings = PassSettings(precision, memory, n_directions, seed, directions)
    return JacobianRequest("local complexity", tally, partial(_result, tally), settings)


def _result(
    tally: "ComplexityTally", graph: "Graph", model: Model, settings: "PassSettings"
) -> LocalComplexity:
    """The result that a tally adds up to."""
    from inscape.measures.jacobian.forward import window_nodes

    value, error, interval = crossed_mean(tally.terms.sum(axis=2))
    n_pools = window_nodes(graph)
    status = COMPLETE
    if n_pools:
        status = Status(
            "complete", f"layers like relu are counted, the kinks of {n_pools} max-pooling layers are not"
        )
    if not tally.layers:
        status = Status("complete", "no units could switch: the network is affine, so that the value is 0")
    n, m = tally.terms.shape[:2]
    draws, k = tally.draws, settings.n_directions
    assert k != "auto"
    return LocalComplexity(
        value=value,
        std_error=error,
        interval=interval,
        n=n,
        method="exact gradients" if k is None else f"{k} random directions per noisy network",
        status=status,
        settings={
            "sigma": draws.sigma,
            "n_noise": draws.n,
            "noise": draws.kind,
            "form": tally.form,
            "precision": settings.precision,
            "n_directions": k,
        },
        provenance=Provenance.of(model, draws.seed, settings.precision),
        per_layer=tally.terms.mean(axis=(0, 1)),
        layers=tuple(layer.name for layer in tally.layers),
        density=tally.terms.sum(axis=2).mean(axis=1),
        n_not_good=tally.n_not_good / (n * m),
        n_units=tally.n_units,
    )


def _grid_of(patch: Patch, resolution: int) -> Floats:
    """The points of a square grid on a patch, (resolution^2, *input_shape), corners included."""
    axes = [np.linspace(low, high, resolution) for low, high in patch.bounds]
    return patch.points(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2))
