"""The linear regions of a network on a plane."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.arguments import whole_number
from inscape.arrays import Floats, Ints
from inscape.errors import PartitionError
from inscape.models import Model
from inscape.probes import Probe
from inscape.progress import Meter
from inscape.provenance import Provenance

if TYPE_CHECKING:
    from inscape.partition.linear.planes.domain import Domain
    from inscape.partition.linear.planes.subdivision import Subdivision


COMPLETE = "complete"
BUDGET = "budget reached"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PlaneRegions:
    """The faces of a plane on which the activity of every unit stays the same.

    A relu is active where its input is positive, a clip is below, between or above its bounds, a max-pool
    window has a winner. On every face the network is one affine map. Faces are convex; with V vertices, E
    edges and F faces (corners and border of the probe included), V - E + F = 1, which is checked, as is
    that areas add up.

    Coordinates are those of the patch; of a triangle, those of its plane, true to scale, the first vertex
    at (0, 0) and the second at (length of that side, 0). Areas and lengths are those in the input space.

    Attributes:
        probe: the patch or triangle.
        status: "complete", or "budget reached" if another layer would have made more than `max_regions`
            faces: then the faces are those of the first `n_layers` layers.
        n_layers: how many piecewise-linear layers are taken into account.
        tolerance: a value this small, relative to the terms that it was summed from, counts as zero, which is
            how units that coincide, or meet in one point, are told.
        provenance: model, precision, version.
        domain: the probe as a convex polygon: where coordinates lie in the input space, and its corners.
        subdivision: the planar complex of the faces, with what the network does on each.
    """

    probe: Probe
    status: str
    n_layers: int
    tolerance: float
    provenance: Provenance
    domain: "Domain"
    subdivision: "Subdivision"

    @property
    def is_exact(self) -> bool:
        """True: the subdivision is computed in float64, without sampling."""
        return True

    @property
    def n_regions(self) -> int:
        """The number of faces F: activation regions that meet the probe."""
        return self.subdivision.planar.n_faces

    @property
    def n_vertices(self) -> int:
        """The number of vertices V, corners of the probe included."""
        return len(self.subdivision.planar.xy)

    @property
    def n_edges(self) -> int:
        """The number of edges E, the probe's border included."""
        return len(self.subdivision.planar.ends)

    @property
    def n_evaluations(self) -> int:
        """The points at which the network was evaluated: its vertices."""
        return self.n_vertices

    @property
    def vertices(self) -> Floats:
        """The coordinates of the vertices, (V, 2)."""
        return self.subdivision.planar.xy

    @property
    def edges(self) -> npt.NDArray[np.int32]:
        """The two vertices of each edge, (E, 2)."""
        return self.subdivision.planar.ends

    @cached_property
    def faces(self) -> list[Ints]:
        """The vertices of each face, anticlockwise."""
        planar = self.subdivision.planar
        return np.split(planar.corners.astype(np.int64), planar.start[1:-1])

    @cached_property
    def polygons(self) -> list[Floats]:
        """The coordinates of the corners of each face, anticlockwise, (k, 2) each."""
        planar = self.subdivision.planar
        return np.split(planar.xy[planar.corners], planar.start[1:-1])

    @cached_property
    def adjacency(self) -> Ints:
        """The faces on both sides of each edge, -1 beyond the border, (E, 2)."""
        return self.subdivision.planar.sides()

    @cached_property
    def areas(self) -> Floats:
        """The area of each face in the input space, (F,)."""
        return self.subdivision.planar.areas() * self.domain.area_unit

    @cached_property
    def centroids(self) -> Floats:
        """The mean of the corners of each face, (F, 2): a point inside."""
        return self.subdivision.planar.centroids()

    @cached_property
    def edge_layers(self) -> Ints:
        """The layer (1, 2, ...) whose unit changes across each edge, 0 for the probe's border, (E,)."""
        born = self.subdivision.planar.born
        return np.searchsorted(np.array(self.subdivision.layers), born, side="left") + (born >= 0)

    @property
    def birth_layers(self) -> Ints:
        """The last layer (1, 2, ...) that cut each face out, 0 if none did, (F,)."""
        return self.subdivision.birth

    def layer_patterns(self, layer: int) -> Any:
        """The state of every unit of a layer (1, 2, ...) on each face, (F, units).

        0 is below the kink and 1 above; of a unit with two kinks 0, 1, 2; of a max-pool window
        the place of the winner among its entries. If the patterns of all layers would take more than the
        memory that was given, some are found by evaluating the network at the centroids now.
        """
        if not 1 <= layer <= self.n_layers:
            raise PartitionError(f"layer={layer} must be from 1 to {self.n_layers}, the layers that were cut")
        return self.subdivision.states(layer - 1)

    @property
    def patterns(self) -> Any:
        """The state of every unit on each face, all layers side by side, (F, units); see `layer_patterns`."""
        states = [self.subdivision.states(k) for k in range(self.n_layers)]
        return np.concatenate(states, axis=1) if states else np.zeros((self.n_regions, 0), np.uint8)

    @cached_property
    def _maps(self) -> tuple[Floats, Floats]:
        from inscape.partition.linear.planes.values.at_points import affine_maps

        return affine_maps(self.subdivision.graph, self.domain.plane, self.centroids)

    @property
    def slopes(self) -> Floats:
        """The slope of each output along both coordinates, on each face, (F, c, 2)."""
        return self._maps[0]

    @property
    def offsets(self) -> Floats:
        """Each face's affine map at (0, 0), (F, c): the outputs are offsets + slopes @ (s, t)."""
        return self._maps[1]

    @cached_property
    def n_linear(self) -> int:
        """The number of regions after merging neighbouring faces of equal slope."""
        from inscape.partition.linear.planes.values.at_points import n_merged

        return n_merged(self.slopes, self.adjacency)

    def locate(self, coordinates: npt.ArrayLike) -> Ints:
        """The face in which each point (n, 2) lies, -1 outside; a point on an edge has one of its faces."""
        from inscape.partition.linear.planes.complex.locate import locate

        points = np.asarray(coordinates, dtype=np.float64).reshape(-1, 2)
        return locate(self.subdivision.planar, points)

    def plot(self, ax: Any = None, *, colour: Any = "pattern", edges: bool = True) -> Any:
        """Draw the faces and return the matplotlib Axes.

        Args:
            ax: where to draw; new Axes if None.
            colour: "pattern" (a stable hash of the activation pattern), "layer" (the last layer that cut
                the face out), "slope" (the norm of the slope in the input space), or a number for each
                face, (F,).
            edges: whether to draw the edges.
        """
        from inscape.drawing.planes.faces import draw_faces

        values, kind = self._colours(colour)
        planar = self.subdivision.planar
        return draw_faces(
            planar.xy,
            planar.corners,
            planar.start,
            planar.ends,
            values=values,
            kind=kind,
            edges=edges,
            domain=self.domain.corners,
            marks=self.domain.marks,
            images=self.probe.anchors,
            title=self._title(),
            ax=ax,
        )

    def _title(self) -> str:
        regions = f"{self.n_regions:,} linear region{'' if self.n_regions == 1 else 's'}"
        if self.status == COMPLETE:
            return regions
        return f"{regions} of the first {self.n_layers} layer{'' if self.n_layers == 1 else 's'}"

    def _colours(self, colour: Any) -> tuple[Any, str]:
        if isinstance(colour, str):
            if colour == "pattern":
                return self.pattern_hashes, "pattern"
            if colour == "layer":
                return self.birth_layers, "layer"
            if colour == "slope":
                inverse = np.linalg.inv(self.domain.metric)
                squared = np.einsum("fci,ij,fcj->f", self.slopes, inverse, self.slopes)
                return np.sqrt(np.maximum(squared, 0.0)), "slope norm"
            raise PartitionError(
                f"colour={colour!r} must be 'pattern', 'layer', 'slope' or an array with a number per face"
            )
        values = np.asarray(colour)
        if values.shape != (self.n_regions,):
            raise PartitionError(
                f"colour must have one number per face, ({self.n_regions},), got {values.shape}"
            )
        return values, "value"

    @cached_property
    def pattern_hashes(self) -> npt.NDArray[np.uint64]:
        """A number for each face that depends on its activation pattern only, (F,)."""
        return np.asarray(self.subdivision.face_hashes(), np.uint64)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; the subdivision itself is left out, since it may be large."""
        return {
            "schema": 1,
            "kind": "plane regions",
            "probe": repr(self.probe),
            "n_regions": self.n_regions,
            "n_vertices": self.n_vertices,
            "n_edges": self.n_edges,
            "n_layers": self.n_layers,
            "status": self.status,
            "is_exact": self.is_exact,
            "tolerance": self.tolerance,
            "provenance": self.provenance.to_dict(),
        }

    def __repr__(self) -> str:
        return f"<{self.n_regions} linear regions on {self.probe!r}, {self.status}>"


def plane_regions(
    model: Model, probe: Probe, *, n_layers: int | None, max_regions: int | None, memory: int, meter: Meter
) -> PlaneRegions:
    """The linear regions on one plane; `linear_regions` documents the arguments."""
    from inscape.partition.linear.planes.subdivision import subdivision_on
    from inscape.partition.linear.segments.breakpoints import ROUNDING

    if n_layers is not None:
        n_layers = whole_number(n_layers, "n_layers", 1, PartitionError)
    if max_regions is not None:
        max_regions = whole_number(max_regions, "max_regions", 1, PartitionError)
    subdivision, domain = subdivision_on(
        model, probe, n_layers=n_layers, max_faces=max_regions or math.inf, memory=memory, meter=meter
    )
    return PlaneRegions(
        probe=probe,
        status=COMPLETE if subdivision.is_complete else BUDGET,
        n_layers=len(subdivision.layers),
        tolerance=ROUNDING * float(np.finfo(np.float64).eps),
        provenance=Provenance.of(model, dtype="float64"),
        domain=domain,
        subdivision=subdivision,
    )
