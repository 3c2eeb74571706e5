"""The network of Theorem 6 of Li et al. 2025: f(x) = sum_j a_j relu(w_j . x), its sharpness, its regions."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats, Ints
from inscape.errors import NotApplicableError, TheoryError
from inscape.partition import decision_regions
from inscape.probes import Segment
from inscape.theory.layers import Layers, layers_of

if TYPE_CHECKING:
    import torch


_DENSE = 2000
"""Points up to which the Gram matrix is written out."""


@dataclass(frozen=True, eq=False)
class TwoLayer:
    """f(x) = sum_j a_j relu(w_j . x + b_j) + c, of which w and b are trained and a and c are fixed.

    The paper has b = c = 0 and a_j = +-1. A bias is the weight of a constant input 1, so its lemmas hold with
    (x, 1) in place of x; for other a_j a unit counts a_j^2 times in the sharpness.

    Attributes:
        w: (p, d).
        a: (p,).
        b: (p,); all zero means that there are no biases to train.
        c: output bias.
    """

    w: Floats
    a: Floats
    b: Floats
    c: float = 0.0

    def __call__(self, x: Floats) -> Floats:
        """The value f at points (n, d)."""
        return np.asarray(np.maximum(x @ self.w.T + self.b, 0.0) @ self.a + self.c)

    def active(self, x: Floats) -> npt.NDArray[np.bool_]:
        """Which unit is active at which point, (n, p)."""
        return np.asarray(x @ self.w.T + self.b > 0)

    def inputs(self, x: Floats) -> Floats:
        """What the trained weights multiply: x, or (x, 1) if there are biases."""
        return np.hstack([x, np.ones((len(x), 1))]) if self.b.any() else x

    def sharpness(self, x: Floats) -> float:
        """The top eigenvalue of the Hessian of L = 1/(2N) sum (y - f)^2 by the trained weights.

        f is linear in them between kinks, so the Hessian is the Gram matrix of the features a_j 1_j x, and
        does not depend on y.
        """
        from scipy.sparse.linalg import LinearOperator, eigsh

        on, points, n = self.active(x) * self.a, self.inputs(x), len(x)
        if n <= _DENSE:
            return float(np.linalg.eigvalsh((points @ points.T) * (on @ on.T) / n)[-1])

        def product(u: Floats) -> Floats:
            return np.asarray((on * (points @ ((on * u.reshape(-1, 1)).T @ points).T)).sum(axis=1) / n)

        operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
        return float(eigsh(operator, k=1, v0=np.ones(n), return_eigenvectors=False)[0])

    def n_regions(self, starts: Floats, ends: Floats) -> Ints:
        """The number of regions of equal sign on each segment, exactly, (m,)."""
        counts = np.ones(len(starts), dtype=np.int64)
        apart = np.flatnonzero((starts != ends).any(axis=1))
        segments = [Segment(starts[i], ends[i]) for i in apart]
        if segments:
            found = decision_regions(self.to_module(), segments, method="exact")
            counts[apart] = [regions.n_regions for regions in found]
        return counts

    def to_module(self) -> "torch.nn.Sequential":
        """This network as a torch module in float64."""
        import torch
        from torch import nn

        p, d = self.w.shape
        module = nn.Sequential(nn.Linear(d, p), nn.ReLU(), nn.Linear(p, 1)).double()
        values = (self.w, self.b, self.a[None, :], np.array([self.c]))
        with torch.no_grad():
            for parameter, value in zip(module.parameters(), values, strict=True):
                parameter.copy_(torch.from_numpy(np.array(value)))
        return module


def two_layer(model: Any, x: Any) -> TwoLayer:
    """The network with one hidden layer and one score, or two of which the difference decides.

    A pair of arrays (w, a) stands for the paper's own network, without biases.
    """
    if isinstance(model, tuple) and len(model) == 2:
        w, a = (np.asarray(part, dtype=np.float64) for part in model)
        if w.ndim != 2 or a.shape != w.shape[:1]:
            raise TheoryError(f"w {w.shape} and a {a.shape} are no two-layer network: give (p, d) and (p,)")
        model = TwoLayer(w, a, np.zeros(len(a)))
    if isinstance(model, TwoLayer):
        n_inputs = model.w.shape[1]
        if np.shape(x)[1] != n_inputs:
            raise TheoryError(f"the points have {np.shape(x)[1]} coordinates, the network {n_inputs} inputs")
        return model
    layers: Layers = layers_of(model, x)
    if layers.n_hidden != 1:
        raise NotApplicableError(f"the statement is about one hidden layer, not {layers.n_hidden}")
    (w, out), (b, c) = layers.weights, layers.offsets
    if len(out) > 2:
        raise NotApplicableError(f"the statement is about two classes, not {len(out)} scores")
    if len(out) == 2:
        out, c = out[1:] - out[:1], c[1:] - c[:1]
    return TwoLayer(w, out[0], b, float(c[0]))


def all_pairs(n: int) -> tuple[Ints, Ints]:
    """The n (n - 1) / 2 pairs i < j."""
    i, j = np.triu_indices(n, 1)
    return i.astype(np.int64), j.astype(np.int64)
