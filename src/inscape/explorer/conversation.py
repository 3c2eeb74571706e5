"""What one page asks and what it is told: requests are JSON, replies are messages; a count as it grows."""

import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from inscape.errors import InscapeError, ProbeError
from inscape.explorer.chosen_plane import ChosenPlane
from inscape.explorer.exhibit import Exhibit
from inscape.explorer.messages import Arrays, margin_message, packed, plane_message
from inscape.explorer.readout import gradient, profile, readout
from inscape.explorer.worker import PageJob, Worker
from inscape.measures.measurement import mean_with_error
from inscape.measures.region_count import region_count
from inscape.probes import Patch, Probe, sample_probes

Request = dict[str, Any]
Reply = tuple[dict[str, Any], Arrays]
N_SEGMENTS = 400
"""Of a count, as far as it goes."""
SEED = 0
OTHERS_WAIT = 0.08
"""Seconds of counting before other requests get their turn."""
MOST_THUMBNAILS = 60
MOST_POINTS_BESIDE = 1500
"""Data points that are drawn beside a plane: the nearest."""
MARGIN_PIXELS = 64
"""Each way, of the image of margins."""
FIRST_PROGRESS = 0.4
"""Seconds after which work is seen to run."""
BETWEEN_PROGRESS = 0.1
URGENCY = {
    "readout": 1,
    "points": 2,
    "rows": 2,
    "plane": 3,
    "profile": 4,
    "difference": 4,
    "largest": 5,
    "count": 9,
}
FILLS = {"pattern", "layer", "slope", "scores"}


class Conversation:
    """The requests of one page, done by the worker, and the replies.

    Args:
        exhibit: what is on show.
        worker: who does the work.
        send: takes a reply; it is called from the worker's thread.
    """

    def __init__(self, exhibit: Exhibit, worker: Worker, send: Callable[[bytes], None]) -> None:
        self.exhibit, self.worker, self._send = exhibit, worker, send
        self._running: RunningCount | None = None

    def receive(self, request: Any) -> None:
        """Take a request; one that makes no sense is answered by an error."""
        ask = request.get("ask") if isinstance(request, dict) else None
        if ask == "hello":  # needs no work, so that a page shows itself while loops are compiled
            self._reply({"reply": "hello", **self.exhibit.about}, {}, request)
        elif ask == "cancel":
            slot = str(request.get("slot"))
            self.worker.cancel(self, slot)
        elif ask in URGENCY:
            self.worker.submit(
                self, _slot(request), lambda job: self._answer(ask, request, job), urgency=URGENCY[ask]
            )
        else:
            self._reply({"reply": "error", "message": "the request was not understood: reload the page"})

    def close(self) -> None:
        """Give up what the page waits for."""
        self.worker.cancel(self)

    def _answer(self, ask: str, request: Request, job: PageJob) -> None:
        """Do one request and send what came of it."""
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # results say the same in their status
                header, arrays = getattr(self, f"_{ask}")(request, job)
        except InscapeError as error:
            header, arrays = {"reply": "error", "to": ask, "message": str(error)}, {}
        except Exception as error:  # of a model, or a mistake of ours: the server stays up
            text = " ".join(str(error).split())[:400]
            header, arrays = (
                {"reply": "error", "to": ask, "message": f"{type(error).__name__}: {text or 'no message'}"},
                {},
            )
        job.check()
        self._reply({"reply": ask, "seconds": time.perf_counter() - start, **header}, arrays, request)

    def _reply(
        self, header: dict[str, Any], arrays: Arrays | None = None, request: Request | None = None
    ) -> None:
        known = {name: request[name] for name in ("id", "model") if name in request} if request else {}
        self._send(packed(known | header, arrays))

    def _meter(self, request: Request, job: PageJob, what: str) -> Callable[[int, int], None]:
        """Tells the page how far work is, and stops work that nobody waits for."""
        start, last = time.perf_counter(), -math.inf

        def show(done: int, total: int) -> None:
            nonlocal last
            job.check()
            now = time.perf_counter()
            if now - start > FIRST_PROGRESS and now - last > BETWEEN_PROGRESS:
                last = now
                self._reply(
                    {"reply": "progress", "to": what, "done": done, "total": total, "slot": job.slot},
                    None,
                    request,
                )

        return show

    # one method for each kind of request

    def _plane(self, request: Request, job: PageJob) -> Reply:
        """Regions on what a page sees: a coarse picture first where the last one took long."""
        exhibit, model = self.exhibit, self._model(request)
        plane = ChosenPlane.read(request.get("plane"), exhibit.data)
        patch, known = self._seen(plane, request)
        if not exhibit.is_known(model, plane, patch) and exhibit.is_slow(model):
            header, arrays = exhibit.coarse(model, patch)
            job.check()
            self._reply({"reply": "plane", "is_last": False, **known, **header}, arrays, request)
        sight = exhibit.sight(model, plane, patch, self._meter(request, job, "plane"))
        wanted = set(request.get("wanted") or ())
        header, arrays = plane_message(sight.regions, wanted & FILLS)
        if "margin" in wanted and exhibit.models[model].has_scores:
            arrays |= margin_message(exhibit.models[model], patch, MARGIN_PIXELS)
        return {"is_last": True, **known, **header}, arrays

    def _seen(self, plane: ChosenPlane, request: Request) -> tuple[Patch, dict[str, Any]]:
        """The window of a plane that a page sees, and what it needs to know of the plane."""
        window = request.get("window") or plane.whole(request.get("size"))
        return plane.window(window), plane.outline

    def _points(self, request: Request, job: PageJob) -> Reply:
        """The data points nearest to a plane: where, and how far away."""
        exhibit = self.exhibit
        plane = ChosenPlane.read(request.get("plane"), exhibit.data)
        places, distances = plane.coordinates(exhibit.data.x.reshape(len(exhibit.data), -1))
        rows = np.argsort(distances, kind="stable")[:MOST_POINTS_BESIDE]
        arrays: Arrays = {
            "places": places[rows].astype(np.float32),
            "distances": distances[rows].astype(np.float32),
            "rows": rows.astype(np.int32),
            "origin": plane.home.origin.astype(np.float32),
            "axes": plane.home.axes.astype(np.float32),
        }
        if exhibit.row_labels is not None:
            arrays["labels"] = exhibit.row_labels[rows].astype(np.int32)
        return {"plane": plane.named(), **plane.outline, "median": float(np.median(distances))}, arrays

    def _rows(self, request: Request, job: PageJob) -> Reply:
        """Some rows of the data in the order that was asked for, with thumbnails or numbers."""
        exhibit, data, model = self.exhibit, self.exhibit.data, self._model(request)
        order, note = np.arange(len(data)), ""
        labels = exhibit.row_labels
        if labels is not None and isinstance(wanted := request.get("class"), int):
            order = order[labels[order] == wanted]
        by = request.get("by")
        if by == "wrong" and labels is not None:
            order = order[exhibit.predicted(model)[0][order] != labels[order]]
        elif by == "margin":
            margin = exhibit.predicted(model)[1]
            if margin is None:
                note = "this model has no scores, so there is no margin to sort by"
            else:
                order = order[np.argsort(margin[order], kind="stable")]
        elif by == "plane":
            plane = ChosenPlane.read(request.get("plane"), data)
            distances = plane.coordinates(data.x.reshape(len(data), -1))[1]
            order = order[np.argsort(distances[order], kind="stable")]
        elif by == "random":
            order = np.random.default_rng(_whole(request.get("seed"), 2**31)).permutation(order)
        first = _whole(request.get("first"), len(data))
        shown = order[first : first + MOST_THUMBNAILS]
        arrays: Arrays = {"rows": shown.astype(np.int32)}
        if labels is not None:
            arrays["labels"] = labels[shown].astype(np.int32)
        if by in ("wrong", "margin"):
            predicted, margin = exhibit.predicted(model)
            arrays["predicted"] = predicted[shown].astype(np.int32)
            if margin is not None:
                arrays["margins"] = margin[shown].astype(np.float32)
        if by == "plane":
            arrays["distances"] = distances[shown].astype(np.float32)
        if data.is_image:
            arrays["thumbnails"] = data.thumbnails(shown)
        else:
            arrays["values"] = data.x[shown].reshape(len(shown), -1)[:, :64].astype(np.float32)
        return {"first": first, "total": len(order), "by": by, "note": note}, arrays

    def _readout(self, request: Request, job: PageJob) -> Reply:
        """All that is known of one place."""
        exhibit, model = self.exhibit, self._model(request)
        plane = ChosenPlane.read(request.get("plane"), exhibit.data)
        at = _place(request.get("at"))
        sight = exhibit.latest_sight(model, plane, at)
        header, arrays = readout(exhibit.models[model], plane.home, at, sight)
        if request.get("gradient"):
            job.check()
            point = plane.home.points(at[None])[0]
            more, picture = gradient(exhibit.models[model], point, header["label"])
            header, arrays = header | more, arrays | picture
        return header, arrays

    def _difference(self, request: Request, job: PageJob) -> Reply:
        """Where two models say something else."""
        pair, plane = self._pair(request), ChosenPlane.read(request.get("plane"), self.exhibit.data)
        patch, known = self._seen(plane, request)
        comparison = self.exhibit.comparison(pair, plane, patch, self._meter(request, job, "difference"))
        header, arrays = plane_message(comparison.regions, set())
        return {
            **known,
            **header,
            "n_faces": None,
            "models": list(pair),
            "pairs": comparison.pairs.tolist(),
            "disagreement": comparison.disagreement,
            "note": comparison.note,
        }, arrays

    def _largest(self, request: Request, job: PageJob) -> Reply:
        """The largest difference of two models' scores on what a page sees."""
        pair, plane = self._pair(request), ChosenPlane.read(request.get("plane"), self.exhibit.data)
        difference = self.exhibit.comparison(pair, plane, self._seen(plane, request)[0]).max_difference
        about = {
            "models": list(pair),
            "value": difference.value,
            "class_name": difference.class_name,
            "of": difference.of,
        }
        return about | {"at": list(difference.coordinates), "is_exact": difference.is_exact}, {}

    def _profile(self, request: Request, job: PageJob) -> Reply:
        """Scores and regions on the segment between two places."""
        plane = ChosenPlane.read(request.get("plane"), self.exhibit.data)
        start, end = (plane.home.points(_place(request.get(name))[None])[0] for name in ("from", "to"))
        model = self.exhibit.models[self._model(request)]
        return profile(model, start, end, plane.home.unit, self._meter(request, job, "profile"))

    def _count(self, request: Request, job: PageJob) -> Reply:
        """The region count R_1 on a few more segments; the page asks again until it is done."""
        if self._running is None:
            self._running = RunningCount(self.exhibit)
        return self._running.advance(job), {}

    def _pair(self, request: Request) -> tuple[int, int]:
        models = request.get("models")
        if not isinstance(models, list) or len(models) != 2:
            raise ProbeError("the request names no two models to compare")
        return self._known(models[0]), self._known(models[1])

    def _model(self, request: Request) -> int:
        return self._known(request.get("model", 0))

    def _known(self, model: Any) -> int:
        if not isinstance(model, int) or isinstance(model, bool) or not 0 <= model < len(self.exhibit.models):
            raise ProbeError(f"there is no model {model!r}: there are {len(self.exhibit.models)}")
        return model


def _slot(request: Request) -> str:
    """What a request is about: a later one of the same slot supersedes it.

    >>> _slot({"ask": "plane", "model": 1}), _slot({"ask": "readout", "pin": 0}), _slot({"ask": "rows"})
    ('plane 1', 'readout 0', 'rows')
    """
    ask = request["ask"]
    about = {"plane": "model", "readout": "pin"}.get(ask)
    number = request.get(about) if about else None
    return f"{ask} {number}" if isinstance(number, int) and abs(number) < 1000 else str(ask)


def _place(value: Any) -> Any:
    is_pair = isinstance(value, list) and len(value) == 2
    if not is_pair or not all(isinstance(v, int | float) and math.isfinite(v) for v in value):
        raise ProbeError("the request names no place: expected two numbers s, t")
    return np.array(value, dtype=np.float64)


def _whole(value: Any, most: int) -> int:
    return min(max(value, 0), most) if isinstance(value, int) and not isinstance(value, bool) else 0


class RunningCount:
    """Common segments between random data points, and the counts of each model on those that are done."""

    def __init__(self, exhibit: Exhibit) -> None:
        self._models, self._names = exhibit.models, exhibit.names
        self._probes: list[Probe] = [
            *sample_probes(exhibit.data.x, dim=1, n=N_SEGMENTS, how="pairs", random_state=SEED)
        ]
        self._counts: list[list[int]] = [[] for _ in self._models]
        self._missed = [0.0] * len(self._models)
        self._methods: list[str] = [""] * len(self._models)
        self._exact: list[bool] = [True] * len(self._models)
        self._block = 4

    def advance(self, job: PageJob) -> dict[str, Any]:
        """Count on the next segments, and say where things stand."""
        done = len(self._counts[-1])
        if done >= N_SEGMENTS:
            return self._message()
        probes = self._probes[done : done + self._block]
        start = time.perf_counter()
        for k, model in enumerate(self._models):
            job.check()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = region_count(model, probes=probes, progress=lambda *_: job.check())
            self._counts[k] += result.counts.tolist()
            self._methods[k], self._exact[k] = result.method, self._exact[k] and result.is_exact
            if result.missed_interval is not None:
                self._missed[k] = max(self._missed[k], result.missed_interval[1])
        seconds = time.perf_counter() - start
        self._block = int(np.clip(self._block * OTHERS_WAIT / max(seconds, 1e-4), 1, 64))
        return self._message()

    def _message(self) -> dict[str, Any]:
        n = len(self._counts[-1])
        rows = []
        for k, counts in enumerate(self._counts):
            mean, error, (low, high) = mean_with_error(np.array(counts))
            rows.append(
                {
                    "model": k,
                    "mean": mean,
                    "error": error,
                    "interval": [max(low, 1.0), high + self._missed[k]],
                    "most": max(counts),
                    "method": self._methods[k],
                    "is_exact": self._exact[k],
                }
            )
        return {"rows": rows, "n": n, "of": N_SEGMENTS, "seed": SEED, "is_done": n >= N_SEGMENTS}
