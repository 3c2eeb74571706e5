"""The first use on a machine: CPU seconds of fresh processes, with an empty cache of compiled loops.

Run `python -m benchmarks cold`. Each row is a process of its own that imports what its user's script would
import itself (torch; the column `imports`), and then does one thing for the first time (the column `work`:
all that inscape loads, compiles and computes). Seconds are those of the processor, of the process and its
children, on one thread, the best of `INSCAPE_ROUNDS` rounds (2 by default). What else the machine does
changes them less than it changes the clock, but cores that share a cache still take half as long again. The
bar is for `work`; for README's example it is for both columns together, since the example is all that there
is. Python runs loops as they stand while there is little to do; the plane of many regions is compiled, and
the last rows are those of processes that find their loops on disk.

To compare two versions, name the folder of the other one: `INSCAPE_OTHER=folder python -m benchmarks cold`
measures both in turns and prints the figures of the other beside.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

HERE = Path(__file__).parent.parent
CLOCK = """
import os
def seconds():
    return sum(os.times()[:4])
"""
NETWORK = """
import numpy as np, torch
from torch import nn
"""
USE_NETWORK = """
import inscape
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))
patch = inscape.Patch([0.0, 0.0], np.eye(2))
"""
COUNT = "inscape.region_count(net, np.random.default_rng(0).normal(size=(100, 2)), random_state=0)"
LARGE = """
deep = nn.Sequential(nn.Linear(2, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 3))
inscape.linear_regions(deep, patch)
"""
COMPILE = """
try:
    from inscape.compiled import compile_at_once
    compile_at_once()
except ImportError:  # an earlier version, which compiles everything
    pass
"""
LINEAR = "inscape.linear_regions(net, patch)"
DECISION = "inscape.decision_regions(net, patch, method='exact')"
ADAPTIVE = "inscape.decision_regions(net, patch, method='adaptive')"


class First(NamedTuple):
    """Something done for the first time: the imports of its user's script, the work, and the bar for it.

    `before` is what another process did with the same cache of compiled loops.
    """

    name: str
    imports: str
    work: str
    bar: float | None = None
    is_bar_for_all: bool = False
    before: str = ""


def firsts() -> list[First]:
    """The rows of the table."""
    use = USE_NETWORK
    return [
        First("region_count of a torch network", NETWORK, use + COUNT, 2.5),
        First("README's example", "", readme_example(), 5.0, is_bar_for_all=True),
        First("exact plane (linear regions)", NETWORK, use + LINEAR, 10.0),
        First("exact plane (decision regions)", NETWORK, use + DECISION),
        First("adaptive plane", NETWORK, use + ADAPTIVE),
        First("all of these", NETWORK, "\n".join([use, COUNT, LINEAR, DECISION, ADAPTIVE])),
        First("exact plane of many regions", NETWORK, use + LARGE),
        First("exact plane, all loops on disk", NETWORK, use + LINEAR, 1.0, before=use + COMPILE + LINEAR),
        First("exact plane of many, all on disk", NETWORK, use + LARGE, before=use + COMPILE + LARGE),
    ]


def readme_example() -> str:
    """The first block of Python in README.md."""
    found = re.search(r"```python\n(.*?)```", (HERE / "README.md").read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def main() -> None:
    """Print the table."""
    rounds = int(os.environ.get("INSCAPE_ROUNDS", "2"))
    other = os.environ.get("INSCAPE_OTHER")
    versions = [HERE, *([Path(other)] if other else [])]
    heading = f"{'CPU seconds of the first':36} {'bar':>9} {'imports':>8} {'work':>7} {'in all':>7}"
    print(heading + ("   other: imports, work, in all" if other else ""), flush=True)
    for first in firsts():
        times = np.array([[run(first, version) for version in versions] for _ in range(rounds)])
        best = times[times.sum(axis=2).argmin(axis=0), range(len(versions))]
        bar = "-" if first.bar is None else f"{first.bar:g}" + (" in all" if first.is_bar_for_all else "")
        columns = [f"{a:>8.2f} {b:>7.2f} {a + b:>7.2f}" for a, b in best]
        print(f"{first.name:36} {bar:>9} {'   '.join(columns)}", flush=True)


def run(first: First, version: Path) -> tuple[float, float]:
    """The CPU seconds of the imports and of the work, in a process of its own with a cache of its own."""
    with tempfile.TemporaryDirectory() as folder:
        if first.before:
            in_process(timed(first.imports, first.before), version, folder)
        imports, work = in_process(timed(first.imports, first.work), version, folder).splitlines()[-1].split()
        return float(imports), float(work)


def timed(imports: str, work: str) -> str:
    """A script that prints the CPU seconds of its two steps."""
    return "\n".join([CLOCK, "a = seconds()", imports, "b = seconds()", work, "print(b - a, seconds() - b)"])


def in_process(script: str, version: Path, folder: str) -> str:
    """What a script prints in a fresh process that keeps compiled loops in a folder."""
    settings = {
        "NUMBA_CACHE_DIR": f"{folder}/loops",
        "PYTHONPATH": str(version / "src"),
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "agg",
    }
    finished = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | settings,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return finished.stdout


if __name__ == "__main__":
    main()
