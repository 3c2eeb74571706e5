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
from typing import Any

from inscape.errors import InscapeError, MissingExtraError
from inscape.explorer.conversation import Conversation
from inscape.explorer.exhibit import Exhibit
from inscape.explorer.viewer_files import page, script, style
from inscape.explorer.worker import Worker

HOST = "127.0.0.1"
MOST_PAGES = 12
MOST_CONNECTIONS = 64
LONGEST_REQUEST = 2**16
"""Bytes of a request; the page itself sends a few hundred."""
_WAITING = 64
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
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Route, WebSocketRoute
    from starlette.websockets import WebSocket, WebSocketDisconnect

    hosts = (f"{HOST}:{port}", f"localhost:{port}")
    files = {
        "": ("text/html; charset=utf-8", page(exhibit.title)),
        "viewer.js": ("text/javascript; charset=utf-8", script()),
        "viewer.css": ("text/css; charset=utf-8", style()),
    }
    pages: set[Conversation] = set()

    def is_known(given: str) -> bool:
        return secrets.compare_digest(given.encode(), token.encode())

    def refused(status: int, line: str) -> Response:
        return PlainTextResponse(line + "\n", status, headers=SAFE)

    async def get(request: Request) -> Response:
        if request.headers.get("host") not in hosts:
            return refused(421, "This address is not served here.")
        if not is_known(request.path_params["token"]):
            return refused(403, "The token in the address is not the one that inscape explore printed.")
        if request.path_params["name"] not in files:
            return refused(404, "There is nothing here.")
        kind, text = files[request.path_params["name"]]
        headers = SAFE | {"content-type": kind, "content-security-policy": policy(port)}
        return Response(text, headers=headers)

    async def talk(channel: WebSocket) -> None:
        host, origin = channel.headers.get("host"), channel.headers.get("origin")
        is_own = host in hosts and origin == f"http://{host}"
        if not is_own or not is_known(channel.path_params["token"]):
            await channel.close(_CLOSED_FOR["token"])
            return
        if len(pages) >= MOST_PAGES:
            await channel.accept()
            await channel.close(_CLOSED_FOR["full"], "too many pages are open")
            return
        await channel.accept()
        loop, replies = asyncio.get_running_loop(), asyncio.Queue[bytes](_WAITING)

        def put(message: bytes) -> None:
            if replies.full():  # a page that does not read: its oldest reply is out of date anyway
                replies.get_nowait()
            replies.put_nowait(message)

        def send(message: bytes) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(put, message)

        async def forward() -> None:
            while True:
                await channel.send_bytes(await replies.get())

        conversation = Conversation(exhibit, worker, send)
        pages.add(conversation)
        forwarding = asyncio.create_task(forward())
        try:
            while True:
                conversation.receive(_parsed(await channel.receive_text()))
        except (WebSocketDisconnect, KeyError, RuntimeError):
            pass
        finally:
            pages.discard(conversation)
            conversation.close()
            forwarding.cancel()

    return Starlette(
        routes=[
            WebSocketRoute("/{token}/socket", talk),
            Route("/{token}/{name:path}", get),
            Route("/{name:path}", lambda request: refused(404, "There is nothing here."), name="nothing"),
        ]
    )


SAFE = {
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
