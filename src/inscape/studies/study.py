"""What a study is: a grid of configurations, a function from configuration to row, and a summary.

To add one, write a file in this folder that defines `STUDY` and name it in `registry.py`:

    def configurations(scale):                     # "smoke", "small" or "paper" -> plain JSON dicts
        rates = {"smoke": (0.1,), "small": (0.1, 0.01), "paper": (0.1, 0.01, 0.001)}[scale]
        return [{"rate": rate, "replicate": i} for rate in rates for i in range(3)]

    def cell(configuration):                       # a function of a module, so that it can be pickled
        rng = np.random.default_rng(configuration["seed"])
        return {"count": ..., "knots": [...]}      # numbers, strings, None; small arrays

    def summarise(frame, out):                     # finished rows; writes figures into `out`
        return Summary(findings={"falls": Finding(holds=True, evidence="r = -0.93 over 9 runs")},
                       figures=("counts.png",), notes="A table in Markdown, a caveat.")

    STUDY = Study(name="rates", title="...", claims={"falls": "The count falls with the rate."},
                  configurations=configurations, cell=cell, summarise=summarise)

A configuration holds everything that the row depends on, except chance: the runner adds `"seed"`, which comes
from the study's seed and the configuration alone, so that neither the order of work nor resuming changes a
row. `"replicate"` is the one key that only counts repetitions. What replicates of different configurations
shall have in common (the data split, say, or the start of training) is drawn from `"replicate_seed"`, which
comes from the study's seed and the replicate alone; drawn from `"replicate"` itself it would be the same
whatever the study's seed. `frame` has one line per finished row: the keys of the configuration,
"configuration" (its hash without the replicate), "seed", "seconds", and the row.

A study whose cells are cheaper together (many small networks as one program) gives `batch`, a function from a
list of configurations to a list of rows, and `together`, which maps a configuration to a key: those with
equal keys go to `batch` in one call.

A study that can be asked for more than a scale (another data set, fewer networks) names its `options`, with a
line of help each, and takes them as further arguments: `configurations(scale, data="digits")`. On the command
line they are `--data digits`, so every value may come as a text.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    import pandas as pd

Function = TypeVar("Function", bound=Callable[..., Any])

Configuration = dict[str, Any]
Row = Mapping[str, Any]

SCALES = ("smoke", "small", "paper")
"""Seconds; minutes on one machine; what was published."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Whether a claim held in these rows (None: they cannot say), and the figures that show it.

    `value` and `interval` are the one number that the claim is about, `published` what was reported of it.
    """

    holds: bool | None
    evidence: str
    value: float | None = None
    interval: tuple[float, float] | None = None
    published: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Chart:
    """A figure that can be looked into: columns of a frame, drawn one against the other by the report.

    `low` and `high` are the columns of an interval around `y`, `colour` the one whose values are told
    apart, `hover` those that are shown for each point.
    """

    title: str
    data: "pd.DataFrame"
    x: str
    y: str
    kind: Literal["points", "lines"] = "points"
    colour: str | None = None
    low: str | None = None
    high: str | None = None
    hover: Sequence[str] = ()
    log_x: bool = False
    log_y: bool = False
    xlabel: str = ""
    ylabel: str = ""
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What the rows of a study say.

    Attributes:
        findings: one for each claim, under the same key; the first claim is the headline.
        figures: names of pictures in the folder of the study, each with its caption if this is a mapping.
        notes: text in Markdown.
        charts: figures to look into, for the report.
        tables: title -> frame; each is also written as a CSV file.
        limits: what the measure cannot say, a plain sentence each.
    """

    findings: Mapping[str, Finding] = field(default_factory=dict)
    figures: Sequence[str] | Mapping[str, str] = ()
    notes: str = ""
    charts: Sequence[Chart] = ()
    tables: Mapping[str, "pd.DataFrame"] = field(default_factory=dict)
    limits: Sequence[str] = ()


def cell(function: Function) -> Function:
    """The same function, declared as one from configuration to row, which a TOML file may name.

    >>> @cell
    ... def square(configuration):
    ...     return {"square": configuration["n"] ** 2}
    >>> is_cell(square), is_cell(print)
    (True, False)
    """
    function.__inscape_cell__ = True  # type: ignore[attr-defined]
    return function


def is_cell(function: object) -> bool:
    """Whether a function was declared with `cell`."""
    return callable(function) and getattr(function, "__inscape_cell__", None) is True


def _no_summary(frame: "pd.DataFrame", out: Path) -> Summary:
    return Summary()


@dataclass(frozen=True, kw_only=True)
class Study:
    """A grid of configurations, how each becomes a row, and what the rows are asked; see the module."""

    name: str
    title: str
    configurations: Callable[..., list[Configuration]]
    cell: Callable[[Configuration], Row]
    claims: Mapping[str, str] = field(default_factory=dict)
    summarise: Callable[["pd.DataFrame", Path], Summary] = _no_summary
    batch: Callable[[list[Configuration]], Sequence[Row]] | None = None
    together: Callable[[Configuration], Hashable] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
