"""Trees of scikit-learn as arrays compute what the estimator computes, bit for bit."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from predictions import assert_along
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, RobustScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from inscape import Segment, decision_regions, linear_regions, region_count
from inscape.errors import ModelError, PartitionError
from inscape.models import wrap
from inscape.models.from_sklearn import view_behind
from inscape.models.from_sklearn.transformers import read_transformers
from inscape.models.trees import Rule, Scaling, TreeEnsemble, read_trees
from inscape.models.trees.views import last_on_left

ESTIMATORS = {
    "tree": DecisionTreeClassifier(max_depth=5, random_state=0),
    "extra tree": ExtraTreeClassifier(random_state=0),
    "best-first tree": DecisionTreeClassifier(max_leaf_nodes=9, random_state=0),
    "forest": RandomForestClassifier(8, max_depth=4, random_state=0),
    "full forest": RandomForestClassifier(8, random_state=0),
    "extra trees": ExtraTreesClassifier(8, min_samples_leaf=3, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=5, learning_rate=0.3, random_state=0),
    "boosting from zero": GradientBoostingClassifier(n_estimators=5, init="zero", random_state=0),
    "boosting from majority": GradientBoostingClassifier(
        n_estimators=5, init=DummyClassifier(strategy="most_frequent"), random_state=0
    ),
    "histogram": HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=8, random_state=0),
}
SCALERS = {
    "none": [],
    "passthrough": ["passthrough", None],
    "standard": [StandardScaler()],
    "centred": [StandardScaler(with_std=False)],
    "stretched": [StandardScaler(with_mean=False)],
    "min-max": [MinMaxScaler((-1, 3))],
    "max-abs": [MaxAbsScaler()],
    "robust": [RobustScaler()],
    "robust, centred": [RobustScaler(with_scaling=False)],
    "three": [RobustScaler(), MinMaxScaler(), StandardScaler()],
}


def data(n_classes=3, shift=0.0):
    x, y = make_classification(
        120,
        4,
        n_informative=3,
        n_redundant=0,
        n_classes=n_classes,
        n_clusters_per_class=1,
        flip_y=0.2,
        random_state=1,
    )
    return x + shift, y


def scores(trees: TreeEnsemble, x):
    """The slow way: one point after the other, one node after the other, in Python."""
    rows = []
    for point in x:
        total = trees.vote.start.copy()
        for root in range(trees.n_trees):
            node = root
            while trees.feature[node] >= 0:
                node = trees.child[node] + int(point[trees.feature[node]] > trees.last_left[node])
            assert trees.feature[node] == -1 - root
            column = trees.column[root]
            total[column : column + trees.value.shape[1]] += trees.value[trees.child[node]]
        rows.append(total / trees.vote.divisor)
    return np.array(rows)


def close_to_splits(trees: TreeEnsemble, x, n=200):
    """Points with one coordinate on a split or on the next float64 number."""
    rng = np.random.default_rng(0)
    inner = rng.choice(np.flatnonzero(trees.feature >= 0), n)
    points = x[rng.integers(len(x), size=n)].copy()
    last_left = trees.last_left[inner]
    points[np.arange(n), trees.feature[inner]] = np.where(
        rng.random(n) < 0.5, last_left, np.nextafter(last_left, np.inf)
    )
    return points


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_arrays_compute_what_the_estimator_computes_bit_for_bit(kind, n_classes):
    x, y = data(n_classes)
    estimator = ESTIMATORS[kind].fit(x, y)
    trees = wrap(estimator).trees
    points = np.concatenate([x, close_to_splits(trees, x)])
    expected = getattr(estimator, "decision_function", estimator.predict_proba)(points)
    assert np.array_equal(scores(trees, points), expected.reshape(len(points), -1))


@pytest.mark.parametrize("scalers", SCALERS)
@pytest.mark.parametrize("kind", ["full forest", "histogram"])
def test_scaled_arrays_agree_next_to_every_split(kind, scalers):
    x, y = data(shift=1000.0)
    estimator = make_pipeline(*SCALERS[scalers], ESTIMATORS[kind]).fit(x, y)
    trees = wrap(estimator).trees
    points = np.concatenate([x, close_to_splits(trees, x)])
    method = "decision_function" if kind == "histogram" else "predict_proba"
    assert np.array_equal(scores(trees, points), getattr(estimator, method)(points))


@settings(max_examples=200, deadline=None)
@given(st.floats(-1e30, 1e30), st.booleans())
@example(0.5, True)
@example(-0.0, True)
@example(1e-46, True)
@example(float(np.float32(0.1)), True)
def test_the_last_number_on_the_left_goes_left_and_the_next_one_right(threshold, single):
    [last_left] = last_on_left(np.array([threshold]), np.zeros(1, dtype=np.int32), Scaling(), single=single)

    def left(x):
        with np.errstate(under="ignore"):
            return float(np.float32(x) if single else x) <= threshold

    assert left(last_left)
    assert not left(np.nextafter(last_left, np.inf))


def test_splits_outside_float32_have_all_of_float32_on_one_side():
    low, high, infinite = last_on_left(
        np.array([-1e39, 1e39, np.inf]), np.zeros(3, dtype=np.int32), Scaling(), single=True
    )
    largest = float(np.finfo(np.float32).max)
    assert low < -largest
    assert high > largest
    assert infinite == np.inf


@settings(max_examples=200, deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.booleans())
@example(0.0, 0.0, 3.0, True)
@example(1.0, -1.0, 1.0, False)
def test_the_last_scaled_number_on_the_left_goes_left_and_the_next_one_right(threshold, mean, scale, single):
    scaling = Scaling((("-", np.array([mean])), ("/", np.array([scale]))))
    [last_left] = last_on_left(np.array([threshold]), np.zeros(1, dtype=np.int32), scaling, single=single)

    def left(x):
        scaled = (x - mean) / scale
        return float(np.float32(scaled) if single else scaled) <= threshold

    assert left(last_left)
    assert not left(np.nextafter(last_left, np.inf)) or abs(last_left) < 1e-290


def test_scaling_is_what_the_scalers_do():
    x, _ = data()
    fitted = []
    expected = x
    for scaler in SCALERS["three"]:
        expected = scaler.fit_transform(expected)
        fitted.append(scaler)
    view = view_behind(read_transformers([("", s) for s in fitted]), x.shape[1])
    scaling = view.scaling
    assert np.array_equal(view.seen(x), expected)
    assert (view.columns, view.oblique) == (None, None)
    assert np.allclose(scaling.inverse(expected), x, rtol=1e-12)
    assert np.allclose(scaling.slope() * (x[0] - x[1]), expected[0] - expected[1])


def test_siblings_are_neighbours_and_equal_leaves_share_a_row():
    x, y = data()
    trees = wrap(RandomForestClassifier(5, random_state=0).fit(x, y)).trees
    inner = trees.feature >= 0
    assert sorted(trees.child[inner]) == list(range(5, len(trees.feature), 2))
    assert sorted(map(tuple, trees.value)) == [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    assert trees.rounding == 0
    assert trees.n_leaves == inner.sum() + 5


def test_a_tree_without_splits_is_one_leaf():
    trees = wrap(DecisionTreeClassifier().fit([[0.0], [1.0]], [1, 1])).trees
    assert (trees.n_trees, trees.n_leaves, trees.vote.rule) == (1, 1, Rule.ARGMAX)


def test_infinite_thresholds_of_missing_values_send_every_number_to_the_left():
    x = np.array([[0.0], [1.0], [np.nan], [np.nan]] * 10)
    y = np.isnan(x[:, 0]).astype(int)
    for estimator in (
        DecisionTreeClassifier(),
        HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=1),
    ):
        trees = wrap(estimator.fit(x, y)).trees
        assert np.isinf(trees.last_left[0])
        assert estimator.predict([[5.0]]) == [0]
        assert scores(trees, [[5.0]]).ravel().tolist() == scores(trees, [[0.0]]).ravel().tolist()


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_structure_is_trees(kind):
    x, y = data()
    assert wrap(ESTIMATORS[kind].fit(x, y)).structure == "trees"
    assert wrap(make_pipeline(StandardScaler(), ESTIMATORS[kind]).fit(x, y)).structure == "trees"


class OwnForest(RandomForestClassifier):
    def predict(self, x):
        return super().predict(-x)


@pytest.mark.parametrize(
    ("estimator", "reason"),
    [
        (make_pipeline(Normalizer(), DecisionTreeClassifier()), "step 'normalizer', a Normalizer, divides"),
        (make_pipeline(MinMaxScaler(clip=True), DecisionTreeClassifier()), "its features are clipped"),
        (
            HistGradientBoostingClassifier(max_iter=2, categorical_features=[0]),
            "has categorical features, which have no order",
        ),
        (
            GradientBoostingClassifier(n_estimators=2, init=LogisticRegression()),
            "starts from init=LogisticRegression, which is not a constant",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:.*its region count is 1")
def test_what_is_not_trees_says_why(estimator, reason):
    x, y = data()
    x[:, 0] = x[:, 0] > 0
    estimator.fit(x, y)
    model = wrap(estimator)
    assert model.structure == "black-box"
    with pytest.raises(PartitionError, match="cannot be counted exactly because .*" + reason):
        _ = model.trees
    with pytest.raises(PartitionError, match=f"cannot be counted exactly because .*{reason}.*method=.grid"):
        decision_regions(model, Segment(x[0], x[1]), method="exact")
    assert reason in region_count(model, x, n_probes=2, random_state=0).reason


@pytest.mark.parametrize("estimator", [LogisticRegression(), OwnForest(2)])
def test_other_classifiers_are_not_trees(estimator):
    x, y = data()
    model = wrap(estimator.fit(x, y))
    with pytest.raises(PartitionError, match=r"is not made of trees|how OwnForest predicts is not known"):
        _ = model.trees
    with pytest.raises(ModelError, match=f"{type(estimator).__name__} cannot be read as trees"):
        read_trees(estimator)


def test_trees_have_no_linear_pieces():
    x, y = data()
    forest = RandomForestClassifier(3, random_state=0).fit(x, y)
    with pytest.raises(PartitionError, match=r"trees, which are piecewise constant.*method=.exact"):
        linear_regions(forest, Segment(x[0], x[1]))


def test_a_negative_scale_is_a_direction():
    x, y = data()
    pipeline = make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0)).fit(x, y)
    pipeline[0].scale_[0] *= -1
    model = wrap(pipeline)
    assert model.trees.oblique is not None
    [r] = decision_regions(model, [Segment(x[0], x[1], span=(-2, 3))], method="exact")
    assert_along(model, r, 1e-6)


def test_the_trees_are_read_once_and_again_after_a_fit():
    x, y = data()
    forest = RandomForestClassifier(2, warm_start=True, random_state=0).fit(x, y)
    model = wrap(forest)
    trees = model.trees
    assert model.trees is trees
    forest.set_params(n_estimators=3).fit(x, y)
    assert model.trees.n_trees == 3
    scaler = StandardScaler()
    model = wrap(make_pipeline(scaler, DecisionTreeClassifier()).fit(x, y))
    first = model.trees
    scaler.fit(x + 1)
    assert not np.array_equal(model.trees.last_left, first.last_left)


def test_importing_needs_neither_sklearn_nor_numba():
    code = (
        "import sys, inscape.models.sklearn_estimator, inscape.partition.decision.exact.trees\n"
        "assert not {'sklearn', 'numba'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
