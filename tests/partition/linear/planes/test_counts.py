"""Counts on a plane that are known in closed form, or that several tools agree on."""

import itertools
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from relu_networks import network, square
from torch import nn

from inscape import Patch, Segment, Simplex, linear_regions

DATA = Path(__file__).parents[3] / "data"
BENCH = Path(os.environ["INSCAPE_BENCH"]) if "INSCAPE_BENCH" in os.environ else None

GOLDEN = {  # faces, vertices, edges
    "mlp_2_32x2_1": (1264, 1326, 2589),
    "mlp_2_64x3_1": (13164, 13344, 26507),
    "mlp_2_128x3_10": (40733, 41068, 81800),
    "mlp_784_200x4_10": (7020, 7235, 14254),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_counts_that_other_tools_agree_on(name):
    folder = DATA if (DATA / f"{name}.npz").exists() else BENCH
    if folder is None:
        pytest.skip("the larger networks are not shipped: INSCAPE_BENCH names their folder")
    arrays = np.load(folder / f"{name}.npz")
    net = network(*((arrays[f"W{i}"], arrays[f"b{i}"]) for i in range(len(arrays) // 2)))
    probe = Simplex(np.load(folder / "geom_784.npz")["points"]) if "784" in name else square()
    q = linear_regions(net, probe)
    assert (q.n_regions, q.n_vertices, q.n_edges) == GOLDEN[name]
    assert q.status == "complete"
    assert q.is_exact
    if BENCH is not None:
        known = json.loads((BENCH / "golden.json").read_text())
        assert any(GOLDEN[name][0] in _numbers(value) for value in known.values())


def _numbers(value):
    if isinstance(value, dict):
        return [n for v in value.values() for n in _numbers(v)]
    return [n for v in value for n in _numbers(v)] if isinstance(value, list) else [value]


def lines_through(angles, distances):
    """One hidden layer whose units vanish on lines with these normals at these distances from the origin."""
    normals = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return network((normals, -np.asarray(distances)), (np.ones((1, len(normals))), [0.0]))


@pytest.mark.slow
@settings(max_examples=25)
@given(h=st.integers(1, 24), seed=st.integers(0, 10**6))
def test_lines_in_general_position(h, seed):
    rng = np.random.default_rng(seed)
    angles = math.pi * (np.arange(h) + rng.uniform(0.2, 0.8, h)) / h
    net = lines_through(angles, rng.uniform(-0.1, 0.1, h))
    far = 50.0 * h  # all crossings are inside: neighbouring lines differ by at least 0.4 pi / h in direction
    q = linear_regions(net, square(far))
    assert q.n_regions == 1 + h + math.comb(h, 2)
    assert q.n_vertices == math.comb(h, 2) + 2 * h + 4
    assert q.n_vertices - q.n_edges + q.n_regions == 1


@pytest.mark.parametrize("h", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("centre", [(0.0, 0.0), (0.25, -0.5), (1 / 3, 0.1)])
def test_lines_through_one_point(h, centre):
    angles = 0.1 + math.pi * np.arange(h) / h
    distances = np.cos(angles) * centre[0] + np.sin(angles) * centre[1]
    q = linear_regions(lines_through(angles, distances), square())
    assert q.n_regions == 2 * h
    assert q.n_vertices == 1 * (h > 1) + 2 * h + 4


@pytest.mark.parametrize("k", [1, 2, 4])
def test_tents(k):
    """A tent map of each coordinate, k times: knots on the border, crossings in lattice points."""
    tent = np.array([[2.0, 0.0], [4.0, 0.0], [0.0, 2.0], [0.0, 4.0]]), [0.0, -2.0, 0.0, -2.0]
    join = np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0]])
    layers = [tent, *[(tent[0] @ join, tent[1])] * (k - 1), (join, [0.0, 0.0])]
    q = linear_regions(network(*layers), Patch([0, 0], np.eye(2), ((0, 1), (0, 1))))
    assert q.n_regions == q.n_linear == 4**k
    assert q.n_vertices == (2**k + 1) ** 2
    assert np.allclose(q.areas, 0.25**k)


@pytest.mark.parametrize(("k", "m"), [(0, 3), (1, 1), (4, 7)])
def test_a_lattice_of_parallel_lines(k, m):
    at = np.concatenate([np.linspace(-0.9, 0.8, k), np.linspace(-0.7, 0.9, m)])
    weights = np.concatenate([np.tile([1.0, 0.0], (k, 1)), np.tile([0.0, -3.0], (m, 1))])
    scale = np.concatenate([np.ones(k), -3.0 * np.ones(m)])
    q = linear_regions(network((weights, -at * scale), (np.ones((1, k + m)), [0.0])), square())
    assert q.n_regions == (k + 1) * (m + 1)


def test_an_input_that_never_crosses_a_kink():
    q = linear_regions(network((np.eye(2), [5.0, -5.0]), (np.ones((1, 2)), [0.0])), square())
    assert (q.n_regions, q.n_vertices, q.n_edges) == (1, 4, 4)
    assert np.allclose(q.polygons[0], [[-1, -1], [1, -1], [1, 1], [-1, 1]])


def test_a_linear_model_has_one_region():
    q = linear_regions(nn.Linear(3, 2).double(), Simplex(np.eye(3)))
    assert (q.n_regions, q.n_linear, q.n_layers) == (1, 1, 0)
    assert q.areas.sum() == pytest.approx(math.sqrt(3) / 2)


@pytest.mark.parametrize("depth", [1, 2, 4])
@settings(max_examples=6)
@given(seed=st.integers(0, 10**6))
def test_a_network_without_biases_has_cones_only(depth, seed):
    """Each face is a cone: there are as many as breaks along a closed loop around the origin."""
    rng = np.random.default_rng(seed)
    sizes = [2, *[9] * depth, 1]
    layers = [(rng.normal(size=(b, a)), np.zeros(b)) for a, b in itertools.pairwise(sizes)]
    net = network(*layers)
    corners = [[-1.0, -0.7], [0.8, -1.0], [1.0, 1.1], [-0.9, 1.0]]
    q = linear_regions(net, Patch([0, 0], np.eye(2), corners=corners))
    around = zip(corners, [*corners[1:], corners[0]], strict=True)
    loop = linear_regions(net, [Segment(a, b) for a, b in around])
    assert q.n_regions == sum(p.n_regions - 1 for p in loop)


def test_polygons_with_more_corners_and_triangles():
    angles = 2 * math.pi * np.arange(7) / 7
    heptagon = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    net = lines_through([0.3, 1.2, 2.0], [0.1, -0.05, 0.02])
    q = linear_regions(net, Patch([0, 0], np.eye(2), corners=heptagon))
    assert q.n_regions == 7
    assert q.areas.sum() == pytest.approx(7 / 2 * math.sin(2 * math.pi / 7), rel=1e-12)
