"""Sharpness, flattest nets and the chain of inequalities, against dense Hessians, quadrature, brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import laplace, norm, uniform

from inscape.errors import UnivariateError
from inscape.univariate import (
    ShallowNet,
    flattest,
    gradient_descent,
    population_weight,
    stability,
    weight,
)
from inscape.univariate.stability.gram import gram, hessian, sharpness_modes, top_eigenvalue


def written_out(at, x):
    """g as eqs. (22) and (23) have it."""
    x = np.asarray(x, dtype=float)
    if not x.min() <= at <= x.max():
        return 0.0

    def side(below):
        part = x[x < at] if below else x[x > at]
        if len(part) == 0:
            return 0.0
        p = len(part) / len(x)
        return p**2 * np.abs(at - part).mean() * np.sqrt(1 + part.mean() ** 2)

    return min(side(True), side(False))


def test_the_weight_on_three_points_is_its_formula():
    # points 0, 1, 3; at 2: P(X<2) = 2/3, E[2-X|X<2] = 3/2, E[X|X<2] = 1/2; P(X>2) = 1/3, E = 1, E[X|X>2] = 3
    left, right = (2 / 3) ** 2 * 1.5 * np.sqrt(1.25), (1 / 3) ** 2 * np.sqrt(10)
    assert weight(2.0, [0, 1, 3]) == pytest.approx(min(left, right))
    at = np.linspace(-1, 4, 41)
    assert weight(at, [0, 1, 3]) == pytest.approx([written_out(a, [0, 1, 3]) for a in at])


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=12), st.floats(-21, 21))
def test_the_weight_is_its_formula(x, at):
    assert float(weight(at, x)) == pytest.approx(written_out(at, x), abs=1e-9)


@pytest.mark.parametrize(
    ("name", "law"),
    [("uniform", uniform(-(3**0.5), 2 * 3**0.5)), ("gaussian", norm()), ("laplace", laplace(scale=2**-0.5))],
)
def test_population_weights_agree_with_quadrature_and_with_large_samples(name, law):
    at = np.linspace(-2.5, 2.5, 11)
    closed = population_weight(at, name)
    support = (-(3**0.5), 3**0.5) if name == "uniform" else None
    assert closed == pytest.approx(population_weight(at, law.pdf, support=support), abs=1e-9)
    sample = law.rvs(size=200_000, random_state=0)
    assert closed == pytest.approx(weight(at, sample), abs=0.01)


def test_bad_distributions_are_refused():
    with pytest.raises(UnivariateError, match="unknown distribution 'cauchy'"):
        population_weight(0.0, "cauchy")
    with pytest.raises(UnivariateError, match="no interval"):
        population_weight(0.0, norm().pdf, support=(1, 0))
    with pytest.raises(UnivariateError, match="no finite positive integral"):
        population_weight(0.0, lambda x: 0.0, support=(0, 1))


def test_the_gram_spectrum_is_that_of_the_dense_hessian_where_the_net_interpolates():
    rng = np.random.default_rng(0)
    x = rng.normal(size=7)
    net = ShallowNet.random(12, random_state=0)
    values = np.linalg.eigvalsh(hessian(net, x, net(x)))
    assert values[-7:] == pytest.approx(np.linalg.eigvalsh(gram(net, x)), abs=1e-12)
    assert values[:-7] == pytest.approx(0, abs=1e-12)


def test_the_dense_hessian_is_the_second_difference_of_the_loss():
    x, y = np.array([-1.0, 0.3, 0.9]), np.array([1.0, -2.0, 0.5])
    net = ShallowNet.random(4, random_state=2)
    theta = np.concatenate([net.w, net.b, net.v, [net.c]])

    def loss(p):
        return ((ShallowNet(p[:4], p[4:8], p[8:12], p[12])(x) - y) ** 2).mean() / 2

    h, eye = 1e-4, np.eye(13)
    numeric = [
        [
            (
                loss(theta + h * (a + b))
                - loss(theta + h * (a - b))
                - loss(theta - h * (a - b))
                + loss(theta - h * (a + b))
            )
            / (4 * h * h)
            for a in eye
        ]
        for b in eye
    ]
    assert hessian(net, x, y) == pytest.approx(np.array(numeric), abs=1e-6)
    result = stability(net, x, y, 0.1)
    assert result.sharpness == pytest.approx(np.linalg.eigvalsh(np.array(numeric))[-1], abs=1e-5)
    assert result.holds is None
    assert "does not apply" in result.status


@given(st.floats(0.1, 3), st.floats(-0.5, 3), st.floats(0.1, 4), st.floats(0.1, 5))
def test_the_flattest_value_of_one_neuron_on_one_point_in_closed_form(w, b, v, x):
    # K = 1 + c^2 z^2 + v^2 (1 + x^2) / c^2 with z = w x + b, least 1 + 2 z v sqrt(1 + x^2)
    z = w * x + b
    found = flattest(ShallowNet([w], [b], [v]), np.array([x]))
    expected = 1 + 2 * max(z, 0) * v * np.sqrt(1 + x**2)
    assert found.value == pytest.approx(expected, rel=1e-8)
    assert found.gap <= 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_the_flattest_value_of_two_neurons_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-4, 4, 5)
    net = ShallowNet(rng.normal(size=2), rng.normal(size=2) + 1, rng.normal(size=2), 0.3)
    found = flattest(net, x)

    def value(s):
        return top_eigenvalue(gram(net.rescaled(np.exp(np.asarray(s))), x))

    grid = [value((a, b)) for a in np.linspace(-4, 4, 33) for b in np.linspace(-4, 4, 33)]
    assert found.value <= min(grid) * (1 + 1e-9)
    best = minimize(
        value, np.log(found.scale) + 0.3, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-14}
    )
    assert found.value == pytest.approx(best.fun, rel=1e-7)
    assert found.certified <= best.fun * (1 + 1e-12)
    assert value(np.log(found.scale)) == pytest.approx(found.value, rel=1e-12)


def test_the_gap_closes_where_the_top_eigenvalue_is_double():
    x = np.array([-4.0, 4.0])
    net = ShallowNet([1.0, -1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0])
    found = flattest(net, x)
    values = np.linalg.eigvalsh(gram(net.rescaled(found.scale), x))
    assert values[-2] / values[-1] > 0.99
    assert found.gap <= 1e-9


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.floats(0.2, 5))
def test_the_certificate_bounds_every_implementation(seed, spread):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=8) * spread
    net = ShallowNet.random(15, random_state=seed)
    found = flattest(net, x)
    assert found.gap <= 1e-9
    other = net.rescaled(np.exp(rng.normal(size=15)))
    assert found.certified <= top_eigenvalue(gram(other, x)) * (1 + 1e-12)
    assert flattest(other, x).value == pytest.approx(found.value, rel=2e-9)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.floats(0.2, 4))
def test_lower_bound_flattest_and_sharpness_are_in_order_for_every_interpolating_net(seed, spread):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=9) * spread
    net = ShallowNet.random(12, random_state=seed)
    result = stability(net, x, net(x), 1e-3)
    assert result.lower_bound <= result.flattest * (1 + 1e-9) <= result.sharpness * (1 + 2e-9)


@pytest.mark.slow
def test_the_chain_holds_on_fifty_random_converged_runs():
    rng = np.random.default_rng(0)
    count = 0
    while count < 50:
        x = rng.uniform(-1.5, 1.5, rng.integers(4, 10))
        y = np.sin(rng.uniform(1, 3) * x + rng.uniform(0, 6))
        nets = [ShallowNet.random(60, random_state=int(s)) for s in rng.integers(10**6, size=10)]
        size = float(np.exp(rng.uniform(np.log(0.03), np.log(0.4))))
        for run in gradient_descent(nets, x, y, size, 200_000, warm_up=5000, tolerance=1e-13, patience=2000):
            if run.converged:
                count += 1
                found = stability(run.net, x, y, size)
                assert found.holds_on_data, found
                assert found.holds or found.n_knots_on_data, found
                assert found.theorem_2
                assert found.theorem_1 or found.n_knots_on_data
                assert found.flattest_gap <= 1e-9


def test_delta_in_both_readings():
    net = ShallowNet([1.0, 1.0], [0.0, -0.5], [1.0, -2.0])
    x = np.array([-1.0, 0.0, 2.0])
    found = stability(net, x, net(x), 0.1)
    q, c = (1 + 2 - 2) / 3, 2.0 * (1 + 2.0)
    stated = 1.5 * c**2 * q + c * np.sqrt(0.75 * q * (3 * c**2 * q + 20))
    assert found.delta_stated == pytest.approx(stated)
    assert found.delta == pytest.approx(2 * stated)
    assert found.limit_on_data == pytest.approx(
        20 + 6 * c**2 * q + 2 * c * np.sqrt(3 * q * (3 * c**2 * q + 20))
    )
    assert found.n_knots_on_data == 1
    assert "Theorem 2" in found.status


@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_the_bracket_encloses_every_mode(spread):
    x = np.linspace(-spread, spread, 9)
    rng = np.random.default_rng(1)
    for p in (3, 8, 14):
        w = rng.normal(size=p)
        net = ShallowNet(w, -w * x[rng.integers(9, size=p)], rng.normal(size=p))
        modes = sharpness_modes(net, x, 1e-9)
        assert modes.n_toggling == p
        assert modes.is_exact == (spread == 1.0 or p <= 10)
        pairs = np.abs(np.outer(x, net.w) + net.b) < 1e-9
        off = (np.outer(x, net.w) + net.b > 0) & ~pairs
        tops = []
        for _ in range(2**p if p <= 8 else 500):
            mode = off | (pairs & (rng.random(pairs.shape) < rng.random()))
            tops.append(top_eigenvalue(gram(net, x, mode)))
        assert modes.low <= min(tops) * (1 + 1e-12)
        assert modes.high >= max(tops) * (1 - 1e-12)


def test_the_sharpest_of_many_modes_is_found_without_trying_all():
    """Neurons on the same side that toggle on the same point do so together in it: 4 groups of 13 pairs."""
    x = np.array([-3.0, -1.0, 0.5, 2.0])  # 1 + x_j x_l changes its sign
    rng = np.random.default_rng(2)
    for _ in range(3):
        w = np.sign(rng.normal(size=13)) * rng.uniform(0.5, 2, size=13)
        net = ShallowNet(w, -w * x[1 + rng.integers(2, size=13)], rng.normal(size=13))
        modes = sharpness_modes(net, x, 1e-9)
        assert (modes.is_exact, modes.high_is_exact) == (False, True)
        pairs = np.abs(np.outer(x, net.w) + net.b) < 1e-9
        off = (np.outer(x, net.w) + net.b > 0) & ~pairs
        codes = (np.arange(2**13)[:, None] >> np.arange(13)) & 1
        on = off | (pairs & codes[:, None, :].astype(bool))  # (modes, points, neurons)
        ramps = np.maximum(np.outer(x, net.w) + net.b, 0.0)
        slopes = on * net.v
        k = 1 + np.einsum("mjk,mlk->mjl", slopes, slopes) * (1 + np.outer(x, x))
        k += np.einsum("mjk,mlk->mjl", on * ramps, on * ramps)
        tops = np.linalg.eigvalsh(k / 4)[:, -1]
        assert modes.high == pytest.approx(tops.max(), rel=1e-12)
        assert modes.low <= tops.min()


def test_a_net_above_the_edge_fails():
    x = np.array([-1.0, -0.2, 0.7])
    net = ShallowNet([3.0, -2.0], [0.5, 0.1], [3.0, 2.0])
    found = stability(net, x, net(x), 1.0)
    assert found.holds is False
    assert found.theorem_1 is False
    assert found.to_dict()["holds"] is False
    assert found.plot().get_xlabel() == "x"
    assert "fails" in repr(found)
    beside = stability(net, x, net(x) + 1.0, 1.0)
    assert beside.holds is None
    assert repr(beside).count("does not apply") == 1


def test_bad_arguments_are_refused():
    net = ShallowNet([1.0], [0.0], [1.0])
    with pytest.raises(UnivariateError, match="step_size=0 must be"):
        stability(net, [0, 1], [0, 1], 0)
    with pytest.raises(UnivariateError, match="must not be negative"):
        stability(net, [0, 1], [0, 1], 0.1, knot_tolerance=-1)


def test_a_knot_next_to_zero_is_on_the_point_zero():
    nets = [ShallowNet([1, 1], [1, b], [1, 1]) for b in (1e-18, 0.0)]
    near, on = (stability(net, [0, 1], net([0, 1]), 0.1) for net in nets)
    assert near.n_knots_on_data == on.n_knots_on_data == 1
    assert near.bracket == pytest.approx(on.bracket)
    assert near.bracket[0] < near.bracket[1]
    assert stability(nets[0].rescaled(1e6), [0, 1], nets[0]([0, 1]), 0.1).n_knots_on_data == 1


@pytest.mark.parametrize(
    ("bias", "off", "kind"), [(0.5, 0.0, "complete"), (0.0, 0.0, "non_generic"), (0.5, 1.0, "other")]
)
def test_which_theorem_applies_is_the_kind_of_the_status(bias, off, kind):
    net = ShallowNet([1.0], [bias], [1.0])
    status = stability(net, [-1, 0, 1], net([-1, 0, 1]) + off, 0.1).status
    assert (status.kind, status.detail) == (kind, str(status))


def test_a_knot_on_data_does_not_excuse_a_sharpness_above_the_limit():
    net = ShallowNet([1.0, 1.0], [0.0, -0.5], [1.0, -2.0])
    x = np.array([-1.0, 0.0, 2.0])
    sharp = stability(net, x, net(x), 1e-3).sharpness
    found = stability(net, x, net(x), 2.2 / sharp)
    assert found.limit < found.sharpness < found.bracket[1] <= found.limit_on_data
    assert found.holds is False
    assert found.holds_on_data is True
    assert f"{found.sharpness:.4g} > {found.limit:.4g} fails" in repr(found)
    assert "Theorem 2 applies, its chain holds" in repr(found)
    assert found.to_dict()["holds_on_data"] is True
    loose = stability(net, x, net(x), 1e-3, gap=10.0)
    assert loose.holds
    assert loose.flattest <= loose.sharpness


def test_arguments_of_other_kinds():
    torch = pytest.importorskip("torch")
    net = ShallowNet([1.0], [0.5], [1.0])
    for size in (np.float32(0.25), np.array(0.25), torch.tensor(0.25)):
        assert stability(net, [0, 1], net([0, 1]), size).limit == 8.0
    for size in (True, "a", None, 0):
        with pytest.raises(UnivariateError, match="step_size="):
            stability(net, [0, 1], net([0, 1]), size)
    with pytest.raises(UnivariateError, match="give a ShallowNet"):
        stability(None, [0, 1], [0, 1], 0.1)
