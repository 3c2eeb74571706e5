"""What a status says of ties, slivers and ends on a split: on one probe, or on many."""

from collections.abc import Sequence
from functools import lru_cache

from inscape.partition.decision.regions import TreeCounts
from inscape.status import COMPLETE, Status


@lru_cache
def status_on_segment(
    n_tied: int, n_pieces: int, n_narrow: int, n_lone: int, precision: str, narrow: bool
) -> Status:
    """The status of exact regions on a segment; most of many segments have one of a few.

    Args:
        n_tied: pieces on which classes tie.
        n_pieces: of how many; 0 if none ties.
        n_narrow: slivers.
        n_lone: ends of the span that lie on a split.
        precision: in which the trees compute.
        narrow: whether slivers were counted.
    """
    notes = _on_ties(n_tied, n_pieces, "pieces")
    if n_narrow:
        regions = "region is" if n_narrow == 1 else "regions are"
        beside = f"narrower than {precision} numbers can tell"
        notes.append(f"{n_narrow} {regions} {beside}{'' if narrow else ', and not counted'}")
    if n_lone:
        ends = "end lies" if n_lone == 1 else "ends lie"
        notes.append(f"{n_lone} {ends} on a split, with another label at that single point")
    return _complete(notes)


def status_on_plane(counts: TreeCounts, n_faces: int, precision: str) -> Status:
    """The status of exact regions on a plane of n_faces faces."""
    notes = _on_ties(counts.n_tied, n_faces, "faces")
    if counts.n_narrow:
        times = "once" if counts.n_narrow == 1 else f"{counts.n_narrow} times"
        notes.append(f"splits closer together than {precision} numbers can tell are taken as one, {times}")
    return _complete(notes)


def status_of_all(counts: Sequence[TreeCounts]) -> Status:
    """The status of exact regions on many probes.

    >>> status_of_all([TreeCounts(0, 0, 0, 9), TreeCounts(0, 2, 0, 9)]).detail
    'splits closer together than the trees can tell are taken as one, on 1 of 2 probes'
    """
    tied, narrow = sum(c.n_tied > 0 for c in counts), sum(c.n_narrow > 0 for c in counts)
    notes = []
    if tied:
        notes.append(f"the top classes tie on {tied} of {len(counts)} probes, labelled there as predict does")
    if narrow:
        closer = "splits closer together than the trees can tell"
        notes.append(f"{closer} are taken as one, on {narrow} of {len(counts)} probes")
    lone = sum(c.n_lone > 0 for c in counts)
    if lone:
        notes.append(
            f"an end lies on a split, with another label at that point, on {lone} of {len(counts)} probes"
        )
    return _complete(notes)


def _on_ties(n_tied: int, n: int, what: str) -> list[str]:
    if not n_tied:
        return []
    return [f"the top classes tie on {n_tied} of {n} {what}, labelled there as predict does"]


def _complete(notes: list[str]) -> Status:
    return Status("complete", "; ".join(notes)) if notes else COMPLETE
