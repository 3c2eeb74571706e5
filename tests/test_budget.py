"""Work that is foreseen to take too long is stopped, by a clock that the tests turn."""

import numpy as np
import pytest
import torch
from torch import nn

import inscape
from inscape.budget import as_budget, timed, within_budget
from inscape.errors import BudgetError


@pytest.fixture
def clock(monkeypatch):
    """A clock of which each look passes so many seconds as the test says."""
    now = {"time": 0.0, "step": 0.0}

    def look():
        now["time"] += now["step"]
        return now["time"]

    monkeypatch.setattr("time.perf_counter", look)
    return now


@pytest.mark.parametrize("budget", [0, -1.0, "soon", True, float("nan")])
def test_a_budget_is_a_number_of_seconds(budget):
    with pytest.raises(BudgetError, match="must be a positive number of seconds, or None"):
        as_budget(budget)


def test_work_that_its_first_second_foresees_to_be_too_long_is_stopped(clock):
    shown = []
    meter = within_budget(lambda *amount: shown.append(amount), 10.0, "this", "do less")
    clock["step"] = 0.5
    meter(1, 100)
    meter(2, 100)
    with pytest.raises(BudgetError, match="this would take about 50 s, over the budget of 10 s: do less, or"):
        meter(3, 100)
    assert shown == [(1, 100), (2, 100), (3, 100)]


def test_work_within_the_budget_goes_on(clock):
    meter = within_budget(lambda done, total: None, 60.0, "this", "do less")
    clock["step"] = 0.5
    for done in range(1, 101):
        meter(done, 100)


def test_a_slow_first_second_is_looked_at_again(clock):
    """It foresees 30 s of the 10 that are allowed; the next show that 8 are enough, or that they are not."""

    def after_a_slow_start(step):
        meter = within_budget(lambda done, total: None, 10.0, "this", "do less")
        clock["step"] = 1.2
        meter(0, 100)
        meter(4, 100)
        clock["step"] = step
        for done in range(5, 101):
            meter(done, 100)

    after_a_slow_start(0.05)
    with pytest.raises(BudgetError, match="this would take about 30 s"):
        after_a_slow_start(0.3)


def test_the_first_report_is_not_timed(clock):
    """Whatever happens once, such as compiling, comes before it."""
    clock["time"] = 1e6
    meter = within_budget(lambda done, total: None, 60.0, "this", "do less")
    clock["step"] = 0.1
    for done in range(1, 101):
        meter(done, 100)


def test_without_a_limit_no_clock_is_looked_at(monkeypatch):
    monkeypatch.setattr("time.perf_counter", None)
    within_budget(lambda done, total: None, as_budget(None), "this", "do less")(1, 2)


def test_the_second_run_is_timed(clock):
    runs = []

    def job():
        runs.append(1)
        clock["time"] += 100.0 if len(runs) == 1 else 7.0

    assert timed(job) == 7.0


def test_a_run_that_is_too_long_to_be_repeated_counts(clock):
    def job():
        clock["time"] += 100.0

    assert timed(job, once_above=99.0) == 100.0
    assert clock["time"] == 100.0


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8 * 144, 600),
        nn.ReLU(),
        nn.Linear(600, 5),
    )


IMAGES = np.random.default_rng(0).random((40, 1, 12, 12))
LABELS = np.arange(40) % 5


@pytest.mark.parametrize(
    ("call", "work"),
    [
        (
            lambda **how: inscape.sharpness(network(), IMAGES, LABELS, random_state=0, **how),
            "sharpness on 40 points",
        ),
        (
            lambda **how: inscape.linear_regions(network(), inscape.Patch.through(IMAGES[:3]), **how),
            r"about [\d,]+ linear regions on this plane",
        ),
        (
            lambda **how: inscape.decision_regions(
                network(), inscape.Patch.through(IMAGES[:3]), method="exact", **how
            ),
            r"about [\d,]+ linear regions on this plane",
        ),
        (
            lambda **how: inscape.compare(
                network(), network(), inscape.Patch.through(IMAGES[:3]), method="exact", **how
            ),
            r"about [\d,]+ linear regions on this plane",
        ),
    ],
    ids=["sharpness", "linear plane", "decision plane", "two models"],
)
def test_what_is_foreseen_to_be_too_long_is_refused(call, work):
    with pytest.raises(BudgetError, match=rf"{work}.* would take about .*, over the budget of 10 ms: "):
        call(budget=1e-6)


def test_a_small_plane_of_a_large_network_is_not_refused():
    patch = inscape.Patch.through(IMAGES[:3])
    small = inscape.Patch(patch.origin, patch.axes, ((0.0, 1e-3), (0.0, 1e-3)))
    assert inscape.linear_regions(network(), small, budget=20).n_regions >= 1


def test_passes_over_points_stop_in_time(monkeypatch):
    monkeypatch.setattr("inscape.budget.TIMED_SECONDS", 0.0)
    net = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
    patch = inscape.Patch([0.0, 0.0], np.eye(2))
    x = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(
        BudgetError, match=r"a density map of 60 x 60 points would take .*lower the resolution"
    ):
        inscape.density_map(net, patch, 60, sigma=0.1, random_state=0, budget=1e-9)
    with pytest.raises(BudgetError, match=r"local complexity of these points would take .*fewer points"):
        inscape.local_complexity(net, x, sigma=0.1, random_state=0, budget=1e-9)
    with pytest.raises(BudgetError, match="local_complexity and local_rank would take"):
        inscape.measure(net, x, measures=["local_complexity", "local_rank"], random_state=0, budget=1e-9)
    table = inscape.measure(net, x, measures=["local_complexity", "local_rank"], random_state=0, budget=None)
    assert [row["status"] for row in table.rows] == ["complete", "complete"]
    with pytest.raises(BudgetError, match=r"total variation at these points would take .*fewer points"):
        inscape.total_variation(net, np.repeat(x, 6, axis=0), budget=1e-9)


@pytest.mark.parametrize("method", ["adaptive", "grid", "auto"])
def test_comparisons_stop_in_time(monkeypatch, method):
    monkeypatch.setattr("inscape.budget.TIMED_SECONDS", 0.0)
    net, x = network(), IMAGES
    with pytest.raises(
        BudgetError, match=r"regions of Sequential.* on 50 probes would take .* smaller probes"
    ):
        inscape.agreement(net, net, x, n_probes=50, method=method, random_state=0, budget=1e-9)
    segments = [inscape.Segment(x[0], other) for other in x[1:]]
    with pytest.raises(BudgetError, match=r"on 39 probes would take .*, or allow it with budget=None"):
        inscape.compare([net, network()], segments, method=method, budget=1e-9)


def test_singular_values_are_foreseen_before_the_first():
    """Those of one Jacobian of a convolution on photographs take minutes, in which no clock is looked at."""
    with pytest.raises(BudgetError, match=r"singular values of 160 Jacobians would take .*give fewer points"):
        inscape.local_rank(network(), np.tile(IMAGES, (2, 1, 1, 1)), eps=1e-3, budget=1e-6)
    net = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
    assert inscape.local_rank(net, [[0.0, 1.0]], eps=1e-9, budget=1e-6).value == 2  # no time is worth a look


def test_attacks_and_hulls_say_what_they_would_take(monkeypatch):
    monkeypatch.setattr("inscape.budget.TIMED_SECONDS", 0.0)
    net, x = network(), IMAGES
    y = inscape.wrap(net).labels(x)
    attack = {"eps": 1e-6, "steps": 1000, "step_size": 1e-7, "random_state": 0}
    with pytest.raises(BudgetError, match=r"an attack of 1,000 steps on .* give fewer points or steps"):
        inscape.adversarial_accuracy(net, x, y, **attack, budget=1e-6)
    many = np.tile(IMAGES, (100, 1, 1, 1))
    with pytest.raises(BudgetError, match=r"corners of .* hulls .* fewer points or directions"):
        inscape.hull_crossings(net, many, radius=0.1, n_directions=8, random_state=0, budget=1e-6)


def test_checks_of_theory_say_what_they_would_take(monkeypatch):
    net = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
    x = np.random.default_rng(0).normal(size=(50, 2))
    monkeypatch.setattr("inscape.budget.TIMED_SECONDS", 0.0)
    with pytest.raises(
        BudgetError, match=r"noisy networks at these points would take .* or a smaller n_noise"
    ):
        inscape.theory.check_all(net, x, random_state=0, budget=1e-9)
    with pytest.raises(BudgetError, match="noisy networks at these points would take"):
        inscape.theory.lc_theorem7(net, x, random_state=0, budget=1e-9)
    table = inscape.theory.check_all(net, x, n_noise=2, random_state=0, budget=None)
    assert any(check.name == "lc_theorem7" and check.verdict != "does not apply" for check in table)
    wide = nn.Sequential(nn.Linear(800, 900), nn.ReLU(), nn.Linear(900, 900), nn.ReLU(), nn.Linear(900, 2))
    with pytest.raises(BudgetError, match=r"singular values of 3,840 Jacobians would take .* fewer points"):
        inscape.theory.check_all(wide, np.ones((60, 800)), random_state=0, budget=1e-6)


def test_searches_end_when_their_time_is_up():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(12, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 3))
    near = inscape.boundary_distance(net, np.zeros(12), budget=1e-6)
    assert near.status.kind == "budget"
    assert "the time is up" in near.status
    assert near.lower <= inscape.boundary_distance(net, np.zeros(12), max_regions=20).upper
    assert near.lower <= near.upper < np.inf
    some = inscape.enumerate_regions(net, inscape.Box(np.zeros(12), 1.0), budget=1e-6)
    assert (some.n_regions, some.status.kind, some.is_exact) == (1, "budget", False)
    assert "give a smaller body, or budget=None" in some.status
