"""The summary of a study as plain JSON in its store: a report of it needs no code but ours."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from inscape.errors import StudyError
from inscape.reports.findings import Chart, Finding, Summary
from inscape.sweeps.tasks import Key, read_json

if TYPE_CHECKING:
    import pandas as pd

PICTURES = (".png", ".jpg", ".jpeg", ".svg", ".webp", ".pdf")
"""Endings of the figures that are kept, and that are written again."""
_KINDS = ("bool", "int64", "float64", "str", "string")
"""Types of columns that are restored; any other holds whatever the JSON does."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SavedSummary:
    """The title and claims of a study, its summary of the rows with these keys, and its figures' files."""

    title: str
    claims: Mapping[str, str]
    summary: Summary
    keys: Sequence[Key]
    figures: Mapping[str, bytes]

    def to_json(self) -> str:
        """All but the files of the figures."""
        summary = self.summary
        return json.dumps(
            {
                "title": self.title,
                "claims": dict(self.claims),
                "keys": list(self.keys),
                "findings": {key: _fields(finding) for key, finding in summary.findings.items()},
                "figures": _names(summary.figures),
                "notes": summary.notes,
                "charts": [_fields(c) | {"data": _columns(_without_lists(c))} for c in summary.charts],
                "tables": [[title, _columns(table)] for title, table in summary.tables.items()],
                "limits": list(summary.limits),
            },
            default=_plain,
        )

    @classmethod
    def from_json(cls, text: str, figures: Mapping[str, bytes]) -> "SavedSummary":
        """What `to_json` wrote; an error for anything else."""
        try:
            content = read_json(text)
            saved = cls(
                title=_text(content["title"]),
                claims={_text(key): _text(claim) for key, claim in content["claims"].items()},
                summary=_summary(content),
                keys=[(_text(digest), int(seed)) for digest, seed in content["keys"]],
                figures={name: data for name, data in figures.items() if is_picture(name)},
            )
            if set(saved.summary.findings) != set(saved.claims):
                raise StudyError("its findings are not those of its claims")
        except KeyError as error:
            raise StudyError(f"it has no {error}") from error
        except (TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise StudyError(str(error) or type(error).__name__) from error
        return saved


def figure_files(summary: Summary, folder: Path) -> dict[str, bytes]:
    """The files of the figures in a folder, by name."""
    names = [name for name in summary.figures if is_picture(name) and (folder / name).is_file()]
    return {name: (folder / name).read_bytes() for name in names}


def is_picture(name: object) -> bool:
    """Whether a name is that of a picture inside the folder of a study, and of nothing outside it.

    >>> [is_picture(name) for name in ("a.png", "more/a.svg", "../a.png", "/a.png", "a.sqlite", 3)]
    [True, True, False, False, False, False]
    """
    if not isinstance(name, str) or "\\" in name or ":" in name or "\0" in name:
        return False
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and path.suffix.lower() in PICTURES


def _names(figures: Sequence[str] | Mapping[str, str]) -> Any:
    return dict(figures) if isinstance(figures, Mapping) else list(figures)


def _fields(value: "Finding | Chart") -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value) if field.name != "data"}


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _without_lists(chart: Chart) -> "pd.DataFrame":
    """The data of a chart without columns of lists, such as curves: no axis, and no point, shows them."""
    data = chart.data
    kept = [
        not any(isinstance(v, list | tuple | dict) for v in data.iloc[:, i]) for i in range(data.shape[1])
    ]
    return data.loc[:, kept]


def _columns(frame: "pd.DataFrame") -> list[Any]:
    """The columns of a frame: name, type, values."""
    return [
        [str(name), str(frame.dtypes.iloc[i]), frame.iloc[:, i].tolist()]
        for i, name in enumerate(frame.columns)
    ]


def _frame(columns: Any) -> "pd.DataFrame":
    import pandas as pd

    series = [
        pd.Series(values, dtype=kind if kind in _KINDS else object, name=name)
        for name, kind, values in columns
        if isinstance(values, list) and isinstance(name, str)
    ]
    return pd.concat(series, axis=1) if series else pd.DataFrame()


def _summary(content: Mapping[str, Any]) -> Summary:
    figures = content["figures"]
    captions = figures if isinstance(figures, dict) else dict.fromkeys(figures, "")
    known = {_text(name): _text(caption) for name, caption in captions.items() if is_picture(name)}
    return Summary(
        findings={key: _finding(finding) for key, finding in content["findings"].items()},
        figures=known if isinstance(figures, dict) else tuple(known),
        notes=_text(content["notes"]),
        charts=[_chart(chart) for chart in content["charts"]],
        tables={_text(title): _frame(columns) for title, columns in content["tables"]},
        limits=[_text(limit) for limit in content["limits"]],
    )


def _finding(content: dict[str, Any]) -> Finding:
    value, interval, reported = content["value"], content["interval"], content.get("published_value")
    if content["holds"] not in (True, False, None):
        raise StudyError(f"{content['holds']!r} is no verdict")
    return Finding(
        holds=None if content["holds"] is None else bool(content["holds"]),
        evidence=_text(content["evidence"]),
        value=None if value is None else float(value),
        interval=None if interval is None else (float(interval[0]), float(interval[1])),
        published=_text(content["published"]),
        published_value=None if reported is None else float(reported),  # stores of 0.1.0 have none
        unsaid=_text(content.get("unsaid", "")),  # nor this
    )


def _chart(content: dict[str, Any]) -> Chart:
    def name_or_none(key: str) -> str | None:
        return None if content[key] is None else _text(content[key])

    return Chart(
        data=_frame(content["data"]),
        kind="lines" if content["kind"] == "lines" else "points",
        hover=tuple(map(_text, content["hover"])),
        log_x=bool(content["log_x"]),
        log_y=bool(content["log_y"]),
        colour=name_or_none("colour"),
        low=name_or_none("low"),
        high=name_or_none("high"),
        **{key: _text(content[key]) for key in ("title", "x", "y", "xlabel", "ylabel", "caption")},
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise StudyError(f"{value!r} stands where a text is expected")
    return value
