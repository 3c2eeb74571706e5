"""Pictures of two models on one probe: quiet where they agree, striped in both colours where they differ."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from inscape.drawing import Floats, Ints
from inscape.drawing.axes import (
    LEAST_IN_LEGEND,
    axes_or_new,
    draw_spans,
    ink,
    legend_beside,
    lines_beside,
    more_in_legend,
)
from inscape.drawing.palette import Classes, Colour, in_order
from inscape.drawing.planes.frame import Scene, frame_plane
from inscape.drawing.planes.names import dot_in_legend, short
from inscape.drawing.planes.polygons import draw_edges, faces_by_group, fill_faces
from inscape.drawing.segment_curves import Dots, draw_dots

MOST_PAIRS = 10
"""Of a legend."""
QUIET = 0.35
"""How much of its colour a class keeps where both models agree."""
HATCH = "////"
STRIPE = 8
"""The width of a stripe in pixels of an image."""


class Pairs(NamedTuple):
    """The pairs of labels of a picture, in the order of their numbers.

    Attributes:
        labels: what both models say, (m, 2).
        shares: the share of the probe that each pair has, (m,).
        classes: names and colours of the labels.
    """

    labels: Ints
    shares: Floats
    classes: Classes

    def differ(self, k: int) -> bool:
        """Whether the models differ."""
        return bool(self.labels[k, 0] != self.labels[k, 1])

    def colour(self, k: int, model: int) -> Colour:
        """The colour of what a model says, fainter where both agree."""
        colour = self.classes.colours[int(self.labels[k, model])]
        return colour if self.differ(k) else quiet(colour)


def quiet(colour: Colour) -> Colour:
    """A colour mixed with white.

    >>> quiet((0.0, 0.0, 0.0))
    (0.65, 0.65, 0.65)
    """
    r, g, b = (round(1 - QUIET * (1 - c), 6) for c in colour)
    return r, g, b


def draw_pair_faces(
    xy: Floats,
    corners: Ints,
    start: Ints,
    ends: Ints,
    *,
    sides: Ints,
    face_pairs: Ints,
    pairs: Pairs,
    scene: Scene,
    title: str,
    ax: Any = None,
) -> Any:
    """Draw the regions of a pair that are unions of the faces of a planar subdivision.

    Args:
        xy: coordinates of the vertices, (v, 2).
        corners: the vertices of all faces, one face after the other.
        start: where the corners of each face start, (f + 1,).
        ends: the two vertices of each edge, (e, 2).
        sides: the regions to the left and to the right of each edge, -1 outside, (e, 2).
        face_pairs: the pair of each face, (f,).
        pairs: what the pairs are.
        scene: the domain, and the data points on it.
        title: the title.
        ax: where to draw; new Axes if None.
    """
    from matplotlib.collections import PathCollection

    ax = axes_or_new(ax, (7.8, 5.4))
    paths, group = faces_by_group(xy, corners, start, face_pairs)
    numbers = group.tolist()
    fill_faces(ax, paths, len(start) - 1, facecolors=[pairs.colour(k, 0) for k in numbers])
    for path, k in zip(paths, numbers, strict=True):
        if pairs.differ(k):
            hatched = PathCollection(
                [path], facecolors="none", edgecolors=[pairs.colour(k, 1)], lw=0, zorder=1.8
            )
            hatched.set_hatch(HATCH)
            ax.add_collection(hatched, autolim=False)
    is_boundary = (sides[:, 0] != sides[:, 1]) & (sides >= 0).all(axis=1)
    draw_edges(ax, xy, ends[is_boundary], edgecolors="black", lw=1.0, zorder=3)
    frame_plane(ax, scene, pairs.classes, title)
    draw_pair_legend(ax, pairs, scene.point_labels)
    return ax


def draw_pair_image(
    image: Ints, frame: Floats, *, pairs: Pairs, scene: Scene, title: str, ax: Any = None
) -> Any:
    """Draw a grid of pairs (r, r), -1 outside; `frame` as in `labelled_grid.draw_plane`."""
    from matplotlib.patches import Polygon

    ax = axes_or_new(ax, (7.8, 5.4))
    r = len(image)
    u = (np.arange(r + 1) - 0.5) / (r - 1)
    places = frame[0] + np.stack(np.meshgrid(u, u, indexing="ij"), axis=-1) @ frame[1:]
    width = max(1, STRIPE * r // 600)
    second = (np.add.outer(np.arange(r), np.arange(r)) // width) % 2 == 1
    rgb = np.ones((r, r, 4))
    for k in range(len(pairs.labels)):
        for model in (0, 1):
            rgb[(image == k) & (second == bool(model)), :3] = pairs.colour(k, model)
    mesh = ax.pcolormesh(places[..., 0], places[..., 1], rgb, rasterized=True, zorder=1)
    mesh.set_clip_path(Polygon(scene.domain, transform=ax.transData))
    frame_plane(ax, scene, pairs.classes, title)
    draw_pair_legend(ax, pairs, scene.point_labels)
    return ax


def draw_pair_segment(
    edges: Floats,
    region_pairs: Ints,
    *,
    pairs: Pairs,
    names: Sequence[str],
    title: str,
    dots: Dots | None = None,
    ax: Any = None,
) -> Any:
    """Draw what both models say along a segment, one band each, and between them where they differ.

    Args:
        edges: where the regions begin and end, (n + 1,).
        region_pairs: the pair of each, (n,).
        pairs: what the pairs are.
        names: of the two models.
        title: the title.
        dots: data points along the segment.
        ax: where to draw; new Axes if None.
    """
    ax = axes_or_new(ax, (8.0, 2.6))
    bands = ((0.56, 1.0), (0.0, 0.44))
    numbers = region_pairs.tolist()
    draw_spans(ax, edges, [ink() if pairs.differ(k) else "none" for k in numbers], 0.455, 0.545)
    for model, (low, high) in enumerate(bands):
        draw_spans(ax, edges, [pairs.colour(k, model) for k in numbers], low, high)
        said = pairs.labels[region_pairs, model]
        ax.vlines(
            edges[1:-1][np.diff(said) != 0],
            low,
            high,
            transform=ax.get_xaxis_transform(),
            color=ink(),
            lw=0.7,
        )
    ax.set_yticks([0.22, 0.5, 0.78], [f"b: {short(names[1])}", "differ", f"a: {short(names[0])}"])
    ax.set_ylim(0, 1)
    ax.set_xlim(edges[0], edges[-1])
    ax.set_xlabel("t")
    ax.tick_params(axis="y", length=0)
    ax.spines[:].set_visible(False)
    ax.set_title(title)
    draw_dots(ax, dots, pairs.classes, 0.5)
    draw_pair_legend(ax, pairs, None if dots is None else dots.labels, hatched=False)
    return ax


def draw_pair_legend(
    ax: Any, pairs: Pairs, point_labels: Ints | None = None, *, hatched: bool = True
) -> None:
    """What the colours mean: the largest pairs that differ first, then the classes on which both agree.

    Classes of data points on which the models nowhere agree follow, as dots; as many as fit beside the Axes.
    """
    from matplotlib.patches import Patch

    if not pairs.classes.legend:
        return
    names = pairs.classes.names
    largest = np.argsort(-pairs.shares, kind="stable").tolist()
    differ = [k for k in largest if pairs.differ(k)]
    agree = sorted(
        (k for k in largest if not pairs.differ(k)), key=lambda k: in_order(names[int(pairs.labels[k, 0])])
    )
    handles = [
        Patch(
            fc=pairs.colour(k, 0),
            ec=pairs.colour(k, 1) if hatched else "black",
            hatch=HATCH if hatched else None,
            lw=0 if hatched else 0.5,
            label=f"a says {_said(names, pairs, k, 0)}, b says {_said(names, pairs, k, 1)}",
        )
        for k in differ
    ]
    alike = [
        Patch(fc=pairs.colour(k, 0), ec="black", lw=0.5, label=f"both say {_said(names, pairs, k, 0)}")
        for k in agree
    ]
    said = {int(pairs.labels[k, 0]) for k in agree}
    others = {} if point_labels is None else {names[i]: i for i in set(point_labels.tolist()) - said}
    alike += [dot_in_legend(pairs.classes, others[name]) for name in sorted(others, key=in_order)]
    lines = max(LEAST_IN_LEGEND, lines_beside(ax))
    handles = _first(handles, min(MOST_PAIRS, max(lines // 2, lines - len(alike))))
    legend_beside(ax, handles + _first(alike, lines - len(handles)), "")


def _first(handles: list[Any], most: int) -> list[Any]:
    """So many lines of a legend, of which the last may say how many more there are."""
    if len(handles) <= most:
        return handles
    return [*handles[: most - 1], more_in_legend(len(handles) - most + 1)]


def _said(names: dict[int, str], pairs: Pairs, k: int, model: int) -> str:
    return short(names[int(pairs.labels[k, model])])


def draw_matrix(
    values: Floats, names: Sequence[str], *, title: str, text: str = "{:.3f}", ax: Any = None
) -> Any:
    """Draw a square table of numbers between 0 and 1, dark where they are high, each written into its cell.

    Args:
        values: (m, m), NaN for none.
        names: of rows and columns, (m,).
        title: the title.
        text: how a number is written.
        ax: where to draw; new Axes if None.
    """
    size = 1.6 + 0.75 * len(names)
    ax = axes_or_new(ax, (size, size))
    known = values[np.isfinite(values)]
    high = float(known.max()) if len(known) and known.max() > 0 else 1.0
    low = min(float(known.min()) if len(known) else 0.0, 0.8 * high)
    ax.imshow(values, cmap="Blues", vmin=low - 0.15 * (high - low), vmax=high)
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            dark = value > (low + high) / 2
            ax.text(
                j,
                i,
                text.format(value),
                ha="center",
                va="center",
                fontsize=9,
                color="white" if dark else "black",
            )
    places = np.arange(len(names))
    long = max(len(name) for name in names) > 6
    ax.set_xticks(
        places, [short(n) for n in names], rotation=40 if long else 0, ha="right" if long else "center"
    )
    ax.set_yticks(places, [short(n) for n in names])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title(title)
    return ax
