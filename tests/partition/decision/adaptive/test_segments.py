"""Adaptive counting on segments, against functions whose regions are known."""

import math
import time

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

import inscape
from inscape import Segment, decision_regions
from inscape.compiled import loops_compiled
from inscape.errors import ModelError, NonFiniteScoresError, PartitionError
from inscape.partition.decision.adaptive.answers import N_POINTS
from inscape.partition.decision.adaptive.segment_kernels import combine
from inscape.partition.decision.adaptive.segments import MOST_INTERVALS, N_STEPS, start_positions

LINE = Segment([0.0], [1.0])
N_START = len(start_positions("scores", 0.0))
TRIAL = 3 * N_POINTS


def adaptive(model, probe=LINE, **options):
    return decision_regions(model, probe, method="adaptive", **options)


def random_net(seed, n_in=3, n_out=4, width=16):
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, n_out)
    )
    for p in net.parameters():
        p.data.normal_(std=1.0)
    return net.double()


def comb(n_teeth, phase=0.1):
    """n_teeth regions of nearly equal width: a wave that changes sign n_teeth - 1 times."""
    return lambda x: np.sin(np.pi * ((n_teeth - 1) * x[:, :1] + phase))


@pytest.mark.parametrize("n_teeth", [65, 129, 641])
def test_a_comb_that_repeats_with_even_steps_is_seen_by_labels_alone(n_teeth):
    p = adaptive(lambda x: (comb(n_teeth, 0.4)(x)[:, 0] > 0).astype(int))
    assert p.n_regions == n_teeth


@settings(max_examples=25)
@given(at=st.floats(0.02, 0.98), half=st.floats(2e-4, 0.3), scale=st.floats(1e-3, 1e3))
def test_a_thin_parabola_is_always_found(at, half, scale):
    """The second difference is the same everywhere, so that the rule promises the region, however thin."""
    assume(min(abs(at - half), abs(at + half - 1)) > 1e-6)
    p = adaptive(lambda x: scale * np.column_stack([0 * x, half**2 - (x - at) ** 2]))
    expected = [k for k, inside in ((0, at - half > 0), (1, True), (0, at + half < 1)) if inside]
    assert p.labels.tolist() == expected


@given(
    at=st.floats(0.02, 0.98),
    width=st.floats(3e-4, 0.05),
    slope=st.floats(0.1, 10),
    tilt=st.floats(-0.9, 0.9),
)
def test_a_third_class_at_the_crossing_of_two_others_is_found_in_a_few_looks(at, width, slope, tilt):
    """Three straight scores: chords say where the third one leads."""

    def scores(x):
        t = x - at
        return slope * np.column_stack([-t, t, tilt * t + width * (1 - tilt**2) / 2])

    assume(width < min(at, 1 - at))
    p = adaptive(scores)
    assert p.labels.tolist() == [0, 2, 1]
    assert p.n_evaluations <= N_START + 3 + TRIAL


def test_three_looks_find_a_sliver_of_width_0_0016():
    p = adaptive(lambda x: np.column_stack([0.413 - x, x - 0.413, 0 * x + 0.0008]))
    assert p.labels.tolist() == [0, 2, 1]
    assert p.n_evaluations <= N_START + 3 + TRIAL
    assert np.allclose(p.boundaries, [0.4122, 0.4138])
    grid = decision_regions(
        lambda x: np.column_stack([0.413 - x, x - 0.413, 0 * x + 0.0008]), LINE, resolution=200
    )
    assert grid.n_regions == 2


@pytest.mark.parametrize("phase", [0.1, 0.5])
@pytest.mark.parametrize("kind", ["scores", "labels"])
def test_a_comb_with_a_thousand_teeth(kind, phase):
    scores = comb(1000, phase)
    p = adaptive(scores if kind == "scores" else lambda x: (scores(x)[:, 0] > 0).astype(int))
    assert p.n_regions == 1000
    assert p.n_evaluations <= MOST_INTERVALS + 1 + TRIAL
    assert np.abs(np.diff(p.boundaries) - 1 / 999).max() < 3e-4


@given(
    st.lists(st.floats(0.03, 0.97), min_size=1, max_size=5, unique=True),
    st.sampled_from([1e-3, 1e-6, 1e-9]),
    st.booleans(),
)
def test_boundaries_are_located_to_the_tolerance_when_asked(roots, tolerance, with_scores):
    roots = np.sort(roots)
    assume(len(roots) == 1 or np.diff(roots).min() > 1 / 64)
    span = (-1.0, 3.0)
    where = span[0] + roots * 4

    def scores(x):
        return np.prod(x - where, axis=1, keepdims=True)

    model = scores if with_scores else lambda x: (scores(x)[:, 0] > 0).astype(int)
    probe = Segment([0.0], [1.0], span)
    plain, located = adaptive(model, probe), adaptive(model, probe, tolerance=tolerance)
    assert np.abs(located.boundaries - where).max() <= tolerance
    assert located.labels.tolist() == plain.labels.tolist()
    most = 2 * math.ceil(math.log2(4 / N_START / tolerance) + 2)
    assert located.n_evaluations - plain.n_evaluations <= len(roots) * max(0, most)


def test_a_straight_boundary_takes_two_cuts_and_none_when_not_asked():
    def scores(x):
        return x - 0.3712

    plain, located = (adaptive(scores, tolerance=t) for t in (None, 1e-12))
    assert plain.n_evaluations == N_START + TRIAL
    assert np.isclose(plain.boundaries[0], 0.3712, rtol=0, atol=1e-12)
    assert located.n_evaluations <= plain.n_evaluations + 6
    assert abs(located.boundaries[0] - 0.3712) <= 1e-12


@pytest.mark.parametrize("resolution", [2, 64, 300])
@pytest.mark.parametrize("kind", ["scores", "labels"])
def test_evaluations_are_bounded_for_the_wildest_function(kind, resolution):
    def wild(x):
        return np.modf(np.sin(12345.678 * x[:, :1]) * 54321.0)[0]

    model = wild if kind == "scores" else lambda x: (wild(x)[:, 0] > 0).astype(int)
    p = adaptive(model, resolution=resolution)
    start = N_START if kind == "scores" else N_STEPS
    assert p.n_evaluations <= max(start, resolution + 1) + TRIAL
    assert np.diff(p.samples).min() >= min(1 / resolution, 0.7 / (N_STEPS - 1)) * (1 - 1e-9)
    assert p.status.startswith("not converged in resolution")


def test_a_smooth_lead_takes_the_first_samples_only():
    p = adaptive(lambda x: np.column_stack([1 + 0 * x, x]), Segment([0.0], [0.9]))
    assert p.n_evaluations == N_START + TRIAL
    assert (p.n_regions, p.status, p.is_exact, p.method) == (1, "converged", False, "adaptive")


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_it_never_reports_a_region_that_is_not_there(seed):
    """Every region holds a sample of its label, so its labels are part of the exact ones, in order."""
    a, b = np.random.default_rng(seed).normal(size=(2, 3)) * 3
    net = random_net(seed)
    found, exact = adaptive(net, Segment(a, b)), decision_regions(net, Segment(a, b), method="exact")
    rest = iter(exact.labels.tolist())
    assert all(label in rest for label in found.labels.tolist())
    for t, label in zip(
        found.samples, net(torch.tensor(Segment(a, b).points(found.samples))).argmax(1), strict=True
    ):
        assert (
            found.labels[np.searchsorted(found.boundaries, t)] == label
            or np.abs(found.boundaries - t).min() < 1e-9
        )


def test_it_agrees_with_the_exact_count_on_random_networks(rng):
    x = rng.normal(size=(100, 3)) * 3
    probes = inscape.sample_probes(x, n=200, random_state=0)
    wrong = 0
    for seed in range(3):
        net = random_net(seed)
        found, exact = (decision_regions(net, probes, method=m) for m in ("adaptive", "exact"))
        wrong += sum(p.n_regions != q.n_regions for p, q in zip(found, exact, strict=True))
    assert wrong <= 3  # of 600


def test_runs_repeat_and_probes_do_not_disturb_each_other(rng):
    net = random_net(1)
    probes = inscape.sample_probes(rng.normal(size=(40, 3)) * 3, n=30, random_state=0)
    first, again = adaptive(net, probes), adaptive(net, probes)
    for p, q, probe in zip(first, again, probes, strict=True):
        alone = adaptive(net, probe)
        assert p.boundaries.tolist() == q.boundaries.tolist()
        assert p.samples.tolist() == q.samples.tolist()
        assert np.allclose(
            p.samples, alone.samples, rtol=0, atol=1e-9
        )  # batches of another length round anew
        assert np.allclose(p.boundaries, alone.boundaries, rtol=0, atol=1e-9)
        assert (p.status, p.missed) == (q.status, q.missed)


def test_all_probes_share_each_round_of_batches(rng):
    sizes = []

    def scores(x):
        sizes.append(len(x))
        return np.column_stack([np.sin(9 * x[:, 0]), np.cos(7 * x[:, 1])])

    probes = inscape.sample_probes(rng.uniform(size=(40, 2)), n=50, random_state=0)
    found = adaptive(inscape.wrap(scores, batch_size=200), probes)
    assert sizes[:4] == [24, 16, 8, 8]  # the trial, and 16 of its points in two batches
    assert sum(sizes) - 32 == sum(p.n_evaluations for p in found)
    assert sizes[4:8] == [200] * 4  # the first samples of all 50 probes
    assert len(sizes) < 30


def test_the_parameters_are_those_of_the_span():
    p = adaptive(lambda x: x - 3, Segment([0.0], [2.0], span=(-1, 3)))
    assert np.isclose(p.boundaries[0], 1.5)
    assert (p.samples[0], p.samples[-1], p.span) == (-1.0, 3.0, (-1.0, 3.0))


@pytest.mark.slow
@given(seed=st.integers(0, 10**6))
def test_probabilities_are_read_as_their_logarithms(seed):
    a, b = np.random.default_rng(seed).normal(size=(2, 3)) * 3
    net = random_net(seed)
    logits, shares = (adaptive(m, Segment(a, b)) for m in (net, nn.Sequential(net, nn.Softmax(dim=1))))
    assert logits.labels.tolist() == shares.labels.tolist()
    assert np.allclose(logits.boundaries, shares.boundaries, atol=1e-6)


def test_the_first_samples_where_only_labels_count_are_at_most_a_64th_apart():
    gaps = np.diff(start_positions("labels", 0.0))
    assert gaps.min() > 0
    assert gaps.max() <= 1 / 64
    assert start_positions("labels", 0.0)[[0, -1]].tolist() == [0, 1]


@given(
    cuts=st.lists(st.integers(1, 63), min_size=1, max_size=8, unique=True),
    shift=st.floats(-0.4, 0.4),
)
def test_labels_alone_show_every_region_as_wide_as_the_first_step(cuts, shift):
    edges = (np.sort(cuts) + shift) / 64

    def labels(x):
        return np.searchsorted(edges, x[:, 0]) % 3

    p = adaptive(labels)
    assert p.n_regions == len(cuts) + 1
    assert np.abs(p.boundaries - edges).max() <= 1 / 64
    assert "those of the places that are left add up to" in p.missed_basis
    assert (
        p.status == "convergence not shown: the model has no scores; raise resolution and compare the counts"
    )


def test_ties_on_an_interval_do_not_cost_anything():
    """Two equal scores bend alike: rounding is not taken for a region."""

    def scores(x):
        t = x.astype(np.float32)
        return np.column_stack([np.sin(t), np.sin(t), t - 2]) * np.float32(1.7)

    assert adaptive(scores).n_evaluations == N_START + TRIAL


def test_missed_regions_are_estimated_with_a_basis(rng):
    probes = inscape.sample_probes(rng.normal(size=(40, 3)) * 3, n=50, random_state=0)
    found = adaptive(random_net(3, width=40), probes)
    assert all(p.missed >= 0 and "fall short of a refinement" in p.missed_basis for p in found)
    assert sum(p.missed for p in found) > 0
    assert found[0].to_dict()["missed"] == found[0].missed
    quiet = adaptive(lambda x: np.column_stack([1 + 0 * x, 0 * x]))
    assert quiet.missed == 0


def test_a_model_that_raises_midway_leaves_no_partial_state(rng):
    """The module is as before, and the next count is that of a fresh model."""
    net = random_net(2)
    net.add_module("drop", nn.Dropout())
    net.train()
    calls = []

    def fail_late(module, args):
        calls.append(len(args[0]))
        if len(calls) == 7:  # after the four of the first look
            raise RuntimeError("the service went away")

    hook = net.register_forward_pre_hook(fail_late)
    model = inscape.wrap(net, batch_size=50)
    probes = inscape.sample_probes(rng.normal(size=(40, 3)) * 3, n=20, random_state=0)
    state = torch.get_rng_state()
    with pytest.raises(ModelError, match="the service went away"):
        adaptive(model, probes)
    assert len(calls) == 7
    hook.remove()
    assert net.training
    assert net[5].training
    assert torch.equal(state, torch.get_rng_state())
    fresh = inscape.wrap(random_net(2), batch_size=50)
    for p, q in zip(adaptive(model, probes), adaptive(fresh, probes), strict=True):
        assert p.boundaries.tolist() == q.boundaries.tolist()
        assert p.n_evaluations == q.n_evaluations


def test_nan_scores_are_located():
    def scores(x):
        return np.where(x[:, :1] > 0.98, np.nan, x - 0.5)

    with pytest.raises(NonFiniteScoresError, match=r"there: probe 1, 0.98 of its span from its start"):
        adaptive(scores, [Segment([0.0], [0.5]), Segment([0.3], [1.0])])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "grid", "tolerance": 1e-3}, "tolerance=0.001 belongs to method='adaptive'"),
        ({"tolerance": 0.0}, "tolerance=0.0 must be a positive number"),
        ({"tolerance": "fine"}, "tolerance='fine' must be a positive number"),
        ({"resolution": 1}, "resolution=1 is too small"),
        ({"method": "adaptiv"}, "did you mean 'adaptive'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(PartitionError, match=message):
        decision_regions(comb(3), LINE, **{"method": "adaptive"} | options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_points_are_the_same_bits_by_python_and_compiled(k, dtype, rng):
    weights, probe = rng.normal(size=(40, k)), rng.integers(3, size=40)
    generators, out = rng.normal(size=(3, k, 70)), [np.empty((40, 70), dtype) for _ in range(2)]
    for way, target in zip((False, True), out, strict=True):
        with loops_compiled(way):
            combine(weights, probe, generators, target)
    assert out[0].tobytes() == out[1].tobytes()
    assert np.allclose(out[0], np.einsum("mk,mkd->md", weights, generators[probe]), atol=1e-5)


def test_points_of_large_images_take_python_no_longer_than_a_network():
    """A loop over each number took a fifth of the time of a ResNet-18."""
    weights, generators = np.tile([0.25, 0.75], (16, 1)), np.ones((1, 2, 3 * 224 * 224))
    out = np.empty((16, 3 * 224 * 224), np.float32)
    with loops_compiled(False):
        start = time.process_time()
        combine(weights, np.zeros(16, np.int64), generators, out)
    assert (out == 1).all()
    assert time.process_time() - start < 0.5
