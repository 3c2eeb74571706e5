"""Which method counts: what was asked for, or the best that fits the model, and why."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from inscape.errors import InscapeError, PartitionError, unknown_name
from inscape.models import Model
from inscape.partition.decision.exact import as_segment
from inscape.partition.decision.lattice import check_connectivity
from inscape.probes import Probe
from inscape.probes.sampling import ProbeSample

METHODS = ("auto", "exact", "adaptive", "grid")
EXACT_BUDGET = 2000
"""Evaluations per segment that "auto" allows an exact count: ten times the default grid."""


class Choice(NamedTuple):
    """The method, and the reason for it in a few words."""

    method: str
    reason: str


def check_method(method: str) -> None:
    """Raise an error for an unknown name."""
    if method not in METHODS:
        raise PartitionError(unknown_name("method", method, METHODS))


def check_tolerance(tolerance: float | None, chosen: Choice) -> None:
    """Raise an error if a tolerance was given to a method that has none."""
    if tolerance is not None and chosen.method != "adaptive":
        raise PartitionError(
            f"tolerance={tolerance} belongs to method='adaptive'; here the method is {chosen.method!r} "
            f"({chosen.reason})"
        )


def choose_method(
    model: Model,
    probes: Sequence[Probe],
    method: str,
    resolution: int | None = None,
    connectivity: str = "face",
) -> Choice:
    """The method that stands behind `method` for these probes.

    "auto" is exact if the structure of the model allows it on all the probes and the budget fits, else
    adaptive. It depends on the model and the probes only, not on timing. Naming a `resolution` asks for the
    grid, and so does "full" connectivity above one dimension.
    """
    check_method(method)
    check_connectivity(connectivity)
    some = probes[:1] if isinstance(probes, ProbeSample) else probes
    is_line = all(p.dim == 1 for p in some)
    if method == "adaptive" and connectivity == "full" and not is_line:
        raise PartitionError(
            "connectivity='full' belongs to the grid: adaptive cells are joined by their edges"
        )
    if method == "exact" and resolution is not None:
        raise PartitionError(f"resolution={resolution} belongs to the grid: an exact count has none")
    if method == "auto" and resolution is not None:
        return Choice("grid", "a resolution was given")
    if method != "auto":
        return Choice(method, "asked for")
    if connectivity == "full" and not is_line:
        return Choice("grid", "connectivity='full' was given")
    if not is_line:
        return Choice("adaptive", "exact regions are computed on segments only")
    return _on_segments(model, probes)


def _on_segments(model: Model, probes: Sequence[Probe]) -> Choice:
    """Exact for trees, and for networks of which a few segments predict at most 2,000 evaluations each."""
    if model.structure == "trees":
        return Choice("exact", "tree ensemble")
    try:
        model.graph(probes[0].input_shape)
    except InscapeError as error:
        return Choice("adaptive", str(error).split(": ")[0])
    from inscape.partition.linear.cost import estimate_cost

    few = [as_segment(probes[i]) for i in np.linspace(0, len(probes) - 1, 3, dtype=int)]
    each = estimate_cost(model, few).n_evaluations / len(few)
    if each > EXACT_BUDGET:
        return Choice(
            "adaptive", f"exact would take about {each:.0f} evaluations per segment, over {EXACT_BUDGET}"
        )
    return Choice("exact", f"piecewise affine, about {each:.0f} evaluations per segment")
