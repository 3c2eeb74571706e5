"""The largest difference of the scores of two models on a probe, where it is, and of which class."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from inscape.arrays import Array, Floats, Ints
from inscape.budget import BUDGET, MEMORY
from inscape.compare.matching import Matching
from inscape.compare.on_probes import Pair
from inscape.errors import PartitionError
from inscape.measures.unlabelled import as_probabilities
from inscape.partition.decision.regions import DecisionPlane, DecisionRegions, DecisionSegment
from inscape.pictures import Shown
from inscape.probes import Probe
from inscape.probes.plane import domain_of
from inscape.probes.segment import as_segment
from inscape.progress import Meter, meter
from inscape.serialising import plain_fields, restored_fields

if TYPE_CHECKING:
    from torch import Tensor

N_ALONG_SEGMENT = 400
N_ON_PLANE = 10_000
"""Where scores are evaluated, beside places where labels change, if no vertex is known."""
SCALES = ("own", "softmax")


@dataclass(frozen=True, eq=False)
class MaxDifference(Shown):
    """The largest |score_a - score_b| over the points of a probe and the classes.

    Attributes:
        value: the difference.
        label: the class whose scores differ so, in the common numbering.
        class_name: its name.
        coordinates: where on the probe: (t,) on a segment, coordinates on a plane.
        point: that point of the input space.
        is_exact: whether it is the maximum, up to rounding; else the largest that was met, a lower bound.
        of: what is compared: "scores", "probabilities", or "what goes into softmax" where both models end in
            one.

    >>> import inscape, torch
    >>> a, b = (torch.nn.Linear(1, 2).double() for _ in range(2))
    >>> for net, slope in ((a, 1.0), (b, 1.5)):
    ...     _ = net.weight.data.copy_(torch.tensor([[0.0], [slope]])), net.bias.data.zero_()
    >>> d = inscape.compare(a, b, inscape.Segment([0.0], [2.0])).max_difference
    >>> d.value, d.label, d.point.tolist(), d.is_exact
    (1.0, 1, [2.0], True)
    """

    value: float
    label: int
    class_name: str
    coordinates: tuple[float, ...]
    point: Floats
    is_exact: bool
    of: str

    def __repr__(self) -> str:
        sign = "=" if self.is_exact else ">="
        where = ", ".join(f"{c:.4g}" for c in self.coordinates)
        largest = f"largest difference of {self.of} {sign} {self.value:.4g}"
        return f"<{largest}, of class {self.class_name} at ({where})>"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back."""
        return plain_fields(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The difference that `to_dict` wrote."""
        difference: Self = restored_fields(cls, data, what="difference", error=PartitionError)
        return difference


def max_difference(pair: Pair, regions: DecisionRegions, scale: str) -> MaxDifference:
    """The largest difference of two models' scores on the probe of their regions.

    Both scores of two piecewise-affine networks are affine on each linear region of the pair, so that the
    difference is largest at a vertex: the scores are compared at all of them, and the maximum is exact.
    Probabilities bend between the vertices, and of other models nothing is known between samples: then the
    largest difference that was met is a lower bound. So it is where all vertices are reckoned to take more
    than a minute: nobody asked for that long a wait.
    """
    if scale == "own" and (reason := pair.matching.why_not_scores) is not None:
        raise PartitionError(reason, remedy="compare labels, or probabilities by scores='softmax'")
    if pair.matching.columns is None:
        raise PartitionError(str(pair.matching.why_not_scores))
    probe = regions.probe
    graphs = _graphs(pair, probe)
    if graphs is None:
        return _at_samples(pair, regions, scale)
    joint = None if probe.dim == 1 else _side_by_side(graphs)
    if _seconds(pair, joint, probe) > BUDGET:
        return _at_samples(pair, regions, scale)
    softened = scale == "softmax"
    heads = {g.head for g in graphs} - {None}
    of = "probabilities" if softened else f"what goes into {heads.pop()}" if heads else "scores"
    compared = _ScoreDifferences(pair.matching, softened)
    with meter(None, "largest difference") as show:
        if probe.dim == 1:
            t, label = _on_segment(graphs, probe, compared, show)
            coordinates, point = (t,), probe.points([t])[0]
        else:
            xy, label = _on_plane(pair, graphs, joint, probe, compared, show)
            coordinates = tuple(xy.tolist())
            point = domain_of(probe).plane.points(xy[None])[0].reshape(probe.input_shape)
    import torch

    x = torch.from_numpy(np.ascontiguousarray(point))[None]
    values = [g.evaluate(x).reshape(1, -1).numpy() for g in graphs]
    value = float(compared(*values)[0, label])
    return MaxDifference(
        value,
        _label(label, values[0]),
        _class(pair.matching, label, values[0]),
        coordinates,
        point,
        not softened,
        of,
    )


def _label(column: int, scores: Floats) -> int:
    """The label of a column: a single score is that of label 1."""
    return 1 if scores.shape[1] == 1 else column


def _class(matching: Matching, column: int, scores: Floats) -> str:
    return matching.name(_label(column, scores))


class _ScoreDifferences:
    """|score_a - score_b| for each class."""

    def __init__(self, matching: Matching, softened: bool) -> None:
        assert matching.columns is not None
        self.columns, self.softened, self.kinds = matching.columns, softened, matching.kinds

    def __call__(self, first: Array, second: Array) -> Floats:
        """The differences (n, c) of scores (n, c) as the networks' graphs give them."""
        one, other = (np.asarray(s, dtype=np.float64) for s in (first, second[:, self.columns]))
        if self.softened:
            one, other = (as_probabilities(scores, "logits") for scores in (one, other))
        return np.abs(one - other)


def _graphs(pair: Pair, probe: Probe) -> tuple[Any, Any] | None:
    """The graphs of both networks; None if one is no piecewise-affine network."""
    if any(m.structure != "piecewise-affine" for m in (pair.a, pair.b)):
        return None
    return pair.a.graph(probe.input_shape), pair.b.graph(probe.input_shape)


def _side_by_side(graphs: Sequence[Any]) -> Any:
    """The graph of the scores of both networks, (c_1 + c_2,)."""
    from inscape.models.graph.joining import side_by_side

    first, second = (g.reshaped((int(np.prod(g.shapes[g.output])),)) for g in graphs)
    return side_by_side(first, second)


def _seconds(pair: Pair, joint: Any, probe: Probe) -> float:
    """What looking at all vertices is reckoned to take."""
    from inscape.partition.linear.exact_cost import joint_seconds, segment_cost

    models = pair.a, pair.b
    with pair.a.unchanged(), pair.b.unchanged():
        if probe.dim == 1:
            return sum(segment_cost(model, [probe]).seconds for model in models)
        return joint_seconds(models, joint, probe)


def _on_segment(
    graphs: Sequence[Any], probe: Probe, compared: _ScoreDifferences, show: Meter
) -> tuple[float, int]:
    """Where on a segment the difference is largest, and the column: at a breakpoint of either network."""
    from inscape.partition.linear.regions import KNOT_TOLERANCE
    from inscape.partition.linear.segments.walk import walk

    segment = as_segment(probe)
    curves: list[tuple[Floats, Floats]] = []
    for k, graph in enumerate(graphs):
        stretches: list[tuple[Floats, Floats]] = []
        walk(
            graph,
            [segment],
            lambda r, s, _, stretches=stretches: stretches.append((r.t, s.double().numpy())),  # type: ignore[misc]
            memory=MEMORY,
            tolerance=KNOT_TOLERANCE,
            done=lambda fraction, k=k: show(int(1000 * (k + fraction)), 2000),  # type: ignore[misc]
        )
        curves.append((np.concatenate([t for t, _ in stretches]), np.concatenate([s for _, s in stretches])))
    every = np.union1d(curves[0][0], curves[1][0])
    values = [np.stack([np.interp(every, t, column) for column in s.T], axis=1) for t, s in curves]
    gap = compared(*values)
    at, label = np.unravel_index(int(gap.argmax()), gap.shape)
    return float(every[at]), int(label)


def _on_plane(
    pair: Pair, graphs: Sequence[Any], joint: Any, probe: Probe, compared: _ScoreDifferences, show: Meter
) -> tuple[Floats, int]:
    """The coordinates at which the difference is largest, and the column: at a vertex of the joint walk."""
    from inscape.partition.linear.planes.subdivision import subdivide

    c = int(np.prod(graphs[0].shapes[graphs[0].output]))
    best: list[tuple[float, Floats, int]] = []

    def keep_largest(xy: Floats, output: "Tensor") -> None:
        gap = compared(output[:, :c].numpy(), output[:, c:].numpy())
        at, label = np.unravel_index(int(gap.argmax()), gap.shape)
        if not best or gap[at, label] > best[0][0]:
            best[:] = [(float(gap[at, label]), xy[at].copy(), int(label))]

    domain = domain_of(probe)
    with pair.a.unchanged(), pair.b.unchanged():
        subdivide(
            joint,
            domain.plane,
            domain.corners,
            memory=MEMORY,
            sink=keep_largest,
            done=lambda fraction: show(int(1000 * fraction), 1000),
        )
    _, xy, label = best[0]
    return xy, label


def _at_samples(pair: Pair, regions: DecisionRegions, scale: str) -> MaxDifference:
    """The largest difference that is met at points all over the probe: a lower bound."""
    places, points = sample_places(regions)
    one, other = (np.asarray(m.scores(points), dtype=np.float64) for m in (pair.a, pair.b))
    assert pair.matching.columns is not None
    other = other[:, pair.matching.columns]
    if scale == "softmax":
        one, other = (
            as_probabilities(scores, str(kind))
            for scores, kind in zip((one, other), pair.matching.kinds, strict=True)
        )
    gap = np.abs(one - other)
    at, label = np.unravel_index(int(gap.argmax()), gap.shape)
    return MaxDifference(
        float(gap[at, label]),
        _label(int(label), one),
        _class(pair.matching, int(label), one),
        tuple(places[at].tolist()),
        points[at],
        False,
        "probabilities" if scale == "softmax" else str(pair.matching.kinds[0]),
    )


def sample_places(regions: DecisionRegions) -> tuple[Floats, Floats]:
    """Coordinates (n, 1 or 2) on a probe and the points there: all over it, and where labels change."""
    probe = regions.probe
    if probe.dim == 1:
        segment = as_segment(probe)
        ends: Ints | Floats = regions.boundaries if isinstance(regions, DecisionSegment) else np.empty(0)
        t = np.union1d(np.linspace(*segment.span, N_ALONG_SEGMENT), ends)
        return t[:, None], segment.points(t)
    domain = domain_of(probe)
    weights = np.random.default_rng(0).dirichlet(np.ones(len(domain.corners)), N_ON_PLANE)
    xy = np.concatenate([domain.corners, weights @ domain.corners])
    if isinstance(regions, DecisionPlane):
        xy = np.concatenate([xy, regions.subdivision.planar.xy])
    return xy, domain.plane.points(xy).reshape(-1, *probe.input_shape)
