"""What a study is: a grid of configurations, a function from configuration to row, and a summary.

To add one, write a file in `inscape/studies` that defines `STUDY` and name it in the table there:

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

A study whose configurations are cheaper together (many small networks as one program) gives `batch`, a
function from a list of configurations to a list of rows, and `together`, which maps a configuration to a key:
those with equal keys go to `batch` in one call.

A study that can be asked for more than a scale (another data set, fewer networks) names its `options`, with a
line of help each, and takes them as further arguments: `configurations(scale, data="digits")`. On the command
line they are `--data digits`, so every value may come as a text. Any key of its configurations can be given
other values without that, as `--set epochs=50`.

`check` is given each configuration before anything runs and raises an error for one that cannot be.
`concerns(claim, configuration)` says whether a claim is about a configuration: nothing can be said of a claim
if rows that it is about are missing. Without it every claim is about all of them.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from inscape.reports.findings import Summary

if TYPE_CHECKING:
    import pandas as pd

Function = TypeVar("Function", bound=Callable[..., Any])

Configuration = dict[str, Any]
Row = Mapping[str, Any]

SCALES = ("smoke", "small", "paper")
"""Seconds; minutes on one machine; what was published. A study may have more, see `Study.scales`."""


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
    """A grid of configurations, how each becomes a row, and what the rows are asked; see the module.

    Attributes:
        name: what it is called on the command line and in its folder.
        title: what stands above its report.
        configurations: from a scale, and options by name, to the list of configurations.
        cell: from one configuration, with its "seed", to one row.
        claims: key -> a sentence that the rows are asked about; the first is the headline.
        summarise: from the frame and the folder to what the rows say.
        batch: from several configurations to their rows, where that is faster than one by one.
        together: the key of configurations that `batch` takes together.
        options: name -> what it does, for `configurations`.
        paper: which figure, table or theorem of which paper this is.
        check: raises if a configuration cannot be run, before any is.
        concerns: whether a claim, by its key, is about a configuration; about all if None.
        scales: at which sizes it can be run.

    >>> def configurations(scale):
    ...     return [{"rate": rate} for rate in (0.1, 0.01)]
    >>> def cell(configuration):
    ...     return {"count": 1 / configuration["rate"]}
    >>> def summarise(frame, out):
    ...     return None
    >>> study = Study(
    ...     name="rates",
    ...     title="Counts and step sizes",
    ...     claims={"falls": "The count falls with the rate."},
    ...     configurations=configurations,
    ...     cell=cell,
    ...     summarise=summarise,
    ... )
    >>> [study.cell(c) for c in study.configurations("smoke")]
    [{'count': 10.0}, {'count': 100.0}]
    """

    name: str
    title: str
    configurations: Callable[..., list[Configuration]]
    cell: Callable[[Configuration], Row]
    claims: Mapping[str, str] = field(default_factory=dict)
    summarise: Callable[["pd.DataFrame", Path], Summary] = _no_summary
    batch: Callable[[list[Configuration]], Sequence[Row]] | None = None
    together: Callable[[Configuration], Hashable] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    paper: str = ""
    check: Callable[[Configuration], None] | None = None
    concerns: Callable[[str, Configuration], bool] | None = None
    scales: tuple[str, ...] = SCALES
