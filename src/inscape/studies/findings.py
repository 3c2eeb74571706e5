"""Findings that many studies make."""

from collections.abc import Iterable

from inscape.studies.correlation import Correlation
from inscape.studies.study import Finding


def in_all(held: Iterable[object], of_what: str) -> Finding:
    """Held if it did in every case; undecided if there is none.

    >>> in_all([True, False], "runs").evidence
    'in 1 of 2 runs'
    """
    cases = [bool(h) for h in held]
    if not cases:
        return Finding(holds=None, evidence=f"no {of_what}")
    return Finding(holds=all(cases), evidence=f"in {sum(cases)} of {len(cases)} {of_what}")


def positive(r: Correlation) -> Finding:
    """Held if the whole interval is above zero; undecided if there is no interval.

    >>> positive(Correlation(0.9, (0.8, 0.95), 27)).evidence
    'r = +0.90 [+0.80, +0.95] over 27 configurations'
    """
    known = r.interval[0] == r.interval[0]
    return Finding(
        holds=bool(r.interval[0] > 0) if known else None,
        evidence=f"r = {r} over {r.n} configurations",
        value=float(r.value) if r.value == r.value else None,
        interval=(float(r.interval[0]), float(r.interval[1])) if known else None,
    )
