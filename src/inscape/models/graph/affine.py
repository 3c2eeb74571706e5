"""What operations of the graph answer, and the affine ones: y = A(x_1, ..., x_k) + b at each point.

Every operation acts on tensors whose first axis counts points of the input space, and treats them alike. Axes
in the arguments below are those of *one point*: axis 0 is the first after the batch axis. Constants are torch
tensors of any floating dtype; the graph casts them as needed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from inscape.arrays import Shape
from inscape.models.graph.convolution import convolve, in_slices, is_faster

_MOVES = (
    "reshape view _unsafe_view flatten squeeze unsqueeze permute transpose t slice select narrow gather "
    "index index_select clone detach _to_copy"
)
MOVES = frozenset(_MOVES.split())
"""Operations that only move entries, by the names of nodes and of ATen's calls."""
_AVERAGES = "mean avg_pool avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d"


class Operation:
    """What a walk over the graph can ask any operation, and what it hears by default.

    Affine and piecewise-linear operations also answer, each in its own way:

    - `op(*inputs)` on a batch, and `cast(dtype)`;
    - `jvp(values, directions)`: the derivative at values in directions;
    - `term_size(value, sizes)`: how large the numbers are that the result was summed up from;
    - `error_scales`, `slope_error_scales`: how rounding errors go through, see `partition.linear.rounding`;
    - `slopes`, `along`, `forth`, `back`: the linear map at each point, what it makes of directions and marks.
    """

    name: str
    constants: tuple[Tensor, ...] = ()
    then: "Callable[[Tensor, Tensor], Affine] | None" = None
    geometry: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int] | None = None
    factors: tuple[Tensor | float, ...] | None = None

    is_affine: ClassVar[bool] = False
    is_elementwise: ClassVar[bool] = False
    """Whether it is a piecewise-linear function of each entry alone."""

    @property
    def is_relu(self) -> bool:
        """Whether it is z -> max(z, 0)."""
        return False

    @property
    def is_reshape(self) -> bool:
        """Whether it leaves the entries of a point as they are, in another shape."""
        return False

    @property
    def only_moves(self) -> bool:
        """Whether each entry of its result is one of its input's."""
        return False

    @property
    def owns_result(self) -> bool:
        """Whether its result is memory of its own that may be written over, not a view of an input."""
        return False

    @property
    def kinks(self) -> tuple[float, ...]:
        """The values of an entry at which the slope of an elementwise function changes."""
        return ()

    @property
    def slope_jumps(self) -> tuple[float, ...] | None:
        """By how much the slope changes at each kink, moving up; None if entries differ in that."""
        return None

    @property
    def weight(self) -> Tensor | None:
        """The matrix, or the kernel of a convolution, that is multiplied with the input."""
        return None

    @property
    def matrix(self) -> Tensor | None:
        """W of a map y = W x + b along the last axis, (out, in)."""
        return None

    @property
    def per_channel(self) -> tuple[Tensor, Tensor] | None:
        """Factor and offset along the first axis of a point, as of batch-norm in eval mode, (c,) each."""
        return None


@dataclass(frozen=True, eq=False)
class Affine(Operation):
    """A map y = function(*inputs, *constants) that is affine in its inputs together.

    Attributes:
        name: what the operation is called in messages.
        function: evaluates a batch; called with the inputs followed by the constants.
        constants: the tensors that it depends on.
        absolute: `function` with every coefficient replaced by its absolute value; by default
            `function` on the absolute constants, which is right unless a coefficient is built in.
        then: the operation followed by `y -> scale y + shift` along its channel axis, if that is one
            operation of the same kind; scale and shift have shape (channels,).
        geometry: of a convolution in two dimensions: stride, padding, dilation, groups.
        n_offsets: how many of the constants, the last ones, make up b; the others are coefficients of A.
        factors: a_1, ..., a_k if the operation is a_1 x_1 + ... + a_k x_k + b entry by entry, else None.
        entrywise: a and b if it is a x + b entry by entry, but has its constants in another shape.
    """

    name: str
    function: Callable[..., Tensor]
    constants: tuple[Tensor, ...] = ()
    absolute: Callable[..., Tensor] | None = None
    then: "Callable[[Tensor, Tensor], Affine] | None" = None
    geometry: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int] | None = None
    n_offsets: int = 0
    factors: tuple[Tensor | float, ...] | None = None
    entrywise: tuple[Tensor, Tensor] | None = None

    is_affine: ClassVar[bool] = True

    def __call__(self, *inputs: Tensor) -> Tensor:
        """The operation on a batch."""
        return self.function(*inputs, *self.constants)

    def magnitude(self, *inputs: Tensor) -> Tensor:
        """|A| |x| + |b|: the scale of the numbers that are summed, so of the rounding error."""
        absolute = self.function if self.absolute is None else self.absolute
        return absolute(*inputs, *(c.abs() for c in self.constants))

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """The constants that are coefficients of A."""
        return self.constants[: len(self.constants) - self.n_offsets]

    @property
    def offsets(self) -> tuple[Tensor, ...]:
        """The constants that make up b."""
        return self.constants[len(self.weights) :]

    @cached_property
    def linear_part(self) -> "Affine":
        """The operation d -> A d, which is op(x + d) - op(x) at every x.

        >>> linear(torch.eye(2), torch.ones(2)).linear_part(torch.ones(1, 2)).tolist()
        [[1.0, 1.0]]
        """
        if not self.n_offsets:
            return self
        constants = (*self.weights, *(torch.zeros_like(c) for c in self.offsets))
        return replace(self, constants=constants, then=None)

    @property
    def owns_result(self) -> bool:
        """Whether its result is memory of its own that may be written over, not a view of an input."""
        return self.name in ("linear", "conv", "batch_norm", "add", "subtract")

    @property
    def is_reshape(self) -> bool:
        """Whether it leaves the entries of a point as they are, in another shape."""
        return self.name == "reshape"

    @property
    def only_moves(self) -> bool:
        """Whether each entry of its result is one of its input's."""
        return self.name in MOVES

    @property
    def averages(self) -> bool:
        """Whether it takes means over windows or axes."""
        return self.name in _AVERAGES.split()

    @property
    def only_adds(self) -> bool:
        """Whether it adds or subtracts entries, none of them twice."""
        return self.name in ("sum", "add", "subtract")

    @property
    def diagonal(self) -> Tensor | None:
        """The factors of a map that multiplies each entry, or each channel, by one of its own."""
        return self.constants[0] if self.name in ("multiply", "batch_norm") else None

    @property
    def weight(self) -> Tensor | None:
        """The matrix, or the kernel of a convolution, that is multiplied with the input."""
        return self.constants[0] if self.name in ("linear", "conv", "conv_transpose") else None

    @property
    def matrix(self) -> Tensor | None:
        """W of a map y = W x + b along the last axis, (out, in)."""
        return self.constants[0] if self.name == "linear" else None

    @property
    def per_channel(self) -> tuple[Tensor, Tensor] | None:
        """Factor and offset along the first axis of a point, as of batch-norm in eval mode, (c,) each."""
        return (self.constants[0], self.constants[1]) if self.name == "batch_norm" else None

    def n_products(self, size: int, input_size: int) -> int:
        """How many products of two numbers it takes: each weight is used at every place.

        Each entry of a tensor without weights is touched once. The sizes are those of a point of the result
        and of the input.
        """
        places = input_size if self.name == "conv_transpose" else size
        return sum(w.numel() // len(w) * places for w in self.weights if w.ndim > 1) or size

    def jvp(self, values: Sequence[Tensor], directions: Sequence[Tensor]) -> Tensor:
        """Its derivative in some directions, the same at all values: A d."""
        return self.linear_part(*directions)

    def term_size(self, value: Tensor, sizes: Sequence[Tensor]) -> Tensor:
        """How large the numbers are that the result was summed up from, given those of its inputs."""
        return self.magnitude(*sizes)

    def growth(self, shapes: Sequence[Shape]) -> tuple[float, float]:
        """The largest row sum of |A| and the largest |b|, for inputs of some shapes of a point."""
        ones = [torch.ones(1, *shape, dtype=torch.float64) for shape in shapes]
        offset = self.magnitude(*(torch.zeros_like(r) for r in ones))
        return float(self.linear_part.magnitude(*ones).max()), float(offset.max())

    def error_scales(
        self,
        value: Tensor,
        values: Sequence[Tensor],
        terms: Sequence[Tensor],
        before: Sequence[Tensor],
        relative: float,
    ) -> tuple[Tensor, Tensor]:
        """The scale of the terms that the result is summed up from, and that of the errors it takes over."""
        return self.magnitude(*terms), self._root_of_squares(before)

    def slope_error_scales(
        self, values: Sequence[Tensor], slope: Tensor, terms: Sequence[Tensor], before: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """The same of its derivative, `slope`."""
        return self.linear_part.magnitude(*terms), self._root_of_squares(before)

    def _root_of_squares(self, sizes: Sequence[Tensor]) -> Tensor:
        """The root of the sum of squares of the terms, without the offset."""
        linear = self.linear_part
        squared = replace(linear, constants=tuple(c * c for c in linear.constants))
        return squared.magnitude(*(s * s for s in sizes)).sqrt()

    def slopes(self, *inputs: Tensor) -> None:
        """Nothing that depends on the point: A is the same at each."""

    def along(self, slopes: Tensor | None, *d: Tensor) -> Tensor:
        """What the linear map makes of k directions (n, k, ...) of each point."""
        made = self.linear_part(*(t.flatten(0, 1) for t in d))
        return made.reshape(*d[0].shape[:2], *made.shape[1:])

    def forth(self, slopes: Tensor | None, *marks: Tensor) -> Tensor:
        """Which entries of the result those have an influence on that are marked by a positive number."""
        return self.linear_part.magnitude(*marks) > 0

    def back(self, slopes: Tensor | None, reached: Tensor, shapes: Sequence[Shape]) -> list[Tensor]:
        """Which entries of the inputs have an influence on those that are marked, (n, *shape) bool each."""
        if self.matrix is not None and bool((self.matrix != 0).all()):
            return [reached.any(dim=-1, keepdim=True).expand(*reached.shape[:-1], shapes[0][-1])]
        inputs = [torch.zeros(len(reached), *shape, requires_grad=True) for shape in shapes]
        with torch.enable_grad():
            out = self.linear_part.magnitude(*inputs)
        grads = torch.autograd.grad(out, inputs, reached.to(out.dtype), allow_unused=True)
        return [
            torch.zeros(len(reached), *shape, dtype=torch.bool) if g is None else g > 0
            for g, shape in zip(grads, shapes, strict=True)
        ]

    def cast(self, dtype: torch.dtype) -> "Affine":
        """The operation with its constants in another precision."""
        return replace(self, constants=tuple(c.to(dtype) for c in self.constants))


def identity() -> Affine:
    """The map y = x, which stands for the input of a graph."""
    return structural("input", lambda x: x)


def _channels(values: Tensor, n_axes: int) -> Tensor:
    """(channels,) shaped so that it multiplies along the first of `n_axes` axes of a point."""
    return values.reshape(-1, *(1,) * (n_axes - 1))


def linear(weight: Tensor, bias: Tensor | None = None) -> Affine:
    """The map y = W x + b along the last axis; `weight` is (out, in)."""

    def then(scale: Tensor, shift: Tensor) -> Affine:
        moved = shift if bias is None else bias.to(scale) * scale + shift
        return linear(weight.to(scale) * scale[:, None], moved)

    constants = (weight,) if bias is None else (weight, bias)
    return Affine("linear", F.linear, constants, then=then, n_offsets=len(constants) - 1)


def conv(
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    stride: Sequence[int] = (1,),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    groups: int = 1,
) -> Affine:
    """Convolution in one to three dimensions; `weight` is (out, in / groups, *kernel)."""
    function: Any = (F.conv1d, F.conv2d, F.conv3d)[weight.ndim - 3]
    stride, padding, dilation = (_spread(v, weight.ndim - 2) for v in (stride, padding, dilation))

    def apply(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
        if not _BY_TORCH.get() and is_faster(x, w, stride, groups):
            return convolve(x, w, b, stride, padding, dilation, groups)
        return in_slices(lambda chunk: function(chunk, w, b, stride, padding, dilation, groups), x, w)

    def then(scale: Tensor, shift: Tensor) -> Affine:
        moved = shift if bias is None else bias.to(scale) * scale + shift
        scaled = weight.to(scale) * scale.reshape(-1, *(1,) * (weight.ndim - 1))
        return conv(scaled, moved, stride=stride, padding=padding, dilation=dilation, groups=groups)

    geometry = (stride, padding, dilation, groups) if weight.ndim == 4 else None
    constants = (weight,) if bias is None else (weight, bias)
    return Affine("conv", apply, constants, then=then, geometry=geometry, n_offsets=len(constants) - 1)


_BY_TORCH: ContextVar[bool] = ContextVar("_BY_TORCH", default=False)
"""Whether convolutions are left to torch here."""


@contextmanager
def by_torch() -> Iterator[None]:
    """Leave convolutions to torch meanwhile: for a few points a loop is not worth compiling, or loading."""
    token = _BY_TORCH.set(True)
    try:
        yield
    finally:
        _BY_TORCH.reset(token)


def conv_transpose(
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    stride: Sequence[int] = (1,),
    padding: Sequence[int] = (0,),
    output_padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    groups: int = 1,
) -> Affine:
    """Transposed convolution; `weight` is (in, out / groups, *kernel)."""
    function: Any = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[weight.ndim - 3]
    n = weight.ndim - 2
    args = (_spread(stride, n), _spread(padding, n), _spread(output_padding, n), groups, _spread(dilation, n))

    def apply(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
        result: Tensor = function(x, w, b, *args)
        return result

    constants = (weight,) if bias is None else (weight, bias)
    return Affine("conv_transpose", apply, constants, n_offsets=len(constants) - 1)


def _spread(values: Sequence[int], n: int) -> tuple[int, ...]:
    return tuple(values) * n if len(values) == 1 else tuple(values)


def scale(factor: Tensor) -> Affine:
    """The map y = factor * x; `factor` broadcasts against the shape of a point."""
    return Affine("multiply", torch.mul, (factor,), factors=(factor,))


def shift(offset: Tensor) -> Affine:
    """The map y = x + offset; `offset` broadcasts against the shape of a point."""
    return Affine("add", torch.add, (offset,), n_offsets=1, factors=(1.0,))


def masked(keep: Tensor, fill: Tensor) -> Affine:
    """The map y = keep * x + fill for a mask `keep` of zeros and ones: some entries are replaced."""
    return Affine("masked_fill", lambda x, k, f: x * k + f, (keep, fill), n_offsets=1, factors=(keep,))


def channel_affine(factor: Tensor, offset: Tensor, n_axes: int | None = None) -> Affine:
    """The map y = factor * x + offset along the first axis of a point, as batch-norm in eval mode.

    With the number of axes of a point it is also known entry by entry.
    """

    def apply(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return x * _channels(a, x.ndim - 1) + _channels(b, x.ndim - 1)

    def then(scale: Tensor, shift: Tensor) -> Affine:
        return channel_affine(factor.to(scale) * scale, offset.to(scale) * scale + shift)

    entrywise = None if n_axes is None else (_channels(factor, n_axes), _channels(offset, n_axes))
    return Affine("batch_norm", apply, (factor, offset), then=then, n_offsets=1, entrywise=entrywise)


def add(alpha: float = 1.0) -> Affine:
    """The map y = x_1 + alpha x_2."""
    if alpha == 1.0:
        return Affine("add", torch.add, factors=(1.0, 1.0))
    return Affine(
        "add",
        lambda a, b: torch.add(a, b, alpha=alpha),
        absolute=lambda a, b: a + abs(alpha) * b,
        factors=(1.0, alpha),
    )


def subtract() -> Affine:
    """The map y = x_1 - x_2."""
    return Affine("subtract", torch.sub, absolute=torch.add, factors=(1.0, -1.0))


def combine(matrix: Tensor) -> Affine:
    """The map y = x M for `matrix` (in, out), along the last axis: a product with a constant on the right."""
    return linear(matrix.mT)


def structural(name: str, function: Callable[..., Tensor]) -> Affine:
    """A map whose coefficients are fixed and not negative: moves, copies, sums or averages entries."""
    return Affine(name, function)


def reshape(shape: Sequence[int]) -> Affine:
    """The point reshaped to `shape`."""
    return structural("reshape", lambda x: x.reshape(x.shape[0], *shape))


def permute(axes: Sequence[int]) -> Affine:
    """The point's axes in another order."""
    order = (0, *(a + 1 for a in axes))
    return structural("permute", lambda x: x.permute(order))


def sliced(axis: int, start: int, stop: int, step: int = 1) -> Affine:
    """Entries start, start + step, ... below stop along an axis of a point."""
    index = (slice(None),) * (axis + 1) + (slice(start, stop, step),)
    return structural("slice", lambda x: x[index])


def take(axis: int, indices: Tensor) -> Affine:
    """The entries at integer `indices` (m,) along an axis of a point."""
    return structural("gather", lambda x: x.index_select(axis + 1, indices))


def concat(axis: int) -> Affine:
    """Tensors joined along an axis of a point."""
    return structural("concat", lambda *x: torch.cat(x, dim=axis + 1))


def pad(widths: Sequence[int], *, mode: str = "constant", value: float = 0.0) -> Affine:
    """`torch.nn.functional.pad`; widths run from the last axis backwards, two per axis."""
    widths = list(widths)
    if mode != "constant":
        return structural("pad", lambda x: F.pad(x, widths, mode=mode))
    if value == 0.0:
        return structural("pad", lambda x: F.pad(x, widths))
    fill = torch.tensor(value, dtype=torch.float64)
    return Affine("pad", lambda x, v: F.pad(x, widths, value=float(v)), (fill,), n_offsets=1)


def mean(axes: Sequence[int], *, keepdim: bool = False) -> Affine:
    """The mean over axes of a point."""
    dims = [a + 1 for a in axes]
    return structural("mean", lambda x: x.mean(dim=dims, keepdim=keepdim))


def total(axes: Sequence[int], *, keepdim: bool = False) -> Affine:
    """The sum over axes of a point."""
    dims = [a + 1 for a in axes]
    return structural("sum", lambda x: x.sum(dim=dims, keepdim=keepdim))


def cumulated(axis: int, *, exclusive: bool = False, reverse: bool = False) -> Affine:
    """The sum of all entries up to each one along an axis of a point, or of those behind it (`reverse`).

    >>> cumulated(0, exclusive=True)(torch.tensor([[1.0, 2.0, 3.0]])).tolist()
    [[0.0, 1.0, 3.0]]
    """
    dim = axis + 1

    def apply(x: Tensor) -> Tensor:
        ahead = x.flip(dim) if reverse else x
        sums = ahead.cumsum(dim)
        if exclusive:
            sums = torch.cat(
                [torch.zeros_like(sums.narrow(dim, 0, 1)), sums.narrow(dim, 0, x.shape[dim] - 1)], dim
            )
        return sums.flip(dim) if reverse else sums

    return structural("cumsum", apply)


def expand(shape: Sequence[int]) -> Affine:
    """The point broadcast to `shape`."""
    return structural("expand", lambda x: x.expand(x.shape[0], *shape))
