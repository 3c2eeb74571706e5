"""Cut all faces of a subdivision, with room for the results."""

from typing import Any

from inscape.compiled import compiled
from inscape.partition.linear.planes.layer.blocks import in_one_block
from inscape.partition.linear.planes.layer.buffers import (
    CROSSINGS,
    DONE,
    EDGES,
    FACES,
    HALF_EDGES,
    LINES,
    NODES,
    VERTICES,
    Faces,
    Inside,
    Job,
    Lines,
    Written,
    move,
    room_for_all,
    room_for_face,
)
from inscape.partition.linear.planes.layer.faces import cut_each

_MANY = 2**16
"""Results for so many half-edges go into memory from numpy, in large pages, which take less time to get."""


def cut_faces(job: Job, most: float, tied: Any) -> tuple[bool, Faces, Inside, Lines]:
    """Cut every face that is not tied along its chords.

    Args:
        job: the subdivision and its cut points.
        most: stop if there are more faces than this.
        tied: the faces to leave out, (f,); a face that turns out to be tied is marked.

    Returns:
        is_complete, `Faces`, `Inside` and `Lines`; an edge inside is numbered after the pieces of the old
        ones.
    """
    if len(job.loop) < _MANY:
        found = cut_few(job, most, tied)
    else:
        found = _cut_into(job, most, tied, _large_room(job))
    return found  # type: ignore[no-any-return]


def _large_room(job: Job) -> Written:
    """Room in one block of memory."""
    room: Written = room_for_all.py_func(*_sizes.py_func(job))
    start, loop, parent, words, ends, xy, *lines = in_one_block([*room.faces, *room.inside, *room.lines])
    start[0], lines[1][0] = 0, 0
    return Written(Faces(start, loop, parent, words), Inside(ends, xy), Lines(*lines), room.at)


@compiled
def _sizes(job):
    """How much room the results may need; there may be more crossings."""
    n_cut = len(job.unit)
    return len(job.start) - 1, len(job.loop), n_cut, n_cut // 2, job.above.shape[1]


@compiled
def cut_few(job, most, tied):
    """The same for few faces, with memory of its own."""
    return _cut_into(job, most, tied, room_for_all(*_sizes(job)))


@compiled
def _cut_into(job, most, tied, out):
    """Cut the faces, with some room for the results."""
    n_units, n_words = 64 * job.above.shape[1], job.above.shape[1]
    sizes, at = (len(tied), len(job.loop), len(job.unit)), out.at
    at[NODES], at[CROSSINGS] = 64, 64
    while True:
        if at[VERTICES] + at[CROSSINGS] > len(out.inside.xy):
            more = room_for_all(*sizes, 2 * at[VERTICES] + at[CROSSINGS], n_words)
            move(out, more)
            out, at = more, more.at
        face = room_for_face(at[NODES], at[CROSSINGS], n_units, n_words)
        cut_each(job, most, tied, face, out)
        if at[DONE] == len(tied) or at[FACES] + len(tied) - at[DONE] > most:
            break
    (start, loop, parent, words), (ends, xy), lines, _ = out
    k = lines.start[at[LINES]]
    return (
        at[DONE] == len(tied) and at[FACES] <= most,
        Faces(start[: at[FACES] + 1], loop[: at[HALF_EDGES]], parent[: at[FACES]], words[: at[FACES]]),
        Inside(ends[: at[EDGES]], xy[: at[VERTICES]]),
        Lines(
            lines.ends[: at[LINES]],
            lines.start[: at[LINES] + 1],
            lines.s[:k],
            lines.unit[:k],
            lines.change[:k],
            lines.vertex[:k],
        ),
    )
