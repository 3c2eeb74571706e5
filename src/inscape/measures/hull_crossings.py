"""Hull crossings: how many units change sign near a point, on a random cross-polytope around it.

What high and low mean: the count that Humayun et al. 2024 call local complexity: many crossings, many linear
regions within the radius; it tends to fall at the data late in training. When it does not hold: the count
depends on radius, number and draw of directions; units of deeper layers are compared at the corners only, so
a kink that bends inside the hull and misses all corners is not seen; and units that have no influence on the
output count like others. `local_complexity` has none of these, but needs a sigma instead.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from inscape.arguments import positive_number, whole_number
from inscape.arrays import Floats, Ints
from inscape.budget import BUDGET, as_budget, within_budget
from inscape.errors import MeasureError
from inscape.measures.measurement import Measurement, graph_at, mean_with_error
from inscape.models import wrap
from inscape.pictures import Drawn
from inscape.progress import Meter, meter
from inscape.provenance import Provenance
from inscape.seeding import RandomState, as_seed


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class HullCrossings(Measurement, Drawn):
    """The mean number of units that change sign on the hulls.

    Attributes:
        counts: the number for each point, (n,).
        per_layer: the mean of each layer, (L,).
        layers: the names of the layers.
        ball: exactly how many units of the first layer change sign in the ball of the same radius, for each
            point, (n,); every hull lies in its ball, so the first layer's crossings are never more. Empty if
            max-pooling comes before the first layer.
    """

    measure: ClassVar[str] = "hull_crossings"

    counts: Ints
    per_layer: Floats
    layers: tuple[str, ...]
    ball: Ints

    def _draw(self, ax: Any) -> Any:
        """The crossings of each layer."""
        from inscape.drawing.measures import draw_layers

        title = f"crossings within {self.settings['radius']:g}, {self.provenance.model}"
        return draw_layers(self.per_layer, self.layers, ylabel="units that change sign", title=title, ax=ax)


def hull_crossings(
    model: Any,
    x: Any,
    *,
    radius: float,
    n_directions: int,
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
    budget: float | None = BUDGET,
) -> HullCrossings:
    """The mean number of units whose input changes sign among the corners x +- radius v_k of a hull.

    v_1, ..., v_P are random orthonormal directions, drawn anew for every point (Humayun et al. 2024, "Deep
    networks always grok and here is why", sec. 3). The hyperplane of a first-layer unit cuts the hull exactly
    if the signs at its corners differ; for deeper units the corners are what is compared. Cost: 2 P
    evaluations per point, in float64.

    Args:
        model: anything that `inscape.wrap` takes whose structure is piecewise affine.
        x: the points, as for `inscape.sample_probes`.
        radius: the distance of the corners.
        n_directions: P, at most the dimension of the input.
        random_state: a seed, a generator, or None; the seed is recorded.
        progress: None for a bar after two seconds, False for none; a function gets (work done, work in all).
        budget: seconds that it may take as its first second foresees it, else a `BudgetError` says how long
            it would; None for no limit.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    >>> with torch.no_grad():
    ...     _ = net[0].weight.fill_(1.0), net[0].bias.copy_(torch.tensor([0.0, -3.0]))
    >>> hull_crossings(net, [[0.5], [2.5]], radius=1.0, n_directions=1).counts.tolist()
    [1, 1]
    """
    from inscape.measures.jacobian.forward import crossings, in_ball

    radius = positive_number(radius, "radius", MeasureError)
    wrapped, seed, limit = wrap(model), as_seed(random_state), as_budget(budget)
    p = whole_number(n_directions, "n_directions", 1, MeasureError)
    with meter(progress, "hull crossings") as show, graph_at(wrapped, x, "hull crossings") as (graph, points):
        d = points[0].numel()
        if p > d:
            raise MeasureError(
                f"n_directions={p} is more than the {d} dimensions of the input: give at most {d}"
            )
        watch = within_budget(
            show, limit, f"corners of {len(points):,} hulls", "give fewer points or directions"
        )
        names, counts = crossings(graph, points, p, radius, np.random.default_rng(seed), watch)
        total = counts.sum(axis=1)
        value, error, interval = mean_with_error(total)
        return HullCrossings(
            value=value,
            std_error=error,
            interval=interval,
            n=len(total),
            method="signs at corners",
            settings={"radius": radius, "n_directions": p},
            provenance=Provenance.of(wrapped, seed, "float64"),
            counts=total,
            per_layer=counts.mean(axis=0),
            layers=names,
            ball=in_ball(graph, points, radius),
        )
