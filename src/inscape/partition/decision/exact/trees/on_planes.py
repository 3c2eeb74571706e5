"""Exact decision regions of tree ensembles on planes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import Bools, Floats, Ints
from inscape.errors import PartitionError
from inscape.models import Model, wrap
from inscape.models.trees import TreeEnsemble
from inscape.partition.decision.exact.trees.along_segments import trees_of
from inscape.partition.decision.exact.trees.notes import status_on_plane
from inscape.partition.decision.regions import DecisionPlane, TreeCounts
from inscape.probes import Probe
from inscape.probes.plane import Domain, domain_of
from inscape.provenance import Provenance

if TYPE_CHECKING:
    from inscape.partition.linear.planes.complex.half_edges import PlanarComplex

MOST_FACES = 2_000_000
"""A plane that is cut into more is refused: some ten seconds, and half a gigabyte."""


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

    planar: "PlanarComplex"
    labels: Ints
    is_contact: Bools
    counts: TreeCounts


def tree_plane(
    model: Any, probe: Probe, *, narrow: bool = False, provenance: Provenance | None = None
) -> DecisionPlane:
    """The decision regions of a tree ensemble on a patch or a triangle, exactly.

    On a plane each split x_f <= c is a half-plane. The probe is cut along the splits, cell by cell, until
    the vote on each cell is certain whatever leaves its points reach; faces of one label that share an edge
    are one region. Only nodes that the plane reaches are looked at, and all of them only along boundaries.

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
    """The domain cut until the vote is certain on every face, or until the model has to be asked there.

    `ask` gives the labels at coordinates (n, 2).
    """
    from inscape.partition.decision.exact.trees.overlay import overlaid
    from inscape.partition.decision.exact.trees.restriction import restricted
    from inscape.partition.decision.exact.trees.space_partition import ASK, NARROW, TIED, divided

    corners = domain.corners
    trees, n_narrow = restricted(ensemble, domain.plane, corners, narrow=narrow)
    n_nodes = len(trees.child)
    trees = trees._replace(line=np.concatenate([trees.line, _sides(corners)]))
    state = divided(ensemble, trees, corners, MOST_FACES)
    planar, is_contact = overlaid(state, trees.line, len(corners))
    labels = ensemble.vote.named(state.faces.label.astype(np.int64))
    unknown = np.flatnonzero(labels == ASK)
    if len(unknown):
        labels[unknown] = ask(planar.centroids()[unknown])
    n_tied, n_narrow = int(state.counts[TIED]), n_narrow + int(state.counts[NARROW])
    return TreeFaces(planar, labels, is_contact, TreeCounts(n_tied, n_narrow, 0, n_nodes, len(unknown)))


def _asked(model: Model, probe: Probe, points: Floats) -> Ints:
    return model.labels(points.reshape(-1, *probe.input_shape))


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
