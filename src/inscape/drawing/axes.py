"""The Axes that a picture is drawn into, and the legend beside them."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from typing import Any

_LEGEND_GAP = 0.9
"""Between the Axes and their legend, of the font size: a share of their width would confuse the layout."""
COLOUR_BAR = "<colorbar>"
"""The label of its Axes, as matplotlib has it."""
_MOST_PASSES = 4
"""Of the layout of a figure."""
_SETTLED_WITHIN = 1e-3
"""Of the width of a figure: Axes that move less are in their place."""
_BAR_GAP, _BAR_WIDTH = 0.03, 0.05
"""Between the Axes and their colour bar, and its width, of the width of the Axes."""
_LEAST_LEFT = 0.45
"""Of the width that Axes had, what a legend leaves them at least."""

_LEAST_FONT = 5.0
"""In points, of a legend that would be too wide."""
_SHORTEST_LINE = 10
"""In characters, of a name that is broken into lines."""
_WIDTH_OF_LETTER = 0.6
"""On average, of its size."""

_DENSE_LEGEND_ABOVE_CLASSES = 8
_DENSE_LEGEND: dict[str, Any] = {"fontsize": "small", "labelspacing": 0.3}
_DENSE_LINE = 1.25
"""The height of a line of a dense legend, of its font size; its title takes two."""


def new_figure(size: tuple[float, float]) -> Any:
    """A figure of that size in inches, which pyplot knows nothing of."""
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout=_settling_type()())


def axes_or_new(ax: Any, figsize: tuple[float, float]) -> Any:
    """`ax`, or new Axes of that size in inches.

    Where pyplot is in use a new figure is one of its own, which `plt.show()` and `plt.savefig` know. In a
    program that never imported it nothing is registered, so that many pictures leak none.
    """
    if ax is not None:
        return ax
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is None or _is_apart.get():
        return new_figure(figsize).subplots()
    return plt.subplots(figsize=figsize, layout=_settling_type()())[1]


_is_apart: ContextVar[bool] = ContextVar("_is_apart", default=False)


@contextmanager
def apart_from_pyplot() -> Iterator[None]:
    """Have new figures be unknown to pyplot: they go into a file or a page at once."""
    token = _is_apart.set(True)
    try:
        yield
    finally:
        _is_apart.reset(token)


def ink() -> Any:
    """The colour of lines on the background, light on a dark one."""
    from matplotlib import rcParams

    return rcParams["axes.edgecolor"]


def draw_spans(ax: Any, edges: Any, colours: Sequence[Any], low: float, high: float) -> None:
    """Colour what lies between neighbouring edges on the x axis, from one height of the Axes to another.

    All in one collection: thousands of spans, each an artist of its own, take matplotlib many seconds.
    """
    from matplotlib.collections import PolyCollection

    corners = [[(a, low), (a, high), (b, high), (b, low)] for a, b in pairwise(edges)]
    spans = PolyCollection(corners, facecolors=colours, linewidths=0, transform=ax.get_xaxis_transform())
    ax.add_collection(spans, autolim=False)


def colour_bar(ax: Any, drawn: Any, label: str, **settings: Any) -> Any:
    """A colour bar to the right of the Axes, as high as they are.

    Figures that lay themselves out make room for it; in others the Axes give up as much of their own width.
    """
    inset = ax.inset_axes((1 + _BAR_GAP, 0.0, _BAR_WIDTH, 1.0), label=COLOUR_BAR)
    bar = ax.figure.colorbar(drawn, cax=inset, label=label, **settings)
    bar.outline.set_linewidth(0.5)
    figure = ax.figure.figure  # of a subfigure, the whole
    if figure.get_layout_engine() is None:
        box = ax.get_position(original=True)
        ticks = _beyond_bar(inset) / figure.bbox.width
        ax.set_position((box.x0, box.y0, (box.width - ticks) / (1 + _BAR_GAP + _BAR_WIDTH), box.height))
    return bar


def colour_bar_of(ax: Any) -> Any:
    """The Axes of the colour bar beside others; None if there is none."""
    return next((inset for inset in ax.child_axes if inset.get_label() == COLOUR_BAR), None)


def _beyond_bar(inset: Any) -> float:
    """The width of the ticks and the label of a colour bar, in pixels."""
    return float(inset.get_tightbbox().x1 - inset.get_window_extent().x1)


def legend_beside(ax: Any, handles: Sequence[Any], title: str) -> None:
    """A legend to the right of the Axes, and of their colour bar if there is one.

    Figures that lay themselves out make room for it. In others the Axes give up as much of their own width,
    so that the legend neither leaves the figure nor lies on a neighbour; names that are too long for that
    are broken into lines, and made smaller if they must.
    """
    from matplotlib.transforms import ScaledTranslation

    dense = _DENSE_LEGEND if len(handles) > _DENSE_LEGEND_ABOVE_CLASSES else {}
    figure = ax.figure.figure  # of a subfigure, the whole
    bar, beside = colour_bar_of(ax), ax.transAxes
    if bar is not None:
        inches = _beyond_bar(bar) / figure.dpi
        beside = bar.transAxes + ScaledTranslation(inches, 0.0, figure.dpi_scale_trans)
    legend = ax.legend(
        handles=handles,
        title=title,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        bbox_transform=beside,
        frameon=False,
        borderaxespad=_LEGEND_GAP,
        **dense,
    )
    if figure.get_layout_engine() is not None:
        return
    box = ax.get_position(original=True)
    gap = _LEGEND_GAP * legend.prop.get_size_in_points() / 72 * figure.dpi
    most = (1 - _LEAST_LEFT) * box.width * figure.bbox.width - gap
    _narrow(legend, most)
    width = (min(legend.get_window_extent().width, most) + gap) / figure.bbox.width
    ax.set_position((box.x0, box.y0, box.width - width, box.height))


def lines_beside(ax: Any) -> int:
    """How many lines, below its title, a dense legend has that is as high as the Axes."""
    from matplotlib.font_manager import FontProperties

    size = FontProperties(size=_DENSE_LEGEND["fontsize"]).get_size_in_points()
    height = ax.get_position(original=True).height * ax.figure.bbox.height / ax.figure.dpi
    return int(72 * height / (_DENSE_LINE * size)) - 2


def title_in_lines(ax: Any) -> None:
    """Break the title into lines that fit the figure or, beside other Axes, the columns of its own."""
    from textwrap import fill

    ax.title.set_wrap(True)
    ax.title.set_text(ax.get_title().replace(" %", "\u00a0%"))  # which no line begins with
    place = ax.get_subplotspec()
    if place is None or len(place.colspan) == place.get_gridspec().ncols:
        return
    share = len(place.colspan) / place.get_gridspec().ncols
    inches = share * ax.figure.bbox.width / ax.figure.dpi
    line = max(_SHORTEST_LINE, int(inches * 72 / (_WIDTH_OF_LETTER * ax.title.get_fontsize())))
    lines = ax.title.get_text().splitlines()
    ax.title.set_text("\n".join(fill(text, line, break_long_words=False) for text in lines))


def _narrow(legend: Any, most: float) -> None:
    """Break the names of a legend into lines, and then make them smaller, until it is `most` pixels wide."""
    from textwrap import fill

    texts = legend.get_texts()
    width = legend.get_window_extent().width
    if width <= most:
        return
    longest = max(len(text.get_text()) for text in texts)
    line = max(_SHORTEST_LINE, int(longest * most / width) - 2)
    for text in texts:
        text.set_text(fill(text.get_text(), line))
    for _ in range(4):  # what is not text has a width of its own
        width = legend.get_window_extent().width
        if width <= most:
            return
        for text in (*texts, legend.get_title()):
            text.set_fontsize(max(_LEAST_FONT, text.get_fontsize() * 0.95 * most / width))


def fitted_text(ax: Any, x: float, y: float, text: str, fit: Callable[[Any, Any], None], **style: Any) -> Any:
    """A text, centred, that `fit(text, renderer)` changes before each time that it is drawn.

    How much room a text needs is known only then, at the size that the picture has.
    """
    drawn = _fitted_type()(x, y, text, ha="center", va="center", **style)
    drawn.fit = fit
    drawn.set_clip_on(True)
    drawn.set_in_layout(False)
    return ax.add_artist(drawn)


@cache
def _settling_type() -> Any:
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    class SettlingLayout(ConstrainedLayoutEngine):
        """A layout that is repeated until nothing moves.

        One pass does not know where Axes of equal scales will end, nor the legend beside them: its longest
        names left the figure.
        """

        def execute(self, fig: Any) -> None:
            """Lay out, some times."""
            before = None
            for _ in range(_MOST_PASSES):
                super().execute(fig)
                places = [ax.get_position(original=True).bounds for ax in fig.axes]
                if before is not None and _moved(before, places) < _SETTLED_WITHIN:
                    return
                before = places

    return SettlingLayout


def _moved(before: list[Any], after: list[Any]) -> float:
    """How far the sides of Axes moved at most, of the size of their figure."""
    return max(
        (abs(a - b) for x, y in zip(before, after, strict=True) for a, b in zip(x, y, strict=True)),
        default=0.0,
    )


@cache
def _fitted_type() -> Any:
    from matplotlib.text import Text

    class FittedText(Text):
        """A text that is fitted before it is drawn."""

        fit: Callable[[Any, Any], None]

        def draw(self, renderer: Any) -> None:
            """Fit, and draw."""
            self.set_visible(True)  # else it has no size
            self.fit(self, renderer)
            super().draw(renderer)

    return FittedText
