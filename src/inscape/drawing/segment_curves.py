"""Pictures of a segment: labels and the two highest scores along t, and the linear pieces of all scores."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from inscape.drawing import Array, Bools, Floats, Ints
from inscape.drawing.axes import axes_or_new, draw_spans, fitted_text, ink
from inscape.drawing.palette import Classes, deeper, ink_on
from inscape.drawing.planes.frame import as_images
from inscape.drawing.planes.names import FONT_SIZES, draw_legend, short

_MOST_CURVES = 10


class Dots(NamedTuple):
    """Data points along a segment.

    Attributes:
        t: where they are, or are nearest to it, (n,).
        labels: the label of each, (n,), or None if they have no classes.
        is_on: whether each lies on it, (n,).
    """

    t: Floats
    labels: Ints | None
    is_on: Bools


def draw_segment(
    boundaries: Floats,
    labels: Ints,
    span: tuple[float, float],
    *,
    classes: Classes,
    title: str,
    samples: Floats | None = None,
    top_scores: Array | None = None,
    top_labels: Ints | None = None,
    anchors: Array | None = None,
    dots: Dots | None = None,
    ax: Any = None,
) -> Any:
    """Draw the regions as a coloured band with class names, and above it the winning and second score."""
    ax = axes_or_new(ax, (8.0, 3.4))
    edges = np.concatenate([[span[0]], boundaries, [span[1]]])
    band = 0.16 if top_scores is not None else 1.0
    _draw_band(ax, edges, labels, classes, band)
    if samples is not None and top_scores is not None and top_labels is not None:
        _draw_scores(ax, samples, top_scores, top_labels, classes.colours, band)
    else:
        ax.set_yticks([])
    ax.set_xlim(*span)
    ax.set_xlabel("t")
    images = None if anchors is None or span[0] > 0 or span[1] < 1 else as_images(anchors)
    ax.set_title(title, pad=6 if images is None else 62)
    shown = np.concatenate([labels, [] if top_labels is None else top_labels.ravel()]).astype(np.int64)
    widths = np.concatenate([np.diff(edges), np.zeros(len(shown) - len(labels))])
    draw_dots(ax, dots, classes, band + 0.03 if band < 1 else 0.06)
    if images is not None:
        _draw_ends(ax, images)
    draw_legend(ax, shown, widths, classes, None if dots is None else dots.labels)
    return ax


def draw_pieces(
    t: Floats, scores: Floats, *, classes: Classes, title: str, dots: Dots | None = None, ax: Any = None
) -> Any:
    """Draw scores (n, c) that are linear between the parameters t (n,), the knots marked below.

    Args:
        t: the ends of the span and the knots between, ascending.
        scores: the scores there.
        classes: names and colours of the columns of scores, from 0 on.
        title: the title.
        dots: data points along the segment.
        ax: Axes to draw into; new ones if None.
    """
    ax = axes_or_new(ax, (8.0, 3.4))
    some = list(range(min(scores.shape[1], _MOST_CURVES)))
    colours = [ink()] if len(some) == 1 else [classes.colours[k] for k in some]  # one is the score of two
    for k in some:
        ax.plot(t, scores[:, k], color=colours[k], lw=1.4)
    knots = t[1:-1]
    ax.vlines(knots, 0, 0.05, transform=ax.get_xaxis_transform(), color=ink(), lw=0.5)
    ax.set_xlim(t[0], t[-1])
    ax.set_xlabel("t (ticks: knots)")
    ax.set_ylabel("score")
    ax.set_title(title)
    shown = np.array(some if len(some) > 1 else [], np.int64)
    draw_dots(ax, dots, classes, 0.08)
    draw_legend(ax, shown, np.ones(len(shown)), classes, None if dots is None else dots.labels)
    return ax


def draw_dots(ax: Any, dots: Dots | None, classes: Classes, height: float) -> None:
    """Data points in the colour of their class, those beside the segment small and faint."""
    if dots is None:
        return
    for some, size, alpha in ((~dots.is_on, 10, 0.55), (dots.is_on, 24, 1.0)):
        style: dict[str, Any] = {"facecolor": "white", "edgecolor": "black"}
        if dots.labels is not None:
            colours = [deeper(classes.colours[label]) for label in dots.labels[some].tolist()]
            style = {"facecolor": colours, "edgecolor": "white"}
        at = np.full(int(some.sum()), height)
        transform = ax.get_xaxis_transform()
        ax.scatter(dots.t[some], at, s=size, alpha=alpha, lw=0.7, zorder=4, transform=transform, **style)


def _draw_band(ax: Any, edges: Floats, labels: Ints, classes: Classes, height: float) -> None:
    """The regions as a band, with class names where they fit."""
    draw_spans(ax, edges, [classes.colours[label] for label in labels.tolist()], 0, height)
    for i in np.flatnonzero(np.diff(edges) > 0.01 * (edges[-1] - edges[0])).tolist():
        left, right, label = edges[i], edges[i + 1], int(labels[i])
        fitted_text(
            ax,
            (left + right) / 2,
            height / 2,
            short(classes.names[label]),
            partial(_fit_between, left, right),
            transform=ax.get_xaxis_transform(),
            color=ink_on(classes.colours[label]),
        )
    whole = {"transform": ax.get_xaxis_transform(), "zorder": 2}
    ax.vlines(edges[1:-1], 0, 1, color=ink(), lw=0.7, **whole)


def _fit_between(left: float, right: float, text: Any, renderer: Any) -> None:
    """Make a text as large as fits between two parameters, or invisible."""
    room = abs(np.subtract(*text.axes.transData.transform([[left, 0.0], [right, 0.0]])[:, 0])) - 4
    for size in FONT_SIZES:
        text.set_fontsize(size)
        if text.get_window_extent(renderer).width <= room:
            return
    text.set_visible(False)


def _draw_scores(
    ax: Any, t: Floats, scores: Array, labels: Ints, colours: dict[int, Any], band: float
) -> None:
    """The winner's score in its colour, the runner-up dotted; both lifted above the band.

    One line per class, with gaps: the runs of a class can be thousands.
    """
    for rank, style, width in ((1, ":", 1.8), (0, "-", 2.4)):
        changes = np.flatnonzero(np.diff(labels[:, rank])) + 1
        starts, stops = np.r_[0, changes], np.r_[changes, len(t)]
        runs: dict[int, list[Floats]] = {}
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            run = slice(start, min(stop + 1, len(t)))  # up to the next run's first sample: no gap between
            curve = np.column_stack([t[run], scores[run, rank]])
            runs.setdefault(int(labels[start, rank]), []).extend([curve, np.full((1, 2), np.nan)])
        for label, curves in runs.items():
            ax.plot(*np.concatenate(curves[:-1]).T, color=colours[label], ls=style, lw=width)
    low, high = float(scores.min()), float(scores.max())
    room = (high - low) or 1.0
    low, high = low - 0.05 * room, high + 0.05 * room
    ax.set_ylim(low - (high - low) * band / (1 - band), high)
    ax.set_ylabel("score (dotted: second)")


def _draw_ends(ax: Any, images: Floats) -> None:
    """The two data points as images above t = 0 and t = 1."""
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    for t, image in ((0.0, images[0]), (1.0, images[-1])):
        ax.plot([t], [1.0], marker="v", color=ink(), transform=ax.get_xaxis_transform(), clip_on=False)
        picture = OffsetImage(image, zoom=44 / max(image.shape[:2]), cmap="gray_r", interpolation="nearest")
        ax.add_artist(
            AnnotationBbox(
                picture,
                (t, 1.0),
                xycoords=ax.get_xaxis_transform(),
                xybox=(0, 6),
                boxcoords="offset points",
                box_alignment=(0.5, 0.0),
                pad=0.1,
                annotation_clip=False,
            )
        )
