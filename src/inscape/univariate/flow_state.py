"""A point of the gradient flow: parameters, active neurons at each point, and those that slide along a kink.

For fixed activity every margin is smooth (bilinear in each neuron). Where the flow pushes a knot onto a data
point from both sides, the neuron slides: its knot stays there (Filippov's solution of the inclusion), which
leaves it one direction less. Everything is decided neuron by neuron, since for given weights of the points
each neuron moves alone.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class State:
    """A net on a labelled sample, for the flow.

    Attributes:
        points: rows (x_i, 1), (n, 2).
        labels: y_i, (n,).
        hidden: rows (w_j, b_j), (k, 2).
        output: v_j, (k,).
        active: whether neuron j is active at point i, (n, k).
        slide: the point on which the knot of neuron j slides, or -1, (k,).
    """

    points: Array
    labels: Array
    hidden: Array
    output: Array
    active: Mask
    slide: npt.NDArray[np.int64]

    @classmethod
    def start(cls, w: Array, b: Array, v: Array, x: Array, y: Array) -> "State":
        """The flow's state at a net."""
        points, hidden = np.stack([x, np.ones_like(x)], axis=1), np.stack([w, b], axis=1)
        slide = np.full(len(w), -1)
        return cls(points, y, hidden, v.copy(), points @ hidden.T > 0, slide)

    @property
    def norm(self) -> float:
        """The Euclidean norm of the parameters."""
        return float(np.sqrt((self.hidden**2).sum() + self.output @ self.output))

    def margins(self) -> Array:
        """y_i f(x_i), (n,)."""
        relu = np.where(self.active, self.points @ self.hidden.T, 0.0)
        return np.asarray(self.labels * (relu @ self.output))

    def features(self) -> Array:
        """The gradients of the margins by (w, b, v), (n, 3 k), those of sliding neurons along their kink."""
        relu = np.where(self.active, self.points @ self.hidden.T, 0.0)
        pull = self.active * self.output * self.labels[:, None]
        along = pull[:, :, None] * self.points[:, None, :]
        j = np.flatnonzero(self.slide >= 0)
        if len(j):
            normal = self.points[self.slide[j]] / np.linalg.norm(self.points[self.slide[j]], axis=1)[:, None]
            along[:, j] -= (along[:, j] * normal).sum(axis=2)[:, :, None] * normal
        return np.concatenate([along.reshape(len(self.labels), -1), relu * self.labels[:, None]], axis=1)

    def flat(self) -> Array:
        """All parameters in one row, as the features have them."""
        return np.concatenate([self.hidden.reshape(-1), self.output])

    def at(self, flat: Array, q: Array) -> "State":
        """The state with these parameters; kinks that were passed on the way are crossed or slid along.

        Args:
            flat: parameters as `flat()` gives them.
            q: the weights of the points, which say where a neuron at a kink is pushed.
        """
        k = len(self.output)
        moved = replace(self, hidden=flat[: 2 * k].reshape(k, 2).copy(), output=flat[2 * k :].copy())
        return _kinks(self.hidden, moved, q)

    def with_releases(self, q: Array) -> "State":
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


def _pushes(
    state: State, j: npt.NDArray[np.int64], i: npt.NDArray[np.int64], q: Array
) -> tuple[Array, Array]:
    """The speed of w_j x_i + b_j with point i off and on, for pairs of a neuron and a point."""
    pull = state.labels * q
    toward = state.points @ state.points[i].T  # (n, pairs)
    active = state.active[:, j].copy()
    active[i, np.arange(len(j))] = False
    off = state.output[j] * ((pull[:, None] * active) * toward).sum(axis=0)
    return off, off + state.output[j] * pull[i] * (state.points[i] ** 2).sum(axis=1)


def _kinks(before: Array, state: State, q: Array) -> State:
    """Settle every neuron that passed a kink since its weights were `before`."""
    z = state.points @ state.hidden.T
    j = np.arange(len(state.slide))
    held = state.slide >= 0
    z[state.slide[held], j[held]] = 0.0
    passed = (z > 0) != state.active
    passed[state.slide[held], j[held]] = False
    touched = np.flatnonzero(passed.any(axis=0))
    if len(touched) == 0:
        return state
    active, slide, hidden = state.active.copy(), state.slide.copy(), state.hidden.copy()
    state = replace(state, active=active, slide=slide, hidden=hidden)
    for neuron in touched:
        if slide[neuron] >= 0:  # its weights went through zero: it starts anew on the other side
            slide[neuron] = -1
            active[:, neuron] = z[:, neuron] > 0
        else:
            _pass(state, int(neuron), before[neuron], z[:, neuron], np.flatnonzero(passed[:, neuron]), q)
    return state


def _pass(
    state: State, neuron: int, before: Array, z: Array, points: npt.NDArray[np.int64], q: Array
) -> None:
    """Take a neuron through the kinks at `points` in the order in which it met them, or stop it at one."""
    start = state.points[points] @ before
    when = start / np.where(start == z[points], 1.0, start - z[points])
    for i in points[np.argsort(when, kind="stable")]:
        pair = np.array([neuron]), np.array([i])
        off, on = _pushes(state, *pair, q)
        if off[0] > 0 > on[0]:
            normal = state.points[i] / np.linalg.norm(state.points[i])
            state.hidden[neuron] -= (state.hidden[neuron] @ normal) * normal
            state.active[:, neuron] = state.points @ state.hidden[neuron] > 0
            state.active[i, neuron] = False
            state.slide[neuron] = i
            return
        state.active[i, neuron] = z[i] > 0
