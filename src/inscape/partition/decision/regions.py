"""The decision regions of one probe, as every method returns them: segment, plane, grid or mesh.

What high and low mean: many regions: between the points of this probe the label changes often, or back and
forth; one region: it never changes. When it does not hold: one probe is one sample, so compare models by
`region_count`, the mean over many; and a model that fits nothing can have few regions.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from inscape.arrays import Array, Bools, Floats, Int32s, Ints
from inscape.errors import PartitionError
from inscape.models import Model
from inscape.models.class_names import name_of
from inscape.partition.region_files import (
    WRITE_ALL,
    Exported,
    border_features,
    polygon_feature,
    well_known_text,
)
from inscape.pictures import DrawnByClass, Style
from inscape.probes import Probe
from inscape.probes.plane import Domain, domain_of, drawn_domain, frame_of, scene_of
from inscape.probes.segment import as_segment, dots_along
from inscape.provenance import Provenance
from inscape.serialising import SCHEMA, check_schema, plain, plain_fields, restored_fields
from inscape.status import Status

if TYPE_CHECKING:
    import pandas as pd

    from inscape.partition.decision.exact.trees.on_planes import TreeFaces
    from inscape.partition.linear.planes.subdivision import Subdivision

KIND = "decision regions"
UNCERTAIN = ("not_converged", "not_deterministic")
"""Kinds of status of which a picture alone would not tell."""
PIXELS = 600
"""Per side of the picture of a mesh."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DecisionRegions(DrawnByClass, Exported):
    """Maximal connected sets of equal prediction on a probe (Def. 1-3 of Li et al. 2025, arXiv 2505.11370).

    Attributes:
        probe: the probe.
        labels: the predicted label of each region, (n_regions,).
        method: how the regions were found: "exact", "adaptive" or "grid".
        is_exact: whether the count is the true one; a grid can miss regions narrower than its spacing
            and count one that is thinner than it somewhere as several.
        status: on a grid "converged" if half the resolution gives the same count, adaptively if no place is
            left that could hide a region, else "not converged in resolution", and why; "convergence not
            shown" instead of "converged" where there are no scores or they are piecewise constant, so that
            nothing tells how near the next boundary is; exact results are "complete", with a word on ties
            where there are any.
        n_evaluations: at how many points the model was evaluated.
        resolution: grid points per axis; for the adaptive method what was asked for, if anything.
        connectivity: which grid points are neighbours, "face" or "full"; None without a grid.
        class_names: the class name of each label, if the model has names.
        provenance: model, precision, version.
        missed: an estimate of the regions that were not found, where the method makes one.
        missed_basis: what that estimate rests on.
        reason: why this method was taken.
    """

    on: ClassVar[str]
    _left_out: ClassVar[tuple[str, ...]] = ()
    _has_samples: ClassVar[bool] = False

    probe: Probe
    labels: Ints
    method: str
    is_exact: bool
    status: Status
    n_evaluations: int
    resolution: int | None
    connectivity: str | None
    class_names: tuple[str, ...] | None
    provenance: Provenance
    missed: float | None = None
    missed_basis: str | None = None
    reason: str = ""

    @property
    def n_regions(self) -> int:
        """The number of regions."""
        return len(self.labels)

    @property
    def corner_labels(self) -> Ints:
        """The labels at the probe's corners, where an exact method knows them."""
        raise NotImplementedError

    def to_dict(self, *, polygons: bool = False) -> dict[str, Any]:
        """Plain JSON, without samples, since they may be large; `from_dict` reads it back.

        Args:
            polygons: whether to write the polygons of an exact plane too, or the samples of another result,
                so that what is read back can be drawn.
        """
        about = {"schema": SCHEMA, "kind": KIND, "on": self.on, "n_regions": self.n_regions}
        where = {"probe": repr(self.probe), "probe_data": self.probe.to_dict()}
        without = () if polygons and self._has_samples else self._left_out
        return about | where | plain_fields(self, without=("probe", *without))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The regions that `to_dict` wrote: of any kind if read by `DecisionRegions`, else of this one."""
        check_schema(data, "kind", KIND, what="decision regions", error=PartitionError)
        kinds = {c.on: c for c in (DecisionRegions.__subclasses__() if cls is DecisionRegions else [cls])}
        if data.get("on") not in kinds:
            raise PartitionError(f"not decision regions on a {' or '.join(sorted(kinds))}: {str(data)[:80]}")
        regions: Self = kinds[data["on"]]._restored(data, Probe.from_dict(data["probe_data"]))
        return regions

    @classmethod
    def _restored(cls, data: dict[str, Any], probe: Probe) -> Any:
        left_out = [name for name in cls._left_out if not cls._has_samples or name not in data]
        return restored_fields(
            cls,
            data,
            what="decision regions",
            error=PartitionError,
            left_out=left_out,
            remedy=WRITE_ALL,
            probe=probe,
        )

    def __repr__(self) -> str:
        kind = "exactly" if self.is_exact else f"by {self.method}"
        regions = f"{self.n_regions} decision region{'' if self.n_regions == 1 else 's'}"
        return f"<{regions} on {self.probe!r}, {kind}, {self.status}>"

    def _columns(self) -> dict[str, Any]:
        labels = self.labels.tolist()
        names = [name_of(label, self.class_names) for label in labels]
        return {"region": range(self.n_regions), "label": labels, "class_name": names}

    def _title(self) -> str:
        count = f"{self.n_regions:,} decision region{'' if self.n_regions == 1 else 's'}"
        return f"{count}, {self.status.heading}" if self.status.kind in UNCERTAIN else count


Regions = TypeVar("Regions", bound=DecisionRegions)


def maker(kind: type[Regions], **common: Any) -> Callable[[dict[str, Any]], Regions]:
    """What makes results of a kind from the fields that they do not have in common, in a fifth of the time.

    A frozen dataclass sets its fields one by one, which takes longer than to find a region or two.
    """
    common = {f.name: f.default for f in fields(kind) if f.default is not MISSING} | common

    def made(own: dict[str, Any]) -> Regions:
        regions = object.__new__(kind)
        object.__setattr__(regions, "__dict__", common | own)
        return regions

    return made


class TreeCounts(NamedTuple):
    """What was counted on the way along a segment, or over a plane, of a tree ensemble.

    Attributes:
        n_tied: the pieces or faces where two classes share the top score, and the model's rule decides.
        n_narrow: the regions that `predict` sees and that are no wider than the spacings, at the two splits
            that bound them, of the numbers that the trees can tell apart (float32, or float64 in histogram
            trees), or than the rounding of x(t) to float64; they do not count unless asked for. On a plane:
            how often a split would have cut off less than that.
        n_lone: the ends of the span (0 to 2) that lie on a split and are alone on its other side, with
            another label than the region that they bound; such a point is not a region.
        n_nodes: the nodes that were visited; on a plane, those that the plane meets.
        n_asked: the pieces or faces where sums are so close that the model itself was asked.
    """

    n_tied: int
    n_narrow: int
    n_lone: int
    n_nodes: int
    n_asked: int = 0


class TopScores(NamedTuple):
    """Parameters t (n,), the two highest scores there (n, 2), and whose they are (n, 2)."""

    t: Floats
    """The parameters, ascending, (n,)."""
    scores: Array
    """The highest score there and the next, (n, 2)."""
    labels: Ints
    """Whose they are, (n, 2)."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DecisionSegment(DecisionRegions):
    """Decision regions on a one-dimensional probe, in the order of t.

    Attributes:
        boundaries: the parameters t where the label changes, (n_regions - 1,); on a grid, half-way
            between the two samples; adaptively, where the chords of the two scores cross between them.
        span: the interval of t.
        samples: the parameters t at which the model was evaluated, if the method samples.
        top: the two highest scores at the samples, if the model has scores.
        model: where to get more of them from for a picture, if the method does not sample evenly.
        n_pieces: if exact, the intervals on which the scores are linear, or those of trees constant; of other
            estimators, those on which nobody changes places.
        trees: of tree ensembles, what else was counted.
    """

    on: ClassVar[str] = "segment"
    _left_out: ClassVar[tuple[str, ...]] = ("samples", "top", "model")

    boundaries: Floats
    span: tuple[float, float]
    samples: Floats | None = None
    top: TopScores | None = None
    model: Model | None = None
    n_pieces: int | None = None
    trees: TreeCounts | None = None

    @property
    def corner_labels(self) -> Ints:
        """The labels at both ends."""
        return self.labels[[0, -1]]

    def to_frame(self) -> "pd.DataFrame":
        """A pandas table, one row per region: its label, class name, and where it starts and ends."""
        import pandas as pd

        edges = np.concatenate([[self.span[0]], self.boundaries, [self.span[1]]])
        return pd.DataFrame(self._columns() | {"start": edges[:-1], "end": edges[1:]})

    def to_dict(self, *, polygons: bool = False) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back.

        Args:
            polygons: whether to write the scores that a picture shows too.
        """
        top = self._top_scores() if polygons else None
        return super().to_dict() | ({} if top is None else {"top": [values.tolist() for values in top]})

    @classmethod
    def _restored(cls, data: dict[str, Any], probe: Probe) -> Any:
        top = TopScores(*map(np.array, data["top"])) if "top" in data else None
        return restored_fields(
            cls,
            data,
            what="decision regions",
            error=PartitionError,
            left_out=cls._left_out,
            probe=probe,
            top=top,
        )

    def _top_scores(self) -> TopScores | None:
        """The two highest scores along t, evaluated now if the model is there and has not changed."""
        model = self.model
        if model is not None and model.has_scores and model.fingerprint() == self.provenance.fingerprint:
            return sample_top_scores(model, self.probe, self.boundaries)
        return self.top

    def _draw(self, ax: Any, style: Style) -> Any:
        """The labels along t, and the two highest scores where the model has scores.

        Scores of an exact or adaptive result are evaluated now, at 400 even steps; if the model has changed
        in the meantime, only those that are known are drawn.
        """
        from inscape.drawing.segment_curves import draw_segment

        top = self._top_scores()
        known = self.labels if top is None else np.concatenate([self.labels, top.labels.ravel()])
        dots, classes = dots_along(as_segment(self.probe), style, np.unique(known), self.class_names)
        return draw_segment(
            self.boundaries,
            self.labels,
            self.span,
            classes=classes,
            title=self._title(),
            samples=None if top is None else top.t,
            top_scores=None if top is None else top.scores,
            top_labels=None if top is None else top.labels,
            anchors=self.probe.anchors,
            dots=dots,
            ax=ax,
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DecisionGrid(DecisionRegions):
    """Decision regions on a grid in two or more dimensions.

    Attributes:
        coordinates: the integer grid coordinates of the samples, (p, d).
        sample_labels: the label at each sample, (p,).
        sample_regions: the region of each sample, an index into `labels`, (p,).
    """

    on: ClassVar[str] = "grid"
    _left_out: ClassVar[tuple[str, ...]] = ("coordinates", "sample_labels", "sample_regions")
    _has_samples: ClassVar[bool] = True

    coordinates: Ints = field()
    sample_labels: Ints
    sample_regions: Int32s

    def to_frame(self) -> "pd.DataFrame":
        """A pandas table, one row per region: its label, class name, and its share of the samples."""
        import pandas as pd

        share = np.bincount(self.sample_regions, minlength=self.n_regions) / len(self.sample_regions)
        return pd.DataFrame(self._columns() | {"share": share})

    def image(self) -> Ints:
        """The regions as an array (resolution,) * d of indices into `labels`, -1 outside the probe."""
        d, r = self.coordinates.shape[1], self.resolution
        assert r is not None
        grid = np.full((r,) * d, -1, dtype=np.int64)
        grid[tuple(self.coordinates.T)] = self.sample_regions
        return grid

    def _draw(self, ax: Any, style: Style) -> Any:
        """The filled regions, the spanning points (images shown as images) and a class legend."""
        return _draw_image(self, ax, style)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DecisionPlane(DecisionRegions):
    """Exact decision regions on a patch or a triangle.

    Coordinates are those of the patch; of a triangle, those of its plane, true to scale, the first vertex
    at (0, 0) and the second at (length of that side, 0). Areas and lengths are those in the input space.

    Attributes:
        face_regions: the region of each face of the subdivision, (f,): of a network by linear regions and
            label changes; of trees by as many splits as it took to be certain of the label on each face.
        domain: the probe as a convex polygon: where coordinates lie in the input space, and its corners.
        subdivision: the planar complex of the faces, with what the model does on each.
        trees: of tree ensembles, what else was counted.
    """

    on: ClassVar[str] = "plane"
    _left_out: ClassVar[tuple[str, ...]] = ("face_regions", "domain", "subdivision")
    _derived: ClassVar[tuple[str, ...]] = ("areas", "boundary_length", "n_boundary_pieces")

    face_regions: Ints
    domain: Domain
    subdivision: "Subdivision | TreeFaces"
    trees: TreeCounts | None = None

    @cached_property
    def polygons(self) -> list[tuple[Floats, ...]]:
        """The boundary of each region as rings of coordinates (k, 2), whose first corner is not repeated.

        The first ring runs anticlockwise around the region, the others clockwise around its holes, so that
        the signed areas of all rings add up to the region's.
        """
        from inscape.partition.linear.planes.complex.dissolve import rings

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
        """The ends of the edges across which the label changes, (n_boundary_pieces, 2, 2)."""
        planar = self.subdivision.planar
        return planar.xy[planar.ends[self._is_boundary]]

    @cached_property
    def n_boundary_pieces(self) -> int:
        """How many edges the decision boundary has."""
        return int(self._is_boundary.sum())

    @cached_property
    def boundary_length(self) -> float:
        """The length of the decision boundary in the input space; the probe's border is not part of it."""
        ends = self.boundary
        return float(self.domain.lengths(ends[:, 1] - ends[:, 0]).sum())

    @cached_property
    def _sides(self) -> Ints:
        """The regions to the left and to the right of each edge, -1 outside, (e, 2)."""
        faces = self.subdivision.planar.sides()
        return np.where(faces >= 0, self.face_regions[faces], -1)

    @cached_property
    def _is_boundary(self) -> Bools:
        left, right = self._sides.T
        return np.asarray((left != right) & (left >= 0) & (right >= 0))

    def locate(self, coordinates: npt.ArrayLike) -> Ints:
        """The region in which each point (n, 2) lies, -1 outside the probe."""
        from inscape.partition.linear.planes.complex.half_edges import locate

        faces = locate(self.subdivision.planar, np.asarray(coordinates, dtype=np.float64).reshape(-1, 2))
        return np.where(faces >= 0, self.face_regions[faces], -1)

    def _draw(self, ax: Any, style: Style) -> Any:
        """The regions filled by class, over the linear regions of a network, and the spanning points."""
        from inscape.drawing.planes.polygons import draw_decision_faces

        planar = self.subdivision.planar
        drawn = (self._sides[:, 0] != self._sides[:, 1]) | (self.trees is None)
        scene, classes = scene_of(self.probe, self.domain, style, self.labels, self.class_names)
        return draw_decision_faces(
            planar.xy,
            planar.corners,
            planar.start,
            planar.ends[drawn],
            sides=self._sides[drawn],
            face_regions=self.face_regions,
            region_labels=self.labels,
            classes=classes,
            scene=scene,
            title=self._title(),
            ax=ax,
        )

    def to_frame(self) -> "pd.DataFrame":
        """A pandas table, one row per region: label, class name, area, holes, the polygon as text (WKT)."""
        import pandas as pd

        return pd.DataFrame(
            self._columns()
            | {
                "area": self.areas,
                "n_holes": [len(rings) - 1 for rings in self.polygons],
                "polygon": [well_known_text(rings) for rings in self.polygons],
            }
        )

    def _features(self) -> list[dict[str, Any]]:
        rows = zip(self.labels.tolist(), self.areas.tolist(), self.polygons, strict=True)
        features = [
            polygon_feature(
                rings,
                kind="region",
                region=i,
                label=label,
                class_name=name_of(label, self.class_names),
                area=area,
            )
            for i, (label, area, rings) in enumerate(rows)
        ]
        edges = self.boundary
        lengths = self.domain.lengths(edges[:, 1] - edges[:, 0])
        return features + border_features(edges, self._sides[self._is_boundary], lengths)

    def to_dict(self, *, polygons: bool = False) -> dict[str, Any]:
        """Plain JSON, with areas and the boundary's length; `from_dict` reads it back.

        Args:
            polygons: whether to write the polygons too, their borders and all faces, which may be large. With
                them, what is read back can be drawn and asked again.
        """
        from inscape.partition.linear.planes.complex.half_edges import written_faces

        data = super().to_dict() | {name: plain(getattr(self, name)) for name in self._derived}
        if polygons:
            data["polygons"] = [[ring.tolist() for ring in rings] for rings in self.polygons]
            data["boundary"] = self.boundary.tolist()
            data["boundary_regions"] = np.sort(self._sides[self._is_boundary], axis=1).tolist()
            data |= written_faces(self.subdivision.planar)
            data["face_regions"] = self.face_regions.tolist()
        return data

    @classmethod
    def _restored(cls, data: dict[str, Any], probe: Probe) -> Any:
        from inscape.partition.linear.planes.complex.half_edges import WrittenFaces

        domain = domain_of(probe)
        faces = {"subdivision": WrittenFaces.of(data, domain.corners)} if "faces" in data else {}
        regions = restored_fields(
            cls,
            data,
            what="decision regions",
            error=PartitionError,
            left_out=("subdivision",) if faces else ("face_regions", "subdivision"),
            remedy=WRITE_ALL,
            probe=probe,
            domain=domain,
            **faces,
        )
        vars(regions).update({name: data[name] for name in cls._derived})
        vars(regions)["areas"] = np.array(data["areas"], dtype=np.float64)
        return regions


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DecisionMesh(DecisionRegions):
    """Decision regions on a mesh of simplices that is fine where a boundary is.

    Attributes:
        weights: of the probe's generators at each sample: the samples are `weights @ generators`, (p, k).
        cells: the samples at the corners of each cell, (m, d + 1).
        sample_labels: the label at each sample, (p,).
        sample_regions: the region of each sample, an index into `labels`, (p,).
        sample_margins: comparable scores at each sample, (p, c): c = 0 if only labels count.
    """

    on: ClassVar[str] = "mesh"
    _left_out: ClassVar[tuple[str, ...]] = (
        "weights",
        "cells",
        "sample_labels",
        "sample_regions",
        "sample_margins",
    )
    _has_samples: ClassVar[bool] = True

    weights: Floats = field()
    cells: Ints
    sample_labels: Ints
    sample_regions: Ints
    sample_margins: Floats

    @property
    def corner_labels(self) -> Ints:
        """The labels at the samples that are generators themselves: on a simplex, its vertices."""
        alone = (self.weights == 1).any(axis=1) & ((self.weights != 0).sum(axis=1) == 1)
        return np.asarray(self.sample_labels[alone])

    def to_frame(self) -> "pd.DataFrame":
        """A pandas table, one row per region: label, class name and, on a plane, its share of the area."""
        import pandas as pd

        columns = self._columns()
        if self.probe.dim == 2:
            image = self.image()
            columns["share"] = np.bincount(image[image >= 0], minlength=self.n_regions) / (image >= 0).sum()
        return pd.DataFrame(columns)

    def image(self, resolution: int = PIXELS) -> Ints:
        """The regions as an array (resolution, resolution) of indices into `labels`, -1 outside the probe.

        Inside a cell scores are interpolated, so that boundaries are far crisper than the cells; without
        scores a pixel belongs to the nearest corner of its cell.
        """
        from inscape.partition.decision.adaptive.mesh_kernels import paint

        check_plane(self.probe)
        image = np.full((resolution, resolution), -1, dtype=np.int64)
        x = np.ascontiguousarray(self.weights[:, 1:])
        paint(self.cells, x, self.sample_labels, self.sample_regions, self.sample_margins, image)
        return image

    def _draw(self, ax: Any, style: Style) -> Any:
        """The filled regions, the spanning points (images shown as images) and a class legend."""
        return _draw_image(self, ax, style)


def _draw_image(regions: DecisionGrid | DecisionMesh, ax: Any, style: Style) -> Any:
    from inscape.drawing.planes.labelled_grid import draw_plane

    check_plane(regions.probe)
    domain = drawn_domain(regions.probe)
    scene, classes = scene_of(regions.probe, domain, style, regions.labels, regions.class_names)
    return draw_plane(
        regions.image(),
        regions.labels,
        frame_of(regions.probe),
        classes=classes,
        scene=scene,
        title=regions._title(),
        ax=ax,
    )


def check_plane(probe: Probe) -> None:
    """Raise an error unless a probe is two-dimensional."""
    if probe.dim != 2:
        raise PartitionError(f"a probe of dimension {probe.dim} has no picture: plot one of dimension 1 or 2")


def top_two(scores: Array) -> tuple[Array, Ints]:
    """The two highest scores of each row and their columns; a one-column score s reads as (-s/2, s/2).

    Of equal scores the first ones count, as for labels.

    >>> values, columns = top_two(np.array([[0.1, 0.7, 0.2], [0.5, 0.5, 0.5]]))
    >>> values.tolist(), columns.tolist()
    ([[0.7, 0.2], [0.5, 0.5]], [[1, 2], [0, 1]])
    """
    if scores.shape[1] == 1:
        scores = np.column_stack([-scores / 2, scores / 2])
    rows, rest = np.arange(len(scores)), scores.copy()
    values, columns = np.empty((len(scores), 2), scores.dtype), np.empty((len(scores), 2), np.int64)
    for k in range(2):  # several times as fast as a partition of each row
        columns[:, k] = rest.argmax(axis=1)
        values[:, k] = rest[rows, columns[:, k]]
        rest[rows, columns[:, k]] = -np.inf
    return values, columns


def sample_top_scores(model: Model, probe: Probe, boundaries: Floats, n: int = 400) -> TopScores | None:
    """The two highest scores at n even steps and at the boundaries; None if the model has no scores."""
    segment = as_segment(probe)
    t = np.union1d(np.linspace(*segment.span, n), boundaries)
    scores = model.predict(segment.points(t), with_scores=True).scores
    return None if scores is None else TopScores(t, *top_two(scores))
