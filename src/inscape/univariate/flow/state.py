"""A point of the gradient flow: parameters, active neurons at each point, and those that slide along a kink.

For fixed activity every margin is smooth (bilinear in each neuron). Where the flow pushes a knot onto a data
point from both sides, the neuron slides: its knot stays there (Filippov's solution of the inclusion), which
leaves it one direction less. Everything is decided neuron by neuron, since for given weights of the points
each neuron moves alone.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from inscape.arrays import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class FlowState:
    """A net on a labelled sample, for the flow.

    Attributes:
        x: the points, (n,).
        labels: y_i, (n,).
        theta: rows w, b, v, (3, k).
        active: whether neuron j is active at point i, (n, k).
        slide: the point on which the knot of neuron j slides, or -1, (k,).
    """

    x: Floats
    labels: Floats
    theta: Floats
    active: Bools
    slide: Ints

    @classmethod
    def start(cls, w: Floats, b: Floats, v: Floats, x: Floats, y: Floats) -> "FlowState":
        """The flow's state at a net."""
        return cls(x, y, np.stack([w, b, v]), x[:, None] * w + b > 0, np.full(len(w), -1))

    @property
    def norm(self) -> float:
        """The Euclidean norm of the parameters."""
        return float(np.linalg.norm(self.theta))

    @cached_property
    def inputs(self) -> Floats:
        """w_j x_i + b_j, (n, k); exactly zero where a neuron slides."""
        z = self.x[:, None] * self.theta[0] + self.theta[1]
        j = np.flatnonzero(self.slide >= 0)
        z[self.slide[j], j] = 0.0
        return np.asarray(z)

    @cached_property
    def features(self) -> Floats:
        """The gradients of the margins by (w, b, v), (n, 3 k), those of sliding neurons along their kink."""
        k = self.theta.shape[1]
        out = np.empty((len(self.x), 3 * k))
        signed = self.active * self.labels[:, None]
        np.multiply(signed, self.theta[2], out=out[:, k : 2 * k])
        np.multiply(out[:, k : 2 * k], self.x[:, None], out=out[:, :k])
        np.multiply(signed, self.inputs, out=out[:, 2 * k :])
        j = np.flatnonzero(self.slide >= 0)
        if len(j):  # take away what points along the normal (x_i, 1)
            at = self.x[self.slide[j]]
            normal = (out[:, j] * at + out[:, k + j]) / (at**2 + 1)
            out[:, j] -= normal * at
            out[:, k + j] -= normal
        return out

    @cached_property
    def margins(self) -> Floats:
        """y_i f(x_i), (n,)."""
        return np.asarray(self.features[:, 2 * self.theta.shape[1] :] @ self.theta[2])

    @cached_property
    def gram(self) -> Floats:
        """The products of the margins' gradients, (n, n)."""
        return np.asarray(self.features @ self.features.T)

    def moved(self, by: Floats, q: Floats) -> "FlowState":
        """The state after adding `by` (3 k,); kinks that were passed on the way are crossed or slid along.

        Args:
            by: the change of (w, b, v).
            q: the weights of the points, which say where a neuron at a kink is pushed.
        """
        after = replace(self, theta=self.theta + by.reshape(self.theta.shape))
        passed = (after.inputs > 0) != self.active
        passed[self.slide[self.slide >= 0], np.flatnonzero(self.slide >= 0)] = False
        if not passed.any():
            return after
        return _settled(self, after, passed, q)

    def with_releases(self, q: Floats) -> "FlowState":
        """Let go of the neurons that the flow no longer holds at their kink."""
        j = np.flatnonzero(self.slide >= 0)
        if len(j) == 0:
            return self
        off, on = _pushes(self, j, self.slide[j], q)
        free = ~((off > 0) & (on < 0))
        if not free.any():
            return self
        active, slide = self.active.copy(), self.slide.copy()
        active[slide[j[free]], j[free]] = on[free] > 0
        slide[j[free]] = -1
        return replace(self, active=active, slide=slide)


def _pushes(state: FlowState, j: Ints, i: Ints, q: Floats) -> tuple[Floats, Floats]:
    """The speed of w_j x_i + b_j with point i off and on, for pairs of a neuron and a point."""
    pull, v = state.labels * q, state.theta[2, j]
    active = state.active[:, j].astype(np.float64)
    active[i, np.arange(len(j))] = 0.0
    off = v * (state.x[i] * ((pull * state.x) @ active) + pull @ active)
    return off, off + v * pull[i] * (state.x[i] ** 2 + 1)


def _settled(before: FlowState, after: FlowState, passed: Bools, q: Floats) -> FlowState:
    """Take each neuron through the kinks it passed, in the order in which it met them, or stop it at one."""
    after = replace(after, theta=after.theta.copy(), active=after.active.copy(), slide=after.slide.copy())
    z = after.inputs
    through_zero = np.flatnonzero(passed.any(axis=0) & (after.slide >= 0))
    after.slide[
        through_zero
    ] = -1  # a sliding neuron whose weights changed sign starts anew on the other side
    after.active[:, through_zero] = z[:, through_zero] > 0
    passed[:, through_zero] = False
    with np.errstate(invalid="ignore", divide="ignore"):
        when = np.where(passed, before.inputs / (before.inputs - z), np.inf)
    when[passed & np.isnan(when)] = 0.0
    todo = np.flatnonzero(passed.any(axis=0))
    while len(todo):
        i = np.argmin(when[:, todo], axis=0)
        off, on = _pushes(after, todo, i, q)
        stuck = (off > 0) & (on < 0)
        _stop(after, todo[stuck], i[stuck])
        j, i = todo[~stuck], i[~stuck]
        after.active[i, j] = z[i, j] > 0
        when[i, j] = np.inf
        todo = j[np.isfinite(when[:, j]).any(axis=0)]
    return replace(after)  # nothing that was computed on the way is kept


def _stop(state: FlowState, j: Ints, i: Ints) -> None:
    """Put the knots of neurons j onto the points i, by the shortest way."""
    w, b, at = state.theta[0, j], state.theta[1, j], state.x[i]
    normal = (w * at + b) / (at**2 + 1)
    state.theta[0, j] -= normal * at
    state.theta[1, j] -= normal
    state.active[:, j] = state.x[:, None] * state.theta[0, j] + state.theta[1, j] > 0
    state.active[i, j] = False
    state.slide[j] = i
