"""`explore`: models and data as a page to look around in, on a local server, in a notebook, or in a file."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from inscape.arrays import Shape
from inscape.errors import MissingExtraError, ModelError
from inscape.explorer.conversation import Conversation
from inscape.explorer.data_points import DataPoints
from inscape.explorer.exhibit import Exhibit
from inscape.explorer.viewer_files import script, style
from inscape.explorer.worker import Worker
from inscape.models import wrap
from inscape.pictures import Names
from inscape.probes.source import for_models
from inscape.training.monitor import Monitor

__all__ = ["Explorer", "explore"]

_GIVEN = "# `{0}`, `x` and `y` are what was given to inscape.explore\n"


class Explorer:
    """A page that is not shown yet, or is: see `explore`."""

    def __init__(self, exhibit: Exhibit) -> None:
        self.exhibit = exhibit
        self._server: Any = None
        self._widget: Any = None

    def __repr__(self) -> str:
        names = ", ".join(self.exhibit.names[:4]) + (", ..." if len(self.exhibit.names) > 4 else "")
        where = f" at {self.url}" if self._server is not None else ""
        return f"<explorer of {names} on {len(self.exhibit.data)} points{where}>"

    @property
    def url(self) -> str | None:
        """The address of the page with its token, None while it is not served."""
        return None if self._server is None else self._server.url

    def start(self, *, port: int = 0, browser: bool = False) -> Self:
        """Serve the page from a thread of this process, on 127.0.0.1 only, and return at once.

        Args:
            port: the port, 0 for any that is free.
            browser: whether to open it in the browser.
        """
        from inscape.explorer.server import Server

        if self._server is None:
            self._server = Server(self.exhibit, port=port)
        if browser:
            import webbrowser

            webbrowser.open(self._server.url)
        return self

    def serve(self, *, port: int = 0, browser: bool = True) -> None:
        """Serve the page until Ctrl-C."""
        self.start(port=port, browser=browser)
        try:
            self._server.wait()
        except KeyboardInterrupt:
            pass
        finally:
            self.stop()

    def stop(self) -> None:
        """End the server, if there is one."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def save(self, path: str | Path, *, count: bool = True) -> Path:
        """Write the page of the first plane into one .html file that opens offline, and return its path.

        The file has the pictures and layers of every model, scores and inputs under the cursor, comparisons
        of up to four models and the region count. It says what it cannot do: other planes, finer pictures.

        Args:
            path: the file.
            count: whether to count R_1 for it, which may take a while.
        """
        from inscape.explorer.saved_page import write_page

        return write_page(self.exhibit, path, count=count)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """What a notebook shows: the widget, or how to install it."""
        if self._widget is None:
            self._widget = widget_of(self.exhibit)
        return self._widget._repr_mimebundle_(**options)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def explore(
    model: Any,
    x: Any,
    y: Any = None,
    *,
    class_names: Names | None = None,
    features: Sequence[str] | None = None,
    units: Mapping[str, str] | Sequence[str] | None = None,
    image_shape: Shape | None = None,
    scale: Any = "auto",
    rows: Sequence[int] | None = None,
    title: str | None = None,
    show: bool | None = None,
) -> Explorer:
    """A page on which planes through the data are dragged through the input space of a model.

    In a notebook the result of the last line of a cell appears below it. At a Python prompt the page opens in
    the browser. In a script call `.serve()`, which waits for Ctrl-C, or `.save("page.html")`.

    Args:
        model: anything that `inscape.wrap` takes; a dictionary or a list of several to compare; or a
            `Monitor` that kept its models, for a slider over the steps of training.
        x: the data, as for `inscape.sample_probes`; at most 5,000 points are offered.
        y: their classes, if x does not carry them.
        class_names: names of the classes, as for pictures.
        features: names of the numbers of a point; those of a data frame are known.
        units: what the features are measured in, by name or in order, as {"height": "cm"}; those in
            `attrs["units"]` of a data frame are known.
        image_shape: the shape in which flat points are drawn, as (8, 8).
        scale: in which units points are near or far, as for `Patch.through`: "std" for standard deviations,
            numbers, or None; "auto" takes "std" for tables, and None for images.
        rows: three rows of the data that span the first plane; by default of three classes.
        title: the name of the page.
        show: whether to open it in the browser now; None does so at a Python prompt.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(50, 3))
    >>> explore(lambda x: x, x)
    <explorer of model on 50 points>
    """
    models, is_sequence = _named(model)
    models = {name: wrap(one) for name, one in models.items()}
    of_models = for_models(models.values(), x)
    data = DataPoints.of(of_models, y, features=features, units=units, image_shape=image_shape, scale=scale)
    exhibit = Exhibit(
        models,
        data,
        class_names=class_names,
        rows=rows,
        is_sequence=is_sequence,
        source=_GIVEN.format("model" if len(models) == 1 else "models"),
        title=title,
    )
    explorer = Explorer(exhibit)
    if _is_at_a_prompt() if show is None else show:
        explorer.start(browser=True)
    return explorer


def _named(model: Any) -> tuple[Mapping[str, Any], bool]:
    """Models by name, and whether they are steps of one training."""
    if isinstance(model, Monitor):
        if not model.models:
            raise ModelError("the monitor kept no models: make it with keep_models=True")
        return {f"step {step:,}": one for step, one in sorted(model.models.items())}, True
    if isinstance(model, Mapping):
        return model, False
    if isinstance(model, list | tuple):
        return {f"model {k + 1}": one for k, one in enumerate(model)}, False
    name = Path(model).name if isinstance(model, str | Path) else "model"
    return {name: model}, False


def _is_at_a_prompt() -> bool:
    """Whether a person types lines at Python itself, not in a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    is_notebook = getattr(shell, "kernel", None) is not None
    return (hasattr(sys, "ps1") or shell is not None) and not is_notebook


def widget_of(exhibit: Exhibit) -> Any:
    """A widget that shows the models and data; its kernel answers as long as it runs."""
    try:
        import anywidget
    except ImportError as error:
        raise MissingExtraError("anywidget", "explore", "the explorer in a notebook") from error

    class ExplorerWidget(anywidget.AnyWidget):
        """The page as a widget: requests come as messages, replies go as buffers."""

        _esm = script()
        _css = style()

        def __init__(self) -> None:
            super().__init__()
            self._worker = Worker()
            self._worker.submit(self, "warm", lambda job: exhibit.warm(), urgency=0)
            self._conversation = Conversation(exhibit, self._worker, self._reply)
            self.on_msg(lambda _, request, buffers: self._conversation.receive(request))

        def _reply(self, message: bytes) -> None:
            self.send({"kind": "inscape"}, [message])

        def close(self) -> None:
            """End the worker with the widget."""
            self._worker.close()
            super().close()

    return ExplorerWidget()
