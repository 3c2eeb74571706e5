"""Piecewise-linear operations of the graph: where the slope of a network can change.

Two kinds suffice. *Elementwise* functions bend at fixed thresholds of one entry: relu, leaky relu,
prelu and abs are z -> max(z, 0) + a min(z, 0) with a = 0, a constant, a constant per channel, and -1;
relu6, hardtanh and clamp clip. *Window* functions take the maximum over windows of entries.
The rest is written with these: max(a, b) = b + relu(a - b), min(a, b) = b - relu(b - a),
hard-sigmoid(z) = clip(z / 6 + 1/2, 0, 1). Hard-swish, z times hard-sigmoid(z), is quadratic between its
thresholds, so it is not piecewise linear: it is foreign.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from inscape.arrays import Floats, Int32s, Ints, Shape
from inscape.models.graph.affine import Operation


class WindowTable(NamedTuple):
    """The windows of a point, as arrays.

    Attributes:
        entries: of each window, (n_windows, size), -1 for padding.
        gather: the same turned round, (size, n_windows), with the length of that for padding.
    """

    entries: Ints
    gather: Int32s


class Bend(Operation, ABC):
    """A continuous piecewise-linear function of one batch, alike on every point."""

    is_elementwise: ClassVar[bool] = True

    @abstractmethod
    def __call__(self, x: Tensor) -> Tensor:
        """The function on a batch."""

    @abstractmethod
    def derivative(self, x: Tensor, dx: Tensor) -> Tensor:
        """Its derivative at `x` in the direction `dx`; at a kink, that of the inactive side."""

    @property
    def form(self) -> tuple[float, float, float | Tensor]:
        """The numbers low, high, a of an elementwise function z -> min(max(z, low), high) + a min(z, 0)."""
        return -math.inf, math.inf, 0.0

    @property
    def lines(self) -> tuple[tuple[float | Tensor, float], ...]:
        """Slope and offset of an elementwise function below its first kink and above each."""
        return ()

    def largest(self, size: float) -> float:
        """How large an entry of the result can be, if those of the batch are at most `size`."""
        return size

    def overwrite(self, x: Tensor) -> Tensor:
        """The function on a batch, written over it where that is possible."""
        return self(x)

    def windows(self, shape: Shape) -> WindowTable | None:
        """Of maxima the windows of a point of `shape`; None for an elementwise function."""
        return None

    def states(self, x: Tensor) -> Any:
        """The state of each unit at each point, (n, units), uint8: how many kinks its entry is above."""
        values: Floats = x.flatten(1).numpy()
        return sum((values > kink for kink in self.kinks), np.zeros(values.shape, np.uint8))

    def slopes(self, x: Tensor) -> Tensor:
        """The linear map at each point, as `along` and `back` take it: the slope of every entry."""
        return self.derivative(x, torch.ones_like(x))

    def along(self, slopes: Tensor, d: Tensor) -> Tensor:
        """What the linear map of each point (n, ...) makes of its k directions (n, k, ...)."""
        return d * slopes[:, None]

    def forth(self, slopes: Tensor, marks: Tensor) -> Tensor:
        """Which entries of the result those have an influence on that are marked by a positive number."""
        return self.along(slopes, marks[:, None])[:, 0] != 0

    def back(self, slopes: Tensor, reached: Tensor, shapes: Sequence[Shape]) -> list[Tensor]:
        """Which entries of the input have an influence on those that are marked, one (n, *shape) bool."""
        return [reached & (slopes != 0)]

    def jvp(self, values: Sequence[Tensor], directions: Sequence[Tensor]) -> Tensor:
        """Its derivative at values in directions, of which it has one each."""
        return self.derivative(values[0], directions[0])

    def term_size(self, value: Tensor, sizes: Sequence[Tensor]) -> Tensor:
        """How large the result is: nothing is summed."""
        return value.abs()

    def error_scales(
        self,
        value: Tensor,
        values: Sequence[Tensor],
        terms: Sequence[Tensor],
        before: Sequence[Tensor],
        relative: float,
    ) -> tuple[Tensor, Tensor]:
        """The scale of the result: its own, but entries that are nothing but rounding keep theirs.

        And the scale of the errors that it takes over: none where the function is surely flat. Errors are at
        most `relative` times their scale.
        """
        size = torch.hypot(terms[0], before[0])
        kept, inherited = self._inherited(values[0], terms[0], size, relative * size)
        return torch.maximum(kept, value.abs()), inherited

    def _inherited(self, z: Tensor, terms: Tensor, size: Tensor, bound: Tensor) -> tuple[Tensor, Tensor]:
        """The terms of entries that may be zero, and the errors that pass, for z known up to `bound`."""
        steepness = (self(z + bound) - self(z - bound)).abs() / (2 * bound)
        inherited = torch.where(bound > 0, steepness * size, 0.0)
        return torch.where(z.abs() <= bound, torch.minimum(terms, inherited), 0.0), inherited

    def slope_error_scales(
        self, values: Sequence[Tensor], slope: Tensor, terms: Sequence[Tensor], before: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """The same of its derivative, `slope`."""
        return slope.abs(), self.derivative(values[0], torch.hypot(terms[0], before[0])).abs()

    def cast(self, dtype: torch.dtype) -> "Bend":
        """The function with its constants in another precision."""
        return self


@dataclass(frozen=True, eq=False)
class Leaky(Bend):
    """z -> z for z > 0, a z otherwise; `slope` a is a number or a tensor of the shape of a point."""

    slope: float | Tensor = 0.0
    name: str = "relu"

    def __call__(self, x: Tensor) -> Tensor:
        """The function on a batch."""
        if isinstance(self.slope, Tensor):
            return torch.where(x > 0, x, self.slope * x)
        if self.slope == 0.0:
            return F.relu(x)
        return x.abs() if self.slope == -1.0 else F.leaky_relu(x, self.slope)

    @property
    def kinks(self) -> tuple[float, ...]:
        """0, unless the function is straight there."""
        straight = bool((self.slope == 1.0).all()) if isinstance(self.slope, Tensor) else self.slope == 1.0
        return () if straight else (0.0,)

    @property
    def slope_jumps(self) -> tuple[float, ...] | None:
        """1 - a at 0, if a is a number."""
        return None if isinstance(self.slope, Tensor) else tuple(1.0 - self.slope for _ in self.kinks)

    @property
    def lines(self) -> tuple[tuple[float | Tensor, float], ...]:
        """The line a z below 0 and z above, or z alone."""
        return ((self.slope, 0.0), (1.0, 0.0)) if self.kinks else ((1.0, 0.0),)

    @property
    def form(self) -> tuple[float, float, float | Tensor]:
        """The function is max(z, 0) + a min(z, 0)."""
        return 0.0, math.inf, self.slope

    @property
    def is_relu(self) -> bool:
        """Whether a is the number 0."""
        return not isinstance(self.slope, Tensor) and self.slope == 0.0

    def largest(self, size: float) -> float:
        """As large as before, or |a| times that."""
        return size if self.is_relu else size * max(1.0, float(torch.as_tensor(self.slope).abs().max()))

    def overwrite(self, x: Tensor) -> Tensor:
        """The function on a batch, over which a relu can be written."""
        return x.relu_() if self.is_relu else self(x)

    def derivative(self, x: Tensor, dx: Tensor) -> Tensor:
        """The slope dz where z > 0, a dz elsewhere."""
        return torch.where(x > 0, dx, self.slope * dx)

    def cast(self, dtype: torch.dtype) -> "Leaky":
        """The function with its slopes in another precision."""
        return replace(self, slope=self.slope.to(dtype)) if isinstance(self.slope, Tensor) else self


@dataclass(frozen=True, eq=False)
class Clip(Bend):
    """z -> min(max(z, low), high); either bound may be infinite."""

    low: float = -math.inf
    high: float = math.inf
    name: str = "clip"

    def __call__(self, x: Tensor) -> Tensor:
        """The function on a batch."""
        return x.clamp(self.low, self.high)

    @property
    def kinks(self) -> tuple[float, ...]:
        """The bounds that are finite."""
        return tuple(b for b in (self.low, self.high) if math.isfinite(b))

    @property
    def slope_jumps(self) -> tuple[float, ...]:
        """1 at the lower bound, -1 at the upper one."""
        return (1.0,) * math.isfinite(self.low) + (-1.0,) * math.isfinite(self.high)

    @property
    def lines(self) -> tuple[tuple[float | Tensor, float], ...]:
        """The bound below, z between, the bound above, as far as they are finite."""
        low, high = (((0.0, b),) if math.isfinite(b) else () for b in (self.low, self.high))
        return (*low, (1.0, 0.0), *high)

    @property
    def form(self) -> tuple[float, float, float]:
        """The function has no slope outside the bounds."""
        return self.low, self.high, 0.0

    def largest(self, size: float) -> float:
        """As large as before, or as a bound."""
        return max([size, *(abs(b) for b in self.kinks)])

    def overwrite(self, x: Tensor) -> Tensor:
        """The function on a batch, written over it."""
        return x.clamp_(self.low, self.high)

    def derivative(self, x: Tensor, dx: Tensor) -> Tensor:
        """The slope dz strictly between the bounds, 0 elsewhere."""
        return torch.where((x > self.low) & (x < self.high), dx, 0.0)


class Windows(Bend):
    """The maximum over windows of entries of a point."""

    is_elementwise: ClassVar[bool] = False

    @abstractmethod
    def table(self, shape: tuple[int, ...]) -> Tensor:
        """Entry numbers (n_windows, size) in the flattened point of `shape`, -1 for padding."""

    def windows(self, shape: Shape) -> WindowTable:
        """The windows of a point of `shape`, computed once."""
        return _window_table(self, shape)

    def states(self, x: Tensor) -> Any:
        """The position of the largest entry in each window, (n, n_windows), uint8 or uint16."""
        table = self.windows(tuple(x.shape[1:])).entries
        entries = np.where(table >= 0, x.flatten(1).numpy()[:, table], -np.inf)
        return entries.argmax(axis=2).astype(np.uint8 if table.shape[1] < 256 else np.uint16)

    def _inherited(self, z: Tensor, terms: Tensor, size: Tensor, bound: Tensor) -> tuple[Tensor, Tensor]:
        """The same for maxima: of the entries that may be the largest of their window."""
        table = self.table(tuple(z.shape[1:]))
        is_entry = table >= 0

        def of_windows(entries: Tensor) -> Tensor:
            return entries.flatten(1)[:, table.clamp(min=0)]

        high, low = of_windows(z + bound), of_windows(z - bound)
        best = low.masked_fill(~is_entry, -torch.inf).amax(dim=-1, keepdim=True)
        contends = (high >= best) & is_entry

        def largest(entries: Tensor) -> Tensor:
            shape = self(z[:1]).shape[1:]
            return torch.where(contends, of_windows(entries), 0.0).amax(dim=-1).reshape(len(z), *shape)

        return largest(torch.where(z.abs() <= bound, terms, 0.0)), largest(size)

    def derivative(self, x: Tensor, dx: Tensor) -> Tensor:
        """The slope dz of the entry that wins; among equal entries, of the one that rises fastest."""
        table = self.table(tuple(x.shape[1:]))
        values, slopes = (v.flatten(1)[:, table.clamp(min=0)] for v in (x, dx))
        best = values.masked_fill(table < 0, -math.inf).amax(dim=-1, keepdim=True)
        wins = (values == best) & (table >= 0)
        result = slopes.masked_fill(~wins, -math.inf).amax(dim=-1)
        return result.reshape(len(x), *self(x[:1]).shape[1:])

    def slopes(self, x: Tensor) -> Tensor:
        """The number of the largest entry of each window in the flattened point, (n, *output shape)."""
        table = self.table(tuple(x.shape[1:]))
        entries = x.flatten(1)[:, table.clamp(min=0)].masked_fill(table < 0, -torch.inf)
        best = entries.argmax(dim=-1)
        winners = table.expand(len(x), *table.shape).gather(-1, best[..., None])[..., 0]
        return winners.reshape(len(x), *self(x[:1]).shape[1:])

    def along(self, slopes: Tensor, d: Tensor) -> Tensor:
        """The entries of each direction (n, k, ...) that win."""
        n, k = d.shape[:2]
        index = slopes.flatten(1)[:, None].expand(n, k, -1)
        return d.flatten(2).gather(2, index).reshape(n, k, *slopes.shape[1:])

    def back(self, slopes: Tensor, reached: Tensor, shapes: Sequence[Shape]) -> list[Tensor]:
        """The winners of the windows that are marked."""
        n_marks = torch.zeros(len(reached), math.prod(shapes[0]), dtype=torch.int32)
        n_marks.scatter_add_(1, slopes.flatten(1), reached.flatten(1).int())
        return [(n_marks > 0).reshape(len(reached), *shapes[0])]


@dataclass(frozen=True, eq=False)
class MaxPool(Windows):
    """Max-pooling in one to three dimensions over the last axes, padded with minus infinity."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    ceil_mode: bool = False
    name: str = "max_pool"

    def __call__(self, x: Tensor) -> Tensor:
        """The function on a batch."""
        function: Any = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[len(self.kernel) - 1]
        lead = x.shape[: -len(self.kernel)]  # pooling takes exactly one axis of points and one of channels
        flat = x.reshape(1, -1, *x.shape[-len(self.kernel) :])
        y = function(flat, self.kernel, self.stride, self.padding, self.dilation, self.ceil_mode)
        result: Tensor = y.reshape(*lead, *y.shape[2:])
        return result

    def table(self, shape: tuple[int, ...]) -> Tensor:
        """Entry numbers of each window."""
        return _windows(shape, [self._along(i, size) for i, size in enumerate(shape[-len(self.kernel) :])])

    def _along(self, i: int, size: int) -> Tensor:
        """Entry numbers (n_windows, size of a window) along one axis, -1 for padding."""
        reach = self.dilation[i] * (self.kernel[i] - 1) + 1
        spare = size + 2 * self.padding[i] - reach
        n_windows = (-(-spare // self.stride[i]) if self.ceil_mode else spare // self.stride[i]) + 1
        if (n_windows - 1) * self.stride[i] >= size + self.padding[i]:
            n_windows -= 1  # torch drops a window that would start in the right padding
        starts = torch.arange(n_windows) * self.stride[i] - self.padding[i]
        entries = starts[:, None] + torch.arange(self.kernel[i]) * self.dilation[i]
        return torch.where((entries < 0) | (entries >= size), -1, entries)


def _windows(shape: tuple[int, ...], along: Sequence[Tensor]) -> Tensor:
    """Entry numbers of the products of windows `along` each of the last axes of a point, by channel."""
    entries_of = torch.zeros(1, 1, dtype=torch.int64)
    for size, entries in zip(shape[-len(along) :], along, strict=True):
        pairs = entries_of[:, None, :, None], entries[None, :, None, :]
        inside = (pairs[0] >= 0) & (pairs[1] >= 0)
        entries_of = torch.where(inside, pairs[0] * size + pairs[1], -1).flatten(2).flatten(0, 1)
    area, n_channels = math.prod(shape[-len(along) :]), math.prod(shape[: -len(along)])
    lifted = torch.where(entries_of < 0, -1, entries_of + area * torch.arange(n_channels)[:, None, None])
    return lifted.reshape(-1, entries_of.shape[1])


@dataclass(frozen=True, eq=False)
class AdaptiveMaxPool(Windows):
    """Max-pooling to a given size over the last axes; its windows may overlap and differ in size."""

    size: tuple[int, ...]
    name: str = "max_pool"

    def __call__(self, x: Tensor) -> Tensor:
        """The function on a batch."""
        functions = F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d
        function: Any = functions[len(self.size) - 1]
        lead = x.shape[: -len(self.size)]
        y: Tensor = function(x.reshape(1, -1, *x.shape[-len(self.size) :]), self.size)
        return y.reshape(*lead, *self.size)

    def table(self, shape: tuple[int, ...]) -> Tensor:
        """Entry numbers of each window: from floor(i in / out) to below ceil((i + 1) in / out)."""
        sizes = zip(shape[-len(self.size) :], self.size, strict=True)
        return _windows(shape, [self._along(n_in, n_out) for n_in, n_out in sizes])

    @staticmethod
    def _along(n_in: int, n_out: int) -> Tensor:
        i = torch.arange(n_out)
        start, end = i * n_in // n_out, -(-(i + 1) * n_in // n_out)
        entries = start[:, None] + torch.arange(int((end - start).max()))
        return torch.where(entries < end[:, None], entries, -1)


@dataclass(frozen=True, eq=False)
class PaddedMaxPool(Windows):
    """Max-pooling after padding with minus infinity, unequally from side to side as files do.

    Attributes:
        pool: the pooling itself, without padding.
        widths: as `torch.nn.functional.pad` takes them: from the last axis backwards, two per axis.
    """

    pool: MaxPool
    widths: tuple[int, ...]
    name: str = "max_pool"

    def __call__(self, x: Tensor) -> Tensor:
        """The function on a batch."""
        return self.pool(F.pad(x, self.widths, value=-math.inf))

    def table(self, shape: tuple[int, ...]) -> Tensor:
        """Entry numbers of each window in the point before padding."""
        numbers = F.pad(torch.arange(math.prod(shape)).reshape(shape), self.widths, value=-1)
        return numbers.reshape(-1)[self.pool.table(tuple(numbers.shape))]


@dataclass(frozen=True, eq=False)
class MaxOver(Windows):
    """The maximum over axes of a point."""

    axes: tuple[int, ...]
    keepdim: bool = False
    name: str = "max"

    def __call__(self, x: Tensor) -> Tensor:
        """The function on a batch."""
        return x.amax(dim=[a + 1 for a in self.axes], keepdim=self.keepdim)

    def table(self, shape: tuple[int, ...]) -> Tensor:
        """Entry numbers along the reduced axes, one window per remaining entry."""
        numbers = torch.arange(math.prod(shape)).reshape(shape)
        kept = [a for a in range(len(shape)) if a not in self.axes]
        return numbers.permute(*kept, *self.axes).reshape(-1, math.prod(shape[a] for a in self.axes))


def max_pool(
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    *,
    ceil_mode: bool = False,
) -> MaxPool:
    """Max-pooling with every argument spread to one number per axis, as torch does."""
    n = len(kernel)
    stride = stride or kernel
    each = [tuple(v) * n if len(v) == 1 else tuple(v) for v in (kernel, stride, padding, dilation)]
    return MaxPool(each[0], each[1], each[2], each[3], ceil_mode=ceil_mode)


@lru_cache(maxsize=64)
def _window_table(op: Windows, shape: Shape) -> WindowTable:
    entries = np.ascontiguousarray(op.table(shape).numpy())
    gather = np.where(entries < 0, math.prod(shape), entries).T.astype(np.int32)
    return WindowTable(entries, np.ascontiguousarray(gather))
