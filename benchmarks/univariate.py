"""The univariate laboratory: descent against a loop in numpy, the flattest net, the flow to a KKT point."""

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.timing import best_times, report
from inscape.univariate import (
    ShallowNet,
    flattest,
    gradient_descent,
    gradient_flow,
    kkt_residual,
    labels_of,
    random_teacher,
)

Array = npt.NDArray[np.float64]

WIDTH, N = 100, 20
STEPS = 60_000  # about as long as the loop in numpy, so that noise hits both alike
NUMPY_STEPS = 2_000


def numpy_descent(net: ShallowNet, x: Array, y: Array, step_size: float, n_steps: int) -> tuple[Any, ...]:
    """Full-batch gradient descent on 1/(2n) sum (f - y)^2 in numpy, without needless temporaries."""
    w, b, v, c = net.w.copy(), net.b.copy(), net.v.copy(), net.c
    column = x[:, None]
    for _ in range(n_steps):
        z = column * w
        z += b
        on = z > 0
        np.maximum(z, 0.0, out=z)
        r = z @ v
        r += c - y
        r /= len(x)
        pull = on * r[:, None]
        gw, gb, gv = v * (x @ pull), v * pull.sum(axis=0), r @ z
        w -= step_size * gw
        b -= step_size * gb
        v -= step_size * gv
        c -= step_size * r.sum()
    return w, b, v, c


def descending() -> None:
    """Steps per second, width 100 on 20 points, in one thread."""
    x = np.linspace(-1.5, 1.5, N)
    y = np.sin(2 * x)
    net = ShallowNet.random(WIDTH, random_state=1)
    few = gradient_descent(net, x, y, 0.05, 200, tolerance=0.0).net
    w, b, v, c = numpy_descent(net, x, y, 0.05, 200)
    apart = max(np.abs(few.w - w).max(), np.abs(few.b - b).max(), np.abs(few.v - v).max(), abs(few.c - c))
    ours, theirs = best_times(
        lambda: gradient_descent(net, x, y, 0.05, STEPS, tolerance=0.0, record=STEPS),
        lambda: numpy_descent(net, x, y, 0.05, NUMPY_STEPS),
        repeats=25,
    )
    print(f"gradient descent, k={WIDTH}, n={N}: after 200 steps the two differ by {apart:.1e}")
    print(f"ours {STEPS / ours:,.0f} steps per second, numpy {NUMPY_STEPS / theirs:,.0f}")
    report("steps per second over the numpy loop", STEPS / ours / (NUMPY_STEPS / theirs), "at least 25")


def flattening() -> None:
    """The flattest implementation of converged nets, to a certified gap of 1e-9."""
    x = np.linspace(-1.5, 1.5, N)
    y = np.sin(2 * x)
    net = ShallowNet.random(WIDTH, random_state=1)
    nets = [net] + [
        r.net
        for r in gradient_descent(net, x, y, [0.05, 0.2, 0.45], 400_000, warm_up=20_000, tolerance=1e-14)
    ]
    times = best_times(*[lambda n=n: flattest(n, x) for n in nets])
    gaps = [flattest(n, x).gap for n in nets]
    print(f"flattest implementation, k={WIDTH}: certified relative gaps up to {max(gaps):.1e}")
    report("seconds, the slowest of four nets", max(times), "under 1", "s")


def flowing() -> None:
    """Gradient flow of a net of width 400 from three initialisations to a KKT point."""
    teacher = random_teacher(3, random_state=1)
    x = np.random.default_rng(1).uniform(-1, 1, 60)
    y = labels_of(teacher, x)
    for init in ("small", "gaussian"):
        start = time.perf_counter()
        run = gradient_flow(ShallowNet.random(400, init=init, random_state=1), x, y)
        seconds = time.perf_counter() - start
        print(f"flow, k=400, n=60, {init}: {run.status} in {run.n_steps} steps, {seconds:.1f} s")
        report(
            "KKT residual at its end, in thousandths", 1e3 * kkt_residual(run.net, x, y).residual, "below 1"
        )


def main() -> None:
    """Print every figure."""
    descending()
    flattening()
    flowing()
