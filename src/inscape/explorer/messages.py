"""The messages that travel from Python to the page, and what they say of a plane.

    b"INSC" | length of the header, uint32 | the header, UTF-8, filled with spaces to a multiple of 8 | arrays

The header is JSON; its entry "arrays" has the name, type, shape and offset of each array, counted from the
first byte after the header. Numbers are little-endian, and each array starts at a multiple of 8 bytes, so
that a browser takes them without copying.

Of a plane a page draws the faces of an exact result, an image of a sampled one, or a coarse first look.
Coordinates are those of the window, from -1 to 1, so that float32 holds them however far a page zooms in.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from inscape.arrays import Array, Floats, Ints
from inscape.drawing.palette import pattern_colours
from inscape.models import Model
from inscape.partition.decision.regions import DecisionGrid, DecisionMesh, DecisionPlane, DecisionRegions
from inscape.probes import Patch
from inscape.probes.plane import Domain, Plane, domain_of

MAGIC = b"INSC"
TYPES = ("float32", "int32", "uint8")
_ALIGNMENT = 8
"""Bytes: a browser reads an array of numbers only where a multiple of their size begins."""
Arrays = dict[str, Array]
MOST_FACES = 500_000
"""More are sent as an image of their regions: no screen shows them apart."""
IMAGE = 512
"""Pixels per side of such an image, and of one of a mesh."""
BOUNDARY = 128
"""Added to the layer of an edge where the label changes."""
NO_LAYER = 127
"""The layer of an edge that no unit makes: two scores are equal there."""


def packed(header: Mapping[str, Any], arrays: Mapping[str, Array] | None = None) -> bytes:
    """A header and arrays as one message.

    >>> header, arrays = unpacked(packed({"n": 2}, {"a": np.array([1, 2], np.int32)}))
    >>> header["n"], arrays["a"].tolist()
    (2, [1, 2])
    """
    described, blocks, offset = [], [], 0
    for name, array in (arrays or {}).items():
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        if little.dtype.name not in TYPES:
            raise TypeError(f"{name} is {little.dtype}: a message holds {', '.join(TYPES)}")
        described.append([name, little.dtype.name, list(little.shape), offset])
        filling = -little.nbytes % _ALIGNMENT
        blocks += [little.tobytes(), bytes(filling)]
        offset += little.nbytes + filling
    text = json.dumps(finite(dict(header)) | {"arrays": described}, allow_nan=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return b"".join([MAGIC, len(text).to_bytes(4, "little"), text, *blocks])


def unpacked(message: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays of a message."""
    if message[:4] != MAGIC:
        raise ValueError("this is not a message of the explorer: it does not begin with INSC")
    length = int.from_bytes(message[4:8], "little")
    header = json.loads(message[8 : 8 + length])
    arrays = {}
    for name, dtype, shape, offset in header.pop("arrays"):
        count = math.prod(shape)
        flat = np.frombuffer(message, np.dtype(dtype).newbyteorder("<"), count, 8 + length + offset)
        arrays[name] = flat.reshape(shape)
    return header, arrays


def finite(value: Any) -> Any:
    """Plain JSON of it: numpy's numbers as Python's, and null where a number is not finite.

    >>> finite({"a": np.float32("nan"), "b": [np.int64(1)]})
    {'a': None, 'b': [1]}
    """
    if isinstance(value, Mapping):
        return {str(key): finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    if isinstance(value, np.ndarray):
        return finite(value.tolist())
    if isinstance(value, np.generic):
        return finite(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plane_message(regions: DecisionRegions, wanted: set[str]) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of decision regions on a patch.

    Args:
        regions: exact, on a mesh or on a grid.
        wanted: what else is to be known of faces: "pattern", "layer", "slope", "scores".
    """
    patch = regions.probe
    assert isinstance(patch, Patch)
    header = {
        "window": [*patch.bounds[0], *patch.bounds[1]],
        "n_regions": regions.n_regions,
        "method": regions.method,
        "is_exact": regions.is_exact,
        "status": str(regions.status),
        "reason": regions.reason,
        "n_evaluations": regions.n_evaluations,
        "missed": regions.missed,
        "missed_basis": regions.missed_basis,
        "label_areas": label_areas(regions),
    }
    arrays: Arrays = {"region_labels": regions.labels.astype(np.int32)}
    if isinstance(regions, DecisionPlane):
        planar = regions.subdivision.planar
        header["n_faces"] = planar.n_faces if regions.trees is None else None
        if planar.n_faces <= MOST_FACES:
            return header | {"shape": "faces"}, arrays | _faces(regions, patch, wanted)
        header["note"] = (
            f"{planar.n_faces:,} linear regions are more than can be drawn one by one: zoom in to see them"
        )
        image = regions.locate(lattice(patch, IMAGE)).reshape(IMAGE, IMAGE)
    else:
        assert isinstance(regions, DecisionMesh | DecisionGrid)
        image = (regions.image() if isinstance(regions, DecisionGrid) else regions.image(IMAGE)).T
    return header | {"shape": "image"}, arrays | {"image": image.astype(np.int32)}


def coarse_message(model: Model, patch: Patch, resolution: int) -> tuple[dict[str, Any], Arrays]:
    """A first look: labels on a grid, which says nothing of regions."""
    labels = model.labels(patch.points(lattice(patch, resolution))).reshape(resolution, resolution)
    known, image = np.unique(labels, return_inverse=True)
    header = {
        "shape": "image",
        "window": [*patch.bounds[0], *patch.bounds[1]],
        "method": "coarse",
        "is_exact": False,
        "n_evaluations": resolution**2,
    }
    return header, {
        "region_labels": known.astype(np.int32),
        "image": image.reshape(labels.shape).astype(np.int32),
    }


def margin_message(model: Model, patch: Patch, resolution: int) -> Arrays:
    """The difference of the two highest scores on a grid, (resolution, resolution), from low t to high."""
    points = patch.points(lattice(patch, resolution))
    return {"margins": margins(model.scores(points)).reshape(resolution, resolution).astype(np.float32)}


def margins(scores: Array) -> Floats:
    """The highest score less the second, (n,); the absolute value of a single one."""
    if scores.shape[1] == 1:
        return np.asarray(np.abs(scores[:, 0]))
    two = np.partition(scores, -2, axis=1)[:, -2:]
    return np.asarray(two[:, 1] - two[:, 0])


def lattice(patch: Patch, resolution: int) -> Floats:
    """The middles of resolution x resolution pixels of a patch, t slowest, (resolution^2, 2)."""
    (s0, s1), (t0, t1) = patch.bounds
    steps = (np.arange(resolution) + 0.5) / resolution
    s, t = np.meshgrid(s0 + steps * (s1 - s0), t0 + steps * (t1 - t0))
    return np.stack([s.ravel(), t.ravel()], axis=1)


def label_areas(regions: DecisionRegions) -> dict[str, float]:
    """The share of the window that has each label."""
    if isinstance(regions, DecisionPlane):
        weights = regions.areas
    elif isinstance(regions, DecisionMesh):
        image = regions.image(IMAGE // 2)
        weights = np.bincount(image[image >= 0], minlength=regions.n_regions).astype(np.float64)
    else:
        assert isinstance(regions, DecisionGrid)
        weights = np.bincount(regions.sample_regions, minlength=regions.n_regions).astype(np.float64)
    labels, index = np.unique(regions.labels, return_inverse=True)
    shares = np.bincount(index, weights=weights) / weights.sum()
    return {str(label): float(share) for label, share in zip(labels, shares, strict=True)}


def _faces(regions: DecisionPlane, patch: Patch, wanted: set[str]) -> Arrays:
    """Vertices, faces and edges of an exact result, and what is wanted of the faces."""
    planar = regions.subdivision.planar
    (s0, s1), (t0, t1) = patch.bounds
    centre, half = np.array([s0 + s1, t0 + t1]) / 2, np.array([s1 - s0, t1 - t0]) / 2
    left = np.full(2 * len(planar.ends), -1, np.int32)
    left[planar.loop] = np.repeat(regions.face_regions, np.diff(planar.start))
    changes = (left[0::2] != left[1::2]) & (left[0::2] >= 0) & (left[1::2] >= 0)
    arrays: Arrays = {
        "vertices": ((planar.xy - centre) / half).astype(np.float32),
        "corners": planar.corners.astype(np.int32),
        "start": planar.start.astype(np.int32),
        "face_regions": regions.face_regions.astype(np.int32),
        "region_areas": (regions.areas * area_factor(patch)).astype(np.float32),
        "edges": planar.ends.astype(np.int32),
        "edge_kinds": (_edge_layers(regions) + np.where(changes, BOUNDARY, 0)).astype(np.uint8),
    }
    return arrays if regions.trees is not None else arrays | _of_networks(regions, wanted)


def _edge_layers(regions: DecisionPlane) -> Ints:
    """The layer (1, 2, ...) whose unit changes across each edge, 0 at the border, `NO_LAYER` for none."""
    planar = regions.subdivision.planar
    if regions.trees is not None:
        return np.where(planar.born < 0, 0, NO_LAYER)
    layers = np.array(getattr(regions.subdivision, "layers", ()), np.int64)
    number = np.searchsorted(layers, planar.born, side="left") + 1
    number = np.where(planar.born < 0, 0, np.minimum(number, NO_LAYER - 1))
    return np.where(planar.born > layers.max(initial=-1), NO_LAYER, number)


def _of_networks(regions: DecisionPlane, wanted: set[str]) -> Arrays:
    """Pattern, layer and slope of each face, and the scores at the vertices."""
    subdivision: Any = regions.subdivision
    arrays: Arrays = {}
    if "pattern" in wanted:
        arrays["face_patterns"] = pattern_colours(subdivision.face_hashes()).astype(np.uint8)
    if "layer" in wanted:
        arrays["face_layers"] = np.minimum(subdivision.birth, NO_LAYER).astype(np.uint8)
    if wanted & {"slope", "scores"}:
        scores = vertex_scores(regions)
        if "slope" in wanted:
            arrays["face_slopes"] = slope_norms(regions, scores).astype(np.float32)
        if "scores" in wanted:
            arrays["vertex_scores"] = scores.astype(np.float32)
    return arrays


def vertex_scores(regions: DecisionPlane) -> Floats:
    """The scores of a network at the vertices, (v, c)."""
    import torch

    subdivision: Any = regions.subdivision
    graph, xy = subdivision.graph, subdivision.planar.xy
    most = max(1, 2**22 // max(int(np.prod(shape)) for shape in graph.shapes))
    blocks = []
    for first in range(0, len(xy), most):
        x = torch.from_numpy(subdivision.plane.points(xy[first : first + most]))
        blocks.append(graph.evaluate(x.reshape(-1, *graph.input_shape)).reshape(len(x), -1).numpy())
    return np.concatenate(blocks)


def slope_norms(regions: DecisionPlane, scores: Floats) -> Floats:
    """The norm of the slope of all scores on each face, in the input space, (f,).

    On a face f is affine, so that its slope times the area is the integral of f n along the border.
    """
    patch, planar = regions.probe, regions.subdivision.planar
    assert isinstance(patch, Patch)
    metric = measured(patch).metric
    corners, start = planar.corners, planar.start
    after = np.arange(1, len(corners) + 1)
    after[start[1:] - 1] = start[:-1]
    first = np.repeat(corners[start[:-1]], np.diff(start))
    way = planar.xy[corners[after]] - planar.xy[corners]
    rise = (scores[corners] + scores[corners[after]]) / 2 - scores[first]
    outward = np.stack([way[:, 1], -way[:, 0]], axis=1)
    flux = np.add.reduceat(rise[:, :, None] * outward[:, None, :], start[:-1], axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = flux / planar.areas()[:, None, None]
        squared = np.einsum("fci,ij,fcj->f", slopes, np.linalg.inv(metric), slopes)
        return np.asarray(np.sqrt(np.maximum(squared, 0.0)))


def measured(patch: Patch) -> Domain:
    """The plane of a patch in the units of its features, if these have some: a table's standard deviations.

    Lengths and areas on the page are taken there, as the picture is drawn; in the input space itself the
    feature with the largest numbers would rule them.
    """
    domain = domain_of(patch)
    if patch.unit is None:
        return domain
    unit = patch.unit.reshape(-1)
    return replace(domain, plane=Plane(domain.plane.origin / unit, domain.plane.axes / unit))


def area_factor(patch: Patch) -> float:
    """The area in the units of the features of a unit of area in the input space."""
    return 1.0 if patch.unit is None else measured(patch).area_unit / domain_of(patch).area_unit


@dataclass(frozen=True, eq=False)
class Sight:
    """The regions that a page sees now, for what it asks about a place among them."""

    patch: Patch
    regions: DecisionRegions

    @property
    def domain(self) -> Domain:
        """Where coordinates lie in the input space, in the units of the data."""
        return measured(self.patch)

    @property
    def areas(self) -> Floats:
        """The area of each exact region in the units of the data, (n_regions,)."""
        assert isinstance(self.regions, DecisionPlane)
        return self.regions.areas * area_factor(self.patch)

    def holds(self, at: Floats) -> bool:
        """Whether a place (2,) is inside the window."""
        (s0, s1), (t0, t1) = self.patch.bounds
        return bool(s0 <= at[0] <= s1 and t0 <= at[1] <= t1)
