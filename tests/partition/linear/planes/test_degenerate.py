"""Networks that are not in general position: the count is right, or there is a clear error."""

import copy
import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import mlp
from plane_faces import check_faces, check_structure
from relu_networks import network, square
from torch import nn

from inscape import Patch, Segment, Simplex, decision_regions, linear_regions, wrap

SEEDS = st.integers(0, 10**6)


def layers_of(net):
    return [
        (m.weight.detach().numpy().copy(), m.bias.detach().numpy().copy())
        for m in net
        if hasattr(m, "weight")
    ]


def random_layers(rng, *sizes, integer=False):
    draw = (
        (lambda *shape: rng.integers(-2, 3, size=shape))
        if integer
        else (lambda *shape: rng.normal(size=shape))
    )
    return [(draw(b, a), draw(b)) for a, b in itertools.pairwise(sizes)]


def with_copy(layers, k, factor):
    """The network with one more unit in hidden layer k, `factor` times its first; it is not read."""
    layers = [(w.copy(), b.copy()) for w, b in layers]
    (w, b), (v, c) = layers[k], layers[k + 1]
    layers[k] = np.concatenate([w, factor * w[:1]]), np.concatenate([b, factor * b[:1]])
    layers[k + 1] = np.concatenate([v, np.zeros((len(v), 1))], axis=1), c
    return layers


@pytest.mark.parametrize("factor", [1.0, -1.0, 3.0, -1e-3, 1 / 3])
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_a_copied_negated_or_scaled_unit_changes_nothing(layer, factor):
    layers = random_layers(np.random.default_rng(5), 2, 12, 12, 12, 1)
    plain = linear_regions(network(*layers), square())
    net = network(*with_copy(layers, layer, factor))
    q = linear_regions(net, square())
    assert (q.n_regions, q.n_vertices, q.n_edges) == (plain.n_regions, plain.n_vertices, plain.n_edges)
    check_structure(q)
    check_faces(net, square(), q)


def test_a_layer_of_nothing_but_copies():
    rng = np.random.default_rng(0)
    layers = random_layers(rng, 2, 8, 6, 1)
    twice = [(np.repeat(w, 2, axis=0), np.repeat(b, 2)) for w, b in layers[:-1]]
    twice[1] = np.repeat(twice[1][0], 2, axis=1) / 2, twice[1][1]
    last = np.repeat(layers[-1][0], 2, axis=1) / 2, layers[-1][1]
    q, plain = linear_regions(network(*twice, last), square()), linear_regions(network(*layers), square())
    assert (q.n_regions, q.n_vertices) == (plain.n_regions, plain.n_vertices)


@pytest.mark.slow
@settings(max_examples=30)
@given(seed=SEEDS, sizes=st.sampled_from([(2, 6, 1), (2, 5, 5, 1), (2, 8, 8, 8, 2)]))
def test_integer_weights(seed, sizes):
    """Lines that meet in lattice points, units that vanish on whole faces, copies, parallels: all at once."""
    net = network(*random_layers(np.random.default_rng(seed), *sizes, integer=True))
    q = linear_regions(net, square())
    check_structure(q)
    check_faces(net, square(), q)
    seen = {row.tobytes() for row in distinct_patterns(net, 201).astype(np.uint8)}
    stored = {row.tobytes() for row in q.patterns}
    assert seen <= stored
    assert len(stored - seen) <= 0.1 * len(stored)  # a grid misses the smallest faces


@pytest.mark.parametrize("seed", range(4))
def test_a_budget_holds_where_lines_meet(seed):
    (weight, bias), *rest = random_layers(np.random.default_rng(seed), 2, 12, 12, 1, integer=True)
    net = network((weight, bias / 2 + 0.25), *rest)
    whole = linear_regions(net, square())
    for most in (1, whole.n_regions // 2, whole.n_regions - 1):
        q = linear_regions(net, square(), max_regions=most)
        assert q.n_regions <= most
        assert q.status == "budget reached"
    assert linear_regions(net, square(), max_regions=whole.n_regions).status == "complete"


@pytest.mark.parametrize("gap", [1e-3, 1e-8, 1e-9, 1e-10, 1e-11, 0.0])
@pytest.mark.parametrize("n", [1, 20])
def test_lines_that_nearly_meet(gap, n):
    """n parallels across a cross of two lines, all within `gap` of the point where these meet."""
    weight = np.concatenate([np.eye(2), np.ones((n, 2))])
    bias = np.concatenate([[0.1, -0.2], 0.1 - 0.2 - gap * np.arange(1, n + 1) / n])
    q = linear_regions(network((weight, bias), (np.ones((1, n + 2)), np.zeros(1))), square())
    check_structure(q)
    assert q.n_regions == (4 + 3 * n if gap else 6)


def distinct_patterns(net, n):
    """The patterns on a fine grid that avoids the lattice lines."""
    t = (np.arange(n) + 0.5) / n * 2 - 1 + 1e-4 * math.sqrt(2)
    x = torch.from_numpy(np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2))
    found = []
    for module in net:
        if isinstance(module, nn.ReLU):
            found.append(x > 1e-12)  # a unit that vanishes on a whole face is rounding there
        x = module(x)
    return np.unique(torch.cat(found, dim=1).numpy(), axis=0)


@pytest.mark.parametrize("power", [2, 4, 6, 8, 10, 12])
def test_biases_scaled_down(power):
    """With biases c b the network at c x has the patterns that the network with biases b has at x."""
    net = mlp(2, 12, 12, 12, 3, seed=3).float()
    scaled = copy.deepcopy(net)
    with torch.no_grad():
        for module in scaled:
            if hasattr(module, "bias"):
                module.bias *= 2.0 ** -round(power * math.log2(10))
    factor = 2.0 ** round(power * math.log2(10))
    q = linear_regions(scaled, square())
    wide = linear_regions(net, square(factor))
    assert (q.n_regions, q.n_vertices, q.n_edges) == (wide.n_regions, wide.n_vertices, wide.n_edges)
    check_structure(q)
    assert len(np.unique(q.patterns, axis=0)) == q.n_regions


def test_trained_float32_weights():
    x = np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32)
    y = (np.linalg.norm(x, axis=1) > 1).astype(int) + (x[:, 0] > 0.5)
    net = mlp(2, 24, 24, 3, seed=0)
    optimiser = torch.optim.Adam(net.parameters(), 0.02)
    for _ in range(150):
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(torch.from_numpy(x)), torch.from_numpy(y)).backward()
        optimiser.step()
    q = linear_regions(net, square(3.0))
    assert q.n_regions > 50
    check_structure(q)
    check_faces(net, square(3.0), q)


def test_units_that_vanish_on_a_whole_face():
    """Where both units of the first layer are off, the second layer is 0 everywhere, its kink."""
    net = network((np.eye(2), [0.0, 0.0]), ([[1.0, 1.0], [1.0, -1.0]], [0.0, 0.0]), ([[1.0, 1.0]], [0.0]))
    q = linear_regions(net, square())
    assert q.n_regions == 5  # four quadrants, one of them cut along its diagonal
    check_structure(q)
    off = q.locate([[-0.5, -0.5]])[0]
    assert not q.patterns[off].any()


@pytest.mark.parametrize(
    "unit", [([1.0, 0.0], -1.0), ([1.0, 1.0], -2.0), ([0.0, 1.0], 1.0), ([1.0, -1.0], 0.0)]
)
def test_a_line_along_the_border_or_through_corners(unit):
    weight, bias = unit
    q = linear_regions(network(([weight], [bias]), ([[1.0]], [0.0])), square())
    assert q.n_regions == (2 if bias == 0.0 else 1)
    check_structure(q)


def test_the_input_0_at_a_corner_and_on_a_side():
    rng = np.random.default_rng(1)
    net = network(
        (rng.normal(size=(9, 2)), np.zeros(9)), (rng.normal(size=(7, 9)), np.zeros(7)), (np.ones((1, 7)), [0])
    )
    for bounds in [((0, 1), (0, 1)), ((-1, 1), (0, 1))]:
        q = linear_regions(net, Patch([0, 0], np.eye(2), bounds))
        check_structure(q)
        (s0, s1), (_t0, t1) = bounds
        path = [(s1, 0), (s1, t1), (s0, t1), (s0, 0)]
        loop = linear_regions(net, [Segment(a, b) for a, b in itertools.pairwise(path)])
        assert q.n_regions == 1 + sum(p.n_regions - 1 for p in loop)


def test_the_plane_of_a_network_without_biases_may_lie_anywhere():
    """Shifting origin and bounds of a patch together changes nothing; nor does another basis of the plane."""
    rng = np.random.default_rng(2)
    net = network(
        (rng.normal(size=(8, 5)), np.zeros(8)), (rng.normal(size=(8, 8)), np.zeros(8)), (np.ones((1, 8)), [0])
    )
    axes = rng.normal(size=(2, 5))
    one = linear_regions(net, Patch(np.zeros(5), axes))
    two = linear_regions(net, Patch(0.5 * axes[0] - 0.25 * axes[1], axes, ((-1.5, 0.5), (-0.75, 1.25))))
    turned = linear_regions(
        net,
        Patch(
            np.zeros(5), [axes[0] + axes[1], axes[0] - axes[1]], corners=[[1, 0], [0, 1], [-1, 0], [0, -1]]
        ),
    )
    assert one.n_regions == two.n_regions == turned.n_regions


@settings(max_examples=10)
@given(seed=SEEDS)
def test_order_and_positive_scale_of_units_change_nothing(seed):
    rng = np.random.default_rng(seed)
    layers = random_layers(rng, 2, 10, 10, 2)
    (w, b), (v, c), last = layers
    order, scale = rng.permutation(10), rng.uniform(0.1, 10, 10)
    other = [((w * scale[:, None])[order], (b * scale)[order]), ((v / scale)[:, order], c), last]
    one, two = (linear_regions(network(*n), square()) for n in (layers, other))
    assert (one.n_regions, one.n_vertices) == (two.n_regions, two.n_vertices)


def identity(n):
    return np.eye(n), np.zeros(n)


def test_a_triangle_with_corners_on_the_kinks_of_a_network_without_biases():
    q = linear_regions(network(identity(2), identity(2)), Simplex([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]))
    assert (q.n_regions, q.n_vertices, q.n_edges) == (4, 6, 9)


@settings(max_examples=10)
@given(seed=SEEDS)
def test_a_unit_that_vanishes_on_the_whole_plane(seed):
    """x_1 + x_2 + x_3 = 0 on the plane, up to rounding, which later layers must not take for signs."""
    vertices = np.random.default_rng(seed).normal(size=(3, 3))
    vertices -= vertices.mean(axis=1, keepdims=True)
    net = network((np.ones((1, 3)), [0.0]), ([[1.0], [-2.0]], [0.0, 0.0]), (np.ones((2, 2)), [0.0, 0.0]))
    assert linear_regions(net, Simplex(vertices)).n_regions == 1


def test_rounding_that_a_relu_lets_through_decides_nothing():
    """The label of argmax relu(x): regions of the wrong class came from scores of 1e-17."""
    vertices = [
        [-1.161873305834576, 0.2720321372020745, -0.7669395878687968],
        [0.40266973278163704, -0.32551817297182867, 0.39746259072463846],
        [-1.7431951941054324, -0.43846687509929955, -0.1485960064725456],
    ]
    net = network(identity(3), identity(3))
    p = decision_regions(net, Simplex(vertices), method="exact")
    weights = np.random.default_rng(0).dirichlet([1, 1, 1], size=4000)
    labels = wrap(net).labels(weights @ np.array(vertices))
    for label in range(3):
        share = p.areas[p.labels == label].sum() / p.areas.sum()
        assert abs(share - (labels == label).mean()) < 0.03


def test_coordinates_far_from_0():
    net = network(identity(2), identity(2))
    far = Patch([-1e8, -1e8], np.eye(2), bounds=((1e8 - 1, 1e8 + 1),) * 2)
    assert linear_regions(net, far).n_regions == 4


def test_an_output_that_bends():
    net = nn.Sequential(*list(network(identity(2), identity(2)))[:2])
    assert decision_regions(net, square(), method="exact").n_regions == 2
