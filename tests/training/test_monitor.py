"""The monitor measures at its steps, and leaves the weights bit for bit."""

import copy
import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from networks import mlp, seeded
from torch import nn

import inscape
from inscape.errors import MeasureError


def data(n=200):
    x = torch.randn(n, 6, generator=torch.Generator().manual_seed(0))
    return x, (x[:, 0] + 0.3 * x[:, 1] ** 2 > 0).long()


def restless():
    """A network whose training draws random numbers and keeps running statistics."""
    with seeded(1):
        return nn.Sequential(
            nn.Linear(6, 16),
            nn.BatchNorm1d(16),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(16, 8),
            nn.ReLU(),
            nn.Linear(8, 2),
        )


def train(net, monitor=None, steps=60):
    x, y = data()
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - the loop of a user who does so
    torch.manual_seed(0)
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
    net.train()
    for step in range(steps):
        batch = torch.from_numpy(np.random.permutation(200)[:32])  # noqa: NPY002
        loss = F.cross_entropy(net(x[batch]) * (1 + 0.01 * random.random()), y[batch])
        optimiser.zero_grad()
        loss.backward()
        if monitor is not None:
            monitor.step(net, step)  # between backward and step: gradients must survive
        optimiser.step()
    return net


ALL = {
    "region_count": {"n_probes": 5},
    "local_complexity": {"sigma": 0.1, "n_noise": 2},
    "local_rank": {"eps": 0.01, "n_points": 4},
    "total_variation": {},
    "hull_crossings": {"radius": 0.1, "n_directions": 2},
    "sharpness": {"n_points": 20},
    "margin": {},
    "spectral_norm": {},
    "path_norm": {},
    "adversarial_accuracy": {"eps": 0.1, "steps": 2, "step_size": 0.05},
    "accuracy": {},
    "churn": {"n_probes": 4},
    "confidence": {},
    "prediction_entropy": {},
    "nuclear_norm": {},
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Sequential predicts class")  # at the start it may
@pytest.mark.parametrize("measures", [None, ALL], ids=["default", "all"])
def test_weights_are_bit_identical_with_and_without(measures):
    net = restless()
    monitor = inscape.Monitor(*data(), measures=measures, every=7, n_points=30)
    watched, alone = train(copy.deepcopy(net), monitor), train(net)
    assert len(monitor.rows) == 9
    for (name, a), b in zip(watched.state_dict().items(), alone.state_dict().values(), strict=True):
        assert torch.equal(a, b), name
    assert all(m.training for m in watched.modules())


def test_the_frame_has_one_row_per_step_and_equals_a_direct_measurement():
    x, y = data()
    net = mlp(6, 8, 8, 2)
    monitor = inscape.Monitor(x, y, every=10, random_state=3)
    assert monitor.step(net, 5) is None
    row = monitor.step(net, 10)
    assert row["step"] == 10
    frame = monitor.to_frame()
    expected = ["local_complexity", "total_variation", "accuracy", "margin"]
    assert [c for c in frame.columns if c in expected] == expected
    again = monitor.record(net, 11)
    assert {k: v for k, v in again.items() if k not in ("step", "seconds")} == {
        k: v for k, v in row.items() if k not in ("step", "seconds")
    }
    direct = inscape.local_complexity(
        net, monitor.x[:10], sigma=0.1, n_noise=2, precision="float32", random_state=3
    )
    assert row["local_complexity"] == pytest.approx(direct.value, rel=1e-6)
    assert row["accuracy"] == (inscape.wrap(net).labels(monitor.x) == monitor.y).mean()
    assert "2 steps" in repr(monitor)


def test_probes_are_drawn_once_and_by_the_seed():
    x, y = data()
    a, b, c = (inscape.Monitor(x, y, n_points=50, random_state=s) for s in (0, 0, 1))
    assert np.array_equal(a.x, b.x)
    assert not np.array_equal(a.x, c.x)
    assert a.x.shape == (50, 6)
    assert len(np.unique(a.x, axis=0)) == 50
    assert inscape.Monitor(x, y, n_points=None).x.shape == (200, 6)
    rows = [int((x.numpy() == p).all(axis=1).argmax()) for p in a.x]
    assert a.y.tolist() == y[rows].tolist()


def test_schedules():
    x, _ = data()
    every = inscape.Monitor(x, every=25)
    assert [s for s in range(101) if every.due(s)] == [0, 25, 50, 75, 100]
    log = inscape.Monitor(x, every="log")
    steps = [s for s in range(10001) if log.due(s)]
    assert steps[:3] == [0, 1, 2]
    assert {10, 100, 1000, 10000} <= set(steps)
    assert len([s for s in steps if 100 <= s < 1000]) == 10
    own = inscape.Monitor(x, every=lambda step: step == 3)
    assert [s for s in range(9) if own.due(s)] == [3]
    for every in (0, "linear", 2.5):
        with pytest.raises(MeasureError, match=f"every={every!r}"):
            inscape.Monitor(x, every=every)


def test_logging_and_measures_that_do_not_apply():
    x, y = data()
    logged = []
    monitor = inscape.Monitor(
        x,
        y,
        measures=["local_complexity", "total_variation", "accuracy"],
        every=1,
        log_fn=lambda values, step: logged.append((step, values)),
    )
    monitor.step(nn.Sequential(nn.Linear(6, 4), nn.GELU(), nn.Linear(4, 2)), 4)
    assert logged[0][0] == 4
    assert set(logged[0][1]) == {"accuracy", "total_variation"}
    assert "GELU" in monitor.notes["local_complexity"]
    assert monitor.rows[0]["local_complexity"] is None


def test_plot_shows_every_curve():
    x, y = data()
    monitor = inscape.Monitor(x, y, every="log")
    net = mlp(6, 8, 2)
    for step in range(40):
        monitor.step(net, step)
    figure = monitor.plot().figure
    assert [ax.get_title() for ax in figure.axes] == [
        "local complexity",
        "total variation",
        "accuracy",
        "margin",
    ]
    assert all(ax.get_xscale() == "symlog" for ax in figure.axes)
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert monitor.plot(ax) is ax
    assert len(ax.lines) == 4


def test_bad_measures_are_refused():
    x, y = data()
    with pytest.raises(inscape.InscapeError, match=r"unknown measure 'sharpnes'.*did you mean 'sharpness'"):
        inscape.Monitor(x, y, measures=["sharpnes"])
    with pytest.raises(MeasureError, match=r"unknown setting of margin 'normalize'"):
        inscape.Monitor(x, y, measures={"margin": {"normalize": "none"}})
    with pytest.raises(MeasureError, match=r"n_points=0 is too small"):
        inscape.Monitor(x, y, measures={"margin": {"n_points": 0}})
    with pytest.raises(MeasureError, match=r"settings of margin are None"):
        inscape.Monitor(x, y, measures={"margin": None})
    monitor = inscape.Monitor(x, y, measures="accuracy")
    for step in (1.5, "a", None, -1):
        with pytest.raises(MeasureError, match="step="):
            monitor.step(mlp(6, 4, 2), step)


def test_a_named_measure_is_that_measure_and_the_frame_says_its_settings():
    x, y = data()
    net = mlp(6, 8, 2)
    monitor = inscape.Monitor(x, y, measures=["total_variation"], n_points=20)
    direct = inscape.total_variation(net, monitor.x)
    assert monitor.step(net, 0)["total_variation"] == pytest.approx(direct.value, rel=1e-12)
    settings = monitor.to_frame().attrs["settings"]["total_variation"]
    assert settings["sigma"] is None
    assert settings["n_points"] == 20
    default = inscape.Monitor(x, y, n_points=20)
    default.step(net, 0)
    found = default.to_frame().attrs["settings"]
    assert (found["total_variation"]["sigma"], found["total_variation"]["n_points"]) == (0.1, 10)
    assert (found["local_complexity"]["n_noise"], found["accuracy"]["n_points"]) == (2, 20)


def test_targets_of_several_columns():
    x, _ = data()
    net, targets = mlp(6, 4, 2), torch.randn(len(x), 2)
    monitor = inscape.Monitor(x, targets, measures={"sharpness": {"loss": "mse"}}, n_points=None)
    expected = inscape.sharpness(net, x, targets, loss="mse").value
    assert monitor.step(net, 0)["sharpness"] == pytest.approx(expected)


def test_functions_of_ones_own_are_measured_too():
    def largest(model, x):
        return float(np.abs(model.scores(x)).max())

    x, y = data()
    monitor = inscape.Monitor(x, y, measures={"largest": largest, "margin": {"n_points": 5}}, every=1)
    net = mlp(6, 8, 2)
    row = monitor.step(net, 0)
    assert row["largest"] == pytest.approx(largest(inscape.wrap(net), monitor.x))
    assert monitor.settings["margin"]["n_points"] == 5
    assert inscape.Monitor(x, y, measures=[largest]).record(net, 0)["largest"] == row["largest"]
