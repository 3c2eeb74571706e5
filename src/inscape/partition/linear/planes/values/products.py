"""A linear map of a bent tensor at many vertices, in blocks that stay in the nearer caches.

Vertices with near numbers are near to each other, see `nearby`: at those of a block most units are on the
same side of their threshold. Units that are off, and 0, at all of them take no part in a large product.
"""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Floats, Ints
from inscape.compiled import inlined, kernel
from inscape.models.graph.piecewise import Bend, Leaky
from inscape.partition.linear.bending import overwrite
from inscape.partition.linear.planes.layer.bits import lowest
from inscape.partition.linear.planes.layer.sign_vectors import Packed, Words

_AT_ONCE = 2**20
"""How many numbers a block has."""

_FEWER = 2**15
"""How many numbers a block has from which units are left out: the smaller, the more are."""

_SAMPLE = 64
"""How many rows tell the scale of a map."""

_MANY = 2**12
"""For so many rows it is worth a look at which units are off."""


class Product:
    """The map W bent(z) + bias of rows z, block by block."""

    def __init__(self, op: Bend, columns: Floats, bias: Tensor | None, n: int, is_free: bool) -> None:
        """`op` is the elementwise node that bends the n rows, `columns` W transposed, (in, out).

        The rows may be overwritten if they are free.
        """
        n_in, n_out = columns.shape
        self.bend = partial(overwrite, op) if is_free else op
        self.bias = torch.zeros(n_out, dtype=torch.float64) if bias is None else bias
        self.columns = columns
        self.leaves_out = n >= _MANY and isinstance(op, Leaky) and op.slope == 0.0
        self.size = max(1, (_FEWER if self.leaves_out else _AT_ONCE) // n_in)
        if self.leaves_out:
            self._used, self._n_used = np.full(n_in + 1, n_in, np.uint32), 1  # the first stands for the bias
            self._bent, self._chosen = np.ones((self.size, n_in + 1)), np.empty((n_in + 1, n_out))
            self._chosen[0] = self.bias
            self._factors = torch.from_numpy(self._bent), torch.from_numpy(self._chosen)

    def __call__(self, z: Floats, above: Words, out: Tensor) -> None:
        """Write the map of a block of rows; `above` says which units are on, and z may be `out`."""
        if not self.leaves_out:
            torch.addmm(self.bias, self.bend(torch.from_numpy(z)), torch.from_numpy(self.columns), out=out)
            return
        k = _prepare(z, above, self.columns, self._used, self._n_used, self._bent, self._chosen)
        self._n_used, (bent, chosen) = k, self._factors
        torch.mm(bent[: len(z), :k], chosen[:k], out=out)


def multiply(
    product: Product, z: Floats, above: Words, rows: Ints | None, y: Tensor, room: Any
) -> Packed | None:
    """Write a map into `y` (k, out), and its signs.

    Args:
        product: the map.
        z: what it is a map of, (n, in).
        above: packed bits of the units that are on, (n, words).
        rows: which rows of z to take, (k,), all of them if None: then y may be the same memory.
        y: written.
        room: a function that gives room for the signs, once it has seen some rows.
    """
    packed = room(_sample(product, z, above, rows)) if product.leaves_out else None
    for first in range(0, len(y), product.size):
        own: Any = slice(first, first + product.size)
        out, own = y[own], own if rows is None else rows[own]
        product(z[own], above[own], out)
        if first == 0 and not product.leaves_out:  # a block of many rows
            packed = room(out.numpy())
        if packed is not None:
            packed.pack(out.numpy(), first)
    return packed


def _sample(product: Product, z: Floats, above: Words, rows: Ints | None) -> Floats:
    """The map of a few rows from all over, which tell its scale: a small block may lie where it vanishes."""
    n = len(z) if rows is None else len(rows)
    some = np.arange(0, n, max(1, -(-n // min(_SAMPLE, product.size))))
    own = some if rows is None else rows[some]
    out = torch.empty((len(own), len(product.bias)), dtype=torch.float64)
    product(z[own], above[own], out)
    return out.numpy()


@inlined
def _copy(source, target):
    for v in range(len(target)):
        target[v] = source[v]


@inlined
def _choose(above, columns, used, n, chosen):
    """Write which units are on in any row, and the rows of W transposed that they meet; returns how many.

    The first of them, which stands for the bias, stays. Of the others only those change that are not used any
    more, whose places the last ones take, and those that were not used so far.
    """
    one = np.uint64(1)
    for w in range(above.shape[1]):
        word = np.uint64(0)
        for r in range(len(above)):
            word |= above[r, w]
        k = 1
        while k < n:
            if used[k] >> 6 != w:
                k += 1
            elif (word >> np.uint64(used[k] & 63)) & one:
                word ^= one << np.uint64(used[k] & 63)
                k += 1
            else:
                n -= 1
                used[k] = used[n]
                _copy(chosen[n], chosen[k])
        while word:
            used[n] = 64 * w + lowest(word)
            word &= word - np.uint64(1)
            _copy(columns[used[n]], chosen[n])
            n += 1
    return n


@kernel
def _prepare(z, above, columns, used, n, bent, chosen):
    """Choose units, and write the columns of z that they are, where positive; returns how many."""
    n = _choose(above, columns, used, n, chosen)
    for r in range(len(z)):
        row, out = z[r], bent[r]
        for k in range(1, n):
            out[k] = row[used[k]] if row[used[k]] > 0.0 else 0.0
    return n
