"""Measuring while training: fixed points, a schedule, a table that grows."""

import copy
import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.arguments import whole_number
from inscape.arrays import Array
from inscape.compare.pair_agreement import NAME, churn_of
from inscape.errors import MeasureError
from inscape.measures.measure import NOT_APPLICABLE, Measures, Settings, checked_settings, table_of
from inscape.measures.measurement import TargetSource, as_targets, measuring
from inscape.models import Model, wrap
from inscape.pictures import Drawn, finished
from inscape.probes.source import PointSource
from inscape.seeding import RandomState, as_generator, as_seed, random_state_kept

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from inscape.pictures import DrawnAxes

CHEAP: dict[str, dict[str, Any]] = {
    "local_complexity": {"sigma": 0.1, "n_noise": 2, "precision": "float32", "n_points": 10},
    "total_variation": {"sigma": 0.1, "n_noise": 2, "n_points": 10},
}
"""What is measured unless told otherwise: little enough to measure every hundred steps."""
STEPS_PER_DECADE = 10
"""Of logarithmic times, which are about equally far apart."""


class Monitor(Drawn):
    """Measures of a network in training, at the same points and with the same noise each time.

    The network, its gradients, its mode and all random states are left as they are: the weights after
    training are bit for bit those without a monitor.

    Args:
        x: data, as for `inscape.sample_probes`; `n_points` of them are drawn once.
        y: their classes, if x does not carry them.
        measures: as for `inscape.measure`, functions of your own too, with the settings and defaults there; a
            further setting "n_points" measures at the first few of the drawn points only. By default `CHEAP`:
            local complexity and total variation, both of the same two noisy networks at 10 points; and
            accuracy and margin if classes are known. One measure more than there: "churn", the share of
            `n_probes` (20) segments between the points on which the label is not that of the step measured
            before, and as "churn_first" not that of the first.
        every: a number of steps; "log" for about ten steps per power of ten, ..., 10, 13, 16, 20, ...; or a
            function of the step that says whether to measure.
        n_points: how many points are drawn; None for all.
        also: a function of the wrapped model that gives further columns, {name: number}.
        log_fn: called with ({name: value}, step) after each measurement; fits `wandb.log`,
            `mlflow.log_metrics`, or a loop over `SummaryWriter.add_scalar`.
        keep_models: whether to keep a copy of the model at each measured step, in `models`, by which
            `inscape.explore(monitor, x)` shows a slider over training.
        random_state: of the points and of all measures.

    >>> import torch
    >>> x, net = torch.randn(50, 2), torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU())
    >>> monitor = Monitor(x, measures=["total_variation"], every=10)
    >>> for step in range(31):
    ...     _ = monitor.step(net, step)
    >>> monitor.to_frame()["step"].tolist()
    [0, 10, 20, 30]
    """

    def __init__(
        self,
        x: Any,
        y: npt.ArrayLike | None = None,
        *,
        measures: Measures | None = None,
        every: int | str | Callable[[int], bool] = 100,
        n_points: int | None = 128,
        also: Callable[[Model], Mapping[str, float]] | None = None,
        log_fn: Callable[[dict[str, float], int], Any] | None = None,
        keep_models: bool = False,
        random_state: RandomState = 0,
    ) -> None:
        source = as_targets(x, y)
        self.seed = as_seed(random_state)
        self.x, self.y = _chosen(source, n_points, self.seed)
        if measures is None:
            labelled = ("accuracy", "margin") if source.has_labels else ()
            measures = CHEAP | {name: {} for name in labelled}
        measures, churn = _without_churn(measures)
        self.churn = None if churn is None else churn_of(self.x, churn, self.seed)
        self.measures, self._n_points = _checked(measures)
        self.settings: dict[str, dict[str, Any]] = {}
        self.also, self.log_fn = also, log_fn
        self.rows: list[dict[str, Any]] = []
        self.models: dict[int, Any] = {}
        self._keeps_models = keep_models
        self.notes: dict[str, str] = {}
        self._due = _schedule(every)

    def due(self, step: int) -> bool:
        """Whether the schedule asks for a measurement at a step."""
        return self._due(step)

    def step(self, model: Any, step: int) -> dict[str, Any] | None:
        """Measure the model if the schedule says so; the new row, or None."""
        step = whole_number(step, "step", 0, MeasureError)
        return self.record(model, step) if self.due(step) else None

    def record(self, model: Any, step: int) -> dict[str, Any]:
        """Measure the model now; the new row: step, seconds, and value and error of each measure."""
        step = whole_number(step, "step", 0, MeasureError)
        start = time.perf_counter()
        wrapped = wrap(model)
        with random_state_kept():
            entries = self._entries(wrapped)
            with measuring(wrapped):
                further: dict[str, Any] = {} if self.churn is None else self.churn.row(wrapped)
                further |= {} if self.also is None else dict(self.also(wrapped))
        row: dict[str, Any] = {"step": step, "seconds": 0.0}
        for entry in entries:
            name = entry["measure"]
            row[name], row[_error_of(name)] = entry["value"], entry["std_error"]
            n_points = min(self._n_points.get(name, len(self.x)), len(self.x))
            self.settings[name] = entry["settings"] | {"n_points": n_points}
            if entry["status"] == NOT_APPLICABLE:
                self.notes[name] = entry["note"]
        row |= further
        if self.churn is not None:
            self.settings[NAME] = dict(self.churn.settings)
        row["seconds"] = time.perf_counter() - start
        self.rows.append(row)
        if self._keeps_models:
            self.models[step] = copy.deepcopy(model)
        if self.log_fn is not None:
            self.log_fn({name: row[name] for name in self.names() if row.get(name) is not None}, step)
        return row

    def _entries(self, model: Model) -> list[dict[str, Any]]:
        """The rows of all measures; those on the same points are asked for together, to share work."""
        entries: dict[str, dict[str, Any]] = {}
        with measuring(model):
            for n in {self._n_points.get(name) for name in self.measures}:
                group = {name: s for name, s in self.measures.items() if self._n_points.get(name) == n}
                y = None if self.y is None else self.y[:n]
                table = table_of(model, self.x[:n], y, measures=group, random_state=self.seed)
                entries |= {entry["measure"]: entry for entry in table.rows}
        return [entries[name] for name in self.measures]

    def to_frame(self) -> "pd.DataFrame":
        """A pandas table, one row per measured step; `attrs["settings"]` has the settings of each measure."""
        import pandas as pd

        frame = pd.DataFrame(self.rows)
        frame.attrs["settings"] = copy.deepcopy(self.settings)
        return frame

    def plot(self, ax: "Axes | None" = None, *, title: str | None = None, legend: bool = True) -> "DrawnAxes":
        """Draw all curves over log-steps: one panel each or, given Axes, all in them; returns the Axes.

        Curves have no classes: `class_names`, `colours` and `points` are for pictures of regions.

        Args:
            ax: where to draw; new Axes if None.
            title: the title; None for none.
            legend: whether given Axes get a legend.
        """
        from inscape.drawing.measures import draw_curves

        curves = {}
        for name in self.names():
            known = [(r["step"], r[name]) for r in self.rows if r.get(name) is not None]
            if known:
                steps, values = np.array(known, dtype=np.float64).T
                curves[name.replace("_", " ")] = (steps, values)
        drawn = draw_curves(curves, xlabel="step", ax=ax)
        if ax is None:
            drawn.figure.suptitle(title or "")
            return finished(drawn, None)
        return finished(drawn, title, legend)

    def names(self) -> list[str]:
        """What is followed, in the order of columns: no steps or seconds, no errors of measures."""
        aside = {"step", "seconds", *map(_error_of, self.measures)}
        return [n for n in dict.fromkeys(name for row in self.rows for name in row) if n not in aside]

    def __repr__(self) -> str:
        names = ", ".join(self.names()) or "nothing yet"
        return f"<monitor of {len(self.x)} points, {len(self.rows)} steps: {names}>"


def _error_of(measure: str) -> str:
    """The column of a measure's standard error."""
    return f"{measure}_error"


def _without_churn(measures: Measures) -> tuple[Measures, dict[str, Any] | None]:
    """The measures without churn, which a single step has not; its settings, None if it is not wanted."""
    if isinstance(measures, Mapping):
        rest = {name: settings for name, settings in measures.items() if name != NAME}
        settings = measures.get(NAME)
        return rest, None if NAME not in measures else dict(settings or {})  # type: ignore[arg-type]
    names = [measures] if isinstance(measures, str) or callable(measures) else list(measures)
    return [name for name in names if name != NAME], {} if NAME in names else None


def _checked(measures: Measures) -> tuple[dict[str, Settings], dict[str, int]]:
    """Name -> settings or function of each measure, all known; and name -> "n_points" where that is given."""
    if not isinstance(measures, Mapping):
        return checked_settings(measures), {}
    n_points: dict[str, int] = {}
    rest: dict[str, Settings] = {}
    for name, settings in measures.items():
        rest[name] = settings
        if isinstance(settings, Mapping) and "n_points" in settings:
            rest[name] = {k: v for k, v in settings.items() if k != "n_points"}
            if (n := settings["n_points"]) is not None:
                n_points[name] = whole_number(n, "n_points", 1, MeasureError, ", or leave it out")
    return checked_settings(rest), n_points


def _chosen(source: PointSource, n_points: int | None, seed: int) -> tuple[Array, Array | None]:
    """The points that are drawn, in random order, and their classes if known."""
    n = len(source)
    if n_points is not None:
        n = min(n, whole_number(n_points, "n_points", 1, MeasureError, ", or None for all"))
    rows = as_generator(seed).permutation(len(source))[:n]
    points, order = source.take(rows)
    y = source.targets if isinstance(source, TargetSource) else None
    if y is None and source.has_labels:
        y = source.everything()[1]
    return points[order].copy(), None if y is None else y[rows]


def _schedule(every: int | str | Callable[[int], bool]) -> Callable[[int], bool]:
    if callable(every):
        return every
    if every == "log":
        return _is_log_step
    if isinstance(every, str):
        raise MeasureError(f'every={every!r} is not a schedule: give a number of steps, "log", or a function')
    period = whole_number(every, "every", 1, MeasureError, ', "log", or a function of the step')
    return lambda step: step % period == 0


def _is_log_step(step: int) -> bool:
    """Whether a new tenth of a decade begins at the step.

    >>> [s for s in range(40) if _is_log_step(s)]
    [0, 1, 2, 3, 4, 6, 7, 8, 10, 13, 16, 20, 26, 32]
    """
    if step <= 1:
        return step >= 0
    before, now = (math.floor(STEPS_PER_DECADE * math.log10(s) + 1e-9) for s in (step - 1, step))
    return now > before
