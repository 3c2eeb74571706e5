"""How well the count and other measures pick the better of the study's models, without labels.

What a measure is worth as a guide is asked as in the study `choosing`: on the same sides, by the same table.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.correlation.choices import lead
from inscape.studies import choosing
from inscape.studies.choosing import measures_on
from inscape.studies.region_counts.paper_tables import together
from inscape.studies.region_counts.selection import (
    FITTED_FROM,
    NETWORKS_TOGETHER,
    TREES_TOGETHER,
    classical,
    crossed,
    networks,
    part,
)
from inscape.studies.region_counts.settings import AGREEMENT

if TYPE_CHECKING:
    import pandas as pd

SIDES = choosing.SIDES | {"local_complexity": "low"}
"""As in that study; local complexity was added when eight rows of scale medium were known."""
NAMES = choosing.NAMES | {"local_complexity": "low local complexity"}


def families(frame: "pd.DataFrame") -> "dict[str, pd.DataFrame]":
    """The groups among which one chooses: each model of the sweep, and all on a data set.

    Where some networks do not fit their training data, which who chooses can see, those that do are a family
    of their own besides.
    """
    sweep = with_agreement(part(frame, "sweep"))
    groups = {}
    for every, fitted, name in (
        (networks(sweep, fitted=False), networks(sweep), NETWORKS_TOGETHER),
        (classical(sweep), {}, TREES_TOGETHER),
    ):
        of_fitted = fitted | together(fitted, name)
        for subject, rows in (every | together(every, name)).items():
            groups[str(subject)] = rows
            if subject in of_fitted and len(of_fitted[subject]) < len(rows):
                groups[f"{subject}, fitted ({FITTED_FROM:.0%})"] = of_fitted[subject]
    return {name: rows for name, rows in groups.items() if len(rows) > 1}


def choice_table(groups: "Mapping[str, pd.DataFrame]") -> "pd.DataFrame":
    """Every measure on every family: Kendall's tau, the share of pairs, the regret, with intervals."""
    return measures_on(groups, SIDES, NAMES)


def glance_table(groups: "Mapping[str, pd.DataFrame]", choices: "pd.DataFrame") -> "pd.DataFrame":
    """The share of pairs that each measure decides rightly, and its regret, families side by side.

    The last line is by how many points fewer regions are ahead of average confidence, on the same pairs.
    """
    import pandas as pd

    def text(line: dict[str, Any]) -> str:
        share, low, high = (100 * line[key] for key in ("pairs", "pairs low", "pairs high"))
        interval = f" [{low:.0f}, {high:.0f}]" if low == low else ""
        return f"{share:.0f} %{interval}, regret {100 * line['regret']:.1f}"

    table = crossed(choices, "measure", "family", text)
    ahead = {name: _ahead(rows) for name, rows in groups.items() if _is_measured(rows, "confidence")}
    if not ahead:
        return table
    last = {"measure": "fewer regions ahead of confidence by", **ahead}
    return pd.concat([table, pd.DataFrame([last])], ignore_index=True)


def _is_measured(rows: "pd.DataFrame", measure: str) -> bool:
    return measure in rows and bool(rows[measure].notna().any())


def _ahead(rows: "pd.DataFrame") -> str:
    gain = lead(rows, ("region_count", "low"), ("confidence", "high"))
    low, high = (100 * end for end in gain.interval)
    interval = f" [{low:+.0f}, {high:+.0f}]" if low == low else ""
    return f"{100 * gain.value:+.0f} points{interval}"


def with_agreement(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The rows with the share of test points on which a model agrees with the other seeds of its kind.

    Rows that kept their predictions have it, if there is another seed; else there is none.
    """
    if "test_labels" not in frame:
        return frame
    shares: dict[object, float] = {}
    known = frame[frame["test_labels"].notna()]
    for _, rows in known.groupby("configuration", sort=False):
        labels = np.array(rows["test_labels"].tolist())
        if len(rows) > 1:
            agree = (labels[:, None] == labels).mean(axis=2)
            shares |= dict(zip(rows.index, (agree.sum(axis=1) - 1) / (len(rows) - 1), strict=True))
    return frame.assign(**{AGREEMENT: frame.index.map(shares.get).astype(float)})
