"""Exact decision regions of tree ensembles on planes.

`space_partition` cuts faces out of the polygon, each for itself; here they become a planar complex.
Along each chord the vertices that were made on it, from either side, are put in order; those at one point are
one. Between neighbours lies an edge, with one face on either side of the chord.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from inscape.arrays import Bools, Floats, Ints
from inscape.compiled import compiled
from inscape.errors import PartitionError
from inscape.models import Model, wrap
from inscape.models.trees import TreeEnsemble
from inscape.partition.decision.exact.trees.along_segments import asked_alone, trees_of
from inscape.partition.decision.exact.trees.notes import status_on_plane
from inscape.partition.decision.exact.trees.space_partition import Partition, displacement
from inscape.partition.decision.regions import DecisionPlane, TreeCounts
from inscape.partition.linear.planes.complex.half_edges import BORDER, PlanarComplex, half_edge, next_around
from inscape.probes import Probe
from inscape.probes.plane import Domain, domain_of
from inscape.provenance import Provenance

MOST_FACES = 2_000_000
"""A plane that is cut into more is refused: some ten seconds, and half a gigabyte."""
MOST_ASKED = 200_000
"""The same if the model is evaluated on every face."""


@dataclass(frozen=True, eq=False)
class TreeFaces:
    """A planar complex on each face of which the vote of an ensemble is known.

    The faces are what had to be told apart, not all that the trees tell apart: inside most of them leaves of
    many trees meet, none of which can change the vote.

    Attributes:
        planar: vertices, edges and faces.
        labels: the label of each face, (f,).
        is_contact: whether the faces at an edge touch along it, not in a point, as far as can be told, (e,).
        counts: what was counted on the way.
    """

    planar: PlanarComplex
    labels: Ints
    is_contact: Bools
    counts: TreeCounts


def tree_plane(
    model: Any, probe: Probe, *, narrow: bool = False, provenance: Provenance | None = None
) -> DecisionPlane:
    """The decision regions of a tree ensemble on a patch or a triangle, exactly.

    On a plane each split x_f <= c is a half-plane. The probe is cut along the splits, cell by cell, until
    the vote on each cell is certain whatever leaves its points reach; faces of one label that share an edge
    are one region. Only nodes that the plane reaches are visited, and all of them only along boundaries.

    Args:
        model: a wrapped model of structure "trees", or an estimator to wrap.
        probe: a patch or a triangle.
        narrow: whether to tell apart what is narrower than the spacing of the numbers that the trees can tell
            apart (float32, or float64 in histogram trees), as `predict` does; else splits that are so near to
            each other are one, and what lies between them is no region.
        provenance: of the result; None asks the model.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from inscape import Patch
    >>> corners = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> board = DecisionTreeClassifier(random_state=0).fit(corners, [0, 1, 1, 0])
    >>> p = tree_plane(board, Patch([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], ((0, 1), (0, 1))))
    >>> p.n_regions, p.areas.round(6).tolist()
    (4, [0.25, 0.25, 0.25, 0.25])
    """
    from inscape.partition.linear.planes.complex.dissolve import joined_faces

    wrapped = wrap(model)
    ensemble = trees_of(wrapped)
    domain = domain_of(probe)
    _check(domain, ensemble)
    faces = faces_on(
        ensemble, domain, narrow=narrow, ask=lambda xy: _asked(wrapped, probe, domain.plane.points(xy))
    )
    regions, labels = joined_faces(faces.planar, faces.labels, faces.is_contact)
    return DecisionPlane(
        probe=probe,
        labels=labels,
        method="exact",
        is_exact=True,
        status=status_on_plane(faces.counts, faces.planar.n_faces, ensemble.precision),
        n_evaluations=faces.planar.n_faces,
        resolution=None,
        connectivity=None,
        class_names=wrapped.classes,
        provenance=provenance or Provenance.of(wrapped),
        face_regions=regions,
        domain=domain,
        subdivision=faces,
        trees=faces.counts,
    )


def faces_on(
    ensemble: TreeEnsemble, domain: Domain, *, narrow: bool, ask: Callable[[Floats], Ints]
) -> TreeFaces:
    """The domain cut until the vote is certain on every face, or until only the model itself can decide.

    `ask` gives the labels of the model at coordinates (n, 2).
    """
    from inscape.partition.decision.exact.trees.restriction import restricted
    from inscape.partition.decision.exact.trees.space_partition import ASK, NARROW, TIED, cut_into_faces

    corners = domain.corners
    trees, n_narrow = restricted(ensemble, domain.plane, corners, narrow=narrow)
    n_nodes = len(trees.child)
    trees = trees._replace(line=np.concatenate([trees.line, _sides(corners)]))
    always_asked = ensemble.vote.doubt == np.inf
    state = cut_into_faces(ensemble, trees, corners, MOST_ASKED if always_asked else MOST_FACES)
    planar, is_contact = overlaid(state, trees.line, len(corners))
    labels = ensemble.vote.named(state.faces.label.astype(np.int64))
    unknown = np.flatnonzero(labels == ASK)
    if len(unknown):
        labels[unknown] = ask(planar.centroids()[unknown])
    n_tied = 0 if always_asked else int(state.counts[TIED])
    n_narrow += int(state.counts[NARROW])
    return TreeFaces(planar, labels, is_contact, TreeCounts(n_tied, n_narrow, 0, n_nodes, len(unknown)))


def _asked(model: Model, probe: Probe, points: Floats) -> Ints:
    return asked_alone(model, points.reshape(-1, *probe.input_shape))


def _sides(corners: Floats) -> Floats:
    """The lines of the sides of a polygon, which are known without error, (k, 5)."""
    ways = np.roll(corners, -1, axis=0) - corners
    normal = np.stack([-ways[:, 1], ways[:, 0]], axis=1) / np.linalg.norm(ways, axis=1, keepdims=True)
    offset = (normal * corners).sum(axis=1)
    return np.column_stack([normal, offset, np.zeros((len(corners), 2))])


def _check(domain: Domain, ensemble: TreeEnsemble) -> None:
    """Raise if the trees cannot take the points of the plane."""
    n = domain.plane.origin.size
    if n != ensemble.n_features:
        raise PartitionError(f"the plane has points of {n} numbers, but the trees take {ensemble.n_features}")
    if not (np.abs(ensemble.seen(domain.plane.points(domain.corners))) <= ensemble.limit).all():
        raise PartitionError(
            f"the plane leaves the range +-{ensemble.limit:.3g} in which the trees compute: make it smaller"
        )


def overlaid(state: Partition, line: Any, n_sides: int) -> tuple[PlanarComplex, Bools]:
    """The complex of the faces; for each edge, whether it is longer than its ends may be displaced, (e,).

    The first `n_sides` vertices and chords are the corners and sides of the domain.
    """
    vertices, chords, faces = state.vertices, state.chords, state.faces
    # (1) vertices in the order of chords, and along each chord; those at one point are one
    order = n_sides + np.lexsort((vertices.s[n_sides:], vertices.chord[n_sides:]))
    chord, s = vertices.chord[order], vertices.s[order]
    is_new = np.ones(len(order), bool)
    is_new[1:] = (chord[1:] != chord[:-1]) | (s[1:] != s[:-1])
    number = np.concatenate([np.arange(n_sides), np.empty(len(order), np.int64)])
    number[order] = n_sides + np.cumsum(is_new) - 1
    source = np.concatenate([np.arange(n_sides), order[is_new]])
    # (2) the edges of each chord, one more than there are vertices between its ends
    n_between = np.bincount(chord[is_new], minlength=len(chords.line))
    first_edge = np.concatenate([[0], np.cumsum(n_between + 1)])
    first_between = n_sides + np.concatenate([[0], np.cumsum(n_between)])
    ends, born = chord_edges(first_edge, first_between, number[chords.ends], n_sides)
    # (3) around each face, side by side
    rank = number - first_between[np.maximum(vertices.chord, 0)] + 1  # of a vertex on its chord
    start, loop = face_loops(faces.start, faces.vertex, faces.chord, chords.ends, first_edge, rank)
    planar = PlanarComplex(
        xy=vertices.xy[source],
        ends=ends,
        born=born,
        start=start,
        loop=loop,
        shared=np.zeros(len(ends), bool),
        fixed=np.arange(len(source)) < n_sides,
    )
    return planar, is_long(planar.xy, ends, source, vertices, line)


@compiled
def chord_edges(first_edge: Any, first_between: Any, chord_ends: Any, n_sides: int) -> Any:
    """The two vertices of each edge, in the direction of its chord, and where each edge was born."""
    n = first_edge[-1]
    ends, born = np.empty((n, 2), np.int32), np.zeros(n, np.int32)
    for c in range(len(chord_ends)):
        before = chord_ends[c, 0]
        for e in range(first_edge[c], first_edge[c + 1]):
            is_last = e + 1 == first_edge[c + 1]
            after = chord_ends[c, 1] if is_last else first_between[c] + e - first_edge[c]
            ends[e, 0], ends[e, 1] = before, after
            before = after
            if c < n_sides:
                born[e] = BORDER
    return ends, born


@compiled
def face_loops(start: Any, vertex: Any, chord: Any, chord_ends: Any, first_edge: Any, rank: Any) -> Any:
    """The loops of all faces; the half-edges of direction 0 run along the chord of their edge."""
    # (1) from which edge to which each side of a face goes
    n_corners = len(vertex)
    low, high = np.empty(n_corners, np.int64), np.empty(n_corners, np.int64)
    new_start = np.zeros(len(start), np.int64)
    for f in range(len(start) - 1):
        new_start[f + 1] = new_start[f]
        for i in range(start[f], start[f + 1]):
            j = next_around(i, start[f], start[f + 1])
            c = chord[i]
            low[i] = edge_at(vertex[i], c, chord_ends, first_edge, rank)
            high[i] = edge_at(vertex[j], c, chord_ends, first_edge, rank)
            new_start[f + 1] += abs(high[i] - low[i])
    # (2) its half-edges, one after the other
    loop, k = np.empty(new_start[-1], np.int32), 0
    for i in range(n_corners):
        e = low[i]
        while e < high[i]:
            loop[k] = half_edge(e, 0)
            e, k = e + 1, k + 1
        while e > high[i]:
            loop[k] = half_edge(e - 1, 1)
            e, k = e - 1, k + 1
    return new_start, loop


@compiled
def edge_at(v: int, c: int, chord_ends: Any, first_edge: Any, rank: Any) -> Any:
    """The edge of a chord that starts at one of its vertices; for its end the number after the last edge."""
    if v == chord_ends[c, 0]:
        return first_edge[c]
    return first_edge[c + 1] if v == chord_ends[c, 1] else first_edge[c] + rank[v]


@compiled
def is_long(xy: Any, ends: Any, source: Any, vertices: Any, lines: Any) -> Any:
    """Whether each edge is longer than its ends may be displaced along it: else it is a point of contact."""
    longer = np.ones(len(ends), np.bool_)
    for e in range(len(ends)):
        a, b = ends[e, 0], ends[e, 1]
        x, y = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
        length = np.hypot(x, y)
        if length <= vertices.error[source[a]] + vertices.error[source[b]]:
            x, y = (x / length, y / length) if length > 0.0 else (0.0, 0.0)
            moved = displacement(source[a], x, y, vertices, lines) + displacement(
                source[b], x, y, vertices, lines
            )
            longer[e] = length > moved
    return longer
