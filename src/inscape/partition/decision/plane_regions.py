"""Exact decision regions on a plane: faces of one label joined across their edges."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats, Ints
from inscape.partition.decision.regions import DecisionRegions

if TYPE_CHECKING:
    from inscape.partition.linear.planes.domain import Domain
    from inscape.partition.linear.planes.subdivision import Subdivision


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PlaneDecision(DecisionRegions):
    """Exact decision regions on a patch or a triangle.

    Coordinates are those of the patch; of a triangle, those of its plane, true to scale, the first vertex
    at (0, 0) and the second at (length of that side, 0). Areas and lengths are those in the input space.

    Attributes:
        face_regions: the region of each face of the subdivision by linear regions and label changes, (f,).
        domain: the probe as a convex polygon: where coordinates lie in the input space, and its corners.
        subdivision: the planar complex of the faces, with what the network does on each.
    """

    face_regions: Ints
    domain: "Domain"
    subdivision: "Subdivision"

    @cached_property
    def polygons(self) -> list[tuple[Floats, ...]]:
        """The boundary of each region as closed rings of coordinates (k, 2).

        The first ring runs anticlockwise around the region, the others clockwise around its holes, so that
        the signed areas of all rings add up to the region's.
        """
        from inscape.partition.linear.planes.complex.rings import rings

        return rings(self.subdivision.planar, self.face_regions, self.n_regions)

    @property
    def corner_labels(self) -> Ints:
        """The labels of the faces at the probe's corners."""
        planar = self.subdivision.planar
        at_corner = planar.fixed[planar.corners]
        return np.asarray(self.labels[self.face_regions[planar.loop_faces[at_corner]]])

    @cached_property
    def areas(self) -> Floats:
        """The area of each region in the input space, (n_regions,)."""
        weights = self.subdivision.planar.areas() * self.domain.area_unit
        return np.bincount(self.face_regions, weights=weights, minlength=self.n_regions).astype(np.float64)

    @cached_property
    def boundary(self) -> Floats:
        """The ends of the straight pieces on which the label changes, (n_boundary_pieces, 2, 2)."""
        planar = self.subdivision.planar
        return planar.xy[planar.ends[self._is_boundary]]

    @property
    def n_boundary_pieces(self) -> int:
        """How many straight pieces the decision boundary has."""
        return int(self._is_boundary.sum())

    @cached_property
    def boundary_length(self) -> float:
        """The length of the decision boundary in the input space; the probe's border is not part of it."""
        ends = self.boundary
        return float(self.domain.lengths(ends[:, 1] - ends[:, 0]).sum())

    @cached_property
    def _is_boundary(self) -> npt.NDArray[np.bool_]:
        left, right = self.subdivision.planar.sides().T
        inside: npt.NDArray[np.bool_] = (left >= 0) & (right >= 0)
        inside[inside] = self.face_regions[left[inside]] != self.face_regions[right[inside]]
        return inside

    def locate(self, coordinates: npt.ArrayLike) -> Ints:
        """The region in which each point (n, 2) lies, -1 outside the probe."""
        from inscape.partition.linear.planes.complex.locate import locate

        faces = locate(self.subdivision.planar, np.asarray(coordinates, dtype=np.float64).reshape(-1, 2))
        return np.where(faces >= 0, self.face_regions[faces], -1)

    def plot(self, ax: Any = None) -> Any:
        """Draw the regions filled by class, over the linear regions, and the spanning points."""
        from inscape.drawing.planes.decision import draw_decision_faces

        planar = self.subdivision.planar
        return draw_decision_faces(
            planar.xy,
            planar.corners,
            planar.start,
            planar.ends,
            is_boundary=self._is_boundary,
            face_regions=self.face_regions,
            region_labels=self.labels,
            names={int(label): self._name(int(label)) for label in np.unique(self.labels)},
            domain=self.domain.corners,
            marks=self.domain.marks,
            images=self.probe.anchors,
            ax=ax,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, with areas and the boundary's length, without the polygons, which may be large."""
        return super().to_dict() | {
            "areas": self.areas.tolist(),
            "boundary_length": self.boundary_length,
            "n_boundary_pieces": self.n_boundary_pieces,
        }
