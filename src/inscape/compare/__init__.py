"""Two models on one probe: where they differ, by how much, and a certificate where they do not."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, groupby
from typing import Any, NamedTuple, overload

import numpy as np

from inscape.budget import BUDGET, as_budget
from inscape.compare.comparison import Comparison, ComparisonMatrix, shares_of
from inscape.compare.differences import SCALES, MaxDifference
from inscape.compare.matching import Matching
from inscape.compare.on_probes import Known, Pair, Regions, regions_on
from inscape.compare.pair_agreement import PairAgreement, agreement
from inscape.errors import ModelError, PartitionError, ProbeError, unknown_name
from inscape.models import Model, wrap
from inscape.parallel import working
from inscape.partition.decision.method import RegionRequest
from inscape.probes import Probe
from inscape.probes.patch import check_features
from inscape.progress import Meter, meter

__all__ = ["Comparison", "ComparisonMatrix", "MaxDifference", "PairAgreement", "agreement", "compare"]

MOST_DIMENSIONS = 2


class ComparisonSettings(NamedTuple):
    """How models are compared: their regions as asked for, and by which scores."""

    request: RegionRequest
    scores: str


@overload
def compare(
    a: Any,
    b: Any,
    probe: Probe,
    *,
    method: str = ...,
    resolution: int | None = ...,
    scores: str = ...,
    names: tuple[str, str] | None = ...,
    progress: bool | Meter | None = ...,
    budget: float | None = ...,
    n_jobs: int | None = ...,
) -> Comparison: ...
@overload
def compare(
    a: Any,
    b: Any,
    probe: Sequence[Probe],
    *,
    method: str = ...,
    resolution: int | None = ...,
    scores: str = ...,
    names: tuple[str, str] | None = ...,
    progress: bool | Meter | None = ...,
    budget: float | None = ...,
    n_jobs: int | None = ...,
) -> list[Comparison]: ...
@overload
def compare(
    a: Any,
    b: Probe,
    probe: None = ...,
    *,
    method: str = ...,
    resolution: int | None = ...,
    scores: str = ...,
    names: tuple[str, str] | None = ...,
    progress: bool | Meter | None = ...,
    budget: float | None = ...,
    n_jobs: int | None = ...,
) -> ComparisonMatrix: ...
@overload
def compare(
    a: Any,
    b: Sequence[Probe],
    probe: None = ...,
    *,
    method: str = ...,
    resolution: int | None = ...,
    scores: str = ...,
    names: tuple[str, str] | None = ...,
    progress: bool | Meter | None = ...,
    budget: float | None = ...,
    n_jobs: int | None = ...,
) -> list[ComparisonMatrix]: ...
def compare(
    a: Any,
    b: Any,
    probe: Probe | Sequence[Probe] | None = None,
    *,
    method: str = "auto",
    resolution: int | None = None,
    scores: str = "own",
    names: tuple[str, str] | None = None,
    progress: bool | Meter | None = None,
    budget: float | None = BUDGET,
    n_jobs: int | None = None,
) -> Comparison | ComparisonMatrix | list[Comparison] | list[ComparisonMatrix]:
    """Where two models differ on a probe, or on each of a list of probes in one batch.

    The regions of a pair are the connected sets on which neither label changes. On a segment they follow from
    the boundaries of both models, on a plane from laying the exact regions of both over each other. The cost
    is that of `decision_regions` of both models, and little more.

    More than two: `compare([a, b, c], probe)`, or a dictionary of models by name, gives the matrix of
    disagreements, and of a list of probes a list of such matrices.

    Args:
        a: anything that `inscape.wrap` takes; or a list or dictionary of models, then `b` is the probe.
        b: another model of the same inputs and classes. Classes are matched by name where both models have
            names, else by place.
        probe: a segment, a triangle or a patch, or a list of them.
        method: as for `inscape.decision_regions`. "auto" is exact where that is possible and affordable for
            both models; on segments each of them is followed by the method that fits it, on planes the pair
            is one adaptive search where one of them is not exact.
        resolution: grid points per axis, as for `inscape.decision_regions`.
        scores: what `max_difference` compares: "own" scores, as the models give them; "softmax" makes
            probabilities of them, for models of which only one does so itself.
        names: what the models are to be called, by default by their own names.
        progress: None for a bar after two seconds, False for none; a function gets (work done, work in all).
        budget: seconds that the regions of each model may be foreseen to take, on planes of networks as a few
            lines across them and a small patch foresee it, else by the first second of work; a `BudgetError`
            says how long they would take. None for no limit.
        n_jobs: threads, as for `inscape.decision_regions`.

    >>> from inscape import Segment
    >>> steep, flat = (lambda x: np.c_[0 * x, x - 0.5]), (lambda x: np.c_[0 * x, 2 * x - 0.5])
    >>> d = compare(steep, flat, Segment([0.0], [1.0]))
    >>> round(d.disagreement, 6), d.labels.tolist(), round(d.iou, 6)
    (0.25, [[0, 0], [0, 1], [1, 1]], 0.583333)
    """
    request = RegionRequest(method=method, resolution=resolution, budget=as_budget(budget))
    settings = ComparisonSettings(request, scores)
    if probe is None:
        if names is not None:
            raise ModelError("names are for two models: give several as a dictionary of models by name")
        with working(n_jobs):
            return _several(a, b, settings, progress)
    probes = _listed(probe)
    with meter(progress, "two models") as show, working(n_jobs):
        first, second = wrap(a), wrap(b)
        with first.unchanged(), second.unchanged():
            comparisons = _comparisons(first, second, probes, settings, names, show, {})
    return comparisons[0] if isinstance(probe, Probe) else comparisons


def _comparisons(
    a: Model,
    b: Model,
    probes: list[Probe],
    settings: ComparisonSettings,
    names: tuple[str, str] | None,
    show: Meter,
    known: Known,
) -> list[Comparison]:
    """The comparison of two models on each probe; `known` are the regions of either found before."""
    for model in (a, b):
        check_features(model, probes)
    request, scores = settings
    if scores not in SCALES:
        raise PartitionError(unknown_name("scores", scores, SCALES))
    pair = Pair(a, b, Matching(a, b, _a_few_points(probes[0])))
    comparisons: list[Comparison] = []
    for _, group in groupby(probes, key=lambda p: (p.dim, p.input_shape)):
        every = regions_on(pair, list(group), request, show, known)
        comparisons += [_comparison(pair, regions, scores, names) for regions in every]
    return comparisons


def _several(
    models: Any, probe: Any, settings: ComparisonSettings, progress: bool | Meter | None
) -> ComparisonMatrix | list[ComparisonMatrix]:
    """The matrix of several models on a probe, or on each of several."""
    if isinstance(models, str) or not isinstance(models, Iterable):
        raise ProbeError("there is no probe: give compare(a, b, probe), or compare([a, b, ...], probe)")
    probes, named = _listed(probe), _named_models(models)
    names, wrapped = tuple(named), list(named.values())
    pairs, known = list(combinations(range(len(names)), 2)), Known()
    with meter(progress, "several models") as show:
        every = {
            (i, j): _comparisons(
                wrapped[i],
                wrapped[j],
                probes,
                settings,
                (names[i], names[j]),
                _meter_of_pair(show, k, len(pairs)),
                known,
            )
            for k, (i, j) in enumerate(pairs)
        }
    matrices = [
        ComparisonMatrix.of(names, {pair: own[n] for pair, own in every.items()}) for n in range(len(probes))
    ]
    return matrices[0] if isinstance(probe, Probe) else matrices


def _named_models(models: Any) -> dict[str, Any]:
    """Name -> wrapped model, of a list or a dictionary of at least two; equal names are numbered."""
    if isinstance(models, Mapping):
        named = {str(name): wrap(model) for name, model in models.items()}
    else:
        wrapped = [wrap(model) for model in models]
        names = [m.name for m in wrapped]
        once = [n if names.count(n) == 1 else f"{n} {i + 1}" for i, n in enumerate(names)]
        named = dict(zip(once, wrapped, strict=True))
    if len(named) < 2:
        raise ModelError(f"there is nothing to compare among {len(named)} models: give at least two")
    return named


def _meter_of_pair(show: Meter, k: int, n: int) -> Meter:
    """A meter for the k-th of n pairs of models."""
    return lambda done, total: show(k * total + done, n * total)


def _listed(probe: Any) -> list[Probe]:
    probes = [probe] if isinstance(probe, Probe) else list(probe) if isinstance(probe, Iterable) else []
    if not probes or not all(isinstance(p, Probe) for p in probes):
        raise ProbeError(f"expected a Segment, Simplex or Patch, or a list of them, got {probe!r}")
    if (dim := max(p.dim for p in probes)) > MOST_DIMENSIONS:
        raise ProbeError(f"models are compared on segments, triangles and patches, not in {dim} dimensions")
    return probes


def _a_few_points(probe: Probe) -> Any:
    """Points of a probe, (n, ...): corners, and mixtures of them."""
    corners = probe.extremes.reshape(len(probe.extremes), -1)
    weights = np.random.default_rng(0).dirichlet(np.ones(len(corners)), 12)
    return np.concatenate([corners, weights @ corners]).reshape(-1, *probe.input_shape)


def _comparison(pair: Pair, regions: Regions, scores: str, names: tuple[str, str] | None) -> Comparison:
    return Comparison(
        regions=regions.regions,
        pairs=regions.pairs,
        shares=shares_of(regions.regions),
        names=names or pair.names,
        class_names=pair.matching.names,
        matched_by=pair.matching.by,
        note=pair.matching.why_not_scores or "",
        scores=scores,
        provenance=regions.provenance,
        pair=pair,
    )
