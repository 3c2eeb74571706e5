"""`python -m benchmarks NAME` runs one benchmark; without a name it lists them."""

import importlib
import pkgutil
import sys

import benchmarks
from inscape.compiled import compile_at_once

NAMES = sorted(
    m.name
    for m in pkgutil.iter_modules(benchmarks.__path__)
    if m.name not in ("__main__", "networks", "timing")
)


def main() -> None:
    """Run the benchmark that the command line names."""
    usage = f"usage: python -m benchmarks {{{' | '.join(NAMES)}}}"
    if len(sys.argv) == 1:
        print(usage)
        return
    if len(sys.argv) != 2 or sys.argv[1] not in NAMES:
        print(usage, file=sys.stderr)
        sys.exit(2)
    compile_at_once()  # what is timed is warm; `cold` has processes of its own
    importlib.import_module(f"benchmarks.{sys.argv[1]}").main()


if __name__ == "__main__":
    main()
