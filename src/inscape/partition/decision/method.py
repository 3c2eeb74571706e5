"""The one choice of the method: as asked for, or the best that fits; tried, and again after a tie."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from inscape.errors import InscapeWarning, NonGenericError, PartitionError, unknown_name
from inscape.models import Model
from inscape.partition.decision.exact import ON_SEGMENTS, why_not_exact
from inscape.partition.decision.grid.lattice import check_connectivity
from inscape.probes import Patch, Probe, Segment
from inscape.probes.sampling import of_every_kind
from inscape.probes.segment import as_segment

METHODS = ("auto", "exact", "adaptive", "grid")
EXACT_BUDGET = 2000
"""Evaluations per segment that "auto" allows an exact count: ten times the default grid."""
PLANE_BUDGET = 9000
"""The same per plane."""

Result = TypeVar("Result")


class Choice(NamedTuple):
    """The method, and the reason for it in a few words."""

    method: str
    reason: str


def check_method(method: str) -> None:
    """Raise an error for an unknown name."""
    if method not in METHODS:
        raise PartitionError(unknown_name("method", method, METHODS))


@dataclass(frozen=True, kw_only=True)
class Request:
    """How regions are asked for.

    Attributes:
        method: "auto", "exact", "adaptive" or "grid".
        resolution: for the grid and the adaptive method; None for their default.
        connectivity: for the grid, "face" or "full".
        tolerance: for the adaptive method on segments; None for none.
    """

    method: str = "auto"
    resolution: int | None = None
    connectivity: str = "face"
    tolerance: float | None = None

    def choose(self, model: Model, probes: Sequence[Probe]) -> Choice:
        """The method that stands behind the request for these probes.

        "auto" is exact if the structure of the model allows it on all the probes and the budget fits, else
        adaptive. It depends on the model and the probes only, not on timing. Naming a resolution asks for the
        grid, and so does "full" connectivity above one dimension.
        """
        some = of_every_kind(probes)
        self._check(some)
        choice = self._named(some) or _best(model, probes)
        if self.tolerance is not None and choice.method != "adaptive":
            raise PartitionError(
                f"tolerance={self.tolerance} belongs to method='adaptive'; here the method is "
                f"{choice.method!r} ({choice.reason})"
            )
        return choice

    def carry_out(
        self,
        choice: Choice,
        probes: Sequence[Probe],
        *,
        exact: Callable[[], Result],
        adaptive: Callable[[], Result],
        grid: Callable[[], Result],
    ) -> tuple[Choice, Result]:
        """The result of the chosen method; where "auto" met a tie, a warning and that of another one."""
        methods = {"exact": exact, "adaptive": adaptive, "grid": grid}
        try:
            return choice, methods[choice.method]()
        except NonGenericError as error:
            if self.method != "auto":
                raise
            choice = _sampled(of_every_kind(probes), error.reason)
            warnings.warn(
                f"method={choice.method!r} instead of exact, since {error}", InscapeWarning, stacklevel=3
            )
        return choice, methods[choice.method]()

    def _check(self, probes: Sequence[Probe]) -> None:
        """Raise an error for settings that do not go together."""
        check_method(self.method)
        check_connectivity(self.connectivity)
        if self.method == "adaptive" and self._is_full(probes):
            raise PartitionError(
                "connectivity='full' belongs to the grid: adaptive cells are joined by their edges"
            )
        if self.method == "adaptive" and any(_is_polygon(p) for p in probes):
            raise PartitionError(
                "adaptive cells fill rectangles and simplices: use 'exact' or 'grid' on a polygon"
            )
        if self.method == "exact" and self.resolution is not None:
            raise PartitionError(f"resolution={self.resolution} belongs to the grid: an exact count has none")

    def _named(self, probes: Sequence[Probe]) -> Choice | None:
        """The method that the request names, by itself or by a setting; None where it is free."""
        if self.method != "auto":
            return Choice(self.method, "asked for")
        if self.resolution is not None:
            return Choice("grid", "a resolution was given")
        return Choice("grid", "connectivity='full' was given") if self._is_full(probes) else None

    def _is_full(self, probes: Sequence[Probe]) -> bool:
        """Whether diagonals join points; on segments there are none."""
        return self.connectivity == "full" and any(p.dim > 1 for p in probes)


def _best(model: Model, probes: Sequence[Probe]) -> Choice:
    """Exact where the model and the budget allow it, else a method that evaluates the model at points."""
    some = of_every_kind(probes)
    dim = max(p.dim for p in some)
    reason = why_not_exact(model, probes[0].input_shape, dim)
    if reason is not None:
        return _sampled(some, reason)
    if model.structure in ON_SEGMENTS:
        return Choice("exact", ON_SEGMENTS[model.structure])
    each, budget, kind = _cost(model, probes, dim)
    if each > budget:
        return _sampled(some, f"exact would take about {each:.0f} evaluations per {kind}, over {budget}")
    return Choice("exact", f"piecewise affine, about {each:.0f} evaluations per {kind}")


def _cost(model: Model, probes: Sequence[Probe], dim: int) -> tuple[float, int, str]:
    """The evaluations that exact regions of a network take on each probe, their limit, and the kind of probe.

    Predicted from a few lines across the probes. Lines that cross a line of a plane cross each other about as
    often as the square of their number.
    """
    from inscape.partition.linear.segments.pieces import estimate_evaluations

    few = [_across(probes[i]) for i in np.linspace(0, len(probes) - 1, 3, dtype=int)]
    each = estimate_evaluations(model, few) / len(few)
    return (each, EXACT_BUDGET, "segment") if dim == 1 else (each**2, PLANE_BUDGET, "plane")


def _across(probe: Probe) -> Segment:
    """A line across a probe: a segment itself, a diagonal of a patch, a side of a triangle."""
    if probe.dim == 1:
        return as_segment(probe)
    first, s, t = probe.generators
    return Segment(first + s, first + t) if isinstance(probe, Patch) else Segment(s, t)


def _sampled(probes: Sequence[Probe], reason: str) -> Choice:
    """The method that evaluates the model at points: adaptive, or the grid on polygons."""
    if any(_is_polygon(p) for p in probes):
        return Choice("grid", f"{reason}, and adaptive cells fill rectangles")
    return Choice("adaptive", reason)


def _is_polygon(probe: Probe) -> bool:
    return isinstance(probe, Patch) and not probe.is_rectangle
