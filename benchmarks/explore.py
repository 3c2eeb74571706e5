"""The explorer: what a message costs beside the regions in it, and how smoothly many regions are panned.

Run `python -m benchmarks explore`. Each row is a plane of so many linear regions: the engine's own time for
its decision regions, that from a request to its reply (both in CPU seconds; with the coarse picture that
announces a slow one), their ratio (bar: 1.3), and the size of the message. Below, what a page waits for over
the socket while its plane is dragged: the first picture (bar: 50 ms) and the exact one; and frames per second
while the picture is panned in headless Chromium, where there is one.
"""

import json
import shutil
import statistics
import threading
import time
from typing import Any

import numpy as np
import torch
from torch import nn

import inscape
from inscape import Patch, decision_regions
from inscape.explorer.conversation import Conversation
from inscape.explorer.messages import unpacked
from inscape.explorer.worker import Worker

WIDTHS = {1_000: 46, 10_000: 145, 100_000: 460, 300_000: 800}
"""Lines in general position, about two of which meet in each region."""
BAR = 1.3
REPEATS = 7
FRAMES = 60


def main() -> None:
    """Print the tables."""
    torch.set_num_threads(1)
    print(f"{'regions':>9} {'engine':>10} {'request':>10} {'ratio':>6} (bar {BAR}) {'message':>10}")
    for n, width in WIDTHS.items():
        row(n, width)
    dragging()
    panning()


def network(width: int) -> nn.Module:
    """One hidden layer, whose units are lines that meet near the middle."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, 4)).double()


def points() -> Any:
    """Data that the picture is fitted to."""
    return np.random.default_rng(0).normal(size=(100, 2)) * 4


def row(n: int, width: int) -> None:
    """Measure one plane: the engine and a request for it by turns, so that both see the same machine."""
    net, x = network(width), points()
    exhibit = inscape.explore(net, x).exhibit
    model = exhibit.models[0]
    engine, request, size, count = [], [], 0, 0
    worker = Worker()
    for k in range(REPEATS + 1):
        window = [-10.0, 10.0 + 1e-3 * k, -10.0, 10.0]  # another plane each time, so that none is in memory
        patch = Patch([0.0, 0.0], np.eye(2), ((window[0], window[1]), (window[2], window[3])))
        start = time.process_time()
        regions: Any = decision_regions(model, patch, progress=False)
        middle = time.process_time()
        message = answered(exhibit, worker, {"ask": "plane", "window": window})
        end = time.process_time()
        if k:  # the first compiles
            engine.append(middle - start)
            request.append(end - middle)
        size, count = len(message), regions.subdivision.planar.n_faces
    worker.close()
    ratio = statistics.median(r / e for r, e in zip(request, engine, strict=True))
    times = [1000 * statistics.median(t) for t in (engine, request)]
    print(
        f"{count:>9,} {times[0]:>7.1f} ms {times[1]:>7.1f} ms {ratio:>6.2f} {'':>9} {size / 2**20:>7.2f} MB"
    )


def answered(exhibit: Any, worker: Worker, request: dict[str, Any]) -> bytes:
    """The last reply to a request, through the worker as a page would get it."""
    arrived, replies = threading.Event(), list[bytes]()

    def take(message: bytes) -> None:
        replies.append(message)
        if b'"is_last": true' in message[:4000]:
            arrived.set()

    Conversation(exhibit, worker, take).receive(request)
    arrived.wait(60)
    return replies[-1]


def dragging() -> None:
    """How long a page that drags its plane waits for something to draw, and for the exact picture."""
    print(
        f"\n{'regions':>9} {'first picture':>14} (bar 50 ms) {'exact':>10}   while dragging, over the socket"
    )
    for width in WIDTHS.values():
        with inscape.explore(network(width), points()) as explorer:
            waits, count = dragged(str(explorer.url))
            first, last = (1000 * statistics.median(w) for w in zip(*waits, strict=True))
            print(f"{count:>9,} {first:>11.1f} ms {'':>11} {last:>7.1f} ms")


def dragged(url: str) -> tuple[list[tuple[float, float]], int]:
    """Seconds to the first and to the last reply for each of several windows, and the regions of the last."""
    from websockets.sync.client import connect
    from websockets.typing import Origin

    waits: list[tuple[float, float]] = []
    header: dict[str, Any] = {}
    address, origin = url.replace("http:", "ws:") + "socket", Origin(url.rsplit("/", 2)[0])
    with connect(address, origin=origin, max_size=None, compression=None) as socket:
        for k in range(REPEATS + 2):
            window = [-10.0, 10.0 + 1e-3 * k, -10.0, 10.0]
            start = time.perf_counter()
            socket.send(json.dumps({"id": k, "ask": "plane", "model": 0, "window": window}))
            times: list[float] = []
            while not header.get("is_last") or header["id"] != k:
                message = socket.recv()
                assert isinstance(message, bytes)
                header = unpacked(message)[0]
                if header["reply"] == "plane":
                    times.append(time.perf_counter() - start)
            waits.append((times[0], times[-1]))
    return waits[2:], header["n_faces"]  # the first two compile, and learn what the model costs


def panning() -> None:
    """Frames per second in a browser."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        print("there is no Chromium to pan in")
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--enable-unsafe-swiftshader"]
        )
        print(f"\n{'regions':>9} {'frames/s':>9}   panning at 1280 x 800, without a graphics card")
        for width in WIDTHS.values():
            with inscape.explore(network(width), points()) as explorer:
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                page.goto(f"{explorer.url}#show=edges")
                page.wait_for_selector(".badge[data-kind=exact]", timeout=120_000)
                count, frames = page.evaluate(
                    """async (n) => {
                    const viewer = document.querySelector('.inscape-explorer').viewer;
                    const [stage] = viewer.stages;
                    viewer.pan(1, 0);
                    await new Promise((done) => setTimeout(done, 1000));
                    const start = performance.now();
                    for (let k = 0; k < n; k++) {
                      viewer.pan(k % 2 ? 9 : -8, 3 * (k % 3) - 3);
                      await new Promise(requestAnimationFrame);
                    }
                    return [stage.message.header.n_faces, (1000 * n) / (performance.now() - start)];
                    }""",
                    FRAMES,
                )
                print(f"{count:>9,} {frames:>9.0f}")
                page.close()
        browser.close()
