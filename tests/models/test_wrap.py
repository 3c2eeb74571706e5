import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
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
        with pytest.raises(ModelError, match="no scores"):
            m.scores(x)


@pytest.mark.parametrize("make", [LogisticRegression, DecisionTreeClassifier, SVC])
def test_sklearn_string_classes(make, data):
    x, y = data
    names = np.array(["cat", "ant", "bee"])[y]
    m = inscape.wrap(make().fit(x, names))
    assert m.classes == ("ant", "bee", "cat")
    assert (np.array(m.classes)[m.labels(x)] == m.estimator.predict(x)).all()


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
    with pytest.raises(ModelError, match="regressors have no regions"):
        inscape.wrap(DecisionTreeRegressor().fit(x, y))
    with pytest.raises(ModelError, match="several outputs"):
        inscape.wrap(MultiOutputClassifier(DecisionTreeClassifier()).fit(x, np.stack([y, y], axis=1)))


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
    assert sum(sizes) == 10


def test_input_shape_reshapes_points():
    shapes = []

    def f(x):
        shapes.append(x.shape)
        return np.zeros(len(x), dtype=int)

    inscape.wrap(f, input_shape=(2, 3)).labels(np.zeros((4, 6)))
    assert shapes == [(4, 2, 3)]


def test_automatic_batches_shrink_with_the_points():
    m = inscape.wrap(lambda x: x)
    assert m.batch_length(10) > m.batch_length(10**5) >= 8


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.zeros(len(x) + 1, dtype=int), r"returned shape \(6,\) for 5 points"),
        (lambda x: np.zeros((len(x) - 1, 3)), r"returned shape \(4, 3\) for 5 points"),
        (lambda x: 0, r"returned shape \(\) for 5 points"),
        (lambda x: x[:, 0] + 0.5, "neither labels nor scores"),
        (lambda x: np.zeros((len(x), 2, 2)), r"scores of shape \(5, 2, 2\)"),
        (lambda x: np.full((len(x), 2), np.nan), "NaN or infinite scores for 5 of 5 points, first at row 0"),
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


def test_fingerprint_follows_the_model(data):
    x, y = data
    a, b = DecisionTreeClassifier(max_depth=2).fit(x, y), DecisionTreeClassifier(max_depth=3).fit(x, y)
    assert inscape.wrap(a).fingerprint() == inscape.wrap(a).fingerprint() != inscape.wrap(b).fingerprint()
