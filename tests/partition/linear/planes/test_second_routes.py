"""The regions of a plane against other routes: forward passes, exact segments, dense sampling."""

import itertools

import numpy as np
import pytest
import torch
import zoo
from activity import TIE, activities
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import mlp
from plane_faces import check_faces, check_structure, inputs
from relu_networks import random_patch, square

from inscape import Segment, Simplex, linear_regions, wrap

SEEDS = st.integers(0, 10**6)
SIZES = {
    "mlp": 2.0,
    "cnn": 0.005,
    "vgg": 0.02,
    "resnet18": 0.04,
    "mobilenet_v2": 0.05,
    "shufflenet_v2": 0.04,
    "regnet": 0.04,
}


def patch_for(name, seed=0):
    return random_patch(zoo.shape_of(name), seed, SIZES.get(name, 0.1))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(zoo.MAKERS) & set(SIZES)))
def test_every_kind_of_network(name):
    net, probe = zoo.make(name), patch_for(name)
    q = linear_regions(net, probe)
    assert q.n_regions > 20
    check_structure(q)
    check_faces(net, probe, q, smallest=1e-7)


@settings(max_examples=8)
@given(seed=SEEDS)
def test_random_points_fall_in_the_face_with_their_pattern(seed):
    net, probe = mlp(3, 12, 12, 12, 4, seed=seed), random_patch((3,), seed, 2.0)
    q = linear_regions(net, probe)
    points = np.random.default_rng(seed).uniform(-1, 1, size=(500, 2))
    seen = activities(wrap(net).graph((3,)), inputs(probe, q, points)).numpy()
    assert (q.patterns[q.locate(points)] == seen).all()
    values = q.offsets + np.einsum("fcd,fd->fc", q.slopes, q.centroids)
    true = wrap(net.double()).scores(inputs(probe, q, q.centroids).numpy())
    assert np.allclose(values, true, atol=1e-9 * np.abs(true).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlp", "vgg", "resnet18"])
def test_a_segment_crosses_the_faces_that_the_segment_method_reports(name):
    net, probe = zoo.make(name), patch_for(name, seed=3)
    q = linear_regions(net, probe)
    ends = np.array([[[-0.9, -0.7], [0.8, 0.95]], [[-0.3, 0.9], [0.4, -0.99]]])
    for a, b in ends:
        start, end = inputs(probe, q, np.stack([a, b])).numpy()
        knots = np.concatenate([[0.0], linear_regions(net, Segment(start, end)).knots, [1.0]])
        middle = a + (knots[:-1] + knots[1:])[:, None] / 2 * (b - a)
        faces = q.locate(middle)
        assert (faces[1:] != faces[:-1]).all()
        assert len(set(faces.tolist())) == len(faces)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlp", "vgg"])
def test_dense_sampling_finds_no_other_pattern(name):
    net = zoo.make(name)
    probe = patch_for(name, seed=5)
    q = linear_regions(net, probe)
    t = np.linspace(-1, 1, 80) * (1 - 1e-9)
    points = np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2)
    seen = activities(wrap(net).graph(probe.input_shape), inputs(probe, q, points)).numpy()
    stored = activities(wrap(net).graph(probe.input_shape), inputs(probe, q, q.centroids)).numpy()
    same = (seen == stored[q.locate(points)]) | (seen == TIE)
    assert same.all(axis=1).mean() > 0.999  # a point within rounding of an edge may fall on its other side


def test_rotating_plane_and_network_together_changes_nothing():
    rng = np.random.default_rng(0)
    turn, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    net = mlp(4, 10, 10, 3, seed=1).double()
    vertices = rng.normal(size=(3, 4))
    one = linear_regions(net, Simplex(vertices))
    with torch.no_grad():
        net[0].weight.copy_(net[0].weight @ torch.from_numpy(turn.T))
    two = linear_regions(net, Simplex(vertices @ turn.T))
    assert one.n_regions == two.n_regions
    assert np.allclose(np.sort(one.areas), np.sort(two.areas), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", ["mlp", "vgg", "mobilenet_v2", "resnet18"])
def test_parts_fit_together(name):
    """Little memory takes the plane apart; the result is the same."""
    net, probe = zoo.make(name), patch_for(name, seed=2)
    whole = linear_regions(net, probe)
    width = max(int(np.prod(s)) for s in wrap(net).graph(probe.input_shape).shapes)
    q = linear_regions(net, probe, memory=8 * width * 400)
    assert (q.n_regions, q.n_vertices, q.n_edges) == (whole.n_regions, whole.n_vertices, whole.n_edges)
    check_structure(q)
    assert set(q.pattern_hashes.tolist()) == set(whole.pattern_hashes.tolist())
    assert np.allclose(np.sort(q.areas), np.sort(whole.areas), rtol=1e-6, atol=1e-13)


def test_layers_refine_one_another():
    net = mlp(2, 12, 12, 12, 3, seed=4)
    by_layer = [linear_regions(net, square(2.0), n_layers=k) for k in (1, 2, 3)]
    whole = linear_regions(net, square(2.0))
    assert by_layer[-1].n_regions == whole.n_regions
    for coarse, fine in itertools.pairwise(by_layer):
        parent = coarse.locate(fine.centroids)
        same = fine.patterns[:, : coarse.patterns.shape[1]] == coarse.patterns[parent]
        assert same.all()
        assert np.allclose(np.bincount(parent, fine.areas), coarse.areas)
    births = whole.birth_layers
    assert births.max() == 3
    assert np.bincount(by_layer[0].edge_layers)[1:].sum() > 0
    assert set(np.unique(whole.edge_layers)) == {0, 1, 2, 3}


def test_the_map_of_each_face_and_merging():
    """A unit that is not read makes faces of equal slope."""
    net = mlp(2, 6, 2, seed=0).double()
    with torch.no_grad():
        net[2].weight[:, 0] = 0
    q = linear_regions(net, square(3.0))
    with torch.no_grad():
        net[0].weight[0], net[0].bias[0] = 0.0, 1.0
    assert q.n_linear == linear_regions(net, square(3.0)).n_regions < q.n_regions
