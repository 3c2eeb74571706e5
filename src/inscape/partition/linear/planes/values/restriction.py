"""The lines that give values at some of the vertices only."""

from typing import Any, NamedTuple

import numpy as np

from inscape.arrays import Ints
from inscape.compiled import compiled
from inscape.partition.linear.planes.layer.buffers import Lines


class Restriction(NamedTuple):
    """Lines between some of the vertices, which are numbered anew: old ones first, in order.

    rows: the old vertices; n_rows: how many vertices there are in all; edges, chords: the lines; wanted:
    where the vertices that were asked for are.
    """

    rows: Any
    n_rows: int
    edges: Lines
    chords: Lines
    wanted: Any


def restricted(n_old: int, n: int, edges: Lines, chords: Lines, wanted: Ints) -> Restriction:
    """What gives values at the vertices `wanted` of n, of which the first n_old are old."""
    needed = np.zeros(n, bool)
    needed[wanted] = True
    crossing, cut = needing(chords, needed), needing(edges, needed)
    number = np.cumsum(needed) - 1
    rows = np.flatnonzero(needed[:n_old])
    own_edges = _chosen(edges, cut, needed, number)
    own_chords = _chosen(chords, crossing, needed, number)
    return Restriction(rows, int(number[-1]) + 1, own_edges, own_chords, number[wanted])


@compiled
def needing(lines, needed):
    """The lines on which a vertex is needed, (l,); their ends become needed."""
    used = np.zeros(len(lines.ends), np.bool_)
    for line in range(len(used)):
        for k in range(lines.start[line], lines.start[line + 1]):
            used[line] |= lines.vertex[k] >= 0 and needed[lines.vertex[k]]
    for line in range(len(used)):
        if used[line]:
            needed[lines.ends[line, 0]], needed[lines.ends[line, 1]] = True, True
    return used


def _chosen(lines: Lines, used: Any, needed: Any, number: Ints) -> Lines:
    """Some of the lines, with all their kinks."""
    kinks = np.repeat(used, np.diff(lines.start))
    vertex = lines.vertex[kinks]
    known = (vertex < 0) | ~needed[vertex]
    start = np.concatenate([[0], np.cumsum(np.diff(lines.start)[used])])
    ends = number[lines.ends[used]].astype(np.int32)
    here = np.where(known, -1, number[vertex])
    return Lines(ends, start, lines.s[kinks], lines.unit[kinks], lines.change[kinks], here)
