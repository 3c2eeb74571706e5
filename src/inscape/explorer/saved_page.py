"""The page as one file that opens offline: the viewer, and the replies to all that it will ask there.

Nothing in the file can be loaded from elsewhere, and no script runs but the viewer: its policy names the
digests of the script and the style that it carries.
"""

import base64
from collections.abc import Callable, Iterator
from html import escape
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from inscape.errors import PictureError
from inscape.explorer.conversation import Conversation, RunningCount
from inscape.explorer.exhibit import Exhibit
from inscape.explorer.messages import packed, unpacked
from inscape.explorer.viewer_files import script, style
from inscape.explorer.worker import PageJob, Worker
from inscape.files import replacing
from inscape.models import Model
from inscape.reports.report import hash_source

WIDER_THAN_FIRST_LOOK = 1.5
"""How much more of the plane than the first look a file has, for screens of any shape."""
MOST_NUMBERS = 2_000_000
"""Scores at vertices that go into a file; without them the page knows the label of a place only."""
SAME_SCORES = 1e-3
"""Of the largest score, up to which the scores that a page works out are those of the model."""
MOST_COMPARED = 3
"""Models of which each pair is compared in a file."""


def write_page(exhibit: Exhibit, path: str | Path, *, count: bool) -> Path:
    """Write a page that opens offline, and return its path."""
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise PictureError(f"cannot write {path}: a page ends in .html")
    messages = "\n".join(base64.b64encode(m).decode() for m in _messages(exhibit, count=count))
    try:
        with replacing(path) as draft:
            draft.write_text(_html(exhibit.title, messages), encoding="utf-8")
    except OSError as error:
        raise PictureError(f"cannot write {path}: {error.strerror or error}") from error
    return path


def _messages(exhibit: Exhibit, *, count: bool) -> Iterator[bytes]:
    """The replies that a saved page has to all that it may ask."""
    about = {"plane": exhibit.start.named()}
    yield _answer(exhibit, {"ask": "hello"})
    yield _answer(exhibit, about | {"ask": "points"})
    yield _answer(exhibit, about | {"ask": "rows", "by": None if exhibit.data.is_plane else "plane"})
    window = _window(exhibit)
    for k, model in enumerate(exhibit.models):
        wanted = ["pattern", "layer", "slope", "margin", "scores"]
        reply = _answer(exhibit, about | {"ask": "plane", "model": k, "window": window, "wanted": wanted})
        yield _with_checked_scores(reply, exhibit, model)
    if 1 < len(exhibit.models) <= MOST_COMPARED:
        for pair in permutations(range(len(exhibit.models)), 2):
            for ask in ("difference", "largest"):
                yield from _if_any(exhibit, about | {"ask": ask, "models": list(pair), "window": window})
    if count:
        running, job = RunningCount(exhibit), PageJob(None, None, lambda _: None)
        while not (progress := running.advance(job))["is_done"]:
            pass
        yield packed({"reply": "count", **progress})


def _if_any(exhibit: Exhibit, request: dict[str, Any]) -> Iterator[bytes]:
    """The reply to a request, also where it is that there is no answer."""
    header, arrays = unpacked(_reply(exhibit, request))
    yield packed(header | {"reply": request["ask"], "models": request["models"], "seconds": 0.0}, arrays)


def _window(exhibit: Exhibit) -> list[float]:
    """The window of the plane that a file has."""
    s0, s1, t0, t1 = exhibit.start.whole(None)
    s, t = (s0 + s1) / 2, (t0 + t1) / 2
    return [
        s + WIDER_THAN_FIRST_LOOK * (s0 - s),
        s + WIDER_THAN_FIRST_LOOK * (s1 - s),
        t + WIDER_THAN_FIRST_LOOK * (t0 - t),
        t + WIDER_THAN_FIRST_LOOK * (t1 - t),
    ]


def _answer(exhibit: Exhibit, request: dict[str, Any]) -> bytes:
    """The last reply to a request; an error if there is none."""
    reply = _reply(exhibit, request)
    header, _ = unpacked(reply)
    if header["reply"] == "error":
        raise PictureError(f"the page cannot be saved: {header['message']}")
    return reply


def _reply(exhibit: Exhibit, request: dict[str, Any]) -> bytes:
    """The last reply to a request."""
    replies: list[bytes] = []
    Conversation(exhibit, _Now(), replies.append).receive(request)
    return replies[-1]


class _Now(Worker):
    """Does all work at once, in the thread that asks."""

    def __init__(self) -> None:
        """No thread."""

    def submit(self, owner: Any, slot: Any, work: Callable[[PageJob], None], *, urgency: int) -> None:
        """Do it."""
        work(PageJob(owner, slot, work))


def _with_checked_scores(reply: bytes, exhibit: Exhibit, model: Model) -> bytes:
    """The reply with the network's head, or without scores if those of the graph are not the model's."""
    header, arrays = unpacked(reply)
    scores = arrays.get("vertex_scores")
    if scores is None:
        return reply
    head = model.graph(exhibit.data.x.shape[1:]).head
    s0, s1, t0, t1 = header["window"]
    few = np.linspace(0, len(scores) - 1, min(16, len(scores))).astype(int)
    middle, half = np.array([s0 + s1, t0 + t1]) / 2, np.array([s1 - s0, t1 - t0]) / 2
    places = middle + half * arrays["vertices"][few]
    known = model.scores(exhibit.start.home.points(places))
    shown = _behind(head, scores[few].astype(np.float64))
    size = max(1.0, float(np.abs(known).max()))
    is_same = (
        shown is not None and shown.shape == known.shape and np.abs(shown - known).max() < SAME_SCORES * size
    )
    if not is_same or scores.size > MOST_NUMBERS:
        del arrays["vertex_scores"]
    return packed(header | {"head": head, "seconds": 0.0}, arrays)


def _behind(head: str | None, scores: Any) -> Any:
    """What a model returns for the scores before its head; None if only their order is the model's."""
    if head in ("softmax", "log_softmax"):
        logs = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
        return np.exp(logs) if head == "softmax" else logs
    if head == "sigmoid":
        return 1 / (1 + np.exp(-scores))
    return scores if head is None else None


def _html(title: str, messages: str) -> str:
    """The page around its messages."""
    policy = (
        f"default-src 'none'; script-src {hash_source(script())}; style-src {hash_source(style())}; "
        "img-src blob: data:; base-uri 'none'; form-action 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)} · inscape</title>
<link rel="icon" href="data:,">
<style>{style()}</style>
</head>
<body class="inscape-page">
<div data-inscape-host="file"><noscript>The explorer needs JavaScript.</noscript></div>
<script type="text/plain" data-inscape-messages>
{messages}
</script>
<script type="module">{script()}</script>
</body>
</html>
"""
