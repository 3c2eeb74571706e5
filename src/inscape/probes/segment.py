"""The segment: a straight line between two points, or a longer or shorter stretch of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats
from inscape.drawing.palette import Classes
from inscape.drawing.segment_curves import Dots
from inscape.errors import ProbeError
from inscape.pictures import Style
from inscape.probes.probe import Probe, as_interval, as_point, nearest
from inscape.probes.source import points_near


@dataclass(frozen=True, eq=False, init=False)
class Segment(Probe):
    """x(t) = start + t (end - start) for t in `span`.

    Args:
        start: the point at t = 0, an array of any shape.
        end: the point at t = 1, another point of that shape.
        span: the interval of t, such as (-1, 2) to look beyond both points.

    >>> Segment([0.0, 0.0], [2.0, 4.0]).points([0.5]).tolist()
    [[1.0, 2.0]]
    """

    start: Floats
    end: Floats
    span: tuple[float, float]

    def __init__(
        self, start: npt.ArrayLike, end: npt.ArrayLike, span: tuple[float, float] = (0.0, 1.0)
    ) -> None:
        a, b = as_point(start, "start"), as_point(end, "end")
        if a.shape != b.shape:
            raise ProbeError(f"start has shape {a.shape} but end has shape {b.shape}: they must agree")
        if (a == b).all():
            raise ProbeError("start and end are the same point: a segment needs two different points")
        object.__setattr__(self, "start", a)
        object.__setattr__(self, "end", b)
        object.__setattr__(self, "span", as_interval(span, "span"))

    @property
    def dim(self) -> int:
        """One."""
        return 1

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of either end."""
        return self.start.shape

    @property
    def generators(self) -> Floats:
        """The two ends of the span."""
        return self.anchors if self.span == (0.0, 1.0) else self.points(self.span)

    @property
    def anchors(self) -> Floats:
        """The points at t = 0 and t = 1."""
        return np.array([self.start, self.end])

    def points(self, parameters: npt.ArrayLike) -> Floats:
        """The points at parameters t, (n, *input_shape); x(0) and x(1) are exactly `start` and `end`."""
        t = np.asarray(parameters, dtype=np.float64).reshape(-1, *(1,) * self.start.ndim)
        return (1 - t) * self.start + t * self.end

    def __repr__(self) -> str:
        return f"Segment(input_shape={self.start.shape}, span=({self.span[0]:.4g}, {self.span[1]:.4g}))"


def known_segment(ends: Floats, span: tuple[float, float]) -> Segment:
    """The segment between the two rows of an array of its own, known to be finite and different.

    Without a check it takes a tenth of the time.
    """
    ends.flags.writeable = False
    segment = object.__new__(Segment)
    vars(segment).update(start=ends[0], end=ends[1], span=span)
    return segment


def as_segment(probe: Probe) -> Segment:
    """A probe of dimension 1 as a segment: itself, or the one between the two vertices of a simplex."""
    if isinstance(probe, Segment):
        return probe
    if probe.dim != 1:
        raise ProbeError(
            f"expected a probe of dimension 1, got a {type(probe).__name__} of dimension {probe.dim}"
        )
    return Segment(*probe.anchors)


def as_segments(probes: Any) -> list[Segment]:
    """One probe of dimension 1, or several of one shape, as a list of segments."""
    given: list[Any] = [probes] if isinstance(probes, Probe) else list(probes)
    if {type(p) for p in given} == {Segment} and len({p.start.shape for p in given}) == 1:
        return given
    wrong = [p for p in given if not isinstance(p, Probe) or p.dim != 1]
    if wrong or not given:
        what = f"a {type(wrong[0]).__name__}" if wrong else "an empty list"
        raise ProbeError(f"expected a Segment or a list of Segments, got {what}")
    shapes = {p.input_shape for p in given}
    if len(shapes) > 1:
        raise ProbeError(f"the segments of one call must share a shape, got {sorted(shapes)}")
    return [as_segment(p) for p in given]


def dots_along(
    segment: Segment, style: Style, labels: Iterable[int], known: Sequence[str] | None = None
) -> tuple[Dots | None, Classes]:
    """The data points that a picture of a segment shows, and the names and colours of classes.

    Args:
        segment: the segment.
        style: how the user wants classes and points drawn.
        labels: the labels that occur.
        known: the names that the model has for labels 0, 1, ...
    """
    if style.points is None:
        return None, style.classes(labels, known)[0]
    points, y = points_near(style.points, segment)
    classes, own = style.classes(labels, known, y)
    start, way = segment.start.reshape(-1), (segment.end - segment.start).reshape(1, -1)
    t, is_on = nearest(start, way, points)
    return Dots(t[:, 0], own, is_on), classes
