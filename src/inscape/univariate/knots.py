"""Where f(x) = sum_j v_j relu(w_j x + b_j) + c changes its slope, and by how much."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats
from inscape.errors import UnivariateError
from inscape.pictures import Drawn
from inscape.serialising import SCHEMA, check_schema, plain_fields, restored_fields

MERGE_TOL = 1e-9
JUMP_TOL = 1e-9


def neuron_knots(w: Floats, b: Floats, v: Floats) -> tuple[Floats, Floats]:
    """The knots -b/w of the neurons with a slope, ascending, and the jump v |w| of f' at each."""
    sloped = (w != 0) & (v != 0)
    with np.errstate(over="ignore"):
        t, jump = -b[sloped] / w[sloped], v[sloped] * np.abs(w[sloped])
    finite = np.isfinite(t)  # a knot beyond the range of float64 is none
    t, jump = t[finite], jump[finite]
    order = np.argsort(t, kind="stable")
    return t[order], jump[order]


def merged_knots(t: Floats, jump: Floats, merge_tol: float, jump_tol: float) -> tuple[Floats, Floats]:
    """Join neighbouring knots, then drop the joints whose jumps cancel.

    Neighbours nearer than merge_tol max(1, |t|) are one knot, at the mean of the two weighted by |jump|; its
    jump is the sum. A knot stays if |jump| > jump_tol times the largest |jump| of a single neuron.

    Args:
        t: knots of the neurons, ascending, (h,).
        jump: their slope jumps, (h,).
        merge_tol: how near is the same place.
        jump_tol: how small is no change of slope.
    """
    if len(t) == 0:
        return t, jump
    apart = np.diff(t) > merge_tol * np.maximum(1.0, np.abs(t[1:]))
    first = np.concatenate([[0], np.flatnonzero(apart) + 1])
    total = np.add.reduceat(jump, first)
    size = np.abs(jump)
    weight = np.add.reduceat(size, first)
    with np.errstate(invalid="ignore"):  # jumps that underflow to zero weigh nothing
        centre = np.add.reduceat((t - t[first].repeat(np.diff([*first, len(t)]))) * size, first) / weight
    kept = np.abs(total) > jump_tol * size.max()
    return (t[first] + centre)[kept], total[kept]


@dataclass(frozen=True, eq=False, kw_only=True)
class RegionTable(Drawn):
    """The number of linear regions under many tolerances; where it does not change it means something.

    Attributes:
        merge_tols: tolerances of place, (a,).
        jump_tols: tolerances of slope, (b,).
        counts: the number of linear regions, (a, b).

    >>> from inscape.univariate import ShallowNet
    >>> net = ShallowNet([1.0, 1.0, 1.0], [0.0, -1e-6, -1.0], [1.0, 1.0, 1.0])  # two knots nearly meet
    >>> net.region_table(merge_tols=[1e-9, 1e-3], jump_tols=[1e-9]).counts.tolist()
    [[4], [3]]
    """

    merge_tols: Floats
    jump_tols: Floats
    counts: npt.NDArray[np.int64]

    @property
    def effective(self) -> int:
        """The effective number of linear regions: the count on the largest plateau (the larger in a tie)."""
        values, lengths = np.unique(self.counts, return_counts=True)
        return int(values[lengths == lengths.max()].max())

    @property
    def plateau(self) -> float:
        """The share of the table that the plateau fills, between 0 and 1."""
        return float((self.counts == self.effective).mean())

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back."""
        about = {"schema": SCHEMA, "measure": "linear_regions_by_tolerance"}
        return about | plain_fields(self) | {"effective": self.effective, "plateau": self.plateau}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The table that `to_dict` wrote."""
        check_schema(
            data, "measure", "linear_regions_by_tolerance", what="table of regions", error=UnivariateError
        )
        result: Self = restored_fields(cls, data, what="table of regions", error=UnivariateError)
        return result

    def _draw(self, ax: Any) -> Any:
        """The table with its counts."""
        from inscape.drawing.univariate import draw_region_table

        return draw_region_table(self.merge_tols, self.jump_tols, self.counts, self.effective, ax=ax)

    def __repr__(self) -> str:
        return f"<{self.effective} effective linear regions, on {self.plateau:.0%} of the tolerances>"
