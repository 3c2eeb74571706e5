"""The one choice of the method: as asked for, or the best that fits; another one where that fails."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

from inscape.errors import (
    BudgetError,
    InscapeError,
    OutOfRangeError,
    PartitionError,
    unknown_name,
    warn,
)
from inscape.models import Model
from inscape.partition.decision.adaptive import adaptive_seconds
from inscape.partition.decision.exact import QUICKLY_EXACT, n_vertices_on, why_not_exact
from inscape.partition.decision.grid.lattice import CONNECTIVITIES
from inscape.partition.linear.regions import PRECISIONS
from inscape.probes import Patch, Probe
from inscape.probes.sampling import of_every_kind
from inscape.probes.segment import as_segments
from inscape.progress import duration_text

METHODS = ("auto", "exact", "adaptive", "grid")
EXACT_BUDGET = 2000
"""Evaluations per segment that "auto" always allows an exact count: ten times the default grid."""
AFFORDABLE_SECONDS = 10.0
"""Of estimated work on all probes, which "auto" always allows an exact count."""
PLANES_WORTH_ADAPTIVE_WORK = 5.0
"""On planes, how many times the work of the adaptive method it allows."""
GIVEN_UP_AFTER_WORK = 5.0
"""How many times the work that it allows is done before an exact count is given up."""

Result = TypeVar("Result")


class Choice(NamedTuple):
    """The method and why.

    Attributes:
        method: "exact", "adaptive" or "grid".
        reason: in a few words.
        max_faces: the faces of a plane at which exact gives up.
        failure: what an exact count ended in, if it was tried.
    """

    method: str
    reason: str
    max_faces: float = math.inf
    failure: Exception | None = None


def check_method(method: str) -> None:
    """Raise an error for an unknown name."""
    if method not in METHODS:
        raise PartitionError(unknown_name("method", method, METHODS))


@dataclass(frozen=True, kw_only=True)
class RegionRequest:
    """How regions are asked for.

    Attributes:
        method: "auto", "exact", "adaptive" or "grid".
        resolution: for the grid and the adaptive method; None for their default.
        connectivity: for the grid, "face" or "full".
        tolerance: for the adaptive method on segments; None for none.
        precision: for the exact method, "float64" or, on segments, "float32".
        budget: seconds that the work may be foreseen to take, where a limit is asked for.
    """

    method: str = "auto"
    resolution: int | None = None
    connectivity: str = "face"
    tolerance: float | None = None
    precision: str = "float64"
    budget: float = math.inf

    def choose(self, model: Model, probes: Sequence[Probe]) -> Choice:
        """The method that stands behind the request for these probes.

        "auto" is exact if the structure of the model allows it on all the probes and the work that is
        estimated is affordable, else adaptive. It depends on the model and the probes only, not on timing.
        Naming a resolution asks for the grid, and so does "full" connectivity above one dimension.
        """
        kinds = of_every_kind(probes)
        self._check(kinds)
        choice = self._named(kinds) or _best(model, probes)
        if self.tolerance is not None and choice.method != "adaptive":
            raise PartitionError(
                f"tolerance={self.tolerance} belongs to method='adaptive'; here the method is "
                f"{choice.method!r} ({choice.reason})"
            )
        if choice.method == "exact":
            _check_precision(self.precision, kinds)
        return choice

    def check_budget(self, model: Model, probes: Sequence[Probe]) -> None:
        """Raise an error if exact planes were asked for and are foreseen to take longer than the budget.

        "auto" has limits of its own, and takes another method.
        """
        if self.method != "exact" or model.structure in QUICKLY_EXACT or {p.dim for p in probes} != {2}:
            return
        from inscape.partition.linear.exact_cost import check_planes

        check_planes(model, probes, self.budget, partial(n_vertices_on, model))

    def carry_out(
        self,
        choice: Choice,
        probes: Sequence[Probe],
        *,
        exact: Callable[[], Result],
        adaptive: Callable[[], Result],
        grid: Callable[[], Result],
    ) -> tuple[Choice, Result]:
        """The result of the chosen method; where "auto" chose exact and that failed, of another one.

        Whatever an exact count ends in (a tie that floats cannot decide, a layer read wrongly, a lack
        of memory) is no reason to have no count: a warning and the reason of the choice say what it was.
        """
        methods = {"exact": exact, "adaptive": adaptive, "grid": grid}
        try:
            result = methods[choice.method]()
        except (OutOfRangeError, BudgetError):
            raise
        except Exception as error:
            if self.method != "auto" or choice.method != "exact":
                raise
            choice = _instead(of_every_kind(probes), error)
            result = methods[choice.method]()  # where the model itself is at fault, this raises
        if choice.failure is not None:
            instead = (
                f"method={choice.method!r} instead of exact, since {str(choice.failure) or choice.reason}"
            )
            warn(instead)
        return choice, result

    def _check(self, probes: Sequence[Probe]) -> None:
        """Raise an error for settings that do not go together."""
        check_method(self.method)
        if self.connectivity not in CONNECTIVITIES:
            raise PartitionError(unknown_name("connectivity", self.connectivity, CONNECTIVITIES))
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


def _check_precision(precision: str, probes: Sequence[Probe]) -> None:
    """Raise an error for a precision that exact regions on the probes do not have."""
    if precision not in PRECISIONS:
        raise PartitionError(unknown_name("precision", precision, PRECISIONS))
    if precision != "float64" and any(p.dim == 2 for p in probes):
        raise PartitionError(f"precision={precision!r} is for segments: planes are cut in float64")


def _best(model: Model, probes: Sequence[Probe]) -> Choice:
    """Exact where the model and the work allow it, else a method that evaluates the model at points."""
    kinds = of_every_kind(probes)
    dim = max(p.dim for p in kinds)
    try:
        reason = why_not_exact(model, probes[0].input_shape, dim)
        if reason is not None:
            return _sampled(kinds, reason)
        if model.structure in QUICKLY_EXACT:
            return Choice("exact", QUICKLY_EXACT[model.structure])
        return _if_affordable(model, probes, dim)
    except OutOfRangeError:
        raise
    except InscapeError as error:
        return _sampled(kinds, error.reason)
    except Exception as error:
        return _instead(kinds, error)


def _if_affordable(model: Model, probes: Sequence[Probe], dim: int) -> Choice:
    """Exact regions of a network if their estimated cost is affordable, else sampled ones."""
    from inscape.partition.linear.exact_cost import plane_cost, segment_cost

    n, allowed = len(probes), AFFORDABLE_SECONDS
    if dim == 1:
        cost, kind = segment_cost(model, probes), "evaluations per segment"
        is_affordable = cost.n_regions + 1 <= EXACT_BUDGET or n * cost.seconds <= allowed
    else:
        cost, kind = plane_cost(model, probes), "linear regions per plane"
        allowed = max(
            allowed, PLANES_WORTH_ADAPTIVE_WORK * n * adaptive_seconds(probes[0], cost.per_evaluation)
        )
        is_affordable = n * cost.seconds <= allowed
    work = f"about {cost.n_regions:,.0f} {kind}, {duration_text(n * cost.seconds)} in all"
    if not is_affordable:
        return _sampled(of_every_kind(probes), f"exact would take {work}, over {duration_text(allowed)}")
    _check_graph(model, of_every_kind(probes))
    max_faces = GIVEN_UP_AFTER_WORK * cost.n_regions * max(1.0, allowed / (n * cost.seconds))
    return Choice("exact", f"piecewise affine, {work}", max_faces)


def _check_graph(model: Model, probes: Sequence[Probe]) -> None:
    """Raise an error if a network's graph, which the forecast may have taken as it is, is not the model."""
    from inscape.partition.linear.planes.subdivision import confirmed_on
    from inscape.partition.linear.segments.linear_segments import graph_on

    for probe in probes:
        if probe.dim == 1:
            graph_on(model, as_segments([probe]))
        else:
            confirmed_on(model, probe)


def _sampled(probes: Sequence[Probe], reason: str) -> Choice:
    """The method that evaluates the model at points: adaptive, or the grid on polygons."""
    if any(_is_polygon(p) for p in probes):
        return Choice("grid", f"{reason}, and adaptive cells fill rectangles")
    return Choice("adaptive", reason)


def _instead(probes: Sequence[Probe], error: Exception) -> Choice:
    """What to do after an exact count has failed."""
    return _sampled(probes, _in_words(error))._replace(failure=error)


def _in_words(error: Exception) -> str:
    """Why an exact count failed."""
    if isinstance(error, InscapeError):
        return error.reason
    if isinstance(error, MemoryError):
        return "exact regions take more memory than there is"
    message = " ".join(str(error).split())
    return f"exact regions failed ({type(error).__name__}{': ' + message if message else ''})"


def _is_polygon(probe: Probe) -> bool:
    return isinstance(probe, Patch) and not probe.is_rectangle
