"""Ranking models by region count on common probes, and how sure that ranking is."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy.typing as npt

from inscape.arguments import whole_number
from inscape.errors import MeasureError, ModelError, ProbeError
from inscape.measures.accuracy import warn_at_chance
from inscape.measures.region_count import RegionCount, draw_counter
from inscape.measures.statistics import Z, probability_less
from inscape.models import wrap
from inscape.progress import Meter, meter
from inscape.seeding import RandomState
from inscape.serialising import SCHEMA, check_schema, plain_fields, restored_fields


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranking:
    """Models in the order of their region count, fewest regions first.

    Attributes:
        order: the model names, fewest regions first, what an adaptive count is estimated to have missed
            included; equal ones keep the order in which they were given.
        probabilities: for each neighbouring pair, the probability that its order is right,
            (len(order) - 1,): 0.5 is a coin toss.
        results: the region count of each model, all on the same probes, each by its own method.
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
                    "missed": result.missed,
                    "std_error": result.std_error,
                    "low": result.interval[0],
                    "high": result.interval[1],
                    "p_before_next": self.probabilities[place - 1] if below else None,
                    "method": result.method,
                    "status": result.status,
                }
            )
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back."""
        return {"schema": SCHEMA, "measure": "rank"} | plain_fields(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The ranking that `to_dict` wrote."""
        check_schema(data, "measure", "rank", what="ranking", error=MeasureError)
        ranking: Self = restored_fields(cls, data, what="ranking", error=MeasureError)
        return ranking

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
    precision: str = "float64",
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
) -> Ranking:
    """The models ordered by region count, with the probability that each neighbouring order is right.

    All models are counted on the *same* probes, so that the difference of two models is a paired one
    and its error is usually far smaller than that of either count. With method "auto" each model is counted
    by the best method that fits it: exactly where that is possible, else adaptively. What an adaptive count
    missed, by its own estimate, is added to it for the order, and the error of that estimate, the part of
    `missed_interval` above it over 1.96, enters the probability. Each probability
    (`inscape.measures.statistics.probability_less`) is one look at one neighbouring pair, not corrected
    for having looked at many.

    Args:
        models: name -> anything that `inscape.wrap` takes; at least two.
        x: the data that span the probes.
        dim: as for `inscape.region_count`, like all that is not said here.
        n_probes: at least 2.
        method: "auto", or one that counts every model.
        resolution: see `inscape.region_count`.
        how: likewise.
        span: likewise.
        length: likewise.
        y: the classes of x, for `classes` and to warn of models that predict no better than chance.
        classes: see `inscape.region_count`.
        connectivity: likewise.
        precision: likewise.
        random_state: a seed, a generator, or None.
        progress: True shows a bar on stderr; a function gets (models done, models in all).

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(100, 1))
    >>> waves = {f"sin {k}x": lambda x, k=k: (np.sin(k * x[:, 0]) > 0).astype(int) for k in (9, 3)}
    >>> r = rank(waves, x, random_state=0)
    >>> r.order, round(r.probabilities[0], 3)
    (('sin 3x', 'sin 9x'), 1.0)
    """
    if not isinstance(models, Mapping) or len(models) < 2:
        raise ModelError("ranking needs at least two models (in Python, a dictionary {name: model, ...})")
    wrapped = {str(name): wrap(model) for name, model in models.items()}
    if len(wrapped) < len(models):
        raise ModelError(f"two models have the same name: {', '.join(map(repr, models))}")
    n_probes = whole_number(n_probes, "n_probes", 2, ProbeError)
    counter = draw_counter(
        x,
        dim=dim,
        n_probes=n_probes,
        method=method,
        resolution=resolution,
        how=how,
        span=span,
        length=length,
        y=y,
        classes=classes,
        connectivity=connectivity,
        precision=precision,
        random_state=random_state,
    )
    for model in wrapped.values():
        warn_at_chance(model, x, y)
    results = {}
    with meter(progress, "models") as show:
        show(0, len(wrapped))
        for i, (name, model) in enumerate(wrapped.items(), 1):
            results[name] = counter.count(model, name=name)
            show(i, len(wrapped))
    order = tuple(sorted(results, key=lambda name: results[name].mean + (results[name].missed or 0.0)))
    probabilities = tuple(_probability(results[a], results[b]) for a, b in pairwise(order))
    return Ranking(order=order, probabilities=probabilities, results=results)


def _probability(a: RegionCount, b: RegionCount) -> float:
    """The probability that a has fewer regions than b, what either count missed included."""
    shift = (b.missed or 0.0) - (a.missed or 0.0)
    return probability_less(
        a.counts, b.counts, shift=shift, shift_error=math.hypot(_missed_error(a), _missed_error(b))
    )


def _missed_error(result: RegionCount) -> float:
    """The standard error of what a count missed, 0 where nothing is estimated."""
    if result.missed is None or result.missed_interval is None:
        return 0.0
    return (result.missed_interval[1] - result.missed) / Z
