"""The largest of several parabolas along a line: compiled loops for scores that are quadratic."""

# mypy: allow-untyped-defs, allow-incomplete-defs

import math

import numpy as np

from inscape.compiled import compiled

UNITS = 2.0**6
"""Values nearer than this many units of rounding are taken as equal."""


@compiled
def roots_between(a, b, c, roots, n):
    """Append the roots of a s^2 + b s + c strictly inside (-1, 1) to `roots`, of which n are filled."""
    if a == 0.0:
        if b != 0.0 and abs(c) < abs(b):
            roots[n] = -c / b
            n += 1
        return n
    discriminant = b * b - 4.0 * a * c
    if discriminant <= 0.0:
        return n  # a parabola that only touches another does not overtake it
    q = -0.5 * (b + math.copysign(math.sqrt(discriminant), b))  # no cancellation
    for s in (q / a, c / q if q != 0.0 else np.inf):
        if abs(s) < 1.0:
            roots[n] = s
            n += 1
    return n


@compiled
def largest_parabola(a, b, c):
    """Which of the parabolas a_k s^2 + b_k s + c_k, (k,) each, is the largest on pieces of [-1, 1].

    Any two of them cross at most twice. Between neighbouring crossings of any two nothing changes, so that
    the middle of each piece tells which is the largest there, the first of equal ones.

    Returns:
        s (m,) between pieces, and for each of the m + 1 pieces the largest, and whether another one equals it
        up to rounding.
    """
    # (1) all crossings, in order
    k = len(a)
    roots, n = np.empty(k * (k - 1)), 0
    for i in range(k):
        for j in range(i):
            n = roots_between(a[i] - a[j], b[i] - b[j], c[i] - c[j], roots, n)
    s = np.sort(roots[:n])
    # (2) the largest in the middle of each piece
    best, is_tied = np.empty(n + 1, np.int64), np.zeros(n + 1, np.bool_)
    for m in range(n + 1):
        low, high = -1.0 if m == 0 else s[m - 1], 1.0 if m == n else s[m]
        at = 0.5 * (low + high)
        first, second, size, best[m] = -np.inf, -np.inf, 0.0, 0
        for i in range(k):
            value = (a[i] * at + b[i]) * at + c[i]
            if value > first:
                first, second, best[m] = value, first, i
                size = abs(a[i]) + abs(b[i]) + abs(c[i])
            elif value > second:
                second = value
        is_tied[m] = first - second <= UNITS * np.finfo(np.float64).eps * size
    return s, best, is_tied
