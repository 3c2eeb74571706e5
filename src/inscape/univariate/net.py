"""The univariate network f(x) = sum_j v_j relu(w_j x + b_j) + c, and where its slope changes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
import numpy.typing as npt

from inscape.arguments import renamed, whole_number
from inscape.arrays import Floats, Ints
from inscape.errors import ModelError, UnivariateError, warn
from inscape.pictures import Drawn, finished
from inscape.seeding import RandomState
from inscape.serialising import SCHEMA, check_schema, plain_fields, restored_fields
from inscape.univariate.initialisation import InitialScale, draw

if TYPE_CHECKING:
    import torch
    from matplotlib.axes import Axes

    from inscape.pictures import DrawnAxes

MERGE_TOLERANCE = 1e-9
"""Times max(1, |t|): knots at t that are nearer to each other are one ..."""
JUMP_TOLERANCE = 1e-9
"""... and none if the slope changes there by less than this share of the largest change of a neuron."""
_RELUS_AT_ONCE = 2**22  # 32 MiB
_EXPECTED = "expected Linear(1, k), ReLU, Linear(k, 1)"


@dataclass(frozen=True, eq=False, kw_only=True)
class RegionTable(Drawn):
    """The number of linear regions under many tolerances; where it does not change it means something.

    Attributes:
        merge_tolerances: tolerances of place, (a,).
        jump_tolerances: tolerances of slope, (b,).
        counts: the number of linear regions, (a, b).

    >>> from inscape.univariate import ShallowNet
    >>> net = ShallowNet([1.0, 1.0, 1.0], [0.0, -1e-6, -1.0], [1.0, 1.0, 1.0])  # two knots nearly meet
    >>> net.region_table(merge_tolerances=[1e-9, 1e-3], jump_tolerances=[1e-9]).counts.tolist()
    [[4], [3]]
    """

    merge_tolerances: Floats
    jump_tolerances: Floats
    counts: Ints

    @property
    def merge_tols(self) -> Floats:
        """The old name of `merge_tolerances`."""
        warn("RegionTable.merge_tols is called merge_tolerances today", DeprecationWarning)
        return self.merge_tolerances

    @property
    def jump_tols(self) -> Floats:
        """The old name of `jump_tolerances`."""
        warn("RegionTable.jump_tols is called jump_tolerances today", DeprecationWarning)
        return self.jump_tolerances

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
        old = {"merge_tols": "merge_tolerances", "jump_tols": "jump_tolerances"}
        data = {old.get(name, name): value for name, value in data.items()}
        result: Self = restored_fields(cls, data, what="table of regions", error=UnivariateError)
        return result

    def _draw(self, ax: Any) -> Any:
        """The table with its counts."""
        from inscape.drawing.univariate import draw_region_table

        return draw_region_table(
            self.merge_tolerances, self.jump_tolerances, self.counts, self.effective, ax=ax
        )

    def __repr__(self) -> str:
        return f"<{self.effective} effective linear regions, on {self.plateau:.0%} of the tolerances>"


class ShallowNet:
    """The function f(x) = sum_j v_j relu(w_j x + b_j) + c in float64; never changes once made.

    Args:
        w: slopes of the neurons, (k,).
        b: their biases, (k,).
        v: output weights, (k,).
        c: output bias.

    >>> hat = ShallowNet([1, 1, 1], [1, 0, -1], [1, -2, 1])
    >>> hat([-2, -0.5, 0, 1]).tolist()
    [0.0, 0.5, 1.0, 0.0]
    >>> hat.knots.tolist(), hat.jumps.tolist(), hat.n_linear_regions()
    ([-1.0, 0.0, 1.0], [1.0, -2.0, 1.0], 4)
    """

    __slots__ = ("b", "c", "v", "w")

    w: Floats
    b: Floats
    v: Floats
    c: float

    def __init__(self, w: npt.ArrayLike, b: npt.ArrayLike, v: npt.ArrayLike, c: float = 0.0) -> None:
        arrays = {name: _vector(name, value) for name, value in (("w", w), ("b", b), ("v", v))}
        lengths = {len(a) for a in arrays.values()}
        if len(lengths) != 1:
            given = ", ".join(f"{name} has {len(a)}" for name, a in arrays.items())
            raise ModelError(f"w, b and v need one entry per neuron: {given}")
        if lengths == {0}:
            raise ModelError("a network of width 0 has no neurons: give at least one entry in w, b and v")
        try:
            output_bias = float(c)
        except (TypeError, ValueError):
            output_bias = np.nan
        if not np.isfinite(output_bias):
            raise ModelError(f"c={c!r} is not a finite number")
        for name, array in arrays.items():
            object.__setattr__(self, name, array)
        object.__setattr__(self, "c", output_bias)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a ShallowNet does not change: make another one instead of setting {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return ShallowNet, (self.w, self.b, self.v, self.c)

    @property
    def width(self) -> int:
        """The number of neurons k."""
        return len(self.w)

    @property
    def norm(self) -> float:
        """The Euclidean norm of all parameters."""
        return float(np.sqrt(self.w @ self.w + self.b @ self.b + self.v @ self.v + self.c**2))

    def __call__(self, x: npt.ArrayLike) -> Floats:
        """The value f(x), for x of any shape."""
        return self._summed(x, lambda z: np.maximum(z, 0.0, out=z) @ self.v) + self.c

    def derivative(self, x: npt.ArrayLike) -> Floats:
        """The slope at x, of any shape; at a knot the one to its right."""
        x = _numbers("x", x)
        t = np.divide(-self.b, self.w, out=np.zeros_like(self.b), where=self.w != 0)
        slope = self.v * self.w

        def active(points: Floats) -> Floats:
            right = points[:, None] >= t
            return np.where(self.w > 0, right, ~right) @ slope

        flat = x.reshape(-1)
        step = max(1, _RELUS_AT_ONCE // self.width)
        chunks = [active(flat[i : i + step]) for i in range(0, len(flat), step)]
        return np.concatenate([*chunks, np.empty(0)]).reshape(x.shape)

    def _summed(self, x: npt.ArrayLike, outputs: Any) -> Floats:
        x = _numbers("x", x)
        flat = x.reshape(-1)
        step = max(1, _RELUS_AT_ONCE // self.width)
        chunks = [outputs(flat[i : i + step, None] * self.w + self.b) for i in range(0, len(flat), step)]
        return np.concatenate([*chunks, np.empty(0)]).reshape(x.shape)

    # its shape ------------------------------------------------------------------------------------

    def _merged(self, merge_tolerance: float, jump_tolerance: float) -> tuple[Floats, Floats]:
        for name, value in (("merge_tolerance", merge_tolerance), ("jump_tolerance", jump_tolerance)):
            if not value >= 0:
                raise ModelError(f"{name}={value!r} must not be negative")
        return _merged_knots(*_neuron_knots(self.w, self.b, self.v), merge_tolerance, jump_tolerance)

    @property
    def knots(self) -> Floats:
        """Where the slope changes, ascending; coincident knots are one, jumps that cancel are none."""
        return self._merged(MERGE_TOLERANCE, JUMP_TOLERANCE)[0]

    @property
    def jumps(self) -> Floats:
        """By how much the slope changes at each of `knots`: the weights of the deltas in f''."""
        return self._merged(MERGE_TOLERANCE, JUMP_TOLERANCE)[1]

    @renamed(merge_tol="merge_tolerance", jump_tol="jump_tolerance")
    def n_linear_regions(
        self, *, merge_tolerance: float = MERGE_TOLERANCE, jump_tolerance: float = JUMP_TOLERANCE
    ) -> int:
        """The number of linear pieces of f on the real line.

        Args:
            merge_tolerance: knots nearer than this times max(1, |t|) are one.
            jump_tolerance: a slope change below this share of the largest one of a single neuron is none.
        """
        return len(self._merged(merge_tolerance, jump_tolerance)[0]) + 1

    @renamed(merge_tols="merge_tolerances", jump_tols="jump_tolerances")
    def region_table(
        self, merge_tolerances: npt.ArrayLike | None = None, jump_tolerances: npt.ArrayLike | None = None
    ) -> RegionTable:
        """The number of linear regions over both tolerances, by default 1e-8 to 1e-1 by half decades."""
        decades = 10.0 ** np.arange(-8, -0.75, 0.5)
        place = decades if merge_tolerances is None else _vector("merge_tolerances", merge_tolerances)
        slope = decades if jump_tolerances is None else _vector("jump_tolerances", jump_tolerances)
        counts = [[self.n_linear_regions(merge_tolerance=p, jump_tolerance=s) for s in slope] for p in place]
        return RegionTable(
            merge_tolerances=place, jump_tolerances=slope, counts=np.array(counts, dtype=np.int64)
        )

    def sign_changes(self, low: float = -np.inf, high: float = np.inf) -> Floats:
        """Where the sign of f changes on [low, high], ascending; as in the paper the sign of 0 is -1.

        Exact: between knots f is a straight line.
        """
        if not low < high:
            raise ModelError(f"[{low}, {high}] is no interval: low must be below high")
        inner = self.knots
        inner = inner[(inner > low) & (inner < high)]
        reach = 1.0 + (np.abs(inner).max() if len(inner) else 0.0)
        left = low if np.isfinite(low) else (inner[0] if len(inner) else min(high, 0.0)) - reach
        right = high if np.isfinite(high) else (inner[-1] if len(inner) else max(low, 0.0)) + reach
        t = np.unique(np.concatenate([[left], inner, [right]]))
        f = self(t)
        f[np.abs(f) <= self._rounding(t)] = 0.0
        outer = _beyond(t[0], t[1], f[0], f[1], low) + _beyond(t[-1], t[-2], f[-1], f[-2], high)
        zeros = np.unique(np.concatenate([_crossings(t, f), outer]))
        return _true_changes(zeros[(zeros > low) & (zeros < high)], low, high, t, f)

    def _rounding(self, x: Floats) -> Floats:
        """How far f(x) may be from its exact value: a few units in the last place of the sum of sizes."""
        size = np.abs(x[:, None] * self.w) + np.abs(self.b)
        return 8 * np.finfo(np.float64).eps * (size @ np.abs(self.v) + abs(self.c))

    # other ways to write it -------------------------------------------------------------------------

    def rescaled(self, c: npt.ArrayLike) -> "ShallowNet":
        """The same function with (c w, c b, v / c), for a positive c or one per neuron."""
        factor = np.broadcast_to(np.asarray(c, dtype=np.float64), self.w.shape)
        if not (np.isfinite(factor).all() and (factor > 0).all()):
            raise ModelError(f"c={c!r} must be positive: rescaling by anything else changes the function")
        return ShallowNet(factor * self.w, factor * self.b, self.v / factor, self.c)

    def canonical(self) -> "ShallowNet":
        """The same function with |w| = 1, neurons ordered by knot and side, equal ones joined, no idle ones.

        Two nets that differ only by order, rescaling or splitting of neurons have equal canonical forms. A
        function without neurons keeps a single one with v = 0.
        """
        constant = self.c + float(np.maximum(self.b, 0.0)[self.w == 0] @ self.v[self.w == 0])
        used = (self.w != 0) & (self.v != 0)
        side, size = np.sign(self.w[used]), np.abs(self.w[used])
        bias, out = self.b[used] / size, self.v[used] * size
        keys, where = np.unique(np.stack([-bias * side, side]), axis=1, return_inverse=True)
        total = np.bincount(where.reshape(-1), out, minlength=keys.shape[1])
        if len(total) == 0 or not total.any():
            return ShallowNet([1.0], [0.0], [0.0], constant)
        knot, side, total = keys[0][total != 0], keys[1][total != 0], total[total != 0]
        return ShallowNet(side, -knot * side, total, constant)

    @classmethod
    def random(
        cls,
        width: int,
        *,
        init: str = "torch",
        random_state: RandomState = None,
        **scale: Unpack[InitialScale],
    ) -> "ShallowNet":
        """A random net of that width; `inscape.univariate.initialisation.draw` says what `init` may be."""
        k = whole_number(width, "width", 1, ModelError)
        return cls(*draw(k, init, random_state, **scale))

    @classmethod
    def from_module(cls, module: "torch.nn.Module") -> "ShallowNet":
        """The net that a torch module Linear(1, k), ReLU, Linear(k, 1) computes, read in float64."""
        return cls(*_read_module(module))

    def to_module(self) -> "torch.nn.Sequential":
        """This net as torch Linear(1, k), ReLU, Linear(k, 1) in float64."""
        return _make_module(self.w, self.b, self.v, self.c)

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        title: str | None = None,
        x: npt.ArrayLike | None = None,
        y: npt.ArrayLike | None = None,
        legend: bool = True,
    ) -> "DrawnAxes":
        """Draw f with its knots, and data points if given; returns the matplotlib Axes.

        A function has no classes: `class_names` and `colours` are for pictures of regions.

        Args:
            ax: where to draw; new Axes if None.
            title: the title; None for none.
            x: places of data points, (n,).
            y: their values, (n,).
            legend: whether to draw the legend, if there is one.
        """
        from inscape.drawing.univariate import draw_function

        points = None if x is None else np.asarray(x, dtype=np.float64).reshape(-1)
        values = None if y is None else np.asarray(y, dtype=np.float64).reshape(-1)
        t = self.knots
        around = t if points is None else points
        low, high = (around.min(), around.max()) if len(around) else (-1.0, 1.0)
        room = 0.1 * (high - low) or 1.0
        inner = t[(t > low - room) & (t < high + room)]
        ends = np.concatenate([[low - room], inner, [high + room]])
        return finished(draw_function(ends, self(ends), points, values, ax=ax), title, legend)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back."""
        return {"schema": 1, "w": self.w.tolist(), "b": self.b.tolist(), "v": self.v.tolist(), "c": self.c}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "ShallowNet":
        """The net that `to_dict` wrote."""
        if data.get("schema") != 1 or not {"w", "b", "v", "c"} <= data.keys():
            raise ModelError(f"not a univariate net of schema 1: {str(data)[:80]}")
        return cls(data["w"], data["b"], data["v"], data["c"])

    def __repr__(self) -> str:
        return f"<univariate net of width {self.width}, {self.n_linear_regions()} linear regions>"


def _numbers(name: str, value: Any) -> Floats:
    if hasattr(value, "detach"):
        value = value.detach().cpu().double().numpy()  # numpy knows no bfloat16
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ModelError(f"{name} is not an array of numbers: {str(value)[:60]}") from error


def _vector(name: str, value: npt.ArrayLike) -> Floats:
    array = _numbers(name, value)
    if array.ndim != 1:
        raise ModelError(f"{name} has shape {array.shape}: give one number per neuron, shape (k,)")
    if not np.isfinite(array).all():
        raise ModelError(f"{name} has NaN or infinite entries")
    array.flags.writeable = False
    return array


def _neuron_knots(w: Floats, b: Floats, v: Floats) -> tuple[Floats, Floats]:
    """The knots -b/w of the neurons with a slope, ascending, and the jump v |w| of f' at each."""
    sloped = (w != 0) & (v != 0)
    with np.errstate(over="ignore"):
        t, jump = -b[sloped] / w[sloped], v[sloped] * np.abs(w[sloped])
    finite = np.isfinite(t)  # a knot beyond the range of float64 is none
    t, jump = t[finite], jump[finite]
    order = np.argsort(t, kind="stable")
    return t[order], jump[order]


def _merged_knots(
    t: Floats, jump: Floats, merge_tolerance: float, jump_tolerance: float
) -> tuple[Floats, Floats]:
    """Join neighbouring knots, then drop the joints whose jumps cancel.

    Neighbours nearer than merge_tolerance max(1, |t|) are one knot, at the mean of the two weighted by
    |jump|; its jump is the sum. A knot stays if |jump| > jump_tolerance times the largest |jump| of a single
    neuron.

    Args:
        t: knots of the neurons, ascending, (h,).
        jump: their slope jumps, (h,).
        merge_tolerance: how near is the same place.
        jump_tolerance: how small is no change of slope.
    """
    if len(t) == 0:
        return t, jump
    apart = np.diff(t) > merge_tolerance * np.maximum(1.0, np.abs(t[1:]))
    first = np.concatenate([[0], np.flatnonzero(apart) + 1])
    total = np.add.reduceat(jump, first)
    size = np.abs(jump)
    weight = np.add.reduceat(size, first)
    with np.errstate(invalid="ignore"):  # jumps that underflow to zero weigh nothing
        centre = np.add.reduceat((t - t[first].repeat(np.diff([*first, len(t)]))) * size, first) / weight
    kept = np.abs(total) > jump_tolerance * size.max()
    return (t[first] + centre)[kept], total[kept]


def _crossings(t: Floats, f: Floats) -> Floats:
    """Every t where the broken line (t, f) may change sign: its crossings, and where it is zero."""
    opposite = np.sign(f[:-1]) * np.sign(f[1:]) < 0  # products of very small or large values are none
    with np.errstate(invalid="ignore", divide="ignore"):
        s = f[:-1] / (f[:-1] - f[1:])
    between = (t[:-1] + s * (t[1:] - t[:-1]))[opposite]
    return np.concatenate([between, t[f == 0]])


def _beyond(end: float, inside: float, f_end: float, f_inside: float, limit: float) -> list[float]:
    """The zero of the outermost piece between its last evaluated point and an infinite limit."""
    if np.isfinite(limit):
        return []
    slope = (f_end - f_inside) / (end - inside)
    if slope == 0 or f_end == 0:
        return []
    zero = end - f_end / slope
    return [float(zero)] if (zero - end) * (end - inside) > 0 else []


def _true_changes(zeros: Floats, low: float, high: float, t: Floats, f: Floats) -> Floats:
    """Those of the candidate zeros, ascending, on whose two sides the sign differs (the sign of 0 is -1)."""
    if len(zeros) == 0:
        return zeros
    ends = max(low, min(t[0], zeros[0]) - 1.0), min(high, max(t[-1], zeros[-1]) + 1.0)
    grid = np.concatenate([ends[:1], zeros, ends[1:]])
    positive = _extended((grid[1:] + grid[:-1]) / 2, t, f) > 0
    return np.asarray(zeros[positive[1:] != positive[:-1]])


def _extended(x: Floats, t: Floats, f: Floats) -> Floats:
    """The broken line through (t, f), its outer pieces going on for ever."""
    i = np.clip(np.searchsorted(t, x) - 1, 0, len(t) - 2)
    slope = (f[i + 1] - f[i]) / (t[i + 1] - t[i])
    return np.asarray(f[i] + slope * (x - t[i]))


def _read_module(module: "torch.nn.Module") -> tuple[Floats, Floats, Floats, float]:
    """The parameters w, b, v, c of Linear(1, k), ReLU, Linear(k, 1); a layer without bias has bias zero."""
    from torch import nn

    if not isinstance(module, nn.Module):
        raise ModelError(f"{type(module).__name__} is not a torch module: {_EXPECTED}")
    layers = [m for m in module.modules() if not list(m.children()) and not isinstance(m, nn.Identity)]
    if [type(m) for m in layers] != [nn.Linear, nn.ReLU, nn.Linear]:
        names = ", ".join(type(m).__name__ for m in layers) or "no layers"
        raise ModelError(f"cannot read a univariate net from {names}: {_EXPECTED}")
    first, _, last = layers
    assert isinstance(first, nn.Linear)
    assert isinstance(last, nn.Linear)
    if first.in_features != 1 or last.out_features != 1 or first.out_features != last.in_features:
        shape = f"Linear({first.in_features}, {first.out_features})"
        raise ModelError(f"{shape}, ReLU, Linear({last.in_features}, {last.out_features}): {_EXPECTED}")

    def numbers(p: "torch.Tensor | None", size: int) -> Floats:
        return np.zeros(size) if p is None else p.detach().cpu().double().numpy().reshape(-1)

    k = first.out_features
    c = numbers(last.bias, 1)
    return numbers(first.weight, k), numbers(first.bias, k), numbers(last.weight, k), float(c[0])


def _make_module(w: Floats, b: Floats, v: Floats, c: float) -> "torch.nn.Sequential":
    """Linear(1, k), ReLU, Linear(k, 1) in float64 with these parameters."""
    import torch
    from torch import nn

    first, last = nn.Linear(1, len(w)).double(), nn.Linear(len(w), 1).double()
    with torch.no_grad():
        for parameter, value in (
            (first.weight, w[:, None]),
            (first.bias, b),
            (last.weight, v[None, :]),
            (last.bias, np.array([c])),
        ):
            parameter.copy_(torch.tensor(value))
    return nn.Sequential(first, nn.ReLU(), last)
