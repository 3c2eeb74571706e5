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
row. `"replicate"` is the one key that only counts repetitions; what replicates of different configurations
shall have in common (the data split, say) may be drawn from it. `frame` has one line per finished row: the
keys of the configuration, "configuration" (its hash without the replicate), "seed", "seconds", and the row.

A study whose cells are cheaper together (many small networks as one program) gives `batch`, a function from a
list of configurations to a list of rows, and `together`, which maps a configuration to a key: those with
equal keys go to `batch` in one call.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

Configuration = dict[str, Any]
Row = Mapping[str, Any]

SCALES = ("smoke", "small", "paper")
"""Seconds; minutes on one machine; what was published."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Whether a claim held in these rows (None: they cannot say), and the figures that show it."""

    holds: bool | None
    evidence: str


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What the rows of a study say: a finding per claim, names of figures in its folder, Markdown notes."""

    findings: Mapping[str, Finding] = field(default_factory=dict)
    figures: Sequence[str] = ()
    notes: str = ""


def _no_summary(frame: "pd.DataFrame", out: Path) -> Summary:
    return Summary()


@dataclass(frozen=True, kw_only=True)
class Study:
    """A grid of configurations, how each becomes a row, and what the rows are asked; see the module."""

    name: str
    title: str
    configurations: Callable[[str], list[Configuration]]
    cell: Callable[[Configuration], Row]
    claims: Mapping[str, str] = field(default_factory=dict)
    summarise: Callable[["pd.DataFrame", Path], Summary] = _no_summary
    batch: Callable[[list[Configuration]], Sequence[Row]] | None = None
    together: Callable[[Configuration], Hashable] | None = None
