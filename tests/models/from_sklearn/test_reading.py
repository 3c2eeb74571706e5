"""Every estimator of the zoo against its own predictions, next to every boundary and between them."""

import numpy as np
import pytest
from estimators import CASES, THREE, X
from predictions import assert_along, assert_on_plane, assert_samples, own_labels
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import inscape
from inscape import Patch, Segment
from inscape.errors import PartitionError

SPAN = (-0.5, 1.5)
PAIRS = [*zip(*(np.flatnonzero(k == THREE)[:3] for k in (0, 1)), strict=True), (0, 1)]
NEAR = 1e-9
"""How far from a boundary rounding may reach."""


def cases(where, what):
    return [name for name, case in CASES.items() if getattr(case, where) == what]


def segments():
    return [Segment(X[i], X[j], span=SPAN) for i, j in PAIRS]


@pytest.mark.parametrize("name", cases("segments", "exact"))
def test_segments_are_exact(name):
    estimator = CASES[name].build()
    model = inscape.wrap(estimator)
    assert model.structure != "black-box"
    found = inscape.decision_regions(model, segments())
    for regions in found:
        assert regions.method == "exact"
        assert regions.is_exact
        assert_along(own_labels(estimator), regions, NEAR)
    if name != "DummyClassifier":
        assert max(regions.n_regions for regions in found) > 1


@pytest.mark.parametrize("name", cases("segments", "adaptive"))
def test_what_is_not_exact_says_why(name):
    estimator = CASES[name].build()
    model = inscape.wrap(estimator)
    assert model.structure == "black-box"
    with pytest.raises(PartitionError, match="cannot be counted exactly because"):
        inscape.decision_regions(model, segments(), method="exact")
    counted = inscape.decision_regions(model, segments()[0])
    assert counted.method == "adaptive"
    assert_samples(own_labels(estimator), counted)


@pytest.mark.parametrize("name", cases("planes", "exact"))
def test_planes_are_exact(name):
    estimator = CASES[name].build()
    regions = inscape.decision_regions(estimator, Patch.through(X[[0, 5, 17]]), method="exact")
    assert_on_plane(own_labels(estimator), regions, NEAR)


@pytest.mark.parametrize("name", [n for n in cases("segments", "exact") if n in cases("planes", "adaptive")])
def test_planes_of_what_is_exact_on_segments_only_are_refused(name):
    model = inscape.wrap(CASES[name].build())
    with pytest.raises(PartitionError, match="are computed on segments only"):
        inscape.decision_regions(model, Patch.through(X[[0, 5, 17]]), method="exact")


class OwnRidge(RidgeClassifier):
    """Predicts in a way of its own."""

    def predict(self, X):
        return super().predict(-X)


def test_a_subclass_is_not_read():
    model = inscape.wrap(OwnRidge().fit(X, THREE))
    assert model.structure == "black-box"
    with pytest.raises(PartitionError, match="because how OwnRidge predicts is not known"):
        model.graph((5,))


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_class_of_prior_zero_never_wins():
    model = inscape.wrap(GaussianNB(priors=[0.5, 0.0, 0.5]).fit(X, THREE))
    for regions in inscape.decision_regions(model, segments(), method="exact"):
        assert_along(model, regions, NEAR)
        assert 1 not in regions.labels


def test_behind_preprocess_a_graph_stays_exact_and_the_rest_says_why_not():
    linear, nearest = RidgeClassifier().fit(X / 10, THREE), KNeighborsClassifier(3).fit(X / 10, THREE)
    model = inscape.wrap(linear, preprocess={"scale": 0.1})
    for regions in inscape.decision_regions(model, segments(), method="exact"):
        assert_along(model, regions, NEAR)
    model = inscape.wrap(nearest, preprocess={"scale": 0.1})
    assert model.structure == "black-box"
    with pytest.raises(
        PartitionError, match=r"not computed behind preprocess: put a scaler into its pipeline"
    ):
        inscape.decision_regions(model, segments(), method="exact")
