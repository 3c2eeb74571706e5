"""Gradient descent on univariate nets against a dense loop, and how it says where it ended."""

import numpy as np
import pytest

from inscape.errors import DataError, UnivariateError
from inscape.univariate import ShallowNet, gradient_descent, stability

X = np.linspace(-1.5, 1.5, 20)
Y = np.sin(2 * X)


def dense_descent(net, x, y, step_size, n_steps, loss, momentum=0.0, train_bias=True):
    """Gradient descent written out in numpy, the second route."""
    w, b, v, c = net.w.copy(), net.b.copy(), net.v.copy(), net.c
    speed = [np.zeros_like(w), np.zeros_like(w), np.zeros_like(w), 0.0]
    for _ in range(n_steps):
        z = np.outer(x, w) + b
        a = np.maximum(z, 0)
        f = a @ v + c
        if loss == "square":
            r = (f - y) / len(x)
        else:
            r = -y / len(x) * (np.exp(-y * f) if loss == "exponential" else 1 / (1 + np.exp(y * f)))
        on = (z > 0) * r[:, None]
        gradient = [v * (x @ on), v * on.sum(0), r @ a, r.sum() if train_bias else 0.0]
        speed = [momentum * s + g for s, g in zip(speed, gradient, strict=True)]
        w, b, v = w - step_size * speed[0], b - step_size * speed[1], v - step_size * speed[2]
        c -= step_size * speed[3]
    return ShallowNet(w, b, v, c)


@pytest.mark.parametrize("loss", ["square", "exponential", "logistic"])
@pytest.mark.parametrize("momentum", [0.0, 0.8])
def test_the_steps_are_those_of_the_dense_loop(loss, momentum):
    rng = np.random.default_rng(3)
    x = rng.permutation(np.concatenate([X, X[:2]]))  # any order, repeated places
    y = np.sin(2 * x) if loss == "square" else np.where(np.sin(4 * x) > 0, 1.0, -1.0)
    net = ShallowNet.random(30, random_state=4)
    run = gradient_descent(net, x, y, 0.05, 300, loss, momentum=momentum)
    dense = dense_descent(net, x, y, 0.05, 300, loss, momentum, train_bias=loss == "square")
    for name in ("w", "b", "v", "c"):
        assert getattr(run.net, name) == pytest.approx(getattr(dense, name), abs=1e-12), name
    assert run.n_steps == 300
    assert run.status == "step limit"


def test_the_history_holds_the_path():
    net = ShallowNet.random(10, random_state=0)
    run = gradient_descent(net, X, Y, 0.05, 100, record=10)
    assert run.history.steps.tolist() == list(range(0, 101, 10))
    middle = gradient_descent(net, X, Y, 0.05, 50)
    assert (run.history.net(5).w == middle.net.w).all()
    assert run.history.net(5).c == middle.net.c
    assert run.history.loss[5] == middle.loss == pytest.approx(((middle.net(X) - Y) ** 2).mean() / 2)
    sharpness = run.history.sharpness(X)
    assert sharpness[-1] == pytest.approx(stability(run.net, X, run.net(X), 0.05).sharpness)


def test_batches_of_all_points_are_gradient_descent_and_smaller_ones_follow_the_seed():
    net = ShallowNet.random(10, random_state=0)
    whole, same = (gradient_descent(net, X, Y, 0.05, 200, batch_size=b) for b in (None, 20))
    assert (whole.net.w == same.net.w).all()
    a, b, c = (gradient_descent(net, X, Y, 0.05, 200, batch_size=5, random_state=s) for s in (1, 1, 2))
    assert (a.net.w == b.net.w).all()
    assert not (a.net.w == c.net.w).all()


def test_a_batch_gradient_is_right_on_average():
    net = ShallowNet.random(10, random_state=0)
    full = gradient_descent(net, X, Y, 1e-3, 1).net.w - net.w
    steps = [
        gradient_descent(net, X, Y, 1e-3, 1, batch_size=4, random_state=s).net.w - net.w for s in range(4000)
    ]
    error = np.std(steps, axis=0) / np.sqrt(len(steps))
    assert (np.abs(np.mean(steps, axis=0) - full) <= 5 * error + 1e-18).all()


def test_warm_up_and_change_set_the_step_size():
    run = gradient_descent(
        ShallowNet.random(5, random_state=0), X, Y, 0.02, 60, warm_up=10, change=(40, 3), record=1
    )
    expected = 0.02 * np.minimum(1, (np.arange(61) + 1) / 10) * np.where(np.arange(61) >= 40, 3, 1)
    assert run.history.step_size == pytest.approx(expected)


def test_large_steps_diverge_and_say_so():
    run = gradient_descent(ShallowNet.random(20, random_state=0), X, Y, 50.0, 10_000)
    assert run.status == "diverged"
    assert np.isfinite(run.net.w).all()
    assert np.isfinite(run.net.c)
    assert not run.converged


def test_a_dead_net_is_stationary():
    dead = ShallowNet([-1.0, -1.0], [-5.0, -5.0], [1.0, 1.0])
    run = gradient_descent(dead, X, Y + 1, 0.1, 100_000)
    assert run.status == "stationary"
    assert run.loss == pytest.approx(np.var(Y) / 2)  # only c moves, to the mean
    assert run.n_steps < 100_000


def test_convergence_must_hold_for_a_while():
    net = ShallowNet.random(100, random_state=1)
    quick = gradient_descent(net, X, Y, 0.4, 400_000, warm_up=20_000, tolerance=1e-13, patience=0)
    patient = gradient_descent(net, X, Y, 0.4, 400_000, warm_up=20_000, tolerance=1e-13, patience=5000)
    assert quick.converged
    assert patient.converged
    assert patient.n_steps >= quick.n_steps + 5000
    recorded = patient.history.loss[patient.history.steps >= patient.n_steps - 5000]
    assert (recorded <= 1e-13).all()


@pytest.mark.slow
def test_at_the_edge_of_stability_every_step_size_interpolates():
    """sin 2x on 20 equally spaced points of [-1.5, 1.5], width 100, warm-up over 20,000 steps."""
    sizes = np.array([0.03, 0.05, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45])
    net = ShallowNet.random(100, random_state=1)
    runs = gradient_descent(net, X, Y, sizes, 2_000_000, warm_up=20_000, tolerance=1e-16, patience=5000)
    assert [r.status for r in runs] == ["converged"] * len(sizes)
    found = [stability(r.net, X, Y, s) for r, s in zip(runs, sizes, strict=True)]
    assert all(s.holds_on_data and (s.holds or s.n_knots_on_data) for s in found)
    for s in found[-6:]:
        assert s.sharpness == pytest.approx(s.limit, rel=0.02)
    assert found[0].roughness >= found[-1].roughness - 1e-3


def test_several_nets_and_step_sizes_in_one_call():
    nets = [ShallowNet.random(10, random_state=s) for s in range(3)]
    seen = []
    runs = gradient_descent(
        nets, X, Y, [0.01, 0.1], 500, progress=lambda done, total: seen.append((done, total))
    )
    assert len(runs) == 6
    assert seen[-1] == (6, 6)
    alone = gradient_descent(nets[1], X, Y, 0.1, 500)
    assert (runs[3].net.w == alone.net.w).all()
    assert runs[3].settings["step_size"] == 0.1
    assert len(gradient_descent(nets[0], X, Y, [0.1], 5)) == 1


def test_the_result_is_plain_data_and_draws():
    run = gradient_descent(ShallowNet.random(5, random_state=0), X, Y, 0.1, 20)
    assert run.to_dict()["status"] == run.status
    assert run.plot().get_yscale() == "log"
    assert "step size 0.1" in repr(run)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"x": [0, 0, 1], "y": [1, 2, 3]}, DataError, "x=0 comes twice, with values 1 and 2"),
        ({"x": [0, np.nan, 1], "y": [1, 2, 3]}, DataError, "x has NaN"),
        ({"x": [], "y": []}, DataError, "no data points"),
        ({"x": [0, 1], "y": [1, 2, 3]}, DataError, "x has 2 entries and y has 3"),
        ({"x": np.zeros((2, 2)), "y": [1, 2]}, DataError, "univariate"),
        ({"x": ["a"], "y": [1]}, DataError, "not an array of numbers"),
        ({"loss": "logistic", "y": [0, 1, 1]}, DataError, "label 0 is neither -1 nor"),
        ({"loss": "hinge"}, UnivariateError, "unknown loss 'hinge'"),
        ({"step_size": -1}, UnivariateError, "must be a positive number"),
        ({"step_size": [0.1, np.nan]}, UnivariateError, "must be a positive number"),
        ({"n_steps": 0}, UnivariateError, "n_steps=0 is too small"),
        ({"batch_size": 4}, UnivariateError, "more than the 3 data points"),
        ({"momentum": 1}, UnivariateError, "momentum=1 must be"),
        ({"tolerance": -1}, UnivariateError, "tolerance=-1 must not"),
        ({"change": (3, -1)}, UnivariateError, "factor must be positive"),
        ({"change": 3}, UnivariateError, "must be a pair"),
        ({"net": []}, UnivariateError, "ShallowNet or a list"),
    ],
)
def test_bad_input_is_refused(changed, error, message):
    arguments = {
        "net": ShallowNet([1], [0], [1]),
        "x": [0, 1, 2],
        "y": [1, 1, -1],
        "step_size": 0.1,
        "n_steps": 5,
    }
    with pytest.raises(error, match=message):
        gradient_descent(**(arguments | changed))


def test_repeated_places_with_equal_values_are_allowed():
    run = gradient_descent(ShallowNet.random(20, random_state=0), [0, 0, 1], [1, 1, 2], 0.1, 50_000)
    assert run.converged
