"""What is done for large subdivisions only gives on small ones what the plain ways give."""

import gc
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import mlp
from plane_faces import check_faces, check_structure
from relu_networks import network, square
from torch import nn

import inscape
from inscape import Patch, decision_regions, linear_regions
from inscape.models.graph.piecewise import Leaky
from inscape.partition.linear.planes import plan
from inscape.partition.linear.planes.complex.renumber import near_order
from inscape.partition.linear.planes.layer import buffers, cut, edge_crossings, sign_vectors
from inscape.partition.linear.planes.values import linear_map, values

WAYS = {
    "numbers": [(cut, "RENUMBER_FROM_FACES", 1), (cut, "RENUMBER_FROM_GROWTH", 1)],
    "units left out": [
        (linear_map, "SKIP_DEAD_UNITS_FROM_VECTORS", 0),
        (linear_map, "_BLOCK_WITHOUT_DEAD_UNITS", 150),
        (linear_map, "_NUMBERS_IN_BLOCK", 1),
    ],
    "memory": [(linear_map, "SCRATCH_FROM_NUMBERS", 0), (plan, "_MEMORY_AHEAD", 50)],
    "blocks": [(buffers, "HUGE_PAGES_FROM_BYTES", 0)],
    "vectors not stored": [
        (linear_map, "LAZY_VALUES_FROM_NUMBERS", 0),
        (linear_map, "LAZY_VALUES_UP_TO_BREAKPOINTS", 10**9),
    ],
}
EVERY = [change for way in WAYS.values() for change in way]


def as_if_large(changes, function, *args, **options):
    """What a function finds in the ways for large subdivisions."""
    with pytest.MonkeyPatch.context() as patch:
        for place, name, value in changes:
            patch.setattr(place, name, value)
        return function(*args, **options)


def assert_same(q, plain):
    assert (q.n_regions, q.n_vertices, q.n_edges) == (plain.n_regions, plain.n_vertices, plain.n_edges)
    ours, theirs = (np.argsort(p.pattern_hashes) for p in (q, plain))
    assert np.array_equal(q.patterns[ours], plain.patterns[theirs])
    assert np.allclose(q.areas[ours], plain.areas[theirs], rtol=0, atol=1e-12)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(3))
def test_each_way(way, seed):
    net = mlp(2, 20, 20, 20, 3, seed=seed)
    assert_same(as_if_large(WAYS[way], linear_regions, net, square()), linear_regions(net, square()))


@pytest.mark.slow
@pytest.mark.parametrize("width", [63, 64, 65, 130])
def test_all_ways_with_whole_and_broken_words(width):
    net = mlp(2, width, 20, width, 3)
    q = as_if_large(EVERY, linear_regions, net, square())
    assert_same(q, linear_regions(net, square()))
    check_structure(q)
    check_faces(net, square(), q)


@pytest.mark.parametrize(
    "activation", [nn.LeakyReLU(0.3), nn.LeakyReLU(2.0), nn.ReLU6(), nn.Hardtanh(-0.4, 0.5)]
)
def test_all_ways_with_other_activations(activation):
    linear = [m for m in mlp(2, 16, 16, 16, 3) if isinstance(m, nn.Linear)]
    net = nn.Sequential(*itertools.chain(*((m, activation) for m in linear[:-1])), linear[-1]).double()
    q = as_if_large(EVERY, linear_regions, net, square(2.0))
    assert_same(q, linear_regions(net, square(2.0)))
    check_faces(net, square(2.0), q)


@pytest.mark.parametrize("layer", [2, 4])
def test_all_ways_with_a_unit_that_is_zero_everywhere(layer):
    net = mlp(2, 20, 20, 20, 3)
    with torch.no_grad():
        net[layer].weight[3], net[layer].bias[3] = 0.0, 0.0
    q = as_if_large([*EVERY, (sign_vectors, "_RECHECKED_AT_ONCE", 50)], linear_regions, net, square())
    assert_same(q, linear_regions(net, square()))


def test_all_ways_in_chunks():
    net = mlp(2, 40, 40, 40, 3)
    plain = linear_regions(net, square())
    q = as_if_large(EVERY, linear_regions, net, square(), memory=2**20)
    assert_same(q, plain)
    check_structure(q)


def test_memory_is_kept_for_the_next_walk_of_a_network(monkeypatch):
    monkeypatch.setattr(linear_map, "SCRATCH_FROM_NUMBERS", 0)
    model = inscape.wrap(mlp(2, 20, 20, 20, 3))
    q = linear_regions(model, square())
    arrays = [a.copy() for a in (q.vertices, q.edges, q.patterns, q.areas)]
    ((memory,),) = plan.KEPT.values()
    assert linear_regions(model, square(0.3)).n_regions > 1
    decision_regions(model, square(0.5), method="exact")
    ((same,),) = plan.KEPT.values()
    assert same.data_ptr() == memory.data_ptr()
    for a, b in zip((q.vertices, q.edges, q.patterns, q.areas), arrays, strict=True):
        assert np.array_equal(a, b)
    assert_same(linear_regions(model, square()), q)


def test_each_of_two_threads_finds_memory_of_the_last_walks(monkeypatch):
    monkeypatch.setattr(linear_map, "SCRATCH_FROM_NUMBERS", 0)
    model = inscape.wrap(mlp(2, 20, 20, 20, 3))
    linear_regions(model, square())
    ((graph, _),) = plan.KEPT.items()
    walks = [plan.Scratch(graph, 2**20) for _ in range(2)]
    for walk in walks:
        walk.vectors(50, 20)
        walk.keep()
    kept = {tensor.data_ptr() for tensor in plan.KEPT[graph]}
    assert len(kept) == 2
    again = {plan.Scratch(graph, 2**20).vectors(5, 20).data_ptr() for _ in range(2)}
    assert again == kept


def test_memory_is_not_kept_for_ever(monkeypatch):
    monkeypatch.setattr(linear_map, "SCRATCH_FROM_NUMBERS", 0)
    models = [inscape.wrap(mlp(2, 20, 20, 3, seed=s)) for s in range(2)]
    for model in models:
        linear_regions(model, square())
    assert len(plan.KEPT) == 1
    del model, models
    gc.collect()
    assert not plan.KEPT
    monkeypatch.setattr(plan, "KEPT_BYTES", 1000)
    linear_regions(mlp(2, 20, 20, 3), square())
    assert not plan.KEPT


def test_all_ways_give_the_same_decision_regions():
    net = mlp(2, 24, 24, 24, 4)
    ours = as_if_large(EVERY, decision_regions, net, square(), method="exact")
    plain = decision_regions(net, square(), method="exact")
    assert ours.n_regions == plain.n_regions
    assert np.allclose(np.sort(ours.areas), np.sort(plain.areas), rtol=0, atol=1e-12)


KINDS = [(True, 0.0), (True, 1.0), (False, 0.0), (False, 1e-9), (False, 1.0)]


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(KINDS))
def test_all_ways_where_lines_meet(seed, kind):
    """Small integer weights, biases of 0, a copied unit: ties all over, in every layer."""
    rng, (is_integer, biases) = np.random.default_rng(seed), kind
    sizes = list(itertools.pairwise((2, 6, 6, 6, 1)))
    draw = (lambda *n: rng.integers(-2, 3, size=n)) if is_integer else (lambda *n: rng.normal(size=n))
    layers = [(draw(b, a).astype(float), biases * draw(b)) for a, b in sizes]
    (weight, bias), (after, last) = layers[1], layers[2]
    layers[1] = np.concatenate([weight, weight[:1]]), np.concatenate([bias, bias[:1]])
    layers[2] = np.concatenate([after, after[:, :1]], axis=1), last
    net, probe = network(*layers), Patch([0.05, 0.02], np.eye(2), ((-1, 1), (-1, 1)))
    assert_same(as_if_large(EVERY, linear_regions, net, probe), linear_regions(net, probe))


def test_the_scale_of_a_layer_is_that_of_all_its_rows():
    """Not of the first block, which may lie where the layer vanishes."""
    z = np.zeros((5000, 200))
    z[300:, 0] = np.arange(4700)
    above, seen = np.full((5000, 4), ~np.uint64(0)), []
    above[:, 3] = 2**8 - 1  # 200 units in all
    product = linear_map.BentProduct(Leaky(), np.eye(200), None, 5000, False)
    y = torch.empty((5000, 200), dtype=torch.float64)
    assert product.leaves_out
    linear_map.multiply(product, z, above, None, y, lambda some: seen.append(some.max()))
    assert np.array_equal(y.numpy(), z)
    assert seen[0] > 0.9 * z.max()


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 400), st.integers(0, 20))
def test_near_order_is_an_order_with_small_steps(seed, n, n_first):
    points = np.random.default_rng(seed).random((n, 2))
    order = near_order(points, min(n, n_first), 8)
    assert np.array_equal(np.sort(order), np.arange(n))
    assert np.array_equal(order[: min(n, n_first)], np.arange(min(n, n_first)))
    if n >= 100 and n_first == 0:
        steps = np.linalg.norm(np.diff(points[order], axis=0), axis=1)
        assert steps.mean() < 0.6 * np.linalg.norm(np.diff(points, axis=0), axis=1).mean()


SHARED = [
    (cut, "SHARED_FROM_FACES", 1),
    (cut, "SHARED_FROM_ITEMS", 1),
    (edge_crossings, "SHARED_FROM_EDGES", 1),
    (values, "BREAKPOINTS_IN_STRETCH", 8),
]


@pytest.mark.parametrize("way", [[], WAYS["vectors not stored"], EVERY], ids=["plain", "not stored", "every"])
@pytest.mark.parametrize("stretches", [*([one] for one in SHARED), SHARED])
def test_stretches_that_threads_take_give_the_same_bits(stretches, way):
    net = mlp(2, 20, 20, 20, 3)
    plain = as_if_large(way, linear_regions, net, square(), n_jobs=1).subdivision.planar
    shared = as_if_large([*stretches, *way], linear_regions, net, square(), n_jobs=2).subdivision.planar
    for name in ("xy", "ends", "born", "start", "loop", "shared", "fixed"):
        assert getattr(plain, name).tobytes() == getattr(shared, name).tobytes()


def test_the_stretches_of_a_layer_take_together_the_memory_of_one(monkeypatch):
    def rooms(n_jobs):
        asked = []
        monkeypatch.setattr(cut, "cut_output", lambda sizes: asked.append(sizes) or buffers.cut_output(sizes))
        as_if_large(
            [(cut, "SHARED_FROM_FACES", 64), (cut, "INTERSECTIONS_AT_FIRST", 8)],
            linear_regions,
            mlp(2, 40, 40, 40, 3),
            square(),
            n_jobs=n_jobs,
        )
        return sum(sizes.vertices for sizes in asked)

    assert rooms(2) < 2 * rooms(1)
