"""The KKT residual against closed forms and general solvers."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, nnls

from inscape.errors import DataError, UnivariateError
from inscape.univariate import ShallowNet, kkt_residual
from inscape.univariate.stability.gram import toggling


def best_by_a_general_solver(net, x, y, tol=1e-9):
    """The stationarity over multipliers and subgradients by SLSQP; the net has least margin 1."""
    z = np.outer(x, net.w) + net.b
    kink = np.abs(z) < tol
    pairs = np.argwhere(kink & (net.v != 0))
    on = (z > 0) & ~kink
    theta = np.concatenate([net.w, net.b, net.v])

    def rest(p):
        lam, mu = p[: len(x)], p[len(x) :]
        coefficient = on * lam[:, None]
        for value, (i, j) in zip(mu, pairs, strict=True):
            coefficient[i, j] += value
        pull = coefficient * y[:, None]
        found = [net.v * (x @ pull), net.v * pull.sum(0), (y * lam) @ np.maximum(z, 0)]
        return theta - np.concatenate(found)

    limits = [
        {"type": "ineq", "fun": lambda p, a=a, i=i: p[i] - p[len(x) + a]} for a, (i, _) in enumerate(pairs)
    ]
    size = len(x) + len(pairs)
    results = [
        minimize(
            lambda p: rest(p) @ rest(p),
            start,
            method="SLSQP",
            bounds=[(0, None)] * size,
            constraints=limits,
            options={"maxiter": 500, "ftol": 1e-15},
        ).fun
        for start in (np.full(size, 0.3), np.full(size, 0.01))
    ]
    return np.sqrt(max(min(results), 0)) / np.linalg.norm(theta)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_the_stationarity_is_the_least_over_multipliers_and_subgradients(seed):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-2, 2, 5))
    w = rng.normal(size=5)
    b = -w * x[rng.integers(5, size=5)]  # every knot on a data point
    b[0] += 1
    net = ShallowNet(w, b, rng.normal(size=5))
    y = np.where(net(x) > 0, 1.0, -1.0)
    if np.abs(net(x)).min() < 1e-2:
        return
    scale = np.sqrt(np.abs(net(x)).min())
    net = ShallowNet(net.w / scale, net.b / scale, net.v / scale)
    found = kkt_residual(net, x, y, active_tolerance=1e9)
    assert found.stationarity == pytest.approx(best_by_a_general_solver(net, x, y), abs=2e-4)


@given(st.floats(1e-3, 1e3))
def test_the_residual_does_not_depend_on_the_scale(c):
    net = ShallowNet([1.0, -0.7], [0.3, 0.2], [0.8, 1.1])
    x, y = np.array([-1.0, 0.5, 1.0]), np.array([1.0, 1.0, 1.0])
    a = kkt_residual(net, x, y)
    z = kkt_residual(ShallowNet(c * net.w, c * net.b, c * net.v), x, y)
    assert z.stationarity == pytest.approx(a.stationarity, rel=1e-6)
    assert z.complementarity == pytest.approx(a.complementarity, abs=1e-9)
    assert z.norm == pytest.approx(a.norm)


def test_one_neuron_on_one_point_in_closed_form():
    # f = v (w x + b); at x = 0 the KKT points have b = v = 1, w = 0, lambda = 1
    found = kkt_residual(ShallowNet([0.0], [1.0], [1.0]), [0.0], [1])
    assert found.residual == pytest.approx(0, abs=1e-15)
    assert found.multipliers == pytest.approx([1])
    off = kkt_residual(ShallowNet([0.5], [1.0], [1.0]), [0.0], [1])  # what is left is w
    assert off.stationarity == pytest.approx(0.5 / 1.5)


def test_points_off_the_margin_have_no_multiplier():
    net = ShallowNet([0.0, 1.0], [1.0, -2.0], [1.0, 1.0])
    found = kkt_residual(net, [0.0, 3.0], [1, 1])
    assert found.margins == pytest.approx([1, 2])
    assert found.multipliers[1] == 0
    assert found.complementarity == 0
    loose = kkt_residual(net, [0.0, 3.0], [1, 1], active_tolerance=2)
    assert loose.stationarity <= found.stationarity
    assert loose.complementarity > 0


def test_a_net_that_misclassifies_is_infeasible():
    found = kkt_residual(ShallowNet([1.0], [0.0], [1.0]), [1.0, 2.0], [1, -1])
    assert found.feasibility == pytest.approx(2)
    assert found.to_dict()["feasibility"] == found.feasibility
    assert "feasibility 2" in repr(found)
    assert found.plot().get_ylabel() == "multiplier"


def test_bad_input_is_refused():
    net = ShallowNet([1.0], [0.0], [1.0])
    with pytest.raises(DataError, match="neither -1 nor"):
        kkt_residual(net, [1.0], [0.5])
    with pytest.raises(UnivariateError, match="c = 0"):
        kkt_residual(ShallowNet([1.0], [0.0], [1.0], 1.0), [1.0], [1])
    with pytest.raises(UnivariateError, match="zero at every data point"):
        kkt_residual(net, [-1.0], [1])
    with pytest.raises(UnivariateError, match="must not be negative"):
        kkt_residual(net, [1.0], [1], active_tolerance=-1)


def test_a_knot_next_to_zero_is_on_the_point_zero():
    near, on = (kkt_residual(ShallowNet([1, 1], [1, b], [1, 1]), [0, 1], [1, 1]) for b in (1e-18, 0.0))
    assert near.n_kinks == on.n_kinks == 1
    assert near.stationarity == pytest.approx(on.stationarity)


def best_over_all_modes(net, x, y, kinks):
    """The stationarity by least squares over the gradients of every choice of active kinks."""
    z = np.outer(x, net.w) + net.b
    columns = []
    for i in range(len(x)):
        at = np.flatnonzero(kinks[i])
        for chosen in product([False, True], repeat=len(at)):
            on = (z[i] > 0) & ~kinks[i]
            by_v = np.where(on, z[i], 0.0)
            on[at] = chosen
            columns.append(y[i] * np.concatenate([on * net.v * x[i], on * net.v, by_v]))
    theta = np.concatenate([net.w, net.b, net.v])
    return nnls(np.array(columns).T, theta)[1] / np.linalg.norm(theta)


@pytest.mark.parametrize("seed", [7, 10, 18, 25, 31])
def test_one_neuron_with_kinks_on_several_points(seed):
    rng = np.random.default_rng(seed)
    x = np.round(np.sort(rng.uniform(-2, 2, 4)), 2)
    w = np.round(rng.normal(size=4), 2)
    b = np.round(-w * x[rng.integers(4, size=4)], 2)
    b[0] += 1
    net = ShallowNet(w, b, np.round(rng.normal(size=4), 2))
    y = np.where(net(x) > 0, 1.0, -1.0)
    found = kkt_residual(net, x, y, active_tolerance=1e9, kink_tolerance=0.3)
    scaled = net.norm / found.norm
    net = ShallowNet(net.w / scaled, net.b / scaled, net.v / scaled)
    kinks = toggling(net, x, 0.3)
    assert found.stationarity == pytest.approx(best_over_all_modes(net, x, y, kinks), abs=1e-9)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_several_kinks_per_neuron_and_per_point(seed):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-2, 2, 4))
    w = rng.normal(size=5)
    b = -w * x[rng.integers(4, size=5)]
    w[:2] = b[:2] = 0.0
    b[2] += 1
    net = ShallowNet(w, b, rng.normal(size=5))
    y = np.where(net(x) > 0, 1.0, -1.0)
    if np.abs(net(x)).min() < 1e-2:
        return
    scale = np.sqrt(np.abs(net(x)).min())
    net = ShallowNet(net.w / scale, net.b / scale, net.v / scale)
    found = kkt_residual(net, x, y, active_tolerance=1e9)
    expected = best_by_a_general_solver(net, x, y)
    assert found.stationarity == pytest.approx(expected, abs=2e-5)
    assert found.stationarity <= expected + 1e-7
