"""All the ways of counting regions that the study compares, on one model."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from inscape.errors import InscapeWarning

HEADLINE = "region_count"
NORM_OF_DIRECTION = 0.1
"""Of a random direction, in standard deviations of a pixel; the authors add 0.1 times normal noise."""


def count_regions(model: Any, split: Any, plan: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The columns of all counts in a plan, see `settings.Counts`.

    Args:
        model: a wrapped model.
        split: its training and test points.
        plan: "lines" alone, or with all the variants.
        seed: of the probes: models that share it are counted on the same ones.
    """
    from inscape.measures import region_count

    row: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InscapeWarning)  # a model that predicts one class: the accuracy tells
        for name, (points, settings) in _variants(split, plan).items():
            result = region_count(model, points, random_state=seed, **settings)
            row |= {name: result.mean, f"{name}_error": _finite(result.std_error)}
            if name == HEADLINE:
                row |= {"count_method": result.method, "line_counts": result.counts}
            if name == "count_dim_2":
                row["plane_method"] = result.method
    return row


def _variants(split: Any, plan: Mapping[str, Any]) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Name of the column -> the points that span the probes, and the settings of `region_count`."""
    test, train = split.x_test, split.x_train
    found: dict[str, tuple[Any, dict[str, Any]]] = {HEADLINE: (test, {"n_probes": plan["lines"]})}
    if "exact" in plan:
        for method in ("exact", "adaptive", "grid"):
            found[f"count_check_{method}"] = (test, {"n_probes": plan["exact"], "method": method})
    if "fewer" not in plan:
        return found
    few = {"n_probes": plan["fewer"]}
    length = NORM_OF_DIRECTION * float(train.std()) * float(np.sqrt(train[0].size))
    found["count_train_pairs"] = (train, few)
    found["count_direction"] = (train, {**few, "how": "direction", "length": length})
    for r in plan["grids"]:
        found[f"count_grid_{r}"] = (test, {"n_probes": plan["lines"], "resolution": r})
    for k in plan["spans"]:
        found[f"count_span_{k}"] = (test, {**few, "span": (-float(k), 1.0 + k)})
    for d, r in plan["dims"].items():
        found[f"count_dim_{d}"] = (test, {**few, "dim": int(d), "resolution": r})
    for r in plan["planes"]:
        found[f"count_plane_{r}"] = (test, {**few, "dim": 2, "resolution": r})
    return found


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
