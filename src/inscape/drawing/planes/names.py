"""Class names in pictures of planes: the legend, and names inside regions where they cover nothing."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from inscape.drawing import Array, Bools, Floats, Ints
from inscape.drawing.axes import LEAST_IN_LEGEND, fitted_text, legend_beside, lines_beside, more_in_legend
from inscape.drawing.palette import Classes, deeper, in_order, ink_on

MOST_NAMES = 20
"""In a picture: as many classes as have colours that can be told apart."""
SQUARES_PER_SIDE = 240
"""Per longer side of the raster on which names look for a place."""
FONT_SIZES = (11.0, 9.5, 8.0, 7.0)
_POINT_RADIUS = 4.0
"""Of a drawn point, in points (1/72 inch), with a little room around it."""


@dataclass(frozen=True, eq=False)
class Raster:
    """Which region there is at the squares of a grid that is parallel to the Axes.

    Attributes:
        regions: the region at the middle of each square, -1 outside, (rows, columns); rows go up.
        low: the lower left corner, (2,).
        step: width and height of a square, (2,).
    """

    regions: Ints
    low: Floats
    step: Floats

    @classmethod
    def empty(cls, domain: Floats) -> "Raster":
        """Nothing, around a domain with corners (k, 2)."""
        low, extent = domain.min(axis=0), np.ptp(domain, axis=0)
        columns, rows = (
            np.ceil(SQUARES_PER_SIDE * extent / extent.max()).astype(int).clip(min=SQUARES_PER_SIDE // 4)
        )
        return cls(np.full((rows, columns), -1), low, extent / (columns, rows))

    def middles(self, squares: Ints) -> Floats:
        """The middles of squares (n, 2), given as row and column."""
        return np.asarray(self.low + (squares[:, ::-1] + 0.5) * self.step)

    def all_middles(self) -> Floats:
        """The middles of all squares, (rows, columns, 2)."""
        squares = np.moveaxis(np.indices(self.regions.shape), 0, -1)
        return self.middles(squares.reshape(-1, 2)).reshape(squares.shape)


def raster_of_edges(ends: Floats, sides: Ints, domain: Floats) -> Raster:
    """The raster of a subdivision into regions.

    Along each row of squares the region changes where an edge crosses it, to that on the edge's right side.

    Args:
        ends: coordinates of the two ends of the edges between regions and of the border, (e, 2, 2).
        sides: the regions to the left and to the right of each edge, -1 outside, (e, 2).
        domain: the corners of the convex domain, (k, 2).
    """
    raster = Raster.empty(domain)
    rows, columns = raster.regions.shape
    a, b = ((ends - raster.low) / raster.step - 0.5).transpose(1, 0, 2)  # in squares: middles are whole
    rises = b[:, 1] > a[:, 1]
    first, last = (np.ceil(f(a[:, 1], b[:, 1])).astype(int).clip(0, rows) for f in (np.minimum, np.maximum))
    edge = np.repeat(np.arange(len(ends)), last - first)
    row = np.arange(len(edge)) - np.repeat(np.cumsum(last - first) - (last - first) - first, last - first)
    slope = (b[edge, 0] - a[edge, 0]) / (b[edge, 1] - a[edge, 1])
    x = a[edge, 0] + (row - a[edge, 1]) * slope
    order = np.lexsort((x, row))
    column = np.ceil(x[order]).astype(int).clip(0, columns)
    begins = np.zeros((rows, columns + 1), int)
    regions = np.full((rows, columns + 1), -1)
    begins[row[order], column] = column
    regions[row[order], column] = np.where(rises, sides[:, 1], sides[:, 0])[edge[order]]
    begins = np.maximum.accumulate(begins, axis=1)[:, :-1]
    return Raster(np.take_along_axis(regions, begins, axis=1), raster.low, raster.step)


def draw_legend(
    ax: Any, labels: Ints, areas: Array, classes: Classes, point_labels: Ints | None = None
) -> None:
    """The classes with the largest areas, as many as fit beside the Axes.

    Args:
        ax: where to draw.
        labels: the label of each face or cell, (n,).
        areas: the area of each, (n,).
        classes: names and colours.
        point_labels: the labels of data points, which are shown as dots where no area has them.
    """
    from matplotlib.patches import Patch

    if not classes.legend:
        return
    present, place = np.unique(labels, return_inverse=True)
    total = np.bincount(place, weights=areas)
    largest = present[np.argsort(-total, kind="stable")].tolist()
    others = np.setdiff1d([] if point_labels is None else point_labels, present).astype(int).tolist()
    handles: dict[str, Any] = {}
    n = len(largest + others)
    most = max(LEAST_IN_LEGEND, min(MOST_NAMES, lines_beside(ax)))
    most -= n > most  # the last line says how many more there are
    for label in (largest + others)[:most]:
        name, colour = classes.names[label], classes.colours[label]
        if label in others:
            handles[name] = dot_in_legend(classes, label)
        else:
            handles[name] = Patch(fc=colour, ec="black", lw=0.5, label=short(name))
    shown = [handles[name] for name in sorted(handles, key=in_order)]
    if n > most:
        shown.append(more_in_legend(n - most))
    if shown:
        legend_beside(ax, shown, "class")


def dot_in_legend(classes: Classes, label: int) -> Any:
    """The line of a legend for a class that only data points have."""
    from matplotlib.lines import Line2D

    colour = deeper(classes.colours[label])
    return Line2D([], [], marker="o", ls="", mfc=colour, mec="none", label=short(classes.names[label]))


def short(name: str) -> str:
    """At most twenty characters of a name: its two ends, since names often differ at the end alone.

    >>> short("iris"), short("checkpoint of epoch 12")
    ('iris', 'checkpoint …epoch 12')
    """
    return name if len(name) <= 20 else f"{name[:11]}…{name[-8:]}"


def write_names(ax: Any, raster: Raster, region_labels: Ints, classes: Classes, points: Floats) -> None:
    """Write class names into the largest regions, off all points, off thumbnails and off other regions.

    How much room a name needs is known only when the picture is drawn, at the size that it then has: there
    names find their final place and font size, or vanish where none fits.

    Args:
        ax: where to write.
        raster: the regions.
        region_labels: the label of each.
        classes: names and colours of the labels.
        points: what names must not cover, (n, 2).
    """
    sizes = np.bincount(raster.regions[raster.regions >= 0], minlength=len(region_labels))
    shared = _Places(ax, raster, points)
    for region in np.argsort(-sizes, kind="stable")[:MOST_NAMES].tolist():
        if sizes[region] > 0:
            label = int(region_labels[region])
            shared.add(region, short(classes.names[label]), ink_on(classes.colours[label]))


class _Places:
    """Places of names, found anew when the size of the picture has changed."""

    def __init__(self, ax: Any, raster: Raster, points: Floats) -> None:
        self._ax, self._raster, self._points = ax, raster, points
        self._names: dict[int, Any] = {}
        self._hidden: list[Any] = []
        self._fitted_at: Any = None

    def add(self, region: int, name: str, ink: str) -> None:
        """A name in the middle of a region, until it is drawn."""
        depth = _depth(self._raster.regions == region, np.ones(2))
        x, y = self._raster.middles(np.array([np.unravel_index(np.argmax(depth), depth.shape)]))[0]
        style: dict[str, Any] = {"weight": "bold", "zorder": 4, "color": ink, "fontsize": FONT_SIZES[0]}
        self._names[region] = fitted_text(self._ax, x, y, name, self._fit, **style)

    def _fit(self, text: Any, renderer: Any) -> None:
        self._find(renderer)
        text.set_visible(text not in self._hidden)

    def _find(self, renderer: Any) -> None:
        """Give each name a place for the present size of the Axes."""
        scale = self._ax.transData.transform([self._raster.low, self._raster.low + self._raster.step])
        at = (*scale.ravel().tolist(), renderer.points_to_pixels(1.0))
        if at == self._fitted_at:
            return
        self._fitted_at = at
        square = np.abs(scale[1] - scale[0])[::-1].clip(min=1e-9)  # height and width in pixels
        covered = self._covered(square, renderer)
        self._hidden = []
        for region, text in self._names.items():
            text.set_visible(True)  # else it has no size
            tries = self._tries(region, text, square, covered, renderer)
            if (place := next((p for p in tries if p is not None), None)) is None:
                self._hidden.append(text)
            else:
                text.set_position(place)

    def _tries(self, region: int, text: Any, square: Floats, covered: Bools, renderer: Any) -> Any:
        """A place at each font size, None where the text does not fit into its region."""
        inside = self._raster.regions == region
        for size in FONT_SIZES:
            text.set_fontsize(size)
            box = text.get_window_extent(renderer)
            need = np.ceil(np.array([box.height, box.width]) / square).astype(int)
            yield _deepest_box(inside, covered, need, square, self._raster)

    def _covered(self, square: Floats, renderer: Any) -> Bools:
        """The squares under points and thumbnails."""
        from scipy.ndimage import maximum_filter

        rows, columns = self._raster.regions.shape
        covered = np.zeros((rows, columns), bool)
        at = np.floor((self._points - self._raster.low) / self._raster.step).astype(int)[:, ::-1]
        at = at[((at >= 0) & (at < (rows, columns))).all(axis=1)]
        covered[tuple(at.T)] = True
        radius = np.ceil(renderer.points_to_pixels(_POINT_RADIUS) / square).astype(int)
        covered = np.asarray(maximum_filter(covered, size=tuple(2 * radius + 1)))
        to_data = self._ax.transData.inverted()
        for box in (a.get_tightbbox(renderer) for a in self._beside()):
            corners = to_data.transform([[box.x0, box.y0], [box.x1, box.y1]])
            (x0, y0), (x1, y1) = np.rint((corners - self._raster.low) / self._raster.step).astype(int)
            covered[max(y0, 0) : max(y1 + 1, 0), max(x0, 0) : max(x1 + 1, 0)] = True
        return covered

    def _beside(self) -> list[Any]:
        """Thumbnails, and texts other than the names."""
        thumbnails = [a for a in self._ax.artists if hasattr(a, "offsetbox")]
        return thumbnails + [t for t in self._ax.texts if t not in self._names.values()]


def _deepest_box(inside: Bools, covered: Bools, need: Ints, square: Floats, raster: Raster) -> Floats | None:
    """The middle of the box of `need` squares deepest inside a region that covers nothing; None if none.

    Args:
        inside: the squares of the region.
        covered: squares that must stay free.
        need: height and width of the box in squares.
        square: height and width of a square.
        raster: where the squares are.
    """
    from scipy.ndimage import maximum_filter

    if (need >= inside.shape).any():
        return None
    free = inside & ~covered
    around = 2 * ((need + 1) // 2) + 3  # a square to spare on each side
    fits = free & ~maximum_filter(~free, size=tuple(around), mode="constant", cval=True)
    if not fits.any():
        return None
    depth = np.where(fits, _depth(free, square), -1.0)
    square_of = np.array([np.unravel_index(np.argmax(depth), depth.shape)])
    return np.asarray(raster.middles(square_of)[0])


def _depth(inside: Bools, square: Floats) -> Floats:
    """How far each square is from the nearest one that is not inside, the picture's border included."""
    from scipy.ndimage import distance_transform_edt

    return np.asarray(distance_transform_edt(np.pad(inside, 1), sampling=square)[1:-1, 1:-1])
