"""Ctrl-C before a command has begun or after it has ended: one line, as while it runs.

Loading takes half a second, in which an interrupt would surface as a traceback from the middle of an import.
There is nothing to clean up then, so the process ends on the spot. `inscape` installs this as the first thing
that it does, in a process that is the `inscape` command; in anybody else's process nothing is touched.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

STOPPED = "inscape: stopped"
EXIT_CODE = 130
_SCRIPTS = ("inscape", "inscape.exe", "inscape-script.py")


def end_on_interrupt() -> None:
    """Let Ctrl-C end this process if it is the `inscape` command, unless it was started to ignore Ctrl-C."""
    if _is_the_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end)


@contextmanager
def interrupts_raised() -> Iterator[None]:
    """Meanwhile, let Ctrl-C raise KeyboardInterrupt, so that what is at work can be left in order."""
    if signal.getsignal(signal.SIGINT) is not end:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, end)


def _is_the_command() -> bool:
    """Whether a person started this process as `inscape` or `python -m inscape`; its workers are not that."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        return False
    script = next(iter(getattr(sys, "argv", ())), "")
    if script == "-m":
        words = sys.orig_argv
        return "inscape" in words and words[words.index("inscape") - 1] == "-m"
    return os.path.basename(script) in _SCRIPTS


def end(*_: Any) -> None:
    """Say that it was stopped and end the process: the handler of Ctrl-C while a command is loaded."""
    os.write(2, f"{STOPPED}\n".encode())
    os._exit(EXIT_CODE)
