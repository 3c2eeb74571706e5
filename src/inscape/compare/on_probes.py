"""The regions of a pair of models on probes: those of each, laid over each other, or those of the pair."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from inscape.arrays import Array, Floats, Ints
from inscape.budget import within_budget
from inscape.compare.matching import Matching, told_apart
from inscape.models import Model
from inscape.models.fingerprints import short_hash
from inscape.partition.decision.adaptive import adaptive_regions
from inscape.partition.decision.exact import exact_regions
from inscape.partition.decision.grid import grid_regions
from inscape.partition.decision.method import Choice, RegionRequest
from inscape.partition.decision.regions import (
    DecisionGrid,
    DecisionMesh,
    DecisionPlane,
    DecisionRegions,
    DecisionSegment,
)
from inscape.probes import Probe
from inscape.progress import Meter
from inscape.provenance import Provenance
from inscape.status import COMPLETE, CONVERGED, Status

if TYPE_CHECKING:
    from inscape.partition.linear.planes.complex.half_edges import PlanarComplex

TOLERANCE = 1e-6
"""Of the span, how far an adaptive boundary on a segment may be from the truth: two models often differ in
little more than where their boundaries are."""
UNKNOWN_CLASSES = 2**20
"""What stands for the number of classes where a model tells only those that it meets."""
SAME_PLACE = 1e-12
"""Of the span: boundaries of the two models that are no further apart are one, up to rounding."""


MOST_SCORES = 1024
"""Of a pair: with more, only labels count."""


class PairedModel(Model):
    """A model whose label is n i + j where the first says i and the second j, of n classes.

    The score of a pair is s_i + t_j, the sum of what either model gives to its class: the largest is that of
    the pair of labels, and leads by as much as the model that is less sure. So whatever counts the decision
    regions of a model counts those of the pair.
    """

    def __init__(self, a: Model, b: Model, matching: Matching, n: int) -> None:
        super().__init__(f"{a.name} and {b.name}", input_shape=None, batch_size=None)
        self.a, self.b, self.matching, self.n = a, b, matching, n
        self.dtype = np.result_type(a.dtype, b.dtype)
        self.has_scores = matching.columns is not None and n**2 <= MOST_SCORES

    @property
    def is_random(self) -> bool:
        """Whether either was seen to be."""
        return self.a.is_random or self.b.is_random

    @is_random.setter
    def is_random(self, value: bool) -> None:
        self.a.is_random = value

    @contextmanager
    def session(self) -> Iterator[None]:
        """The state in which batches of both are evaluated."""
        with self.a.session(), self.b.session():
            yield

    def fingerprint(self) -> str:
        """A hash of both."""
        both = f"{self.a.fingerprint()} {self.b.fingerprint()}"
        return short_hash(both.encode())

    def batch_length(self, point_size: int) -> int:
        """As many points as both take."""
        return min(self.a.batch_length(point_size), self.b.batch_length(point_size))

    def _to_input(self, x: Array) -> Array:
        """Points as they are: the models shape and cast what they are given."""
        return x

    def _call(self, x: Array, *, with_scores: bool) -> tuple[Array, Array | None]:
        first = self.a.predict_batch(x.copy(), with_scores)
        second = self.b.predict_batch(x.copy(), with_scores)
        i, j = self.matching.common(first.labels, second.labels)
        labels = self.n * i + j
        if not with_scores or first.scores is None or second.scores is None:
            return labels, None
        one, other = _for_each_class(first.scores), _for_each_class(second.scores)
        if self.matching.columns is not None and len(self.matching.columns) == other.shape[1]:
            other = other[:, self.matching.columns]
        return labels, (one[:, :, None] + other[:, None, :]).reshape(len(x), -1)


def _for_each_class(scores: Array) -> Array:
    """Scores (n, c), one for each class: a single score s reads as (-s/2, s/2)."""
    return np.concatenate([-scores / 2, scores / 2], axis=1) if scores.shape[1] == 1 else scores


@dataclass(frozen=True, eq=False)
class Pair:
    """Two models to compare.

    Attributes:
        a: the first.
        b: the second.
        matching: which class is which.
    """

    a: Model
    b: Model
    matching: Matching

    @property
    def names(self) -> tuple[str, str]:
        """The names of the models, told apart."""
        return told_apart(self.a, self.b)

    @property
    def model(self) -> PairedModel:
        """The pair as one model."""
        return PairedModel(self.a, self.b, self.matching, self.matching.n or UNKNOWN_CLASSES)


class Regions:
    """What was found of a pair on one probe: regions whose labels are numbers of pairs of labels.

    Attributes:
        regions: of the pair.
        pairs: the two labels for each label of the regions, (m, 2).
        provenance: of both models.
    """

    def __init__(
        self,
        regions: DecisionRegions,
        first: Ints,
        second: Ints,
        matching: Matching,
        provenance: tuple[Provenance, Provenance],
        reason: str,
    ) -> None:
        """Regions with labels of any kind, by a method for a reason.

        `first` and `second` are the two labels of each region.
        """
        self.provenance = provenance
        both = np.stack([first, second], axis=1)
        self.pairs, number = np.unique(both, axis=0, return_inverse=True)
        number = number.reshape(-1).astype(np.int64)
        names = tuple(_name(matching, *pair) for pair in self.pairs.tolist())
        changes: dict[str, Any] = {"labels": number, "class_names": names, "reason": reason}
        if isinstance(regions, DecisionGrid | DecisionMesh):
            changes["sample_labels"] = number[regions.sample_regions]
        if isinstance(regions, DecisionMesh):
            changes["sample_margins"] = _columns_of(regions, both, number)
        self.regions: DecisionRegions = replace(regions, **changes)


def _columns_of(mesh: DecisionMesh, both: Ints, number: Ints) -> Floats:
    """The margins of the pairs that occur; none where labels are no columns."""
    margins = mesh.sample_margins
    if not margins.shape[1]:
        return margins
    _, first = np.unique(number, return_index=True)
    return np.ascontiguousarray(margins[:, mesh.labels[first]])


def _name(matching: Matching, i: int, j: int) -> str:
    """What a pair of labels is called: one name where both agree."""
    return matching.name(i) if i == j else f"{matching.name(i)} | {matching.name(j)}"


def regions_on(
    pair: Pair, probes: Sequence[Probe], request: RegionRequest, show: Meter, known: "Known | None" = None
) -> list[Regions]:
    """The regions of a pair on probes of one dimension, 1 or 2, by the best method for each model."""
    both = both_regions(pair, probes, request, show, known)
    if both is None:
        return _of_paired_model(pair, probes, request, show)
    lay: Any = merged if probes[0].dim == 1 else laid_over
    first, second = both
    reason = joint_reason(first, second)
    return [lay(a, b, pair.matching, reason) for a, b in zip(first.regions, second.regions, strict=True)]


class OwnRegions(NamedTuple):
    """The regions of one model on each probe, and why they were found by that method."""

    regions: list[Any]
    reason: str


Known = dict[tuple[Model, tuple[Probe, ...]], OwnRegions]
"""What was found of models on probes, for the other pairs that a model is part of."""


def joint_reason(first: OwnRegions, second: OwnRegions) -> str:
    """Why the regions of both models were found as they were."""
    return "; ".join(dict.fromkeys((first.reason, second.reason)))


def both_regions(
    pair: Pair, probes: Sequence[Probe], request: RegionRequest, show: Meter, known: Known | None = None
) -> tuple[OwnRegions, OwnRegions] | None:
    """The regions of each model alone, to be laid over each other; None if those of the pair are wanted.

    On segments any two can, unless the grid is asked for; on planes exact ones can. What is `known` of either
    is taken from there, and what is found is added.
    """
    models = pair.a, pair.b
    choices = [request.choose(model, probes) for model in models]
    methods = {choice.method for choice in choices}
    if "grid" in methods or (probes[0].dim > 1 and methods != {"exact"}):
        return None
    known, on = {} if known is None else known, tuple(probes)
    for k, (model, choice) in enumerate(zip(models, choices, strict=True)):
        if (model, on) not in known:
            known[model, on] = own_regions(model, probes, request, choice, _half(show, k))
    first, second = (known[model, on] for model in models)
    if probes[0].dim > 1 and not all(isinstance(r, DecisionPlane) for r in first.regions + second.regions):
        return None  # exact regions failed
    return first, second


def _half(show: Meter, k: int) -> Meter:
    """A meter for the first or the second of two models."""
    return lambda done, total: show(k * total + done, 2 * total)


def own_regions(
    model: Model, probes: Sequence[Probe], request: RegionRequest, choice: Choice, show: Meter
) -> OwnRegions:
    """The regions of one model, unless they are foreseen to take longer than the budget of the request."""
    request.check_budget(model, probes)
    dim, resolution = probes[0].dim, request.resolution
    tolerance = TOLERANCE if dim == 1 else None
    work = f"regions of {model.name} on {len(probes):,} probe{'s' * (len(probes) > 1)}"
    watch = within_budget(show, request.budget, work, "give fewer or smaller probes")
    exact_meter = watch if dim == 1 else show  # layers of a plane are no equal parts of its work
    chosen, regions = request.carry_out(
        choice,
        probes,
        exact=lambda: [
            *exact_regions(model, probes, precision="float64", meter=exact_meter, max_faces=choice.max_faces)
        ],
        adaptive=lambda: [
            *adaptive_regions(model, probes, resolution=resolution, tolerance=tolerance, meter=watch)
        ],
        grid=lambda: grid_regions(model, probes, resolution=resolution, connectivity="face", meter=watch),
    )
    return OwnRegions(regions, chosen.reason)


def _of_paired_model(
    pair: Pair, probes: Sequence[Probe], request: RegionRequest, show: Meter
) -> list[Regions]:
    """The regions of the pair as one model, at points."""
    model = pair.model
    choice = request.choose(model, probes)
    own = own_regions(model, probes, request, choice, show)
    both = Provenance.of(pair.a), Provenance.of(pair.b)
    return [
        Regions(r, r.labels // model.n, r.labels % model.n, pair.matching, both, own.reason)
        for r in own.regions
    ]


def merged(a: DecisionSegment, b: DecisionSegment, matching: Matching, reason: str) -> Regions:
    """The regions of a pair on a segment: a boundary of either model is one of the pair."""
    first, second = matching.common(a.labels, b.labels)
    near = SAME_PLACE * (a.span[1] - a.span[0])
    t = np.concatenate([a.boundaries, b.boundaries])
    order = np.argsort(t, kind="stable")
    t = t[order]
    i = np.cumsum(order < len(a.boundaries))
    j = np.cumsum(order >= len(a.boundaries))
    last = np.append(np.diff(t) > near, True)[: len(t)]  # of the boundaries at one place the last one counts
    i, j = (np.concatenate([[0], chosen[last]]) for chosen in (i, j))
    begins = np.concatenate([[-np.inf], t[last]])
    labels = first[i], second[j]
    changes = np.append(True, (np.diff(labels[0]) != 0) | (np.diff(labels[1]) != 0))
    regions = replace(
        a,
        boundaries=begins[changes][1:],
        labels=i[changes],
        method=a.method if a.method == b.method else "adaptive",
        is_exact=a.is_exact and b.is_exact,
        status=joint_status(a, b),
        n_evaluations=a.n_evaluations + b.n_evaluations,
        samples=None,
        top=None,
        model=None,
        n_pieces=None,
        trees=None,
        **joint_missed(a, b),
    )
    both = a.provenance, b.provenance
    return Regions(regions, labels[0][changes], labels[1][changes], matching, both, reason)


def disagreements_along(
    a: Sequence[DecisionSegment], b: Sequence[DecisionSegment], matching: Matching | None = None
) -> Floats:
    """The share of each segment on which the labels of two models differ, from the regions of each, (n,).

    Without a matching both have one numbering.
    """
    n = len(a)
    labels = [np.concatenate([r.labels for r in own]) for own in (a, b)]
    first, second = labels if matching is None else matching.common(*labels)
    spans = np.array([r.span for r in a])
    sizes = [np.array([len(r.boundaries) for r in own]) for own in (a, b)]
    # 1. every segment's start, then the boundaries of both models, in the order of the segments and of t
    owner = np.concatenate([np.arange(n), *(np.repeat(np.arange(n), size) for size in sizes)])
    t = np.concatenate([np.full(n, -np.inf), *(r.boundaries for r in a), *(r.boundaries for r in b)])
    order = np.lexsort((t, owner))
    # 2. which regions of the models begin there: at a start both do
    kinds = [n, sizes[0].sum(), sizes[1].sum()]
    begins = np.repeat([[True, True, False], [True, False, True]], kinds, axis=1)[:, order]
    i, j = np.cumsum(begins, axis=1) - 1
    # 3. what lies between neighbours
    t, owner = np.maximum(t[order], spans[owner[order], 0]), owner[order]
    is_last = np.append(owner[1:] != owner[:-1], True)
    lengths = np.where(is_last, spans[owner, 1], np.append(t[1:], 0.0)) - t
    shares = lengths / (spans[owner, 1] - spans[owner, 0])
    counts = (first[i] != second[j]) & (shares > SAME_PLACE)
    return np.asarray(np.bincount(owner[counts], shares[counts], minlength=n), dtype=np.float64)


def joint_missed(a: DecisionRegions, b: DecisionRegions) -> dict[str, Any]:
    """What may have been missed of the one or the other, and what the estimate rests on."""
    known = [r for r in (a, b) if r.missed is not None]
    if not known:
        return {"missed": None, "missed_basis": None}
    basis = "; ".join(dict.fromkeys(str(r.missed_basis) for r in known))
    return {"missed": sum(r.missed or 0.0 for r in known), "missed_basis": basis}


def joint_status(a: DecisionRegions, b: DecisionRegions) -> Status:
    """The status of the pair: that of the model of which less is known."""
    if a.status == b.status:
        return a.status
    order = ["complete", "converged", "ties", "not_shown", "not_converged", "not_deterministic"]
    both = sorted((a.status, b.status), key=lambda s: order.index(s.kind) if s.kind in order else len(order))
    if both[1] == COMPLETE and both[0] == CONVERGED:
        return CONVERGED
    return both[1]


@dataclass(frozen=True, eq=False)
class OverlaidFaces:
    """The convex faces of two maps of labels laid over each other."""

    planar: "PlanarComplex"


def laid_over(a: DecisionPlane, b: DecisionPlane, matching: Matching, reason: str) -> Regions:
    """The regions of a pair on a plane: the exact regions of both models, laid over each other."""
    from inscape.compare.map_overlay import LabelMap, overlaid
    from inscape.partition.linear.planes.complex.dissolve import joined_faces

    first, second = matching.common(a.labels, b.labels)
    maps = [
        LabelMap.of(r.subdivision.planar, labels[r.face_regions]) for r, labels in ((a, first), (b, second))
    ]
    overlay = overlaid(maps[0], maps[1], a.domain.corners)
    base = int(overlay.labels.max()) + 1
    face_regions, numbers = joined_faces(overlay.planar, overlay.labels @ np.array([base, 1]))
    changed: Any = replace(
        a,
        labels=numbers,
        face_regions=face_regions,
        subdivision=OverlaidFaces(overlay.planar),  # type: ignore[arg-type]
        trees=None,
        is_exact=a.is_exact and b.is_exact,
        status=joint_status(a, b),
        n_evaluations=a.n_evaluations + b.n_evaluations,
        **joint_missed(a, b),
    )
    i, j = np.divmod(numbers, base)
    return Regions(changed, i, j, matching, (a.provenance, b.provenance), reason)
