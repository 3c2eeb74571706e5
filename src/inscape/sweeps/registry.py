"""The studies that are known by name; and those of the user, in a module or in a TOML file.

A TOML file says what to vary, and names the function from configuration to row:

name = "rates"
title = "Learning rates on the digits"
replicates = 3
function = "inscape.sweeps.trained_model:cell"   # the default: train and measure; declared as a cell

[grid]                                      # or several [[grid]]: each value of a list with each other
model = "mlp"
data = "digits"
learning_rate = [0.1, 0.01]
batch_size = 16
epochs = 50
hidden = [[128, 128]]                       # a list as a value stands in a list

[correlate]                                 # what the summary says; any arguments of inscape.correlate
by = ["learning_rate"]

[smoke]                                     # at that scale, instead: replicates or values of the grid
epochs = 2
"""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from inspect import signature
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inscape.correlation.correlate import correlate, positive
from inscape.errors import StudyError, unknown_name
from inscape.reports.findings import Finding, Summary
from inscape.sweeps.references import Announce, find_object, silent
from inscape.sweeps.study import SCALES, Configuration, Study, is_cell
from inscape.sweeps.tasks import canonical
from inscape.sweeps.trained_model import OWN_KEYS, SEEDS, batch, cell, check, columns, together

if TYPE_CHECKING:
    import pandas as pd

_known: dict[str, str] = {}
COMPARED = {"measure": "region_count", "target": "gap"}
"""The arguments of `correlate` that name columns of results, and their defaults."""
MOST_CONFIGURATIONS = 250_000
"""Configurations times replicates, all of which are in memory at once: about 1 kB each."""
KEYS = ("name", "title", "replicates", "function", "grid", "correlate", *SCALES)


def read_study(path: Path, announce: Announce = silent) -> Study:
    """The study that a TOML file describes; `announce` is told of the code that it names before that runs."""
    try:
        content = tomllib.loads(path.read_bytes().decode("utf-8-sig"))  # some editors mark UTF-8 by a BOM
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise StudyError(f"{path} is not valid TOML: {error}") from error
    for key in content:
        if key not in KEYS:
            raise StudyError(f"{path}: " + unknown_name("key", key, KEYS) + _place_of(key))
    if "grid" not in content:
        raise StudyError(f"{path} has no [grid]: it says which values each key of a configuration takes")
    _check_types(content, path)
    name = content.get("name", path.stem)
    more: dict[str, Any] = {"batch": batch, "together": together, "check": check}
    function: Any = cell
    if "function" in content:
        function, more = find_object(content["function"], announce), {}
        if not is_cell(function):
            raise StudyError(
                f"{path}: {content['function']} is not declared as the cell of a study: put "
                "@inscape.studies.cell above it if it is one, a function from configuration to row"
            )
    if "correlate" in content or "function" not in content:
        _check_correlation(content, path)
        correlation = _CorrelationSummary(content.get("correlate", {}))
        more |= {"summarise": correlation, "claims": {"correlation": correlation.claim}}
    return Study(
        name=name,
        title=content.get("title", name),
        configurations=_Grid(content, path),
        cell=function,
        **more,
    )


def _place_of(key: str) -> str:
    """Where a key belongs that does not stand at the top of a file, as the end of a message."""
    from inscape.training.fitting import SETTINGS

    if key in SEEDS:
        return "; the study draws seeds (--seed), and replicates = N repeats each configuration"
    return "; it is a key of the [grid]" if key in SETTINGS or key in OWN_KEYS else ""


def _check_types(content: dict[str, Any], path: Path) -> None:
    """Refuse values of the wrong kind, before any work is done."""
    for key in ("name", "title", "function"):
        if not isinstance(content.get(key, ""), str):
            raise StudyError(f"{path}: {key} = {content[key]!r} must be a text")
    if not re.fullmatch(r"\w[\w. -]*", name := content.get("name", path.stem)):
        raise StudyError(
            f"{path}: the name {name!r} names a file: a letter, then letters, digits, '.', '-', '_'"
        )
    grids = _grids(content)
    if not grids or not all(isinstance(grid, dict) for grid in grids):
        raise StudyError(f"{path}: grid must be a table, [grid], or several, [[grid]]")
    for where in (*grids, *(content.get(scale, {}) for scale in SCALES if _is_table(content.get(scale)))):
        for key, values in _lists(where).items():
            _check_plain(key, where[key], path)
            if not values:
                raise StudyError(f"{path}: {key} = [] has no value: give one, or a list of some")
            texts = Counter(map(canonical, values))
            if twice := [value for value in values if texts[canonical(value)] > 1]:
                raise StudyError(
                    f"{path}: {key} has the value {twice[0]!r} twice: give each value once; a list that is "
                    f"one value stands in a list, {key} = [{values}]"
                )
            if key in SEEDS:
                raise StudyError(f"{path}: {key} is no key of the grid{_place_of(key)}")
    for key in ("correlate", *SCALES):
        if not isinstance(content.get(key, {}), dict):
            raise StudyError(f"{path}: {key} must be a table, [{key}]")
    for where in (content, *(content.get(scale, {}) for scale in SCALES)):
        n = where.get("replicates", 1)
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise StudyError(f"{path}: replicates = {n!r} must be a whole number of at least 1")
    known = {key for grid in grids for key in grid}
    for scale in SCALES:
        for key in content.get(scale, {}):
            if key != "replicates" and key not in known:
                what = unknown_name("key", key, sorted(known))
                raise StudyError(f"{path}: [{scale}] changes {key!r}, which is not in the grid: {what}")


def _check_correlation(content: dict[str, Any], path: Path) -> None:
    """Refuse arguments of `correlate` that it does not have, and columns that no row will have."""
    arguments = content.get("correlate", {})
    known = [name for name in signature(correlate).parameters if name not in ("frame", "progress")]
    for name, value in arguments.items():
        if name not in known:
            raise StudyError(f"{path}: [correlate] " + unknown_name("argument", name, known))
        kind, is_right = CORRELATE_TAKES[name]
        if not is_right(value):
            raise StudyError(f"{path}: [correlate] {name} = {value!r} must be {kind}")
    if "function" in content:
        return  # which columns its rows have is not known before
    keys = {key for grid in _grids(content) for key in grid}
    present = keys.union(*(columns({k: v[0] for k, v in _lists(grid).items()}) for grid in _grids(content)))
    by = arguments.get("by", ())
    wanted = [*((by,) if isinstance(by, str) else by), *(arguments[k] for k in COMPARED if k in arguments)]
    for name in wanted:
        if name not in present:
            raise StudyError(f"{path}: [correlate] " + unknown_name("column", name, sorted(present)))
    measure, target = (arguments.get(key, default) for key, default in COMPARED.items())
    if measure == target:
        raise StudyError(f"{path}: [correlate] measure and target are both {measure!r}: give two columns")
    for name in (measure, target):
        if name.endswith("_status") or name in ("model", "data"):
            raise StudyError(f"{path}: [correlate] the column {name!r} holds texts: give one of numbers")


def _check_plain(key: str, value: Any, path: Path) -> None:
    """Refuse what TOML knows and a configuration cannot hold: dates, times, nan and infinity."""
    try:
        canonical(value)
    except StudyError as error:
        raise StudyError(
            f"{path}: {key} = {value} cannot be kept: give finite numbers, texts, true or false"
        ) from error


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


CORRELATE_TAKES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "measure": ("a column's name", _is_text),
    "target": ("a column's name", _is_text),
    "by": (
        "a column's name, or a list of some",
        lambda value: _is_text(value) or (isinstance(value, list) and all(map(_is_text, value))),
    ),
    "min_train_accuracy": (
        "a number from 0 to 1",
        lambda value: isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1,
    ),
    "n_resamples": ("a whole number of at least 1", lambda value: _is_whole(value) and value > 0),
    "random_state": ("a whole number of at least 0", _is_whole),
}
"""Each argument of `correlate` that a file may give -> what its value must be, and whether it is that."""


def _grids(content: dict[str, Any]) -> list[Any]:
    return content["grid"] if isinstance(content["grid"], list) else [content["grid"]]


class _Grid:
    """The configurations of the file at a scale."""

    def __init__(self, content: dict[str, Any], path: Path) -> None:
        self._content, self._path = content, path

    def __call__(self, scale: str) -> list[Configuration]:
        changes = dict(self._content.get(scale, {}))
        replicates = changes.pop("replicates", self._content.get("replicates", 1))
        grids = _grids(self._content)
        changed = [_lists(g | {key: value for key, value in changes.items() if key in g}) for g in grids]
        self._check_size(scale, sum(math.prod(map(len, g.values())) for g in changed), replicates)
        chosen_settings = [
            dict(zip(g, chosen, strict=True)) for g in changed for chosen in product(*g.values())
        ]
        return [{**c, "replicate": i} for c in chosen_settings for i in range(replicates)]

    def _check_size(self, scale: str, n_settings: int, replicates: int) -> None:
        if (n := n_settings * replicates) > MOST_CONFIGURATIONS:
            raise StudyError(
                f"{self._path} has {n:,} configurations at the scale {scale}, {n_settings:,} "
                f"settings by {replicates:,} replicates: more than the {MOST_CONFIGURATIONS:,} of one study; "
                "shorten the lists of the grid, or divide it into several files"
            )


def _lists(grid: dict[str, Any]) -> dict[str, list[Any]]:
    """The values of each key; a single one stands for a list of one."""
    return {key: value if isinstance(value, list) else [value] for key, value in grid.items()}


class _CorrelationSummary:
    """The correlation of two columns as text and picture."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._arguments = arguments

    @property
    def _names(self) -> tuple[str, str]:
        measure, target = (str(self._arguments.get(key, default)) for key, default in COMPARED.items())
        return measure, target

    @property
    def claim(self) -> str:
        measure, target = (name.replace("_", " ") for name in self._names)
        return f"The larger the {measure}, the larger the {target}."

    def __call__(self, frame: "pd.DataFrame", out: Path) -> Summary:
        finite = self._finite(frame)
        left_out = len(frame) - len(finite)
        note = f"{left_out} of {len(frame)} rows are not finite and left out.\n\n" if left_out else ""
        if left_out == len(frame):
            nothing = Finding(holds=None, evidence="no row is finite")
            return Summary(findings={"correlation": nothing}, notes=note + "There is nothing to correlate.")
        try:
            result = correlate(finite, **self._arguments)
        except TypeError as error:
            raise StudyError(f"[correlate]: {error}") from error
        result.plot().figure.savefig(out / "scatter.png", dpi=150)
        return Summary(
            findings={"correlation": _finding(result)},
            figures={"scatter.png": "Each point is a configuration, the mean of its replicates."},
            charts=(result.chart(),),
            notes=f"{note}```\n{result}\n```",
            limits=("A correlation over the configurations of one grid is no cause, and no other grid's.",),
        )

    def _finite(self, frame: "pd.DataFrame") -> "pd.DataFrame":
        """The rows whose compared columns are numbers; diverged networks have others."""
        measure, target = self._names
        names = {measure, *(("train_accuracy", "test_accuracy") if target not in frame else (target,))}
        kept = frame
        for name in names & set(frame):
            bad = [v is None or (isinstance(v, float) and not math.isfinite(v)) for v in kept[name]]
            kept = kept[[not b for b in bad]]
        return kept


def _finding(result: Any) -> Finding:
    """Whether the correlation is positive, beside that of each model where several are pooled."""
    pooled = positive(result.pearson)
    if not result.models:
        return pooled
    apart = ", ".join(f"{name} {one.pearson}" for name, one in result.models.items())
    return replace(pooled, evidence=f"{pooled.evidence}; apart: {apart}")


def register(studies: Mapping[str, str]) -> None:
    """Have studies known by name: name -> where each is, as package.module:STUDY."""
    _known.update(studies)


def registered() -> tuple[str, ...]:
    """The names of all studies that are known by name."""
    return tuple(_known)


def is_registered(name: str) -> bool:
    """Whether a study is known by this name."""
    return name in _known


def find(name: str, announce: Announce = silent) -> Study:
    """The study of that name, of a .toml file, or of package.module:STUDY.

    `announce` is told which code runs, before it does: to import it is to run it.
    """
    if not isinstance(name, str):
        raise StudyError(f"expected a Study or the name of one, got {name!r}")
    if name in _known:
        study = find_object(_known[name], announce)
    elif name.endswith(".toml"):
        study = read_study(Path(name), announce)
    elif ":" in name:
        study = find_object(name, announce)
    else:
        raise StudyError(
            unknown_name("study", name, sorted(_known)) + " (or a .toml file, or package.module:STUDY)"
        )
    if not isinstance(study, Study):
        raise StudyError(f"{name} is no inscape.studies.Study but {type(study).__name__}")
    return study
