"""What is on show: models by name, data, the colours of classes, and what was found of planes so far."""

import math
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from inscape import __version__
from inscape.arrays import Array, Floats, Ints
from inscape.compare import Comparison, compare
from inscape.compiled import compile_at_once
from inscape.drawing.palette import PATTERNS, ink_on
from inscape.errors import InscapeError, ModelError
from inscape.explorer.chosen_plane import ChosenPlane
from inscape.explorer.data_points import MOST_ROWS, DataPoints
from inscape.explorer.messages import Sight, coarse_message, margins
from inscape.models import Model, wrap
from inscape.partition.decision import decision_regions
from inscape.pictures import Names, Style
from inscape.probes import Patch
from inscape.progress import Meter

KEPT_SIGHTS = 6
"""Planes whose regions are kept for questions about places on them."""
SECONDS_WHILE_DRAGGING = 0.05
"""Seconds in which an answer comes while a person drags; a coarse picture announces what takes longer."""
COARSE_PIXELS = (12, 72)
"""Pixels per side of that picture, at least and at most."""
WARM_UP_FRACTION = 0.02
"""The fraction of the first plane that is computed before a page asks."""
COARSE_SHARE = 0.08
"""How much of the time of the picture that it announces it may take."""


class Exhibit:
    """Models and data that pages look at.

    Args:
        models: name -> anything that `inscape.wrap` takes.
        data: the data.
        class_names: names of the classes, as pictures take them.
        rows: three rows of the data that span the first plane; None for three of different classes.
        is_sequence: whether the models are checkpoints of one training, in order.
        source: lines of Python that load `models` and `x`, for "copy as Python".
        title: the name of the page.
    """

    def __init__(
        self,
        models: Mapping[str, Any],
        data: DataPoints,
        *,
        class_names: Names | None = None,
        rows: Sequence[int] | None = None,
        is_sequence: bool = False,
        source: str = "",
        title: str | None = None,
    ) -> None:
        if not models:
            raise ModelError("there is no model to explore: give one, or a dictionary of several")
        self.names = tuple(str(name) for name in models)
        self.models: tuple[Model, ...] = tuple(wrap(model) for model in models.values())
        self.data, self.is_sequence, self.source = data, is_sequence, source
        self.title = title or (self.names[0] if len(self.names) == 1 else f"{len(self.names)} models")
        self.start = ChosenPlane.through(self._first_rows() if rows is None else rows, data)
        self._class_names = class_names
        self._sights: OrderedDict[tuple[int, str, tuple[Any, ...]], Sight] = OrderedDict()
        self._compared: tuple[Any, Comparison] | None = None
        self._seconds: dict[int, float] = {}
        self._per_call: dict[int, float] = {}
        self.about  # noqa: B018  asks the models once, before there is a thread that does

    def _first_rows(self) -> list[int]:
        """A row of each of three classes, or the first three rows that span a plane."""
        y = self.data.y
        if y is not None and len(first := np.sort(np.unique(y, return_index=True)[1])) >= 3:
            rows = [int(i) for i in first[:3]]
        else:
            rows = list(range(min(3, len(self.data))))
        if self.data.is_plane or _is_plane(self.data.x[rows]):
            return rows
        rng = np.random.default_rng(0)
        for _ in range(100):
            rows = [int(i) for i in rng.choice(len(self.data), 3, replace=False)]
            if _is_plane(self.data.x[rows]):
                return rows
        raise InscapeError("no three of the data points span a plane: they are all on a line")

    # what is known of classes and rows

    @cached_property
    def _known_classes(self) -> Sequence[str] | None:
        return next((model.classes for model in self.models if model.classes is not None), None)

    def _n_classes(self) -> int:
        """How many classes the models tell apart, as far as a few points show."""
        n_classes = 2
        for model in self.models:
            try:
                answer = model.predict(self.data.x[:8], with_scores=model.has_scores)
            except Exception:  # the page says so when it asks
                continue
            columns = 0 if answer.scores is None else answer.scores.shape[1]
            n_classes = max(n_classes, columns, int(answer.labels.max(initial=0)) + 1)
        return n_classes

    @cached_property
    def _classes(self) -> tuple[Any, Ints | None]:
        return Style(self._class_names).classes(range(self._n_classes()), self._known_classes, self.data.y)

    @property
    def row_labels(self) -> Ints | None:
        """The label that the class of each row stands for, if classes are known."""
        return self._classes[1]

    def predicted(self, model: int) -> tuple[Ints, Floats | None]:
        """The label of each row by a model, and its margin if there are scores; computed once."""
        known = self.__dict__.setdefault("_predicted", {})
        if model not in known:
            asked = self.models[model]
            answer = asked.predict(self.data.x, with_scores=asked.has_scores)
            known[model] = answer.labels, None if answer.scores is None else margins(answer.scores)
        prediction: tuple[Ints, Floats | None] = known[model]
        return prediction

    @cached_property
    def about(self) -> dict[str, Any]:
        """All that a page needs to know before it asks for a plane."""
        classes = self._classes[0]
        home = self.start.home
        data = self.data
        return {
            "version": __version__,
            "title": self.title,
            "models": [
                {"name": name, "structure": model.structure, "has_scores": model.has_scores}
                for name, model in zip(self.names, self.models, strict=True)
            ],
            "is_sequence": self.is_sequence,
            "classes": [
                {"label": label, "name": name, "colour": hexadecimal(colour), "ink": ink_on(colour)}
                for label, name in classes.names.items()
                for colour in [classes.colours[label]]
            ],
            "patterns": [hexadecimal(colour) for colour in PATTERNS],
            "data": {
                "kind": data.kind,
                "n": len(data),
                "n_given": data.n_given,
                "most_rows": MOST_ROWS,
                "shape": list(data.x.shape[1:]),
                "picture": list(data.picture_shape),
                "limits": list(data.limits),
                "features": list(data.features),
                "units": list(data.units),
                "has_classes": data.y is not None,
                "axis_names": list(home.axis_names or ()),
                "is_scaled": data.unit is not None,
            },
            "plane": self.start.named(),
            "source": self.source,
            "unit_source": "" if data.unit is None else f"np.array({data.unit.tolist()})",
        }

    # planes

    def sight(self, model: int, plane: ChosenPlane, patch: Patch, meter: Meter | None) -> Sight:
        """The regions of a model on a patch, from memory if they are known."""
        key = model, plane.key, patch.bounds
        if key in self._sights:
            self._sights.move_to_end(key)
            return self._sights[key]
        start = time.perf_counter()
        sight = Sight(patch, decision_regions(self.models[model], patch, progress=meter or False))
        self._seconds[model] = time.perf_counter() - start
        self._sights[key] = sight
        while len(self._sights) > max(KEPT_SIGHTS, len(self.models)):
            self._sights.popitem(last=False)
        return sight

    def is_known(self, model: int, plane: ChosenPlane, patch: Patch) -> bool:
        """Whether the regions of a patch are in memory."""
        return (model, plane.key, patch.bounds) in self._sights

    def latest_sight(self, model: int, plane: ChosenPlane, at: Floats) -> Sight | None:
        """The regions around a place that were found last, if any were."""
        for (number, key, _), sight in reversed(self._sights.items()):
            if number == model and key == plane.key and sight.holds(at):
                return sight
        return None

    def comparison(
        self, pair: tuple[int, int], plane: ChosenPlane, patch: Patch, meter: Meter | None = None
    ) -> Comparison:
        """Two models on a patch; the last one is kept."""
        key = pair, plane.key, patch.bounds
        if self._compared is None or self._compared[0] != key:
            a, b = (self.models[k] for k in pair)
            names = self.names[pair[0]], self.names[pair[1]]
            self._compared = key, compare(a, b, patch, names=names, progress=meter or False)
        return self._compared[1]

    def is_slow(self, model: int) -> bool:
        """Whether the last plane of a model took too long to wait for without a coarse picture."""
        return self._seconds.get(model, math.inf) > SECONDS_WHILE_DRAGGING

    def coarse(self, model: int, patch: Patch) -> tuple[dict[str, Any], dict[str, Array]]:
        """The coarse picture of a patch, with as many pixels as there is time for."""
        per_call = self._per_call.get(model)
        if per_call is None:
            resolution = COARSE_PIXELS[0]
        else:
            time_for_it = min(SECONDS_WHILE_DRAGGING / 2, COARSE_SHARE * self._seconds.get(model, math.inf))
            resolution = int(np.clip(math.sqrt(time_for_it / max(per_call, 1e-9)), *COARSE_PIXELS))
        start = time.perf_counter()
        message = coarse_message(self.models[model], patch, resolution)
        seconds = (time.perf_counter() - start) / resolution**2
        self._per_call[model] = min(seconds, self._per_call.get(model, math.inf))  # the first call is slower
        return message

    def warm(self) -> None:
        """Compute a small window of the first plane: loops are compiled before a page asks for more."""
        compile_at_once()
        home = self.start.home
        (s0, s1), (t0, t1) = home.bounds
        s, t = (s0 + s1) / 2, (t0 + t1) / 2
        small = (
            (s - WARM_UP_FRACTION * (s - s0), s + WARM_UP_FRACTION * (s1 - s)),
            (t - WARM_UP_FRACTION * (t - t0), t + WARM_UP_FRACTION * (t1 - t)),
        )
        try:
            self.coarse(0, home)
            decision_regions(self.models[0], Patch(home.origin, home.axes, small))
        except Exception:  # the page asks again, and says what is wrong
            return


def _is_plane(points: Floats) -> bool:
    flat = points.reshape(len(points), -1)
    return len(flat) == 3 and np.linalg.matrix_rank(flat[1:] - flat[0]) == 2


def hexadecimal(colour: Sequence[float]) -> str:
    """A colour as CSS has it.

    >>> hexadecimal((1.0, 0.5, 0.0))
    '#ff8000'
    """
    return "#" + "".join(f"{round(255 * float(channel)):02x}" for channel in colour)
