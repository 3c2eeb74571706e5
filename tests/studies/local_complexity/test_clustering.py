"""How much weight vectors cluster, against sets whose clusters are known."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inscape.errors import MissingExtraError, StudyError
from inscape.studies.local_complexity import weight_clusters
from inscape.studies.local_complexity.weight_clusters import (
    chosen_projection,
    clustering,
    nearest_cosine,
    principal_components,
    project,
)


def clusters(spread, n=240, d=40, k=12, seed=0):
    rng = np.random.default_rng(seed)
    return np.repeat(rng.normal(size=(k, d)), n // k, axis=0) + spread * rng.normal(size=(n, d))


@pytest.mark.parametrize(("n", "d"), [(200, 10), (300, 100), (150, 300)])
def test_gaussian_vectors_do_not_cluster(n, d):
    rng = np.random.default_rng(d)
    assert abs(clustering(rng.normal(size=(n, d)))) < 0.04
    unequal = rng.normal(size=(n, d)) @ np.diag(np.geomspace(1, 0.05, d)) @ rng.normal(size=(d, d))
    assert abs(clustering(unequal)) < 0.12
    assert abs(clustering(unequal + 3 * unequal.std())) < 0.12  # nor with a common part


def test_clusters_do_and_the_more_the_tighter_they_are():
    found = [clustering(clusters(spread)) for spread in (1.0, 0.5, 0.2, 0.05)]
    assert found == sorted(found)
    assert found[1] > 0.1
    assert found[-1] > 0.9


def test_copies_have_the_number_one_and_so_have_scaled_ones():
    rng = np.random.default_rng(0)
    v = rng.normal(size=(50, 20))
    twice = np.concatenate([v, rng.uniform(0.5, 2, size=(50, 1)) * v])
    assert clustering(twice) == pytest.approx(1)
    assert nearest_cosine(twice) == pytest.approx(1)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_scale_and_rotation_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    v = clusters(0.5, n=48, d=8, k=6, seed=seed)
    q = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    base = clustering(v, n_nulls=40)
    assert clustering(3 * v, n_nulls=40) == pytest.approx(base)
    assert clustering(v @ q, n_nulls=40) == pytest.approx(
        base, abs=0.08
    )  # the axes of the null have other signs
    longer = rng.uniform(0.5, 2, size=(48, 1)) * v
    assert nearest_cosine(longer[rng.permutation(48)]) == pytest.approx(nearest_cosine(v))


def test_vanished_vectors_are_left_out():
    v = clusters(0.3)
    gone = 1e-5 * np.random.default_rng(1).normal(size=(100, v.shape[1]))
    assert clustering(np.concatenate([v, gone])) == clustering(v)


def test_too_few_vectors():
    with pytest.raises(StudyError, match="at least three vectors"):
        clustering(np.eye(2))
    with pytest.raises(StudyError, match="not short"):
        clustering(np.diag([1.0, 1.0, 1e-5, 1e-5]))


def test_principal_components_keep_distances_of_a_plane():
    rng = np.random.default_rng(0)
    plane = rng.normal(size=(30, 2)) @ np.linalg.qr(rng.normal(size=(9, 2)))[0].T
    shown = principal_components(plane, 2)
    assert np.allclose(
        np.linalg.norm(shown[:, None] - shown, axis=2), np.linalg.norm(plane[:, None] - plane, axis=2)
    )
    assert np.array_equal(shown, project(plane, "pca"))


def test_a_projection_is_chosen_by_what_is_installed(monkeypatch):
    monkeypatch.setattr(weight_clusters, "find_spec", lambda name: None)
    assert chosen_projection(None) == "pca"
    with pytest.raises(MissingExtraError, match=r"inscape\[umap\]"):
        chosen_projection("umap")
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(MissingExtraError, match=r"inscape\[umap\]"):
        project(np.eye(3), "umap")
    monkeypatch.setattr(weight_clusters, "find_spec", lambda name: object())
    assert chosen_projection(None) == chosen_projection("umap") == "umap"
    with pytest.raises(StudyError, match="unknown projection 'tsne'"):
        chosen_projection("tsne")


def test_umap_gets_the_vectors_and_a_seed(monkeypatch):
    class Fake:
        def __init__(self, **given):
            self.given = given

        def fit_transform(self, vectors):
            assert self.given["random_state"] == 3
            assert self.given["metric"] == "cosine"
            return vectors[:, :2]

    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=Fake))
    assert project(np.eye(3), "umap", random_state=3).tolist() == np.eye(3)[:, :2].tolist()
