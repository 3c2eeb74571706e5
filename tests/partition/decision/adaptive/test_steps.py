"""Adaptive counting on segments of models that are constant between steps."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import inscape
from inscape import Segment, decision_regions
from inscape.partition.decision.adaptive.first_look import N_POINTS
from inscape.partition.decision.adaptive.missed import unmet_regions
from inscape.partition.decision.adaptive.segments import N_STEPS, N_UNEVEN

LINE = Segment([0.0], [1.0])
N_PROBES = 40


@pytest.fixture(scope="module")
def data():
    return make_classification(
        300, 5, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.2, random_state=0
    )


def black_box(model):
    return lambda x: model.predict_proba(x)


def stairs(edges, values):
    """Scores of two classes that change at the edges only."""
    return lambda x: np.asarray(values, dtype=float)[np.searchsorted(edges, x[:, 0])]


FITTED = [
    DecisionTreeClassifier(random_state=0),
    RandomForestClassifier(10, random_state=0),
    RandomForestClassifier(40, random_state=1),
    ExtraTreesClassifier(20, random_state=0),
    GradientBoostingClassifier(n_estimators=10, random_state=0),
]


@pytest.fixture(scope="module")
def counted(data):
    """The exact, the adaptive and the grid's count of each model, the last two as a black box."""
    x, y = data
    common = {"n_probes": N_PROBES, "random_state": 1}
    found = []
    for estimator in FITTED:
        model = estimator.fit(x, y)
        truth = inscape.region_count(model, x, method="exact", **common)
        ours = inscape.region_count(black_box(model), x, method="adaptive", **common)
        resolution = round(ours.n_evaluations / N_PROBES)
        found.append(
            (truth, ours, inscape.region_count(black_box(model), x, resolution=resolution, **common))
        )
    return found


@pytest.mark.parametrize("i", range(len(FITTED)), ids=[type(e).__name__ for e in FITTED])
def test_the_truth_is_covered_and_never_exceeded(counted, i):
    truth, ours, grid = counted[i]
    assert (ours.counts <= truth.counts).all()
    assert truth.mean <= ours.mean + ours.missed_interval[1]
    assert ours.interval[0] <= truth.mean <= ours.interval[1]
    assert "converged" not in (ours.status, grid.status)


def test_together_they_miss_fewer_regions_than_grids_of_as_many_points(counted):
    ours, grids = (sum(c[0].mean - c[k].mean for c in counted) for k in (1, 2))
    assert ours < grids


@pytest.mark.parametrize("i", range(len(FITTED)), ids=[type(e).__name__ for e in FITTED])
def test_no_segment_has_fewer_regions_than_on_the_default_grid(data, counted, i):
    """Its 200 points are among the samples, and a sample more never takes a region away."""
    grid = inscape.region_count(
        black_box(FITTED[i]), data[0], method="grid", resolution=200, n_probes=N_PROBES, random_state=1
    )
    assert (counted[i][1].counts >= grid.counts).all()


def test_nearest_neighbours_are_covered(data):
    x, y = data
    model = black_box(KNeighborsClassifier(5).fit(x, y))
    ours = inscape.region_count(model, x, method="adaptive", n_probes=15, random_state=1)
    dense = inscape.region_count(model, x, resolution=3000, n_probes=15, random_state=1)
    assert ours.mean <= dense.mean <= ours.mean + ours.missed_interval[1]


def test_small_leads_are_looked_at_more_closely_than_large_ones():
    """Jumps of 0.1 can turn a lead of 0.05, and not one of 3: looks go where the lead is small."""
    rng = np.random.default_rng(0)
    edges = np.sort(rng.uniform(size=60))
    lead = np.where(np.arange(61) < 30, 3.0, 0.05) + 0.1 * rng.choice([-1, 1], 61)
    p = decision_regions(stairs(edges, np.column_stack([lead, 0 * lead])), LINE, method="adaptive")
    middle = edges[29]
    per_unit = [(p.samples < middle).sum() / middle, (p.samples > middle).sum() / (1 - middle)]
    assert per_unit[1] > 1.3 * per_unit[0]


def test_a_region_at_a_place_where_many_steps_meet_is_found_by_following_the_boundary():
    at, width = 0.61803, 1e-8
    edges = [at, at + width]
    p = decision_regions(stairs(edges, np.eye(3)), LINE, method="adaptive")
    assert p.labels.tolist() == [0, 1, 2]
    assert p.missed >= 2
    assert "1 places hid a region down to rounding" in p.missed_basis
    kept = decision_regions(stairs(edges, np.eye(3)), LINE, method="adaptive", resolution=1000)
    assert np.diff(kept.samples).min() >= 1 / 1000 * (1 - 1e-9)


def test_unmet_regions_are_estimated_without_bias(rng):
    """Slivers of widths uniform up to the step h: half are met, and each met one stands for h / w."""
    h, n = 0.005, 20000
    width = rng.uniform(0.1 * h, h, n)
    met = rng.uniform(size=n) < width / h
    unmet = unmet_regions(width[met], np.ones(met.sum(), np.int64), h)
    assert np.isclose(unmet.sum(), (~met).sum(), rtol=0.05)


def test_one_plateau_takes_the_first_samples_only():
    p = decision_regions(lambda x: np.tile([1.0, 0.0], (len(x), 1)), LINE, method="adaptive")
    assert p.n_evaluations == N_STEPS + N_UNEVEN + 3 * N_POINTS
    assert (p.n_regions, p.missed) == (1, 0)
    assert (
        p.status
        == "convergence not shown: the scores are piecewise constant; raise resolution and compare the counts"
    )


def test_where_one_boundary_hides_a_region_places_between_equal_labels_are_followed_too():
    width = 1e-8
    edges = [0.3, 0.3 + width, 0.61803, 0.61803 + width]
    scores = np.array([[2.0, 1.9, 0.0], [0.0, 1.0, 0.0], [2.0, 0.0, 1.9], [0.0, 0.0, 1.0], [0.0, 2.0, 0.0]])
    p = decision_regions(stairs(edges, scores), LINE, method="adaptive")
    assert p.labels.tolist() == [0, 1, 0, 2, 1]
    alone = decision_regions(stairs(edges[:2], scores[:3]), LINE, method="adaptive")
    assert alone.labels.tolist() == [0]  # no boundary says that anything hides
