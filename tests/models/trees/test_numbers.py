"""Trees that predict numbers, behind decision rules, against its library's numbers and the rule by hand."""

import numpy as np
import pytest
import tree_numbers
from estimators import TWO, X
from predictions import assert_along, assert_on_plane
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

import inscape
from inscape import Patch, Segment
from inscape.models.decision_rules import Levels
from inscape.models.trees import read_trees
from inscape.models.trees.numbers import decided_trees, recognised

NEAR = 1e-6
LINE = Segment(X[0], X[1], span=(-0.5, 1.5))
PLANE = Patch.through(X[[0, 5, 17]])


@pytest.mark.parametrize("name", tree_numbers.CASES)
def test_labels_are_the_rules_on_both_sides_of_every_boundary(name):
    case = tree_numbers.CASES[name]
    own = case.build()
    model = inscape.wrap(own, **case.options)

    def labels(x):
        return case.labels(case.numbers(own, x))

    if case.segments == "adaptive":
        assert model.structure == "black-box"
        assert inscape.decision_regions(model, LINE).method == "adaptive"
        return
    assert model.structure == "trees"
    line = inscape.decision_regions(model, LINE)
    plane = inscape.decision_regions(model, PLANE)
    assert line.method == plane.method == "exact"
    assert_along(labels, line, NEAR)
    assert_on_plane(labels, plane, NEAR)


def test_the_cases_have_boundaries_to_check():
    exact = [case for case in tree_numbers.CASES.values() if case.planes == "exact"]
    models = [inscape.wrap(case.build(), **case.options) for case in exact]
    counts = [inscape.decision_regions(model, PLANE).n_regions for model in models]
    assert np.mean([n > 2 for n in counts]) > 0.8


def test_which_function_of_the_sums_numbers_are():
    forest = RandomForestClassifier(5, random_state=0).fit(X, TWO)
    trees = read_trees(forest)
    shares = recognised(trees, X, forest.predict_proba(X))
    second = recognised(trees, X, forest.predict_proba(X)[:, [1]])
    assert (shares.head, shares.matrix.tolist()) == (None, [[1, 0], [0, 1]])
    assert second.matrix.tolist() == [[0, 1]]
    assert recognised(trees, X, np.sin(forest.predict_proba(X))) is None
    sums = trees.scores(X)
    odds = np.exp(sums) / np.exp(sums).sum(axis=1, keepdims=True)
    assert recognised(trees, X, odds).head == "softmax"
    assert recognised(trees, X, 1 / (1 + np.exp(sums[:, :1]))).matrix.tolist() == [[-1, 0]]


def test_a_level_that_the_numbers_take_is_decided_by_the_model():
    y = np.repeat([0.1, 0.1 + 0.2, 0.7], 40)
    fitted = DecisionTreeRegressor(random_state=0).fit(X, y)
    model = inscape.wrap(fitted, levels=[0.1, 0.1 + 0.2])
    line = inscape.decision_regions(model, LINE)
    assert line.is_exact
    assert line.trees.n_asked > 0
    assert_along(lambda x: np.searchsorted([0.1, 0.1 + 0.2], fitted.predict(x)), line, NEAR)


def test_numbers_that_no_rule_is_asked_for_stay_as_they_were():
    fitted = RandomForestRegressor(3, random_state=0).fit(X, TWO)
    with pytest.raises(inscape.InscapeError, match="predicts numbers, not classes"):
        inscape.wrap(fitted)
    with pytest.raises(inscape.InscapeError, match=r"made of trees.*no linear pieces"):
        inscape.linear_regions(inscape.wrap(fitted, threshold=0.5), LINE)


def test_another_fit_is_another_model():
    fitted = DecisionTreeRegressor(random_state=0).fit(X, tree_numbers.Y)
    model = inscape.wrap(fitted, threshold=0.1)
    before = inscape.decision_regions(model, LINE)
    fitted.fit(X, -tree_numbers.Y)
    after = inscape.decision_regions(model, LINE)
    assert_along(lambda x: (fitted.predict(x) > 0.1).astype(int), after, NEAR)
    assert not np.array_equal(before.labels, after.labels) or before.n_regions != after.n_regions


def test_a_rule_behind_normalised_data():
    fitted = RandomForestRegressor(4, random_state=0).fit(X, tree_numbers.Y)
    model = inscape.wrap(fitted, threshold=0.1, preprocess={"mean": 3.0, "std": 2.0})
    line = inscape.decision_regions(model, Segment(2 * X[0] + 3, 2 * X[1] + 3))
    assert line.is_exact
    assert_along(lambda x: (fitted.predict((x - 3) / 2) > 0.1).astype(int), line, NEAR)


def test_many_levels_are_one_vote():
    levels = tuple(np.linspace(-1, 1, 30))
    fitted = RandomForestRegressor(10, random_state=0).fit(X, tree_numbers.Y)
    trees = decided_trees(read_trees(fitted, numbers=True), Levels(levels), X, fitted.predict(X)[:, None])
    assert (trees.labels(X) == np.searchsorted(levels, fitted.predict(X))).all()
