"""Walks through the house: how many files of the package run for one call.

Run `python -m benchmarks walks`: a row per call, then the files by name. Each call is made once before, so
that nothing is imported or compiled in it. A file counts if Python runs a function of it; a compiled loop
counts where it is called from. The fewer files, the sooner a reader is through.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

import inscape
from benchmarks.networks import mlp

PACKAGE = Path(inscape.__file__).parent


def calls() -> dict[str, Callable[[], Any]]:
    """The calls whose files are counted, by what a reader would type."""
    x = np.random.default_rng(0).normal(size=(20, 2))
    patch = inscape.Patch.through(x[:3])
    net = mlp(2, 16, 16, 3)
    return {
        "region_count(mlp, x)": lambda: inscape.region_count(mlp(2, 16, 16, 3), x, random_state=0),
        "linear_regions(net, patch)": lambda: inscape.linear_regions(net, patch),
        'decision_regions(net, patch, method="exact")': lambda: inscape.decision_regions(
            net, patch, method="exact"
        ),
        "local_complexity(net, x, sigma=0.1)": lambda: inscape.local_complexity(
            net, x, sigma=0.1, random_state=0
        ),
    }


def files_of(call: Callable[[], Any]) -> list[str]:
    """The files of the package of which a function runs during a call that was made before."""
    call()
    seen: set[CodeType] = set()

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            seen.add(frame.f_code)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    names = set()
    for code in seen:
        path = Path(code.co_filename)
        if path.is_relative_to(PACKAGE) and code.co_name != "<module>":
            names.add(path.relative_to(PACKAGE).as_posix())
    return sorted(names)


def main() -> None:
    """Print the table, then the files."""
    walks = {name: files_of(call) for name, call in calls().items()}
    for name, files in walks.items():
        print(f"{name:48} {len(files):3} files")
    for name, files in walks.items():
        print(f"\n{name}\n  " + "\n  ".join(files))


if __name__ == "__main__":
    main()
