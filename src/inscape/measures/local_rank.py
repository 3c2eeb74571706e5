"""Local rank: in how many directions the features of a layer change around a data point.

What high and low mean: the rank of a layer's Jacobian is the dimension of its feature manifold near the
point; a fall during training says that the layer has come to ignore directions of the input.
When it does not hold: the count depends on eps, and eps on the scale of inputs and weights, so look at
several, or at one relative to the largest singular value; and a low rank does not say that the directions
kept are the right ones.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from inscape.arguments import positive_number
from inscape.arrays import Floats
from inscape.budget import BUDGET, as_budget, within_budget
from inscape.errors import MeasureError, NotApplicableError, PartitionError
from inscape.measures.measurement import Measurement, crossed_mean, mean_with_error, measuring, points_of
from inscape.models import Model, wrap
from inscape.pictures import Drawn
from inscape.progress import Meter, meter
from inscape.provenance import Provenance
from inscape.seeding import RandomState, as_seed

if TYPE_CHECKING:
    from inscape.measures.jacobian.passes import JacobianRequest
    from inscape.measures.jacobian.tallies import RankTally


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LocalRank(Measurement, Drawn):
    """The mean rank of each layer's Jacobian; the value is the mean over layers.

    Attributes:
        per_layer: LR_l, (L,).
        layers: the names of the layers.
        ranks: the rank at each point, the mean over noisy networks if there are any, (n, L).
    """

    measure: ClassVar[str] = "local_rank"

    per_layer: Floats
    layers: tuple[str, ...]
    ranks: Floats

    def _draw(self, ax: Any) -> Any:
        """The rank of each layer."""
        from inscape.drawing.measures import draw_layers

        title = f"local rank of {self.provenance.model}, eps = {self.settings['eps']:g}"
        return draw_layers(self.per_layer, self.layers, ylabel="local rank", title=title, ax=ax)


def local_rank(
    model: Any,
    x: Any,
    *,
    eps: float,
    relative: bool = False,
    sigma: float | None = None,
    n_noise: int = 32,
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
    budget: float | None = BUDGET,
) -> LocalRank:
    """LR_l^eps = E #{singular values of J_x z_l(x) that are at least eps}, for each layer l.

    Patel and Montufar (submission of 2024), Def. 4 and eq. 10, where z_l are the pre-activations of layer l.
    The paper takes the mean over noisy biases too; give sigma for that, without it the network is taken as
    it is. In networks of affine and piecewise-linear layers a layer is what an activation reads; in any
    other torch module it is what a linear map or convolution returns, but the last. Singular values are
    computed in float64; a Jacobian of h units costs min(h, d)^2 max(h, d).

    Args:
        model: a piecewise-affine model, or any differentiable torch module.
        x: the points, as for `inscape.sample_probes`.
        eps: the smallest singular value that counts.
        relative: whether eps is a fraction of the largest singular value of each Jacobian, so that scaling
            inputs or weights changes nothing.
        sigma: the standard deviation of noise on the biases; None for none.
        n_noise: how many noisy networks, if there is noise.
        random_state: a seed, a generator, or None.
        progress: None for a bar after two seconds, False for none; a function gets (work done, work in all).
        budget: seconds that it may take, as the singular values of a small matrix and the first second of
            work foresee it, else a `BudgetError` says how long it would; None for no limit.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    >>> local_rank(net, torch.randn(5, 3), eps=1e-9).per_layer.tolist()
    [3.0]
    """
    from inscape.measures.jacobian.passes import measured

    wrapped, limit = wrap(model), as_budget(budget)
    request = rank_request(
        eps=eps, relative=relative, sigma=sigma, n_noise=n_noise, seed=as_seed(random_state)
    )
    points = points_of(wrapped, x)
    tally: Any = request.consumer
    tally.limit, tally.n_inputs = limit, points[0].size
    with meter(progress, "local rank") as show:
        watch = within_budget(show, limit, "local rank of these points", "give fewer points")
        try:
            (result,) = measured(wrapped, points, [request], watch)
            assert isinstance(result, LocalRank)
            return result
        except NotApplicableError as error:
            if sigma is not None or not isinstance(error.__cause__, PartitionError):
                raise
        with measuring(wrapped):
            return _by_reverse(wrapped, points, float(eps), relative, watch)


def rank_request(
    *, eps: float, sigma: float | None, n_noise: int, seed: int, relative: bool = False
) -> "JacobianRequest":
    """What local rank asks of a pass, its settings checked."""
    from inscape.measures.jacobian.passes import Draws, JacobianRequest
    from inscape.measures.jacobian.tallies import RankTally

    eps = positive_number(eps, "eps", MeasureError, ": the smallest singular value that counts")
    if relative and eps > 1:
        raise MeasureError(f"eps={eps:g} with relative=True is a fraction of the largest: give at most 1")
    tally = RankTally(Draws.on_biases(sigma, n_noise, seed), eps, relative)
    return JacobianRequest("local rank", tally, lambda graph, model, settings: _result(tally, model))


def _result(tally: "RankTally", model: Model) -> LocalRank:
    """The result that a tally adds up to."""
    draws = tally.draws
    means = tally.ranks.mean(axis=2) if tally.layers else np.zeros(tally.ranks.shape[:2])
    noise = {"sigma": draws.sigma, "n_noise": draws.n} if draws.sigma is not None else {"sigma": None}
    value, error, interval = crossed_mean(means) if draws.sigma is not None else mean_with_error(means[:, 0])
    return LocalRank(
        value=value,
        std_error=error,
        interval=interval,
        n=len(means),
        method="exact Jacobians",
        settings={"eps": tally.eps, "relative": tally.relative} | noise,
        provenance=Provenance.of(model, draws.seed if draws.sigma is not None else None, "float64"),
        per_layer=tally.ranks.mean(axis=(0, 1)),
        layers=tally.layers,
        ranks=tally.ranks.mean(axis=1),
    )


def _by_reverse(model: Model, x: Floats, eps: float, relative: bool, show: Meter) -> LocalRank:
    import torch

    from inscape.measures.jacobian.reverse import jacobian, private_copy, weighted_values
    from inscape.measures.jacobian.tallies import rank_of

    scores = private_copy(model.undecided, "local rank")
    ranks, names = [], []
    for i in range(len(x)):
        point = torch.from_numpy(x[i : i + 1]).requires_grad_()
        values = weighted_values(scores, point)
        names = [name for name, _ in values]
        matrices = [jacobian(v.reshape(1, -1), point)[0] for _, v in values]
        ranks.append([int(rank_of(torch.linalg.svdvals(m)[None], eps, relative)) for m in matrices])
        show(i + 1, len(x))
    if not names:
        raise NotApplicableError(f"local rank needs hidden layers, and {model.name} has none")
    table = np.array(ranks, dtype=np.float64)
    value, error, interval = mean_with_error(table.mean(axis=1))
    return LocalRank(
        value=value,
        std_error=error,
        interval=interval,
        n=len(x),
        method="reverse differentiation",
        settings={"eps": eps, "relative": relative, "sigma": None},
        provenance=Provenance.of(model, None, "float64"),
        per_layer=table.mean(axis=0),
        layers=tuple(names),
        ranks=table,
    )
