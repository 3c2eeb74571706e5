"""What the bounds of Patel and Montufar are made of, from one pass over points and noisy networks.

What high and low mean: large norms of gradients: kinks lie densely for the same noise, and the bounds that
are made of them are large. When it does not hold: they are means over the points and the noise given; another
`sigma` or scale of the inputs gives others.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import numpy as np

from inscape.arguments import positive_number, whole_number
from inscape.arrays import Floats
from inscape.budget import BUDGET, as_budget, within_budget
from inscape.errors import TheoryError
from inscape.measures.measurement import graph_at
from inscape.models import wrap
from inscape.progress import Meter, meter
from inscape.seeding import RandomState, as_seed
from inscape.theory.layers import Layers, as_module, layers_of

if TYPE_CHECKING:
    from inscape.measures.jacobian.passes import Consumer


_RANK_TOLERANCE = 1e-10
"""Of the bound of gradients: smaller singular values are zero, in an exact rank."""
REMEDY = "give fewer points or a smaller n_noise"


class MomentSettings(TypedDict):
    """The settings that the checks share; see `moments`."""

    sigma: NotRequired[float]
    eta: NotRequired[float | None]
    eps: NotRequired[float]
    n_noise: NotRequired[int]
    random_state: NotRequired[RandomState]
    progress: NotRequired[bool | Meter | None]
    budget: NotRequired[float | None]


@dataclass(frozen=True, eq=False)
class Moments:
    """Means over the points of one network, in each of m noisy copies of it.

    The points are taken as the whole distribution p: what is random is the noise.

    Attributes:
        layers: the network.
        sigma: the standard deviation of the noise on the biases.
        eta: how near a kink is near.
        eps: the smallest singular value that counts for the local rank.
        draws: quantity -> its mean over points in each noisy network:
            complexity (m, h), the terms of LC per hidden layer; gradients (m, h), sum_i |grad z_i|; far (m,
            h), the same over units with |z_i - beta_i| > eta; squares (m,), sum_i z_i^2 + b_i^2; ranks and
            exact_ranks (m, h), of the Jacobians; variation (m,), |grad N|; not_good (m,), units without a
            path of active units to the output; not_good_at_kink (m,), the same with each unit at its kink.
        largest: the largest |grad z_i(x)| seen.
    """

    layers: Layers
    sigma: float
    eta: float
    eps: float
    draws: dict[str, Floats]
    largest: float

    @property
    def density(self) -> float:
        """C_bias = 1 / (sqrt(2 pi) sigma), the largest density of a bias."""
        return 1 / (math.sqrt(2 * math.pi) * self.sigma)

    @property
    def least_density(self) -> float:
        """c_bias^eta = C_bias exp(-eta^2 / (2 sigma^2)), the least density within eta of the mean."""
        return self.density * math.exp(-(self.eta**2) / (2 * self.sigma**2))


def moments(
    model: Any,
    x: Any = None,
    *,
    sigma: float = 0.1,
    eta: float | None = None,
    eps: float = 0.1,
    n_noise: int = 32,
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
    budget: float | None = BUDGET,
) -> Moments:
    """What all bounds of local complexity need; give it to several checks in place of the model.

    Args:
        model: a relu network of layers in a row; or `Moments`, which are returned.
        x: the points, which are taken as the whole distribution of the data.
        sigma: the standard deviation of the noise on the biases.
        eta: the eta of Corollary 3; sigma if None.
        eps: the eps of the local rank.
        n_noise: how many noisy networks.
        random_state: a seed, a generator, or None.
        progress: None for a bar after two seconds, False for none; a function gets (work done, work in all).
        budget: seconds that it may take, as the singular values of a small matrix and the first second of
            work foresee it, else a `BudgetError` says how long it would; None for no limit.

    >>> from inscape.univariate import ShallowNet
    >>> from inscape.theory import lc_gradient_bound, lc_theorem5_upper
    >>> unit = ShallowNet([3.0], [-1.5], [1.0])  # one unit, at its kink
    >>> m = moments(unit, [[0.5]], sigma=1.0, random_state=0)
    >>> lc_gradient_bound(m).lhs, lc_theorem5_upper(m, form="corrected").holds
    (3.0, True)
    """
    if isinstance(model, Moments):
        return model
    from inscape.measures.jacobian.passes import Draws, PassSettings, jacobian_pass
    from inscape.measures.jacobian.tallies import ComplexityTally, MomentTally, RankTally, VariationTally

    sigma = positive_number(sigma, "sigma", TheoryError)
    eta = sigma if eta is None else positive_number(eta, "eta", TheoryError)
    eps = positive_number(eps, "eps", TheoryError)
    x = _as_rows(x)
    model = wrap(as_module(model))
    layers = layers_of(model, x)
    draws = Draws(sigma, whole_number(n_noise, "n_noise", 1, TheoryError), "bias", as_seed(random_state))
    tiny = max(_RANK_TOLERANCE * layers.gradient_bound(), 1e-300)
    complexity, own = ComplexityTally(draws, "theorem"), MomentTally(draws, eta, layers.offsets)
    ranks, exact, variation = RankTally(draws, eps), RankTally(draws, tiny), VariationTally(draws, "scores")
    ranks.limit, ranks.n_inputs = as_budget(budget), layers.weights[0].shape[1]
    consumers: list[Consumer] = [complexity, own, ranks, exact, variation]
    with (
        meter(progress, "noisy networks") as show,
        graph_at(model, x, "this statement") as (graph, points),
    ):
        watch = within_budget(show, ranks.limit, "noisy networks at these points", REMEDY)
        jacobian_pass(graph, points, consumers, PassSettings(), watch)
    means = {
        "complexity": complexity.terms.mean(axis=0),
        "ranks": ranks.ranks.mean(axis=0),
        "exact_ranks": exact.ranks.mean(axis=0),
        "variation": variation.norms.mean(axis=0),
    }
    return Moments(layers, sigma, eta, eps, means | own.means(), own.largest)


def _as_rows(x: Any) -> Any:
    """The points; those of one input, (n,), as (n, 1)."""
    if x is None:
        raise TheoryError("x is missing: give the points, or moments(...) in place of the model")
    points = np.asarray(x) if isinstance(x, list | tuple) else x
    return points.reshape(-1, 1) if getattr(points, "ndim", 2) == 1 else points
