"""`wrap`: labels and scores of every kind of model are the library's own."""

import numpy as np
import pandas as pd
import pytest
import torch
from predictions import assert_along
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression, Perceptron, Ridge, RidgeClassifier
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import inscape
from inscape.errors import ModelError


@pytest.fixture
def data(rng):
    x = rng.normal(size=(80, 4))
    return x, (x[:, 0] + 0.3 * x[:, 1] > 0).astype(int) + (x[:, 2] > 1)


def test_wrapping_twice_changes_nothing():
    m = inscape.wrap(lambda x: x[:, 0].astype(int))
    assert inscape.wrap(m) is m


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(random_state=0),
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        KNeighborsClassifier(3),
        SVC(),
        SVC(decision_function_shape="ovo"),
        Perceptron(),
    ],
    ids=lambda e: type(e).__name__,
)
def test_sklearn_labels_are_predictions(estimator, data):
    x, y = data
    m = inscape.wrap(estimator.fit(x, y))
    assert (m.labels(x) == estimator.predict(x)).all()
    if m.has_scores:
        assert m.scores(x).shape == (80, 3)
        assert (m.scores(x).argmax(axis=1) == m.labels(x)).mean() > 0.97  # SVC votes by pairs
    else:
        with pytest.raises(ModelError, match="no score per class"):
            m.scores(x)


@pytest.mark.parametrize("make", [LogisticRegression, DecisionTreeClassifier, SVC])
def test_sklearn_string_classes(make, data):
    x, y = data
    names = np.array(["cat", "ant", "bee"])[y]
    m = inscape.wrap(make().fit(x, names))
    assert m.classes == ("ant", "bee", "cat")
    assert (np.array(m.classes)[m.labels(x)] == m.estimator.predict(x)).all()


@pytest.mark.parametrize("make", [LogisticRegression, DecisionTreeClassifier, SVC])
def test_sklearn_classes_follow_another_fit(make, data):
    x, y = data
    estimator = make().fit(x, np.array(["no", "yes"])[np.minimum(y, 1)])
    m = inscape.wrap(estimator)
    assert m.classes == ("no", "yes")
    estimator.fit(x, np.array(["cat", "ant", "bee"])[y])
    assert m.classes == ("ant", "bee", "cat")
    assert m.class_values.tolist() == ["ant", "bee", "cat"]
    assert (np.array(m.classes)[m.labels(x)] == estimator.predict(x)).all()
    assert m.scores(x).shape == (80, 3)
    assert inscape.decision_regions(m, inscape.Segment(x[0], x[1])).class_names == m.classes


def test_sklearn_scores_that_another_fit_takes_away(data):
    x, y = data
    estimator = SVC(decision_function_shape="ovo").fit(x, np.minimum(y, 1))
    m = inscape.wrap(estimator)
    assert m.scores(x).shape == (80, 2)
    estimator.fit(x, y)
    with pytest.raises(ModelError, match="no score per class"):
        m.scores(x)


def test_sklearn_binary_scores_have_two_columns_that_agree_with_the_label(data):
    x, y = data
    m = inscape.wrap(LogisticRegression().fit(x, np.minimum(y, 1)))
    assert m.scores(x).shape == (80, 2)
    assert (m.scores(x).argmax(axis=1) == m.labels(x)).all()


def test_sklearn_takes_images(data):
    x, y = data
    m = inscape.wrap(DecisionTreeClassifier().fit(x, y))
    assert (m.labels(x.reshape(80, 2, 2)) == m.labels(x)).all()


def test_sklearn_unfitted_regressor_and_multi_output(data):
    x, y = data
    with pytest.raises(ModelError, match="call fit first"):
        inscape.wrap(DecisionTreeClassifier())
    with pytest.raises(ModelError, match=r"DecisionTreeRegressor predicts numbers, .* levels="):
        inscape.wrap(DecisionTreeRegressor().fit(x, y))
    with pytest.raises(ModelError, match="several outputs"):
        inscape.wrap(MultiOutputClassifier(DecisionTreeClassifier()).fit(x, np.stack([y, y], axis=1)))


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (KMeans(2, n_init=1), "KMeans is a clusterer, not a classifier; .*wrap"),
        (make_pipeline(StandardScaler(), KMeans(2, n_init=1)), "Pipeline is a clusterer"),
        (GaussianMixture(2), "GaussianMixture is a density estimator"),
        (IsolationForest(n_estimators=2), "IsolationForest is an outlier detector"),
        (OneClassSVM(), "OneClassSVM is an outlier detector"),
    ],
    ids=lambda e: type(e).__name__,
)
def test_sklearn_without_classes_is_called_what_it_is(estimator, words, data):
    x, _ = data
    with pytest.raises(ModelError, match=words):
        inscape.wrap(estimator.fit(x))
    assert set(inscape.wrap(estimator.predict).labels(x)) <= {-1, 0, 1}  # as the message advises


@pytest.mark.parametrize(
    "estimator",
    [
        MLPClassifier((3,), solver="lbfgs", max_iter=3, random_state=0),
        OneVsRestClassifier(LogisticRegression()),
        RidgeClassifier(),
        KNeighborsClassifier(),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
def test_sklearn_several_labels_per_point(estimator, data):
    x, y = data
    estimator.fit(x, np.stack([y == 0, y == 1], axis=1).astype(int))
    with pytest.raises(ModelError, match="predicts several outputs: take all of them by decide='sign'"):
        inscape.wrap(estimator)
    model = inscape.wrap(estimator, decide="sign")
    assert (model.labels(x) == estimator.predict(x) @ [2, 1]).all()
    found = inscape.decision_regions(model, inscape.Segment(x[0], x[1], span=(-1, 2)), method="auto")
    is_exact = type(estimator).__name__ in ("MLPClassifier", "OneVsRestClassifier")
    assert found.is_exact == is_exact == (model.structure == "piecewise-affine")
    if is_exact:
        assert_along(lambda p: estimator.predict(p) @ [2, 1], found, 1e-6)


def test_a_forest_of_several_outputs_that_are_not_yes_or_no(data):
    x, y = data
    with pytest.raises(ModelError, match="which are not all yes or no"):
        inscape.wrap(DecisionTreeClassifier().fit(x, np.stack([y, 2 * y], axis=1)))


@pytest.mark.parametrize(
    "estimator",
    [
        Ridge(),
        SVR(kernel="linear"),
        make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(5,), max_iter=5, random_state=0)),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_regressors_that_are_piecewise_affine_are_cut_exactly(estimator, data):
    x, _ = data
    estimator.fit(x, np.abs(x[:, 0]) + x[:, 1])
    levels = inscape.quantile_levels(estimator, x, 4)
    model = inscape.wrap(estimator, levels=levels)
    found = inscape.decision_regions(model, inscape.Segment(x[0], x[1], span=(-1, 2)))
    assert found.is_exact
    assert model.structure == "piecewise-affine"
    assert_along(lambda p: np.searchsorted(levels, estimator.predict(p)), found, 1e-6)
    estimator.fit(x, x[:, 2])  # and again after another fit
    again = inscape.decision_regions(model, inscape.Segment(x[0], x[1], span=(-1, 2)))
    assert_along(lambda p: np.searchsorted(levels, estimator.predict(p)), again, 1e-6)


def test_a_column_of_a_classifier_needs_the_name_of_a_method(data):
    x, y = data
    with pytest.raises(ModelError, match=r"name a method first, such as output=\('predict_proba', 1\)"):
        inscape.wrap(LogisticRegression().fit(x, y), output=1)


def test_wrong_shape_names_the_expected_one(data):
    x, y = data
    m = inscape.wrap(DecisionTreeClassifier().fit(x, y))
    with pytest.raises(ModelError, match=r"expects points of shape \(4,\), got \(3,\)"):
        m.labels(x[:, :3])


def test_callables_with_labels_scores_and_names():
    x = np.array([[-1.0], [0.5], [2.0]])
    assert inscape.wrap(lambda x: x[:, 0] > 0).labels(x).tolist() == [0, 1, 1]
    assert inscape.wrap(lambda x: np.rint(x[:, 0])).labels(x).tolist() == [-1, 0, 2]
    assert inscape.wrap(lambda x: np.hstack([-x, x])).labels(x).tolist() == [0, 1, 1]
    assert inscape.wrap(lambda x: x).labels(x).tolist() == [0, 1, 1]
    named = inscape.wrap(lambda x: np.where(x[:, 0] > 0, "up", "down"))
    assert named.labels(x).tolist() == [0, 1, 1]
    assert named.classes == ("down", "up")


def test_names_keep_their_numbers_across_batches():
    m = inscape.wrap(lambda x: np.where(x[:, 0] > 0, "a", "b"), batch_size=2)
    assert m.labels([[-1.0], [-1.0], [1.0], [-1.0]]).tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("batch_size", [1, 3, 7, None])
def test_batches_do_not_change_the_answer_and_are_bounded(batch_size, rng):
    sizes = []

    def f(x):
        sizes.append(len(x))
        return x

    x = rng.normal(size=(10, 3))
    m = inscape.wrap(f, batch_size=batch_size)
    assert (m.scores(x) == x).all()
    assert max(sizes) <= (batch_size or 10)
    sizes.clear()  # the first call compares batches too
    assert (m.scores(x) == x).all()
    assert max(sizes) <= (batch_size or 10)
    assert sum(sizes) == 10


def test_input_shape_reshapes_points():
    shapes = []

    def f(x):
        shapes.append(x.shape)
        return np.zeros(len(x), dtype=int)

    inscape.wrap(f, input_shape=(2, 3)).labels(np.zeros((3, 6)))
    assert shapes == [(3, 2, 3)]


def test_automatic_batches_shrink_with_the_points():
    m = inscape.wrap(lambda x: x)
    assert m.batch_length(10) > m.batch_length(10**5) >= 8


def test_batches_shrink_with_what_the_first_convolution_returns():
    def length(channels, stride=1):
        model = inscape.wrap(torch.nn.Conv2d(3, channels, 3, stride, padding=1))
        model.batch_bytes = 2**22
        return model.batch_length(3 * 32 * 32)

    assert (length(3), length(12), length(12, stride=2)) == (256, 64, 256)


def test_batches_of_an_exported_module_are_those_of_the_module():
    """It has no layers any more, only their weights."""
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 12, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten())
    exported = torch.export.export(net.eval(), (torch.zeros(2, 3, 32, 32),)).module()
    lengths = [inscape.wrap(m).batch_length(3 * 32 * 32) for m in (net, exported)]
    assert lengths[0] == lengths[1] < inscape.wrap(torch.nn.Linear(3072, 3)).batch_length(3072)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.zeros(len(x) + 1, dtype=int), r"returned shape \(6,\) for 5 points"),
        (lambda x: np.zeros((len(x) - 1, 3)), r"returned shape \(4, 3\) for 5 points"),
        (lambda x: 0, r"returned shape \(\) for 5 points"),
        (lambda x: x[:, 0] + 0.5, "neither labels nor scores"),
        (lambda x: np.zeros((len(x), 2, 2)), r"scores of shape \(5, 2, 2\)"),
        (
            lambda x: np.full((len(x), 2), np.nan),
            "NaN or infinite scores for 5 of the 5 points of a batch, first at row 0",
        ),
        (lambda x: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_bad_callables(function, message):
    with pytest.raises(ModelError, match=message):
        inscape.wrap(function).labels(np.ones((5, 2)))


def test_non_finite_points_are_counted_and_located():
    x = np.ones((5, 2))
    x[3, 1] = np.nan
    x[4, 0] = np.inf
    with pytest.raises(ModelError, match="2 of 5 points hold NaN or infinite values, the first at row 3"):
        inscape.wrap(lambda x: x).labels(x)


@pytest.mark.parametrize("x", [np.ones(3), np.empty((0, 2)), [["a", "b"]]])
def test_points_must_be_a_non_empty_array_of_numbers(x):
    with pytest.raises(ModelError, match="points must be an array"):
        inscape.wrap(lambda x: x).labels(x)


def test_what_is_no_model():
    with pytest.raises(ModelError, match="cannot read a model from int"):
        inscape.wrap(3)
    with pytest.raises(ModelError, match="the class DecisionTreeClassifier, not an instance"):
        inscape.wrap(DecisionTreeClassifier)
    with pytest.raises(ModelError, match="batch_size=0 is too small"):
        inscape.wrap(lambda x: x, batch_size=0)
    with pytest.raises(ModelError, match="input_shape=4 is not a shape"):
        inscape.wrap(lambda x: x, input_shape=4)
    with pytest.raises(ModelError, match="is wrapped already"):
        inscape.wrap(inscape.wrap(lambda x: x), batch_size=3)
    with pytest.raises(ModelError, match="device='cpu' is for torch modules"):
        inscape.wrap(lambda x: x, device="cpu")


def test_a_model_that_writes_into_its_input_does_not_reach_the_callers_array():
    def f(x):
        x *= 0
        return x

    x = np.ones((4, 2))
    inscape.wrap(f).labels(x)
    assert (x == 1).all()
    x.flags.writeable = False
    assert inscape.wrap(f).labels(x[::-1]).tolist() == [0] * 4


def test_scores_of_labels_only():
    with pytest.raises(ModelError, match="no score per class"):
        inscape.wrap(lambda x: x[:, 0].astype(int)).scores([[1.0]])


def test_boolean_and_object_scores():
    assert inscape.wrap(lambda x: x > 0).labels([[1.0, -1.0]]).tolist() == [0]
    assert inscape.wrap(lambda x: x.astype(object)).labels([[1.0, 2.0]]).tolist() == [1]


def test_pairwise_scores_behind_a_search_are_no_scores_per_class(data):
    x, _ = data
    search = GridSearchCV(SVC(decision_function_shape="ovo"), {"C": [1.0]}, cv=2).fit(x, np.arange(80) % 4)
    m = inscape.wrap(search)
    with pytest.raises(ModelError, match="no score per class"):
        m.scores(x)
    p = inscape.decision_regions(search, inscape.Segment(x[0], x[1]))
    assert p.top is None


@pytest.mark.filterwarnings("ignore")
def test_labels_that_are_no_classes(data):
    x, y = data
    model = RadiusNeighborsClassifier(radius=0.01, outlier_label=99).fit(x, y)
    with pytest.raises(ModelError, match=r"predicted 99|predicted np.int64"):
        inscape.wrap(model).labels(x + 50)


def test_estimators_fitted_on_tables_are_given_tables(data):
    x, y = data
    frame = pd.DataFrame(x, columns=list("abcd"))
    pipeline = make_pipeline(
        ColumnTransformer([("some", StandardScaler(), ["a", "c"])]), LogisticRegression()
    )
    m = inscape.wrap(pipeline.fit(frame, y))
    assert (m.labels(frame) == pipeline.predict(frame)).all()
    assert inscape.region_count(m, frame, n_probes=5, resolution=9, random_state=0).n_evaluations == 45


def test_fingerprint_follows_the_model(data):
    x, y = data
    a, b = DecisionTreeClassifier(max_depth=2).fit(x, y), DecisionTreeClassifier(max_depth=3).fit(x, y)
    assert inscape.wrap(a).fingerprint() == inscape.wrap(a).fingerprint() != inscape.wrap(b).fingerprint()


def more_than(c):
    return lambda x: x > c


def test_fingerprints_of_functions_tell_constants_and_defaults_apart():
    functions = [lambda x: x > 1, lambda x: x > 2, lambda x, k=1: x > k, lambda x, k=2: x > k]
    functions += [more_than(c) for c in (1, 2)]
    assert len({inscape.wrap(f).fingerprint() for f in functions}) == 6


def test_a_model_that_ends_the_process_does_not_end_ours():
    def stop(x):
        raise SystemExit(3)

    class Stop(torch.nn.Module):
        def forward(self, x):
            raise SystemExit(3)

    for model in (stop, Stop()):
        with pytest.raises(ModelError, match=r"failed on a batch of shape .*: SystemExit: 3"):
            inscape.region_count(model, np.eye(4))


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (
            lambda x: [object() for _ in x],
            "labels of type object: expected integers, booleans or strings",
        ),
        (lambda x: [None for _ in x], "returned labels of type NoneType"),
        (lambda x: [[object(), object()] for _ in x], "returned scores of type object: expected numbers"),
        (lambda x: x + 1j, "returned scores of complex128: expected numbers"),
        (lambda x: np.full(len(x), np.datetime64("2020-01-01")), r"returned labels of datetime64\[D\]"),
        (lambda x: np.ma.masked_less(x[:, 0] > 0, 1), r"\d of the \d values of what .* returned are masked"),
    ],
)
def test_what_is_neither_labels_nor_scores_is_refused(out, message):
    with pytest.raises(ModelError, match=message):
        inscape.wrap(out).labels(np.eye(4))


def test_python_objects_that_are_labels_or_scores_are_read():
    x = np.array([[-1.0], [2.0]])
    assert inscape.wrap(lambda x: np.array(["a", "b"], dtype=object)).labels(x).tolist() == [0, 1]
    assert inscape.wrap(lambda x: np.array([3, 5], dtype=object)).labels(x).tolist() == [3, 5]
    assert inscape.wrap(lambda x: np.c_[x, -x].astype(object)).labels(x).tolist() == [1, 0]


def test_a_function_that_returns_a_dictionary():
    x = np.random.default_rng(0).normal(size=(5, 3))
    with pytest.raises(
        ModelError, match=r"returned a dict of a \(5, 3\) float64: choose one of them by output"
    ):
        inscape.wrap(lambda x: {"a": x}).labels(x)
    for model in (lambda x: {"logits": x}, lambda x: {"a": -x, "b": x}):
        wrapped = inscape.wrap(model, output=None if "logits" in model(x) else "b")
        assert (wrapped.labels(x) == x.argmax(axis=1)).all()


def test_every_number_in_the_closure_of_a_function_counts_in_its_fingerprint():
    """An array of many numbers is printed with dots in its middle, where another one may differ."""

    def model_with(weights):
        return inscape.wrap(lambda x: x @ weights)

    one = np.random.default_rng(0).normal(size=(100, 50))
    other = one.copy()
    other[50, 25] += 1e-9
    same, changed = model_with(one.copy()), model_with(other)
    assert model_with(one).fingerprint() == same.fingerprint() != changed.fingerprint()
