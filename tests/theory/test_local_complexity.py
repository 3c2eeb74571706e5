"""The bounds of local complexity: known sides, counter-examples of the stated forms, corrected forms."""

import copy
import json
import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from relu_networks import network
from torch import nn

import inscape
from inscape import theory
from inscape.theory.local_complexity.moments import moments
from inscape.univariate import ShallowNet

SIGMA = 0.5
C_BIAS = 1 / (math.sqrt(2 * math.pi) * SIGMA)
CORRECTED = (
    theory.lc_gradient_bound,
    theory.lc_corollary3_lower,
    theory.lc_theorem5_upper,
    theory.lc_theorem5_lower,
    theory.lc_corollary14,
    theory.lc_theorem7,
    theory.lc_proposition8,
)


def random_network(seed):
    """A network of random shape and scale with its points, and settings of the bounds."""
    rng = np.random.default_rng(seed)
    sizes = [*rng.integers(1, 6, size=rng.integers(2, 5)), rng.integers(1, 3)]
    scale = 10 ** rng.uniform(-0.7, 0.7)
    layers = [
        (scale * rng.normal(size=(n_out, n_in)), 10 ** rng.uniform(-1, 0.5) * rng.normal(size=n_out))
        for n_in, n_out in pairwise(sizes)
    ]
    x = rng.normal(size=(rng.integers(1, 6), sizes[0]))
    settings = {
        "sigma": 10 ** rng.uniform(-1, 0.5),
        "eta": 10 ** rng.uniform(-1, 0.7),
        "eps": 10 ** rng.uniform(-1, 0.7),
        "n_noise": 2,
        "random_state": seed,
    }
    return network(*layers), x, settings


@pytest.mark.slow
@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_corrected_forms_hold_on_random_networks(seed):
    net, x, options = random_network(seed)
    m = moments(net, x, **options)
    for check in (theory.lc_corollary3_upper(m), *(function(m) for function in CORRECTED)):
        assert check.holds is True, check
        assert check.slack >= -1e-9 * max(abs(check.lhs), abs(check.rhs))


@pytest.mark.slow
@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_proposition_17_corrected_holds_between_random_networks(seed):
    rng = np.random.default_rng(seed)
    d, h = rng.integers(1, 6, size=2)
    start = [(rng.normal(size=(h, d)), rng.normal(size=h)), (rng.normal(size=(1, h)), [0.0])]
    move = 10 ** rng.uniform(-4, 1)
    end = [
        (w + move * rng.normal(size=np.shape(w)), b + move * rng.normal(size=np.shape(b))) for w, b in start
    ]
    x, sigma = rng.normal(size=(4, d)), 10 ** rng.uniform(-1.5, 1)
    assert theory.lc_proposition17(network(*start), network(*end), x, sigma=sigma).holds is True


@pytest.mark.slow
@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_proposition_6_holds_on_random_networks_of_one_input(seed):
    rng = np.random.default_rng(seed)
    h, k = rng.integers(1, 8, size=2)
    deep = [(rng.normal(size=(k, h)), rng.normal(size=k))] if rng.random() < 0.5 else []
    last = k if deep else h
    net = network(
        (rng.normal(size=(h, 1)), rng.normal(size=h)), *deep, (rng.normal(size=(1, last)), rng.normal(size=1))
    )
    check = theory.lc_proposition6(
        net, rng.uniform(-1, 1, 12), radius=rng.uniform(0.05, 0.9), support=(-2, 2)
    )
    assert check.holds is True, check


# both sides known -----------------------------------------------------------------------------------


def test_one_unit_at_its_kink():
    m = moments(ShallowNet([3.0], [-1.5], [2.0]), [[0.5]], sigma=SIGMA, eta=SIGMA, eps=2.0)
    for check, lhs, rhs in (
        (theory.lc_corollary3_upper(m), 3 * C_BIAS, 3 * C_BIAS),
        (theory.lc_corollary3_lower(m), 3 * C_BIAS * math.exp(-0.5), 3 * C_BIAS),
        (theory.lc_theorem5_upper(m), 3 * C_BIAS, C_BIAS * math.sqrt(9 + 4)),
        (theory.lc_theorem5_lower(m), 1.0, 3 * 3 / (4 * math.exp(-0.5))),
        (theory.lc_corollary14(m), 3 * C_BIAS, 3 * C_BIAS),
        (theory.lc_proposition8(m), 3 * C_BIAS, 3 * C_BIAS),
        (theory.lc_gradient_bound(m), 3.0, 3.0),
    ):
        assert (check.lhs, check.rhs) == (pytest.approx(lhs), pytest.approx(rhs)), check
        assert check.verdict == "holds"


def test_theorem_7_of_one_unit():
    # the unit is active in a share of the noise; TV is 6 there and 0 elsewhere
    m = moments(
        ShallowNet([3.0], [0.0], [2.0]), [[0.5]], sigma=SIGMA, eta=SIGMA * 10, n_noise=400, random_state=0
    )
    check = theory.lc_theorem7(m)
    least = C_BIAS * math.exp(-50)
    share = float(np.mean(m.draws["variation"])) / 6
    assert check.lhs == pytest.approx(6 * share * least / 2)
    assert check.rhs == pytest.approx(3 * C_BIAS * math.exp(-0.5 * 9))
    assert share == pytest.approx(0.99865, abs=0.01)


def test_xi_of_a_unit_that_is_far_takes_everything_off():
    m = moments(ShallowNet([3.0], [1.0], [1.0]), [[1.0]], sigma=SIGMA, eta=1.0)
    assert theory.lc_corollary3_lower(m).lhs == pytest.approx(0.0)


def test_units_that_are_not_good_at_their_kink_are_taken_off():
    # unit 1 at its kink gives 0 to a second layer whose bias needs more: never good there, often elsewhere
    net = network(([[1.0]], [0.0]), ([[4.0]], [-3.0]), ([[1.0]], [0.0]))
    m = moments(net, [[2.0]], sigma=0.2, eta=0.2, n_noise=64, random_state=0)
    assert m.draws["not_good"].mean() < 0.05
    assert m.draws["not_good_at_kink"].mean() == pytest.approx(1.0)


def test_moments_equal_the_measures():
    net, x, options = random_network(5)
    m = moments(net, x, **options)
    shared = {k: options[k] for k in ("sigma", "n_noise", "random_state")}
    complexity = inscape.local_complexity(net, x, **shared)
    assert m.draws["complexity"].mean(axis=0) == pytest.approx(complexity.per_layer)
    assert m.draws["not_good"].mean() == pytest.approx(complexity.n_not_good)
    ranks = inscape.local_rank(net, x, eps=options["eps"], **shared).per_layer
    assert m.draws["ranks"].mean(axis=0) == pytest.approx(ranks)
    assert m.draws["variation"].mean() == pytest.approx(inscape.total_variation(net, x, **shared).value)
    norms = inscape.local_complexity(net, x, form="norms", **shared).per_layer
    assert m.draws["gradients"].mean(axis=0) == pytest.approx(norms)


def test_units_not_good_at_their_kink_are_estimated_where_there_are_many(rng, monkeypatch):
    net = network(
        (rng.normal(size=(30, 2)), rng.normal(size=30)),
        (rng.normal(size=(40, 30)) / 6, -2.5 + rng.normal(size=40) / 9),
        (rng.normal(size=(1, 40)), [0.0]),
    )
    x = rng.normal(size=(20, 2))
    some = moments(net, x, sigma=0.3, n_noise=40, random_state=0).draws["not_good_at_kink"]
    monkeypatch.setattr("inscape.measures.jacobian.tallies.EVERY_UNIT_UP_TO", 1000)
    every = moments(net, x, sigma=0.3, n_noise=40, random_state=0).draws["not_good_at_kink"]
    assert 1 < every.mean() < 30
    error = (some - every).std() / math.sqrt(40)
    assert abs(some.mean() - every.mean()) < 4 * error


# counter-examples ------------------------------------------------------------------------------------


def test_the_norm_of_the_product_does_not_bound_gradients():
    # one of two units is active: W2 W1 = 0, but the gradient of the second layer is 10
    net = network(([[1.0], [1.0]], [10.0, -10.0]), ([[10.0, -10.0]], [0.0]), ([[1.0]], [0.0]))
    stated = theory.lc_gradient_bound(net, [[0.0]], form="stated")
    assert (stated.verdict, stated.lhs, stated.rhs) == ("violated", 10.0, pytest.approx(math.sqrt(2)))
    assert theory.lc_gradient_bound(net, [[0.0]]).rhs == pytest.approx(20.0)


def test_a_hundred_equal_units_break_claim_2():
    net = ShallowNet(np.ones(100), np.zeros(100), np.ones(100))
    m = moments(net, [[0.0]], sigma=SIGMA, eps=0.1)
    for function in (theory.lc_theorem5_upper, theory.lc_corollary14, theory.lc_proposition8):
        stated = function(m, form="stated", **({"cost": 10.0} if function is theory.lc_proposition8 else {}))
        assert stated.verdict == "violated"
        assert stated.lhs == pytest.approx(100 * C_BIAS)
        assert function(m).holds
    assert theory.lc_corollary14(m, form="stated").rhs == pytest.approx(10 * C_BIAS)
    assert theory.lc_corollary14(m).rhs == pytest.approx(100 * C_BIAS)


def test_equation_12_loses_a_square():
    net = network((3 * np.eye(2), [0.0, 0.0]), ([[1.0, 1.0]], [0.0]))
    m = moments(net, [[0.0, 0.0]], sigma=SIGMA, eta=1e-3, eps=2.9)
    stated = theory.lc_theorem5_lower(m, form="stated")
    assert (stated.verdict, stated.lhs, stated.rhs) == ("violated", 2.0, pytest.approx(6 / 8.41, rel=1e-3))
    assert theory.lc_theorem5_lower(m).rhs == pytest.approx(18 / 8.41, rel=1e-3)


def test_no_constant_mends_equation_12():
    """Weights, biases, sigma, eta and eps scaled by s: the left side stays 2, the right falls like 1 / s."""
    right = []
    for s in (1.0, 3.0, 100.0):
        net = network((3 * s * np.eye(2), [0.0, 0.0]), ([[1.0, 1.0]], [0.0]))
        m = moments(net, [[0.0, 0.0]], sigma=SIGMA * s, eta=SIGMA * s, eps=2.9 * s)
        stated = theory.lc_theorem5_lower(m, form="stated")
        assert stated.lhs == 2.0
        assert stated.refutes == "the statement itself"
        right.append(stated.rhs * s)
        assert theory.lc_theorem5_lower(m).rhs == pytest.approx(3 * right[0])
    assert right == pytest.approx([right[0]] * 3)


def test_the_xi_of_the_proof_is_too_small_where_input_and_bias_have_opposite_signs():
    net = ShallowNet([1.0], [1.0], [1.0])  # z = 1, beta = -1
    m = moments(net, [[1.0]], sigma=0.1, eta=math.sqrt(3.9))
    stated = theory.lc_corollary3_lower(m, form="stated")
    assert stated.verdict == "violated"
    assert stated.lhs / stated.rhs == pytest.approx(math.exp(5) * (1 - 2.01 / 3.9))
    assert theory.lc_corollary3_lower(m).holds


def test_a_xi_exists_nevertheless(rng):
    """Twice the squares of the proof are enough: E|z - b|^2 <= 2 (E z^2 + E b^2)."""
    w, b, x = rng.normal(size=(3, 20_000)) * 10 ** rng.uniform(-1, 1, size=(3, 20_000))
    sigma, eta = 10 ** rng.uniform(-1, 1, size=(2, 20_000))
    density = 1 / (math.sqrt(2 * math.pi) * sigma)
    least = density * np.exp(-0.5 * (eta / sigma) ** 2)
    xi = 2 * least * np.abs(w) * ((w * x) ** 2 + b**2 + sigma**2) / eta**2
    complexity = np.abs(w) * density * np.exp(-0.5 * ((w * x + b) / sigma) ** 2)
    assert (least * np.abs(w) - xi <= complexity * (1 + 1e-9)).all()
    for i in range(3):
        net = ShallowNet([w[i]], [b[i]], [1.0])
        m = moments(net, [[x[i]]], sigma=sigma[i], eta=eta[i], n_noise=1)
        assert m.draws["complexity"].sum() == pytest.approx(complexity[i])
        assert 2 * m.least_density * abs(w[i]) * m.draws["squares"].sum() / eta[i] ** 2 == pytest.approx(
            xi[i]
        )
    stated = theory.lc_corollary3_lower(ShallowNet([1.0], [1.0], [1.0]), [[1.0]], form="stated")
    assert "some xi exists" in stated.refutes


def test_a_network_tells_the_two_readings_of_b_apart():
    """x = 0.4, W_1 = 1, W_2 = 0.4, beta_2 = 0.4, W_3 = 1, sigma = 1, eta = 0.4; by quadrature and by noise.

    Unit 1 is not good where unit 2 is off: at drawn biases with probability 0.558, with unit 1 at its kink
    (its output zero) with Phi(0.4). With the least xi the left side exceeds LC in the first reading only.
    """
    from scipy.integrate import quad
    from scipy.stats import norm

    def over_noise(f):  # the mean over the noise b of unit 1 where it is on, z_1 - b > 0
        return quad(lambda b: norm.pdf(b) * f(0.4 * (0.4 - b) - 0.4), -9, 0.4)[0]

    lc = norm.pdf(0.4) * norm.cdf(-0.4) + over_noise(lambda u: 0.4 * norm.pdf(u))
    least, density = norm.pdf(0.4), norm.pdf(0)
    near = 1 + 0.4 * (norm.cdf(0.4) - norm.cdf(-1.6))
    off = {
        "not_good": over_noise(lambda u: norm.cdf(-u)) + norm.cdf(-0.4) * norm.cdf(0.4),
        "not_good_at_kink": norm.cdf(0.4),
    }
    left = {name: least * near - b * density for name, b in off.items()}
    assert (lc, *left.values()) == pytest.approx((0.22784, 0.23411, 0.19527), abs=1e-5)
    assert left["not_good_at_kink"] < lc < left["not_good"]

    net = network(([[1.0]], [0.0]), ([[0.4]], [-0.4]), ([[1.0]], [0.0]))
    m = moments(net, [[0.4]], sigma=1.0, eta=0.4 * (1 + 1e-12), n_noise=400, random_state=0)
    for name, expected in {**off, "complexity": lc}.items():
        draws = m.draws[name].reshape(400, -1).sum(axis=1)
        assert abs(draws.mean() - expected) < 4 * max(draws.std() / math.sqrt(400), 1e-9)
    assert theory.lc_corollary3_lower(m).holds


def test_the_schatten_inequality_is_used_the_wrong_way():
    rank_one = np.zeros((4, 4))
    rank_one[0, 0] = 1.0
    net = network((rank_one, np.zeros(4)), (rank_one[:1], [0.0]))
    m = moments(net, np.zeros((1, 4)), sigma=SIGMA)
    stated = theory.lc_proposition8(m, form="stated")
    assert (stated.verdict, stated.lhs) == ("violated", pytest.approx(C_BIAS))
    assert stated.rhs <= C_BIAS * math.sqrt(2) / 4 * (1 + 1e-9)
    assert theory.lc_proposition8(m).holds
    # |A|_F <= n^{1/2 - 1/p} |A|_p with p = 1 says 1 <= 4^{-1/2}
    assert np.linalg.norm(rank_one) > 4**-0.5 * np.linalg.norm(rank_one, "nuc")


def test_local_complexity_is_not_a_property_of_the_function():
    # relu(x) = relu(10 x) / 10 has representation cost sqrt 2, whatever the scale
    m = moments(ShallowNet([10.0], [0.0], [0.1]), [[0.0]], sigma=SIGMA)
    stated = theory.lc_proposition8(m, form="stated", cost=math.sqrt(2))
    assert (stated.verdict, stated.lhs, stated.rhs) == (
        "violated",
        pytest.approx(10 * C_BIAS),
        pytest.approx(2 * C_BIAS),
    )


def test_equation_42_is_no_lipschitz_constant():
    # the last two units cancel in W5 W4, but only one is active; all are far from their kinks
    one = ([[1.0]], [100.0])
    net = network(one, one, one, ([[10.0], [10.0]], [1e5, -1e5]), ([[1.0, -1.0]], [0.0]))
    m = moments(net, [[1.0]], sigma=0.01, eta=1e-4, random_state=0)
    stated = theory.lc_theorem7(m, form="stated")
    least = 1 / (math.sqrt(2 * math.pi) * 0.01) * math.exp(-0.5e-4)
    assert stated.verdict == "violated"
    assert stated.lhs == pytest.approx(least * (4 * 10 / math.sqrt(2) - 23))
    assert stated.rhs < 1e-100
    assert theory.lc_theorem7(m).holds


def test_proposition_17_drops_the_density():
    start, end = ShallowNet([10.0], [0.0], [1.0]), ShallowNet([10.0], [-0.1], [1.0])
    stated = theory.lc_proposition17(start, end, [[0.1]], sigma=1.0, form="stated")
    density = 1 / math.sqrt(2 * math.pi)
    assert stated.verdict == "violated"
    assert stated.lhs == pytest.approx(10 * density * (math.exp(-0.405) - math.exp(-0.5)))
    assert stated.rhs == pytest.approx(0.1 * density)
    assert theory.lc_proposition17(start, end, [[0.1]], sigma=1.0).holds


def test_proposition_17_has_a_constant_nevertheless(rng):
    """LC / C_bias of w = 10 at x = 0.1 changes by at most 2.42 / C_bias per length, in any direction."""
    start, density = ShallowNet([10.0], [0.0], [1.0]), 1 / math.sqrt(2 * math.pi)
    slopes = []
    for _ in range(60):
        move = rng.normal(size=2)
        move *= 10 ** rng.uniform(-4, 2) / np.linalg.norm(move)
        end = ShallowNet([10.0 + move[0]], [move[1]], [1.0])
        check = theory.lc_proposition17(start, end, [[0.1]], sigma=1.0, form="stated")
        slopes.append(check.lhs / np.linalg.norm(move))
    assert density < max(slopes) < 2.43
    assert "some C exists" in check.refutes


def test_proposition_17_moves_with_the_measure():
    start, end = ShallowNet.random(9, random_state=0), ShallowNet.random(9, random_state=1)
    x = np.linspace(-1, 1, 7)[:, None]
    check = theory.lc_proposition17(start, end, x, sigma=0.3)
    values = [inscape.local_complexity(n.to_module(), x, sigma=0.3, n_noise=2).value for n in (start, end)]
    assert check.lhs == pytest.approx(abs(values[1] - values[0]))


def test_proposition_6_fails_in_the_plane():
    # 1 - 2 relu(1 - (|x| + |y|) / d): a pyramid of half width d with its tip at -1
    d = 0.1
    net = network(
        ([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], np.zeros(4)),
        ([[-1 / d] * 4], [1.0]),
        ([[-2.0]], [1.0]),
    )
    tip = net(torch.zeros(1, 2, dtype=torch.float64)).item()
    assert tip == -1.0
    # density 1/4 on the square [-1, 1]^2: the gradient is 2 sqrt 2 / d on an area of 2 d^2
    grid = np.stack(np.meshgrid(*[(np.arange(400) + 0.5) / 200 - 1] * 2), axis=-1).reshape(-1, 2)
    variation = inscape.total_variation(net, grid).value
    assert variation == pytest.approx(math.sqrt(2) * d, rel=0.05)
    assert variation <= 0.25 * 1.0  # c_eps gamma at a point of margin 1, the tip within its ball
    with pytest.raises(inscape.InscapeError, match="about one input"):
        theory.lc_proposition6(net, grid[:5])


def test_proposition_6_of_a_ramp():
    ramp = ShallowNet([1.0], [0.0], [2.0], -1.0)
    check = theory.lc_proposition6(ramp, [0.75], radius=0.5, support=(-1.0, 2.0))
    assert (check.lhs, check.rhs) == (pytest.approx(1 / 3), pytest.approx(4 / 3))
    assert "1 have adversarial" in check.note  # the score 0.5 falls to -0.5


# the known optimum of the margin problem ---------------------------------------------------------------


def optimum(n, depth, rng):
    """The least-norm network of that depth with N(x) >= 1 at one unit vector x, its reference, x."""
    units = [u / np.linalg.norm(u) for u in np.abs(rng.normal(size=(depth, n)))]
    weights = [np.outer(b, a) for a, b in pairwise(units)]
    net = network(*((w, np.zeros(n)) for w in weights), (units[-1][None], [0.0]))
    first = np.zeros((2, n))
    first[0] = units[0]
    return net, network((first, np.zeros(2)), ([[1.0, 0.0]], [0.0])), units[0][None]


@pytest.mark.slow
@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_proposition_9_corrected_holds_at_known_optima(seed):
    rng = np.random.default_rng(seed)
    net, reference, x = optimum(int(rng.integers(2, 7)), int(rng.integers(3, 6)), rng)
    options = {"sigma": 10 ** rng.uniform(-1, 1.5), "n_noise": 2, "random_state": seed}
    assert theory.lc_proposition9(net, x, [1.0], reference, is_optimum=True, **options).holds is True


def test_proposition_9_stated_fails_at_a_known_optimum(rng):
    net, reference, x = optimum(100, 3, rng)
    options = {"sigma": 10.0, "is_optimum": True, "random_state": 0}
    stated = theory.lc_proposition9(net, x, [1.0], reference, form="stated", **options)
    assert stated.rhs == pytest.approx(math.sqrt(2) * 2 ** (-1 / 3) * math.sqrt(4 / 3))
    assert stated.verdict == "violated"
    assert stated.lhs > 5
    corrected = theory.lc_proposition9(net, x, [1.0], reference, **options)
    assert corrected.holds
    scaled = inscape.local_complexity(net, x, sigma=10.0, random_state=0).value * math.sqrt(2 * math.pi) * 10
    assert stated.lhs == pytest.approx((100 * scaled * 100 * math.sqrt(3)) ** (1 / 3) / 3)  # gamma = 0, O = 1
    assert corrected.lhs == pytest.approx((scaled / 20) ** (1 / 3))


def test_proposition_9_says_nothing_about_other_networks(rng):
    net, reference, x = optimum(4, 3, rng)
    assert theory.lc_proposition9(net, x, [1.0], reference).verdict == "does not apply"
    shallow = theory.lc_proposition9(reference, x, [1.0], reference, is_optimum=True)
    assert "depth" in shallow.unmet[-1]


def test_the_known_optimum_meets_the_kkt_conditions(rng):
    net, reference, x = optimum(6, 3, rng)
    found = theory.margin_kkt(net, x, [1.0])
    assert found.residual < 1e-9
    assert found.norm == pytest.approx(math.sqrt(3))
    assert theory.lc_theorem18(net, x, [1.0], reference, is_optimum=True).holds
    check = theory.lc_theorem18(net, x, [1.0], reference, is_optimum=True)
    assert (check.lhs, check.rhs) == pytest.approx((1.0, math.sqrt(2) * 2 ** (-1 / 3) * math.sqrt(4 / 3)))
    with torch.no_grad():
        net[0].weight[0, 0] += 0.3
    moved = theory.lc_theorem18(net, x, [1.0], reference, is_optimum=True)
    assert moved.verdict == "does not apply"
    assert "a KKT point of the margin problem" in moved.unmet


def test_the_margin_problem_of_deep_nets_is_that_of_shallow_ones(rng):
    """On univariate nets without output bias both residuals agree; the deep one by gradients of torch."""
    from inscape.univariate import kkt_residual

    net = ShallowNet([1.0, -0.5, 0.8], [0.3, 0.4, -0.2], [0.7, 0.6, -0.9])
    x = np.array([-1.0, 0.4, 1.3])
    y = np.sign(net(x))
    scaled = ShallowNet(net.w, net.b, net.v / np.abs(net(x)).min())
    ours = theory.margin_kkt(scaled, x[:, None], y)
    module = scaled.to_module()
    grads = []
    for xi, yi in zip(x, y, strict=True):
        module.zero_grad()
        (float(yi) * module(torch.tensor([[xi]], dtype=torch.float64))).sum().backward()
        grads.append(torch.cat([p.grad.flatten() for p in module.parameters()]).numpy())
    theta = torch.cat([p.detach().flatten() for p in module.parameters()]).numpy()
    by_hand = np.linalg.norm(theta - ours.multipliers @ np.array(grads)) / np.linalg.norm(theta)
    assert ours.stationarity == pytest.approx(by_hand, rel=1e-9)
    assert ours.margins == pytest.approx(y * scaled(x))
    assert ours.feasibility == pytest.approx(0, abs=1e-12)
    assert kkt_residual(scaled, x, y).margins.min() == pytest.approx(1)


# representation cost -----------------------------------------------------------------------------------


def least_total(net, angles):
    """min sum |a| over sum_u a(u) relu(u.(x, 1)) = f, u of a grid of angles and those of the net: an LP."""
    from scipy.optimize import linprog

    own = np.arctan2(net.b, net.w)
    all_angles = np.concatenate([angles, own, own + np.pi])
    u = np.column_stack([np.cos(all_angles), np.sin(all_angles)])
    u = u[np.abs(u[:, 0]) > 1e-9]
    u = np.concatenate([u, -u, [[0.0, 1.0]]])
    knots = np.unique(np.round(-u[:-1, 1] / u[:-1, 0], 9))
    x = np.concatenate([[knots[0] - 5, knots[0] - 1], knots, [knots[-1] + 1, knots[-1] + 5]])
    matrix = np.maximum(np.column_stack([x, np.ones_like(x)]) @ u.T, 0.0)
    n = len(u)
    found = linprog(
        np.ones(2 * n), A_eq=np.column_stack([matrix, -matrix]), b_eq=net(x), bounds=(0, None), method="highs"
    )
    return found.fun


@pytest.mark.parametrize("seed", range(4))
def test_the_representation_cost_is_the_optimum_of_a_linear_program(seed):
    rng = np.random.default_rng(seed)
    net = ShallowNet(rng.normal(size=3), rng.normal(size=3), rng.normal(size=3))
    cost = theory.representation_cost(net, [[0.0]], output_bias=False)
    assert cost.is_exact
    grid = math.sqrt(2 * least_total(net, np.linspace(0.013, math.pi - 0.013, 30)))
    assert cost.value <= grid * (1 + 1e-6)
    assert cost.value == pytest.approx(grid, rel=0.02)
    assert cost.value <= net_norm(net) * (1 + 1e-9)


def net_norm(net):
    return math.sqrt(float(sum((p**2).sum() for p in (net.w, net.b, net.v)) + net.c**2))


def test_the_representation_cost_belongs_to_the_function(rng):
    net = ShallowNet(rng.normal(size=4), rng.normal(size=4), rng.normal(size=4), 0.3)
    value = theory.representation_cost(net, [[0.0]]).value
    assert theory.representation_cost(net.rescaled(7.0), [[0.0]]).value == pytest.approx(value, rel=1e-6)
    split = ShallowNet(
        np.repeat(net.w, 2), np.repeat(net.b, 2), np.ravel(np.column_stack([0.3 * net.v, 0.7 * net.v])), net.c
    )
    assert theory.representation_cost(split, [[0.0]]).value == pytest.approx(value, rel=1e-6)
    for w, b, v, c, expected in (
        ([1.0, -1.0], [0.0, 0.0], [1.0, 1.0], 0.0, 2.0),  # |x|
        ([1.0], [0.0], [0.0], 3.0, math.sqrt(5)),  # 3 = 1 by the output bias and 2 by a unit that is on
        ([1.0], [0.0], [0.0], 0.5, 0.5),
    ):
        assert theory.representation_cost(ShallowNet(w, b, v, c), [[0.0]]).value == pytest.approx(expected)
    deep = network(([[1.0]], [0.0]), ([[1.0]], [0.0]), ([[1.0]], [0.0]))
    bound = theory.representation_cost(deep, [[0.0]])
    assert (bound.is_exact, bound.value) == (False, pytest.approx(math.sqrt(3)))
    assert "<=" in repr(bound)
    plane = network((rng.normal(size=(3, 2)), np.zeros(3)), (rng.normal(size=(1, 3)), [0.0]))
    found = theory.representation_cost(plane, np.zeros((1, 2)))
    w, v = plane[0].weight.detach().numpy(), plane[2].weight.detach().numpy()[0]
    balanced = math.sqrt(2 * float((np.abs(v) * np.linalg.norm(w, axis=1)).sum()))
    assert found.value <= balanced * (1 + 1e-9)


def test_proposition_8_with_the_computed_cost():
    m = moments(ShallowNet([10.0], [0.0], [0.1]), [[0.0]], sigma=SIGMA)
    stated = theory.lc_proposition8(m, form="stated", cost="computed")
    assert (stated.verdict, stated.rhs) == ("violated", pytest.approx(2 * C_BIAS))
    assert "representation cost 1.414" in stated.note


# vertices ----------------------------------------------------------------------------------------------


def test_the_vertex_density_is_the_expected_number_of_vertices(rng):
    """Against exact partitions of noisy networks on a square: vertices inside, and regions by Euler."""
    net = network(
        (rng.normal(size=(6, 2)), 0.3 * rng.normal(size=6)),
        (rng.normal(size=(5, 6)) / 2, 0.3 * rng.normal(size=5)),
        (rng.normal(size=(1, 5)), [0.0]),
    )
    sigma, n = 0.4, 120
    t = (np.arange(24) + 0.5) / 12 - 1
    x = np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2)
    density = theory.vertex_density(net, x, sigma=sigma, n_noise=60, random_state=0)
    patch = inscape.Patch([0.0, 0.0], np.eye(2), ((-1, 1), (-1, 1)))
    counts = []
    for _ in range(n):
        noisy = copy.deepcopy(net)
        with torch.no_grad():
            for k in (0, 2):
                noise = sigma * rng.standard_normal(len(noisy[k].bias))
                noisy[k].bias.sub_(torch.from_numpy(noise))
        regions = inscape.linear_regions(noisy, patch)
        counts.append(int((np.abs(regions.vertices) < 1 - 1e-9).all(axis=1).sum()))
    error = math.hypot(np.std(counts, ddof=1) / math.sqrt(n), 4 * density.std_error)
    assert abs(4 * density.value - np.mean(counts)) < 4 * error
    assert error < 0.1 * np.mean(counts)
    assert 0.2 < density.same_layer / density.value < 0.95


def test_vertices_of_one_layer_need_no_noise(rng):
    w, b = rng.normal(size=(5, 2)), rng.normal(size=5)
    net = network((w, b), (rng.normal(size=(1, 5)), [0.0]))
    x = rng.normal(size=(3, 2))
    found = theory.vertex_density(net, x, sigma=0.7, n_noise=2, random_state=0)
    rho = np.exp(-0.5 * ((x @ w.T + b) / 0.7) ** 2) / (math.sqrt(2 * math.pi) * 0.7)
    expected = [
        sum(abs(np.linalg.det(w[[i, j]])) * r[i] * r[j] for i in range(5) for j in range(i)) for r in rho
    ]
    assert found.density == pytest.approx(expected)
    assert found.std_error == pytest.approx(0, abs=1e-12)
    assert found.same_layer == pytest.approx(found.value)
    again = theory.VertexDensity.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.to_dict() == found.to_dict()
    with pytest.raises(inscape.InscapeError, match="two inputs, not 1"):
        theory.vertex_density(ShallowNet([1.0], [0.0], [1.0]), [[0.0]], sigma=0.1)


# initialisation -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("widths", [(1, 1), (2, 3), (3, 2, 2), (5,)])
def test_units_not_good_at_the_start(widths):
    check = theory.lc_good_at_start(4, widths, n_starts=4000, random_state=0)
    alive = np.prod([1 - 0.5**n for n in widths])
    expected = sum(widths[:-1]) * (1 - alive)
    assert check.lhs == pytest.approx(expected, abs=0.06 * max(1, sum(widths)))
    assert check.rhs == pytest.approx(sum(widths) * sum(0.5**n for n in widths))
    assert check.holds


def test_the_bound_at_the_start_holds_for_what_is_measured():
    """Perturbed biases wake a layer behind a dead one: layer 1 is not good only if layer 2 is dead, 1/4."""
    from inscape.training.networks import mlp

    x = np.random.default_rng(0).normal(size=(1, 3))
    counts = [
        inscape.local_complexity(
            mlp(3, (2, 2), 1, random_state=i), x, sigma=1e-9, n_noise=1, random_state=i
        ).n_not_good
        for i in range(200)
    ]
    assert np.mean(counts) == pytest.approx(2 * 0.25, abs=3 * np.std(counts) / math.sqrt(200))
    assert np.mean(counts) <= theory.lc_good_at_start(3, (2, 2)).rhs


# weight decay ------------------------------------------------------------------------------------------


def test_corollary_10_fits_a_slope(rng):
    decays = np.repeat(10.0 ** -np.arange(1, 6), 4)
    pull = np.log(1 / decays)
    noise = np.exp(0.01 * rng.normal(size=len(pull)))
    fine = theory.lc_corollary10(decays, pull**0.5 * noise, norms=pull**0.5 * noise, depth=2)
    assert fine.lhs == pytest.approx(0.5, abs=0.05)
    assert fine.holds
    assert theory.lc_corollary10(decays, pull**1.5 * noise).verdict == "violated"
    assert theory.lc_corollary10(decays, pull * np.exp(rng.normal(size=len(pull)))).holds is not False
    assert theory.lc_corollary10(decays, pull, norms=pull**2 * noise).verdict == "does not apply"
    assert theory.lc_corollary10(decays, 3 * pull + 1).note.endswith("R^2 = 1.00")


# what does not change -----------------------------------------------------------------------------------


def test_permuting_units_changes_nothing(rng):
    w, b, v = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=(1, 6))
    order, x = rng.permutation(6), rng.normal(size=(5, 3))
    options = {"sigma": 0.4, "eta": 0.7, "eps": 1.5, "random_state": 0, "n_noise": 3}
    one = moments(network((w, b), (v, [0.0])), x, **options)
    two = moments(network((w[order], b[order]), (v[:, order], [0.0])), x, **options)
    for function in (theory.lc_corollary3_upper, *CORRECTED):
        if function is not theory.lc_theorem7:  # its total variation depends on which unit has which noise
            first, second = function(one), function(two)
            assert (first.lhs, first.rhs) == (pytest.approx(second.lhs), pytest.approx(second.rhs)), function


def test_rescaling_changes_local_complexity_but_no_verdict():
    net = ShallowNet.random(8, random_state=0)
    x = np.linspace(-1, 1, 5)[:, None]
    checks = [theory.lc_corollary3_upper(n, x, sigma=0.3) for n in (net, net.rescaled(5.0))]
    assert checks[1].lhs != pytest.approx(checks[0].lhs)
    assert all(c.holds for c in checks)


def test_rotating_the_input_changes_nothing(rng):
    w, b, v = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=(1, 6))
    q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    x = rng.normal(size=(5, 3))
    for function in CORRECTED:
        options = {"sigma": 0.4, "random_state": 0, "n_noise": 3}
        one = function(network((w, b), (v, [0.0])), x, **options)
        two = function(network((w @ q, b), (v, [0.0])), x @ q, **options)
        assert (one.lhs, one.rhs) == (pytest.approx(two.lhs), pytest.approx(two.rhs)), function


# which models --------------------------------------------------------------------------------------------


def test_convolutions_in_a_row_are_written_as_matrices(rng):
    torch.manual_seed(0)
    net = (
        nn.Sequential(
            nn.Conv2d(1, 2, 3, padding=1),
            nn.BatchNorm2d(2),
            nn.ReLU(),
            nn.AvgPool2d(2),
            nn.Flatten(),
            nn.Linear(8, 2),
        )
        .double()
        .eval()
    )
    x = rng.normal(size=(3, 1, 4, 4))
    layers = theory.layers_of(net, x)
    assert [w.shape for w in layers.weights] == [(32, 16), (2, 32)]
    hidden = np.maximum(x.reshape(3, -1) @ layers.weights[0].T + layers.offsets[0], 0)
    expected = net(torch.from_numpy(x)).detach().numpy()
    assert hidden @ layers.weights[1].T + layers.offsets[1] == pytest.approx(expected)
    assert theory.lc_theorem5_upper(net, x, sigma=0.3, n_noise=2).holds


@pytest.mark.parametrize(
    ("net", "why"),
    [
        (nn.Sequential(nn.Linear(2, 2)), "no hidden layer"),
        (nn.Sequential(nn.Linear(2, 2), nn.LeakyReLU(), nn.Linear(2, 1)), "relu networks"),
        (nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1)), "affine and piecewise-linear"),
    ],
)
def test_other_models_are_refused_with_a_reason(net, why):
    with pytest.raises(inscape.InscapeError, match=why):
        theory.lc_theorem5_upper(net, np.zeros((2, 2)), sigma=0.1)


def test_arguments_are_checked():
    net = ShallowNet([1.0], [0.0], [1.0])
    with pytest.raises(inscape.InscapeError, match="unknown form 'mine'"):
        theory.lc_theorem7(net, [[0.0]], form="mine")
    with pytest.raises(inscape.InscapeError, match="sigma=0"):
        theory.lc_theorem7(net, [[0.0]], sigma=0)
    with pytest.raises(inscape.InscapeError, match="three different weight decays"):
        theory.lc_corollary10([0.1, 0.1], [1, 2])
    with pytest.raises(inscape.InscapeError, match="different shapes"):
        theory.lc_proposition17(net, ShallowNet([1, 2], [0, 0], [1, 1]), [[0.0]])
