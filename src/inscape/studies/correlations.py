"""The result of `correlate`: the coefficients, the strata, and in words what one number would hide."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from inscape.studies.correlation import FEWEST, Correlation
from inscape.studies.study import Chart

ACCURACIES = ("train_accuracy", "test_accuracy")
DROP = 0.1
"""A stratum is worth a word if its coefficient is lower than the whole one by more than this."""


@dataclass(frozen=True, kw_only=True)
class Stratum:
    """The correlations where one hyper-parameter has one value."""

    pearson: Correlation
    spearman: Correlation
    kendall: Correlation
    single_runs: Correlation


@dataclass(frozen=True, kw_only=True, eq=False)
class Correlations:
    """How a measure goes with a target, over configurations whose runs are averaged over seeds.

    Attributes:
        pearson, spearman, kendall: the coefficients over configurations, with their intervals.
        single_runs: Pearson's over single runs, its interval clustered by configuration.
        partial: Pearson's of the residuals when each value of a hyper-parameter has its own level; "all": of
            all hyper-parameters, and of the models where several are pooled.
        granulated: for each hyper-parameter the mean Kendall tau when it alone changes.
        strata: hyper-parameter -> value -> the correlations where it has that value.
        models: the same for each model alone, if the frame has several.
        points: the configurations themselves.
        n_gated: runs left out because their training accuracy was below `min_train_accuracy`.
        lowest_train_accuracy: of the runs that were kept.
    """

    measure: str
    target: str
    by: tuple[str, ...]
    pearson: Correlation
    spearman: Correlation
    kendall: Correlation
    single_runs: Correlation
    partial: Mapping[str, Correlation]
    granulated: Mapping[str, float]
    strata: Mapping[str, Mapping[Hashable, Stratum]]
    points: Any
    n_runs: int
    n_configurations: int
    n_resamples: int
    seed: int
    models: Mapping[str, "Correlations"] = field(default_factory=dict)
    n_gated: int = 0
    min_train_accuracy: float | None = None
    lowest_train_accuracy: float | None = None

    @property
    def granulated_mean(self) -> float:
        """The mean of the granulated coefficients over the hyper-parameters."""
        known = [v for v in self.granulated.values() if not math.isnan(v)]
        return float(np.mean(known)) if known else math.nan

    @property
    def hidden(self) -> tuple[str, ...]:
        """What the coefficient over everything does not show, one sentence each."""
        if not self.models:
            return (*self._inside_strata(), *self._weak_orders())
        inside = (f"{name}: {text}" for name, m in self.models.items() for text in m.hidden)
        return (*self._between_models(), *self._weak_orders(), *inside)

    def _between_models(self) -> list[str]:
        inside = [m.pearson.value for m in self.models.values() if not math.isnan(m.pearson.value)]
        if not inside or max(abs(r - self.pearson.value) for r in inside) <= DROP:
            return []
        return [
            f"within a model r is {min(inside):.2f} to {max(inside):.2f}, "
            f"over all {len(self.models)} models together {self.pearson.value:.2f}"
        ]

    def _inside_strata(self) -> list[str]:
        """For each hyper-parameter the value inside which the coefficient falls most, if it falls."""
        found = []
        for name, strata in self.strata.items():
            falls = {value: self._fall(s) for value, s in strata.items() if s.pearson.n >= FEWEST}
            value = max(falls, key=lambda v: falls[v], default=None)
            if value is None or not falls[value] > DROP:
                continue
            s, shown = strata[value], f"{value:g}" if isinstance(value, int | float) else value
            found.append(
                f"inside {name}={shown} alone r = {s.pearson} over {s.pearson.n} configurations, "
                f"{s.single_runs.value:+.2f} over {s.single_runs.n} single runs"
            )
        return found

    def _fall(self, s: Stratum) -> float:
        """How much lower a stratum is than the whole, over configurations or over single runs."""
        falls = (self.pearson.value - s.pearson.value, self.single_runs.value - s.single_runs.value)
        return max((fall for fall in falls if not math.isnan(fall)), default=-math.inf)

    def _weak_orders(self) -> list[str]:
        return [
            f"a change of {name} alone is hardly ordered: granulated Kendall {value:+.2f}"
            for name, value in self.granulated.items()
            if value < 0.5
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        known = {name: None if math.isnan(v) else v for name, v in self.granulated.items()}
        return {
            "schema": 1,
            "measure": self.measure,
            "target": self.target,
            "by": list(self.by),
            "n_runs": self.n_runs,
            "n_configurations": self.n_configurations,
            "averaged_over": "runs of one configuration (seeds)",
            "gate": {
                "min_train_accuracy": self.min_train_accuracy,
                "n_left_out": self.n_gated,
                "lowest_kept": self.lowest_train_accuracy,
            },
            **{kind: getattr(self, kind).to_dict() for kind in _KINDS},
            "partial": {name: c.to_dict() for name, c in self.partial.items()},
            "granulated": known,
            "granulated_mean": None if math.isnan(self.granulated_mean) else self.granulated_mean,
            "strata": {
                name: {
                    str(v): {kind: getattr(s, kind).to_dict() for kind in _KINDS} for v, s in strata.items()
                }
                for name, strata in self.strata.items()
            },
            "models": {name: c.to_dict() for name, c in self.models.items()},
            "hidden": list(self.hidden),
            "bootstrap": {"n_resamples": self.n_resamples, "seed": self.seed, "clusters": "configurations"},
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw the configurations, one marker per model or value of the first hyper-parameter."""
        from inscape.drawing.counts import draw_scatter

        group = "model" if self.models else self.by[0] if self.by else None
        parts = (
            {"configurations": self.points}
            if group is None
            else dict(list(self.points.groupby(group, sort=False)))
        )
        named = {
            name if group in (None, "model") else f"{group}={name}": part for name, part in parts.items()
        }
        return draw_scatter(
            {
                str(name): (part[self.measure].to_numpy(float), part[self.target].to_numpy(float))
                for name, part in named.items()
            },
            xlabel=self.measure.replace("_", " "),
            ylabel=self.target.replace("_", " "),
            title=f"r = {self.pearson} over {self.n_configurations} configurations",
            ax=ax,
        )

    def chart(self, title: str = "", caption: str = "") -> Chart:
        """The same for a report: a point for each configuration, which says what it is."""
        named = [n for n in ("model", *self.by) if n in self.points and self.points[n].nunique() > 1]
        return Chart(
            title=title or f"{self.measure} and {self.target}".replace("_", " "),
            data=self.points,
            x=self.measure,
            y=self.target,
            colour=named[0] if named else None,
            hover=[n for n in ("model", *self.by, *ACCURACIES) if n in self.points],
            caption=caption
            or f"r = {self.pearson} over {self.n_configurations} configurations, each the mean of its runs.",
        )

    def __str__(self) -> str:
        gate = "" if self.min_train_accuracy is None else f", train accuracy >= {self.min_train_accuracy:g}"
        lines = [
            f"{self.measure} and {self.target}: {self.n_configurations} configurations "
            f"(averages of {self.n_runs} runs over seeds{gate}; {self.n_gated} runs left out)"
        ]
        if self.lowest_train_accuracy is not None:
            lines[0] += f", lowest train accuracy {self.lowest_train_accuracy:g}"
        lines += [f"  {kind:<12} {getattr(self, kind)}" for kind in _KINDS]
        lines += [f"  partial ({name} removed) {c}" for name, c in self.partial.items()]
        if self.granulated:
            parts = ", ".join(f"{name} {value:+.2f}" for name, value in self.granulated.items())
            lines += [f"  granulated Kendall {self.granulated_mean:+.2f}: {parts}"]
        lines += [f"  {name:<12} {c.pearson}" for name, c in self.models.items()]
        return "\n".join(lines + [f"  hidden: {text}" for text in self.hidden])

    def __repr__(self) -> str:
        return (
            f"<correlation of {self.measure} and {self.target}: r = {self.pearson} over "
            f"{self.n_configurations} configurations>"
        )


_KINDS = ("pearson", "spearman", "kendall", "single_runs")
