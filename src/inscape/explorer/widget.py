"""The explorer below a cell of a notebook, through anywidget."""

from typing import Any

from inscape.errors import MissingExtraError
from inscape.explorer.conversation import Conversation
from inscape.explorer.exhibit import Exhibit
from inscape.explorer.viewer_files import script, style
from inscape.explorer.worker import Worker


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
