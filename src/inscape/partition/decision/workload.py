"""How much work a count will be, said before it begins: refused if it would not end, announced if long."""

from inscape.errors import PartitionError, warn

MOST_EVALUATIONS = 10**11
"""Of the model, in one call: a small network takes more than a day."""
ANNOUNCED_ABOVE_EVALUATIONS = 2**22
"""From here on a small network takes seconds or minutes, and a large one hours."""
MOST_SECONDS = 24 * 3600.0
ANNOUNCED_ABOVE_SECONDS = 10.0
CELL_DIMENSION, CELL_SECONDS, CELL_GROWTH = 7, 4.0, 3.0
"""Cells alone, whatever the model: the dimension from which they count, the seconds of a probe there, and how
many times more each further dimension takes."""


def check_evaluations(n_probes: int, each: int, remedy: str) -> None:
    """Refuse or warn of `each` evaluations of the model on each of `n_probes` probes; say what to do."""
    total = n_probes * each
    if total <= ANNOUNCED_ABOVE_EVALUATIONS:
        return
    work = f"{n_probes:,} probes of about {each:,} points each are {total:,} evaluations of the model"
    if total > MOST_EVALUATIONS:
        raise PartitionError(f"{work}, over the limit of {MOST_EVALUATIONS:.0e}: {remedy}")
    _warn(f"{work}, which takes a large one hours: {remedy} if that is too long")


def check_cells(n_probes: int, dim: int) -> None:
    """Refuse or warn of cells in many dimensions, whose number grows with all of them."""
    each = CELL_SECONDS * CELL_GROWTH ** (dim - CELL_DIMENSION)
    total = n_probes * each
    if total <= ANNOUNCED_ABOVE_SECONDS or dim < CELL_DIMENSION:
        return
    work = f"adaptive cells in {dim} dimensions take about {each:.0f} s per probe, {_time(total)} in all"
    remedy = "lower the dimension or the number of probes, or take method='grid', which is coarse but quick"
    if total > MOST_SECONDS:
        raise PartitionError(f"{work}: {remedy}")
    _warn(f"{work}: {remedy}")


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:,.0f} minutes"


def _warn(message: str) -> None:
    warn(message)
