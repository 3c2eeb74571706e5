"""What the rows of the study say: claims, tables, figures, and the limits that show in these rows."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from inscape.correlation.correlate import Correlations
from inscape.reports.findings import Summary
from inscape.studies.region_counts import claims, paper_tables
from inscape.studies.region_counts.figures import charts, save_figures
from inscape.studies.region_counts.selection import FITTED, Subject, networks, part, with_names

if TYPE_CHECKING:
    import pandas as pd

TITLES = {
    "correlation": "Correlation of region count and gap (Fig. 2 and 5)",
    "strata": "Correlation with one hyper-parameter held",
    "hyper-parameters": "Learning rate and batch size (Fig. 3)",
    "baselines": "Baselines (Fig. 4)",
    "grid": "Grid and exact counts (Table 2)",
    "lines": "Number of lines (Table 3)",
    "span": "Span (Table 4)",
    "dimension": "Dimension (Table 5)",
    "evolution": "Evolution over epochs (Table 6)",
    "optimiser": "Optimisers (Table 7)",
    "probe": "Kind of probe (Table 8)",
    "augmentation": "Augmentation (Fig. 7 and 8)",
    "check": "Exact counts on a few lines of larger networks",
    "models": "All models",
}
LIMITS = (
    "A correlation over settings of training says that both numbers answer to the same settings. It does not "
    "say that fewer regions cause a smaller gap, nor does it rank two models of the same settings.",
    "The count looks at lines between test points. Most of such a line is far from any data, and what the "
    "model does there may be of no consequence.",
    "The gap of models that all fit their training data is their test error: the count predicts test error "
    "there, and was itself taken between test points.",
    "Intervals are over the configurations of the sweep. They say nothing of other data sets or networks.",
)


def summarise(frame: "pd.DataFrame", out: Path) -> Summary:
    """Ask the rows all that the paper asks."""
    found = paper_tables.correlations(frame)
    made = {
        "correlation": paper_tables.correlation_table(frame, found),
        "strata": paper_tables.strata_table(found),
        "hyper-parameters": paper_tables.hyper_parameter_table(frame),
        "baselines": paper_tables.baseline_table(frame),
        "grid": paper_tables.grid_table(frame),
        "lines": paper_tables.line_table(frame),
        "span": paper_tables.span_table(frame),
        "dimension": paper_tables.dimension_table(frame),
        "evolution": paper_tables.evolution_table(frame),
        "optimiser": paper_tables.optimiser_table(frame),
        "probe": paper_tables.probe_table(frame),
        "augmentation": paper_tables.augmentation_table(frame),
        "check": paper_tables.check_table(frame),
        "models": paper_tables.model_table(frame),
    }
    findings = {
        **claims.main_findings(found),
        **claims.trend_findings(frame),
        "baselines": claims.baseline_finding(frame),
        **claims.grid_findings(made["grid"]),
        **claims.variant_findings(made),
        "augmentation": claims.augmentation_finding(made["augmentation"]),
        "evolution": claims.evolution_finding(made["evolution"]),
    }
    named = {key: with_names(table) for key, table in made.items()}
    return Summary(
        findings=findings,
        figures=save_figures(frame, named, out),
        notes=_notes(frame),
        charts=charts(frame, named),
        tables={TITLES[key]: table for key, table in named.items() if len(table)},
        limits=[*_limits_here(frame, found), *LIMITS],
    )


def _notes(frame: "pd.DataFrame") -> str:
    minutes = frame["seconds"].sum() / 60
    return (
        f"{len(frame)} models, {minutes:.0f} minutes of work in all. A correlation is over configurations, "
        "each the mean of its seeds, with a 95 % bootstrap interval; it did not hold if all of that is below "
        f"{claims.STRONG}, else it held if all is above 0. The number of a claim about several models is "
        "that of the weakest."
    )


def _limits_here(frame: "pd.DataFrame", found: Mapping[Subject, Correlations]) -> list[str]:
    """What these rows themselves show of where the correlation comes from and where it is not."""
    texts = []
    for name, rows in networks(part(frame, "sweep"), fitted=False).items():
        n = int((rows["train_accuracy"] < FITTED).sum())
        if n:
            texts.append(
                f"{name}: {n} of {len(rows)} runs stay below {FITTED:.0%} training accuracy and are left out."
            )
        methods = set(rows["count_method"]) - {"exact"}
        if methods:
            texts.append(
                f"{name}: counts are {'/'.join(sorted(methods))}, not exact: exact ones would cost too much."
            )
    for name, c in found.items():
        if not c.models:
            texts += [f"{name}: {text}." for text in c.hidden]
        elif c.hidden:
            texts.append(f"{name}: {c.hidden[0]}.")
    return texts
