"""Memory for the large tensors of a walk.

New memory costs time when it is first written, since the system clears it: for a quarter of a gigabyte some
tenth of what a walk takes that needs so much. So the parts of a plane take turns with it, and a network whose
planes are walked one after the other keeps the memory of the last walk, if that is not too much, as long as
it lives and no other network is walked.
"""

from weakref import WeakKeyDictionary

from torch import Tensor

from inscape.models.graph import Graph
from inscape.partition.linear.planes.values.rows import empty

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
        kept = _KEPT.pop(graph, None)
        self._free: list[Tensor] = [] if kept is None else [kept]
        self._taken: list[Tensor] = []
        _KEPT.clear()

    def rows(self, n: int, h: int) -> Tensor:
        """Room for n rows of h numbers, at the start of memory that may be larger."""
        fitting = [room for room in self._free if room.numel() >= n * h]
        if fitting:
            room = min(fitting, key=Tensor.numel)
        else:
            room = empty((max(n * h, min(_MORE * n * h, self._memory // 8)),))
        self._free = [other for other in fitting if other is not room]
        self._taken = [*self._taken[-1:], room]  # of earlier ones it is not known how long they are in use
        return room[: n * h].view(n, h)

    def hold(self) -> None:
        """What was taken so far stays in use."""
        self._taken = []

    def release(self) -> None:
        """What was taken since is not needed any more."""
        self._free, self._taken = (self._free + self._taken)[-2:], []

    def keep(self) -> None:
        """The walk is done, and its tensors are not needed any more."""
        self.release()
        room = max(self._free, key=Tensor.numel, default=None)
        if room is not None and 8 * room.numel() <= _MOST:
            _KEPT[self._graph] = room
