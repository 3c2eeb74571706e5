"""A linear map of a bent tensor along a straight line: from its ends and the breakpoints between them.

Along a line from a (s = 0) to b (s = 1) the output of an elementwise node has breakpoints at s_1 <= ... <=
s_m, where entry u_k changes its slope by c_k. A linear map W of it is then known anywhere from its values at
both ends, at the cost of some columns of W instead of a product. In one form,

    y(s) = (1 - s) y(a) + s y(b) - sum_k c_k G(s, s_k) W[:, u_k],   G(s, t) = min(s, t) (1 - max(s, t)),

every point costs m columns, and one entry of it m numbers: good for few breakpoints. In the other,

    y(s) = y(a) + s g + sum over s_k < s of (s - s_k) c_k W[:, u_k],
    g = y(b) - y(a) - sum_k (1 - s_k) c_k W[:, u_k],

the points are taken in order, and each breakpoint that is passed costs a column: good for many.

Which maps of a network read a bent tensor directly, so that this applies, `Graph.fusions` says.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

from inscape.compiled import inlined


@inlined
def sag(s, t, change):
    """By how much a breakpoint at t, where the slope changes by c, lowers a line at s: c G(s, t)."""
    return change * s * (1.0 - t) if s < t else change * t * (1.0 - s)


@inlined
def start_line(first, last, s, entry, change, start, stop, columns, base, slope):
    """Write base and slope of a line between two vectors: y = base + s slope up to its first breakpoint.

    The line's breakpoints are those from `start` to `stop` - 1 of s, entry and change.
    """
    for v in range(len(base)):
        base[v] = first[v]
        slope[v] = last[v] - base[v]
    for k in range(start, stop):
        weight, column = change[k] * (1.0 - s[k]), columns[entry[k]]
        for v in range(len(base)):
            slope[v] -= weight * column[v]


@inlined
def pass_breakpoint(s, change, column, base, slope):
    """Pass a breakpoint: from there on y = base + s slope with another base and slope."""
    offset = change * s
    for v in range(len(base)):
        slope[v] += change * column[v]
        base[v] -= offset * column[v]
