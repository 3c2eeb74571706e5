"""A tree cut at a depth is the tree that is grown to it."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from inscape.errors import ModelError
from inscape.training.data.datasets import Split
from inscape.training.fitting import check_settings, fit_many, pruned_to_depth


def _data(n=400, d=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(0, 3, size=n)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("depth", [1, 2, 4, 5])
def test_without_ties_every_node_is_that_of_the_tree_grown_to_the_depth(criterion, depth):
    x, y = _data(n=2000, d=1)  # of one real feature: one best threshold in each node of many points
    options = {"criterion": criterion, "random_state": 3, "min_samples_leaf": 20}
    whole = DecisionTreeClassifier(max_depth=6, **options).fit(x, y)
    pruned, grown = (
        pruned_to_depth(whole, depth).tree_,
        DecisionTreeClassifier(max_depth=depth, **options).fit(x, y),
    )
    for name in ("children_left", "children_right", "feature", "threshold", "value", "n_node_samples"):
        np.testing.assert_array_equal(getattr(pruned, name), getattr(grown.tree_, name))
    assert pruned.max_depth == grown.tree_.max_depth
    assert whole.tree_.max_depth == 6  # untouched


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier])
def test_a_cut_tree_predicts_what_the_node_at_the_depth_holds(kind):
    x, y = _data()
    model = kind(
        max_depth=9, random_state=0, **({"n_estimators": 7} if kind is RandomForestClassifier else {})
    )
    model.fit(x, y)
    trees = getattr(model, "estimators_", [model])
    for depth in (1, 3, 9):
        pruned = pruned_to_depth(model, depth)
        held = []
        for tree in trees:
            paths = tree.decision_path(x)  # nodes in the order of their numbers, which is from the root down
            last = [paths.indices[a:b][: depth + 1][-1] for a, b in pairwise(paths.indptr)]
            held.append(tree.tree_.value[last][:, 0])
        np.testing.assert_allclose(pruned.predict_proba(x), np.mean(held, axis=0), atol=1e-12)
        assert max(t.get_depth() for t in getattr(pruned, "estimators_", [pruned])) == depth


def test_pruning_deeper_than_grown_is_refused():
    x, y = _data()
    with pytest.raises(ModelError, match="grown to depth 3 cannot be pruned to 4"):
        pruned_to_depth(DecisionTreeClassifier(max_depth=3).fit(x, y), 4)
    with pytest.raises(ModelError, match="max_depth=9 with grown_depth=5"):
        check_settings({"model": "tree", "max_depth": 9, "grown_depth": 5})


def test_a_model_does_not_depend_on_those_that_are_fitted_with_it(monkeypatch):
    x, y = _data()
    split, fits = Split(x, y, x[:50], y[:50]), []
    fit = DecisionTreeClassifier.fit
    monkeypatch.setattr(DecisionTreeClassifier, "fit", lambda s, *a, **k: fits.append(s) or fit(s, *a, **k))
    base = {"model": "tree", "splitter": "random", "grown_depth": 8}
    settings = [base | {"max_depth": d} for d in (2, 5, 8)]
    together = fit_many(settings, split, random_states=[7, 7, 7])
    assert len(fits) == 1
    for one, given in zip(together, settings, strict=True):
        alone = fit_many([given], split, random_states=[7])[0]
        np.testing.assert_array_equal(one.model.scores(x), alone.model.scores(x))
    fit_many(settings, split, random_states=[1, 2, 3])
    assert len(fits) == 1 + 3 + 3
