"""Coordinates on a two-dimensional probe: its plane, its polygon there, and the frame of its pictures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from inscape.arrays import Bools, Floats
from inscape.drawing.palette import Classes
from inscape.drawing.planes.frame import Scene
from inscape.errors import PartitionError, ProbeError
from inscape.pictures import Style
from inscape.probes.patch import Patch
from inscape.probes.probe import Probe, nearest
from inscape.probes.simplex import Simplex
from inscape.probes.source import points_near


@dataclass(frozen=True, eq=False)
class Plane:
    """x(s, t) = origin + s axes[0] + t axes[1], flattened.

    Attributes:
        origin: (d,).
        axes: (2, d).
        extent: how large |s| and |t| become: the rounding of coordinates is that of numbers of this size. 0
            if they are known to relative accuracy, which `near_zero.fan` sees to around (0, 0).
    """

    origin: Floats
    axes: Floats
    extent: float = 0.0

    def points(self, xy: Floats) -> Floats:
        """The points of the input space at coordinates (n, 2), (n, d)."""
        return np.asarray(self.origin + xy @ self.axes)

    def sizes(self, xy: Floats) -> Floats:
        """The scale of the numbers from which points were formed, (n, d)."""
        reach = np.maximum(np.abs(xy).max(axis=1, initial=0.0), self.extent)
        return np.asarray(self._offset + reach[:, None] * self._span)

    def reach(self, coordinates: Floats) -> float:
        """The largest of the sizes at one point, (2,)."""
        far = max(abs(float(coordinates[0])), abs(float(coordinates[1])), self.extent)
        return self._reach if far == self.extent else self._size(far)

    @cached_property
    def _reach(self) -> float:
        return self._size(self.extent)

    def _size(self, far: float) -> float:
        return float((self._offset + far * self._span).max())

    @cached_property
    def _offset(self) -> Floats:
        return np.abs(self.origin)

    @cached_property
    def _span(self) -> Floats:
        return np.asarray(np.abs(self.axes).sum(axis=0))


@dataclass(frozen=True, eq=False)
class Domain:
    """A convex polygon in a plane of the input space.

    Attributes:
        plane: where coordinates lie in the input space.
        corners: anticlockwise, (k, 2).
        marks: coordinates of the data points that span the probe, (m, 2).
    """

    plane: Plane
    corners: Floats
    marks: Floats

    @property
    def metric(self) -> Floats:
        """The Gram matrix of the axes: lengths in the input space from coordinates."""
        return np.asarray(self.plane.axes @ self.plane.axes.T)

    def lengths(self, vectors: Floats) -> Floats:
        """The lengths in the input space of vectors of coordinates, (n, 2)."""
        return np.asarray(np.sqrt(np.einsum("ni,ij,nj->n", vectors, self.metric, vectors)))

    def nearest(self, points: Floats, unit: Floats | None = None) -> tuple[Floats, Bools]:
        """The coordinates (n, 2) where points (n, d) are nearest to the plane, and whether they are in it."""
        units = 1.0 if unit is None else unit.reshape(-1)
        return nearest(self.plane.origin / units, self.plane.axes / units, points / units)

    @property
    def area_unit(self) -> float:
        """The area in the input space of a unit square of coordinates."""
        return float(np.sqrt(np.linalg.det(self.metric)))


def domain_of(probe: Probe) -> Domain:
    """A patch in its own coordinates; a triangle true to scale, its first vertex at (0, 0)."""
    if isinstance(probe, Patch):
        plane = Plane(probe.origin.reshape(-1), probe.axes.reshape(2, -1))
        return Domain(plane, probe.corners, probe.marks)
    if isinstance(probe, Simplex) and probe.dim == 2:
        flat = probe.vertices.reshape(3, -1)
        if (axes_and_corners := _true_to_scale(flat)) is None:
            raise ProbeError("the three vertices are on a line: their hull has no area")
        axes, corners = axes_and_corners
        return Domain(Plane(flat[0], axes), corners, corners)
    raise ProbeError(
        f"expected a Patch or a Simplex with three vertices, got a {type(probe).__name__} "
        f"of dimension {probe.dim}"
    )


def drawn_domain(probe: Probe) -> Domain:
    """The domain of a plane in its picture, the same by every method."""
    try:
        return domain_of(probe)
    except ProbeError as error:  # a grid needs no area
        raise PartitionError("the three points are on a line: their hull has no picture") from error


def frame_of(probe: Probe) -> Floats:
    """The corner and the sides of a grid along the generators, (3, 2), in the coordinates of `domain_of`."""
    if isinstance(probe, Patch):
        (s0, s1), (t0, t1) = probe.bounds
        return np.array([[s0, t0], [s1 - s0, 0.0], [0.0, t1 - t0]])
    corners, vertices = domain_of(probe).corners, probe.anchors.reshape(3, -1)
    order = [int(np.flatnonzero((vertices == g.ravel()).all(axis=1))[0]) for g in probe.generators]
    return np.concatenate([corners[order[:1]], corners[order[1:]] - corners[order[0]]])


def scene_of(
    probe: Probe, domain: Domain, style: Style, labels: Iterable[int], known: Sequence[str] | None = None
) -> tuple[Scene, Classes]:
    """What a picture of a plane shows beside its regions, and the names and colours of classes.

    Args:
        probe: the probe.
        domain: its coordinates.
        style: how the user wants classes and points drawn.
        labels: the labels that occur.
        known: the names that the model has for labels 0, 1, ...
    """
    points, y = (None, None) if style.points is None else points_near(style.points, probe)
    classes, own = style.classes(labels, known, y)
    scene = Scene(domain=domain.corners, marks=domain.marks, images=probe.anchors)
    unit = None
    if isinstance(probe, Patch):
        scene = replace(scene, mark_names=probe.mark_names, axis_names=probe.axis_names)
        unit = probe.unit
    if points is not None:
        coordinates, inside = domain.nearest(points, unit)
        scene = replace(scene, points=coordinates, point_labels=own, in_plane=inside)
    return scene, classes


def _true_to_scale(points: Floats) -> tuple[Floats, Floats] | None:
    """Orthonormal axes (2, d) of the plane through three points (3, d), and their coordinates (3, 2).

    The first point has coordinates (0, 0), the second (length of that side, 0), and the third is above that
    side; None if the points are on a line.
    """
    sides = points[1:] - points[0]
    if np.linalg.matrix_rank(sides) < 2:
        return None
    q, r = np.linalg.qr(sides.T)
    sign = np.where(np.diag(r) < 0, -1.0, 1.0)
    return (q * sign).T, np.concatenate([np.zeros((1, 2)), (r * sign[:, None]).T])
