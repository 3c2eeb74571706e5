"""Exact counts on segments against rational arithmetic: how many are right, flagged, refused or wrong.

Run `python -m benchmarks rational` from a checkout: the networks and the oracle are those of the tests.
`INSCAPE_NETS` says how many networks, 20,000 if it is not set, shared out among the families. A row prints,
of decision regions, how many are right with the status "complete", right with ties, flagged (the labels
differ, and the status says that they are not certain), refused, and wrong; of linear pieces, how many are
right, differ within the tolerances, and are wrong; and of all boundaries the largest true difference of the
two scores there, in units of the rounding bound.
"""

import os
from collections import Counter
from importlib import import_module

import torch

DECISION = ("right", "tied", "flagged", "refused", "wrong")
HEAD = (
    *("family", "nets", "right", "right, ties", "flagged", "refused", "wrong"),
    *("pieces right", "close", "wrong", "offset"),
)
LINEAR = ("right", "close", "wrong")


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    families, judged = (
        import_module("tests.oracles.families"),
        import_module("tests.oracles.comparison").judged,
    )
    names = list(families.FAMILIES)
    n = int(os.environ.get("INSCAPE_NETS", "20000"))
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for i, name in enumerate(names):
        verdicts = [judged(families.case(name, k)) for k in range(i, n, len(names))]
        decision, linear = Counter(v.decision for v in verdicts), Counter(v.linear for v in verdicts)
        counts = [len(verdicts), *(decision[k] for k in DECISION), *(linear[k] for k in LINEAR)]
        largest = max((o for v in verdicts for o in v.offsets), default=0.0)
        print(f"| {name} | {' | '.join(f'{c:,}' for c in counts)} | {largest:.2g} |", flush=True)
