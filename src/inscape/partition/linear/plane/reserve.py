"""Memory for the large tensors of a walk.

New memory costs time when it is first written, since the system clears it: for a quarter of a gigabyte some
tenth of what a walk takes that needs so much. So a network whose planes are walked one after the other keeps
the memory of the last walk, if that is not too much, as long as it lives and no other network is walked.
"""

from weakref import WeakKeyDictionary

from torch import Tensor

from inscape.models.graph import Graph
from inscape.partition.linear.plane.rows import empty

_MORE = 4
"""So many times the memory that a tensor needs is asked for: what is not written costs nothing."""

_MOST = 2**28
"""How many bytes are kept."""

_KEPT: WeakKeyDictionary[Graph, Tensor] = WeakKeyDictionary()


class Reserve:
    """The large tensors of one walk with a network."""

    def __init__(self, graph: Graph, memory: int) -> None:
        """`memory` is how many bytes they may take."""
        self._graph, self._memory = graph, memory
        self._spare: Tensor | None = _KEPT.pop(graph, None)
        self._largest = empty((0,))
        _KEPT.clear()

    def rows(self, n: int, h: int) -> Tensor:
        """Room for n rows of h numbers, at the start of memory that may be larger."""
        room, self._spare = self._spare, None
        if room is None or room.numel() < n * h:
            room = empty((max(n * h, min(_MORE * n * h, self._memory // 8)),))
        self._largest = max(self._largest, room, key=Tensor.numel)
        return room[: n * h].view(n, h)

    def keep(self) -> None:
        """The walk is done, and its tensors are not needed any more."""
        if 0 < 8 * self._largest.numel() <= _MOST:
            _KEPT[self._graph] = self._largest
        self._largest = empty((0,))
