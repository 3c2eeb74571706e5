"""Which method counts: what was asked for, or the best that fits the model, and why."""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from inscape.errors import InscapeError, InscapeWarning, NonGenericError, PartitionError, unknown_name
from inscape.models import Model
from inscape.partition.decision.exact import as_segment
from inscape.partition.decision.grid.lattice import check_connectivity
from inscape.partition.linear.confirmed import check_precision
from inscape.probes import Patch, Probe, Segment
from inscape.probes.sampling import ProbeSample

METHODS = ("auto", "exact", "adaptive", "grid")
EXACT_BUDGET = 2000
"""Evaluations per segment that "auto" allows an exact count: ten times the default grid."""
PLANE_BUDGET = 9000
"""The same per plane."""


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
    if method == "adaptive" and any(_is_polygon(p) for p in some):
        raise PartitionError(
            "adaptive cells fill rectangles and simplices: use 'exact' or 'grid' on a polygon"
        )
    if method == "exact" and resolution is not None:
        raise PartitionError(f"resolution={resolution} belongs to the grid: an exact count has none")
    if method == "auto" and resolution is not None:
        return Choice("grid", "a resolution was given")
    if method != "auto":
        return Choice(method, "asked for")
    if connectivity == "full" and not is_line:
        return Choice("grid", "connectivity='full' was given")
    if is_line:
        return _on_segments(model, probes)
    choice = _on_planes(model, probes, max(p.dim for p in some))
    return choice if choice.method == "exact" else _sampled(some, choice.reason)


def after_a_tie(method: str, probes: Sequence[Probe], error: NonGenericError) -> Choice:
    """What "auto" does, with a warning, where lines met too closely; "exact" ends in the error."""
    if method != "auto":
        raise error
    some = probes[:1] if isinstance(probes, ProbeSample) else probes
    choice = _sampled(some, str(error).split(": ")[0])
    warnings.warn(f"method={choice.method!r} instead of exact, since {error}", InscapeWarning, stacklevel=3)
    return choice


def _sampled(probes: Sequence[Probe], reason: str) -> Choice:
    """The method that asks the model at points: adaptive, or the grid on polygons."""
    if any(_is_polygon(p) for p in probes):
        return Choice("grid", f"{reason}, and adaptive cells fill rectangles")
    return Choice("adaptive", reason)


def _is_polygon(probe: Probe) -> bool:
    return isinstance(probe, Patch) and not probe.is_rectangle


def _on_planes(model: Model, probes: Sequence[Probe], dim: int) -> Choice:
    """Exact for networks of which a few lines across the planes predict at most 9,000 evaluations each."""
    if dim > 2:
        return Choice("adaptive", "exact regions are computed on segments and planes only")
    if model.structure == "trees":
        return Choice("adaptive", "exact regions of trees are computed on segments only")
    try:
        check_precision(model)
        model.graph(probes[0].input_shape)
    except InscapeError as error:
        return Choice("adaptive", str(error).split(": ")[0])
    from inscape.partition.linear.segments.cost import estimate_cost

    few = [_across(probes[i]) for i in np.linspace(0, len(probes) - 1, 3, dtype=int)]
    lines = estimate_cost(model, few).n_evaluations / len(few)
    each = lines**2  # lines that cross a line of the plane cross each other about so often
    if each > PLANE_BUDGET:
        return Choice(
            "adaptive", f"exact would take about {each:.0f} evaluations per plane, over {PLANE_BUDGET}"
        )
    return Choice("exact", f"piecewise affine, about {each:.0f} evaluations per plane")


def _across(probe: Probe) -> Segment:
    """A line across a plane: a diagonal of a patch, a side of a triangle."""
    if probe.dim == 1:
        return as_segment(probe)
    first, s, t = probe.generators
    return Segment(first + s, first + t) if isinstance(probe, Patch) else Segment(s, t)


def _on_segments(model: Model, probes: Sequence[Probe]) -> Choice:
    """Exact for trees, and for networks of which a few segments predict at most 2,000 evaluations each."""
    if model.structure == "trees":
        return Choice("exact", "tree ensemble")
    try:
        check_precision(model)
        model.graph(probes[0].input_shape)
    except InscapeError as error:
        return Choice("adaptive", str(error).split(": ")[0])
    from inscape.partition.linear.segments.cost import estimate_cost

    few = [as_segment(probes[i]) for i in np.linspace(0, len(probes) - 1, 3, dtype=int)]
    each = estimate_cost(model, few).n_evaluations / len(few)
    if each > EXACT_BUDGET:
        return Choice(
            "adaptive", f"exact would take about {each:.0f} evaluations per segment, over {EXACT_BUDGET}"
        )
    return Choice("exact", f"piecewise affine, about {each:.0f} evaluations per segment")
