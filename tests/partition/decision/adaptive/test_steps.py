"""Adaptive counting on segments of models that are constant between steps."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import inscape
from inscape import Segment, decision_regions
from inscape.partition.decision.adaptive.answers import N_POINTS
from inscape.partition.decision.adaptive.missed import StepDoubt, unmet_regions
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
    model = KNeighborsClassifier(5).fit(x, y)
    ours = inscape.region_count(black_box(model), x, method="adaptive", n_probes=15, random_state=1)
    truth = inscape.region_count(model, x, method="exact", n_probes=15, random_state=1)
    assert (ours.counts <= truth.counts).all()
    assert truth.mean <= ours.mean + ours.missed_interval[1]


def test_small_leads_are_looked_at_more_closely_than_large_ones():
    """Jumps of 0.1 can turn a lead of 0.05, and not one of 3: samples go where the lead is small."""
    rng = np.random.default_rng(0)
    edges = np.sort(rng.uniform(size=60))
    lead = np.where(np.arange(61) < 30, 3.0, 0.05) + 0.1 * rng.choice([-1, 1], 61)
    p = decision_regions(stairs(edges, np.column_stack([lead, 0 * lead])), LINE, method="adaptive")
    middle = edges[29]
    per_unit = [(p.samples < middle).sum() / middle, (p.samples > middle).sum() / (1 - middle)]
    assert per_unit[1] > 1.3 * per_unit[0]


@pytest.mark.parametrize(("width", "labels"), [(1e-8, [0, 2]), (2e-7, [0, 2]), (1e-4, [0, 1, 2])])
def test_a_sliver_that_a_sample_happens_to_lie_in_is_no_region(width, labels):
    at = 100 / (N_STEPS - 1)  # one of the first samples
    model = stairs([at - width / 3, at + 2 * width / 3], np.eye(3))
    p = decision_regions(model, LINE, method="adaptive")
    assert p.labels.tolist() == labels
    assert abs(p.boundaries - at).max() <= max(width, 1e-4)
    assert ("1 narrower than 2^-20 of their segment were left out" in p.missed_basis) == (len(labels) == 2)
    kept = decision_regions(model, LINE, method="adaptive", resolution=1000)  # what is seen so finely counts
    assert kept.labels.tolist() == [0, 1, 2]
    assert np.diff(kept.samples).min() >= 1 / 1000 * (1 - 1e-9)


@pytest.mark.parametrize("with_scores", [True, False])
def test_a_label_that_holds_at_an_end_alone_is_no_region(with_scores):
    """As on a split of XGBoost that a data point lies on."""

    def label(x):
        return np.where(x[:, 0] <= 0, 2, np.where(x[:, 0] < 0.4, 0, 1))

    model = (lambda x: np.eye(3)[label(x)]) if with_scores else label
    p = decision_regions(model, LINE, method="adaptive")
    assert p.labels.tolist() == [0, 1]
    assert p.samples[0] > 0


@pytest.mark.parametrize("i", [0, 1])
def test_whole_numbered_data_have_no_more_regions_than_exact_counts(i):
    """Digits: many splits lie at one place up to rounding, and some images on splits."""
    x, y = load_digits(return_X_y=True)
    model = [DecisionTreeClassifier(random_state=0), RandomForestClassifier(20, random_state=0)][i]
    model = model.fit(x[:600], y[:600])
    common = {"n_probes": 60, "random_state": 4}
    truth = inscape.region_count(model, x, method="exact", **common)
    ours = inscape.region_count(black_box(model), x, method="adaptive", **common)
    assert (ours.counts <= truth.counts).all()
    assert truth.mean <= ours.mean + ours.missed_interval[1]


def test_what_a_stated_chance_is_worth():
    """If refinements meet a region in every second place of chance 1/2, what is left is worth its chance."""
    doubt = StepDoubt()
    assert doubt.worth == pytest.approx(2 / 30)  # before any look
    doubt.note(np.full(4000, 0.5), np.arange(4000) % 4 == 0)  # each look meets half of what is there
    assert doubt.worth == pytest.approx(1.0, rel=0.02)
    assert "4000 refinements met 1000 regions where their chances add up to 2e+03" in doubt.basis(0.5, 0)


def test_small_regions_of_a_plane_are_estimated_without_bias(rng):
    """Areas uniform up to the part h of a sample: half are met, and each met one stands for h / A."""
    h, n = 0.005, 20000
    area = rng.uniform(0.2 * h, h, n)
    met = rng.uniform(size=n) < area / h
    assert np.isclose(unmet_regions(area[met], h).sum(), (~met).sum(), rtol=0.05)


def test_one_plateau_takes_the_first_samples_only():
    p = decision_regions(lambda x: np.tile([1.0, 0.0], (len(x), 1)), LINE, method="adaptive")
    assert p.n_evaluations == N_STEPS + N_UNEVEN + 3 * N_POINTS
    assert (p.n_regions, p.missed) == (1, 0)
    assert (
        p.status
        == "convergence not shown: the scores are piecewise constant; raise resolution and compare the counts"
    )
