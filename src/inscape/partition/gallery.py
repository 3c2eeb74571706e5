"""Many pictures as one: side by side, or one after the other as an animation."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arguments import positive_number
from inscape.drawing.palette import in_order, name_colours
from inscape.errors import PictureError
from inscape.files import replacing
from inscape.partition import decision_regions
from inscape.pictures import Colours, DrawnByClass, Names, Style
from inscape.probes import Probe
from inscape.probes.source import PointSource
from inscape.progress import Meter, meter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = (".gif", ".mp4")
_LINE_OF_LEGEND = 1.75
"""The height of a line of a legend, of its font size."""


def side_by_side(
    of: Mapping[str, Any] | Sequence[Any],
    probe: Probe | None = None,
    *,
    columns: int | None = None,
    title: str | None = None,
    class_names: Names | None = None,
    colours: Colours | None = None,
    legend: bool = True,
    points: Any = None,
    progress: bool | Meter | None = None,
) -> "Figure":
    """Draw several results, or the decision regions of several models on one probe; the matplotlib Figure.

    A class has one colour in all panels, and there is one legend. With `columns=len(of)` it is a strip, such
    as of a network over training.

    Args:
        of: name -> result or model, or a list of them.
        probe: where to look, if they are models.
        columns: panels in a row; None for at most three.
        title: the title of the whole figure.
        class_names: as for the `plot` of results.
        colours: likewise.
        legend: whether to draw the legend.
        points: likewise, in all panels.
        progress: None for a bar after two seconds, False for none; a function gets (steps done, in all): a
            panel is computed, and drawn.

    >>> import numpy as np
    >>> from inscape import Segment
    >>> figure = side_by_side({"a": lambda x: x > 0, "b": lambda x: x > 1}, Segment([-2.0], [2.0]))
    >>> len(figure.axes)
    2
    """
    with meter(progress, "pictures") as show:
        results = _results(of, probe, show)
        n = columns or min(len(results), 3)
        rows = -(-len(results) // n)
        figure = _figure((1.4 + 3.4 * n, 0.3 + 3.0 * rows))
        panels = figure.subplots(rows, n, squeeze=False).ravel()
        shared = _Shared(results, class_names, colours, points)
        for k, (ax, (name, result)) in enumerate(zip(panels, results.items(), strict=False)):
            shared.draw(result, ax, name)
            show(len(results) + k + 1, 2 * len(results))
    for ax in panels[len(results) :]:
        ax.set_visible(False)
    if legend:
        shared.legend(figure)
    if title:
        figure.suptitle(title)
    return figure


def animate(
    of: Mapping[str, Any] | Sequence[Any],
    path: str | Path,
    probe: Probe | None = None,
    *,
    seconds: float = 0.4,
    dpi: int = 100,
    class_names: Names | None = None,
    colours: Colours | None = None,
    legend: bool = True,
    points: Any = None,
    progress: bool | Meter | None = None,
) -> Path:
    """Write results, or the decision regions of models on one probe, one after the other into a file.

    Args:
        of: name -> result or model, or a list of them; names are titles.
        path: .gif, or .mp4, which needs ffmpeg: `pip install 'inscape[film]'` brings it.
        probe: where to look, if they are models.
        seconds: how long each picture stays.
        dpi: pixels per inch; a frame is 6.4 x 4.8 inches.
        class_names: as for the `plot` of results.
        colours: likewise.
        legend: whether to draw the legend, the same in all frames.
        points: likewise.
        progress: None for a bar after two seconds, False for none; a function gets (steps done, in all): a
            picture is computed, and drawn.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from inscape import Segment
    >>> frames = {f"threshold {a}": lambda x, a=a: x > a for a in (-1, 0, 1)}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = animate(frames, Path(folder) / "film.gif", Segment([-2.0], [2.0]), dpi=40)
    ...     path.name, path.stat().st_size > 0
    ('film.gif', True)
    """
    path = Path(path)
    writer = _writer(path, positive_number(seconds, "seconds", PictureError))
    with meter(progress, "frames") as show:
        results = _results(of, probe, show)
        shared = _Shared(results, class_names, colours, points)
        figure = _figure((6.4, 4.8))
        try:
            with replacing(path) as draft, writer.saving(figure, str(draft), dpi):
                for k, (name, result) in enumerate(results.items()):
                    figure.clear()
                    shared.draw(result, figure.subplots(), name)
                    if legend:
                        shared.legend(figure)
                    writer.grab_frame()
                    show(len(results) + k + 1, 2 * len(results))
        except OSError as error:
            raise PictureError(f"cannot write {path}: {error.strerror or error}") from error
    return path


def _results(of: Mapping[str, Any] | Sequence[Any], probe: Probe | None, show: Meter) -> dict[str, Any]:
    """Name -> result, that of a model computed on the probe; which is half of the work that is shown."""
    named = dict(of) if isinstance(of, Mapping) else {str(i + 1): one for i, one in enumerate(of)}
    if not named:
        raise PictureError("there is nothing to draw: give results, or models and a probe")
    results = {}
    for name, one in named.items():
        if probe is None and not hasattr(one, "plot"):
            raise PictureError(
                f"{name!r} is no result that can be drawn: give results, or models and a probe"
            )
        results[str(name)] = one if probe is None else decision_regions(one, probe)
        show(len(results), 2 * len(named))
    return results


class _Shared:
    """Names and colours of classes that all pictures share."""

    def __init__(
        self, results: dict[str, Any], names: Names | None, colours: Colours | None, points: Any
    ) -> None:
        self._names, self._points = names, points
        shared: dict[str, Any] = {}
        self._shown: set[str] = set()
        y = None if points is None else PointSource(points).everything()[1]
        for result in results.values():
            if isinstance(result, DrawnByClass):
                labels = result._drawn_labels.tolist()
                known = getattr(result, "class_names", None)
                classes, own = Style(names, colours).classes(labels, known, y)
                given = classes.colours if colours is not None else {}
                shared |= {classes.names[i]: given.get(i) for i in classes.names}
                present = labels + ([] if own is None else np.unique(own).tolist())
                self._shown |= {classes.names[label] for label in present}
        palette = name_colours(shared)
        self._colours = {name: colour or palette[name] for name, colour in shared.items()}

    def draw(self, result: Any, ax: Any, name: str) -> None:
        """Draw a result under its name, and its own title in small."""
        if isinstance(result, DrawnByClass):
            result.plot(ax, class_names=self._names, colours=self._colours, legend=False, points=self._points)
        else:
            result.plot(ax)
        own = ax.get_title().replace(", ", "\n")
        ax.title.set_text(f"{name}\n{own}" if own else name)
        ax.title.set_fontsize(10)

    def legend(self, figure: Any) -> None:
        """One legend beside all pictures."""
        from matplotlib.patches import Patch

        names = sorted(self._shown, key=in_order)[:20]
        if names:
            handles = [Patch(fc=self._colours[name], ec="black", lw=0.5, label=name) for name in names]
            size = min(10.0, 72 * figure.get_figheight() / (_LINE_OF_LEGEND * (len(names) + 2)))
            figure.legend(
                handles=handles,
                title="class",
                loc="outside right upper",
                frameon=False,
                fontsize=size,
                title_fontsize=size,
            )


def _figure(size: tuple[float, float]) -> "Figure":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _writer(path: Path, seconds: float) -> Any:
    """What writes the frames of an animation."""
    from matplotlib.animation import FFMpegWriter, PillowWriter

    if path.suffix.lower() not in ENDINGS:
        raise PictureError(f"cannot animate into {path}: the file must end in {' or '.join(ENDINGS)}")
    if path.suffix.lower() == ".gif":
        return PillowWriter(fps=1 / seconds)  # type: ignore[arg-type]  # fractions are fine
    if FFMpegWriter.isAvailable():
        return FFMpegWriter(fps=1 / seconds)  # type: ignore[arg-type]
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise PictureError(
            f"cannot write {path}: ffmpeg was not found",
            remedy="pip install 'inscape[film]' (or apt, brew or conda install ffmpeg), or write a .gif",
        ) from error

    class OwnFFMpegWriter(FFMpegWriter):
        """The program that comes with a package, where none is installed."""

        @classmethod
        def bin_path(cls) -> str:
            return str(imageio_ffmpeg.get_ffmpeg_exe())

    return OwnFFMpegWriter(fps=1 / seconds)  # type: ignore[arg-type]
