"""Trees of XGBoost, LightGBM and CatBoost: read as they predict, or refused by name."""

import boosted
import numpy as np
import pandas as pd
import pytest
from boosted import cat, lgbm, xgb
from estimators import THREE, TWO, X
from predictions import assert_along
from sklearn.ensemble import VotingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import inscape
from inscape import Segment
from inscape.errors import ModelError, PartitionError
from inscape.models.trees import read_trees

EXACT = [name for name, case in boosted.CASES.items() if case.planes == "exact"]
N_POINTS = 10**5


def each_side_of_every_split(trees, rng):
    """Points with one coordinate on a split or on the next float64 number, as often as it takes."""
    inner = np.flatnonzero((trees.feature >= 0) & np.isfinite(trees.last_left))
    node = np.resize(inner, N_POINTS)
    points = X[rng.integers(len(X), size=N_POINTS)] + rng.normal(scale=0.3, size=(N_POINTS, X.shape[1]))
    last_left = trees.last_left[node]
    points[np.arange(N_POINTS), trees.feature[node]] = np.where(
        rng.random(N_POINTS) < 0.5, last_left, np.nextafter(last_left, np.inf)
    )
    return points


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in EXACT if "PCA" not in n])
def test_labels_are_the_librarys_on_each_side_of_every_threshold(name):
    model = inscape.wrap(boosted.CASES[name].build())
    points = each_side_of_every_split(model.trees, np.random.default_rng(0))
    found = model.trees.labels(points)
    assert (found >= 0).mean() > 0.99
    assert np.array_equal(found[found >= 0], model.labels(points)[found >= 0])


def test_trees_are_those_that_veritas_reads():
    """Another reader of the same booster: its sums have the sign of ours on each side of every split."""
    veritas = pytest.importorskip("veritas", reason="another reader of trees: pip install dtai-veritas")
    estimator = xgb().fit(X, TWO)
    trees = inscape.wrap(estimator).trees
    points = each_side_of_every_split(trees, np.random.default_rng(0))[:5000]
    sums = np.asarray(veritas.get_addtree(estimator, silent=True).eval(points.astype(np.float32))).ravel()
    labels = trees.labels(points)
    known = labels >= 0
    assert known.mean() > 0.99
    assert np.array_equal(labels[known], (sums[known] > 0).astype(int))


def test_a_booster_that_is_loaded_anew_is_read_anew():
    """With as many trees as before."""
    line = Segment(X[0], X[1], span=(-2, 3))
    first, second = (xgb().fit(X, y).get_booster() for y in (TWO, 1 - TWO))
    model = inscape.wrap(first)
    before = inscape.decision_regions(model, line)
    first.load_model(second.save_raw())
    after = inscape.decision_regions(model, line)
    assert after.labels.tolist() == (1 - before.labels).tolist()
    assert_along(lambda x: model.labels(x), after, 1e-6)


def test_a_text_of_lightgbm_that_is_loaded_anew_is_read_anew():
    line = Segment(X[0], X[1], span=(-2, 3))
    first, second = (lgbm().fit(X, y).booster_ for y in (TWO, 1 - TWO))
    model = inscape.wrap(first)
    before = inscape.decision_regions(model, line)
    first.model_from_string(second.model_to_string())
    assert inscape.decision_regions(model, line).labels.tolist() == (1 - before.labels).tolist()


def table():
    """Numbers in one column and a category in another."""
    kinds = pd.Categorical(np.array(["a", "b", "c"])[THREE])
    return pd.DataFrame({"number": X[:, 0], "kind": kinds})


def with_nan():
    x = X.copy()
    x[::7, 0] = np.nan
    return x


def test_xgboost_is_refused_by_name():
    pytest.importorskip("xgboost")
    from xgboost import XGBClassifier

    vectors = XGBClassifier(n_estimators=2, multi_strategy="multi_output_tree", tree_method="hist", n_jobs=1)
    for estimator, x, reason in [
        (xgb(booster="gblinear", max_depth=None), X, "its booster is gblinear"),
        (xgb(missing=0.0), X, "it takes the number 0 for missing"),
        (xgb(enable_categorical=True, max_cat_to_onehot=1), table(), "it has categorical splits"),
        (vectors, X, "its leaves hold vectors"),
    ]:
        with pytest.raises(PartitionError, match=f"cannot be counted exactly because {reason}"):
            inscape.wrap(estimator.fit(x, THREE)).trees  # noqa: B018


def test_lightgbm_is_refused_by_name():
    pytest.importorskip("lightgbm")
    zeros = np.where(np.abs(X - 3) < 0.5, 0.0, X)
    for estimator, x, reason in [
        (lgbm(linear_tree=True), X, "its leaves are linear"),
        (lgbm(zero_as_missing=True), zeros, "it takes zeros for missing"),
        (lgbm(min_data_per_group=1, cat_smooth=0.1), table(), "it has categorical splits"),
    ]:
        with pytest.raises(PartitionError, match=f"cannot be counted exactly because {reason}"):
            inscape.wrap(estimator.fit(x, THREE)).trees  # noqa: B018


def test_catboost_is_refused_by_name():
    pytest.importorskip("catboost")
    with pytest.raises(PartitionError, match="it has categorical features, which have no order along a line"):
        inscape.wrap(cat(cat_features=["kind"], one_hot_max_size=10).fit(table(), TWO)).trees  # noqa: B018


@pytest.mark.parametrize("make", [xgb, lgbm, cat])
def test_trees_of_data_with_missing_values_are_exact_on_finite_points(make):
    pytest.importorskip({"xgb": "xgboost", "lgbm": "lightgbm", "cat": "catboost"}[make.__name__])
    model = inscape.wrap(make().fit(with_nan(), THREE))
    found = inscape.decision_regions(model, Segment(X[0], X[1], span=(-0.5, 1.5)), method="exact")
    assert found.n_regions > 1
    assert_along(model, found, 1e-6)
    with pytest.raises(ModelError, match="hold NaN or infinite values"):
        model.labels(with_nan())


def test_the_best_iteration_is_where_predict_stops():
    pytest.importorskip("xgboost")
    estimator = xgb(n_estimators=60, learning_rate=0.5, early_stopping_rounds=3, max_depth=4)
    estimator.fit(X[:80], THREE[:80], eval_set=[(X[80:], THREE[80:])], verbose=False)
    best = estimator.best_iteration + 1
    assert best < 60 - 3
    assert inscape.wrap(estimator).trees.n_trees == 3 * best
    booster = estimator.get_booster()
    assert inscape.wrap(booster).trees.n_trees == 3 * booster.num_boosted_rounds() > 3 * best


def test_the_best_iteration_of_lightgbm_is_where_predict_stops():
    lightgbm = pytest.importorskip("lightgbm")
    estimator = lgbm(n_estimators=60, learning_rate=0.5)
    stop = lightgbm.early_stopping(3, verbose=False)
    estimator.fit(X[:80], THREE[:80], eval_X=X[80:], eval_y=THREE[80:], callbacks=[stop])
    assert 0 < estimator.best_iteration_ < 57
    assert inscape.wrap(estimator).trees.n_trees == 3 * estimator.best_iteration_


def test_more_training_is_noticed():
    xgboost = pytest.importorskip("xgboost")
    estimator = xgb().fit(X, THREE)
    model, booster = inscape.wrap(estimator), estimator.get_booster()
    assert model.trees is model.trees
    before = model.trees.n_trees
    booster.update(xgboost.DMatrix(X, THREE), 9)
    assert model.trees.n_trees == inscape.wrap(booster).trees.n_trees == before + 3


def test_another_fit_of_catboost_is_noticed():
    pytest.importorskip("catboost")
    estimator = cat().fit(X, THREE)
    model = inscape.wrap(estimator)
    first = model.trees
    assert model.trees is first
    estimator.fit(X[:60], THREE[:60])
    assert model.trees is not first


def test_names_of_classes_and_of_columns_come_along():
    pytest.importorskip("xgboost")
    pytest.importorskip("catboost")
    frame = pd.DataFrame(X, columns=list("abcde"))
    names = np.array(["one", "two", "three"])[THREE]
    for estimator, y, classes in [
        (xgb(), THREE, ("0", "1", "2")),
        (cat(), names, ("one", "three", "two")),
    ]:
        model = inscape.wrap(estimator.fit(frame, y))
        found = inscape.decision_regions(model, Segment(X[0], X[1]), method="exact")
        assert model.classes == found.class_names == classes
        assert_along(model, found, 1e-6)
    booster = xgb().fit(frame, THREE).get_booster()
    assert_along(inscape.wrap(booster), inscape.decision_regions(booster, Segment(X[0], X[1])), 1e-6)


def test_labels_in_doubt_are_the_librarys():
    """A hundred and more ties: every leaf of one class has the value of a leaf of the other."""
    pytest.importorskip("xgboost")
    x = np.random.default_rng(0).uniform(size=(200, 2))
    y = ((x[:, 0] > 0.5) ^ (x[:, 1] > 0.5)).astype(int)
    model = inscape.wrap(xgb(n_estimators=2, max_depth=1, base_score=0.5, reg_lambda=0).fit(x, y))
    probes = inscape.sample_probes(x, n=40, random_state=0)
    for found in inscape.decision_regions(model, probes, method="exact"):
        assert_along(model, found, 1e-6)


def test_a_regression_needs_levels():
    xgboost = pytest.importorskip("xgboost")
    booster = xgboost.train({"nthread": 1, "max_depth": 2}, xgboost.DMatrix(X, X[:, 0]), 3)
    with pytest.raises(ModelError, match=r"predicts numbers, not classes: cut them by levels"):
        inscape.wrap(booster)
    model = inscape.wrap(booster, levels=[3.0])
    assert model.structure == "trees"
    assert set(model.labels(X)) == {0, 1}


def test_what_votes_by_probabilities_of_boosting_says_so():
    pytest.importorskip("xgboost")
    soft = VotingClassifier([("a", xgb()), ("b", xgb(max_depth=2))], voting="soft").fit(X, THREE)
    with pytest.raises(PartitionError, match="voting='soft' averages probabilities, which are not affine"):
        inscape.decision_regions(soft, Segment(X[0], X[1]), method="exact")


def test_a_library_that_predicts_otherwise_is_not_exact():
    """As a version that sums or compares in another way would."""
    pytest.importorskip("xgboost")
    estimator = xgb().fit(X, TWO)

    class Backwards(type(estimator)):
        def predict(self, x, **settings):
            return 1 - super().predict(x, **settings)

    Backwards.__module__, Backwards.__name__ = "xgboost.sklearn", "XGBClassifier"
    estimator.__class__ = Backwards
    model = inscape.wrap(estimator)
    with pytest.raises(PartitionError, match="its trees, as they were read, do not predict what it does"):
        _ = model.trees


def test_readings_say_how_a_library_compares():
    pytest.importorskip("xgboost")
    pytest.importorskip("lightgbm")
    pytest.importorskip("catboost")
    kinds = {make: read_trees(make().fit(X, TWO)) for make in (xgb, lgbm, cat)}
    assert [trees.precision for trees in kinds.values()] == ["float32", "float64", "float32"]
    assert kinds[xgb].vote.doubt > 1e-7 > 1e-11 > max(kinds[lgbm].vote.doubt, kinds[cat].vote.doubt) > 0


def test_scalers_round_as_they_do():
    pytest.importorskip("xgboost")
    model = inscape.wrap(make_pipeline(StandardScaler(), xgb()).fit(X + 1000, THREE))
    points = each_side_of_every_split(model.trees, np.random.default_rng(1))[:2000]
    found = model.trees.labels(points)
    assert np.array_equal(found[found >= 0], model.labels(points)[found >= 0])
