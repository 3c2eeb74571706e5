"""Forests on segments and planes in rational arithmetic: a second route, and slow.

Nothing is rounded but a feature that is constant on the probe, where `predict` may see it on either side of a
threshold that it is equal to.
"""

from collections import defaultdict
from fractions import Fraction

import numpy as np


def nodes_of(estimator, threshold=Fraction):
    """The trees of a forest: (feature, threshold, left, right, as stored); `threshold` makes them exact."""
    trees = []
    for member in getattr(estimator, "estimators_", [estimator]):
        t = member.tree_
        splits = [
            None if left < 0 else (int(f), threshold(float(c)), int(left), int(right), float(c))
            for f, c, left, right in zip(
                t.feature, t.threshold, t.children_left, t.children_right, strict=True
            )
        ]
        trees.append((splits, t.value[:, 0, :]))
    return trees


def label_of(leaves):
    """The first greatest column of the sum, added in the order of the trees as `predict` does."""
    total = np.zeros(len(leaves[0]))
    for leaf in leaves:
        total += leaf
    return int(np.argmax(total / len(leaves)))


# segments


def leaves_along(tree, start, way):
    """(where it begins, value) of each leaf of a tree on the way from t = 0 to 1."""
    splits, value = tree
    found, waiting = [], [(0, Fraction(0), Fraction(1))]
    while waiting:
        node, low, high = waiting.pop()
        if splits[node] is None:
            found.append((low, value[node]))
            continue
        f, c, left, right, stored = splits[node]
        if way[f] == 0:
            waiting.append((left if float(np.float32(float(start[f]))) <= stored else right, low, high))
            continue
        t = (c - start[f]) / way[f]
        near, far = (left, right) if way[f] > 0 else (right, left)
        waiting += [(near, low, min(t, high))] * (t > low) + [(far, max(t, low), high)] * (t < high)
    return sorted(found, key=lambda leaf: leaf[0])


def segment_labels(trees, start, end):
    """The labels along a segment between points of fractions: those that hold on an interval."""
    way = [b - a for a, b in zip(start, end, strict=True)]
    changes = defaultdict(list)
    for k, tree in enumerate(trees):
        for t, leaf in leaves_along(tree, start, way):
            changes[t].append((k, leaf))
    current, labels = [None] * len(trees), []
    for t in sorted(changes):
        for k, leaf in changes[t]:
            current[k] = leaf
        label = label_of(current)
        if not labels or labels[-1] != label:
            labels.append(label)
    return labels


# planes


def cut_polygon(polygon, a, b, c):
    """The parts of a convex polygon where a x + b y <= c and where it is >= c, None for one without area."""
    d = [a * x + b * y - c for x, y in polygon]
    if max(d) <= 0:
        return polygon, None
    if min(d) >= 0:
        return None, polygon
    parts = [], []
    for i, (p, q) in enumerate(zip(polygon, polygon[1:] + polygon[:1], strict=True)):
        dp, dq = d[i], d[(i + 1) % len(d)]
        if dp <= 0:
            parts[0].append(p)
        if dp >= 0:
            parts[1].append(p)
        if dp * dq < 0:
            s = dp / (dp - dq)
            cut = (p[0] + s * (q[0] - p[0]), p[1] + s * (q[1] - p[1]))
            parts[0].append(cut)
            parts[1].append(cut)
    return parts


def cells_on(trees, origin, axes, polygon):
    """The common refinement of all trees on a polygon: (polygon, label) of each cell."""
    cells = [(polygon, [])]
    for splits, value in trees:
        waiting, cells = [(polygon, leaves, 0) for polygon, leaves in cells], []
        while waiting:
            polygon, leaves, node = waiting.pop()
            if splits[node] is None:
                cells.append((polygon, [*leaves, value[node]]))
                continue
            f, c, *children, stored = splits[node]
            if axes[0][f] == axes[1][f] == 0:
                waiting.append((polygon, leaves, children[int(float(np.float32(float(origin[f]))) > stored)]))
                continue
            parts = cut_polygon(polygon, axes[0][f], axes[1][f], c - origin[f])
            waiting += [(p, leaves, n) for p, n in zip(parts, children, strict=True) if p is not None]
    return [(polygon, label_of(leaves)) for polygon, leaves in cells]


def area(polygon):
    """The area of a polygon."""
    ends = zip(polygon, polygon[1:] + polygon[:1], strict=True)
    return sum(p[0] * q[1] - p[1] * q[0] for p, q in ends) / 2


def line_through(p, q):
    """The line through two points, the same for all pairs on it; and where they are along it."""
    a, b = q[1] - p[1], p[0] - q[0]
    scale = a if a != 0 else b
    line = (a / scale, b / scale, (a * p[0] + b * p[1]) / scale)
    along = (p[1], q[1]) if a != 0 else (p[0], q[0])
    return line, along


def plane_regions(trees, origin, axes, polygon):
    """(label, area) of each decision region, in order: cells of one label that share a stretch of border."""
    cells = cells_on(trees, origin, axes, polygon)
    sides = defaultdict(list)
    for i, (corners, _) in enumerate(cells):
        for p, q in zip(corners, corners[1:] + corners[:1], strict=True):
            line, along = line_through(p, q)
            sides[line].append((min(along), max(along), i))
    region = list(range(len(cells)))

    def root(i):
        while region[i] != i:
            i = region[i]
        return i

    for found in sides.values():
        found.sort()
        for k, (_, end, i) in enumerate(found):
            for start, _, j in found[k + 1 :]:
                if start >= end:
                    break
                if cells[i][1] == cells[j][1]:
                    region[root(j)] = root(i)
    areas = defaultdict(Fraction)
    for i, (corners, label) in enumerate(cells):
        areas[root(i), label] += area(corners)
    return sorted((label, total) for (_, label), total in areas.items())
