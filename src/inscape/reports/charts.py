"""Charts to look into: what the script of the page draws, as plain JSON."""

from typing import TYPE_CHECKING, Any

from inscape.errors import StudyError, unknown_name
from inscape.reports.findings import Chart
from inscape.reports.tables import columns_of, is_numeric, label, plain

if TYPE_CHECKING:
    import pandas as pd

MOST_POINTS = 5000
"""Of one chart: a phone can still draw that many."""
MOST_HOVER = 14
"""Lines that are shown of one point."""
FAVOURITES = (("region_count", "gap"), ("region_count", "test_accuracy"))
"""Columns that are worth a look against each other wherever there are both."""


def spec(chart: Chart) -> dict[str, Any]:
    """A chart of a study; a column that it names and its frame does not have is an error."""
    frame = chart.data
    used = [chart.x, chart.y, chart.colour, chart.low, chart.high, *chart.hover]
    for name in used:
        if name is not None and name not in frame:
            raise StudyError(f"the chart {chart.title!r}: " + unknown_name("column", name, map(str, frame)))
    hover = list(chart.hover) or _usual_hover(frame)
    names = list(dict.fromkeys([name for name in used if name is not None] + hover))
    shown = _thinned(frame)
    return {
        "title": chart.title,
        "caption": chart.caption,
        "n": len(frame),
        "drawn": len(shown),
        "kind": chart.kind,
        **{key: getattr(chart, key) for key in ("x", "y", "colour", "low", "high", "log_x", "log_y")},
        "xlabel": chart.xlabel or label(chart.x),
        "ylabel": chart.ylabel or label(chart.y),
        "hover": hover,
        "labels": {name: label(name) for name in names},
        "columns": columns_of(shown, names),
    }


def explorer(frame: "pd.DataFrame") -> dict[str, Any] | None:
    """Any two columns of the rows against each other, as the reader chooses; None if none varies."""
    varied = _varied(frame)
    numeric = [name for name in varied if is_numeric(frame[name])]
    if not numeric:
        return None
    x, y = _axes(frame, varied, numeric)
    groups = [n for n in varied if n not in (x, y, "seed", "seconds") and frame[n].map(str).nunique() <= 10]
    settings, results = _parts(frame, varied)
    colour = next((n for n in groups if n in settings and n not in numeric), None)
    colour = colour or next((n for n in groups if n in settings and n != "replicate"), None)
    shown = _thinned(frame)
    accuracies = [name for name in results if "accuracy" in name or name in ("gap", "region_count")]
    return {
        "title": "The rows, any column against any other",
        "n": len(frame),
        "drawn": len(shown),
        "kind": "points",
        "x": x,
        "y": y,
        "colour": colour,
        "numeric": numeric,
        "varied": varied,
        "groups": [n for n in varied if n in groups or n in numeric],
        "hover": list(dict.fromkeys([*settings, *accuracies]))[:MOST_HOVER],
        "labels": {name: label(name) for name in varied},
        "columns": columns_of(shown, varied),
    }


def _axes(frame: "pd.DataFrame", varied: list[str], numeric: list[str]) -> tuple[str, str]:
    """Two columns to begin with: known ones, or the first result by what was varied most."""
    for x, y in FAVOURITES:
        if x in numeric and y in numeric:
            return x, y
    y = next(iter(_parts(frame, numeric)[1]), numeric[-1])
    settings = [n for n in _parts(frame, varied)[0] if n not in (y, "replicate")]
    choices = [n for n in settings if n in numeric] or settings or [n for n in varied if n != y] or [y]
    return max(choices, key=lambda name: frame[name].map(str).nunique()), y


def _parts(frame: "pd.DataFrame", names: list[str]) -> tuple[list[str], list[str]]:
    """The columns before and after the hash of the configuration: what was set, what came out."""
    columns = list(frame.columns)
    cut = columns.index("configuration") if "configuration" in columns else 1
    results = [n for n in names if columns.index(n) > cut and n not in ("seed", "seconds")]
    return [n for n in names if columns.index(n) < cut], results


def _varied(frame: "pd.DataFrame") -> list[str]:
    """The columns that differ between rows and are no lists."""
    found = []
    for name in frame:
        values = frame[name]
        if name == "configuration" or any(isinstance(v, list | dict | tuple) for v in values):
            continue
        if len({str(plain(v)) for v in values}) > 1:
            found.append(str(name))
    return found


def _usual_hover(frame: "pd.DataFrame") -> list[str]:
    """The columns that are shown of a point where the study does not say: those that vary, up to a limit."""
    return _varied(frame)[:MOST_HOVER]


def _thinned(frame: "pd.DataFrame") -> "pd.DataFrame":
    """At most `MOST_POINTS` rows, evenly from all."""
    step = -(-len(frame) // MOST_POINTS)
    return frame if step <= 1 else frame.iloc[::step]
