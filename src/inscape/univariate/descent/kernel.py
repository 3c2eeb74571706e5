"""Compiled gradient descent on f(x) = sum_j v_j relu(w_j x + b_j) + c.

On ascending x a neuron is active from its knot to one end, so one index p per neuron, its turning point, says
where: a rising neuron (w >= 0) is active at x[p:], a falling one (w < 0) at x[:p].

    x         x_0   x_1   x_2   x_3   x_4
    rising               [x_2 ---------->     p = 2, in the tables at 2
    falling   <---------- x_2]                p = 3, in the tables at n + 1 + 3

Two tables of shape (2 n + 2, 2) hold what depends on a turning point alone, at p for rising and at n + 1 +
p for falling neurons: `sums`, the sums of r_j and of r_j x_j over the active points, and `lines`, the
summed bias and slope of the neurons that turn there. Running sums along x fill the first and turn the
second into f, so a step costs O(k + n) instead of O(k n).
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

from typing import NamedTuple

import numpy as np

from inscape.arrays import Floats, Ints
from inscape.compiled import compiled, copy, unbounded

SQUARE, EXPONENTIAL, LOGISTIC = 0, 1, 2
CONVERGED, STATIONARY, DIVERGED, STEP_LIMIT = 0, 1, 2, 3
_CHECK_GRADIENT_EVERY = 64  # steps
_DIVERGED_FROM = 1e30  # a loss that never comes back
_STATIONARY_BELOW = 1e-18  # squared norm of the gradient over the loss: a minimum that does not interpolate


@compiled(inline="always")
def _turning_point(p, w, b, x):
    """The turning point of a neuron after a step, searched for from its last one, p."""
    n = len(x)
    rising = w >= 0
    while p > 0 and (w * x[p - 1] + b > 0) == rising:
        p -= 1
    while p < n and (w * x[p] + b > 0) != rising:
        p += 1
    return p


@compiled
def _pulls(kind, f, y, chosen, scale, r):
    """The mean loss over all points, and r[j] = dl_j/df_j times `scale` for the chosen ones, else 0."""
    loss = 0.0
    for j in range(len(f)):
        if kind == SQUARE:
            r[j] = f[j] - y[j]
            loss += 0.5 * r[j] * r[j]
        else:
            m = y[j] * f[j]
            e = np.exp(-m) if kind == EXPONENTIAL else np.exp(-abs(m))
            if kind == EXPONENTIAL:
                loss += e
                r[j] = -y[j] * e
            else:
                loss += np.log1p(e) + max(-m, 0.0)
                r[j] = -y[j] * (e if m > 0 else 1.0) / (1.0 + e)
        r[j] *= scale * chosen[j]
    return loss / len(f)


@compiled
def _draw_batch(chosen, order, size, state):
    """Mark `size` points drawn without replacement; returns the next state of the generator (xorshift64*)."""
    n = len(order)
    chosen[:] = 0.0
    for i in range(size):
        state ^= state >> np.uint64(12)
        state ^= state << np.uint64(25)
        state ^= state >> np.uint64(27)
        drawn = (state * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(11)
        j = i + int(drawn * (1.0 / 9007199254740992.0) * (n - i))
        order[i], order[j] = order[j], order[i]
        chosen[order[i]] = 1.0
    return state


@compiled
def _running_sums(x, r, sums):
    """Fill `sums`: of r and r x over x[p:] at p, and over x[:p] at n + 1 + p."""
    n = len(x)
    # (1) rising neurons: from the right end
    total, total_x = 0.0, 0.0
    sums[n, 0] = sums[n, 1] = 0.0
    for j in range(n - 1, -1, -1):
        total += r[j]
        total_x += r[j] * x[j]
        sums[j, 0], sums[j, 1] = total, total_x
    # (2) falling neurons: from the left end
    total, total_x = 0.0, 0.0
    sums[n + 1, 0] = sums[n + 1, 1] = 0.0
    for j in range(n):
        total += r[j]
        total_x += r[j] * x[j]
        sums[n + 2 + j, 0], sums[n + 2 + j, 1] = total, total_x


@compiled
def _outputs(x, c, lines, f):
    """The values f(x_j) from the lines that begin at p (at p) or end there (at n + 1 + p); clears them."""
    n = len(x)
    # (1) rising neurons: each line counts from its turning point on
    slope, bias = 0.0, c
    for j in range(n):
        bias += lines[j, 0]
        slope += lines[j, 1]
        f[j] = slope * x[j] + bias
    # (2) falling neurons: each line counts up to its turning point
    slope = bias = 0.0
    for j in range(n - 1, -1, -1):
        bias += lines[n + 2 + j, 0]
        slope += lines[n + 2 + j, 1]
        f[j] += slope * x[j] + bias
    lines[:] = 0.0


@compiled
def _steepness(theta, turn, sums, n):
    """The squared norm of the gradient by (w, b, v)."""
    squares = 0.0
    for i in range(theta.shape[1]):
        w, b, v, p = theta[0, i], theta[1, i], theta[2, i], turn[i]
        at = p if w >= 0 else p + n + 1
        s, sx = sums[at, 0], sums[at, 1]
        squares += v * v * (sx * sx + s * s) + (w * sx + b * s) ** 2
    return squares


@compiled(error_model="numpy")
def _move(eta, momentum, x, theta, speed, turn, sums, lines):
    """One step of every neuron; theta holds w, b, v in turn."""
    falling = len(x) + 1
    for i in range(theta.shape[1]):
        # (1) its gradient, from the sums over its active points
        w, b, v, p = theta[0, i], theta[1, i], theta[2, i], turn[i]
        at = p if w >= 0 else p + falling
        s, sx = sums[at, 0], sums[at, 1]
        gw, gb, gv = v * sx, v * s, w * sx + b * s
        if momentum != 0.0:
            gw += momentum * speed[0, i]
            gb += momentum * speed[1, i]
            gv += momentum * speed[2, i]
            speed[0, i], speed[1, i], speed[2, i] = gw, gb, gv
        # (2) the step
        w -= eta * gw
        b -= eta * gb
        v -= eta * gv
        theta[0, i], theta[1, i], theta[2, i] = w, b, v
        # (3) its turning point, and its line there
        p = _turning_point(p, w, b, x)
        turn[i] = p
        at = p if w >= 0 else p + falling
        lines[at, 0] += v * b
        lines[at, 1] += v * w


class Schedule(NamedTuple):
    """The step size over time.

    Attributes:
        eta: the step size.
        warm_up: over how many steps it rises linearly to eta.
        change_at: the step from which it is multiplied by `change`.
        change: that factor.
    """

    eta: float
    warm_up: int
    change_at: int
    change: float


@compiled
def _step_size(schedule, done):
    """The step size of the step after `done`."""
    warm_up = schedule.warm_up
    now = schedule.eta * (min(1.0, (done + 1) / warm_up) if warm_up > 0 else 1.0)
    if done >= schedule.change_at:
        now *= schedule.change
    return now


@compiled
def _is_settled(schedule, done):
    """Whether the step size has come to stay: warmed up and changed."""
    return done >= schedule.warm_up and (done >= schedule.change_at or schedule.change == 1.0)


class Records(NamedTuple):
    """What is kept of some of the steps.

    Attributes:
        steps: the number of steps done, (m,).
        losses: the loss there, (m,).
        sizes: the step size there, (m,).
        path: w, b, v and c there, (m, 3 k + 1).
    """

    steps: Ints
    losses: Floats
    sizes: Floats
    path: Floats


@compiled
def _record(records, m, done, loss, size, theta, c):
    """Write record m."""
    k = theta.shape[1]
    records.steps[m], records.losses[m], records.sizes[m] = done, loss, size
    for row in range(3):
        copy(theta[row], records.path[m, row * k :])
    records.path[m, 3 * k] = c


@compiled(work=unbounded)
def descend(
    x, y, theta, c, schedule, n_steps, kind, batch, momentum, tolerance, patience, every, seed, train_c
):
    """Gradient descent on ascending x.

    Args:
        x: places, ascending, (n,).
        y: values, (n,).
        theta: rows w, b, v, (3, k); changed in place, and left at the last finite point.
        c: output bias.
        schedule: of the step size.
        n_steps: how many steps at most.
        kind: the loss.
        batch: points per step, n for all.
        momentum: of the heavy ball.
        tolerance: a loss of at most this (or a vanishing gradient) must hold ...
        patience: ... for this many steps in a row, after warm-up and change.
        every: the number of steps from one record to the next.
        seed: of the batches.
        train_c: whether the output bias moves.

    Returns:
        status, steps done, c, loss, the records, and how many of them were written.
    """
    # (1) memory: records, values and pulls of the points, tables by turning point, batch, velocity
    n, k = len(x), theta.shape[1]
    most = n_steps // every + 2
    records = Records(np.empty(most, np.int64), np.empty(most), np.empty(most), np.empty((most, 3 * k + 1)))
    f, r = np.empty(n), np.empty(n)
    sums, lines = np.zeros((2 * n + 2, 2)), np.zeros((2 * n + 2, 2))
    chosen, order, turn = np.ones(n), np.arange(n), np.zeros(k, np.int64)
    speed, speed_c = np.zeros((3, k)), 0.0
    state = np.uint64(seed) * np.uint64(2) + np.uint64(0x9E3779B97F4A7C15)
    # (2) a step of length zero finds the turning points
    _move(0.0, 0.0, x, theta, speed, turn, sums, lines)
    before, before_c = theta.copy(), c
    status, done, m, calm, loss, squares = STEP_LIMIT, 0, 0, 0, np.inf, np.inf
    while True:
        # (3) loss and step size here
        _outputs(x, c, lines, f)
        if batch < n:
            state = _draw_batch(chosen, order, batch, state)
        loss = _pulls(kind, f, y, chosen, 1.0 / batch, r)
        now = _step_size(schedule, done)
        # (4) diverged: back to the last point that was kept
        if not loss < _DIVERGED_FROM:
            for row in range(3):
                copy(before[row], theta[row])
            c = before_c
            status = DIVERGED
            break
        # (5) how long the loss, or the gradient, has been as good as zero
        is_calm = loss <= tolerance or (squares <= _STATIONARY_BELOW * loss and batch == n)
        calm = calm + 1 if is_calm and _is_settled(schedule, done) else 0
        # (6) a record
        if done % every == 0:
            _record(records, m, done, loss, now, theta, c)
            m += 1
        # (7) the end: long enough at zero, or all steps done
        if calm > patience:
            status = CONVERGED if loss <= tolerance else STATIONARY
            break
        if done == n_steps:
            break
        # (8) the gradient; now and then its norm, and the point as one to go back to
        _running_sums(x, r, sums)
        gc = sums[0, 0] if train_c else 0.0
        if done % _CHECK_GRADIENT_EVERY == 0:
            for row in range(3):
                copy(theta[row], before[row])
            before_c = c
            squares = gc * gc + _steepness(theta, turn, sums, n)
        # (9) the step, of the neurons and of the output bias
        _move(now, momentum, x, theta, speed, turn, sums, lines)
        if train_c:
            speed_c = gc + momentum * speed_c
            c -= now * speed_c
        done += 1
    return status, done, c, loss, records, m
