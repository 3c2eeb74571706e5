"""`region_count`: mean, error and interval against closed forms, simulation and the regions themselves."""

import json
import math
import warnings

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.tree import DecisionTreeClassifier
from torch import nn

import inscape
from inscape.errors import InscapeError, InscapeWarning, ModelError, PartitionError, ProbeError
from inscape.measures import RegionCount
from inscape.measures.measurement import Measurement, mean_with_error
from inscape.measures.region_count import Counter


@pytest.fixture
def x(rng):
    return rng.uniform(size=(200, 2))


def halves(x):
    return (x[:, 0] > 0.5).astype(int)


def waves(k):
    return lambda x: (np.sin(2 * np.pi * k * x[:, 0]) > 0).astype(int)


def smooth_waves(k):
    return lambda x: np.sin(2 * np.pi * k * x[:, :1])


def test_mean_error_and_interval_are_those_of_the_counts(x):
    r = inscape.region_count(smooth_waves(2), x, n_probes=60, random_state=0)
    assert len(r.counts) == 60
    assert math.isclose(r.mean, r.counts.mean())
    assert math.isclose(r.std_error, stats.sem(r.counts))
    low, high = stats.t.interval(0.95, 59, r.mean, r.std_error)
    assert np.allclose(r.interval, (low, high + r.missed_interval[1]))
    assert r.n_evaluations < 60 * 200
    assert not r.is_exact


def test_a_half_plane_against_its_closed_form(rng):
    """A segment between uniform points crosses x = 1/2 with probability 1/2, so R_1 = 1.5."""
    x = rng.uniform(size=(5000, 2))
    r = inscape.region_count(halves, x, n_probes=4000, resolution=20, random_state=1)
    assert abs(r.mean - 1.5) < 4 * r.std_error


def test_the_error_falls_like_one_over_the_root_of_n(x):
    small, large = (
        inscape.region_count(halves, x, n_probes=n, resolution=20, random_state=0) for n in (100, 6400)
    )
    assert 6 < small.std_error / large.std_error < 10.5


def test_the_interval_covers_in_95_percent(x):
    truth = inscape.region_count(waves(2), x, n_probes=20000, resolution=40, random_state=999).mean
    hits = [
        (r := inscape.region_count(waves(2), x, n_probes=30, resolution=40, random_state=s)).interval[0]
        <= truth
        <= r.interval[1]
        for s in range(200)
    ]
    assert 0.89 <= np.mean(hits) <= 0.99


def test_same_seed_same_counts_and_none_is_recorded(x):
    a, b = (inscape.region_count(waves(3), x, random_state=5) for _ in range(2))
    assert a.counts.tolist() == b.counts.tolist()
    fresh = inscape.region_count(waves(3), x, random_state=None)
    again = inscape.region_count(waves(3), x, random_state=fresh.provenance.seed)
    assert fresh.counts.tolist() == again.counts.tolist()


def test_global_random_state_is_left_alone(x):
    net = nn.Linear(2, 2)
    net.weight.data = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
    net.bias.data.zero_()
    before = torch.get_rng_state()
    for method in ("grid", "exact"):
        inscape.region_count(net, x, n_probes=20, method=method, random_state=None)
        assert torch.equal(before, torch.get_rng_state())


@pytest.mark.slow
@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5])
def test_dimensions_one_to_five(rng, dim):
    x = rng.uniform(size=(50, 6))
    r = inscape.region_count(halves, x, dim=dim, n_probes=10, random_state=0)
    assert set(r.counts.tolist()) <= {1, 2}
    assert r.settings["dim"] == dim


def test_counts_agree_with_decision_regions(x):
    tree = DecisionTreeClassifier(random_state=0).fit(x, np.arange(200) % 3)
    r = inscape.region_count(tree, x, dim=2, n_probes=12, random_state=3)
    probes = inscape.sample_probes(x, dim=2, n=12, random_state=3)
    assert r.counts.tolist() == [p.n_regions for p in inscape.decision_regions(tree, probes)]


def test_exact_on_trees_and_networks_finds_at_least_what_a_fine_grid_finds(x):
    tree = DecisionTreeClassifier(random_state=0).fit(x, np.arange(200) % 3)
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(2, 20), nn.ReLU(), nn.Linear(20, 3)).double()
    for p in net.parameters():
        p.data.normal_()
    for model in (tree, net):
        exact = inscape.region_count(model, x, method="exact", random_state=0)
        grid = inscape.region_count(model, x, method="grid", resolution=2000, random_state=0)
        assert exact.is_exact
        assert (exact.method, exact.status) == ("exact", "complete")
        assert (exact.counts >= grid.counts).all()
        assert (exact.counts == grid.counts).mean() > 0.9
        assert exact.settings["resolution"] is None
        assert RegionCount.from_dict(exact.to_dict()).to_dict() == exact.to_dict()


def test_auto_takes_the_exact_count_where_it_fits_and_says_why(x):
    tree = DecisionTreeClassifier(random_state=0).fit(x, np.arange(200) % 3)
    net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2)).double()
    gelu = nn.Sequential(nn.Linear(2, 8), nn.GELU(), nn.Linear(8, 2)).double()
    for model, method, reason in (
        (tree, "exact", "tree ensemble"),
        (net, "exact", "piecewise affine, about"),
        (gelu, "adaptive", "GELU"),
        (waves(2), "adaptive", "not a piecewise-affine network"),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            r = inscape.region_count(model, x, n_probes=5, random_state=0)
        assert r.method == method
        assert reason in r.reason
    assert inscape.region_count(tree, x, resolution=50, random_state=0).reason == "a resolution was given"
    assert inscape.region_count(tree, x, dim=2, n_probes=3, random_state=0).method == "exact"


def test_auto_declines_an_exact_count_over_the_budget(x, monkeypatch):
    from inscape.partition.decision import method

    monkeypatch.setattr(method, "EXACT_BUDGET", 3)
    monkeypatch.setattr(method, "AFFORDABLE_SECONDS", 1e-9)
    net = nn.Sequential(nn.Linear(2, 50), nn.ReLU(), nn.Linear(50, 3)).double()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        r = inscape.region_count(net, x, n_probes=5, random_state=0)
    assert r.method == "adaptive"
    assert "evaluations per segment" in r.reason


def test_exact_names_what_stands_in_its_way(x):
    gelu = nn.Sequential(nn.Linear(2, 8), nn.GELU(), nn.Linear(8, 2))
    with pytest.raises(PartitionError, match=r"GELU in 1.*method=.grid"):
        inscape.region_count(gelu, x, method="exact")
    in_space = np.random.default_rng(0).random((200, 3))
    tree = DecisionTreeClassifier().fit(in_space, halves(in_space))
    with pytest.raises(PartitionError, match=r"not on a Simplex of dimension 3: use method='grid'"):
        inscape.region_count(tree, in_space, dim=3, method="exact")


def test_status_tells_a_grid_that_is_too_coarse(x):
    coarse = inscape.region_count(smooth_waves(30), x, resolution=40, random_state=0)
    fine = inscape.region_count(smooth_waves(30), x, resolution=1500, random_state=0)
    assert coarse.status.kind == "not_converged"
    assert fine.status == "converged"
    labels = inscape.region_count(waves(30), x, resolution=1500, random_state=0)
    assert labels.counts.tolist() == fine.counts.tolist()
    assert (
        labels.status
        == "convergence not shown: the model has no scores; raise resolution and compare the counts"
    )
    assert coarse.resolution_bias > fine.resolution_bias
    assert inscape.region_count(halves, x, resolution=2, random_state=0).status.kind == "not_converged"


@pytest.mark.parametrize("n_probes", [2, 3, 5, 100])
def test_few_probes_do_not_make_a_coarse_grid_look_fine(rng, n_probes):
    x = rng.uniform(size=(100, 1))
    r = inscape.region_count(
        lambda x: np.floor(37 * x[:, 0]).astype(int) % 2, x, resolution=8, n_probes=n_probes, random_state=0
    )
    assert r.status.kind == "not_converged"


def test_how_many_probes_a_precision_needs(x):
    r = inscape.region_count(smooth_waves(2), x, random_state=0)
    n = r.probes_needed(0.05)
    better = inscape.region_count(smooth_waves(2), x, n_probes=n, random_state=1)
    half_width = (better.interval[1] - better.interval[0]) / 2
    assert 0.035 < half_width < 0.065
    with pytest.raises(PartitionError, match="must be positive"):
        r.probes_needed(0)


def test_one_probe_has_no_error(x):
    r = inscape.region_count(waves(2), x, n_probes=1, random_state=0)
    assert math.isnan(r.std_error)
    assert r.to_dict()["std_error"] is None
    with pytest.raises(PartitionError, match="at least 2"):
        r.probes_needed(0.1)


def test_json_round_trip(x):
    r = inscape.region_count(waves(2), x, dim=2, n_probes=7, random_state=0)
    text = json.dumps(r.to_dict(), allow_nan=False)
    again = RegionCount.from_dict(json.loads(text))
    assert again.to_dict() == r.to_dict()
    assert again.counts.tolist() == r.counts.tolist()
    assert again.provenance == r.provenance
    with pytest.raises(PartitionError, match="not a region_count of schema 1"):
        RegionCount.from_dict({"schema": 99})


def test_a_constant_predictor_counts_one_and_warns(x):
    with pytest.warns(InscapeWarning, match=r"predicts class 0 everywhere.*says nothing"):
        r = inscape.region_count(lambda x: np.zeros(len(x), dtype=int), x, random_state=0)
    assert r.mean == 1
    assert r.std_error == 0


def test_the_warning_points_at_the_caller(x):
    with pytest.warns(InscapeWarning) as caught:
        inscape.region_count(lambda x: np.zeros(len(x), dtype=int), x, random_state=0)
    assert caught[0].filename == __file__


def test_a_class_that_appears_only_off_the_data():
    x = np.array([[0.0], [1.0]])
    r = inscape.region_count(lambda x: np.digitize(x[:, 0], [0.4, 0.6]), x, n_probes=3, random_state=0)
    assert r.classes_off_data == (1,)
    assert r.mean == 3
    away = inscape.region_count(halves, x, n_probes=3, how="direction", length=5.0, random_state=0)
    assert away.classes_off_data is None
    extended = inscape.region_count(halves, x, n_probes=3, span=(-1, 2), random_state=0)
    assert extended.classes_off_data is None


def test_variants_of_probes(x, rng):
    y = halves(x)
    different = inscape.region_count(halves, x, y=y, classes="different", random_state=0)
    same = inscape.region_count(waves(1), x, y=y, classes="same", random_state=0)
    assert set(different.counts.tolist()) == {2}
    assert same.settings["classes"] == "same"
    near = inscape.region_count(waves(1), x, how="direction", length=0.01, random_state=0)
    assert near.mean < inscape.region_count(waves(1), x, span=(-1, 2), random_state=0).mean


def test_memory_does_not_grow_with_the_number_of_probes(rng):
    """The model never sees more than a batch, and no array of all points is made."""
    import tracemalloc

    x = rng.uniform(size=(50, 300))
    model = inscape.wrap(halves, batch_size=100)
    probes = {n: inscape.sample_probes(x, n=n, random_state=0) for n in (20, 200)}
    Counter(probes=probes[20]).count(model)  # compiles
    peaks = []
    for n in (20, 200):
        tracemalloc.start()
        Counter(probes=probes[n]).count(model)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert (
        peaks[1] < peaks[0] + 200 * 200 * 40
    )  # labels and components, not 200 * 200 * 300 * 8 bytes of points


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: inscape.region_count(halves, x, method="grit"), PartitionError, "did you mean 'grid'"),
        (lambda x: inscape.region_count(halves, x[:1]), InscapeError, "needs 2 points, the data have 1"),
        (lambda x: inscape.region_count(halves, x, random_state=-2), InscapeError, "not a seed"),
        (lambda x: inscape.region_count(nn.Linear(3, 2), x), ModelError, "takes 3 features"),
    ],
)
def test_bad_input(x, call, error, message):
    with pytest.raises(error, match=message):
        call(x)


@pytest.mark.slow
def test_probes_take_no_memory_until_they_are_looked_at(rng):
    """10^4 segments between images: 500 MB if they were all built, here a few MB."""
    import tracemalloc

    x = rng.uniform(size=(20, 3, 32, 32))
    model = inscape.wrap(lambda x: (x[:, 0, 0, 0] > 0.5).astype(int), batch_size=1024)
    tracemalloc.start()
    inscape.region_count(model, x, n_probes=10_000, resolution=2, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 250e6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_probes": 2.5}, "n_probes=2.5 is not a whole number"),
        ({"n_probes": "10"}, "n_probes='10' is not a whole number"),
        ({"dim": 12}, "resolution=2 in 12 dimensions|lower the dimension"),
        ({"dim": 60}, "lower the dimension|needs 61 points"),
        ({"resolution": float("nan")}, "resolution=nan is not a whole number"),
        ({"resolution": (10, 10)}, r"resolution=\(10, 10\) is not a whole number"),
        ({"how": "direction", "length": "a"}, "needs a positive length, got length='a'"),
    ],
)
def test_numbers_that_are_none(x, options, message):
    with pytest.raises(InscapeError, match=message):
        inscape.region_count(halves, x, **options)


def test_numpy_numbers_are_numbers(x):
    r = inscape.region_count(
        waves(2),
        x,
        n_probes=np.int64(7),
        span=(np.float32(-1), np.float32(2)),
        resolution=50.0,
        random_state=0,
    )
    json.dumps(r.to_dict(), allow_nan=False)
    r = inscape.region_count(waves(9), x, n_probes=7, how="direction", length=np.float32(2), random_state=0)
    json.dumps(r.to_dict(), allow_nan=False)
    assert r.probes_needed(0.1) >= 2
    with pytest.raises(PartitionError, match="too small"):
        r.probes_needed(1e-200)
    with pytest.raises(PartitionError, match=r"counts, .* missing"):
        RegionCount.from_dict(
            {"schema": 1, "measure": "region_count", "mean": 1.0, "std_error": 0.0, "interval": []}
        )


def test_mean_with_error_of_equal_values():
    assert mean_with_error(np.full(5, 2)) == (2.0, 0.0, (2.0, 2.0))


def test_repr_is_one_line(x):
    r = inscape.region_count(halves, x, random_state=0)
    assert repr(r).startswith("<region count R_1 = 1.")
    assert len(repr(r)) < 120


def test_ready_probes_give_the_count_of_their_draw(x):
    drawn = inscape.region_count(waves(2), x, dim=2, n_probes=6, resolution=9, random_state=3)
    probes = inscape.sample_probes(x, dim=2, n=6, random_state=3)
    given = inscape.region_count(waves(2), probes=probes, resolution=9)
    assert given.counts.tolist() == drawn.counts.tolist()
    assert (given.value, given.std_error, given.n) == (drawn.value, drawn.std_error, 6)
    assert (given.settings["how"], given.settings["dim"]) == ("given", 2)
    assert given.classes_off_data is None
    assert given.provenance.seed is None
    assert RegionCount.from_dict(json.loads(json.dumps(given.to_dict()))).to_dict() == given.to_dict()


def test_the_ends_of_a_ready_segment_need_not_be_data():
    """sin(2 pi x) > 0 on [0, 3.25]: four positive stretches and three negative ones."""
    segment = inscape.Segment([0.01, 0.0], [3.25, 0.0])
    assert inscape.region_count(smooth_waves(1), probes=[segment]).counts.tolist() == [7]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "nothing to count on: give x, the data, or probes"),
        ({"x": [[0.0], [1.0]], "probes": [inscape.Segment([0.0], [1.0])]}, "x and probes are both given"),
        ({"probes": []}, r"must be a list of Segments, Simplices or Patches, got \[\]"),
        ({"probes": inscape.Segment([0.0], [1.0])}, "must be a list of Segments"),
        ({"probes": [[0.0], [1.0]]}, "must be a list of Segments"),
        ({"probes": [inscape.Segment([0.0], [1.0])], "dim": 2}, "dim says how to draw probes: leave it out"),
        ({"probes": [inscape.Segment([0.0], [1.0])], "y": [0, 1]}, "y says how to draw probes"),
        (
            {"probes": [inscape.Segment([0.0, 0], [1.0, 0]), inscape.Simplex(np.eye(3, 2))]},
            "dimensions 1, 2: count each dimension apart",
        ),
    ],
)
def test_data_or_probes_but_not_both(arguments, message):
    with pytest.raises(ProbeError, match=message):
        inscape.region_count(halves, **arguments)


def test_a_region_count_is_a_measurement_that_reads_its_older_form(x):
    r = inscape.region_count(halves, x, n_probes=5, random_state=0)
    assert isinstance(r, Measurement)
    assert (r.value, r.n) == (r.mean, len(r.counts))
    plain = r.to_dict()
    assert plain["mean"] == r.mean
    older = {k: v for k, v in plain.items() if k not in ("value", "n", "missed_interval")}
    again = RegionCount.from_dict(older)
    assert (again.mean, again.n, again.missed_interval) == (r.mean, 5, None)
    assert again.settings == r.settings
