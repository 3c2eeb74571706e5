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
_MOST_PASSES = 10
"""Of the layout of a figure."""
_SETTLED_WITHIN = 1e-3
"""Of the width of a figure: Axes that move less are in their place."""
_BAR_GAP, _BAR_WIDTH = 0.03, 0.05
"""Between the Axes and their colour bar, and its width, of the width of the Axes."""
_LEAST_LEFT = 0.45
"""Of the width that Axes had, what a legend leaves them at least."""

_LEAST_FONT, _SMALLER = 5.0, 0.85
"""In points, of a legend that would be too wide or too high; what its letters lose at a time."""
_LAID_OUT_HEIGHT = 0.85
"""Of the height of a row of a figure that lays itself out, what a legend may take."""
_LAID_OUT_HEIGHT_TO_SCALE = 0.6
"""The same beside Axes of equal scales, which are lower than their row and stand in its middle."""
LEAST_IN_LEGEND = 8
"""Lines, however low the Axes are."""
_SHORTEST_LINE = 10
"""In characters, of a name that is broken into lines."""
_WIDTH_OF_LETTER = 0.6
"""On average, of its size."""

_DENSE_LEGEND_ABOVE_CLASSES = 8
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
    """A legend to the right of the Axes, and of their colour bar if there is one; to be drawn last.

    Figures that lay themselves out make room for it. In others the Axes give up as much of their own width.
    So that the legend neither leaves the figure nor lies on a neighbour, names that are too long are broken
    into lines, letters are made smaller, and if all that is too little, the last names are left out.
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.transforms import ScaledTranslation

    figure = ax.figure.figure  # of a subfigure, the whole
    bar, beside = colour_bar_of(ax), ax.transAxes
    if bar is not None:
        inches = _beyond_bar(bar) / figure.dpi
        beside = bar.transAxes + ScaledTranslation(inches, 0.0, figure.dpi_scale_trans)
    dense = len(handles) > _DENSE_LEGEND_ABOVE_CLASSES
    shown, names = list(handles), [str(handle.get_label()) for handle in handles]
    largest = FontProperties(size="small" if dense else "medium").get_size_in_points()

    def drawn(size: float, labels: list[str]) -> Any:
        return ax.legend(
            handles=shown,
            labels=labels,
            title=title,
            fontsize=size,
            title_fontsize=None if size == largest else size,
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
            bbox_transform=beside,
            frameon=False,
            borderaxespad=_LEGEND_GAP,
            **({"labelspacing": 0.3} if dense else {}),
        )

    room = _Room(ax, figure.get_layout_engine() is not None)
    sizes = [largest]
    while sizes[-1] > _LEAST_FONT:
        sizes.append(max(_LEAST_FONT, _SMALLER * sizes[-1]))
    for size in sizes:
        legend = drawn(size, names)
        if room.is_too_narrow_for(legend):
            legend = drawn(size, _broken(legend, room.width))
        if room.holds(legend):
            return
    while not room.holds(legend) and len(shown) > LEAST_IN_LEGEND:
        n = int(len(shown) * room.height / legend.get_window_extent().height)
        n = max(LEAST_IN_LEGEND, min(n, len(shown) - 1)) - 1
        shown = [*shown[:n], more_in_legend(sum(getattr(handle, "n_more", 1) for handle in shown[n:]))]
        names = [str(handle.get_label()) for handle in shown]
        legend = drawn(_LEAST_FONT, names)
        legend = drawn(_LEAST_FONT, _broken(legend, room.width))


class _Room:
    """What there is beside some Axes, in pixels, for a legend."""

    def __init__(self, ax: Any, is_laid_out: bool) -> None:
        self._ax, self._area, self._is_laid_out = ax, ax.figure.bbox, is_laid_out
        self._box = ax.get_position(original=True)
        wide, high = self._box.width, self._box.height
        if is_laid_out:
            wide, high = 1.0, _LAID_OUT_HEIGHT if ax.get_aspect() == "auto" else _LAID_OUT_HEIGHT_TO_SCALE
            if (place := ax.get_subplotspec()) is not None:
                rows, columns = place.get_gridspec().get_geometry()
                wide, high = len(place.colspan) / columns, high * len(place.rowspan) / rows
        self.width, self.height = (1 - _LEAST_LEFT) * wide * self._area.width, high * self._area.height

    def is_too_narrow_for(self, legend: Any) -> bool:
        """Whether names must be broken."""
        return bool(self._width_of(legend) > self.width)

    def holds(self, legend: Any) -> bool:
        """Whether a legend fits, once the Axes have given up the width that it takes."""
        width = self._width_of(legend)
        if not self._is_laid_out:
            box = self._box
            left = box.width - min(width, self.width) / self._area.width
            self._ax.set_position((box.x0, box.y0, left, box.height))
            self._ax.apply_aspect()
            # Down to the end of the figure.
            self.height = self._ax.get_position().y1 * self._area.height - self._gap(legend)
        extent = legend.get_window_extent()
        return bool(width <= self.width and extent.height <= self.height)

    def _width_of(self, legend: Any) -> float:
        return float(legend.get_window_extent().width) + self._gap(legend)

    def _gap(self, legend: Any) -> float:
        """Between the Axes and the legend, beside it and above it."""
        return float(_LEGEND_GAP * legend.prop.get_size_in_points() / 72 * self._ax.figure.figure.dpi)


def more_in_legend(n: int) -> Any:
    """The line of a legend that says how many more there are."""
    from matplotlib.patches import Patch

    line: Any = Patch(fc="none", ec="none", label=f"+ {n} more")
    line.n_more = n
    return line


def _broken(legend: Any, most: float) -> list[str]:
    """The names of a legend in lines, so short that it is at most so many pixels wide."""
    from textwrap import fill

    texts = legend.get_texts()
    widest = max(text.get_window_extent().width for text in texts)
    beside = legend.get_window_extent().width - widest
    longest = max(len(text.get_text()) for text in texts)
    line = max(_SHORTEST_LINE, int(longest * (most - beside) / widest) - 1)
    return [fill(text.get_text(), line) for text in texts]


def lines_beside(ax: Any) -> int:
    """How many lines, below its title, a dense legend has that is as high as the Axes."""
    from matplotlib.font_manager import FontProperties

    size = FontProperties(size="small").get_size_in_points()
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
