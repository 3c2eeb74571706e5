"""Adaptive counting: decision regions of any model, at a small fraction of the evaluations of a grid."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import groupby, islice
from typing import Any

import numpy as np

from inscape.arguments import whole_number
from inscape.budget import check_evaluations
from inscape.errors import PartitionError, warn
from inscape.models import Model
from inscape.parallel import begun, single_products
from inscape.partition.decision.adaptive.answers import Trial, try_out
from inscape.partition.decision.adaptive.cells import cell_block, cell_block_length, limits_for
from inscape.partition.decision.adaptive.segments import block_length, segment_block
from inscape.partition.decision.regions import DecisionMesh, DecisionRegions, DecisionSegment, maker
from inscape.probes import Patch, Probe
from inscape.progress import Meter, duration_text
from inscape.provenance import Provenance

MOST_DIMENSIONS = 10
"""Of a probe: above, a cell has too many edges, and the first cells are as large as the probe."""
TYPICAL_EVALUATIONS = 30
"""On a segment of a trained network."""
MOST_OF_A_BLOCK = 0.95
"""The fraction of a block that is shown as done before it is: it may take more samples than usual."""
SECONDS_PER_SAMPLE = 2e-5
"""Of looking after the cells at a sample, beside the evaluation of the model."""
MOST_SECONDS, ANNOUNCED_ABOVE_SECONDS = 24 * 3600.0, 10.0
CELL_DIMENSION, CELL_SECONDS, CELL_GROWTH = 7, 4.0, 3.0
"""Cells alone, whatever the model: the dimension from which they count, the seconds of a probe there, and how
many times more each further dimension takes."""


def adaptive_regions(
    model: Model,
    probes: Sequence[Probe],
    *,
    resolution: int | None = None,
    tolerance: float | None = None,
    meter: Meter,
    asked: Callable[[int], None] = lambda n_samples: None,
) -> Iterator[DecisionRegions]:
    """The decision regions on each probe, refined where a region could hide.

    Probes of one kind are sampled together, a block of them at a time, so that each round is one stream of
    batches and memory does not grow with their number. After each batch `asked` is told at how many samples
    of its block the model has been evaluated; what it raises stops the work.
    """
    check_settings(probes, resolution, tolerance)
    done = 0
    show = _of_probes(meter, len(probes))
    show(done)
    alone = single_products() if model.is_concurrent else nullcontext()  # the products of each thread
    with model.session(), alone:
        trial = try_out(model, probes)
        # how it is evaluated is known now
        about = begun(partial(Provenance.of, model), at_once=not model.is_concurrent)
        provenance = None
        for (_, dim, _), group in groupby(probes, key=lambda p: (isinstance(p, Patch), p.dim, p.input_shape)):
            while block := _next_block(group, trial, resolution):
                provenance = provenance or about()  # before it is evaluated again, which may change it
                heard = replace(trial, asked=_of_samples(show, done, block, asked))
                made = maker(
                    DecisionSegment if dim == 1 else DecisionMesh,
                    method="adaptive",
                    is_exact=False,
                    resolution=resolution,
                    connectivity=None,
                    class_names=model.classes,
                    provenance=provenance,
                    **({"model": model} if dim == 1 else {}),
                )
                fields = _fields(model, heard, block, resolution, tolerance, done)
                for probe, own in zip(block, fields, strict=True):
                    own["n_evaluations"] += trial.n_evaluations_on(done)
                    own["probe"] = probe
                    done += 1
                    yield made(own)
                show(done)


def _of_probes(meter: Meter, n: int) -> Callable[[float], None]:
    """A meter of n probes that takes fractions of them, too; a single one is shown in thousandths."""
    each = 1000 if n == 1 else 1
    return lambda done: meter(int(each * done), each * n)


def _of_samples(
    show: Callable[[float], None], before: int, block: Sequence[Probe], asked: Callable[[int], None]
) -> Callable[[int], None]:
    """Shows how far a block of probes is, by the samples that it usually takes, and tells of the samples."""
    usual = len(block) * typical_evaluations(block[0])

    def hear(n_samples: int) -> None:
        asked(n_samples)
        show(before + len(block) * min(MOST_OF_A_BLOCK, n_samples / usual))

    return hear


def _next_block(group: Iterator[Probe], trial: Trial, resolution: int | None) -> list[Probe]:
    """The next probes of one kind, as many as fit into one block."""
    first = next(group, None)
    if first is None:
        return []
    length = block_length(first, trial) if first.dim == 1 else cell_block_length(first, trial, resolution)
    return [first, *islice(group, length - 1)]


def _fields(
    model: Model,
    trial: Trial,
    probes: Sequence[Probe],
    resolution: int | None,
    tolerance: float | None,
    first: int,
) -> Iterator[dict[str, Any]]:
    if probes[0].dim == 1:
        return segment_block(model, trial, probes, resolution, tolerance, first)
    return cell_block(model, trial, probes, resolution, first)


def n_blocks(model: Model, segments: Sequence[Probe]) -> int:
    """In how many blocks segments of one kind are sampled, each with calls of its own."""
    with model.session():
        return -(-len(segments) // block_length(segments[0], try_out(model, segments)))


def typical_evaluations(probe: Probe) -> int:
    """How often a network is evaluated on a probe by default: on planes and above half of what is allowed."""
    return TYPICAL_EVALUATIONS if probe.dim == 1 else limits_for(probe, "scores", None).budget // 2


def adaptive_seconds(probe: Probe, per_evaluation: float) -> float:
    """The work foreseen on a probe given the seconds of an evaluation of the model."""
    return typical_evaluations(probe) * (SECONDS_PER_SAMPLE + per_evaluation)


def check_settings(probes: Sequence[Probe], resolution: int | None, tolerance: float | None) -> None:
    """Raise an error for settings that adaptive counting cannot keep."""
    dim = probes[0].dim
    if dim > MOST_DIMENSIONS:
        raise PartitionError(
            f"cells in {dim} dimensions are too many to be fine, over the limit of {MOST_DIMENSIONS}: "
            "lower the dimension"
        )
    if dim == 1:
        check_evaluations(len(probes), TYPICAL_EVALUATIONS, "lower the number of probes")
    else:
        check_cells(len(probes), dim)
    if resolution is not None:
        whole_number(resolution, "resolution", 2, PartitionError)
    if tolerance is None:
        return
    if not (isinstance(tolerance, int | float | np.number) and 0 < tolerance < np.inf):
        raise PartitionError(f"tolerance={tolerance!r} must be a positive number, or None")
    if dim > 1:
        raise PartitionError(
            f"tolerance={tolerance} locates boundaries on segments: on a probe of dimension {dim} "
            "give a resolution instead"
        )


def check_cells(n_probes: int, dim: int) -> None:
    """Refuse or warn of cells in many dimensions, whose number grows with all of them."""
    each = CELL_SECONDS * CELL_GROWTH ** (dim - CELL_DIMENSION)
    total = n_probes * each
    if total <= ANNOUNCED_ABOVE_SECONDS or dim < CELL_DIMENSION:
        return
    work = (
        f"adaptive cells in {dim} dimensions take about {each:.0f} s per probe, {duration_text(total)} in all"
    )
    remedy = "lower the dimension or the number of probes, or take method='grid', which is coarse but quick"
    if total > MOST_SECONDS:
        raise PartitionError(f"{work}: {remedy}")
    warn(f"{work}: {remedy}")
