"""Ctrl-C that waits for the end of a block."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from inscape.sweeps.executors import interrupts_held

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them"),
    pytest.mark.usefixtures("interruptible"),
]


def state():
    return signal.getsignal(signal.SIGINT), signal.pthread_sigmask(signal.SIG_BLOCK, [])


def strike_blocked():
    """Ctrl-C, which waits until this thread takes it.

    It is sent to a thread and not to the process, as the system gives that to any thread that does not block
    it, which may be asleep and so late that a test is over.
    """
    signal.raise_signal(signal.SIGINT)


def strike():
    """Ctrl-C, which this thread takes at once."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    signal.raise_signal(signal.SIGINT)


def strike_elsewhere():
    """Ctrl-C, which another thread takes while this one blocks it; Python tells this one."""
    thread = threading.Thread(target=strike)
    thread.start()
    thread.join()


def hold(interrupt, error, reached):
    with interrupts_held():
        with interrupts_held():
            interrupt()
            reached.append("inner")
        reached.append("outer")
        if error is not None:
            raise error


@pytest.mark.parametrize("error", [None, ValueError])
@pytest.mark.parametrize("interrupt", [strike_blocked, strike, strike_elsewhere])
def test_it_waits_for_the_end_of_the_outermost_block(interrupt, error):
    before, reached = state(), []
    with pytest.raises(KeyboardInterrupt):
        hold(interrupt, error, reached)
    assert reached == ["inner", "outer"]
    assert state() == before


def test_other_threads_may_hold_it():
    def look():
        with interrupts_held():
            masks.append(state()[1])
        masks.append(state()[1])

    masks = []
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert [signal.SIGINT in mask for mask in masks] == [True, False]


def test_processes_are_born_deaf():
    code = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('alive')"
    with interrupts_held():
        assert subprocess.check_output([sys.executable, "-c", code], text=True) == "alive\n"
