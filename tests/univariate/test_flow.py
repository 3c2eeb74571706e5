"""Gradient flow against an example of the paper, tiny steps of descent and general solvers."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

from inscape.errors import DataError, UnivariateError
from inscape.studies.effective_regions.limit import cell
from inscape.sweeps.tasks import as_tasks
from inscape.univariate import (
    ShallowNet,
    effective_linear_regions,
    gradient_descent,
    gradient_flow,
    kkt_residual,
    label_changes,
    labels_of,
    limit_regions,
    random_teacher,
    region_bound,
    shortest_interval,
)
from inscape.univariate.flow import implicit_weights, log_loss, log_weights

EXAMPLE_1 = ShallowNet([0.0, 0.0], [1.0, 0.0], [1.0, 0.0])


def task(seed, r=3, n=30):
    teacher = random_teacher(r, random_state=seed)
    x = np.random.default_rng(seed).uniform(-1, 1, n)
    return teacher, x, labels_of(teacher, x)


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_example_1_stays(loss):
    run = gradient_flow(EXAMPLE_1, [-4, 4], [1, 1], loss)
    assert run.status == "converged"
    assert run.direction_change == pytest.approx(0, abs=1e-12)
    assert run.net.w.tolist() == [0, 0]  # exactly: the second neuron and the first slope never move
    assert (run.net.b[1], run.net.v[1]) == (0, 0)
    assert run.net.b[0] == pytest.approx(run.net.v[0], rel=1e-12)
    assert run.limit.norm**2 == pytest.approx(2)
    residual = kkt_residual(run.net, [-4, 4], [1, 1])
    assert residual.residual == pytest.approx(0, abs=1e-12)
    assert residual.multipliers.sum() == pytest.approx(1)


def test_example_1_is_not_the_best():
    better = ShallowNet([0.5, -0.5], [0, 0], [0.5, 0.5])
    found = kkt_residual(better, [-4, 4], [1, 1])
    assert better([-4, 4]) == pytest.approx([1, 1])  # feasible
    assert found.norm**2 == pytest.approx(1)
    assert kkt_residual(EXAMPLE_1, [-4, 4], [1, 1]).norm ** 2 == pytest.approx(2 * found.norm**2)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_the_flow_follows_gradient_descent_with_tiny_steps(loss):
    _, x, y = task(1, n=12)
    net = ShallowNet.random(15, init="gaussian", random_state=1)
    flow = gradient_flow(net, x, y, loss, max_steps=1500, step_tolerance=1e-6)
    run = gradient_descent(net, x, y, 1e-3, 400_000, loss, record=4000)
    assert flow.log_loss < np.log(run.loss) < np.log(run.history.loss[0]) - 0.5
    norms = [run.history.net(i).norm for i in range(len(run.history))]
    at_equal_loss = np.interp(-np.log(run.history.loss), -flow.history.log_loss, flow.history.norm)
    assert at_equal_loss == pytest.approx(norms, rel=1e-3)


def test_the_flow_ends_where_a_general_solver_does():
    """Before any margin is large, scipy's LSODA on the log-loss is a second route."""
    _, x, y = task(2, n=8)
    net = ShallowNet.random(6, init="gaussian", random_state=5)

    def velocity(_, theta):
        w, b, v = theta.reshape(3, -1)
        z = np.outer(x, w) + b
        m = y * (np.maximum(z, 0) @ v)
        q = np.exp(log_weights(m, "exponential")) * y
        on = (z > 0) * q[:, None]
        return np.concatenate([v * (x @ on), v * on.sum(0), q @ np.maximum(z, 0)])

    flow = gradient_flow(net, x, y, max_steps=150, step_tolerance=1e-7)
    theta = np.concatenate([net.w, net.b, net.v])
    solved = solve_ivp(velocity, (0, flow.history.time[-1]), theta, method="RK45", rtol=1e-9, atol=1e-11)
    assert solved.success
    expected, found = solved.y[:, -1], np.concatenate([flow.net.w, flow.net.b, flow.net.v])
    assert found == pytest.approx(expected, abs=2e-3 * np.linalg.norm(expected))


@pytest.mark.slow
def test_the_balance_of_each_neuron_is_kept():
    """v^2 - w^2 - b^2 does not change along the flow, also while a neuron slides."""
    _, x, y = task(1, r=1)
    net = ShallowNet.random(40, init="gaussian", random_state=0)
    run = gradient_flow(net, x, y, step_tolerance=1e-5, max_steps=600)
    assert run.history.n_sliding.max() > 0
    before = net.v**2 - net.w**2 - net.b**2
    after = run.net.v**2 - run.net.w**2 - run.net.b**2
    assert run.norm > 3 * net.norm
    assert after == pytest.approx(before, abs=1e-3 * run.norm**2)


@pytest.mark.slow
@pytest.mark.parametrize("init", ["small", "gaussian", "theorem"])
@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_the_flow_ends_at_a_kkt_point(init, loss):
    teacher, x, y = task(1)
    scale = (
        {"n_changes": 3, "shortest": shortest_interval(teacher, -1, 1), "n": 30} if init == "theorem" else {}
    )
    run = gradient_flow(ShallowNet.random(100, init=init, random_state=1, **scale), x, y, loss)
    assert run.converged, run
    residual = kkt_residual(run.net, x, y)
    assert residual.residual < 1e-3
    assert residual.stationarity <= run.direction_change * (1 + 1e-6)  # the multipliers can only be better
    changes = label_changes(x, y)
    assert changes <= effective_linear_regions(run.net, x, y) <= region_bound(changes)
    assert run.log_loss < -100


def test_neurons_held_on_a_data_point_need_subgradients():
    x = np.random.default_rng(0).uniform(-1, 1, 30)
    y = np.where(np.sin(4.5 * x + 0.3) > 0, 1.0, -1.0)
    run = gradient_flow(ShallowNet.random(50, init="small", random_state=0), x, y)
    assert run.converged
    assert (run.on_kink >= 0).any()
    assert kkt_residual(run.net, x, y).residual < 1e-3
    as_rounded = kkt_residual(run.net, x, y, kink_tolerance=0)
    assert as_rounded.stationarity > 0.1  # the same net, no kink on a point
    for j in np.flatnonzero(run.on_kink >= 0):
        assert run.net.w[j] * x[run.on_kink[j]] + run.net.b[j] == pytest.approx(0, abs=1e-9 * run.norm)
        assert not run.active[run.on_kink[j], j]


def test_labels_that_no_step_separates_are_reported():
    dead = ShallowNet([-1.0, -1.0], [-3.0, -4.0], [1.0, -1.0])
    run = gradient_flow(dead, [0, 1], [1, -1])
    assert run.status == "stationary"
    assert not run.converged
    with pytest.raises(UnivariateError, match="no scale with least margin 1"):
        run.limit  # noqa: B018
    short = gradient_flow(ShallowNet.random(20, init="small", random_state=0), *task(0)[1:], max_steps=5)
    assert short.status == "step limit"


def test_implicit_weights_solve_their_equation_at_every_stiffness():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(9, 30))
    margins = rng.normal(size=9)
    for loss in ("exponential", "logistic"):
        for h in 10.0 ** np.arange(-6, 5, 2):
            stiff = h * (a @ a.T)
            z = implicit_weights(stiff, margins, np.full(9, -np.log(9)), loss)
            assert z is not None
            assert np.exp(z) == pytest.approx(
                np.exp(log_weights(margins + stiff @ np.exp(z), loss)), abs=1e-6
            )
    z = implicit_weights(1e22 * (a @ a.T), margins, np.full(9, -np.log(9)), "exponential")
    fun = lambda u: np.exp(u - u.max()) @ (a @ a.T) @ np.exp(u - u.max()) / np.exp(u - u.max()).sum() ** 2  # noqa: E731
    best = minimize(
        fun, np.zeros(9), method="Nelder-Mead", options={"maxiter": 40_000, "maxfev": 40_000, "fatol": 1e-13}
    )
    assert np.exp(z) @ (a @ a.T) @ np.exp(z) == pytest.approx(best.fun, rel=1e-4)  # the steepest ascent


def test_log_loss_where_the_loss_underflows():
    for loss in ("exponential", "logistic"):
        assert log_loss(np.array([2000.0, 2001.0]), loss) == pytest.approx(
            -2000 + np.log((1 + np.exp(-1)) / 2)
        )
    small = np.array([-3.0, 0.5, 35.0])
    assert log_loss(small, "logistic") == pytest.approx(np.log(np.log1p(np.exp(-small)).mean()))


def test_the_result_is_plain_data_and_draws():
    _, x, y = task(0, r=1)
    run = gradient_flow(ShallowNet.random(20, init="gaussian", random_state=0), x, y)
    assert run.to_dict()["status"] == run.status
    assert run.plot().get_xscale() == "log"
    assert run.history.norm[-1] == run.norm
    assert (np.diff(run.history.log_loss) < 1e-9).all()  # the loss never rises


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"y": [0, 1]}, DataError, "neither -1 nor"),
        ({"x": [1, 1]}, DataError, "x=1 comes twice, with values 1 and -1"),
        ({"loss": "square"}, UnivariateError, "unknown loss"),
        ({"net": ShallowNet([1], [0], [1], 2.0)}, UnivariateError, "c = 0"),
        ({"net": ShallowNet([0], [0], [0])}, UnivariateError, "the net is zero"),
        ({"tolerance": 0}, UnivariateError, "between 0 and 1"),
        ({"max_steps": 0}, UnivariateError, "too small"),
    ],
)
def test_bad_input_is_refused(changed, error, message):
    arguments = {"net": ShallowNet([1], [0], [1]), "x": [0, 1], "y": [1, -1]}
    with pytest.raises(error, match=message):
        gradient_flow(**(arguments | changed))


def test_repeated_places_with_equal_labels_are_allowed():
    run = gradient_flow(ShallowNet.random(20, init="gaussian", random_state=0), [-1, -1, 1], [-1, -1, 1])
    assert run.converged
    assert kkt_residual(run.net, [-1, -1, 1], [-1, -1, 1]).residual < 1e-3


@pytest.mark.slow
def test_regions_of_the_limit_are_those_of_its_active_sets():
    """A flow whose knots are still apart: tolerances count 8 regions, the limit has 15."""
    configuration = {"r": 8, "width": 400, "init": "theorem", "n": 50, "max_steps": 1500, "replicate": 0}
    (task_,) = as_tasks([configuration], 0)
    row = cell(task_.seeded)
    assert row["converged"]
    assert row["clear"]
    assert (row["regions"], row["plateau_regions"]) == (15, 8)
    assert row["plateau"] < 0.2


def test_a_kkt_point_by_hand_keeps_its_regions_under_splitting_and_dead_neurons():
    """Two points of unlike label: the sets {left}, {right} have knots in closed form."""
    x, y = np.array([-1.0, 2.0]), np.array([-1.0, 1.0])
    run = gradient_flow(ShallowNet.random(40, init="gaussian", random_state=3), x, y)
    limit = limit_regions(run.net, x, y)
    assert limit.is_clear
    # each set is one point: P = lambda y x, Q = lambda y, so that the knots are at -1 / x
    assert limit.knots.tolist() == pytest.approx([-0.5, 1.0], abs=1e-9)
    # neurons split in two, and a small one that is active nowhere on the data, change nothing
    net = run.limit
    w, b, v = (np.concatenate([a, a]) / 2**0.5 for a in (net.w, net.b, net.v))
    more = ShallowNet([*w, 1e-9], [*b, -3e-9], [*v, 1e-9])
    assert limit_regions(more, x, y).n_regions == limit.n_regions == 3


def test_a_set_that_contradicts_itself_is_on_its_way_to_another():
    """All that bends is at the two points; a small neuron that is active at both of them bends elsewhere.

    Its own knot would be between the points, where a neuron of that knot is active at one of them only.
    """
    x, y = np.array([-0.3, 0.4]), np.array([-1.0, 1.0])
    run = gradient_flow(ShallowNet.random(400, init="gaussian", random_state=1), x, y)
    limit = limit_regions(run.net, x, y)
    net = run.limit
    size = np.abs(net.v) * np.hypot(net.w, net.b)
    small = 1e-6 * size.max() ** 0.5
    more = ShallowNet([*net.w, small], [*net.b, small], [*net.v, small])
    both = limit_regions(more, x, y)
    assert both.n_regions == limit.n_regions
    assert both.knots.tolist() == pytest.approx(limit.knots.tolist())
    assert not both.is_consistent[both.active_sets.all(axis=1)].any()
    assert 0 < both.leaving < 1e-6
    assert both.knot_error < 1e-3


def test_a_net_that_separates_nothing_is_near_to_no_limit():
    with pytest.raises(UnivariateError, match="on the wrong side"):
        limit_regions(ShallowNet([1.0], [1.0], [-1.0]), [1.0], [1.0])


def test_a_slow_direction_is_followed_beyond_norms_of_1e70():
    """The flow goes by norms as long as margins, which are their squares, are numbers of float64."""
    start = ShallowNet([0.0, 0.0], [1e72, 0.0], [1e72, 0.0])  # Example 1, far out
    run = gradient_flow(start, [-4, 4], [1, 1])
    assert run.converged
    assert run.limit.norm == pytest.approx(np.sqrt(2))
