"""Faces that are tied and crowded with lines are cut into tiles first; what is found is the same."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from networks import mlp
from plane_faces import check_faces, check_structure
from relu_networks import network, square

from inscape import Patch, Simplex, decision_regions, linear_regions
from inscape.partition.linear.planes import subdivision
from inscape.partition.linear.planes.layer import ties


def tangents(slopes, *others):
    """A hidden layer whose units are lines y = a x - a^2: those of a and b meet at (a + b, a b) alone."""
    lines = [(a, -1.0, -a * a) for a in slopes] + list(others)
    weights = np.array(lines)
    return network((weights[:, :2], weights[:, 2]), (np.ones((1, len(lines))), np.zeros(1)))


def in_tiles(function, *args, most=30, **options):
    """What is found with tiles for all faces with more than a few lines."""
    tilings, tiled = [], subdivision.tiled
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ties, "MOST_SIGNS", most)
        patch.setattr(subdivision, "LINES_OF_A_TILE", 5)
        patch.setattr(subdivision, "tiled", lambda *a: tilings.append(a) or tiled(*a))
        found = function(*args, **options)
    assert tilings
    return found


def assert_same(q, plain):
    assert (q.n_regions, q.n_vertices, q.n_edges) == (plain.n_regions, plain.n_vertices, plain.n_edges)
    ours, theirs = (np.argsort(p.pattern_hashes) for p in (q, plain))
    assert np.array_equal(q.patterns[ours], plain.patterns[theirs])
    np.testing.assert_allclose(q.areas[ours], plain.areas[theirs], rtol=0, atol=1e-12)


@pytest.mark.parametrize("h", [200, 800])
def test_as_many_regions_as_lines_in_general_position_have(h):
    slopes = np.random.default_rng(h).uniform(-1, 1, h)
    q = linear_regions(tangents(slopes), square(3.0))
    assert q.n_regions == 1 + h + math.comb(h, 2)
    assert q.n_vertices - q.n_edges + q.n_regions == 1


@pytest.mark.parametrize("n_through", [1, 5])
def test_many_lines_of_which_some_meet_in_one_point(n_through):
    slopes = np.unique(np.random.default_rng(1).integers(2**9, 2**10, 200)) / 2**10
    a, b = slopes[3], slopes[-7]
    through = [(k / 8, -1.0, a * b - (a + b) * k / 8) for k in range(n_through)]  # where two others meet
    q = linear_regions(tangents(slopes, *through), square(16.0))
    lines = [(Fraction(s), Fraction(-s * s)) for s in slopes] + [
        (Fraction(s), Fraction(c)) for s, _, c in through
    ]
    places = [(d - c) / (s - t) for (s, c), (t, d) in itertools.combinations(lines, 2)]
    meet = {(x, s * x + c) for x, ((s, c), _) in zip(places, itertools.combinations(lines, 2), strict=True)}
    assert all(max(abs(x), abs(y)) < 16 for x, y in meet)
    assert math.comb(len(lines), 2) - len(meet) >= math.comb(n_through + 2, 2) - 1
    assert q.n_vertices == 4 + 2 * len(lines) + len(meet)
    assert q.n_vertices - q.n_edges + q.n_regions == 1


def test_many_lines_of_which_some_are_the_same():
    slopes = np.random.default_rng(2).uniform(-1, 1, 250)
    h = len(slopes)
    q = linear_regions(tangents(np.concatenate([slopes, slopes[:4]])), square(3.0))
    assert q.n_regions == 1 + h + math.comb(h, 2)


def test_many_lines_near_one_point():
    slopes = np.random.default_rng(3).uniform(-1, 1, 300)
    middle = tangents(1e-3 * slopes)
    q = linear_regions(middle, square(3.0))
    assert q.n_regions == 1 + 300 + math.comb(300, 2)


def layers(rng, *sizes):
    """Weights with many ties."""
    return [
        (rng.integers(-2, 3, size=(b, a)), rng.integers(-2, 3, size=b)) for a, b in itertools.pairwise(sizes)
    ]


@pytest.mark.parametrize("seed", range(6))
def test_tiles_change_nothing(seed):
    net = network(*layers(np.random.default_rng(seed), 2, 24, 10, 3))
    probe = square(3.0) if seed % 2 else Simplex([[-3.0, -2.0], [3.1, -1.0], [0.3, 3.0]])
    q = in_tiles(linear_regions, net, probe)
    assert_same(q, linear_regions(net, probe))
    check_structure(q)
    check_faces(net, probe, q)


@pytest.mark.parametrize("seed", range(3))
def test_tiles_change_no_decision(seed):
    net = network(*layers(np.random.default_rng(seed), 2, 24, 10, 4))
    p, plain = in_tiles(decision_regions, net, square(3.0)), decision_regions(net, square(3.0))
    assert p.n_regions == plain.n_regions
    np.testing.assert_allclose(np.sort(p.areas), np.sort(plain.areas), atol=1e-12)


def test_tiles_around_an_input_of_zero():
    net = mlp(2, 24, 16, 3)
    for m in net:
        if hasattr(m, "bias"):
            m.bias.data *= 1e-9
    plain = linear_regions(net, square())
    q = in_tiles(linear_regions, net, square(), most=10)
    assert (q.n_regions, q.n_vertices, q.n_edges) == (plain.n_regions, plain.n_vertices, plain.n_edges)


def test_lines_that_stay_crowded_are_refused():
    net = network(*layers(np.random.default_rng(0), 2, 24, 10, 3))
    with pytest.raises(ties.NonGenericError, match=r"lines cross near .*: move the probe a little"):
        in_tiles(linear_regions, net, square(3.0), most=-1)


def test_a_budget_counts_no_less_than_the_regions():
    net = network(*layers(np.random.default_rng(1), 2, 24, 10, 3))
    q = in_tiles(linear_regions, net, square(3.0), max_regions=300)
    assert q.n_regions <= 300


def test_tiles_on_a_plane_of_many_dimensions():
    rng = np.random.default_rng(4)
    (w, b), (v, c) = layers(rng, 5, 9, 2)
    net = network((np.concatenate([w, w]), np.concatenate([b, b])), (np.concatenate([v, v], axis=1), c))
    patch = Patch(rng.normal(size=5), rng.normal(size=(2, 5)), ((-3, 3), (-3, 3)))
    assert_same(in_tiles(linear_regions, net, patch), linear_regions(net, patch))


def test_very_many_lines_through_one_point_need_no_tiles():
    angles = np.linspace(0, math.pi, 900, endpoint=False)
    weights = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    net = network((weights, -weights @ [0.25, 0.5]), (np.ones((1, 900)), np.zeros(1)))
    assert linear_regions(net, square()).n_regions == 1800
