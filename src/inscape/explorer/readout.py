"""What is under the cursor: scores, the region and its nearest boundary, the nearest kink, the gradient."""

from typing import Any

import numpy as np

from inscape.arrays import Floats
from inscape.errors import InscapeError
from inscape.explorer.messages import Arrays, Sight, lattice, margins
from inscape.models import Model
from inscape.partition.decision import DecisionGrid, DecisionMesh, DecisionPlane, decision_regions
from inscape.partition.linear import linear_regions
from inscape.probes import Patch, Segment
from inscape.progress import Meter

MOST_UNITS = 4
"""Units that are named where several change across one edge."""
MOST_KNOTS = 4000
"""Knots of a profile that are sent one by one."""
PROFILE_SAMPLES = 401
"""Places along a profile of a model that is not piecewise affine."""
DIFFERENCES_UP_TO = 256
"""Numbers of a point up to which a gradient is taken by differences, where there is no other."""


def readout(model: Model, patch: Patch, at: Floats, sight: Sight | None) -> tuple[dict[str, Any], Arrays]:
    """What is known of the place `at` (2,) of a patch; `sight` are the regions there, if they are known."""
    point = patch.points(at[None])
    prediction = model.predict(point, with_scores=model.has_scores)
    known: dict[str, Any] = {"at": at.tolist(), "label": int(prediction.labels[0])}
    if prediction.scores is not None:
        known["scores"] = prediction.scores[0].tolist()
        known["margin"] = float(margins(prediction.scores)[0])
    arrays: Arrays = {"input": point[0].astype(np.float32)}
    if sight is not None and sight.holds(at):
        known |= _region(sight, at)
    return known, arrays


def _region(sight: Sight, at: Floats) -> dict[str, Any]:
    """The region around a place, the nearest boundary, and what changes across the nearest edge."""
    from inscape.partition.linear.planes.complex.half_edges import locate

    regions = sight.regions
    if not isinstance(regions, DecisionPlane):
        return _sampled_region(sight, at)
    (face,) = locate(regions.subdivision.planar, at[None])
    if face < 0:
        return {}
    region = int(regions.face_regions[face])
    planar = regions.subdivision.planar
    border = planar.born < 0
    faces = planar.sides()[border].max(axis=1)
    about: dict[str, Any] = {
        "region": region,
        "area": float(sight.areas[region]),
        "is_cut": bool((regions.face_regions[faces] == region).any()),
        "is_exact": True,
    }
    if regions.n_boundary_pieces:
        place, distance = nearest_on(regions.boundary, at, sight.domain.metric)
        about["boundary"] = {"at": place.tolist(), "distance": distance}
    return about if regions.trees is not None else about | {"edge": _nearest_edge(sight, at, int(face))}


def _sampled_region(sight: Sight, at: Floats) -> dict[str, Any]:
    """The same from the image of a mesh or a grid, as fine as its pixels."""
    regions = sight.regions
    assert isinstance(regions, DecisionMesh | DecisionGrid)
    image = regions.image().T if isinstance(regions, DecisionGrid) else regions.image(256).T
    r = len(image)
    (s0, s1), (t0, t1) = sight.patch.bounds
    column, row = (
        np.clip(int(r * (at[k] - (s0, t0)[k]) / ((s1, t1)[k] - (s0, t0)[k])), 0, r - 1) for k in (0, 1)
    )
    region = image[row, column]
    label_image = np.where(image >= 0, regions.labels[image], -1)
    inside = image >= 0
    area = (
        abs(s1 - s0) * abs(t1 - t0) * sight.domain.area_unit * float((image == region).sum() / inside.sum())
    )
    touches = np.concatenate([image[0], image[-1], image[:, 0], image[:, -1]])
    about: dict[str, Any] = {
        "region": int(region),
        "area": area,
        "is_cut": bool((touches == region).any()),
        "is_exact": False,
    }
    other = (label_image != label_image[row, column]).reshape(-1) & inside.reshape(-1)
    if other.any():
        places = lattice(sight.patch, r)[other]
        distance = sight.domain.lengths(places - at)
        best = int(distance.argmin())
        about["boundary"] = {"at": places[best].tolist(), "distance": float(distance[best])}
    return about


def nearest_on(edges: Floats, at: Floats, metric: Floats) -> tuple[Floats, float]:
    """The nearest place on straight edges (n, 2, 2), and its distance, by a metric (2, 2).

    >>> nearest_on(np.array([[[1.0, -1.0], [1.0, 1.0]]]), np.array([0.0, 0.5]), np.eye(2))
    (array([1. , 0.5]), 1.0)
    """
    start, way = edges[:, 0], edges[:, 1] - edges[:, 0]
    along = np.einsum("ni,ij,nj->n", at - start, metric, way)
    length = np.einsum("ni,ij,nj->n", way, metric, way)
    t = np.clip(along / np.where(length > 0, length, 1.0), 0.0, 1.0)
    places = start + t[:, None] * way
    squared = np.einsum("ni,ij,nj->n", places - at, metric, places - at)
    best = int(squared.argmin())
    return places[best], float(np.sqrt(squared[best]))


def _nearest_edge(sight: Sight, at: Floats, face: int) -> dict[str, Any]:
    """The nearest edge of a face, and which units change across it."""
    import torch

    from inscape.partition.linear.planes.subdivision import states_at

    assert isinstance(sight.regions, DecisionPlane)
    subdivision: Any = sight.regions.subdivision
    planar = subdivision.planar
    edges = planar.loop_edges[planar.start[face] : planar.start[face + 1]]
    inner = edges[planar.born[edges] >= 0]
    if not len(inner):
        return {"kind": "none"}
    sides = planar.xy[planar.ends[inner]]
    distances = [nearest_on(side[None], at, sight.domain.metric)[1] for side in sides]
    k = int(np.argmin(distances))
    edge, born = int(inner[k]), int(planar.born[inner[k]])
    about: dict[str, Any] = {"ends": sides[k].tolist(), "distance": distances[k]}
    if born not in subdivision.layers:
        return about | {"kind": "scores"}
    layer = subdivision.layers.index(born)
    both = planar.sides()[edge]
    middles = np.stack(
        [planar.xy[planar.corners[planar.start[f] : planar.start[f + 1]]].mean(axis=0) for f in both]
    )
    states = states_at(subdivision.graph, born, torch.from_numpy(subdivision.plane.points(middles)))
    inside = states[0 if both[0] == face else 1]
    units = np.flatnonzero(states[0] != states[1])
    return about | {
        "kind": "units",
        "layer": layer + 1,
        "path": subdivision.graph.nodes[born].path,
        "n_units": len(units),
        "n_in_layer": states.shape[1],
        "units": units[:MOST_UNITS].tolist(),
        "states": inside[units[:MOST_UNITS]].tolist(),
    }


def gradient(model: Model, point: Floats, label: int) -> tuple[dict[str, Any], Arrays]:
    """The gradient of the winning score at a point (*shape): by the network's graph, or by differences."""
    if not model.has_scores:
        return {"gradient_note": "this model has labels but no scores, so there is no gradient"}, {}
    try:
        graph: Any = model.graph(point.shape)
    except InscapeError:
        graph = None
    if graph is not None:
        import torch

        x = torch.from_numpy(point[None].copy()).requires_grad_()
        with torch.inference_mode(False), torch.enable_grad():
            scores = graph.cast(torch.float64).differentiable(x).reshape(1, -1)
            (scores[0, min(label, scores.shape[1] - 1)]).backward()
        assert x.grad is not None
        return {"gradient_by": "exact"}, {"gradient": x.grad[0].numpy().astype(np.float32)}
    if model.structure == "trees":
        return {
            "gradient_note": "the scores of trees are steps: their gradient is 0 wherever there is one"
        }, {}
    if point.size > DIFFERENCES_UP_TO:
        return {
            "gradient_note": "this model gives no gradient, and differences would take too many calls"
        }, {}
    step = 1e-4 * max(1.0, float(np.abs(point).max()))
    moves = step * np.eye(point.size).reshape(-1, *point.shape)
    scores = model.scores(np.concatenate([point + moves, point - moves]))
    column = scores[:, min(label, scores.shape[1] - 1)]
    slope = (column[: point.size] - column[point.size :]) / (2 * step)
    return {"gradient_by": "differences"}, {"gradient": slope.reshape(point.shape).astype(np.float32)}


def profile(
    model: Model, start: Floats, end: Floats, unit: Floats | None, meter: Meter
) -> tuple[dict[str, Any], Arrays]:
    """Scores and regions along the segment between two points; exact for networks.

    Its length is in the units of the features, if these have some.
    """
    segment = Segment(start, end)
    regions: Any = decision_regions(model, segment, progress=meter)
    knots = np.empty(0)
    is_piecewise = regions.method == "exact" and model.structure == "piecewise-affine"
    if is_piecewise:
        knots = linear_regions(model, segment, progress=meter).knots
    curves = {
        "length": float(np.linalg.norm((end - start) / (1.0 if unit is None else unit))),
        "boundaries": regions.boundaries.tolist(),
        "labels": regions.labels.tolist(),
        "n_regions": regions.n_regions,
        "n_pieces": len(knots) + 1 if is_piecewise else None,
        "is_exact": regions.is_exact,
        "method": regions.method,
        "status": str(regions.status),
    }
    if not model.has_scores:
        return curves, {}
    is_thinned = len(knots) > MOST_KNOTS
    places = np.unique(np.concatenate([[0.0, 1.0], knots, regions.boundaries]))
    if not is_piecewise or is_thinned:
        places = np.unique(np.concatenate([np.linspace(0, 1, PROFILE_SAMPLES), regions.boundaries]))
    scores = model.scores(segment.points(places))
    curves["is_thinned"] = is_thinned
    return curves, {
        "t": places.astype(np.float32),
        "scores": scores.astype(np.float32),
        "knots": knots[:MOST_KNOTS].astype(np.float32),
    }
