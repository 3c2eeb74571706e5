"""Adaptive counting on planes of models that are constant between steps."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import inscape
from inscape import Patch, decision_regions
from inscape.partition.decision.adaptive.mesh import (
    MOST_STEPS,
    Bridges,
    joined_by,
    points_on,
    possible_bridges,
)

SQUARE = Patch([0.0, 0.0], np.eye(2))
FITTED = [
    DecisionTreeClassifier(random_state=0),
    RandomForestClassifier(20, random_state=0),
    GradientBoostingClassifier(n_estimators=10, random_state=0),
]


@pytest.fixture(scope="module")
def data():
    return make_classification(
        300, 4, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.2, random_state=0
    )


@pytest.mark.parametrize("estimator", FITTED, ids=lambda e: type(e).__name__)
def test_counts_are_nearer_to_the_truth_than_those_of_grids_with_as_many_points(data, estimator):
    x, y = data
    model = estimator.fit(x, y)
    probes = inscape.sample_probes(x, dim=2, n=6, random_state=2)
    black_box = inscape.wrap(lambda p: model.predict_proba(p))
    truth = np.array([p.n_regions for p in decision_regions(model, probes, method="exact")])
    ours = decision_regions(black_box, probes, method="adaptive")
    n_points = np.mean([p.n_evaluations for p in ours])
    grids = decision_regions(black_box, probes, method="grid", resolution=round(np.sqrt(2 * n_points)))
    off, grid_off = (np.abs(truth - [p.n_regions for p in found]).sum() for found in (ours, grids))
    assert off <= grid_off
    assert (
        truth.mean() <= np.mean([p.n_regions + p.missed for p in ours]) + 2
    )  # the estimate is no upper bound
    assert all(p.status != "converged" for p in ours)


def test_a_straight_band_thinner_than_the_finest_cells_is_one_region():
    """On a grid, and without bridges, it falls into as many pieces as samples lie in it."""

    def band(x):
        t = x[:, 0] - 0.37 * x[:, 1] - 0.0801
        middle = np.abs(t) < 0.0012
        return np.eye(3)[np.where(middle, 2, (t > 0).astype(int))]

    p = decision_regions(band, SQUARE, method="adaptive")
    assert (p.labels == 2).sum() == 1
    assert p.n_regions == 3
    assert p.n_evaluations <= 4000
    assert decision_regions(band, SQUARE, method="grid", resolution=200).n_regions > 10


def test_two_islands_of_one_label_are_not_joined():
    def islands(x):
        far = np.minimum(np.abs(x - [0.3, 0.3]).max(axis=1), np.abs(x - [0.36, 0.3]).max(axis=1))
        return np.eye(2)[(far < 0.02).astype(int)]

    p = decision_regions(islands, SQUARE, method="adaptive")
    assert sorted(p.labels.tolist()) == [0, 1, 1]


def test_small_leads_are_looked_at_more_closely_than_large_ones():
    """Where jumps of the scores could turn the lead, cells are cut; where they could not, they are left."""
    rng = np.random.default_rng(0)
    jumps = 0.1 * rng.choice([-1, 1], (60, 60))

    def steps(x):
        i, j = (np.clip(((x + 1) * 30).astype(int), 0, 59)).T
        lead = np.where(x[:, 0] < 0, 3.0, 0.12) + jumps[i, j]
        return np.column_stack([lead, 0 * lead])

    p = decision_regions(steps, SQUARE, method="adaptive")
    at = p.weights[:, 1]
    assert (at > 0.5).sum() > 1.5 * (at < 0.5).sum()


def test_bridges_are_short_and_of_one_label():
    x = np.array([[0.0, 0.0], [0.1, 0.0], [0.9, 0.0], [0.05, 0.0]])
    found = possible_bridges(x, np.array([0, 0, 0, 1]), np.arange(4), 0.01)
    assert found.ends.tolist() == [[0, 1]]  # the third is too far away, the fourth has another label
    assert found.n_points.tolist() == [9]
    assert MOST_STEPS * 0.01 < 0.8


def test_points_on_bridges_are_between_their_ends():
    x = np.array([[0.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    points, owner = points_on(x, Bridges(np.array([[0, 1], [0, 2]]), np.array([1, 2])))
    assert points.tolist() == [[0.0, 0.5], [1.0, 0.0], [2.0, 0.0]]
    assert owner.tolist() == [0, 1, 1]


def test_pieces_are_joined_in_chains():
    roots = np.array([0, 1, 1, 3, 4])
    assert joined_by(roots, np.array([[2, 3], [3, 4]])).tolist() == [0, 1, 1, 1, 1]


@pytest.mark.parametrize("n_trees", [10, 80])
def test_what_is_said_to_be_missed_grows_with_the_steps(data, n_trees):
    """Far more is missed between the dense steps of many trees, though as many small regions are met."""
    x, y = data
    forest = ExtraTreesClassifier(n_trees, random_state=1).fit(x, y)
    probes = inscape.sample_probes(x, dim=2, n=8, random_state=3)
    truth = np.mean([p.n_regions for p in decision_regions(forest, probes, method="exact")])
    ours = decision_regions(lambda p: forest.predict_proba(p), probes, method="adaptive")
    missed, said = truth - np.mean([p.n_regions for p in ours]), np.mean([p.missed for p in ours])
    assert 0.4 * missed <= said <= 2.5 * missed
