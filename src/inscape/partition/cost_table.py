"""What each method would cost on the usual probes of a model, measured on a small sample and carried over.

Of segments a few are walked, of a plane a small patch is subdivided, of the model a batch is evaluated, each
timed; what is counted there is carried over to all probes by their number, length or linear regions. The
slower the model, the smaller the sample.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from inscape.arguments import whole_number
from inscape.budget import MEMORY, in_bytes, timed
from inscape.errors import PartitionError
from inscape.models import Model, wrap
from inscape.partition.decision import decision_regions
from inscape.partition.decision.adaptive import typical_evaluations
from inscape.partition.decision.adaptive.segments import MOST_NUMBERS_IN_BLOCK
from inscape.partition.decision.exact import QUICKLY_EXACT, why_not_exact
from inscape.partition.decision.grid.lattice import DEFAULT_RESOLUTION
from inscape.partition.decision.method import check_method
from inscape.pictures import Shown
from inscape.probes import Patch, Probe, sample_probes
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
"""Of work on a sample of each kind, by what one evaluation takes; the least of it may take more."""
TIMED_SEGMENTS = 10
"""At most; at least one."""
EVALUATIONS_ON_SEGMENT = 100
"""Of a typical adaptive count."""
TIMED_KNOTS = (100, 2000)
"""The fewest and the most linear pieces of a segment on which its time is measured."""
TIMED_POINTS = (8, 256)
"""The fewest and the most points at which the model is evaluated to measure its time."""
TIMED_RESOLUTION = (8, 32)
"""The lowest and the highest of an adaptive plane on which the time of an evaluation is measured."""
BYTES_PER_FACE = 400
"""Of the planar complex itself."""


@dataclass(frozen=True, eq=False, repr=False)
class CostTable(Shown):
    """One row per kind of probe and method: n_evaluations, n_pieces, memory (bytes), seconds, note.

    What is not known is None; a method that the model does not allow has a note that says why.

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
        """Plain JSON; `from_dict` reads it back."""
        return {"schema": SCHEMA} | plain_fields(self)

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
                "time_text": _duration(row["seconds"]),
                "all_text": _duration(self.seconds_in_all(row)) if self._is_plan else "",
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
    costs: dict[str, tuple[Callable[..., TableRow], Callable[..., TableRow]]] = {
        "exact": (exact_segments_cost, _exact_plane),
        "adaptive": (_adaptive_segments, _adaptive_plane),
        "grid": (_grid, _grid),
    }
    rows: list[TableRow] = []
    chosen = METHODS if method == "auto" else (method,)
    with meter(progress, "costs") as show, wrapped.unchanged():
        groups: list[Sequence[Probe]] = [segments]
        if corners[0].size > 1:
            groups.append([Patch.through(corners)])
        for k, probes in enumerate(groups):
            for name in chosen:
                what = f"{len(probes):,} segments" if k == 0 else "1 plane"
                rows.append({"probes": what, "method": name} | costs[name][k](wrapped, probes))
                show(len(rows), len(groups) * len(chosen))
        provenance = Provenance.of(wrapped, seed)
    device = str(getattr(wrapped, "device", "cpu"))
    return CostTable(wrapped.name, tuple(rows), provenance, device, n_models, n_workers)


def _duration(seconds: float | None) -> str:
    return "" if seconds is None else duration_text(seconds)


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
) -> TableRow:
    whole = [None if v is None else round(v) for v in (n_evaluations, n_pieces, memory)]
    names = ("n_evaluations", "n_pieces", "memory")
    return dict(zip(names, whole, strict=True)) | {"seconds": seconds, "note": note}


def exact_segments_cost(model: Model, probes: Sequence[Probe]) -> TableRow:
    """What an exact walk along segments would take, from a short stretch of a few of them."""
    reason = why_not_exact(model, probes[0].input_shape, 1)
    if reason is not None:
        return _row(note=f"not possible: {reason}")
    n = len(probes)
    if model.structure in QUICKLY_EXACT:
        few = probes[:TIMED_SEGMENTS]
        return _row(seconds=timed(lambda: decision_regions(model, few, method="exact")) * n / len(few))
    from inscape.partition.linear.exact_cost import segment_cost, stretch

    cost = segment_cost(model, probes)
    affordable = SAMPLE_SECONDS / cost.per_evaluation
    few = as_segments(probes[: _between(1, affordable / TIMED_KNOTS[0], TIMED_SEGMENTS)])
    n_knots = _between(TIMED_KNOTS[0], affordable / len(few), TIMED_KNOTS[1])
    few = [stretch(segment, 0.5, min(1.0, n_knots / cost.n_regions)) for segment in few]
    regions: list[Any] = []

    def job() -> None:
        regions[:] = decision_regions(model, few, method="exact")

    seconds = timed(job) / sum(p.n_evaluations for p in regions)
    n_evaluations = n * (cost.n_regions + 1)
    shapes = model.graph(probes[0].input_shape).shapes
    widest = max(int(np.prod(shape)) for shape in shapes)
    memory = min(MEMORY, 2 * 8 * n_evaluations * widest)
    return _row(n_evaluations, n * cost.n_regions, memory, seconds * n_evaluations)


def _exact_plane(model: Model, probes: Sequence[Probe]) -> TableRow:
    (probe,) = probes
    reason = why_not_exact(model, probe.input_shape, 2)
    if reason is not None:
        return _row(note=f"not possible: {reason}")
    if model.structure in QUICKLY_EXACT:
        return _row(seconds=timed(lambda: decision_regions(model, probe, method="exact")))
    from inscape.partition.linear.exact_cost import plane_cost, seconds_per_region
    from inscape.probes.plane import domain_of

    n_regions = plane_cost(model, probes).n_regions
    graph = model.graph(probe.input_shape)
    widest = max(int(np.prod(shape)) for shape in graph.shapes)
    memory = n_regions * (BYTES_PER_FACE + graph.n_units / 8) + min(MEMORY, 8 * n_regions * widest)
    seconds = seconds_per_region(graph, domain_of(probe), n_regions) * n_regions
    return _row(n_regions, n_regions, memory, seconds)


def _adaptive_segments(model: Model, probes: Sequence[Probe]) -> TableRow:
    affordable = SAMPLE_SECONDS / _seconds_per_evaluation(model, probes[0])
    few = probes[: _between(1, affordable / EVALUATIONS_ON_SEGMENT, TIMED_SEGMENTS)]
    regions: list[Any] = []

    def job() -> None:
        regions[:] = decision_regions(model, few, method="adaptive")

    seconds, share = timed(job), len(probes) / len(few)
    n_evaluations = share * sum(p.n_evaluations for p in regions)
    return _row(n_evaluations, memory=_of_batches(model, probes, n_evaluations), seconds=share * seconds)


def _adaptive_plane(model: Model, probes: Sequence[Probe]) -> TableRow:
    (probe,) = probes
    affordable = SAMPLE_SECONDS / _seconds_per_evaluation(model, probe)
    resolution = _between(TIMED_RESOLUTION[0], math.sqrt(affordable), TIMED_RESOLUTION[1])
    regions: list[Any] = []

    def job() -> None:
        regions[:] = [decision_regions(model, probe, method="adaptive", resolution=resolution)]

    seconds, n_evaluations = timed(job), typical_evaluations(probe)
    return _row(
        n_evaluations,
        memory=_of_batches(model, probes, n_evaluations),
        seconds=seconds * n_evaluations / regions[0].n_evaluations,
    )


def _grid(model: Model, probes: Sequence[Probe]) -> TableRow:
    dim, r = probes[0].dim, DEFAULT_RESOLUTION[probes[0].dim]
    n_evaluations = len(probes) * r**dim
    seconds = n_evaluations * _seconds_per_evaluation(model, probes[0])
    return _row(n_evaluations, memory=_of_batches(model, probes, n_evaluations), seconds=seconds)


def _seconds_per_evaluation(model: Model, probe: Probe) -> float:
    """The time of one of many evaluations of a model, the more of them the quicker it is."""
    n, most = TIMED_POINTS
    while True:
        points = probe.points(np.linspace(0, 1, n) if probe.dim == 1 else np.zeros((n, 2)))
        seconds = timed(lambda points=points: model.labels(points)) / n  # type: ignore[misc]
        if n == most or seconds * 2 * n > SAMPLE_SECONDS / 4:
            return seconds
        n = min(most, 2 * n)


def _between(low: int, wanted: float, high: int) -> int:
    """A whole number near the one that is wanted, within bounds."""
    return round(min(max(wanted, low), high))


def _of_batches(model: Model, probes: Sequence[Probe], n_evaluations: float) -> int:
    """Bytes of a batch, and of the generators of the probes that are sampled together."""
    generators = probes[0].generators
    together = min(len(probes) * generators.nbytes, max(generators.nbytes, 8 * MOST_NUMBERS_IN_BLOCK))
    return together + model.batch_memory(generators[0].size, math.ceil(n_evaluations))
