"""The plainest way to count: a breadth-first search over a grid. Oracle of tests and benchmarks."""

from collections import deque
from itertools import product

import numpy as np


def count_breadth_first(grid, connectivity, is_simplex):
    """The number of connected sets of equal labels in an array; -1 is outside."""
    d = grid.ndim
    steps = [s for s in product((-1, 0, 1), repeat=d) if any(s) and abs(sum(s)) <= 2]
    if connectivity == "face":
        steps = [
            s for s in steps if sum(map(abs, s)) == 1 or (is_simplex and sorted(s) == [-1, *[0] * (d - 2), 1])
        ]
    unseen = {tuple(map(int, i)) for i in np.argwhere(grid >= 0)}
    count = 0
    while unseen:
        start = unseen.pop()
        count += 1
        queue = deque([start])
        while queue:
            here = queue.popleft()
            for step in steps:
                there = tuple(a + b for a, b in zip(here, step, strict=True))
                if (
                    there in unseen
                    and grid[there] == grid[here]
                    and not (
                        connectivity == "face" and sum(map(abs, step)) == 2 and is_saddle(grid, here, step)
                    )
                ):
                    unseen.remove(there)
                    queue.append(there)
    return count


def is_saddle(grid, here, step):
    """Whether a step from one axis to another runs between two parts of another region."""
    there = tuple(a + b for a, b in zip(here, step, strict=True))
    up = tuple(a + max(b, 0) for a, b in zip(here, step, strict=True))
    down = tuple(a + min(b, 0) for a, b in zip(here, step, strict=True))
    if sum(up) >= len(grid):
        return goes_inwards(grid, here) and goes_inwards(grid, there)
    return grid[up] == grid[down] != grid[here]


def goes_inwards(grid, here):
    """Whether one step back along some axis keeps the label."""
    back = [(*here[:i], here[i] - 1, *here[i + 1 :]) for i in range(len(here)) if here[i] > 0]
    return any(grid[b] == grid[here] for b in back)
