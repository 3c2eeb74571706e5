"""Exact regions of estimators against closed forms, brute force, and a torch copy; ties and refits."""

from itertools import combinations

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.multiclass import OneVsOneClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

import inscape
from inscape import Patch, Segment
from inscape.errors import PartitionError

RNG = np.random.default_rng(3)


def exact(model, segment):
    return inscape.decision_regions(model, segment, method="exact")


def blobs(n, d, c):
    y = np.arange(n) % c
    return RNG.normal(size=(n, d)) + RNG.normal(size=(c, d))[y], y


@pytest.mark.parametrize("k", [1, 2, 5, 12])
@pytest.mark.parametrize("d", [1, 3])
def test_neighbours_change_at_bisectors_only(k, d):
    """Brute force: all places where two training points are equally far, and `predict` between them."""
    x, y = blobs(40, d, 4)
    estimator = KNeighborsClassifier(k).fit(x, y)
    segment = Segment(x[0], x[1], span=(-1.0, 2.0))
    a, v = segment.start, segment.end - segment.start
    places = [
        ((x[j] - a) @ (x[j] - a) - (x[i] - a) @ (x[i] - a)) / (2 * v @ (x[j] - x[i]))
        for i, j in combinations(range(len(x)), 2)
    ]
    edges = np.unique([-1.0, 2.0, *(t for t in places if -1 < t < 2)])
    labels = estimator.predict(segment.points((edges[1:] + edges[:-1]) / 2))
    changes = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    found = exact(estimator, segment)
    assert found.labels.tolist() == labels[[0, *changes]].tolist()
    assert np.allclose(found.boundaries, edges[changes], rtol=0, atol=1e-12)
    assert found.status == "complete"


def test_one_neighbour_of_integers_is_a_voronoi_diagram():
    estimator = KNeighborsClassifier(1).fit([[0.0], [2.0], [3.0], [7.0]], [0, 1, 0, 1])
    found = exact(estimator, Segment([0.0], [8.0]))
    assert found.boundaries.tolist() == [1 / 8, 2.5 / 8, 5 / 8]
    assert found.labels.tolist() == [0, 1, 0, 1]


def test_a_training_point_of_two_classes_is_decided_by_predict():
    estimator = KNeighborsClassifier(1).fit([[0.0], [0.0], [4.0]], [1, 0, 2])
    found = exact(estimator, Segment([-1.0], [4.0]))
    assert found.labels.tolist() == [estimator.predict([[0.5]])[0], 2]
    assert found.boundaries.tolist() == [0.6]
    assert "the top classes tie on 1 of 2 pieces" in found.status
    assert found.status.kind == "complete"


def test_gaussians_cross_where_their_densities_are_equal():
    """N(0, 1) and N(0, 4) with equal priors: equal at x^2 = (8/3) log 2."""
    x = np.array([[-1.0], [1.0], [-2.0], [2.0]])
    estimator = GaussianNB(var_smoothing=0).fit(x, [0, 0, 1, 1])
    found = exact(estimator, Segment([-4.0], [4.0]))
    at = np.sqrt(8 / 3 * np.log(2)) / 8
    assert np.allclose(found.boundaries, [0.5 - at, 0.5 + at], rtol=0, atol=1e-15)
    assert found.labels.tolist() == [1, 0, 1]


def test_parabolas_that_only_touch_do_not_change_places():
    x = np.array([[-1.0, 1.0], [1.0, -1.0], [-2.0, 1.0], [2.0, -1.0]])
    estimator = GaussianNB(var_smoothing=0).fit(x, [0, 0, 1, 1])
    height = np.sqrt(8 / 3 * np.log(2))
    touching = Segment([height, -3.0], [height, 3.0])  # on the boundary all along
    found = exact(estimator, touching)
    assert found.n_regions == 1
    assert "the top classes tie on" in found.status


def test_centroids_on_a_line_are_a_voronoi_diagram():
    x = np.array([0.0, 1.0, 3.0, 7.0])[:, None] + [-0.1, 0.1]
    estimator = NearestCentroid().fit(x.reshape(-1, 1), np.repeat(range(4), 2))
    found = exact(estimator, Segment([0.0], [8.0]))
    assert np.allclose(found.boundaries, [0.5 / 8, 2 / 8, 5 / 8], rtol=0, atol=1e-15)
    assert found.labels.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
def test_a_perceptron_is_its_torch_copy(n_classes):
    x, y = blobs(80, 4, n_classes)
    estimator = MLPClassifier((12, 9), solver="lbfgs", max_iter=30, random_state=0)
    estimator.fit(x, y)
    layers = []
    for weight, bias in zip(estimator.coefs_, estimator.intercepts_, strict=True):
        layer = torch.nn.Linear(*weight.shape).double()
        layer.weight.data, layer.bias.data = torch.from_numpy(weight.T.copy()), torch.from_numpy(bias.copy())
        layers += [layer, torch.nn.ReLU()]
    copy = torch.nn.Sequential(*layers[:-1])
    for segment in [Segment(x[0], x[1], span=(-2.0, 3.0)), Segment(x[2], x[3])]:
        ours, theirs = (inscape.linear_regions(m, segment) for m in (estimator, copy))
        assert np.allclose(ours.knots, theirs.knots, rtol=0, atol=1e-12)
        assert ours.n_linear == theirs.n_linear
        ours, theirs = (exact(m, segment) for m in (estimator, copy))
        assert ours.labels.tolist() == theirs.labels.tolist()
        assert np.allclose(ours.boundaries, theirs.boundaries, rtol=0, atol=1e-12)
    patch = Patch.through(x[:3])
    ours, theirs = (inscape.linear_regions(m, patch) for m in (estimator, copy))
    assert (ours.n_regions, ours.n_vertices) == (theirs.n_regions, theirs.n_vertices)
    assert np.allclose(exact(estimator, patch).areas, exact(copy, patch).areas, rtol=1e-9)


def test_pairs_that_vote_in_a_circle_are_decided_by_their_scores():
    """Where each of three classes has one vote, the sum of its scores decides, and changes inside."""
    angle = 2 * np.pi * np.arange(3) / 3
    corners = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    x = np.concatenate([corners + s for s in RNG.normal(scale=0.8, size=(20, 2))])
    y = np.tile([0, 1, 2], 20)
    estimator = OneVsOneClassifier(LogisticRegression(C=0.1)).fit(x, y)
    for member, turn in zip(estimator.estimators_, [1, -1, 1], strict=True):
        member.coef_, member.intercept_ = member.coef_, member.intercept_ + 0.4 * turn  # a circle of votes
    grid = np.stack(np.meshgrid(*[np.linspace(-2, 2, 101)] * 2), axis=-1).reshape(-1, 2)
    votes = estimator.decision_function(grid)
    assert (np.ptp(np.rint(votes), axis=1) == 0).any()
    model = inscape.wrap(estimator)
    for angle in np.linspace(0, np.pi, 7):
        along = 2 * np.array([np.cos(angle), np.sin(angle)])
        found = exact(model, Segment(-along, along))
        t = np.linspace(0, 1, 3001)
        far = np.abs(t[:, None] - found.boundaries).min(axis=1) > 1e-9
        labels = found.labels[np.searchsorted(found.boundaries, t[far])]
        assert np.array_equal(labels, estimator.predict(found.probe.points(t[far])))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (RidgeClassifier(), None),
        (GaussianNB(), None),
        (KNeighborsClassifier(3), None),
        (SVC(kernel="linear"), None),
        (make_pipeline(StandardScaler(), GaussianNB()), None),
        (VotingClassifier([("a", RidgeClassifier()), ("b", GaussianNB())]), None),
        (SGDClassifier(random_state=0), "partial_fit"),
        (GaussianNB(), "partial_fit"),
    ],
    ids=lambda e: type(e).__name__ if not isinstance(e, str) else e,
)
def test_another_fit_is_noticed(first, second):
    x, y = blobs(60, 3, 3)
    model = inscape.wrap(first.fit(x, y))
    segment = Segment(x[0], x[1], span=(-1.0, 2.0))
    before = exact(model, segment)
    getattr(first, second or "fit")(x + 1.0 * y[:, None] ** 2, y)
    after, fresh = exact(model, segment), exact(inscape.wrap(first), segment)
    assert after.boundaries.tolist() == fresh.boundaries.tolist()
    assert after.boundaries.tolist() != before.boundaries.tolist()


def test_weights_that_are_changed_in_place_are_noticed():
    x, y = blobs(60, 3, 2)
    estimator = RidgeClassifier().fit(x, y)
    model, segment = inscape.wrap(estimator), Segment(x[0], x[1], span=(-3.0, 4.0))
    assert exact(model, segment).n_regions == 2
    estimator.intercept_[:] += 100.0
    assert exact(model, segment).n_regions == 1


def test_an_estimator_that_predicts_otherwise_is_caught():
    x, y = blobs(60, 3, 3)
    for estimator in (GaussianNB().fit(x, y), NearestCentroid().fit(x, y)):
        true = estimator.predict
        estimator.predict = lambda points, true=true: (true(points) + 1) % 3
        with pytest.raises(PartitionError, match="is not what was re"):
            exact(inscape.wrap(estimator), Segment(x[0], x[1]))


def test_planes_of_what_is_exact_on_segments_only():
    x, y = blobs(60, 3, 3)
    model = inscape.wrap(KNeighborsClassifier(3).fit(x, y))
    with pytest.raises(
        PartitionError, match=r"KNeighborsClassifier \(nearest neighbours\) are computed on segments only"
    ):
        exact(model, Patch.through(x[:3]))
    assert inscape.decision_regions(model, Patch.through(x[:3])).method == "adaptive"
    with pytest.raises(PartitionError, match=r"decided by the nearest training points.*has no linear pieces"):
        inscape.linear_regions(model, Segment(x[0], x[1]))


def test_images_and_a_shape_of_ones_own():
    x, y = blobs(60, 4, 3)
    for estimator in (
        RidgeClassifier(),
        KNeighborsClassifier(3),
        make_pipeline(MinMaxScaler(), GaussianNB()),
    ):
        flat, square = Segment(x[0], x[1]), Segment(x[0].reshape(2, 2), x[1].reshape(2, 2))
        expected = exact(estimator.fit(x, y), flat).boundaries
        assert np.array_equal(exact(estimator, square).boundaries, expected)
        shaped = inscape.wrap(estimator, input_shape=(2, 2))
        assert np.array_equal(exact(shaped, square).boundaries, expected)


def test_rank_counts_each_by_its_best_method():
    x, y = blobs(60, 3, 3)
    models = {
        "linear": LogisticRegression().fit(x, y),
        "forest": RandomForestClassifier(5, random_state=0).fit(x, y),
        "nearest": KNeighborsClassifier(3).fit(x, y),
        "smooth": SVC().fit(x, y),
    }
    found = inscape.rank(models, x, n_probes=10, random_state=0)
    methods = {row["model"]: row["method"] for _, row in found.to_frame().iterrows()}
    assert methods == {"linear": "exact", "forest": "exact", "nearest": "exact", "smooth": "adaptive"}
