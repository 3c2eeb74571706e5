"""Long work is seen where someone watches, and nowhere else."""

import io
import logging
import sys
import threading
import time
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import inscape
from inscape import progress
from inscape.cli.options import ModelOptions
from inscape.compiled import compiled, loops_compiled
from inscape.progress import Compiling, meter


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """A stderr that is a terminal, for us and for rich; pytest puts its own in place of `sys.stderr`."""
    stream = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream, modules={}))
    monkeypatch.setattr("rich.console.sys", SimpleNamespace(**vars(sys) | {"stderr": stream}))
    return stream


@pytest.fixture
def notebook(monkeypatch):
    """What is displayed in a notebook: texts, of which each replaces the one before."""
    shown = []

    def display(bundle, *, raw, display_id):
        shown.append(bundle["text/plain"])
        return SimpleNamespace(update=lambda bundle, raw: shown.append(bundle["text/plain"]))

    ipython, module = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel="a kernel")
    module.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    return shown


def work(asked, seconds=0.0, steps=4):
    with meter(asked, "counting") as show:
        for k in range(steps):
            show(k + 1, steps)
            time.sleep(seconds / steps)


@pytest.mark.parametrize("asked", [None, True, False])
def test_nothing_is_shown_where_nobody_watches(capsys, monkeypatch, asked):
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.01)
    work(asked, seconds=0.1)
    assert capsys.readouterr() == ("", "")


def test_a_function_is_called():
    seen = []
    work(lambda done, total: seen.append((done, total)), steps=2)
    assert seen == [(1, 2), (2, 2)]


def test_in_a_terminal_long_work_has_a_bar_with_what_is_left(terminal, capsys, monkeypatch):
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.1)
    work(None, seconds=1.0)
    text = terminal.getvalue()
    assert "counting" in text
    assert "of 4" in text
    assert "left" in text
    assert capsys.readouterr().out == ""


def test_a_bar_says_nothing_of_what_is_left_before_that_is_known(terminal):
    with progress.Bar("counting") as bar:
        time.sleep(0.3)
        bar(0, 3)
        time.sleep(0.3)
    text = terminal.getvalue()
    assert "passed" in text
    assert "left" not in text


def test_work_that_reports_nothing_yet_is_seen_to_run(terminal, monkeypatch):
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.05)
    with meter(None, "counting"):
        time.sleep(0.4)
    assert "counting" in terminal.getvalue()
    assert "10 ms passed" not in terminal.getvalue()  # of the work, not of its bar


def test_short_work_shows_nothing_unless_asked(terminal):
    work(None)
    assert terminal.getvalue() == ""
    work(True)
    assert "counting" in terminal.getvalue()


def test_silence_is_silent_however_long(terminal, monkeypatch):
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.01)
    work(False, seconds=0.1)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("asked", [None, True])
def test_a_notebook_has_a_bar_that_goes_away(notebook, monkeypatch, asked):
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.05)
    work(asked, seconds=1.0)
    assert any("counting [" in text and "of 4" in text and "left" in text for text in notebook)
    assert notebook[-1] == ""


def test_a_notebook_is_left_alone_when_asked(notebook, monkeypatch):
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.01)
    work(False, seconds=0.1)
    work(None)
    assert notebook == []


@pytest.mark.parametrize("outer", [None, True, False, lambda done, total: None])
@pytest.mark.parametrize("inner", [None, True])
def test_a_part_of_other_work_shows_nothing_of_its_own(terminal, monkeypatch, outer, inner):
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.01)
    with meter(outer, "all"):
        before = terminal.getvalue().count("counting")
        work(inner, seconds=0.1)
        assert terminal.getvalue().count("counting") == before == 0


def test_worker_processes_and_threads_stay_quiet(terminal, monkeypatch):
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.01)
    thread = threading.Thread(target=work, args=(True, 0.1))
    thread.start()
    thread.join()
    monkeypatch.setattr("multiprocessing.parent_process", lambda: "the parent")
    work(True, seconds=0.1)
    assert terminal.getvalue() == ""


def test_a_count_in_a_terminal_shows_a_bar_after_two_seconds_of_it(terminal, monkeypatch):
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.05)

    def slow(x):
        time.sleep(0.1)
        return (x[:, 0] > 0).astype(int)

    inscape.region_count(
        slow, np.random.default_rng(0).normal(size=(20, 2)), n_probes=3, random_state=0, method="grid"
    )
    assert "regions" in terminal.getvalue()
    shown = len(terminal.getvalue())
    inscape.region_count(
        slow,
        np.random.default_rng(0).normal(size=(20, 2)),
        n_probes=3,
        random_state=0,
        method="grid",
        progress=False,
    )
    assert len(terminal.getvalue()) == shown


def told(caplog):
    return [record.message for record in caplog.records if record.name == "inscape"]


def test_compiling_is_announced_once_and_timed(caplog):
    state = Compiling()
    state.AFTER = 0.05
    with caplog.at_level(logging.WARNING, logger="inscape"):
        for _ in range(2):
            state.begin()
            state.begin()  # a loop that the first one calls
            time.sleep(0.3)
            state.end()
            state.end()
        state.report()
        state.report()
    first, second = told(caplog)
    assert first.startswith("compiling what is used for the first time")
    assert second == "compiled in 0.6 s"


def test_nothing_is_said_of_compiling_where_silence_was_asked_for(caplog, monkeypatch):
    state = Compiling()
    state.AFTER = 0.05
    monkeypatch.setattr(progress, "COMPILING", state)
    with caplog.at_level(logging.WARNING, logger="inscape"):
        for asked in (False, None):
            assert told(caplog) == []
            with meter(asked, "all"), meter(None, "part of it"):
                state.begin()
                time.sleep(0.3)
                state.end()
    assert len(told(caplog)) == 2


def test_one_run_of_descent_and_a_step_of_a_monitor_are_seen_to_run(terminal, monkeypatch):
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.001)
    x = np.linspace(-1.0, 1.0, 5)
    net = inscape.univariate.ShallowNet.random(8, random_state=0)
    inscape.univariate.gradient_descent(net, x, x**2, 0.01, 50_000, tolerance=0.0)
    assert "gradient descent" in terminal.getvalue()

    def slow(points):
        time.sleep(0.005)
        return (points[:, 0] > 0).astype(int)

    monitor = inscape.Monitor(np.random.default_rng(0).normal(size=(20, 2)), measures=["region_count"])
    monitor.step(slow, 0)
    assert "decision regions" in terminal.getvalue()


def slow_scores(points):
    time.sleep(0.05)
    return np.column_stack([points[:, 0], -points[:, 0]])


NET = inscape.training.mlp(2, (8,), 2, random_state=0).double()
POINTS, LABELS = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
LINE = np.linspace(-1.0, 1.0, 5)
SHALLOW = inscape.univariate.ShallowNet.random(8, random_state=0)
FOUND = inscape.wrap(NET).labels(POINTS)
START = inscape.univariate.ShallowNet.random(8, init="gaussian", random_state=0)
HAT = inscape.univariate.ShallowNet([1.0, 1.0], [0.0, -1.0], [1.0, -2.0])
PLANE = inscape.Patch([0.0, 0.0], np.eye(2))
RUNS = [{"model": k % 2, "learning_rate": k, "region_count": k**2 % 7, "gap": k} for k in range(20)]
FORWARD = {
    "margin": lambda **how: inscape.margin(slow_scores, POINTS, LABELS, **how),
    "margin over gradients": lambda **how: inscape.margin(NET, POINTS, LABELS, normalise="gradient", **how),
    "margin over norms": lambda **how: inscape.margin(NET, POINTS, LABELS, normalise="spectral", **how),
    "confidence": lambda **how: inscape.confidence(slow_scores, POINTS, **how),
    "entropy": lambda **how: inscape.prediction_entropy(slow_scores, POINTS, **how),
    "nuclear norm": lambda **how: inscape.nuclear_norm(slow_scores, POINTS, **how),
    "agreement": lambda **how: inscape.measures.agreement(slow_scores, POINTS, others=[slow_scores], **how),
    "accuracy": lambda **how: inscape.measure(slow_scores, POINTS, LABELS, measures=["accuracy"], **how),
    "spectral norm": lambda **how: inscape.spectral_norm(NET, POINTS, **how),
    "linear region": lambda **how: inscape.linear_region(NET, POINTS[0], **how),
    "two models": lambda **how: inscape.compare(slow_scores, NET, PLANE, **how),
    "agreement on probes": lambda **how: inscape.agreement(slow_scores, NET, POINTS, n_probes=4, **how),
    "correlations": lambda **how: inscape.correlate(RUNS, n_resamples=200, **how),
    "checks": lambda **how: inscape.theory.check_all(NET, POINTS, LABELS, random_state=0, **how),
    "noisy networks": lambda **how: inscape.theory.lc_theorem7(NET, POINTS, random_state=0, **how),
    "vertices": lambda **how: inscape.theory.vertex_density(NET, POINTS, sigma=0.1, random_state=0, **how),
    "descent of two layers": lambda **how: inscape.theory.two_layer_descent(
        inscape.theory.TwoLayer(np.ones((3, 2)), np.ones(3), np.zeros(3)), POINTS, LABELS, 1e-6, 500, **how
    ),
    "flows": lambda **how: inscape.theory.el_theorem31(
        START, LINE, [1, 1, -1, -1, 1], shortest=1.0, sigma_hidden=1.0, sigma_output=0.2, **how
    ),
    "flows to few regions": lambda **how: inscape.theory.el_theorem23(
        START,
        [-0.6, 0.4],
        [-1, 1],
        inscape.univariate.teacher_of([0.0]),
        sigma_hidden=1.0,
        sigma_output=0.2,
        **how,
    ),
    "strong stability": lambda **how: inscape.univariate.strong_stability(HAT, LINE, HAT(LINE), 0.1, **how),
    "nearest boundary": lambda **how: inscape.boundary_distance(NET, POINTS[0], **how),
    "regions in a box": lambda **how: inscape.enumerate_regions(
        NET, inscape.Box([0.0, 0.0], [1.0, 1.0]), **how
    ),
    "attacks": lambda **how: inscape.adversarial_accuracy(
        NET,
        POINTS,
        FOUND,
        eps=0.1,
        steps=20,
        step_size=0.01,
        random_state=0,
        **how,
    ),
    "sharpness": lambda **how: inscape.sharpness(NET, POINTS, LABELS, random_state=0, **how),
    "stability": lambda **how: inscape.univariate.stability(SHALLOW, LINE, LINE**2, 0.1, **how),
}


@pytest.mark.parametrize("work", FORWARD.values(), ids=FORWARD)
def test_everything_that_may_last_shows_how_far_it_is_and_is_silent_when_asked(terminal, monkeypatch, work):
    """A forward pass over many images, too, takes minutes."""
    seen = []
    work(progress=lambda done, total: seen.append((done, total)))
    assert seen
    assert all(0 <= done <= total for done, total in seen)
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.001)
    work(progress=False)
    assert terminal.getvalue() == ""
    work(progress=True)
    assert "passed" in terminal.getvalue()


def test_a_model_that_takes_long_to_read_is_seen_to_be_read(terminal, monkeypatch, tmp_path):
    """To import torch alone takes seconds on a busy machine."""
    source = "import time\ndef net():\n    time.sleep(0.1)\n    return lambda x: (x[:, 0] > 0).astype(int)\n"
    (tmp_path / "slowly_built.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.001)
    ModelOptions().read("slowly_built:net", x=POINTS)
    assert "reading slowly_built:net" in terminal.getvalue()


def test_predictions_of_many_points_are_seen_to_run(terminal, monkeypatch):
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.01)
    inscape.wrap(slow_scores).labels(POINTS)
    assert "points" in terminal.getvalue()


def test_a_moment_of_compiling_is_not_worth_a_word(caplog):
    state = Compiling()
    with caplog.at_level(logging.WARNING, logger="inscape"):
        state.begin()
        state.end()
        state.report()
    assert told(caplog) == []


def test_loops_of_this_package_that_are_compiled_are_told_of(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "inscape.compiled.kept_loops.COMPILING",
        SimpleNamespace(begin=lambda: seen.append("begin"), end=lambda: seen.append("end")),
    )

    def loop(x):
        return x + 1

    loop.__module__ = "inscape.partition.somewhere"
    with loops_compiled(True):
        assert compiled(loop)(1) == 2
    assert seen == ["begin", "end"]

    def foreign(x):
        return x + 2

    with loops_compiled(True):
        assert compiled(foreign)(1) == 3
    assert seen == ["begin", "end"]
