"""`measure`: several measures of one model as one tidy table."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from inscape.arguments import in_new_spelling
from inscape.budget import BUDGET, as_budget, within_budget
from inscape.errors import MeasureError, NotApplicableError, unknown_name, warn
from inscape.measures import own
from inscape.measures.accuracy import chance_note, correct
from inscape.measures.hull_crossings import hull_crossings
from inscape.measures.local_complexity import REMEDY, complexity_request, local_complexity
from inscape.measures.local_rank import local_rank, rank_request
from inscape.measures.margin import margin
from inscape.measures.measurement import Measurement, as_targets, mean_with_error, measuring, wilson
from inscape.measures.parameters.distance import parameter_distance
from inscape.measures.parameters.norms import path_norm, spectral_norm
from inscape.measures.region_count import region_count
from inscape.measures.robustness import adversarial_accuracy
from inscape.measures.sharpness import sharpness
from inscape.measures.total_variation import total_variation, variation_request
from inscape.measures.unlabelled import agreement, confidence, nuclear_norm, prediction_entropy
from inscape.models import Model, wrap
from inscape.parallel import working
from inscape.pictures import Shown
from inscape.probes.source import PointSource, for_model
from inscape.progress import Meter, meter
from inscape.provenance import Provenance
from inscape.seeding import RandomState, as_seed
from inscape.serialising import SCHEMA, check_schema, plain, plain_fields, restored_fields
from inscape.status import COMPLETE, Status
from inscape.text_table import Columns, TableRow, notes_below, text_table

if TYPE_CHECKING:
    import pandas as pd

Measure = str | Callable[..., Any]
Settings = Mapping[str, Any] | Callable[..., Any]
Measures = Measure | Sequence[Measure] | Mapping[str, Settings]
COLUMNS: Columns = {
    "measure": ("measure", ""),
    "value": ("value", ".4g"),
    "std_error": ("+-", ".2g"),
    "low": ("95 % low", ".4g"),
    "high": ("high", ".4g"),
    "n": ("n", "d"),
    "method": ("method", ""),
    "status": ("status", ""),
}
"""The table as text; a column that no row has a value of is left out."""


class Doing(NamedTuple):
    """What all measures of a table have in common: how they are computed, not what."""

    seed: int
    progress: bool | Meter | None = None
    budget: float | None = None

    def arguments_of(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Those that a function takes."""
        common = {"random_state": self.seed, "progress": self.progress, "budget": self.budget}
        return {k: v for k, v in common.items() if k in signature(function).parameters}


@dataclass(frozen=True, eq=False)
class MeasureTable(Shown):
    """One row per measure: measure, value, std_error, low, high, n, method, status, note, settings, seconds.

    The status is its short kind, "complete" or another; what else to know is in the note. A measure that does
    not apply to the model is a row whose value is None and whose note says why. `print` shows the table, the
    notes and the settings.

    Attributes:
        model: what the model is called.
        rows: a dictionary for each measure, with the keys above.
        provenance: model, precision, seed, version.
    """

    model: str
    rows: tuple[TableRow, ...]
    provenance: Provenance

    def to_frame(self) -> "pd.DataFrame":
        """A pandas table."""
        import pandas as pd

        return pd.DataFrame(list(self.rows))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back."""
        return {"schema": SCHEMA} | plain_fields(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The table that `to_dict` wrote."""
        check_schema(data, what="table of measures", error=MeasureError)
        table: Self = restored_fields(cls, data, what="table of measures", error=MeasureError)
        return table

    def to_text(self, *, width: int | None = None) -> str:
        """The table, the notes on its rows, and the settings of each; in lines of `width`, none is cut."""
        paragraphs = [text_table(self.rows, COLUMNS, width=width), self.notes_and_settings(width=width)]
        return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)

    def notes_and_settings(self, *, width: int | None = None) -> str:
        """The notes on the rows, and the settings of each."""
        notes = [(row["measure"], row["note"]) for row in self.rows]
        used = [(row["measure"], _as_words(row["settings"])) for row in self.rows]
        paragraphs = [
            notes_below(notes, width=width),
            notes_below([(f"settings of {name}", text) for name, text in used], width=width),
        ]
        return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)

    def _shown_frame(self) -> "pd.DataFrame":
        import pandas as pd

        return pd.DataFrame(
            [
                {heading: row[key] for key, (heading, _) in COLUMNS.items()}
                | {"note": row["note"], "settings": _as_words(row["settings"])}
                for row in self.rows
            ]
        )

    def __str__(self) -> str:
        return self.to_text()

    def __getitem__(self, measure: str) -> TableRow:
        for row in self.rows:
            if row["measure"] == measure:
                return row
        raise KeyError(measure)

    def __repr__(self) -> str:
        words = [
            f"{r['measure']} {r['value']:.4g}" if r["value"] is not None else r["measure"] for r in self.rows
        ]
        return f"<measures of {self.model}: {', '.join(words)}>"


def measure(
    model: Any,
    x: Any,
    y: npt.ArrayLike | None = None,
    *,
    measures: Measures | None = None,
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
    budget: float | None = BUDGET,
    n_jobs: int | None = None,
) -> MeasureTable:
    """A tidy table of measures of one model.

    Measures that need the same work share it: local complexity, local rank and total variation come from one
    pass over the Jacobians. A measure that does not apply to the model is a row with the reason.

    Args:
        model: anything that `inscape.wrap` takes.
        x: data, as for `inscape.sample_probes`.
        y: the classes of x, if x does not carry them; or targets (n, c), for a sharpness of another loss.
        measures: names ("region_count", "accuracy", "local_complexity", "local_rank", "total_variation",
            "hull_crossings", "sharpness", "margin", "parameter_distance", "spectral_norm", "path_norm",
            "adversarial_accuracy", "confidence", "prediction_entropy", "nuclear_norm", "agreement", and
            those of installed packages), functions of your own (see
            `inscape.measures.own`), or name -> settings of that measure, or a function; by default the region
            count, and the accuracy if classes are known. Settings that a function requires have the
            defaults of `DEFAULTS` here; the row says which were used.
        random_state: a seed, a generator, or None; every measure starts from the same seed.
        progress: as for `inscape.region_count`.
        budget: seconds that sharpness, and the measures of Jacobians, may each be foreseen to take; None for
            no limit.
        n_jobs: threads, as for `inscape.region_count`.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(50, 2))
    >>> sign = lambda x: (x[:, 0] > 0).astype(int)
    >>> table = measure(sign, x, sign(x), measures={"region_count": {"n_probes": 20}, "accuracy": {}})
    >>> [(row["measure"], row["n"]) for row in table.rows]
    [('region_count', 20), ('accuracy', 50)]
    >>> def positive_share(model, x):
    ...     return model.labels(x)  # one number per point
    >>> round(measure(sign, x, measures=[positive_share])["positive_share"]["value"], 2)
    0.5
    """
    with working(n_jobs):
        table = table_of(
            model, x, y, measures=measures, random_state=random_state, progress=progress, budget=budget
        )
    for row in table.rows:
        if row["measure"] == "accuracy" and row["status"] == COMPLETE and row["note"]:
            warn(row["note"])
    return table


def table_of(
    model: Any,
    x: Any,
    y: npt.ArrayLike | None = None,
    *,
    measures: Measures | None = None,
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
    budget: float | None = None,
) -> MeasureTable:
    """The table of `measure`, without its warning of an accuracy at chance, where training has only begun."""
    wrapped, seed = wrap(model), as_seed(random_state)
    source = as_targets(for_model(wrapped, x), y)
    if measures is None:
        measures = ("region_count", "accuracy") if source.has_labels else ("region_count",)
    settings = checked_settings(measures)
    if not settings:
        raise MeasureError(
            f"measures={measures!r} names none: leave it out, or name one such as 'region_count'"
        )
    with measuring(wrapped):
        how = Doing(seed, progress, budget)
        rows = _jacobian_rows(wrapped, source, how, settings)
        for name, options in settings.items():
            if name not in rows:
                start = time.perf_counter()
                row = _measured(name, options)(wrapped, source, how)
                rows[name] = {"measure": name, **row, "seconds": time.perf_counter() - start}
        provenance = Provenance.of(wrapped, seed)
    return MeasureTable(wrapped.name, tuple(rows[name] for name in settings), provenance)


def checked_settings(measures: Measures) -> dict[str, Settings]:
    """Name -> settings of each measure, with `DEFAULTS`, or its function where that is the user's own.

    An error for names and settings that are not known.
    """
    return {name: _checked(name, settings) for name, settings in _requested(measures).items()}


def _requested(measures: Measures) -> dict[str, Settings]:
    """Name -> settings or function of each measure that is asked for."""
    if isinstance(measures, Mapping):
        return dict(measures)
    requested: dict[str, Settings] = {}
    for each in (measures,) if isinstance(measures, str) or callable(measures) else measures:
        name = own.name_of(each) if callable(each) else each
        if callable(each) and name in requested:
            raise MeasureError(
                f"two measures are called {name}: name them, as in measures={{name: function}}"
            )
        is_ours = callable(each) and name in MEASURES and str(each.__module__).startswith("inscape.")
        requested[name] = each if callable(each) and not is_ours else {}
    return requested


def _checked(name: str, settings: Settings) -> Settings:
    if callable(settings):
        if name in MEASURES:
            raise MeasureError(f"{name} is a measure of inscape: call your own {settings!r} otherwise")
        if missing := own.lacking(settings, ()):
            remedy = f"measures={{{name!r}: functools.partial(..., {missing}=...)}}"
            raise MeasureError(f"{name} needs the setting {missing}", remedy=remedy)
        return settings
    if name not in MEASURES and name not in own.installed():
        raise MeasureError(unknown_name("measure", name, {**MEASURES, **own.installed()}))
    if not isinstance(settings, Mapping):
        raise MeasureError(f"the settings of {name} are {settings!r}: give a dictionary, such as {{}}")
    settings = in_new_spelling(FUNCTIONS[name], settings) if name in FUNCTIONS else settings
    known = OPTIONS[name] if name in OPTIONS else own.settings_of(own.load(name))
    for option in settings:
        if option not in known:
            raise MeasureError(unknown_name(f"setting of {name}", option, known))
    settings = DEFAULTS.get(name, {}) | dict(settings)
    if name not in MEASURES and (missing := own.lacking(own.load(name), settings)):
        remedy = f"give it in Python, measures={{{name!r}: {{{missing!r}: ...}}}}"
        raise MeasureError(f"{name} needs the setting {missing}", remedy=remedy)
    return settings


def _measured(name: str, settings: Settings) -> Callable[..., TableRow]:
    """The function from model, source and how it is done to the row of a measure."""
    if callable(settings):
        return partial(_own_row, name, settings)
    return partial(
        MEASURES[name] if name in MEASURES else partial(_own_row, name, own.load(name)), **settings
    )


def _own_row(
    name: str, function: Callable[..., Any], model: Model, source: PointSource, how: Doing, /, **settings: Any
) -> TableRow:
    applied = partial(own.apply, name, function, model, source, how.seed, how.progress)
    return _row_of(_applied(applied, **settings))


def _as_words(settings: Mapping[str, Any]) -> str:
    """Settings on a line, without those that are not set.

    >>> _as_words({"dim": 1, "how": "pairs", "span": [0.0, 1.0], "length": None, "sigma": 0.1})
    'dim 1, how pairs, span 0 to 1, sigma 0.1'
    """
    return ", ".join(f"{name} {_as_word(value)}" for name, value in settings.items() if value is not None)


def _as_word(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " to ".join(map(_as_word, value)) if len(value) == 2 else ",".join(map(_as_word, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _jacobian_rows(
    model: Model, source: PointSource, how: Doing, settings: dict[str, Any]
) -> dict[str, TableRow]:
    """The rows of the measures that come from Jacobians; each bears an equal share of its pass's time."""
    rows = {}
    for group in _shared_passes(settings):
        start = time.perf_counter()
        wanted = {name: settings[name] for name in group}
        results = jacobian_measures(model, source, wanted, how)
        seconds = (time.perf_counter() - start) / len(group)
        for name, result in results.items():
            rows[name] = {"measure": name, **_row_of(result), "seconds": seconds}
    return rows


def _shared_passes(settings: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """The names of Jacobian measures in groups that one pass serves.

    Everything that needs Jacobians goes together, unless local complexity asks for single precision or random
    directions, which are not good enough for a rank. Total variation alone needs no pass.
    """
    names = [name for name in REQUESTS if name in settings]
    complexity = settings.get("local_complexity", {})
    is_random = complexity.get("n_directions", "auto") not in (None, "auto")
    if (is_random or complexity.get("precision", "float64") != "float64") and "local_rank" in names:
        return [["local_complexity"], [name for name in names if name != "local_complexity"]]
    if is_random:
        return [[name] for name in names]
    return [names] if names else []


def jacobian_measures(
    model: Model,
    source: PointSource,
    settings: Mapping[str, Mapping[str, Any]],
    how: Doing,
) -> dict[str, Measurement | NotApplicableError]:
    """Local complexity, local rank and total variation from one pass, each as its own function returns it.

    `settings` names them; what is not given has the default of the measure's function.
    """
    if len(settings) > 1:
        from inscape.measures.jacobian.passes import measured

        every = {name: _defaults(name) | dict(options) for name, options in settings.items()}
        requests = [REQUESTS[name](**options, seed=how.seed) for name, options in every.items()]
        limit = as_budget(how.budget)
        try:
            with meter(how.progress, "Jacobians") as show:
                watch = within_budget(show, limit, " and ".join(settings), REMEDY)
                return dict(zip(settings, measured(model, source, requests, watch), strict=True))
        except NotApplicableError:
            pass  # each function has a way of its own, or says why not
    return {
        name: _applied(FUNCTIONS[name], model, source, **how.arguments_of(FUNCTIONS[name]), **options)
        for name, options in settings.items()
    }


def _defaults(name: str) -> dict[str, Any]:
    """The settings of a measure's function that have a default, and the defaults."""
    parameters = signature(FUNCTIONS[name]).parameters
    return {k: parameters[k].default for k in OPTIONS[name] if parameters[k].default is not Parameter.empty}


def _applied(function: Any, *args: Any, **options: Any) -> Any:
    """What the function returns, or the error that says why it does not apply."""
    try:
        return function(*args, **options)
    except NotApplicableError as error:
        return error


def _region_count(model: Model, source: PointSource, how: Doing, /, **options: Any) -> TableRow:
    result = region_count(model, source, **how.arguments_of(region_count), **options)
    off = result.classes_off_data
    settings = {"seed": how.seed, "n_evaluations": result.n_evaluations, "reason": result.reason}
    row, note = _row_of(result), _off_data_note(model, off or ())
    return row | {
        "note": "; ".join(text for text in (row["note"], note) if text),
        "settings": result.to_dict()["settings"] | settings,
    }


def _off_data_note(model: Model, labels: tuple[int, ...]) -> str:
    names = ", ".join(map(model.class_name, labels))
    return f"classes {names} are predicted on the probes but at none of their data points" if names else ""


def _accuracy(model: Model, source: PointSource, how: Doing) -> TableRow:
    x, y = source.everything()
    if y is None:
        return _row((None,) * 4, status=NOT_APPLICABLE, note="needs y, the true classes")
    right = correct(model, x, y, progress=how.progress)
    mean, error, _ = mean_with_error(right.astype(np.float64))
    return _row(
        (mean, error, *wilson(int(right.sum()), len(right))),
        n=len(y),
        method="count",
        status=COMPLETE,
        note=chance_note(model, right, x, y),
    )


def _plain_measure(function: Callable[..., Measurement]) -> Callable[..., TableRow]:
    """The row of a measure that shares no work."""
    takes_points = "x" in signature(function).parameters

    def row(model: Model, source: PointSource, how: Doing, /, **options: Any) -> TableRow:
        positional = (model, source) if takes_points else (model,)
        return _row_of(_applied(function, *positional, **how.arguments_of(function), **options))

    return row


def _distance(model: Model, initial_state: Any = None) -> Measurement:
    if initial_state is None:
        raise NotApplicableError("needs the setting initial_state, the state_dict() before training")
    return parameter_distance(model, initial_state)


def _agreement(model: Model, x: Any, others: Any = None, progress: bool | Meter | None = None) -> Measurement:
    if others is None:
        raise NotApplicableError("needs the setting others, models to agree with")
    return agreement(model, x, others=others, progress=progress)


def _row_of(result: Measurement | NotApplicableError) -> TableRow:
    if isinstance(result, NotApplicableError):
        return _row((None,) * 4, status=NOT_APPLICABLE, note=str(result))
    layers = getattr(result, "per_layer", ())
    note = f"by layer: {', '.join(f'{v:.4g}' for v in layers)}" if len(layers) else ""
    return _row(
        (result.value, result.std_error, *result.interval),
        n=result.n,
        method=result.method,
        status=result.status,
        note=note,
        settings=plain(result.settings) | {"seed": result.provenance.seed},
    )


def _row(
    numbers: tuple[float | None, ...],
    *,
    n: int = 0,
    method: str = "",
    status: str,
    note: str = "",
    settings: TableRow | None = None,
) -> TableRow:
    names = ("value", "std_error", "low", "high")
    known = {k: None if v is None or np.isnan(v) else float(v) for k, v in zip(names, numbers, strict=True)}
    kind, detail = (status.kind, status.detail) if isinstance(status, Status) else (status, "")
    note = "; ".join(text for text in (detail, note) if text)
    return known | {"n": n, "method": method, "status": kind, "note": note, "settings": settings or {}}


NOT_APPLICABLE = "not applicable"
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "region_count": region_count,
    "local_complexity": local_complexity,
    "local_rank": local_rank,
    "total_variation": total_variation,
    "hull_crossings": hull_crossings,
    "sharpness": sharpness,
    "margin": margin,
    "parameter_distance": _distance,
    "spectral_norm": spectral_norm,
    "path_norm": path_norm,
    "adversarial_accuracy": adversarial_accuracy,
    "confidence": confidence,
    "prediction_entropy": prediction_entropy,
    "nuclear_norm": nuclear_norm,
    "agreement": _agreement,
}
MEASURES: dict[str, Callable[..., TableRow]] = {
    **{name: _plain_measure(function) for name, function in FUNCTIONS.items()},
    "region_count": _region_count,
    "accuracy": _accuracy,
}
REQUESTS: dict[str, Callable[..., Any]] = {
    "local_complexity": complexity_request,
    "local_rank": rank_request,
    "total_variation": variation_request,
}
"""What the measures that come from Jacobians ask of a pass."""
OPTIONS: dict[str, set[str]] = {
    "accuracy": set(),
    **{name: {*signature(function).parameters} - own.NO_SETTINGS for name, function in FUNCTIONS.items()},
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "local_complexity": {"sigma": 0.1},
    "local_rank": {"eps": 1e-3},
    "hull_crossings": {"radius": 0.1, "n_directions": 1},
    "adversarial_accuracy": {"eps": 0.03, "steps": 10, "step_size": 0.0075},
}
"""Settings that a measure's function requires, as `measure` sets them unless told otherwise."""
