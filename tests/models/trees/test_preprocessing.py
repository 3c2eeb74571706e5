"""Trees behind `preprocess`: numbers keep them exact."""

import numpy as np
import pytest
from estimators import THREE, X
from predictions import assert_along, assert_on_plane
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline

import inscape
from inscape import Patch, Segment

FOREST = RandomForestClassifier(5, max_depth=4, random_state=0)


@pytest.mark.parametrize(
    ("estimator", "numbers"),
    [
        (FOREST, {"mean": 1000.0, "std": 7.0}),
        (FOREST, {"scale": 1 / 255, "mean": [1.0, 2.0, 3.0, 4.0, 5.0], "std": [0.1, 0.2, 0.3, 0.4, 0.5]}),
        (FOREST, {"scale": -2.0, "mean": 0.5}),
        (make_pipeline(PCA(3, random_state=0), ExtraTreesClassifier(5, random_state=0)), {"scale": 1 / 255}),
    ],
)
def test_numbers_keep_trees_exact(estimator, numbers):
    factor, offset = (
        np.asarray(c) for c in inscape.models.preparation.as_normalisation(numbers).coefficients((5,), None)
    )
    estimator.fit(X, THREE)
    data = (X - offset) / factor
    model = inscape.wrap(estimator, preprocess=numbers)
    assert model.structure == "trees"
    for i in range(5):
        line = inscape.decision_regions(model, Segment(data[i], data[i + 9], span=(-0.5, 1.5)))
        assert line.method == "exact"
        assert_along(model, line, 1e-6)
    near = 1e-6 * np.abs(1 / factor).max()
    assert_on_plane(model, inscape.decision_regions(model, Patch.through(data[[0, 5, 17]])), near)


def test_normalised_cuts_round_as_the_normalisation_does():
    model = inscape.wrap(FOREST.fit(X, THREE), preprocess={"mean": 1000.0, "std": 7.0, "scale": 1 / 3})
    trees, rng, n = model.trees, np.random.default_rng(0), 5000
    inner = rng.choice(np.flatnonzero(trees.feature >= 0), n)
    points = (X[rng.integers(len(X), size=n)] * 7 + 1000) * 3
    points[np.arange(n), trees.feature[inner]] = np.where(
        rng.random(n) < 0.5, trees.last_left[inner], np.nextafter(trees.last_left[inner], np.inf)
    )
    found = trees.labels(points)
    assert np.array_equal(found[found >= 0], model.labels(points)[found >= 0])
    assert model.trees is trees
