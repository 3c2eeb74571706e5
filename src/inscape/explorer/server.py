"""The local server: one page, one socket, on this machine only, behind a token.

Everything lies below `/TOKEN/`, and nothing else is there: the three files of the viewer from memory, and the
socket. A request must name this address as its Host, and a socket must be opened by this page (Origin), so
that no other page in the browser can talk to it, whatever it knows.
"""

import asyncio
import json
import secrets
import socket
import threading
from typing import TYPE_CHECKING, Any

from inscape.errors import InscapeError, MissingExtraError
from inscape.explorer.conversation import Conversation
from inscape.explorer.exhibit import Exhibit
from inscape.explorer.viewer_files import page, script, style
from inscape.explorer.worker import Worker

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.websockets import WebSocket

HOST = "127.0.0.1"
MOST_PAGES = 12
MOST_CONNECTIONS = 64
"""At once, those of pages among them."""
LONGEST_REQUEST = 2**16
"""Bytes of a request; the page itself sends a few hundred."""
_MOST_REPLIES_BEHIND = 64
"""Replies that a slow page may be behind before it is let go."""
_CLOSED_FOR = {"token": 4403, "full": 4429}


class Server:
    """A server in a thread of its own, from its making to `close`.

    Args:
        exhibit: what is on show.
        port: the port, 0 for any that is free.
    """

    def __init__(self, exhibit: Exhibit, *, port: int = 0) -> None:
        try:
            import uvicorn
            import websockets  # noqa: F401  uvicorn answers sockets with it
        except ImportError as error:
            raise MissingExtraError("starlette, uvicorn and websockets", "explore", "the explorer") from error
        self.token = secrets.token_urlsafe(24)
        self._socket = _listening(port)
        self.port: int = self._socket.getsockname()[1]
        self._worker = Worker()
        self._worker.submit(self, "warm", lambda job: exhibit.warm(), urgency=0)
        config = uvicorn.Config(
            application(exhibit, self._worker, self.token, self.port),
            log_level="critical",
            access_log=False,
            lifespan="off",
            limit_concurrency=MOST_CONNECTIONS,
            ws="websockets-sansio",
            ws_max_size=LONGEST_REQUEST,
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=1,
            server_header=False,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="inscape server", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """The address of the page, the token included."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    def wait(self) -> None:
        """Return when the server has ended; Ctrl-C raises KeyboardInterrupt here."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        """End the server and its worker."""
        self._server.should_exit = True
        self._worker.close()
        self._thread.join(timeout=10)
        self._socket.close()


def _listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise InscapeError(
            f"cannot listen on port {port} of {HOST}: {getattr(error, 'strerror', None) or error}; "
            "give another --port, or 0 for any that is free"
        ) from error
    listener.listen(128)
    return listener


def application(exhibit: Exhibit, worker: Worker, token: str, port: int) -> Any:
    """The ASGI application: the files of the viewer and the socket, for those who know the token."""
    from starlette.applications import Starlette
    from starlette.routing import Route, WebSocketRoute

    door, pages = Door(token, port), Pages(exhibit, worker)
    files = {
        "": ("text/html; charset=utf-8", page(exhibit.title)),
        "viewer.js": ("text/javascript; charset=utf-8", script()),
        "viewer.css": ("text/css; charset=utf-8", style()),
    }

    async def get(request: "Request") -> "Response":
        why = door.refuses(request.headers.get("host"), request.path_params["token"])
        if why is not None:
            return _refused(*why)
        if request.path_params["name"] not in files:
            return _refused(*NOT_FOUND)
        kind, text = files[request.path_params["name"]]
        return _response(text, 200, {"content-type": kind, "content-security-policy": policy(port)})

    async def talk(channel: "WebSocket") -> None:
        host, origin = channel.headers.get("host"), channel.headers.get("origin")
        if door.refuses(host, channel.path_params["token"]) or origin != f"http://{host}":
            await channel.close(_CLOSED_FOR["token"])
        else:
            await pages.serve(channel)

    return Starlette(
        routes=[
            WebSocketRoute("/{token}/socket", talk),
            Route("/{token}/{name:path}", get),
            Route("/{name:path}", lambda request: _refused(*NOT_FOUND), name="nothing"),
        ]
    )


class Door:
    """Who may come in: those who know the token, at this address."""

    def __init__(self, token: str, port: int) -> None:
        self._token = token.encode()
        self._hosts = f"{HOST}:{port}", f"localhost:{port}"

    def refuses(self, host: str | None, token: str) -> tuple[int, str] | None:
        """The status and the line that a request is refused with; None if it may come in."""
        if host not in self._hosts:
            return 421, "This address is not served here."
        if not secrets.compare_digest(token.encode(), self._token):
            return 403, "The token in the address is not the one that inscape explore printed."
        return None


class Pages:
    """The pages that are open, each with a conversation of its own."""

    def __init__(self, exhibit: Exhibit, worker: Worker) -> None:
        self._exhibit, self._worker = exhibit, worker
        self._n_open = 0

    async def serve(self, channel: "WebSocket") -> None:
        """Talk to a page until it goes."""
        from starlette.websockets import WebSocketDisconnect

        await channel.accept()
        if self._n_open >= MOST_PAGES:
            await channel.close(_CLOSED_FOR["full"], "too many pages are open")
            return
        replies = Replies(asyncio.get_running_loop())
        conversation = Conversation(self._exhibit, self._worker, replies.send)
        self._n_open += 1
        forwarding = asyncio.create_task(replies.forward(channel))
        try:
            while True:
                conversation.receive(_parsed(await channel.receive_text()))
        except (WebSocketDisconnect, KeyError, RuntimeError):
            pass
        finally:
            self._n_open -= 1
            conversation.close()
            forwarding.cancel()


class Replies:
    """Replies on their way from the worker's thread to a page."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._queue = loop, asyncio.Queue[bytes](_MOST_REPLIES_BEHIND)

    def send(self, message: bytes) -> None:
        """Take a message from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._put, message)

    def _put(self, message: bytes) -> None:
        if self._queue.full():  # a page that does not read: its oldest reply is out of date anyway
            self._queue.get_nowait()
        self._queue.put_nowait(message)

    async def forward(self, channel: "WebSocket") -> None:
        """Hand on what comes, until this is cancelled."""
        while True:
            await channel.send_bytes(await self._queue.get())


NOT_FOUND = 404, "There is nothing here."


def _refused(status: int, line: str) -> "Response":
    return _response(line + "\n", status, {"content-type": "text/plain; charset=utf-8"})


def _response(text: str, status: int, headers: dict[str, str]) -> "Response":
    from starlette.responses import Response

    return Response(text, status, headers=SAFE_HEADERS | headers)


SAFE_HEADERS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def policy(port: int) -> str:
    """What the page may load: its own files, and pictures that it made itself."""
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
        f"connect-src ws://{HOST}:{port} ws://localhost:{port}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
