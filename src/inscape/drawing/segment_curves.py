"""Pictures of a segment: labels and the two highest scores along t, and the linear pieces of all scores."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.drawing.axes import axes_or_new
from inscape.drawing.palette import TEN, class_colours, ink_on
from inscape.drawing.planes.frame import MOST_NAMES, as_images

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_MOST_CURVES = 10


def draw_segment(
    boundaries: Floats,
    labels: Ints,
    span: tuple[float, float],
    *,
    names: dict[int, str],
    samples: Floats | None = None,
    top_scores: npt.NDArray[Any] | None = None,
    top_labels: Ints | None = None,
    anchors: npt.NDArray[Any] | None = None,
    ax: Any = None,
) -> Any:
    """Draw the regions as a coloured band with class names, and above it the winning and second score."""
    ax = axes_or_new(ax, (8.0, 3.4))
    colours = class_colours(names)
    edges = np.concatenate([[span[0]], boundaries, [span[1]]])
    band = 0.16 if top_scores is not None else 1.0
    _draw_band(ax, edges, labels, names, colours, band)
    if samples is not None and top_scores is not None and top_labels is not None:
        _draw_scores(ax, samples, top_scores, top_labels, colours, band)
    else:
        ax.set_yticks([])
    ax.set_xlim(*span)
    ax.set_xlabel("t")
    images = None if anchors is None or span[0] > 0 or span[1] < 1 else as_images(anchors)
    title = f"{len(labels)} decision region{'s' if len(labels) != 1 else ''}"
    ax.set_title(title, pad=6 if images is None else 62)
    _legend(ax, names, colours)
    if images is not None:
        _draw_ends(ax, images)
    return ax


def draw_pieces(t: Floats, scores: Floats, *, ax: Any = None) -> Any:
    """Draw scores (n, c) that are linear between the parameters t (n,), the knots marked below.

    Args:
        t: the ends of the span and the knots between, ascending.
        scores: the scores there.
        ax: Axes to draw into; new ones if None.
    """
    ax = axes_or_new(ax, (8.0, 3.4))
    for k in range(min(scores.shape[1], _MOST_CURVES)):
        ax.plot(t, scores[:, k], color=TEN[k % len(TEN)], lw=1.4, label=str(k))
    knots = t[1:-1]
    ax.vlines(knots, 0, 0.05, transform=ax.get_xaxis_transform(), color="black", lw=0.5)
    ax.set_xlim(t[0], t[-1])
    ax.set_xlabel("t (ticks: knots)")
    ax.set_ylabel("score")
    ax.set_title(f"{len(t) - 1} linear piece{'s' if len(t) != 2 else ''}")
    if scores.shape[1] > 1:
        ax.legend(title="class", loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    return ax


def _draw_band(
    ax: Any, edges: Floats, labels: Ints, names: dict[int, str], colours: dict[int, Any], height: float
) -> None:
    from matplotlib.transforms import blended_transform_factory

    transform = blended_transform_factory(ax.transData, ax.transAxes)
    for left, right, label in zip(edges[:-1], edges[1:], labels.tolist(), strict=True):
        ax.axvspan(left, right, 0, height, color=colours[label], lw=0)
        if (right - left) > 0.03 * (edges[-1] - edges[0]):
            ax.text(
                (left + right) / 2,
                height / 2,
                names[label],
                transform=transform,
                ha="center",
                va="center",
                color=ink_on(colours[label]),
                fontsize=9,
                clip_on=True,
            )
    for t in edges[1:-1]:
        ax.axvline(t, color="black", lw=0.7)


def _draw_scores(
    ax: Any, t: Floats, scores: npt.NDArray[Any], labels: Ints, colours: dict[int, Any], band: float
) -> None:
    """The winner's score in its colour, the runner-up dotted; both lifted above the band."""
    for place, style, width in ((1, ":", 1.8), (0, "-", 2.4)):
        changes = np.flatnonzero(np.diff(labels[:, place])) + 1
        starts, stops = np.r_[0, changes], np.r_[changes, len(t)]
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            run = slice(start, min(stop + 1, len(t)))  # up to the next run's first sample: no gap between
            ax.plot(t[run], scores[run, place], color=colours[int(labels[start, place])], ls=style, lw=width)
    low, high = float(scores.min()), float(scores.max())
    room = (high - low) or 1.0
    low, high = low - 0.05 * room, high + 0.05 * room
    ax.set_ylim(low - (high - low) * band / (1 - band), high)
    ax.set_ylabel("score (dotted: second)")


def _draw_ends(ax: Any, images: Floats) -> None:
    """The two data points as images above t = 0 and t = 1."""
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    for t, image in ((0.0, images[0]), (1.0, images[-1])):
        ax.plot([t], [1.0], marker="v", color="black", transform=ax.get_xaxis_transform(), clip_on=False)
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


def _legend(ax: Any, names: dict[int, str], colours: dict[int, Any]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=colours[label], label=names[label]) for label in sorted(names)[:MOST_NAMES]]
    if len(names) > MOST_NAMES:
        handles.append(Patch(fc="none", ec="none", label=f"+ {len(names) - MOST_NAMES} more"))
    ax.legend(handles=handles, title="class", loc="upper left", bbox_to_anchor=(1.03, 1.0), frameon=False)
