"""Ranking models by region count on common probes, and how sure that ranking is."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.errors import ModelError, ProbeError
from inscape.measures.region_count import RegionCount, count_on
from inscape.models import wrap
from inscape.partition.decision import check_method
from inscape.probes import sample_probes
from inscape.progress import Meter, meter
from inscape.seeding import RandomState, as_seed


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranking:
    """Models in the order of their region count, fewest regions first.

    Attributes:
        order: the model names, fewest regions first; equal counts keep the order in which they were given.
        probabilities: for each neighbouring pair, the probability that its order is right,
            (len(order) - 1,): 0.5 is a coin toss.
        results: the region count of each model, all on the same probes.
    """

    order: tuple[str, ...]
    probabilities: tuple[float, ...]
    results: dict[str, RegionCount]

    def to_frame(self) -> Any:
        """A pandas table, one row per model."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """The table as plain rows; the last model has no next one."""
        rows = []
        for place, name in enumerate(self.order, 1):
            result = self.results[name]
            below = place < len(self.order)
            rows.append(
                {
                    "rank": place,
                    "model": name,
                    "region_count": result.mean,
                    "std_error": result.std_error,
                    "low": result.interval[0],
                    "high": result.interval[1],
                    "p_before_next": self.probabilities[place - 1] if below else None,
                    "status": result.status,
                }
            )
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "schema": 1,
            "measure": "rank",
            "order": list(self.order),
            "probabilities": list(self.probabilities),
            "results": {name: self.results[name].to_dict() for name in self.order},
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw each model's mean and interval, in order; returns the matplotlib Axes."""
        from inscape.drawing.counts import draw_ranking

        means = [self.results[name].mean for name in self.order]
        intervals = [self.results[name].interval for name in self.order]
        return draw_ranking(list(self.order), means, intervals, list(self.probabilities), ax=ax)

    def __repr__(self) -> str:
        return f"<ranking of {len(self.order)} models by region count: {' < '.join(self.order)}>"


def rank(
    models: Mapping[str, Any],
    x: Any,
    *,
    dim: int = 1,
    n_probes: int = 100,
    method: str = "auto",
    resolution: int | None = None,
    how: str = "pairs",
    span: tuple[float, float] = (0.0, 1.0),
    length: float | None = None,
    y: npt.ArrayLike | None = None,
    classes: str = "any",
    connectivity: str = "face",
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
) -> Ranking:
    """The models ordered by region count, with the probability that each neighbouring order is right.

    All models are counted on the *same* probes, so that the difference of two models is a paired one
    and its error is usually far smaller than that of either count. With differences d_i over probes, the
    probability that the mean difference is positive is T(mean(d) / se(d)), T Student's
    distribution function with n - 1 degrees of freedom: one look at one neighbouring pair, not
    corrected for having looked at many.

    Args:
        models: name -> anything that `inscape.wrap` takes; at least two.
        x: the data that span the probes.
        dim: as for `inscape.region_count`, like all that follow.
        n_probes: at least 2.
        method: how to count.
        resolution: grid points per axis.
        how: "pairs" or "direction".
        span: for segments, the interval of t.
        length: for "direction".
        y: classes of x.
        classes: "any", "same" or "different".
        connectivity: "face" or "full".
        random_state: a seed, a generator, or None.
        progress: True shows a bar on stderr; a function gets (models done, models in all).

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(100, 1))
    >>> waves = {f"sin {k}x": lambda x, k=k: (np.sin(k * x[:, 0]) > 0).astype(int) for k in (9, 3)}
    >>> r = rank(waves, x, random_state=0)
    >>> r.order, round(r.probabilities[0], 3)
    (('sin 3x', 'sin 9x'), 1.0)
    """
    check_method(method)
    if not isinstance(models, Mapping) or len(models) < 2:
        raise ModelError("rank needs at least two models: give a dictionary {name: model, ...}")
    if n_probes < 2:
        raise ProbeError(f"n_probes={n_probes} is too small: comparing models needs at least 2 probes")
    seed = as_seed(random_state)
    wrapped = {str(name): wrap(model) for name, model in models.items()}
    probes = sample_probes(
        x, dim=dim, n=n_probes, how=how, span=span, length=length, y=y, classes=classes, random_state=seed
    )
    settings = {"how": how, "span": tuple(span), "length": length, "classes": classes}
    results = {}
    with meter(progress, "models") as show:
        show(0, len(wrapped))
        for i, (name, model) in enumerate(wrapped.items(), 1):
            results[name] = count_on(
                model, probes, resolution=resolution, connectivity=connectivity, seed=seed, settings=settings
            )
            show(i, len(wrapped))
    order = tuple(sorted(results, key=lambda name: results[name].mean))
    probabilities = tuple(probability_less(results[a].counts, results[b].counts) for a, b in pairwise(order))
    return Ranking(order=order, probabilities=probabilities, results=results)


def probability_less(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> float:
    """The probability that the mean of `a` is below that of `b`, from paired samples.

    >>> probability_less(np.array([1, 2, 3, 4]), np.array([1, 2, 3, 4]))
    0.5
    """
    from scipy.special import stdtr

    d = (b - a).astype(np.float64)
    error = float(np.std(d, ddof=1)) / math.sqrt(len(d))
    if error == 0:
        return 0.5 if d[0] == 0 else float(d[0] > 0)
    return float(stdtr(len(d) - 1, np.mean(d) / error))
