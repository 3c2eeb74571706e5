"""Several arrays in one block of memory, which comes in large pages: these are quicker to get."""

from typing import Any

import numpy as np

_LARGE = 2**22
"""From so many bytes on numpy asks for large pages."""

_LINE = 64


def in_one_block(arrays: list[Any]) -> list[Any]:
    """Arrays of the same shapes and types, with nothing in them, in one block if that is large."""
    sizes = [-(-a.nbytes // _LINE) * _LINE for a in arrays]
    if sum(sizes) < _LARGE:
        return arrays
    block, first, found = np.empty(sum(sizes), np.uint8), 0, []
    for a, size in zip(arrays, sizes, strict=True):
        found.append(block[first : first + a.nbytes].view(a.dtype).reshape(a.shape))
        first += size
    return found
