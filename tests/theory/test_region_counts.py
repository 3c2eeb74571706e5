"""Region counts, active units, sharpness and VC dimension."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from relu_networks import network
from scipy.optimize import linprog

import inscape
from inscape import theory
from inscape.theory import TwoLayer
from inscape.univariate import ShallowNet


def random_two_layer(rng, general=False):
    p, d = int(rng.integers(1, 12)), int(rng.integers(1, 5))
    a = rng.choice([-1.0, 1.0], p) if not general else rng.normal(size=p)
    b = rng.normal(size=p) if general else np.zeros(p)
    return TwoLayer(rng.normal(size=(p, d)), a, b, rng.normal() if general else 0.0), d


@pytest.mark.slow
@settings(max_examples=200)
@given(st.integers(0, 2**32), st.booleans())
def test_lemmas_and_theorem_6_hold_on_random_networks(seed, general):
    rng = np.random.default_rng(seed)
    net, d = random_two_layer(rng, general)
    x = rng.normal(size=(int(rng.integers(2, 7)), d))
    assert theory.rc_lemma7(net, x[:1], x[1:2]).holds is True
    assert theory.rc_lemma8(net, x).holds is True
    check = theory.rc_theorem6(net, x)
    assert check.holds is True
    edge = theory.rc_theorem6(net, x, step_size=2 / max(net.sharpness(x), 1e-12))
    assert edge.rhs == pytest.approx(check.rhs)


def test_the_sharpness_is_that_of_the_first_layer(rng):
    net, d = random_two_layer(rng)
    x, y = rng.normal(size=(5, d)), rng.normal(size=5)
    module = net.to_module()
    module[0].bias.requires_grad_(False)
    for parameter in module[2].parameters():
        parameter.requires_grad_(False)
    expected = inscape.sharpness(module, x, y, loss="mse").value
    assert net.sharpness(x) == pytest.approx(expected)
    many = rng.normal(size=(2100, d))
    on = net.active(many) * net.a
    dense = np.linalg.eigvalsh((many @ many.T) * (on @ on.T) / 2100)[-1]
    assert net.sharpness(many) == pytest.approx(dense)


def test_a_zigzag_has_the_regions_that_lemma_7_allows():
    # units active at one end only, at -1, 0, 1: N = 3 at the right end, 4 zeros would need another piece
    wave = ShallowNet([1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [2.0, -4.0, 4.0], -1.0)
    check = theory.rc_lemma7(wave, [-2.0], [2.0])
    assert (check.lhs, check.rhs) == (4.0, 5.0)
    tight = theory.rc_lemma7(
        TwoLayer(np.array([[1.0], [-1.0]]), np.array([1.0, 1.0]), np.zeros(2), -0.5), [[-1.0]], [[1.0]]
    )
    assert (tight.lhs, tight.rhs) == (3.0, 4.0)


def test_theorem_6_of_one_unit():
    # f = relu(x_1) at (1, 0) and (-1, 0.1): one active point of two, lambda = 1/2, r = 1
    net = TwoLayer(np.array([[1.0, 0.0]]), np.ones(1), np.zeros(1))
    check = theory.rc_theorem6(net, [[1.0, 0.0], [-1.0, 0.1]])
    assert (check.lhs, check.rhs) == (1.5, pytest.approx(2 * 2 * 0.5 + 2))
    edge = theory.rc_theorem6(net, [[1.0, 0.0], [-1.0, 0.1]], step_size=1.0)
    assert edge.rhs == pytest.approx(4 * 2 / 1.0 + 2)
    beyond = theory.rc_theorem6(net, [[1.0, 0.0], [-1.0, 0.1]], step_size=10.0)
    assert beyond.verdict == "does not apply"


def test_sampled_pairs_have_an_interval(rng):
    net, d = random_two_layer(rng)
    x = rng.normal(size=(60, d))
    every = theory.rc_theorem6(net, x, n_pairs=10_000)
    some = theory.rc_theorem6(net, x, n_pairs=400, random_state=0)
    assert every.interval is None
    assert some.interval[0] <= some.rhs - every.lhs <= some.interval[1]


def test_order_rescaling_and_rotation_change_no_count(rng):
    net = TwoLayer(rng.normal(size=(8, 3)), rng.choice([-1.0, 1.0], 8), np.zeros(8))
    x = rng.normal(size=(6, 3))
    order, q = rng.permutation(8), np.linalg.qr(rng.normal(size=(3, 3)))[0]
    first = theory.rc_theorem6(net, x)
    moved = theory.rc_theorem6(TwoLayer(net.w[order] @ q, net.a[order], net.b), x @ q)
    assert (moved.lhs, moved.rhs) == (first.lhs, pytest.approx(first.rhs))
    c = np.exp(rng.normal(size=8))  # the function stays, the sharpness does not
    scaled = theory.rc_theorem6(TwoLayer(c[:, None] * net.w, net.a / c, net.b), x)
    assert scaled.lhs == first.lhs
    assert scaled.rhs != pytest.approx(first.rhs)
    assert theory.rc_lemma7(net, x[:1], x[1:2]).rhs == theory.rc_lemma7(scaled_net(net, c), x[:1], x[1:2]).rhs


def scaled_net(net, c):
    return TwoLayer(c[:, None] * net.w, net.a / c, net.b)


def test_torch_modules_and_two_scores_are_read(rng):
    w, b, v = rng.normal(size=(5, 2)), rng.normal(size=5), rng.normal(size=(2, 5))
    x = rng.normal(size=(4, 2))
    two = theory.rc_lemma7(network((w, b), (v, [0.0, 0.5])), x[:2], x[2:])
    one = theory.rc_lemma7(TwoLayer(w, v[1] - v[0], b, 0.5), x[:2], x[2:])
    assert (two.lhs, two.rhs) == (one.lhs, one.rhs)
    with pytest.raises(inscape.InscapeError, match="one hidden layer, not 2"):
        theory.rc_lemma8(network((w, b), (v, [0, 0]), (np.ones((1, 2)), [0])), x)
    with pytest.raises(inscape.InscapeError, match="two classes, not 3"):
        theory.rc_lemma8(network((w, b), (rng.normal(size=(3, 5)), [0, 0, 0])), x)
    a = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    pair, same = theory.rc_theorem6((w, a), x), theory.rc_theorem6(TwoLayer(w, a, np.zeros(5)), x)
    assert (pair.lhs, pair.rhs) == (same.lhs, same.rhs)
    with pytest.raises(inscape.InscapeError, match="no two-layer network"):
        theory.rc_lemma8((w, v), x)
    with pytest.raises(inscape.InscapeError, match="one shape"):
        theory.rc_lemma7(network((w, b), (v, [0.0, 0.5])), x[:2], x)


# Theorem 5 ---------------------------------------------------------------------------------------------


def separates(points, labels):
    """Whether a half-space has these labels, by linear programming."""
    signs = np.where(labels, 1.0, -1.0)
    rows = -signs[:, None] * np.hstack([points, np.ones((len(points), 1))])
    d = rows.shape[1]
    return linprog(np.zeros(d), A_ub=rows, b_ub=-np.ones(len(points)), bounds=[(None, None)] * d).status == 0


def test_half_planes_have_two_regions_on_every_line_and_shatter_three_points():
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert all(separates(corners, np.array(labels)) for labels in itertools.product((0, 1), repeat=3))
    half_plane = inscape.wrap(lambda x: (x[:, 0] > 0.1).astype(int), input_shape=(2,))
    stated = theory.rc_theorem5(half_plane, corners, form="stated", random_state=0)
    assert (stated.verdict, stated.lhs, stated.rhs) == ("violated", 3.0, 2.0)
    assert theory.rc_theorem5(half_plane, corners, random_state=0).holds


def test_convex_sets_have_three_regions_on_every_line_and_shatter_any_circle():
    angle = np.linspace(0, 2 * np.pi, 9)[:-1]
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    for labels in itertools.product((False, True), repeat=8):  # the hull of the chosen points holds no other
        chosen = circle[list(labels)]
        for i in np.flatnonzero(~np.array(labels)):
            if len(chosen):
                direction = circle[i]
                assert (chosen @ direction).max() < 1 - 1e-9
    disc = inscape.wrap(lambda x: (np.linalg.norm(x, axis=1) < 0.8).astype(int), input_shape=(2,))
    stated = theory.rc_theorem5(disc, circle, form="stated", random_state=0)
    assert (stated.verdict, stated.lhs, stated.rhs) == ("violated", 8.0, 3.0)
    assert theory.rc_theorem5(disc, circle, random_state=0).rhs == math.inf


def test_on_the_line_the_theorem_is_right(rng):
    for _ in range(20):
        net = ShallowNet.random(6, random_state=int(rng.integers(2**32)))
        x = rng.uniform(-2, 2, 30)
        check = theory.rc_theorem5(net, x, form="stated")
        assert check.rhs == len(net.sign_changes(x.min(), x.max())) + 1
        assert check.holds


@pytest.mark.slow
@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_theorem_5_corrected_holds_on_random_networks(seed):
    rng = np.random.default_rng(seed)
    net, d = random_two_layer(rng, general=True)
    x = rng.normal(size=(int(rng.integers(2, 12)), d))
    check = theory.rc_theorem5(net.to_module(), x, n_lines=10, random_state=seed)
    assert check.holds is True


def test_the_generalisation_bound(rng):
    net = ShallowNet([1.0], [0.0], [1.0], -0.5)
    x, x_test = rng.uniform(-2, 2, 400), rng.uniform(-2, 2, 1000)
    y, y_test = (x > 0.4).astype(int), (x_test > 0.4).astype(int)
    check = theory.rc_theorem5(net, x, y, x_test=x_test, y_test=y_test)
    assert check.lhs == pytest.approx(abs(np.mean((x > 0.5) != y) - np.mean((x_test > 0.5) != y_test)))
    assert check.rhs == pytest.approx(2 * math.sqrt(2 * (2 * math.log(math.e * 400 / 2) + math.log(2)) / 400))
    assert check.verdict == "holds"
    few = theory.rc_theorem5(net, x[:20], y[:20], x_test=x_test, y_test=y_test)
    assert few.verdict == "vacuous"  # beyond 1


def test_three_classes_do_not_apply(rng):
    net = network((rng.normal(size=(4, 2)), np.zeros(4)), (rng.normal(size=(3, 4)), np.zeros(3)))
    assert theory.rc_theorem5(net, rng.normal(size=(5, 2))).verdict == "does not apply"
