"""Ctrl-C at moments that can bear it."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block; the processes that start in it are born deaf to it.

    Python raises KeyboardInterrupt anywhere, also between the taking of a lock and the block that gives it
    back. Another thread may wait for that lock, and the interpreter waits for the thread before it ends.
    """
    with _recorded(), _blocked():
        yield


@contextmanager
def _recorded() -> Iterator[None]:
    """Remember Ctrl-C and raise it in the end: in the main thread, as Python raises it in no other.

    A handler that is not Python's could not be put back, and is left in its place.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def _blocked() -> Iterator[None]:
    """Have this thread block Ctrl-C, which new processes inherit. Other threads may still catch it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
