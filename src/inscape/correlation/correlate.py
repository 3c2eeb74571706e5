"""`correlate`: does a measure correlate with generalisation, and what does the one number hide?

What high and low mean: near +1 or -1: over these configurations the measure and the target rise together, or
one falls as the other rises; near 0: neither. When it does not hold: one hyper-parameter may move both, so
read `granulated`, `strata` and `hidden`; with few configurations the interval is wide; and measure or target
may hardly vary.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from inscape.arrays import Ints
from inscape.correlation.coefficients import (
    FEWEST_CLUSTERS,
    N_RESAMPLES,
    Correlation,
    correlation,
    granulated_kendall,
    partial_correlation,
)
from inscape.correlation.configurations import (
    FAMILIES,
    HYPER_PARAMETERS,
    checked_runs,
    owners,
    separators,
    variation,
    warn_of_mixtures,
)
from inscape.errors import StudyError
from inscape.pictures import Drawn
from inscape.progress import Meter, meter
from inscape.reports.findings import Chart, Finding, judge
from inscape.seeding import RandomState, as_seed
from inscape.serialising import SCHEMA, LeftOut, check_schema, plain, plain_fields, restored_fields

if TYPE_CHECKING:
    import pandas as pd

ACCURACIES = ("train_accuracy", "test_accuracy")
_KINDS = ("pearson", "spearman", "kendall", "single_runs")
STRATUM_LOWER_BY = 0.1
"""A stratum is worth a word if its coefficient is lower than the whole one by more than this."""


@dataclass(frozen=True, kw_only=True)
class Stratum:
    """The correlations where one hyper-parameter has one value.

    Attributes:
        pearson: Pearson's coefficient over configurations.
        spearman: Spearman's.
        kendall: Kendall's.
        single_runs: Pearson's over single runs.

    >>> import inscape, pandas
    >>> runs = {"learning_rate": [0.1, 0.1, 0.01, 0.01], "batch_size": [32, 64, 32, 64]}
    >>> frame = pandas.DataFrame(runs | {"region_count": [2.0, 2.5, 3.0, 4.0], "gap": [0.1, 0.2, 0.3, 0.4]})
    >>> correlation = inscape.correlate(frame, by=["learning_rate", "batch_size"], n_resamples=20)
    >>> sorted(correlation.strata["learning_rate"])
    [0.01, 0.1]
    """

    pearson: Correlation
    spearman: Correlation
    kendall: Correlation
    single_runs: Correlation


@dataclass(frozen=True, kw_only=True, eq=False)
class Correlations(Drawn):
    """How a measure correlates with a target, over configurations whose runs are averaged over seeds.

    Attributes:
        measure: the column of the measure.
        target: the column that it is compared with.
        by: the hyper-parameters of which a configuration consists.
        pearson: Pearson's coefficient over configurations, with its interval.
        spearman: Spearman's.
        kendall: Kendall's.
        single_runs: Pearson's over single runs, its interval clustered by configuration.
        partial: Pearson's of the residuals when each value of a hyper-parameter has its own level; "all": of
            all hyper-parameters, and of the models where several are pooled.
        granulated: for each hyper-parameter the mean Kendall tau when it alone changes.
        strata: hyper-parameter -> value -> the correlations where it has that value.
        models: the same for each model alone, if the frame has several.
        points: the configurations themselves.
        n_runs: how many runs were kept.
        n_configurations: how many configurations they have.
        n_resamples: how often configurations were drawn for the intervals.
        seed: of those draws.
        variation: of measure and target, how much more they vary between configurations than between the
            seeds of one; at 1 or below nothing is there to correlate; None without repeated seeds.
        n_gated: runs left out because their training accuracy was below `min_train_accuracy`.
        min_train_accuracy: that least accuracy; None if no run was left out for it.
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
    points: "pd.DataFrame"
    n_runs: int
    n_configurations: int
    n_resamples: int
    seed: int
    models: Mapping[str, "Correlations"] = field(default_factory=dict)
    variation: Mapping[str, float | None] = field(default_factory=dict)
    n_gated: int = 0
    min_train_accuracy: float | None = None
    lowest_train_accuracy: float | None = None

    @property
    def granulated_mean(self) -> float:
        """The mean of the granulated coefficients over the hyper-parameters."""
        known = [v for v in self.granulated.values() if not math.isnan(v)]
        return float(np.mean(known)) if known else math.nan

    @cached_property
    def hidden(self) -> tuple[str, ...]:
        """What the coefficient over everything does not show, one sentence each."""
        if not self.models:
            return (*self._inside_strata(), *self._weak_orders())
        inside = (f"{name}: {text}" for name, m in self.models.items() for text in m.hidden)
        return (*self._between_models(), *self._weak_orders(), *inside)

    def _between_models(self) -> list[str]:
        inside = [m.pearson.value for m in self.models.values() if not math.isnan(m.pearson.value)]
        if not inside or max(abs(r - self.pearson.value) for r in inside) <= STRATUM_LOWER_BY:
            return []
        return [
            f"within a model r is {min(inside):.2f} to {max(inside):.2f}, "
            f"over all {len(self.models)} models together {self.pearson.value:.2f}"
        ]

    def _inside_strata(self) -> list[str]:
        """For each hyper-parameter the value inside which the coefficient falls most, if it falls."""
        inside = []
        for name, strata in self.strata.items():
            falls = {value: self._fall(s) for value, s in strata.items() if s.pearson.n >= FEWEST_CLUSTERS}
            value = max(falls, key=lambda v: falls[v], default=None)
            if value is None or not falls[value] > STRATUM_LOWER_BY:
                continue
            s, shown = strata[value], f"{value:g}" if isinstance(value, int | float) else value
            inside.append(
                f"inside {name}={shown} alone r = {s.pearson} over {s.pearson.n} configurations, "
                f"{s.single_runs.value:+.2f} over {s.single_runs.n} single runs"
            )
        return inside

    def _fall(self, s: Stratum) -> float:
        """How much lower a stratum is than the whole, over configurations or over single runs."""
        falls = (self.pearson.value - s.pearson.value, self.single_runs.value - s.single_runs.value)
        return max((fall for fall in falls if not math.isnan(fall)), default=-math.inf)

    def _weak_orders(self) -> list[str]:
        return [
            f"a change of {name} alone {'goes the other way' if value <= -0.5 else 'is hardly ordered'}: "
            f"granulated Kendall {value:+.2f}"
            for name, value in self.granulated.items()
            if value < 0.5
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, without the points; `from_dict` reads it back."""
        return {
            "schema": SCHEMA,
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
            "partial": plain(self.partial),
            "granulated": plain(self.granulated),
            "granulated_mean": plain(self.granulated_mean),
            "strata": {
                name: {str(v): plain_fields(s) for v, s in strata.items()}
                for name, strata in self.strata.items()
            },
            "models": plain(self.models),
            "variation": plain(self.variation),
            "hidden": list(self.hidden),
            "bootstrap": {"n_resamples": self.n_resamples, "seed": self.seed, "clusters": "configurations"},
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The correlations that `to_dict` wrote; the points were left out."""
        check_schema(data, what="correlation table", error=StudyError)
        missing = {"gate", "bootstrap", "strata", "models", "hidden"} - data.keys()
        if missing:
            raise StudyError(f"not a whole correlation table: {', '.join(sorted(missing))} missing")
        gate, bootstrap = data["gate"], data["bootstrap"]
        result: Self = restored_fields(
            cls,
            data,
            what="correlation table",
            error=StudyError,
            points=LeftOut("points", StudyError),
            strata={name: _restored_strata(strata) for name, strata in data["strata"].items()},
            models={name: cls.from_dict(c) for name, c in data["models"].items()},
            n_gated=gate["n_left_out"],
            min_train_accuracy=gate["min_train_accuracy"],
            lowest_train_accuracy=gate["lowest_kept"],
            n_resamples=bootstrap["n_resamples"],
            seed=bootstrap["seed"],
        )
        vars(result)["hidden"] = tuple(data["hidden"])
        return result

    def _draw(self, ax: Any) -> Any:
        """The configurations, one marker per model or value of the first hyper-parameter."""
        from inscape.drawing.measures import draw_scatter

        group = "model" if self.models else self.by[0] if self.by else None
        groups: dict[Any, pd.DataFrame] = (
            {"configurations": self.points}
            if group is None
            else dict(list(self.points.groupby(group, sort=False)))
        )
        named = {
            name if group in (None, "model") else f"{group}={name}": rows for name, rows in groups.items()
        }
        return draw_scatter(
            {
                str(name): (rows[self.measure].to_numpy(float), rows[self.target].to_numpy(float))
                for name, rows in named.items()
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
            lines[0] += f", lowest train accuracy {self.lowest_train_accuracy:.3g}"
        lines += [f"  {kind:<12} {getattr(self, kind)}" for kind in _KINDS]
        lines += [f"  partial ({name} removed) {c}" for name, c in self.partial.items()]
        if self.granulated:
            known = {name: value for name, value in self.granulated.items() if not math.isnan(value)}
            values = ", ".join(f"{name} {value:+.2f}" for name, value in known.items())
            lines += [f"  granulated Kendall {self.granulated_mean:+.2f}: {values}"] if known else []
        ratios = ", ".join(f"{name} {r:.2f}" for name, r in self.variation.items() if r is not None)
        if ratios:
            lines += [f"  variation between configurations over that between seeds: {ratios}"]
        lines += [f"  {name:<12} {c.pearson}" for name, c in self.models.items()]
        return "\n".join(lines + [f"  hidden: {text}" for text in self.hidden])

    def __repr__(self) -> str:
        return (
            f"<correlation of {self.measure} and {self.target}: r = {self.pearson} over "
            f"{self.n_configurations} configurations>"
        )


def _restored_strata(strata: Mapping[str, Any]) -> dict[Hashable, Stratum]:
    return {
        _written_value(text): restored_fields(Stratum, s, what="stratum", error=StudyError)
        for text, s in strata.items()
    }


def _written_value(text: str) -> Hashable:
    """The number that a text is, or else the text itself.

    >>> _written_value("32"), _written_value("0.1"), _written_value("adam"), _written_value("1e5")
    (32, 0.1, 'adam', '1e5')
    """
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if str(number) == text:
            return number
    return text


def positive(r: Correlation) -> Finding:
    """Held if the whole interval is above zero, not held if it is below; else it cannot be said.

    >>> positive(Correlation(0.9, (0.8, 0.95), 27)).evidence
    'r = +0.90 [+0.80, +0.95] over 27 configurations'
    >>> positive(Correlation(0.25, (-0.75, 0.86), 12)).verdict
    'cannot be said'
    """
    known = r.interval[0] == r.interval[0]
    return Finding(
        holds=judge(r.interval).holds,
        evidence=f"r = {r} over {r.n} configurations",
        value=float(r.value) if r.value == r.value else None,
        interval=(float(r.interval[0]), float(r.interval[1])) if known else None,
    )


@dataclass(frozen=True)
class _ComparedColumns:
    """Which columns are compared, and how intervals are drawn."""

    measure: str
    target: str
    by: tuple[str, ...]
    n_resamples: int
    seed: int

    def correlation(self, frame: Any, kind: str, clusters: npt.ArrayLike | None = None) -> Correlation:
        return correlation(
            frame[self.measure],
            frame[self.target],
            kind=kind,
            clusters=clusters,
            n_resamples=self.n_resamples,
            random_state=self.seed,
        )


def correlate(
    frame: Any,
    *,
    measure: str = "region_count",
    target: str = "gap",
    by: str | Sequence[str] = HYPER_PARAMETERS,
    min_train_accuracy: float | None = None,
    n_resamples: int = N_RESAMPLES,
    random_state: RandomState = 0,
    progress: bool | Meter | None = None,
) -> Correlations:
    """Every correlation of a measure with the generalisation gap that a sceptic asks for.

    Runs that differ in the seed alone are averaged: the coefficients are over configurations, and say so in
    `.n_configurations` and `.n_runs`; `.single_runs` is Pearson's without averaging. A configuration is a
    value of the column "configuration" if there is one (rows of a study have it), else of "model", "group",
    `by`, and learning rate, batch size and weight decay together; runs without any hyper-parameter are a
    configuration each. Runs of one configuration that differ in a column of words, or in one named like a
    setting of training, draw an `InscapeWarning`. All intervals are 95 % percentile intervals of a bootstrap
    over configurations.

    Args:
        frame: a pandas table with a line per run, or what makes one. "gap" need not be in it if
            "train_accuracy" and "test_accuracy" are: it is their difference.
        measure: the column of the measure.
        target: the column it is compared with.
        by: the hyper-parameters; those that never change are left out. By default learning_rate, batch_size
            and weight_decay, as far as they are in the frame.
        min_train_accuracy: leave out runs below it, in the units of the column "train_accuracy". Such
            correlations are only expected of models that fit their training data.
        n_resamples: resamples of the bootstrap.
        random_state: its seed.
        progress: None for a bar after two seconds, False for none; a function gets
            (tables done, tables): one of all runs, and one of those of each model.

    >>> counts = {0.1: 2.7, 0.01: 3.1, 0.001: 3.6}
    >>> runs = [{"learning_rate": r, "region_count": n, "gap": 9 * n} for r, n in counts.items()]
    >>> correlate(runs).pearson.value
    1.0
    """
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, int | np.integer) or n_resamples < 1:
        raise StudyError(f"n_resamples={n_resamples!r} must be a whole number of at least 1")
    table, names = checked_runs(frame, measure, target, by)
    kept = _gated(table, min_train_accuracy)
    names = tuple(n for n in names if n not in FAMILIES)
    columns = _ComparedColumns(measure, target, names, int(n_resamples), as_seed(random_state))
    warn_of_mixtures(kept, owners(kept, separators(kept, names)), (measure, target))
    several = "model" in kept and kept["model"].nunique() > 1
    groups = list(kept.groupby("model", sort=False)) if several else []
    models: dict[str, Correlations] = {}
    with meter(progress, "correlations") as show:
        show(0, 1 + len(groups))
        result = _correlations(kept, columns)
        for model, runs in groups:
            show(1 + len(models), 1 + len(groups))
            models[str(model)] = _correlations(runs, columns)
        show(1 + len(groups), 1 + len(groups))
    accuracy = kept.get("train_accuracy")
    return replace(
        result,
        models=models,
        n_gated=len(table) - len(kept),
        min_train_accuracy=min_train_accuracy,
        lowest_train_accuracy=None if accuracy is None else float(accuracy.min()),
    )


def _gated(table: Any, minimum: float | None) -> Any:
    if minimum is not None:
        if not isinstance(minimum, int | float | np.number):
            raise StudyError(f"min_train_accuracy={minimum!r} must be a number")
        if "train_accuracy" not in table:
            raise StudyError("min_train_accuracy needs a column 'train_accuracy'")
        table = table[table["train_accuracy"] >= minimum]
    if len(table) == 0:
        raise StudyError("there are no runs to correlate")
    return table


def _correlations(runs: Any, columns: _ComparedColumns) -> Correlations:
    """The correlations of some runs."""
    apart = separators(runs, columns.by)
    columns = replace(columns, by=tuple(n for n in columns.by if n in apart))
    fixed = tuple(n for n in apart if n in FAMILIES)
    held = tuple(n for n in apart if n not in columns.by)
    owner = owners(runs, apart)
    means = _seed_means(runs, owner, columns, held)
    return Correlations(
        measure=columns.measure,
        target=columns.target,
        by=columns.by,
        pearson=columns.correlation(means, "pearson"),
        spearman=columns.correlation(means, "spearman"),
        kendall=columns.correlation(means, "kendall"),
        single_runs=columns.correlation(runs, "pearson", owner),
        partial=_partial(means, columns, fixed),
        granulated=granulated_kendall(means, columns.measure, columns.target, columns.by, held),
        strata={h: _strata(runs, means, owner, columns, h) for h in columns.by},
        points=means,
        variation={name: variation(runs[name], owner) for name in (columns.measure, columns.target)},
        n_runs=len(runs),
        n_configurations=len(means),
        n_resamples=columns.n_resamples,
        seed=columns.seed,
    )


def _seed_means(runs: Any, owner: Ints, columns: _ComparedColumns, held: tuple[str, ...]) -> Any:
    """One line per configuration: its hyper-parameters, and the means of measure and target over its runs.

    Means are rounded to 12 digits: the same three numbers in another order are a tie. Those of the accuracies
    are there to be looked at.
    """
    numbers = runs[[columns.measure, columns.target]].groupby(owner, sort=False).mean()
    for name in numbers:
        numbers[name] = np.round(
            numbers[name], 12 - int(np.ceil(np.log10(np.abs(numbers[name]).max() or 1.0)))
        )
    others = [n for n in ACCURACIES if n in runs and n not in numbers and runs[n].dtype.kind in "iuf"]
    numbers = numbers.join(runs[others].groupby(owner, sort=False).mean())
    names = [n for n in dict.fromkeys(("model", *held, *columns.by)) if n in runs and n not in others]
    return runs[names].groupby(owner, sort=False).first().join(numbers).reset_index(drop=True)


def _strata(
    runs: Any, means: Any, owner: Ints, columns: _ComparedColumns, name: str
) -> dict[Hashable, Stratum]:
    """The correlations with one hyper-parameter held at each of its values."""
    strata: dict[Hashable, Stratum] = {}
    for value in sorted(runs[name].dropna().unique(), key=_rank):
        held, inside = means[means[name] == value], (runs[name] == value).to_numpy()
        strata[value.item() if hasattr(value, "item") else value] = Stratum(
            pearson=columns.correlation(held, "pearson"),
            spearman=columns.correlation(held, "spearman"),
            kendall=columns.correlation(held, "kendall"),
            single_runs=columns.correlation(runs[inside], "pearson", owner[inside]),
        )
    return strata


def _rank(value: Any) -> tuple[bool, Any]:
    """Numbers by size, then words."""
    is_number = isinstance(value, int | float | np.number | np.bool_)
    return not is_number, value if is_number else str(value)


def _partial(means: Any, columns: _ComparedColumns, fixed: tuple[str, ...]) -> dict[str, Correlation]:
    """What is left when the values of one hyper-parameter, or of all, each have their own level."""
    import pandas as pd

    names = [*fixed, *columns.by]
    choices = {name: [name] for name in names} | ({"all": names} if len(names) > 1 else {})
    partial = {}
    for label, controls in choices.items():
        if any(means[name].nunique() == len(means) for name in controls):
            nothing = Correlation(math.nan, (math.nan, math.nan), len(means))  # each level is one point
            partial[label] = nothing
            continue
        dummies = pd.get_dummies(means[controls].astype("string"), drop_first=True, dtype=float)
        partial[label] = partial_correlation(
            means[columns.measure],
            means[columns.target],
            dummies.to_numpy(),
            n_resamples=columns.n_resamples,
            random_state=columns.seed,
        )
    return partial
