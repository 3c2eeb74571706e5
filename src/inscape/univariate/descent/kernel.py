"""Compiled gradient descent on f(x) = sum_j v_j relu(w_j x + b_j) + c.

On ascending x a neuron is active from its knot to one end, so a single index per neuron says where. Sums over
the active points are then differences of running sums, and a step costs O(k + n) instead of O(k n).
"""

import numpy as np

from inscape.compiled import compiled

SQUARE, EXPONENTIAL, LOGISTIC = 0, 1, 2
CONVERGED, STATIONARY, DIVERGED, STEP_LIMIT = 0, 1, 2, 3
_CHECK = 64  # steps between looks at the gradient
_FAR = 1e30  # a loss that never comes back
_FLAT = 1e-18  # squared norm of the gradient over the loss: a minimum that does not interpolate


@compiled(inline="always")
def _turning_point(p, w, b, x):
    """The first index at which the activity of a neuron has changed, looked for around its last place p.

    A neuron with w >= 0 is active at x[p:], one with w < 0 at x[:p].
    """
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
    """Sums of r (column 0) and r x (column 1) over x[p:] in row p, and over x[:p] in row n + 1 + p."""
    n = len(x)
    total, total_x = 0.0, 0.0
    sums[n, 0] = sums[n, 1] = 0.0
    for j in range(n - 1, -1, -1):
        total += r[j]
        total_x += r[j] * x[j]
        sums[j, 0], sums[j, 1] = total, total_x
    total, total_x = 0.0, 0.0
    sums[n + 1, 0] = sums[n + 1, 1] = 0.0
    for j in range(n):
        total += r[j]
        total_x += r[j] * x[j]
        sums[n + 2 + j, 0], sums[n + 2 + j, 1] = total, total_x


@compiled
def _outputs(x, c, lines, f):
    """The values f(x_j) from the lines that begin at p (row p) or end there (row n + 1 + p); clears them."""
    n = len(x)
    slope, bias = 0.0, c
    for j in range(n):
        bias += lines[j, 0]
        slope += lines[j, 1]
        f[j] = slope * x[j] + bias
    slope = bias = 0.0
    for j in range(n - 1, -1, -1):
        bias += lines[n + 2 + j, 0]
        slope += lines[n + 2 + j, 1]
        f[j] += slope * x[j] + bias
    lines[:] = 0.0


@compiled
def _steepness(theta, place, sums, n):
    """The squared norm of the gradient by (w, b, v)."""
    squares = 0.0
    for i in range(theta.shape[1]):
        w, b, v, p = theta[0, i], theta[1, i], theta[2, i], place[i]
        row = p if w >= 0 else p + n + 1
        s, sx = sums[row, 0], sums[row, 1]
        squares += v * v * (sx * sx + s * s) + (w * sx + b * s) ** 2
    return squares


@compiled(error_model="numpy")
def _move(eta, momentum, x, theta, speed, place, sums, lines):
    """One step of every neuron; theta holds rows w, b, v."""
    falling = len(x) + 1
    for i in range(theta.shape[1]):
        w, b, v, p = theta[0, i], theta[1, i], theta[2, i], place[i]
        row = p if w >= 0 else p + falling
        s, sx = sums[row, 0], sums[row, 1]
        gw, gb, gv = v * sx, v * s, w * sx + b * s
        if momentum != 0.0:
            gw += momentum * speed[0, i]
            gb += momentum * speed[1, i]
            gv += momentum * speed[2, i]
            speed[0, i], speed[1, i], speed[2, i] = gw, gb, gv
        w -= eta * gw
        b -= eta * gb
        v -= eta * gv
        theta[0, i], theta[1, i], theta[2, i] = w, b, v
        p = _turning_point(p, w, b, x)
        place[i] = p
        row = p if w >= 0 else p + falling
        lines[row, 0] += v * b
        lines[row, 1] += v * w


@compiled
def descend(
    x,
    y,
    theta,
    c,
    eta,
    n_steps,
    kind,
    batch,
    momentum,
    warm_up,
    change_at,
    change,
    tol,
    patience,
    every,
    seed,
    train_c,
):
    """Gradient descent on ascending x.

    Args:
        x: places, ascending, (n,).
        y: values, (n,).
        theta: rows w, b, v, (3, k); changed in place, and left at the last finite point.
        c: output bias.
        eta: step size.
        n_steps: how many steps at most.
        kind: the loss.
        batch: points per step, n for all.
        momentum: of the heavy ball.
        warm_up: over how many steps the step size rises linearly to eta.
        change_at: the step from which it is multiplied by `change`.
        change: that factor.
        tol: a loss of at most this (or a vanishing gradient) must hold ...
        patience: ... for so many steps in a row, after warm-up and change.
        every: record every so many steps.
        seed: of the batches.
        train_c: whether the output bias moves.

    Returns:
        status, steps done, c, loss, and the records: steps, losses, step sizes, and parameters (m, 3 k + 1).
    """
    n, k = len(x), theta.shape[1]
    room = n_steps // every + 2
    steps, losses, etas = np.empty(room, np.int64), np.empty(room), np.empty(room)
    path = np.empty((room, 3 * k + 1))
    f, r = np.empty(n), np.empty(n)
    sums, lines = np.zeros((2 * n + 2, 2)), np.zeros((2 * n + 2, 2))
    chosen, order, place = np.ones(n), np.arange(n), np.zeros(k, np.int64)
    speed, speed_c = np.zeros((3, k)), 0.0
    state = np.uint64(seed) * np.uint64(2) + np.uint64(0x9E3779B97F4A7C15)
    _move(0.0, 0.0, x, theta, speed, place, sums, lines)
    before, before_c = theta.copy(), c
    status, done, m, calm, loss, squares = STEP_LIMIT, 0, 0, 0, np.inf, np.inf
    while True:
        _outputs(x, c, lines, f)
        if batch < n:
            state = _draw_batch(chosen, order, batch, state)
        loss = _pulls(kind, f, y, chosen, 1.0 / batch, r)
        now = eta * (min(1.0, (done + 1) / warm_up) if warm_up > 0 else 1.0)
        if done >= change_at:
            now *= change
        if not loss < _FAR:
            theta[:] = before
            c = before_c
            status = DIVERGED
            break
        settled = done >= warm_up and (done >= change_at or change == 1.0)
        calm = calm + 1 if settled and (loss <= tol or (squares <= _FLAT * loss and batch == n)) else 0
        if done % every == 0:
            steps[m], losses[m], etas[m] = done, loss, now
            path[m, :k], path[m, k : 2 * k], path[m, 2 * k : 3 * k] = theta[0], theta[1], theta[2]
            path[m, 3 * k] = c
            m += 1
        if calm > patience:
            status = CONVERGED if loss <= tol else STATIONARY
            break
        if done == n_steps:
            break
        _running_sums(x, r, sums)
        gc = sums[0, 0] if train_c else 0.0
        if done % _CHECK == 0:
            before[:] = theta
            before_c = c
            squares = gc * gc + _steepness(theta, place, sums, n)
        _move(now, momentum, x, theta, speed, place, sums, lines)
        if train_c:
            speed_c = gc + momentum * speed_c
            c -= now * speed_c
        done += 1
    return status, done, c, loss, steps[:m], losses[:m], etas[:m], path[:m]
