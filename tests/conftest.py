"""One environment for all tests, whatever that of the person who runs them, here and in new processes.

One thread per test process: two processes with two threads each fight for two cores. What they import stays
compiled, for the hundred processes that tests start.
"""

import gc
import os
import signal
import sys

for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "VECLIB_MAXIMUM"):
    os.environ[f"{name}_NUM_THREADS"] = "1"
os.environ |= {"INSCAPE_JOBS": "1", "MPLBACKEND": "Agg", "TERM": "dumb"}
sys.dont_write_bytecode = False
for name in (
    "PYTHONWARNINGS",
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR_FORCE",
    "TTY_COMPATIBLE",
):
    os.environ.pop(name, None)

import hypothesis
import numpy as np
import pytest

hypothesis.settings.register_profile("suite", deadline=None, max_examples=50, derandomize=True)
hypothesis.settings.load_profile("suite")


def pytest_collection_finish():
    """Modules and tests stay until the end: garbage is looked for among what tests make."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """A network whose weights a test does not name is the same in every run, whatever ran before it."""
    import torch  # not above: the process that hands out the tests needs none

    torch.manual_seed(0)


def pytest_runtest_teardown():
    """The figures that pyplot keeps are let go."""
    if plt := sys.modules.get("matplotlib.pyplot"):
        plt.close("all")


@pytest.fixture
def interruptible():
    """Ctrl-C counts, here and in new processes: what a shell starts in the background ignores it at first."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def digits():
    from inscape.training import load_data

    return load_data("digits")
