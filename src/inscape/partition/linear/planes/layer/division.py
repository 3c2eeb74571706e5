"""Divide a convex cell along lines whose signs at its nodes have three values.

Units are taken one after the other; a cell with nodes on both sides of a unit is divided, through its zero
nodes or through new nodes on its edges. Whatever lies along a line that is there already divides nothing.
"""

import numpy as np
from numba.typed import List

from inscape.compiled import compiled


@compiled
def _sign(value, error):
    if abs(value) <= error:
        return 0
    return 1 if value > 0.0 else -1


@compiled
def _on_edge(values, errors, xy, signs, p, q, k, x):
    """Write node x, where unit k is zero between nodes p and q; it is zero too where both are."""
    s = values[p, k] / (values[p, k] - values[q, k])
    a, b = p, q
    if s > 0.5:
        a, b, s = q, p, values[q, k] / (values[q, k] - values[p, k])
    for i in range(2):
        xy[x, i] = xy[a, i] + s * (xy[b, i] - xy[a, i])
    for j in range(values.shape[1]):
        values[x, j] = values[a, j] + s * (values[b, j] - values[a, j])
        errors[x, j] = errors[a, j] + s * (errors[b, j] - errors[a, j])
        signs[x, j] = _sign(values[x, j], errors[x, j])
        if j == k or (signs[p, j] == 0 and signs[q, j] == 0):
            values[x, j], signs[x, j] = 0.0, 0
        elif signs[p, j] == signs[q, j]:
            signs[x, j] = signs[p, j]


@compiled
def _grow_matrix(old, n):
    new = np.empty((n, old.shape[1]), old.dtype)
    new[: len(old)] = old
    return new


@compiled
def changes(loop, signs, k):
    """Where around a cell unit k passes from positive to negative and back: positions after which it has.

    Returns the positions of the last node before each passage that is not on the far side, or -1 if the
    cell is not divided, -2 if its signs alternate more than once.
    """
    n = len(loop)
    out, back, n_changes = -1, -1, 0
    has_plus, has_minus = False, False
    for i in range(n):
        s = signs[loop[i], k]
        has_plus |= s > 0
        has_minus |= s < 0
    if not (has_plus and has_minus):
        return -1, -1
    start = 0
    while signs[loop[start], k] <= 0:
        start += 1
    previous = 1
    for step in range(1, n + 1):
        i = (start + step) % n
        s = signs[loop[i], k]
        if s != 0 and s != previous:
            n_changes += 1
            if s < 0:
                out = (i - 1) % n
            else:
                back = (i - 1) % n
            previous = s
    return (out, back) if n_changes == 2 else (-2, -2)


@compiled
def _half(loop, start, stop, gate, other, is_new):
    """The part of a cell from position `start` to `stop`, between two gates."""
    half, n, i = np.empty(len(loop) + 2, np.int64), 1, start
    half[0] = gate
    while True:
        half[n] = loop[i]
        n += 1
        if i == stop:
            break
        i = (i + 1) % len(loop)
    if is_new:
        half[n] = other
        n += 1
    return half[:n].copy()


@compiled
def divide(n, values, errors, signs, xy):
    """Divide a face of n boundary nodes along every unit.

    Args:
        n: the number of boundary nodes.
        values: of the units at the nodes, (n, m).
        errors: of rounding.
        signs: -1, 0 or 1.
        xy: coordinates of the nodes.

    Returns:
        is_clear, the cells as loops of nodes, and the four arrays with the new nodes added.
    """
    m = values.shape[1]
    cells = List()
    cells.append(np.arange(n))
    n_nodes = n
    # edges that the unit at hand has divided: both ends and the new node
    fresh = np.empty((4 * m + 16, 3), np.int64)
    for k in range(m):
        n_fresh = 0
        for c in range(len(cells)):
            loop = cells[c]
            out, back = changes(loop, signs, k)
            if out == -1:
                continue
            if out == -2:
                return False, cells, values, errors, signs, xy
            gates = np.empty(2, np.int64)
            is_new = np.zeros(2, np.bool_)
            for g in range(2):
                i = out if g == 0 else back
                p, q = loop[i], loop[(i + 1) % len(loop)]
                if signs[p, k] == 0:
                    gates[g] = p
                    continue
                is_new[g] = True
                gates[g] = -1
                for t in range(n_fresh):
                    if fresh[t, 0] == q and fresh[t, 1] == p:
                        gates[g] = fresh[t, 2]
                if gates[g] < 0:
                    if n_nodes == len(xy):
                        room = 2 * n_nodes + 16
                        values, errors = _grow_matrix(values, room), _grow_matrix(errors, room)
                        signs, xy = _grow_matrix(signs, room), _grow_matrix(xy, room)
                    if n_fresh == len(fresh):
                        fresh = _grow_matrix(fresh, 2 * n_fresh)
                    if p < n and q < n and (abs(p - q) == 1 or abs(p - q) == n - 1):
                        return False, cells, values, errors, signs, xy  # boundary edges are cut already
                    _on_edge(values, errors, xy, signs, p, q, k, n_nodes)
                    fresh[n_fresh, 0], fresh[n_fresh, 1], fresh[n_fresh, 2] = p, q, n_nodes
                    gates[g] = n_nodes
                    n_fresh += 1
                    n_nodes += 1
            ahead, behind = (out + 1) % len(loop), (back + 1) % len(loop)
            cells[c] = _half(loop, ahead, back, gates[0], gates[1], is_new[1])
            cells.append(_half(loop, behind, out, gates[1], gates[0], is_new[0]))
    return True, cells, values[:n_nodes], errors[:n_nodes], signs[:n_nodes], xy[:n_nodes]
