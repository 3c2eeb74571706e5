"""What each method would cost on the usual probes of a model, measured on a small sample and carried over.

Of segments a few are walked, of a plane a small patch is subdivided, of the model a batch is evaluated, each
timed; what is counted there is carried over to all probes by their number, length or linear regions. The
slower the model, the smaller the sample: to ask must take seconds, whatever the answer. Where even the least
sample would take longer, a time is estimated from that of one evaluation, or is known to be at least so much;
the notes say so.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from inscape.arguments import whole_number
from inscape.budget import MEMORY, in_bytes, timed, until_spent
from inscape.errors import PartitionError
from inscape.models import Model, wrap
from inscape.parallel import n_threads, working
from inscape.partition.decision import decision_regions
from inscape.partition.decision.adaptive import (
    SECONDS_PER_SAMPLE,
    TYPICAL_EVALUATIONS,
    adaptive_regions,
    adaptive_seconds,
    n_blocks,
    typical_evaluations,
)
from inscape.partition.decision.adaptive.segments import MOST_NUMBERS_IN_BLOCK
from inscape.partition.decision.exact import QUICKLY_EXACT, n_vertices_on, why_not_exact
from inscape.partition.decision.grid.lattice import DEFAULT_RESOLUTION
from inscape.partition.decision.method import check_method
from inscape.pictures import Shown
from inscape.probes import Patch, Probe, Segment, sample_probes
from inscape.probes.segment import as_segments
from inscape.probes.source import PointSource, for_model
from inscape.progress import Meter, duration_text, meter
from inscape.provenance import Provenance
from inscape.seeding import RandomState, as_seed
from inscape.serialising import SCHEMA, check_schema, plain_fields, restored_fields
from inscape.text_table import Columns, TableRow, notes_below, text_table

METHODS = ("exact", "adaptive", "grid")
COLUMNS: Columns = {
    "probes": ("probes", ""),
    "method": ("method", ""),
    "n_evaluations": ("evaluations", ",.0f"),
    "n_pieces": ("linear pieces", ",.0f"),
    "memory_text": ("memory", ""),
    "time_text": ("time", ""),
    "all_text": ("", ""),
}
SAMPLE_SECONDS = 2.0
"""Of work on a sample of each kind, by what one evaluation takes."""
MOST_SAMPLE_SECONDS = 8.0
"""After which a sample that takes longer than that is given up."""
TIMED_SEGMENTS = 10
"""At most; at least one."""
EVALUATIONS_ON_SEGMENT = 100
"""Of an adaptive count that has much to do."""
LEAST_SEGMENT = 40
"""Evaluations of the first look at a model and the first samples: of the least that a count takes."""
TIMED_KNOTS = (10, 2000)
"""The fewest and the most linear pieces on which the time of one is measured: it hardly depends on them."""
KNOTS_ON_SEGMENT = 100
"""Of a sample, where it is of several segments."""
LEAST_WALK = 4
"""Evaluations that must be affordable for a walk to be tried."""
FEW_POINTS = 2
"""At so many at least the model is evaluated to measure its time, up to a whole batch if that is quick."""
EVALUATIONS_OF_CROSS = 16
"""Of the plane's cost at one of its points: a few tries on two lines."""
LEAST_PLANE = 120
"""Evaluations that the smallest plane takes on which the time of a region is measured."""
TIMED_RESOLUTION = (8, 32)
"""The lowest and the highest of an adaptive plane on which only the time of an evaluation is measured."""
LEAST_ADAPTIVE_PLANE = 200
"""Evaluations that must be affordable for that."""
FROM_ONE_EVALUATION = "not tried, estimated from the time of an evaluation in float64"
USUAL = (
    f"not tried: {TYPICAL_EVALUATIONS} evaluations on a segment are usual, and more where regions are many"
)
USUAL_ON_PLANE = "not tried as a whole: so many evaluations are usual, and at most twice as many"
BYTES_PER_FACE = 400
"""Of the planar complex itself."""


@dataclass(frozen=True, eq=False, repr=False)
class CostTable(Shown):
    """One row per kind of probe and method: n_evaluations, n_pieces, memory (bytes), seconds, at_least, note.

    What is not known is None; a method that the model does not allow has a note that says why. In a row that
    is `at_least` so much, evaluations and seconds may be more.

    Attributes:
        model: its name.
        rows: what each method would cost, of one model.
        provenance: seed, fingerprint and version.
        device: where the model was evaluated.
        n_models: how many models of this kind a plan is for.
        n_workers: on how many such devices, each with a process, they are worked on side by side.
    """

    model: str
    rows: tuple[TableRow, ...]
    provenance: Provenance
    device: str = "cpu"
    n_models: int = 1
    n_workers: int = 1

    def seconds_in_all(self, row: TableRow) -> float | None:
        """The seconds of all models, by one row: whole models go to each worker, none waits for another.

        >>> row = {"seconds": 3.0}
        >>> CostTable("net", (row,), None, n_models=100, n_workers=8).seconds_in_all(row)
        39.0
        """
        return None if row["seconds"] is None else row["seconds"] * -(-self.n_models // self.n_workers)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back. Rows are of one model, `seconds_in_all` of all models."""
        in_all = [self.seconds_in_all(row) for row in self.rows]
        return {"schema": SCHEMA} | plain_fields(self) | {"seconds_in_all": in_all}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The table that `to_dict` wrote."""
        check_schema(data, what="table of costs", error=PartitionError)
        table: Self = restored_fields(cls, data, what="table of costs", error=PartitionError)
        return table

    def to_text(self, *, width: int | None = None) -> str:
        """The table, and the notes on its rows."""
        rows = [
            row
            | {
                "memory_text": "" if row["memory"] is None else in_bytes(row["memory"]),
                "time_text": _duration(row["seconds"], row),
                "all_text": _duration(self.seconds_in_all(row), row) if self._is_plan else "",
            }
            for row in self.rows
        ]
        notes = [(f"{row['method']} on {row['probes']}", row["note"]) for row in self.rows]
        plan = f"{self.n_models:,} models on {self.n_workers:,} x {self.device}"
        columns = {**COLUMNS, "all_text": (plan, "")}
        paragraphs = [text_table(rows, columns, width=width), notes_below(notes, width=width)]
        return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)

    @property
    def _is_plan(self) -> bool:
        return (self.n_models, self.n_workers) != (1, 1)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        phrases = [
            f"{row['method']} on {row['probes']} {duration_text(row['seconds'])}"
            for row in self.rows
            if row["seconds"] is not None
        ]
        return f"<costs of {self.model}: {', '.join(phrases)}>"


def cost_table(
    model: Any,
    x: Any,
    *,
    method: str = "auto",
    n_probes: int = 100,
    n_models: int = 1,
    n_workers: int = 1,
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
) -> CostTable:
    """What region counts and pictures of a model would cost by each method.

    Args:
        model: anything that `inscape.wrap` takes.
        x: data, as for `inscape.sample_probes`: segments join pairs of points, the plane goes through
            three; data of one feature have none.
        method: "exact", "adaptive" or "grid"; "auto" for all three.
        n_probes: of segments, as `inscape.region_count` draws them.
        n_models: how many models like this one a plan is for.
        n_workers: how many processes, each with a device like the one that was measured, share them.
        random_state: a seed, a generator, or None; the seed is recorded.
        progress: None for a bar after two seconds, False for none; a function gets (rows done, rows in all).

    >>> table = cost_table(lambda x: x @ [[1.0, -1.0]], [[0.0], [1.0], [3.0]], method="grid", random_state=0)
    >>> [(row["probes"], row["n_evaluations"]) for row in table.rows]
    [('100 segments', 20000)]
    """
    check_method(method)
    whole_number(n_models, "n_models", 1, PartitionError)
    whole_number(n_workers, "n_workers", 1, PartitionError)
    wrapped, seed = wrap(model), as_seed(random_state)
    source = PointSource(for_model(wrapped, x))
    segments = sample_probes(source, n=n_probes, random_state=seed)
    corners = source.everything()[0][_three(len(source), seed)]
    chosen = METHODS if method == "auto" else (method,)
    groups: list[Sequence[Probe]] = [segments]
    if corners[0].size > 1:
        groups.append([Patch.through(corners)])
    rows: list[TableRow] = []
    total = 1 + len(groups) * len(chosen)
    with meter(progress, "costs") as show, wrapped.unchanged():
        show(0, total)
        each = math.nan if chosen == ("exact",) else _seconds_per_evaluation(wrapped, segments)
        show(1, total)
        for probes in groups:
            what = f"{len(probes):,} segments" if probes is segments else "1 plane"
            for name in chosen:
                rows.append({"probes": what, "method": name} | _cost(wrapped, probes, name, each))
                show(1 + len(rows), total)
        provenance = Provenance.of(wrapped, seed)
    device = str(getattr(wrapped, "device", "cpu"))
    return CostTable(wrapped.name, tuple(rows), provenance, device, n_models, n_workers)


def _cost(model: Model, probes: Sequence[Probe], method: str, each: float) -> TableRow:
    """The row of a method on segments or on a plane, where one of many evaluations takes `each` seconds."""
    is_plane = probes[0].dim == 2
    if method == "exact":
        return _exact_plane(model, probes) if is_plane else exact_segments_cost(model, probes)
    if method == "grid":
        return _grid(model, probes, each)
    return (_adaptive_plane if is_plane else _adaptive_segments)(model, probes, each)


def _duration(seconds: float | None, row: TableRow) -> str:
    if seconds is None:
        return ""
    return f"over {duration_text(seconds)}" if row.get("at_least") else duration_text(seconds)


def _three(n: int, seed: int) -> Any:
    """Three of n points."""
    if n < 3:
        raise PartitionError(f"a plane goes through three points, of which there are {n}: give more data")
    return np.random.default_rng(seed).choice(n, 3, replace=False)


def _row(
    n_evaluations: float | None = None,
    n_pieces: float | None = None,
    memory: float | None = None,
    seconds: float | None = None,
    note: str = "",
    *,
    at_least: bool = False,
) -> TableRow:
    whole = [None if v is None else round(v) for v in (n_evaluations, n_pieces, memory)]
    names = ("n_evaluations", "n_pieces", "memory")
    return dict(zip(names, whole, strict=True)) | {"seconds": seconds, "at_least": at_least, "note": note}


def exact_segments_cost(model: Model, probes: Sequence[Probe]) -> TableRow:
    """What an exact walk along segments would take, from a short stretch of a few of them."""
    reason = why_not_exact(model, probes[0].input_shape, 1)
    if reason is not None:
        return _row(note=f"not possible: {reason}")
    if model.structure in QUICKLY_EXACT:
        return _without_pieces(model, probes)
    from inscape.partition.linear.exact_cost import measured_per_evaluation, segment_cost, stretch

    n_pieces = segment_cost(model, probes).n_regions
    n_evaluations = len(probes) * (n_pieces + 1)
    memory = min(n_threads(None) * MEMORY, 2 * 8 * n_evaluations * _widest(model, probes[0]))
    seconds, note = measured_per_evaluation(model, probes[0]), FROM_ONE_EVALUATION
    affordable = SAMPLE_SECONDS / seconds
    if affordable >= LEAST_WALK:
        few = as_segments(probes[: _between(1, affordable / KNOTS_ON_SEGMENT, TIMED_SEGMENTS)])
        n_knots = _between(TIMED_KNOTS[0], affordable / len(few), TIMED_KNOTS[1])
        few = [stretch(segment, 0.5, min(1.0, n_knots / n_pieces)) for segment in few]
        seconds, note = _seconds_per_position(model, few), ""
    return _row(n_evaluations, len(probes) * n_pieces, memory, seconds * n_evaluations, note)


def _seconds_per_position(model: Model, segments: Sequence[Segment]) -> float:
    """The time of one position of an exact walk along segments."""
    regions: list[Any] = []

    def job() -> None:
        regions[:] = decision_regions(model, segments, method="exact")

    seconds = timed(job, once_above=SAMPLE_SECONDS)
    return seconds / sum(int(p.n_evaluations) for p in regions)


def _exact_plane(model: Model, probes: Sequence[Probe]) -> TableRow:
    (probe,) = probes
    reason = why_not_exact(model, probe.input_shape, 2)
    if reason is not None:
        return _row(note=f"not possible: {reason}")
    if model.structure in QUICKLY_EXACT:
        return _without_pieces(model, probes)
    from inscape.partition.linear import exact_cost

    each = exact_cost.measured_per_evaluation(model, probe)
    n_crosses = _between(
        1, SAMPLE_SECONDS / each / EVALUATIONS_OF_CROSS, exact_cost.CAREFUL_SAMPLING.n_crosses
    )
    sampling = exact_cost.CAREFUL_SAMPLING._replace(n_crosses=n_crosses)
    n_regions = exact_cost.plane_cost(model, probes, sampling).n_regions
    graph = model.graph(probe.input_shape)
    memory = n_regions * (BYTES_PER_FACE + graph.n_units / 8)
    memory += min(MEMORY, 8 * n_regions * _widest(model, probe))
    if LEAST_PLANE * each > MOST_SAMPLE_SECONDS:
        return _row(n_regions, n_regions, memory, each * n_regions, FROM_ONE_EVALUATION)
    side = exact_cost.timed_side(graph, n_regions)
    with working(None):
        each = exact_cost.seconds_per_vertex(
            partial(n_vertices_on, model), probe, side, once_above=SAMPLE_SECONDS
        )
    return _row(n_regions, n_regions, memory, each * n_regions)


def _without_pieces(model: Model, probes: Sequence[Probe]) -> TableRow:
    """What exact regions take that are not made of linear pieces: of one probe, or of some if it is quick."""

    def of(n: int) -> TableRow:
        few, regions = probes[:n], list[Any]()

        def job() -> None:
            regions[:] = decision_regions(model, few, method="exact")

        seconds = timed(job, once_above=SAMPLE_SECONDS)
        share = len(probes) / n
        return _row(share * sum(int(p.n_evaluations) for p in regions), seconds=share * seconds)

    try:
        row = of(1)
        if row["seconds"] / len(probes) * TIMED_SEGMENTS < SAMPLE_SECONDS and len(probes) > 1:
            row = of(min(len(probes), TIMED_SEGMENTS))
    except PartitionError as error:
        return _row(note=f"not possible: {error.reason}")
    return row


def _widest(model: Model, probe: Probe) -> int:
    """The entries of the largest tensor at a point inside the network."""
    return max(math.prod(shape) for shape in model.graph(probe.input_shape).shapes)


def _adaptive_segments(model: Model, probes: Sequence[Probe], each: float) -> TableRow:
    if LEAST_SEGMENT * each > MOST_SAMPLE_SECONDS:
        n_evaluations = len(probes) * TYPICAL_EVALUATIONS
        memory = _of_batches(model, probes, n_evaluations)
        return _row(n_evaluations, memory=memory, seconds=n_evaluations * each, note=USUAL)
    few = probes[: _between(1, SAMPLE_SECONDS / each / EVALUATIONS_ON_SEGMENT, TIMED_SEGMENTS)]
    n_asked, is_stopped = _asked_on(model, few)
    share = len(probes) / len(few)
    seconds = share * n_asked * (each + SECONDS_PER_SAMPLE)
    if not is_stopped and n_asked * each <= SAMPLE_SECONDS:
        sampled = timed(partial(decision_regions, model, few, method="adaptive"))
        of_calls = max(0.0, sampled - n_asked * each)  # of a block, however many segments are in it
        seconds = n_blocks(model, probes) * of_calls + share * (sampled - of_calls)
    first = "the first segment was" if len(few) == 1 else f"the first {len(few)} segments were"
    note = f"at least: {first} given up after {n_asked:,} evaluations" if is_stopped else ""
    memory = _of_batches(model, probes, share * n_asked)
    return _row(share * n_asked, memory=memory, seconds=seconds, note=note, at_least=is_stopped)


class _SpentError(Exception):
    """A sample took as long as it may."""


def _asked_on(model: Model, few: Sequence[Probe]) -> tuple[int, bool]:
    """How often adaptive counts evaluate a model on segments, and whether they were stopped midway."""
    n_asked, is_spent = 0, until_spent(MOST_SAMPLE_SECONDS)

    def hear(n_samples: int) -> None:
        nonlocal n_asked
        n_asked = n_samples
        if is_spent():
            raise _SpentError

    try:
        with working(None):
            regions = [*adaptive_regions(model, few, meter=lambda done, total: None, asked=hear)]
    except _SpentError:
        return n_asked, True
    return sum(p.n_evaluations for p in regions), False


def _adaptive_plane(model: Model, probes: Sequence[Probe], each: float) -> TableRow:
    (probe,) = probes
    affordable, n_evaluations = SAMPLE_SECONDS / each, typical_evaluations(probe)
    seconds, note = adaptive_seconds(probe, each), USUAL_ON_PLANE
    if affordable >= LEAST_ADAPTIVE_PLANE:
        is_whole = affordable >= 2 * n_evaluations
        resolution = _between(TIMED_RESOLUTION[0], math.sqrt(affordable), TIMED_RESOLUTION[1])
        regions: list[Any] = []

        def job() -> None:
            regions[:] = [
                decision_regions(model, probe, method="adaptive", resolution=None if is_whole else resolution)
            ]

        seconds, n_sampled = timed(job, once_above=SAMPLE_SECONDS), regions[0].n_evaluations
        if is_whole:
            n_evaluations, note = n_sampled, ""
        seconds *= n_evaluations / n_sampled
    memory = _of_batches(model, probes, n_evaluations)
    return _row(n_evaluations, memory=memory, seconds=seconds, note=note)


def _grid(model: Model, probes: Sequence[Probe], each: float) -> TableRow:
    dim, r = probes[0].dim, DEFAULT_RESOLUTION[probes[0].dim]
    n_evaluations = len(probes) * r**dim
    return _row(n_evaluations, memory=_of_batches(model, probes, n_evaluations), seconds=n_evaluations * each)


def _seconds_per_evaluation(model: Model, probes: Sequence[Probe]) -> float:
    """The time of one of many evaluations on a grid on segments, of more and more while they are quick."""
    is_too_long = until_spent(MOST_SAMPLE_SECONDS)
    points = probes[0].points(np.linspace(0, 1, FEW_POINTS))
    start = time.perf_counter()
    model.labels(points[:1])  # the first call imports and prepares: it says no more than an upper bound
    if is_too_long():
        return time.perf_counter() - start
    n, seconds = FEW_POINTS, timed(partial(model.labels, points), once_above=SAMPLE_SECONDS) / FEW_POINTS
    most = min(len(probes) * DEFAULT_RESOLUTION[1], model.batch_length(points[0].size))
    on_grid = math.inf
    while 2 * n <= most and seconds * 2 * n <= SAMPLE_SECONDS and not is_too_long():
        n *= 2
        resolution = min(n, DEFAULT_RESOLUTION[1])
        few = probes[: n // resolution]
        job = partial(decision_regions, model, few, method="grid", resolution=resolution)
        seconds = on_grid = min(on_grid, timed(job) / (len(few) * resolution))
    return seconds


def _between(low: int, wanted: float, high: int) -> int:
    """A whole number near the one that is wanted, within bounds."""
    return round(min(max(wanted, low), high))


def _of_batches(model: Model, probes: Sequence[Probe], n_evaluations: float) -> int:
    """Bytes of a batch, and of the generators of the probes that are sampled together."""
    generators = probes[0].generators
    together = min(len(probes) * generators.nbytes, max(generators.nbytes, 8 * MOST_NUMBERS_IN_BLOCK))
    n, size = math.ceil(n_evaluations), generators[0].size
    batch = model.batch_memory(size, n)
    if model.structure == "piecewise-affine":
        inside = 2 * _widest(model, probes[0]) * model.dtype.itemsize
        batch = max(batch, min(n, model.batch_length(size)) * inside)
    return together + batch
