"""Total variation: how steep the network is at data points.

What high and low mean: a low value says that the scores hardly change around the data, which leaves a
first-order attack little to follow. When it does not hold: scaling all scores scales it, though no prediction
changes, so divide by the margin before comparing models (`inscape.margin(..., normalise="gradient")`); and
a network that is flat at the data can be steep between them.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from inscape.arrays import Floats
from inscape.budget import BUDGET, as_budget, within_budget
from inscape.errors import MeasureError, NotApplicableError, unknown_name
from inscape.measures.measurement import Measurement, crossed_mean, mean_with_error, measuring, points_of
from inscape.models import Model, wrap
from inscape.pictures import Drawn
from inscape.progress import Meter, meter
from inscape.provenance import Provenance
from inscape.seeding import RandomState, as_seed

if TYPE_CHECKING:
    from inscape.measures.jacobian.passes import JacobianRequest
    from inscape.measures.jacobian.tallies import VariationTally

OF = ("scores", "predicted", "probabilities", "hidden")
POINTS_AT_ONCE = 64


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TotalVariation(Measurement, Drawn):
    """The mean norm of the gradient of the scores.

    Attributes:
        norms: the norm at each point, the mean over noisy networks if there are any, (n,).
    """

    measure: ClassVar[str] = "total_variation"

    norms: Floats

    def _draw(self, ax: Any) -> Any:
        """How the norms are distributed."""
        from inscape.drawing.measures import draw_values

        title = f"total variation of {self.provenance.model}"
        return draw_values(self.norms, self.value, xlabel="norm of the gradient", title=title, ax=ax)


def total_variation(
    model: Any,
    x: Any,
    *,
    of: str = "scores",
    sigma: float | None = None,
    n_noise: int = 32,
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
    budget: float | None = BUDGET,
) -> TotalVariation:
    """TV = E |grad_x N(x)|, the Frobenius norm of the Jacobian if there are several scores.

    Patel and Montufar (submission of 2024), sec. 5. The paper takes the mean over noisy biases too; give
    sigma for that, without it the network is taken as it is. A final softmax is left out where the rest is
    piecewise affine. Computed in float64; c backward evaluations per point.

    Args:
        model: a piecewise-affine model, or any differentiable torch module.
        x: the points, as for `inscape.sample_probes`.
        of: "scores" for all outputs of the network, whatever rule decides by them; "predicted" for the score
            of the label alone; "probabilities" for the softmax of the scores (of a single one its sigmoid and
            the rest), which is bounded; "hidden" for the pre-activations of the last hidden layer, which is
            what the published code of the paper draws.
        sigma: the standard deviation of noise on the biases; None for none.
        n_noise: how many noisy networks, if there is noise.
        random_state: a seed, a generator, or None.
        progress: None for a bar after two seconds, False for none; a function gets (work done, work in all).
        budget: seconds that it may take as its first second foresees it, else a `BudgetError` says how long
            it would; None for no limit.

    >>> import torch
    >>> net = torch.nn.Linear(2, 2, bias=False)
    >>> with torch.no_grad():
    ...     _ = net.weight.copy_(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    >>> total_variation(net, torch.randn(4, 2)).value
    5.0
    """
    from inscape.measures.jacobian.passes import measured

    wrapped, seed, limit = wrap(model), as_seed(random_state), as_budget(budget)
    with meter(progress, "total variation") as show:
        watch = within_budget(show, limit, "total variation at these points", "give fewer points")
        if sigma is not None or of in ("probabilities", "hidden"):
            if of == "predicted" and wrapped.undecided is not wrapped:
                raise NotApplicableError(
                    "total variation with noise is of all outputs: leave out of='predicted'"
                )
            request = variation_request(of=of, sigma=sigma, n_noise=n_noise, seed=seed)
            (result,) = measured(wrapped, x, [request], watch)
            assert isinstance(result, TotalVariation)
            return result
        tally = _tally(of, None, n_noise, seed)
        points = points_of(wrapped, x)
        with measuring(wrapped):
            network = wrapped if of == "predicted" else wrapped.undecided
            tally.norms = _by_reverse(network, points, of, watch)
            return _result(tally, wrapped, "float64")


def variation_request(*, of: str, sigma: float | None, n_noise: int, seed: int) -> "JacobianRequest":
    """What total variation asks of a pass, its settings checked."""
    from inscape.measures.jacobian.passes import JacobianRequest

    tally = _tally(of, sigma, n_noise, seed)
    name = "total variation" + (f" of {of}" if of in OF[2:] else "") + (" with noise" if sigma else "")
    return JacobianRequest(
        name, tally, lambda graph, model, settings: _result(tally, model, settings.precision)
    )


def _tally(of: str, sigma: float | None, n_noise: int, seed: int) -> "VariationTally":
    from inscape.measures.jacobian.passes import Draws
    from inscape.measures.jacobian.tallies import VariationTally

    if of not in OF:
        raise MeasureError(unknown_name("of", of, OF))
    return VariationTally(Draws.on_biases(sigma, n_noise, seed), of)


def _by_reverse(model: Model, x: Floats, of: str, show: Meter) -> Floats:
    """The norms at all points, (n, 1)."""
    import torch

    from inscape.measures.jacobian.reverse import differentiable_scores, jacobian
    from inscape.measures.jacobian.tallies import gradient_norms

    scores = differentiable_scores(model, x.shape[1:], "total variation")
    norms = []
    for i in range(0, len(x), POINTS_AT_ONCE):
        points = torch.from_numpy(x[i : i + POINTS_AT_ONCE]).requires_grad_()
        values = scores(points)
        norms.append(gradient_norms(jacobian(values, points), values.detach(), of).numpy())
        show(min(i + POINTS_AT_ONCE, len(x)), len(x))
    return np.concatenate(norms)[:, None]


def _result(tally: "VariationTally", model: Model, precision: str) -> TotalVariation:
    """The result that a tally adds up to."""
    norms, draws = tally.norms, tally.draws
    noisy = draws.sigma is not None
    value, error, interval = crossed_mean(norms) if noisy else mean_with_error(norms[:, 0])
    noise = {"sigma": draws.sigma, "n_noise": draws.n} if noisy else {"sigma": None}
    return TotalVariation(
        value=value,
        std_error=error,
        interval=interval,
        n=len(norms),
        method="exact gradients",
        settings={"of": tally.of} | noise,
        provenance=Provenance.of(model, draws.seed if noisy else None, precision),
        norms=norms.mean(axis=1),
    )
