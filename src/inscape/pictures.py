"""What every result that can be drawn shares: one signature of `plot`, class names and their colours."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from inscape.arrays import Array, Ints
from inscape.drawing.axes import title_in_lines
from inscape.drawing.palette import Classes, Colour, name_colours
from inscape.errors import InscapeError, PictureError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    class DrawnAxes(Axes):
        """What `plot` returns, for type checkers: matplotlib's own types refuse `ax.figure.savefig`."""

        @property
        def figure(self) -> Figure:
            """The figure, or the part of one, that holds the Axes."""


_DPI = 144
Names = Sequence[str] | Mapping[Any, str]
Colours = Sequence[Any] | Mapping[Any, Any]


class Shown:
    """A result that a notebook shows: its line, its status in words, and its picture or table."""

    def _repr_html_(self) -> str:
        status = getattr(self, "status", None)
        detail = getattr(status, "detail", "")
        words = f"<div>{escape(str(status))}</div>" if detail else ""
        return f"<div><code>{escape(repr(self))}</code></div>{words}{self._shown_below()}"

    def _shown_below(self) -> str:
        """The table, if there is one."""
        frame = self._shown_frame()
        if frame is None:
            return ""
        return str(frame.to_html(max_rows=20, float_format="{:.4g}".format, border=0, na_rep=""))

    def _shown_frame(self) -> "pd.DataFrame | None":
        """The table as a reader wants it."""
        to_frame = getattr(self, "to_frame", None)
        return None if to_frame is None else to_frame()


class _Pictured(Shown):
    """A result whose picture a notebook shows."""

    def plot(self, ax: "Axes | None" = None) -> "DrawnAxes":
        """Draw the result and return the matplotlib Axes."""
        raise NotImplementedError

    def _shown_below(self) -> str:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        from inscape.drawing.axes import apart_from_pyplot

        try:
            with apart_from_pyplot():  # else the figure is shown a second time
                figure = self.plot().figure
                FigureCanvasAgg(figure)
                figure.savefig(png := BytesIO(), format="png", dpi=_DPI)
        except InscapeError as error:  # a probe of higher dimension, or a result read from a file
            return f"<div>{escape(str(error))}</div>"
        data, width = b64encode(png.getvalue()).decode(), round(100 * figure.get_figwidth())
        alt = escape(repr(self), quote=True)
        return f'<img src="data:image/png;base64,{data}" width="{width}" alt="{alt}">'


class Drawn(_Pictured):
    """A result with a picture."""

    def plot(self, ax: "Axes | None" = None, *, title: str | None = None, legend: bool = True) -> "DrawnAxes":
        """Draw the result and return the matplotlib Axes.

        It shows numbers, and neither classes nor data points: `class_names`, `colours` and `points` are for
        pictures of regions.

        Args:
            ax: where to draw; new Axes if None.
            title: the title, "" for none; None for one that says what there is to see.
            legend: whether to draw the legend, if there is one.
        """
        return finished(self._draw(ax), title, legend)

    def _draw(self, ax: Any) -> Any:
        raise NotImplementedError


class DrawnByClass(_Pictured):
    """A result with a picture of classes, or of points that have classes."""

    @property
    def _drawn_labels(self) -> Ints:
        """The labels of what is drawn, data points left out."""
        return np.asarray(getattr(self, "labels", ()), np.int64).reshape(-1)

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        title: str | None = None,
        class_names: Names | None = None,
        colours: Colours | None = None,
        legend: bool = True,
        points: Any = None,
    ) -> "DrawnAxes":
        """Draw the result and return the matplotlib Axes.

        A class has the same colour in all pictures with the same set of class names.

        Args:
            ax: where to draw; new Axes if None.
            title: the title, "" for none; None for one that says what there is to see.
            class_names: the names of the classes, in the order of labels, or a dictionary from labels or from
                the names that the model has. Nothing is renamed if the model's names are all among them.
            colours: what matplotlib takes as colours, in the order of labels, or a dictionary from class
                names or labels, which may know more or fewer classes than there are.
            legend: whether to draw the legend.
            points: data points x, or (x, y) for points in the colour of their class. Points beside the plane
                or the segment are drawn where they are nearest to it, small and faint.
        """
        return finished(self._draw(ax, Style(class_names, colours, legend, points)), title)

    def _draw(self, ax: Any, style: "Style") -> Any:
        raise NotImplementedError


def finished(ax: Any, title: str | None, legend: bool = True) -> "DrawnAxes":
    """The Axes with another title, in lines that fit the figure, and perhaps without their legend."""
    if title is not None:
        ax.title.set_text(title)
    title_in_lines(ax)
    if not legend and (shown := ax.get_legend()) is not None:
        shown.remove()
    return cast("DrawnAxes", ax)


@dataclass(frozen=True)
class Style:
    """How classes and points are to be drawn, as the user wants it; see `DrawnByClass.plot`."""

    class_names: Names | None = None
    colours: Colours | None = None
    legend: bool = True
    points: Any = None

    def classes(
        self, labels: Iterable[int], known: Sequence[str] | None = None, y: Array | None = None
    ) -> tuple[Classes, Ints | None]:
        """Names and colours of labels, and the labels of points of classes y.

        Args:
            labels: the labels that occur.
            known: the names that the model has for labels 0, 1, ...
            y: the classes of points, numbers or names, (n,).

        >>> classes, points = Style(["cat", "dog"]).classes([0, 1], y=np.array(["dog", "fox"]))
        >>> classes.names, points.tolist()
        ({0: 'cat', 1: 'dog', 2: 'fox'}, [1, 2])
        >>> Style({"fox": "Fuchs"}).classes([], y=np.array(["dog", "fox"]))[0].names
        {0: 'dog', 1: 'Fuchs'}
        """
        old = dict(enumerate(known or ()))
        numbers = [*labels, *(_numbered(self.class_names) if known is None else ())]
        old |= {int(label): str(int(label)) for label in numbers if int(label) not in old}
        names = old | _renamed(self.class_names, old)
        own = None
        if y is not None:
            values, number = np.unique(y, return_inverse=True)
            numbers = [_label_of(value, old, names) for value in values.tolist()]
            own = np.array(numbers, dtype=np.int64)[number]
            old |= {label: name for label, name in names.items() if label not in old}
            if isinstance(self.class_names, Mapping):  # classes that only points have are renamed too
                names |= _renamed(self.class_names, old)
        palette = name_colours([*names.values(), *_listed(self.class_names)])
        colours = {label: palette[name] for label, name in names.items()}
        return Classes(names, colours | _recoloured(self.colours, names, old), self.legend), own


def _listed(names: Names | None) -> Iterable[str]:
    if names is None:
        return ()
    return (str(n) for n in (names.values() if isinstance(names, Mapping) else names))


def _numbered(names: Names | None) -> Iterable[int]:
    """The labels that class names are given for."""
    if isinstance(names, Mapping):
        return [key for key in names if isinstance(key, int)]
    return range(len(names or ()))


def _renamed(given: Names | None, old: dict[int, str]) -> dict[int, str]:
    """The new names of labels."""
    if given is None:
        return {}
    if isinstance(given, str):
        raise PictureError(f"class_names={given!r} must be a list of names, or a dictionary")
    if isinstance(given, Mapping):
        new = {label: _looked_up(given, label, name) for label, name in old.items()}
        return {label: str(name) for label, name in new.items() if name is not None}
    names = [str(name) for name in given]
    if set(old.values()) <= set(names):
        return {}
    missing = [label for label in old if not 0 <= label < len(names)]
    if missing:
        raise PictureError(
            f"class_names has {len(names)} names, and there is a class {old[missing[0]]!r} with label "
            f"{missing[0]}: give a name for each label, or a dictionary"
        )
    return {label: names[label] for label in old}


def _looked_up(given: Mapping[Any, Any], label: int, *names: str) -> Any:
    """What a dictionary has for a label or one of its names, None for nothing."""
    return next((given[key] for key in (*names, label) if key in given), None)


def _recoloured(given: Colours | None, names: dict[int, str], old: dict[int, str]) -> dict[int, Colour]:
    """The colours of labels that the user gave."""
    from matplotlib.colors import to_rgb

    if given is None:
        return {}
    if isinstance(given, Mapping):
        chosen = {
            label: _looked_up(given, label, name, old.get(label, name)) for label, name in names.items()
        }
    else:
        chosen = {label: given[label] for label in names if 0 <= label < len(given)}
    try:
        return {label: to_rgb(colour) for label, colour in chosen.items() if colour is not None}
    except (ValueError, TypeError) as error:
        raise PictureError(f"colours={given!r} holds what matplotlib has no colour for: {error}") from error


def _label_of(value: Any, old: dict[int, str], names: dict[int, str]) -> int:
    """The label of a class by its name or number; a class that is not known is added to `names`."""
    is_whole = isinstance(value, bool | int) or (isinstance(value, float) and value.is_integer())
    text = str(int(value)) if is_whole else str(value)
    for known in (old, names):
        for label, name in known.items():
            if name == text:
                return label
    if is_whole and int(value) in names:
        return int(value)
    label = int(value) if is_whole else max(names, default=-1) + 1
    names[label] = text
    return label
