"""The linear map right after an elementwise node, at the vertices after a cut.

At old vertices it is a matrix product, at new ones it is expanded along lines. If only the signs of its
entries are wanted, the vectors at new vertices are not stored.

Products are taken in blocks that stay in the nearer caches. Vertices with near numbers lie near each other,
see `complex.renumber`: at those of a block most units are on the same side of their kink. Units that are off,
and so 0, at all of them are left out of a large product.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Bools, Floats, Ints, SignVectors
from inscape.compiled import compiled, copy, inlined, kernel
from inscape.models.graph import flat
from inscape.models.graph.network import Fusion
from inscape.models.graph.piecewise import Bend
from inscape.parallel import spread
from inscape.partition.linear.planes.layer.buffers import Lines
from inscape.partition.linear.planes.layer.sign_vectors import Packed, cutoff_of, lowest_bit
from inscape.partition.linear.planes.plan import Plan, empty
from inscape.partition.linear.planes.values.values import Values, expand, sign_lines
from inscape.partition.linear.rounding import PlaneRounding

SCALE_FROM_VERTICES = 256
"""From this many old vertices on, these alone tell the scale of a map; else breakpoints on lines do, too."""

LAZY_VALUES_FROM_NUMBERS = 2**22
"""From this many numbers at new vertices on, these are evaluated where they are needed, and not stored ..."""

LAZY_VALUES_UP_TO_BREAKPOINTS = 8
"""... if chords have at most this many breakpoints on average."""

SCRATCH_FROM_NUMBERS = 2**22
"""From this many numbers on, a map goes into memory that is used again."""

SKIP_DEAD_UNITS_FROM_VECTORS = 2**12
"""From this many vectors on, units that are off in a whole block are left out of its product."""

_NUMBERS_IN_BLOCK = 2**20
"""How many numbers a block has."""

_BLOCK_WITHOUT_DEAD_UNITS = 2**15
"""How many numbers a block has if units are left out: the smaller it is, the more can be."""

_BLOCKS_IN_JOB = 16
"""How many blocks one thread takes: each job has to choose from scratch which units are left out."""

VECTORS_FOR_SCALE = 64
"""How many vectors are sampled for the scale of a map."""


@dataclass(frozen=True, eq=False)
class LinearMap:
    """A linear map at n vertices: some of the old ones, then those on lines between them.

    Attributes:
        plan: of the walk.
        matrix: the map.
        op: the elementwise node before it.
        z: that node's input at all old vertices, (v, ...).
        is_free: whether the memory of z may be overwritten.
        above: the sign vectors there: which units are on, (v, words).
        old: the old vertices to evaluate it at, None for all.
        n: the number of all vertices to evaluate it at.
        edges: lines between those old vertices.
        chords: lines between vertices that are old or on edges.
        xy: coordinates of some vertices.
    """

    plan: Plan
    matrix: Fusion
    op: Bend
    z: Tensor
    is_free: bool
    above: SignVectors
    old: Ints | None
    n: int
    edges: Lines
    chords: Lines
    xy: Floats

    @property
    def n_old(self) -> int:
        """How many of the n vertices are old."""
        return len(self.z) if self.old is None else len(self.old)

    @property
    def h(self) -> int:
        """How many entries the map has."""
        return int(self.matrix.columns.shape[1])

    def evaluate(self) -> tuple[Tensor, Values, Packed | None]:
        """The vectors that are stored, the map's values, and its signs if a piecewise-linear node follows."""
        is_lazy = self._is_lazy()
        y = self._memory(self.n_old if is_lazy else self.n)
        packed = self._multiply(y[: self.n_old])
        target = packed or Packed.empty(0, self.h, np.zeros(0), 0.0)
        signs = target.kinks, target.cutoff, target.above, target.near
        if not is_lazy:
            expand(y.numpy(), self.n_old, self.edges, self.chords, self.matrix.columns, *signs)
            return y, Values.stored(y.numpy()), packed
        values = Values.on_lines(y.numpy(), self.edges, self.chords, self.matrix.columns, self.n - self.n_old)
        sign_lines(values, *signs)
        return y, values, packed

    def _multiply(self, y: Tensor) -> Packed | None:
        """Write the map at the old vertices, and its signs."""
        op: Any = self.plan.graph.nodes[self.matrix.last].op
        _, *bias = op.constants
        is_free = self.is_free and y.data_ptr() != self.z.data_ptr()
        product = BentProduct(self.op, self.matrix.columns, bias[0] if bias else None, len(y), is_free)
        return multiply(product, flat(self.z), self.above, self.old, y, self._empty_signs)

    def _is_lazy(self) -> bool:
        """Whether only signs are wanted, of many vectors, on lines with few breakpoints."""
        is_quick = len(self.chords.s) <= LAZY_VALUES_UP_TO_BREAKPOINTS * len(self.chords.ends)
        is_large = (self.n - self.n_old) * self.h >= LAZY_VALUES_FROM_NUMBERS
        return is_large and is_quick and self.plan.ends_with_signs(self.matrix.last)

    def _empty_signs(self, sample: Floats) -> Packed | None:
        """Memory for signs, if any are wanted; a sample of the vectors tells their cutoff."""
        following = self.plan.elementwise_after(self.matrix.last)
        if following is None:
            return None
        kinks = np.array(following.kinks)
        rounding = PlaneRounding(self.plan.graph, self.plan.plane, self.xy, self.matrix.last)
        largest = 0.0 if self.n_old >= SCALE_FROM_VERTICES else self._largest_sag()
        return Packed.empty(self.n, self.h, kinks, cutoff_of(sample, kinks, rounding, largest))

    def _largest_sag(self) -> float:
        """A bound for how far one breakpoint bends an entry on its line."""
        changes = [float(np.abs(line.change).max(initial=0.0)) for line in (self.edges, self.chords)]
        return max(changes) * float(np.abs(self.matrix.columns).max()) / 4

    def _memory(self, n: int) -> Tensor:
        """Memory for n vectors.

        If z is free and its vectors are as long, this is its memory: products overwrite it block by block.
        """
        z, h = self.z, self.h
        if n * h < SCRATCH_FROM_NUMBERS:
            return empty((n, h))
        fits = z.untyped_storage().nbytes() >= n * h * z.itemsize and z.storage_offset() == 0
        if self.is_free and fits and z[0].numel() == h and z.is_contiguous():
            return z.new_empty(0).set_(z.untyped_storage(), 0, (n, h), (h, 1))
        return self.plan.scratch.vectors(n, h)


class Restriction(NamedTuple):
    """The vertices and lines that give the values at some vertices; with new numbers, old vertices first."""

    old: Ints
    """The old vertices among them, by their earlier numbers."""
    n: int
    """How many vertices there are in all."""
    edges: Lines
    """Lines between old vertices."""
    chords: Lines
    """Lines between vertices that are old or on edges."""
    vertices: Ints
    """The new numbers of the vertices at which values are wanted."""


def restricted(n_old: int, n: int, edges: Lines, chords: Lines, vertices: Ints) -> Restriction:
    """What gives the values at some of n vertices, of which the first n_old are old."""
    needed = np.zeros(n, bool)
    needed[vertices] = True
    used_chords, used_edges = _used(chords, needed), _used(edges, needed)
    number = np.cumsum(needed) - 1
    return Restriction(
        old=np.flatnonzero(needed[:n_old]),
        n=int(number[-1]) + 1,
        edges=_renumbered(edges, used_edges, needed, number),
        chords=_renumbered(chords, used_chords, needed, number),
        vertices=number[vertices],
    )


@compiled
def _used(lines, needed):
    """Which lines have a vertex that is needed, (l,); the vertices at their ends become needed."""
    used = np.zeros(len(lines.ends), np.bool_)
    for line in range(len(used)):
        for k in range(lines.start[line], lines.start[line + 1]):
            used[line] |= lines.vertex[k] >= 0 and needed[lines.vertex[k]]
    for line in range(len(used)):
        if used[line]:
            needed[lines.ends[line, 0]], needed[lines.ends[line, 1]] = True, True
    return used


def _renumbered(lines: Lines, used: Bools, needed: Bools, number: Ints) -> Lines:
    """The lines that are used, with all their breakpoints and the new numbers of vertices."""
    on_used = np.repeat(used, np.diff(lines.start))
    vertex = lines.vertex[on_used]
    return Lines(
        ends=number[lines.ends[used]].astype(np.int32),
        start=np.concatenate([[0], np.cumsum(np.diff(lines.start)[used])]),
        s=lines.s[on_used],
        unit=lines.unit[on_used],
        change=lines.change[on_used],
        vertex=np.where((vertex < 0) | ~needed[vertex], -1, number[vertex]),
    )


class BentProduct:
    """The map W bent(z) + bias of vectors z, block by block."""

    def __init__(self, op: Bend, columns: Floats, bias: Tensor | None, n: int, is_free: bool) -> None:
        """`op` is the elementwise node that bends the n vectors, `columns` W transposed, (in, out).

        The vectors may be overwritten if they are free.
        """
        n_in, n_out = columns.shape
        self.bend = op.overwrite if is_free else op
        self.bias = torch.zeros(n_out, dtype=torch.float64) if bias is None else bias
        self.columns = columns
        self.leaves_out = n >= SKIP_DEAD_UNITS_FROM_VECTORS and op.is_relu
        self.size = max(1, (_BLOCK_WITHOUT_DEAD_UNITS if self.leaves_out else _NUMBERS_IN_BLOCK) // n_in)
        self._idle: list[_WithoutDeadUnits] = []

    @contextmanager
    def job(self) -> Iterator["BlockProduct"]:
        """The map for one block after another, by one thread, in memory that later jobs use again."""
        if not self.leaves_out:
            yield self._of_whole_block
            return
        try:
            of_block = self._idle.pop()
        except IndexError:
            of_block = _WithoutDeadUnits(self)
        of_block.begin()
        yield of_block
        self._idle.append(of_block)

    def _of_whole_block(self, z: Floats, above: SignVectors, out: Tensor) -> None:
        torch.addmm(self.bias, self.bend(torch.from_numpy(z)), torch.from_numpy(self.columns), out=out)


BlockProduct = Callable[[Floats, SignVectors, Tensor], None]
"""Writes the map of a block of vectors, which may be its output too; sign vectors say which units are on."""


class _WithoutDeadUnits:
    """The product with the units that are on in a block, which are mostly those of the block before."""

    def __init__(self, product: BentProduct) -> None:
        n_in, n_out = product.columns.shape
        self._columns = product.columns
        self._used, self._n_used = np.full(n_in + 1, n_in, np.uint32), 1  # the first stands for the bias
        self._bent, self._chosen = np.ones((product.size, n_in + 1)), np.empty((n_in + 1, n_out))
        self._chosen[0] = product.bias
        self._factors = torch.from_numpy(self._bent), torch.from_numpy(self._chosen)

    def begin(self) -> None:
        """Forget which units were used before."""
        self._n_used = 1

    def __call__(self, z: Floats, above: SignVectors, out: Tensor) -> None:
        k = _prepare(z, above, self._columns, self._used, self._n_used, self._bent, self._chosen)
        self._n_used, (bent, chosen) = k, self._factors
        torch.mm(bent[: len(z), :k], chosen[:k], out=out)


def multiply(
    product: BentProduct,
    z: Floats,
    above: SignVectors,
    which: Ints | None,
    y: Tensor,
    empty_signs: Callable[[Floats], Packed | None],
) -> Packed | None:
    """Write a map of vectors into `y` (k, out), and its signs.

    Args:
        product: the map.
        z: the vectors, (n, in).
        above: their sign vectors: which units are on, (n, words).
        which: the vectors to take, (k,); None for all, and then y may be the memory of z.
        y: written.
        empty_signs: gives memory for the signs, if any are wanted, given a sample of the map.
    """

    def write(begin: int, end: int, packed: Packed | None) -> None:
        """Blocks of one job."""
        with product.job() as of_block, torch.no_grad():
            for first in range(begin, end, product.size):
                block: Any = slice(first, first + product.size)
                out, block = y[block], block if which is None else which[block]
                of_block(z[block], above[block], out)
                if packed is not None:
                    packed.pack(out.numpy(), first)

    begin = 0
    if product.leaves_out:
        packed = empty_signs(_sample(product, z, above, which))
    else:  # a block of many vectors
        begin = min(product.size, len(y))
        write(0, begin, None)
        out = y[:begin].numpy()
        packed = empty_signs(out)
        if packed is not None:
            packed.pack(out, 0)
    if begin == len(y):
        return packed
    step = _BLOCKS_IN_JOB * product.size if product.leaves_out else product.size
    spread(partial(write, first, min(first + step, len(y)), packed) for first in range(begin, len(y), step))
    return packed


def _sample(product: BentProduct, z: Floats, above: SignVectors, which: Ints | None) -> Floats:
    """The map of a few vectors from everywhere, for its scale: a small block may lie where it vanishes."""
    n = len(z) if which is None else len(which)
    evenly = np.arange(0, n, max(1, -(-n // min(VECTORS_FOR_SCALE, product.size))))
    sample = evenly if which is None else which[evenly]
    out = torch.empty((len(sample), len(product.bias)), dtype=torch.float64)
    with product.job() as of_block:
        of_block(z[sample], above[sample], out)
    return out.numpy()


@inlined
def _choose(above, columns, used, n, chosen):
    """Write which units are on in any vector, and their columns of W; returns how many there are.

    The first of them, which stands for the bias, stays. Of the others only those change that are no longer
    used, which the last ones replace, and those that were not used before.
    """
    one = np.uint64(1)
    for w in range(above.shape[1]):
        # (1) the units of one word that are on in any vector
        word = np.uint64(0)
        for r in range(len(above)):
            word |= above[r, w]
        # (2) those that were used before stay, or are replaced by the last one
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
                copy(chosen[n], chosen[k])
        # (3) the others are added at the end
        while word:
            used[n] = 64 * w + lowest_bit(word)
            word &= word - np.uint64(1)
            copy(columns[used[n]], chosen[n])
            n += 1
    return n


@kernel
def _prepare(z, above, columns, used, n, bent, chosen):
    """Choose units, and write their entries of z where these are positive, else 0; returns how many."""
    n = _choose(above, columns, used, n, chosen)
    for r in range(len(z)):
        vector, out = z[r], bent[r]
        for k in range(1, n):
            out[k] = vector[used[k]] if vector[used[k]] > 0.0 else 0.0
    return n
