"""What a walk over the graph can ask any operation, and what it hears by default.

`affine` and `piecewise` hold the operations. Both kinds also answer, each in its own way:

- `op(*inputs)` on a batch, and `cast(dtype)`;
- `jvp(values, directions)`: the derivative at values in directions;
- `term_size(value, sizes)`: how large the numbers are that the result was summed up from;
- `error_scales`, `slope_error_scales`: how rounding errors go through, see `partition.linear.rounding`;
- `slopes`, `along`, `forth`, `back`: the linear map at each row, and what it makes of directions and marks.
"""

from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from inscape.models.graph.affine import Affine


class Operation:
    """An operation of the graph, alike on every row of a batch."""

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
        """Whether it leaves the entries of a row as they are, in another shape."""
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
        """Factor and offset of a map along the first row axis, as batch-norm in eval mode; both (c,)."""
        return None
