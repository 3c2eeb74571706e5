"""Sorting places along a line, with what belongs to them."""

from inscape.compiled import inlined


@inlined
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


@inlined
def spread(s, first, last, a, room_s, room_a, bucket):
    """Put s[first:last], numbers between 0 and 1, about in order, and the same part of another array with it.

    Each goes to the bucket that it would belong to if they were evenly spread.
    """
    n = last - first
    for i in range(n + 1):
        bucket[i] = 0
    for k in range(first, last):
        room_s[k - first], room_a[k - first] = s[k], a[k]
        bucket[min(int(s[k] * n), n - 1) + 1] += 1
    for i in range(n):
        bucket[i + 1] += bucket[i]
    for i in range(n):
        b = min(int(room_s[i] * n), n - 1)
        k = first + bucket[b]
        s[k], a[k] = room_s[i], room_a[i]
        bucket[b] += 1
