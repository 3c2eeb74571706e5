"""The representation cost of Patel and Montufar (submission of 2024), sec. 6.1: least norms for functions.

R(f) = inf { |theta| : N_theta = f } over networks of one hidden layer of any width. With inputs (x, 1) and
unit vectors u a network is sum_u a(u) relu(u.(x, 1)), and rescaling makes |theta|^2 = 2 sum |a|. The kinks of
f fix a(u) + a(-u) = c_u; what is free is t_u = (a(u) - a(-u)) / 2, through which the affine part of f is
shared out. Up to |t_u| = |c_u| / 2 it costs nothing, beyond that no less than a unit of its own, so that

    R(f)^2 = 2 sum |c_u| + min_{k, |t_u| <= |c_u| / 2} 4 |l - sum t_u u - k e| + h(k),

l.(x, 1) the affine part, e = (0, 1), and h the cost of the constant k: 2 |k| by a unit that is always on, or
the least of that and an output bias. The minimum over t is a bounded least-squares problem, that over k
convex on the line.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from inscape.arrays import Floats
from inscape.errors import TheoryError
from inscape.pictures import Shown
from inscape.serialising import SCHEMA, check_schema, plain_fields, restored_fields
from inscape.theory.layers import Layers, layers_of

_SAME = 1e-10
"""Unit vectors closer than this are one."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RepresentationCost(Shown):
    """The least norm of the parameters of a network that computes a function.

    Attributes:
        value: R(f), or an upper bound of it.
        is_exact: whether it is R(f): for networks of one hidden layer and one output. Of others it is the
            norm of the network itself.
        norm: |theta| of the network that was given.
        n_kinks: hyperplanes on which f bends; -1 where they were not looked for.
    """

    value: float
    is_exact: bool
    norm: float
    n_kinks: int

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back."""
        return {"schema": SCHEMA, "measure": "representation cost"} | plain_fields(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The result that `to_dict` wrote."""
        check_schema(data, "measure", "representation cost", what="representation cost", error=TheoryError)
        result: Self = restored_fields(cls, data, what="representation cost", error=TheoryError)
        return result

    def __repr__(self) -> str:
        sign = "=" if self.is_exact else "<="
        return f"<representation cost {sign} {self.value:.4g}, norm of the network {self.norm:.4g}>"


def representation_cost(model: Any, x: Any, *, output_bias: bool = True) -> RepresentationCost:
    """The representation cost of what a network computes on all of its input space.

    Biases are parameters and count. Exact to 1e-6 for one hidden layer and one output, at any width; else an
    upper bound.

    Args:
        model: a relu network of layers in a row.
        x: points, of which only the shape matters.
        output_bias: whether networks may have an output bias; it counts too.

    relu(x) = relu(10 x) / 10 costs sqrt 2 however it is written, and x = relu(x) - relu(-x) costs 2.

    >>> from inscape.univariate import ShallowNet
    >>> representation_cost(ShallowNet([10.0], [0.0], [0.1]), [[0.0]])
    <representation cost = 1.414, norm of the network 10>
    >>> round(representation_cost(ShallowNet([1.0, -5.0], [0.0, 0.0], [1.0, -0.2]), [[0.0]]).value, 6)
    2.0
    """
    net = layers_of(model, x)
    if net.n_hidden != 1 or len(net.weights[-1]) != 1:
        return RepresentationCost(value=net.size, is_exact=False, norm=net.size, n_kinks=-1)
    kinks, directions, affine = _canonical(net)
    if not output_bias and net.offsets[-1][0] != 0:
        raise TheoryError("the network has an output bias: give output_bias=True")
    least = _affine_cost(affine, directions, kinks, output_bias)
    value = math.sqrt(2 * float(np.abs(kinks).sum()) + least)
    return RepresentationCost(value=value, is_exact=True, norm=net.size, n_kinks=int((kinks != 0).sum()))


def _canonical(net: Layers) -> tuple[Floats, Floats, Floats]:
    """c_u and u of each hyperplane, (m,) and (m, d + 1), and the affine part l, (d + 1,)."""
    w = np.column_stack([net.weights[0], net.offsets[0]])
    v = net.weights[1][0]
    affine = np.zeros(w.shape[1])
    affine[-1] = net.offsets[1][0]
    lengths = np.linalg.norm(w, axis=1)
    kinks: list[float] = []
    directions: list[Floats] = []
    for row, length, weight in zip(w, lengths, v, strict=True):
        if not row[:-1].any():  # a constant
            affine[-1] += weight * max(row[-1], 0.0)
            continue
        u, a = row / length, weight * length
        affine += a / 2 * u
        for i, known in enumerate(directions):
            if min(np.abs(known - u).max(), np.abs(known + u).max()) < _SAME:
                kinks[i] += a
                break
        else:
            kinks.append(a)
            directions.append(u)
    c = np.array(kinks)
    c = np.where(np.abs(c) <= 1e-12 * max(1.0, float(np.abs(v * lengths).sum())), 0.0, c)
    return c, np.array(directions).reshape(-1, w.shape[1]), affine


def _affine_cost(affine: Floats, directions: Floats, kinks: Floats, output_bias: bool) -> float:
    """The least of 4 |l - sum t u - k e| + h(k) over t within its bounds and over k."""
    from scipy.optimize import lsq_linear, minimize_scalar

    free = kinks != 0
    u, bound = directions[free].T, np.abs(kinks[free]) / 2

    def cost(k: float) -> float:
        rest = affine.copy()
        rest[-1] -= k
        if bound.size:
            rest = rest - u @ lsq_linear(u, rest, (-bound, bound), method="bvls", tol=1e-14).x
        constant = k * k if output_bias and abs(k) <= 1 else 2 * abs(k) - output_bias
        return 4 * float(np.linalg.norm(rest)) + constant

    reach = float(np.linalg.norm(affine)) + float(bound.sum()) + 1
    found = minimize_scalar(cost, bounds=(-reach, reach), method="bounded", options={"xatol": 1e-12})
    return min(float(found.fun), cost(0.0), cost(float(affine[-1])))
