"""A study for the tests of sweeps; its processes import it from here.

Each finished cell leaves a line in the file that SWEEP_LOG names, so that a test can count the work done.
"""

import os
import signal
import threading
import time
from concurrent.futures._base import _AcquireFutures
from contextlib import _GeneratorContextManager
from dataclasses import replace

from inscape.studies import Finding, Study, Summary
from inscape.studies import cell as declared

N = 40


def configurations(scale):
    n = {"smoke": 6, "small": N, "paper": 150}[scale]
    return [{"scale": scale, "i": i // 2, "replicate": i % 2} for i in range(n)]


def cell(configuration):
    time.sleep(0.02 if configuration["scale"] != "paper" else 0)
    log(configuration)
    return row(configuration)


def row(configuration):
    return {"square": configuration["i"] ** 2, "name": f"n°{configuration['i']}", "list": [1, 2.5, None]}


def log(configuration):
    if "SWEEP_LOG" in os.environ:
        with open(os.environ["SWEEP_LOG"], "a") as file:
            file.write(f"{configuration['i']} {configuration['replicate']} {os.getpid()}\n")


def summarise(frame, out):
    (out / "figure.png").write_bytes(b"")
    return Summary(
        findings={"squares": Finding(holds=bool((frame["square"] == frame["i"] ** 2).all()), evidence="all")},
        figures=("figure.png",),
        notes="A note.",
    )


STUDY = Study(
    name="squares",
    title="Squares",
    claims={"squares": "A square is a square."},
    configurations=configurations,
    cell=cell,
    summarise=summarise,
)


def stuck_cell(configuration):
    if configuration["i"] > 1:
        time.sleep(300)
    return row(configuration)


STUCK = Study(name="stuck", title="Four squares", configurations=configurations, cell=stuck_cell)


def interrupt_after(owner, name, condition=lambda *arguments: True):
    """Have Ctrl-C come, once, when the main thread has just called this and the condition holds."""
    original = getattr(owner, name)

    def function(*arguments):
        result = original(*arguments)
        if threading.current_thread() is threading.main_thread() and condition(*arguments):
            setattr(owner, name, original)
            signal.raise_signal(signal.SIGINT)
        return result

    setattr(owner, name, function)


LOCKS = {
    "of the futures": (_AcquireFutures, "__enter__"),
    "of a queue": (threading.Condition, "__enter__"),
    "of the store": (_GeneratorContextManager, "__enter__", lambda self: self.gen.__name__ == "_writing"),
}


def interrupted(path, lock):
    """Run a study on the command line that gets Ctrl-C in the worst moment after the fourth row."""
    from inscape.cli import app
    from inscape.studies import Store

    def insert(self, *arguments):
        original(self, *arguments)
        if len(self.finished()) == 4:
            interrupt_after(*LOCKS[lock])

    original, Store.insert = Store.insert, insert
    app(["study", "run", "sweep_cells:STUCK", "-o", path, "--workers", "2"])


def wait_until(condition):
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)


def meeting_cell(configuration):
    """Work only when two processes do: the first ones wait for each other, most others for a file."""
    folder = os.environ["SWEEP_MEETING"]
    open(os.path.join(folder, str(os.getpid())), "w").close()
    wait_until(lambda: len(os.listdir(folder)) >= 2)
    if configuration["i"] >= 5:
        wait_until(lambda: os.path.exists(os.environ["SWEEP_GO"]))
    log(configuration)
    return row(configuration)


MEETING = Study(name="meeting", title="Meeting", configurations=configurations, cell=meeting_cell)


def sometimes(configuration):
    if configuration["i"] == 1 and not os.path.exists(os.environ["SWEEP_MENDED"]):
        raise ValueError("one is odd")
    return row(configuration)


FAILING = Study(name="failing", title="Failing", configurations=configurations, cell=sometimes)


def deadly(configuration):
    if configuration["i"] == 1 and configuration["replicate"] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return row(configuration)


DEADLY = Study(name="deadly", title="Deadly", configurations=configurations, cell=deadly)


def batch(configurations):
    return [{"together": len(configurations), "square": c["i"] ** 2} for c in configurations]


def touchy_batch(configurations):
    if any(c["i"] == 2 for c in configurations):
        raise ValueError("not with a two")
    return batch(configurations)


def deadly_batch(configurations):
    if any(c["i"] == 2 for c in configurations):
        os.kill(os.getpid(), signal.SIGKILL)
    return batch(configurations)


def parity(configuration):
    return configuration["i"] % 2


BATCHED = Study(
    name="batched", title="Batched", configurations=configurations, cell=cell, batch=batch, together=parity
)


TOUCHY = replace(BATCHED, name="touchy", batch=touchy_batch)
DEADLY_BATCH = replace(BATCHED, name="deadly-batch", batch=deadly_batch)


def hurried(path):
    """Store rows as fast as possible, for being killed."""
    from concurrent.futures import ThreadPoolExecutor

    from inscape.studies import run

    with ThreadPoolExecutor(1) as executor:
        run(STUDY, scale="paper", out=path, executor=executor)


def threads(configuration):
    import torch

    return {"threads": torch.get_num_threads()}


THREADS = Study(name="threads", title="Threads", configurations=configurations, cell=threads)


@declared
def root(configuration):
    i = configuration["i"]
    return {"root": i**0.5 if i >= 0 else float("nan"), "gap": i}
