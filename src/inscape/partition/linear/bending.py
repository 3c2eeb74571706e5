"""What a piecewise-linear node does to a batch of rows: where it bends, and its values there."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from inscape.models.graph.piecewise import Bend, Clip, Leaky, Windows
from inscape.partition.linear import kernels

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SUSPICIOUS = 1e-10
"""A crossing whose values are this small, against the largest of the layer, may be rounding error."""

ROUNDING = 2.0**10
"""Rounding error of an entry, in units of eps times the sum of the absolute terms that it was summed from."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Places along the segments of a batch, in order: row r has parameter t[r] on segment[r]."""

    t: Floats
    segment: Ints

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True, eq=False)
class Refinement:
    """Rows after a node has bent: each lies at `fraction` of the interval after old row `parent`.

    `n_flat` counts the entries that lie on a threshold all along each old interval.
    """

    parent: Ints
    fraction: Floats
    rows: Rows
    n_flat: Ints

    def part(self, start: int, stop: int) -> "Refinement":
        """The rows start, ..., stop - 1."""
        cut = slice(start, stop)
        rows = Rows(self.rows.t[cut], self.rows.segment[cut])
        return Refinement(self.parent[cut], self.fraction[cut], rows, self.n_flat[:0])


def refine(op: Bend, z: Tensor, rows: Rows, tolerance: Floats, noise: Callable[[], Floats]) -> Refinement:
    """The rows and, between them, every place where `op` bends on z (rows, ...).

    Args:
        op: the piecewise-linear node.
        z: its input on the rows.
        rows: the rows.
        tolerance: how near in t two crossings are one, per segment.
        noise: the rounding error of each entry of z, (h,); called only if some crossing is in doubt.
    """
    values = flat(z)
    if isinstance(op, Windows):
        table = _table(op, tuple(z.shape[1:]))
        spread = _window_noise(values, table, noise)
        interval, s = kernels.window_crossings(values, rows.segment, table, spread)
        n_flat = np.zeros(0, np.int64)
    else:
        found = [_threshold(values, rows.segment, theta, noise) for theta in thresholds(op)]
        interval, s, n_flat = found[0] if len(found) == 1 else _merged(found, len(rows))
    parent, fraction, t, segment = kernels.refined(interval, s, rows.t, rows.segment, tolerance)
    return Refinement(parent, fraction, Rows(t, segment), n_flat)


def _merged(found: list[tuple[Ints, Floats, Ints]], n_rows: int) -> tuple[Ints, Floats, Ints]:
    """The crossings of several thresholds, or of none, in order of intervals."""
    interval = np.concatenate([np.zeros(0, np.int64), *(f[0] for f in found)])
    order = np.argsort(interval, kind="stable")
    s = np.concatenate([np.zeros(0), *(f[1] for f in found)])
    return interval[order], s[order], sum((f[2] for f in found), np.zeros(n_rows, np.int64))


def thresholds(op: Bend) -> list[float]:
    """Where an elementwise function bends."""
    if isinstance(op, Clip):
        return [b for b in (op.low, op.high) if np.isfinite(b)]
    return [0.0]


def _threshold(
    values: Any, segment: Ints, theta: float, noise: Callable[[], Floats]
) -> tuple[Ints, Floats, Ints]:
    """Crossings of one threshold, without those that are rounding error; and entries that lie on it."""
    interval, entry, s, size, n_flat = kernels.threshold_crossings(values, segment, values.dtype.type(theta))
    if len(s):
        doubt = size <= SUSPICIOUS * np.abs(values[0]).max(initial=abs(theta))
        if doubt.any():
            false = doubt & (size <= noise()[entry])
            np.add.at(n_flat, interval[false], 1)
            interval, s = interval[~false], s[~false]
    return interval, s, n_flat


def _window_noise(values: Any, table: Ints, noise: Callable[[], Floats]) -> Floats:
    """How far entries of a window may differ by rounding alone: a bound that needs no second evaluation."""
    eps = float(np.finfo(values.dtype).eps)
    return np.full(len(table), 16 * eps * float(np.abs(values[0]).max(initial=0.0)))


@lru_cache(maxsize=64)
def _table(op: Windows, shape: tuple[int, ...]) -> Ints:
    return np.ascontiguousarray(op.table(shape).numpy())


def flat(z: Tensor) -> Any:
    """A batch as a contiguous array (rows, h)."""
    return z.reshape(len(z), -1).contiguous().numpy()


def interpolate(z: Tensor, refinement: Refinement) -> Tensor:
    """A tensor that is linear between the old rows, on the new rows."""
    out = torch.empty((len(refinement.rows), *z.shape[1:]), dtype=z.dtype)
    kernels.interpolated(flat(z), refinement.parent, refinement.fraction, out.view(len(out), -1).numpy())
    return out


def bent(op: Bend, z: Tensor, refinement: Refinement) -> Tensor:
    """The node's output on the new rows, from its input on the old ones."""
    if isinstance(op, Windows):
        return op(interpolate(z, refinement))
    out = torch.empty((len(refinement.rows), *z.shape[1:]), dtype=z.dtype)
    values, target = flat(z), out.view(len(out), -1).numpy()
    if isinstance(op, Clip):
        kernels.interpolated_clip(values, refinement.parent, refinement.fraction, op.low, op.high, target)
        return out
    assert isinstance(op, Leaky)
    slope = np.array([op.slope], values.dtype) if not isinstance(op.slope, Tensor) else _slopes(op.slope, z)
    kernels.interpolated_leaky(values, refinement.parent, refinement.fraction, slope, target)
    return out


def _slopes(slope: Tensor, z: Tensor) -> Any:
    return slope.to(z.dtype).expand(z.shape[1:]).reshape(-1).contiguous().numpy()
