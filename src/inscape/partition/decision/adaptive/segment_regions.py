"""From adaptive samples on segments to their regions."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats, Ints
from inscape.models import Model
from inscape.partition.decision.adaptive.doubt import HALVING, status_of
from inscape.partition.decision.adaptive.segments import FINEST, N_LABELS, Samples
from inscape.partition.decision.adaptive.trial import Trial
from inscape.partition.decision.top_scores import TopScores, top_two
from inscape.probes import Probe, Segment

_NUMBERS = 2**22
_SAMPLES = 2**13


def block_length(probe: Probe, trial: Trial) -> int:
    """How many segments fit into one block: of their generators, and of the scores of their samples."""
    samples = _NUMBERS // (64 * trial.n_classes) if trial.rule == "scores" else _SAMPLES // N_LABELS
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
    gained = _gained(samples, len(probes)) if trial.rule == "labels" else None
    spans = np.array([p.span if isinstance(p, Segment) else (0.0, 1.0) for p in probes])
    if trial.is_deterministic:
        samples.refine()
    if tolerance is not None and trial.is_deterministic:
        samples.locate(tolerance / (spans[:, 1] - spans[:, 0]))
    yield from _results(samples, trial, spans, gained, tolerance)


def _gained(samples: Samples, n_probes: int) -> Floats:
    """How many regions the even samples show beyond every second one of them, (n_probes,)."""
    labels = samples.answers.labels[: n_probes * N_LABELS].reshape(n_probes, N_LABELS)
    fine, coarse = ((np.diff(labels[:, ::k], axis=1) != 0).sum(axis=1) for k in (1, 2))
    return np.asarray(fine - coarse, dtype=np.float64)


def _results(
    samples: Samples, trial: Trial, spans: Floats, gained: Floats | None, tolerance: float | None
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
    top = top_two(a.margins[order]) if a.has_scores else None
    for i in range(b):
        part, changes = slice(bounds[i], bounds[i + 1]), slice(first_change[i], first_change[i + 1])
        missed = near[i] * samples.doubt.chance if gained is None else max(0.0, gained[i])
        yield {
            "labels": labels[np.concatenate([bounds[i : i + 1], change[changes] + 1])],
            "boundaries": at[changes],
            "span": (float(spans[i, 0]), float(spans[i, 1])),
            "samples": t[part],
            "top": None if top is None else TopScores(t[part], top[0][part], top[1][part]),
            "n_evaluations": int(bounds[i + 1] - bounds[i]),
            "status": status_of(trial, int(n_open[i]), missed),
            "missed": float(missed),
            "missed_basis": samples.doubt.basis(int(near[i])) if gained is None else HALVING,
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
