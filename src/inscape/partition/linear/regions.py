"""The linear pieces of a network on a segment."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.arguments import positive_number, whole_number
from inscape.arrays import Floats
from inscape.errors import PartitionError, ProbeError, unknown_name
from inscape.probes import Probe, Segment, Simplex
from inscape.provenance import Provenance

if TYPE_CHECKING:
    from inscape.partition.linear.segments.pieces import Scores


COMPLETE = "complete"
NON_GENERIC = "non-generic: some units lie on their kink along a whole piece"
MEMORY = 2**30
KNOT_TOLERANCE = 1e-12
SLOPE_TOLERANCE = 1e-9
PRECISIONS = ("float64", "float32")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SegmentPieces:
    """The pieces of a segment x(t) on which the activity of every unit stays the same.

    A relu is active where its input is positive, a clip is below, between or above its bounds, a max-pool
    window has a winner. A *knot* is a t where any of these changes; the pieces between knots are the
    activation regions that the segment crosses. The network is affine on each; neighbouring pieces may have
    the same slope, when the unit that changed has no influence on the output.

    Attributes:
        probe: the segment.
        knots: the parameters t inside the span where an activity changes, ascending, (n_regions - 1,).
            Several units that change at one t make one knot.
        status: "complete", or "non-generic: ..." if some unit is exactly at its kink along a whole piece (the
            segment runs along that kink). Such a unit counts as inactive there; the count is right, but a
            segment beside this one may have other pieces.
        n_on_kink: how often a unit was met on its kink between two neighbouring break points.
        n_evaluations: points at which the network's last layer was evaluated.
        precision: "float64" or "float32", of the tensors; knots are float64.
        tolerance: knots nearer than this part of the span are one.
        provenance: model, precision, version.
    """

    probe: Segment
    knots: Floats
    status: str
    n_on_kink: int
    n_evaluations: int
    precision: str
    tolerance: float
    provenance: Provenance
    _certain: npt.NDArray[np.bool_] = field(repr=False)
    _scores: "Scores" = field(repr=False)

    @property
    def is_exact(self) -> bool:
        """True in float64; in float32 coinciding knots may be told apart, or neighbouring ones not."""
        return self.precision == "float64"

    @property
    def n_regions(self) -> int:
        """The number of activation regions that the segment crosses: knots + 1."""
        return len(self.knots) + 1

    @cached_property
    def n_linear(self) -> int:
        """The number of pieces after merging neighbours of equal slope.

        Two slopes d score / dt are equal if no output differs by more than 1e-9 of the largest, or by more
        than rounding. Where the scores at the knots leave that open, the slopes are computed by the chain
        rule in the pieces' middles.
        """
        doubt = np.flatnonzero(~self._certain)
        edges = self._edges()
        middle = (edges[:-1] + edges[1:]) / 2
        asked = np.union1d(doubt, doubt + 1)
        found = self._scores.slopes(self.probe, middle[asked])
        (left, right), (error, other) = (
            [v[np.searchsorted(asked, doubt + k)] for k in (0, 1)] for v in found
        )
        largest = np.maximum(np.abs(left), np.abs(right)).max(axis=1, initial=0.0)
        equal = np.maximum(SLOPE_TOLERANCE * largest[:, None], error + other)
        bends = (np.abs(right - left) > equal).any(axis=1)
        return 1 + int(self._certain.sum()) + int(bends.sum())

    @cached_property
    def slopes(self) -> Floats:
        """The slope d score / dt of each output on each piece, (n_regions, c), computed when asked for."""
        edges = self._edges()
        return self._scores.slopes(self.probe, (edges[:-1] + edges[1:]) / 2)[0]

    def _edges(self) -> Floats:
        low, high = self.probe.span
        return np.concatenate([[low], self.knots, [high]])

    def plot(self, ax: Any = None) -> Any:
        """Draw the scores along t with their knots, and return the matplotlib Axes."""
        from inscape.drawing.segment import draw_pieces

        edges = self._edges()
        rises = self.slopes * np.diff(edges)[:, None]
        start = self._scores.values(self.probe, edges[:1])
        scores = np.concatenate([start, start + np.cumsum(rises, axis=0)])
        return draw_pieces(edges, scores, ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; slopes are left out, since they may be many."""
        return {
            "schema": 1,
            "kind": "segment pieces",
            "span": list(self.probe.span),
            "n_regions": self.n_regions,
            "knots": self.knots.tolist(),
            "status": self.status,
            "n_on_kink": self.n_on_kink,
            "n_evaluations": self.n_evaluations,
            "is_exact": self.is_exact,
            "precision": self.precision,
            "tolerance": self.tolerance,
            "provenance": self.provenance.to_dict(),
        }

    def __repr__(self) -> str:
        return f"<{self.n_regions} linear pieces on {self.probe!r}, {self.precision}, {self.status}>"


def as_segments(probe: Any) -> list[Segment]:
    """One segment or several of one shape, as a list."""
    segments: list[Any] = [probe] if isinstance(probe, Probe) else list(probe)
    segments = [Segment(*s.vertices) if isinstance(s, Simplex) and s.dim == 1 else s for s in segments]
    wrong = [s for s in segments if not isinstance(s, Segment)]
    if wrong or not segments:
        given = f"a {type(wrong[0]).__name__}" if wrong else "an empty list"
        raise ProbeError(f"expected a Segment or a list of Segments, got {given}")
    shapes = {s.start.shape for s in segments}
    if len(shapes) > 1:
        raise ProbeError(f"the segments of one call must share a shape, got {sorted(shapes)}")
    return segments


def check_arguments(memory: int, tolerance: float, precision: str) -> None:
    """Raise an error for arguments that make no sense."""
    if precision not in PRECISIONS:
        raise PartitionError(unknown_name("precision", precision, PRECISIONS))
    whole_number(memory, "memory", 1, PartitionError, f", in bytes; {MEMORY} is the default")
    if positive_number(tolerance, "tolerance", PartitionError, zero=True) >= 1:
        raise PartitionError(f"tolerance={tolerance} must be at least 0 and below 1: a part of the span")


def graph_on(model: Any, segments: list[Segment]) -> Any:
    """The model's graph on the segments' points, compared with the model at a few of them once."""
    from inscape.partition.linear.confirmed import graph_of

    few = [segments[i] for i in sorted({0, len(segments) // 2, len(segments) - 1})]
    return graph_of(
        model,
        segments[0].input_shape,
        lambda: np.concatenate([s.points(np.linspace(*s.span, 3)) for s in few]),
    )
