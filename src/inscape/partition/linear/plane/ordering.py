"""Sorting places along a line, with what belongs to them, without room to work in."""

from inscape.partition.linear.plane.compiled import part


@part
def sort_along(s, first, last, a, b):
    """Sort s[first:last], and the same part of two arrays with it: Shell's sort with gaps 1, 4, 13, ..."""
    gap = 1
    while gap < (last - first) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(first + gap, last):
            own, own_a, own_b = s[k], a[k], b[k]
            i = k
            while i >= first + gap and s[i - gap] > own:
                s[i], a[i], b[i] = s[i - gap], a[i - gap], b[i - gap]
                i -= gap
            s[i], a[i], b[i] = own, own_a, own_b
        gap //= 3
