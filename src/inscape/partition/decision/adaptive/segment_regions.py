"""From adaptive samples on segments to their regions."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats, Ints
from inscape.models import Model
from inscape.partition.decision.adaptive.first_look import Trial
from inscape.partition.decision.adaptive.missed import StepDoubt, status_of, unmet_regions
from inscape.partition.decision.adaptive.segments import FINEST, N_STEPS, Samples
from inscape.partition.decision.top_scores import TopScores, top_two
from inscape.probes import Probe, Segment

_NUMBERS = 2**22
_SAMPLES = 2**13


def block_length(probe: Probe, trial: Trial) -> int:
    """How many segments fit into one block: of their generators, and of the scores of their samples."""
    samples = _NUMBERS // (64 * trial.n_classes) if trial.rule == "scores" else _SAMPLES // N_STEPS
    return max(1, min(_NUMBERS // probe.generators.size, samples))


def segment_block(
    model: Model,
    trial: Trial,
    probes: Sequence[Probe],
    resolution: int | None,
    tolerance: float | None,
    first: int,
) -> Iterator[dict[str, Any]]:
    """What a `SegmentRegions` holds beyond the common, for each segment of a block."""
    generators = np.empty((len(probes), *probes[0].generators.shape))
    for i, probe in enumerate(probes):
        generators[i] = probe.generators
    samples = Samples(model, trial, generators, probes[0].input_shape, resolution or FINEST, first)
    spans = np.array([p.span if isinstance(p, Segment) else (0.0, 1.0) for p in probes])
    follows = trial.is_deterministic and resolution is None  # a resolution is the finest step
    if trial.is_deterministic:
        samples.refine()
    steps = None if trial.rule == "scores" else _step_doubt(samples, len(probes), follows)
    if tolerance is not None and trial.is_deterministic:
        samples.locate(tolerance / (spans[:, 1] - spans[:, 0]))
    yield from _results(samples, trial, spans, steps, tolerance)


def _step_doubt(samples: Samples, n_probes: int, follows: bool) -> StepDoubt:
    """What the regions that are narrower than the first step, and boundaries down to rounding, tell."""
    a, n_first, step = samples.answers, n_probes * N_STEPS, 1 / (N_STEPS - 1)
    order = np.lexsort((samples.u[: a.n], samples.probe[: a.n]))
    probe, labels, u = samples.probe[order], a.labels[order], samples.u[order]
    begins = np.flatnonzero((labels[1:] != labels[:-1]) | (probe[1:] != probe[:-1])) + 1
    at = (u[begins] + u[begins - 1]) / 2
    is_met = np.logical_or.reduceat(order < n_first, np.concatenate([[0], begins]))[1:-1]
    inner = is_met & (
        probe[begins[:-1] - 1] == probe[begins[1:]]
    )  # neither the first nor the last of its own
    left, right = begins[:-1][inner], begins[1:][inner]
    width = (at[1:] - at[:-1])[inner]
    unmet = unmet_regions(width, 1 + (labels[left - 1] == labels[right]), step)
    first_changes = np.diff(a.labels[:n_first].reshape(n_probes, N_STEPS), axis=1) != 0
    n_late = int(len(begins) - (n_probes - 1) - first_changes.sum())
    chance_left = np.bincount(probe, samples.chance_left()[order], n_probes).astype(np.float64)
    is_hiding = np.zeros(n_probes, np.bool_)
    if follows:
        is_hiding[samples.follow()] = True
    return StepDoubt(
        np.bincount(probe[left], unmet, n_probes).astype(np.float64),
        int((width < step).sum()),
        n_late,
        chance_left,
        is_hiding,
    )


def _results(
    samples: Samples, trial: Trial, spans: Floats, steps: StepDoubt | None, tolerance: float | None
) -> Iterator[dict[str, Any]]:
    a, b = samples.answers, len(spans)
    order = np.lexsort((samples.u[: a.n], samples.probe[: a.n]))
    probe, labels = samples.probe[order], a.labels[order]
    low = spans[probe, 0]
    t = low + samples.u[order] * (spans[probe, 1] - low)
    bounds = np.searchsorted(probe, np.arange(b + 1))
    change = np.flatnonzero((labels[1:] != labels[:-1]) & (probe[1:] == probe[:-1]))
    at = _boundaries(t, change, samples.crossings(order[change]), tolerance)
    first_change = np.searchsorted(change, bounds)  # a change never crosses from one probe to the next
    near = np.bincount(probe, (samples.urgency[order] > 0.5) & (samples.urgency[order] <= 1), b)
    n_open = np.bincount(probe, samples.is_open()[order], b).astype(np.int64)
    top = top_two(a.margins[order]) if steps is None else None
    missed = near * samples.doubt.chance if steps is None else steps.missed()
    for i in range(b):
        part, changes = slice(bounds[i], bounds[i + 1]), slice(first_change[i], first_change[i + 1])
        yield {
            "labels": labels[np.concatenate([bounds[i : i + 1], change[changes] + 1])],
            "boundaries": at[changes],
            "span": (float(spans[i, 0]), float(spans[i, 1])),
            "samples": t[part],
            "top": None if top is None else TopScores(t[part], top[0][part], top[1][part]),
            "n_evaluations": int(bounds[i + 1] - bounds[i]),
            "status": status_of(trial, int(n_open[i]), float(missed[i])),
            "missed": float(missed[i]),
            "missed_basis": samples.doubt.basis(int(near[i])) if steps is None else steps.basis(),
        }


def _boundaries(
    t: Floats, change: Ints, crossings: Floats, tolerance: float | None
) -> npt.NDArray[np.float64]:
    """Where the chords cross; if a tolerance was asked for, never farther than it from either sample."""
    left, right = t[change], t[change + 1]
    at = left + crossings * (right - left)
    if tolerance is None:
        return np.asarray(at)
    middle = (left + right) / 2
    return np.asarray(
        np.clip(at, np.minimum(right - tolerance, middle), np.maximum(left + tolerance, middle))
    )
