"""The linear regions of a network on one probe: the pieces of a segment, or the faces of a plane.

What high and low mean: many regions: the network bends often on this probe; few: it is close to affine there.
When it does not hold: linear regions follow the width of the network as much as what it has learnt, and most
of them change no prediction; those that do are decision regions.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from inscape.arrays import ActivationPatterns, Bools, Floats, Hashes, Int32s, Ints
from inscape.errors import PartitionError
from inscape.partition.region_files import (
    WRITE_ALL,
    Exported,
    border_features,
    polygon_feature,
    well_known_text,
)
from inscape.pictures import Colours, DrawnByClass, Names, Style, finished
from inscape.probes import Probe, Segment
from inscape.probes.plane import Domain, domain_of, scene_of
from inscape.probes.segment import dots_along
from inscape.provenance import Provenance
from inscape.serialising import SCHEMA, check_schema, plain_fields, restored_fields
from inscape.status import Status

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from inscape.partition.linear.planes.subdivision import Subdivision
    from inscape.partition.linear.segments.linear_segments import SegmentScores
    from inscape.pictures import DrawnAxes


KNOT_TOLERANCE = 1e-12
"""Knots nearer than this fraction of the span are one."""
SLOPE_TOLERANCE = 1e-9
"""Slopes that differ by less, relative to the larger, are equal."""
PRECISIONS = ("float64", "float32")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LinearSegment(DrawnByClass, Exported):
    """The pieces of a segment x(t) on which the activity of every unit stays the same.

    A relu is active where its input is positive, a clip is below, between or above its bounds, a max-pool
    window has a winner. A *knot* is a t where any of these changes; the pieces between knots are the
    activation regions that the segment crosses. The network is affine on each; neighbouring pieces may have
    the same slope, when the unit that changed has no influence on the output.

    Attributes:
        probe: the segment.
        knots: the parameters t inside the span where an activity changes, ascending, (n_regions - 1,).
            Several units that change at one t make one knot.
        status: "complete", or "special position: ..." if some unit is exactly at its kink along a whole
            region (the segment runs along that kink). Such a unit counts as inactive there; the count is
            right, but a segment beside this one may have other pieces.
        n_on_kink: how often a unit was met on its kink between two neighbouring breakpoints.
        n_evaluations: points at which the network's last layer was evaluated.
        precision: "float64" or "float32", of the tensors; knots are float64.
        tolerance: knots nearer than this fraction of the span are one.
        provenance: model, precision, version.
        class_names: the class name of each score, if the model has names.
    """

    _drawn: ClassVar[tuple[str, ...]] = ("slopes", "start_scores")
    """What a picture needs of the network."""

    probe: Segment
    knots: Floats
    status: Status
    n_on_kink: int
    n_evaluations: int
    precision: str
    tolerance: float
    provenance: Provenance
    _certain: Bools = field(repr=False)
    _scores: "SegmentScores" = field(repr=False)
    class_names: tuple[str, ...] | None = None

    @property
    def _drawn_labels(self) -> Ints:
        return np.arange(self.start_scores.shape[1])

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
        slopes = self._scores.slopes
        doubt = np.flatnonzero(~self._certain)
        edges = self._edges()
        middle = (edges[:-1] + edges[1:]) / 2
        pieces = np.union1d(doubt, doubt + 1)
        (left, right), (error, other) = (
            [v[np.searchsorted(pieces, doubt + k)] for k in (0, 1)]
            for v in slopes(self.probe, middle[pieces])
        )
        largest = np.maximum(np.abs(left), np.abs(right)).max(axis=1, initial=0.0)
        equal = np.maximum(SLOPE_TOLERANCE * largest[:, None], error + other)
        bends = (np.abs(right - left) > equal).any(axis=1)
        return 1 + int(self._certain.sum()) + int(bends.sum())

    @cached_property
    def slopes(self) -> Floats:
        """The slope d score / dt of each output on each piece, (n_regions, c), computed when first read."""
        edges = self._edges()
        return self._scores.slopes(self.probe, (edges[:-1] + edges[1:]) / 2)[0]

    @cached_property
    def start_scores(self) -> Floats:
        """The scores at the start of the span, (1, c), computed when first read."""
        return self._scores.values(self.probe, self._edges()[:1])

    def _edges(self) -> Floats:
        low, high = self.probe.span
        return np.concatenate([[low], self.knots, [high]])

    def _draw(self, ax: Any, style: Style) -> Any:
        """The scores along t with their knots."""
        from inscape.drawing.segment_curves import draw_pieces

        edges = self._edges()
        rises = self.slopes * np.diff(edges)[:, None]
        scores = np.concatenate([self.start_scores, self.start_scores + np.cumsum(rises, axis=0)])
        dots, classes = dots_along(self.probe, style, self._drawn_labels.tolist(), self.class_names)
        title = f"{self.n_regions:,} linear piece{'' if self.n_regions == 1 else 's'}"
        return draw_pieces(edges, scores, classes=classes, title=title, dots=dots, ax=ax)

    def to_frame(self) -> "pd.DataFrame":
        """A pandas table, one row per piece: where it starts and ends."""
        import pandas as pd

        edges = self._edges()
        return pd.DataFrame({"piece": range(self.n_regions), "start": edges[:-1], "end": edges[1:]})

    def to_dict(self, *, polygons: bool = False) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back.

        Args:
            polygons: whether to write slopes too, which may be many, so that what is read back can be drawn.
        """
        about = {"schema": SCHEMA, "kind": "segment pieces", "n_regions": self.n_regions}
        where = {"span": list(self.probe.span), "probe_data": self.probe.to_dict()}
        fields = plain_fields(self, without=("probe", "_certain", "_scores"))
        drawn = {name: getattr(self, name).tolist() for name in self._drawn} if polygons else {}
        return about | where | {"is_exact": self.is_exact} | fields | drawn

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The pieces that `to_dict` wrote."""
        check_schema(data, "kind", "segment pieces", what="list of segment pieces", error=PartitionError)
        pieces: Self = restored_fields(
            cls,
            data,
            what="list of segment pieces",
            error=PartitionError,
            left_out=("_certain", "_scores"),
            remedy=WRITE_ALL,
            probe=Segment.from_dict(data["probe_data"]),
        )
        vars(pieces).update({name: np.array(data[name]) for name in cls._drawn if name in data})
        return pieces

    def __repr__(self) -> str:
        pieces = f"{self.n_regions} linear piece{'' if self.n_regions == 1 else 's'}"
        return f"<{pieces} on {self.probe!r}, {self.precision}, {self.status}>"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LinearPlane(DrawnByClass, Exported):
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
        class_names: the class name of each label, if the model has names: for data points in a picture.

    >>> import inscape, torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)).double()
    >>> _ = net[0].weight.data.copy_(torch.eye(2)), net[0].bias.data.zero_()  # kinks on both axes
    >>> q = inscape.linear_regions(net, inscape.Patch([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]))
    >>> q.n_regions, q.n_vertices, q.n_edges
    (4, 9, 12)
    """

    _derived: ClassVar[tuple[str, ...]] = ("n_regions", "n_vertices", "n_edges")

    probe: Probe
    status: Status
    n_layers: int
    tolerance: float
    provenance: Provenance
    domain: Domain
    subdivision: "Subdivision"
    class_names: tuple[str, ...] | None = None

    @property
    def is_exact(self) -> bool:
        """True: the subdivision is computed in float64, without sampling."""
        return True

    @cached_property
    def n_regions(self) -> int:
        """The number of faces F: activation regions that meet the probe."""
        return self.subdivision.planar.n_faces

    @cached_property
    def n_vertices(self) -> int:
        """The number of vertices V, corners of the probe included."""
        return len(self.subdivision.planar.xy)

    @cached_property
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
    def edges(self) -> Int32s:
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

    def layer_patterns(self, layer: int) -> ActivationPatterns:
        """The state of every unit of a layer (1, 2, ...) on each face, (F, units).

        0 is below the kink and 1 above; of a unit with two kinks 0, 1, 2; of a max-pool window
        the number of the winner among its entries. If the patterns of all layers would take more than the
        memory that was given, some are computed now, by evaluating the network at the centroids.
        """
        if not 1 <= layer <= self.n_layers:
            raise PartitionError(f"layer={layer} must be from 1 to {self.n_layers}, the layers that were cut")
        return self.subdivision.states(layer - 1)

    @property
    def patterns(self) -> ActivationPatterns:
        """The state of every unit on each face, all layers side by side, (F, units); see `layer_patterns`."""
        states = [self.subdivision.states(k) for k in range(self.n_layers)]
        return np.concatenate(states, axis=1) if states else np.zeros((self.n_regions, 0), np.uint8)

    @cached_property
    def _maps(self) -> tuple[Floats, Floats]:
        from inscape.partition.linear.planes.subdivision import affine_maps

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
        from inscape.partition.linear.planes.complex.dissolve import joined_faces

        left, right = self.adjacency.T  # -1 beyond the border, where no faces are joined
        slopes = self.slopes.reshape(self.n_regions, -1)
        size = np.abs(slopes).max(axis=1, initial=0.0)
        gap = np.abs(slopes[left] - slopes[right]).max(axis=1, initial=0.0)
        is_equal = gap <= SLOPE_TOLERANCE * np.maximum(size[left], size[right])
        one_label = np.zeros(self.n_regions, np.int64)
        _, labels = joined_faces(self.subdivision.planar, one_label, is_equal)
        return len(labels)

    def locate(self, coordinates: npt.ArrayLike) -> Ints:
        """The face in which each point (n, 2) lies, -1 outside; a point on an edge has one of its faces."""
        from inscape.partition.linear.planes.complex.half_edges import locate

        points = np.asarray(coordinates, dtype=np.float64).reshape(-1, 2)
        return locate(self.subdivision.planar, points)

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        colour: Any = "pattern",
        edges: bool = True,
        title: str | None = None,
        class_names: Names | None = None,
        colours: Colours | None = None,
        legend: bool = True,
        points: Any = None,
    ) -> "DrawnAxes":
        """Draw the faces and return the matplotlib Axes.

        Args:
            ax: where to draw; new Axes if None.
            colour: "pattern" (a stable hash of the activation pattern), "layer" (the last layer that cut
                the face out), "slope" (the norm of the slope in the input space), or a number for each
                face, (F,).
            edges: whether to draw the edges.
            title: the title, "" for none; None for the number of regions.
            class_names: the names of the classes of points, as for decision regions.
            colours: their colours, likewise.
            legend: whether to draw the legend of points.
            points: data points x, or (x, y) for points in the colour of their class.
        """
        from inscape.drawing.planes.polygons import draw_faces

        values, kind = self._colours(colour)
        planar = self.subdivision.planar
        style = Style(class_names, colours, legend, points)
        scene, classes = scene_of(self.probe, self.domain, style, (), self.class_names)
        ax = draw_faces(
            planar.xy,
            planar.corners,
            planar.start,
            planar.ends,
            values=values,
            kind=kind,
            edges=edges,
            scene=scene,
            classes=classes,
            title=self._title(),
            ax=ax,
        )
        return finished(ax, title)

    def _title(self) -> str:
        regions = f"{self.n_regions:,} linear region{'' if self.n_regions == 1 else 's'}"
        if self.status.kind == "complete":
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
    def pattern_hashes(self) -> Hashes:
        """A hash of each face's activation pattern, (F,)."""
        return np.asarray(self.subdivision.face_hashes(), np.uint64)

    def to_frame(self) -> "pd.DataFrame":
        """A pandas table, one row per face: its area, a point inside, and its polygon as text (WKT)."""
        import pandas as pd

        s, t = self.centroids.T
        texts = [well_known_text([ring]) for ring in self.polygons]
        columns = {"region": range(self.n_regions), "area": self.areas, "s": s, "t": t}
        return pd.DataFrame(columns | {"polygon": texts})

    def _features(self) -> list[dict[str, Any]]:
        rows = zip(self.areas.tolist(), self.polygons, strict=True)
        features = [
            polygon_feature([ring], kind="region", region=i, area=area) for i, (area, ring) in enumerate(rows)
        ]
        inner = (self.adjacency >= 0).all(axis=1)
        edges = self.vertices[self.edges[inner]]
        lengths = self.domain.lengths(edges[:, 1] - edges[:, 0])
        return features + border_features(edges, self.adjacency[inner], lengths)

    def to_dict(self, *, polygons: bool = False) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back.

        Args:
            polygons: whether to write vertices, faces and areas too, which may be large. With them, what is
                read back can be drawn and asked for its faces again, but not for activity and slopes.
        """
        from inscape.partition.linear.planes.complex.half_edges import written_faces

        about = {"schema": SCHEMA, "kind": "plane regions", "is_exact": self.is_exact}
        where = {"probe": repr(self.probe), "probe_data": self.probe.to_dict()}
        counts = {name: getattr(self, name) for name in self._derived}
        data = about | where | counts | plain_fields(self, without=("probe", "domain", "subdivision"))
        if polygons:
            data |= written_faces(self.subdivision.planar) | {"areas": self.areas.tolist()}
            data["pattern_hashes"] = [f"{number:016x}" for number in self.pattern_hashes.tolist()]
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The regions that `to_dict` wrote, without what the network does on them."""
        check_schema(data, "kind", "plane regions", what="set of plane regions", error=PartitionError)
        probe: Probe = Probe.from_dict(data["probe_data"])
        from inscape.partition.linear.planes.complex.half_edges import WrittenFaces

        domain = domain_of(probe)
        faces = {"subdivision": WrittenFaces.of(data, domain.corners)} if "faces" in data else {}
        regions: Self = restored_fields(
            cls,
            data,
            what="set of plane regions",
            error=PartitionError,
            left_out=("subdivision",),
            remedy=WRITE_ALL,
            probe=probe,
            domain=domain,
            **faces,
        )
        vars(regions).update({name: data[name] for name in cls._derived})
        if "pattern_hashes" in data:
            numbers = [int(text, 16) for text in data["pattern_hashes"]]
            vars(regions)["pattern_hashes"] = np.array(numbers, np.uint64)
        return regions

    def __repr__(self) -> str:
        regions = f"{self.n_regions} linear region{'' if self.n_regions == 1 else 's'}"
        return f"<{regions} on {self.probe!r}, {self.status}>"
