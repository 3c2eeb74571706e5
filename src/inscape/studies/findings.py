"""Findings that many studies make."""

from collections.abc import Iterable

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
