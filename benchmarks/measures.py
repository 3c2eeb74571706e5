"""Measures: what they cost, as ratios measured in one run on one thread.

Run `python -m benchmarks measures`. Each row prints the bar and what was measured. The perceptron is trained
for a few seconds on MNIST (if `INSCAPE_DATA` has it) or on scikit-learn's digits, enlarged; ResNet18 has the
batch-norm statistics of noise images. Slow references run on fewer points and are compared per point. Times
are those of the processor, so that other programs do not disturb them.
PyHessian (`pip install pyhessian`) is compared with if it is installed.
"""

import copy
import math
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import inscape
from benchmarks.networks import mlp, resnet18
from benchmarks.segments import calibrated, handwritten, noise, row, trained
from inscape.measures.hessian import LossHessian, cross_entropy
from inscape.measures.jacobian.forward import unit_layers
from inscape.measures.jacobian.passes import Draws

Floats = npt.NDArray[np.float64]
SIGMA, N_NOISE, N_POINTS = 0.1, 16, 256
BUDGET = 2**26
RESNET: dict[str, Any] = {"sigma": SIGMA, "n_noise": 1, "precision": "float32", "random_state": 0}
DTYPES = {"float32": torch.float32, "float64": torch.float64}


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    print(f"{'work':58} {'bar':>10} {'measured':>9}   details")
    name, images, labels = handwritten()
    print(f"the perceptron is trained on {name}; {N_POINTS} points, {N_NOISE} noisy networks, sigma {SIGMA}")
    net = trained(mlp(784, 200, 200, 200, 200, 10), images, labels, steps=300)
    local_complexity(net, images[:N_POINTS], 24)
    x = noise(N_POINTS).reshape(N_POINTS, -1)
    local_complexity(mlp(3072, 200, 200, 200, 200, 10), x, 6)
    growth(x)
    residual_network()
    sharpness(images, labels)
    monitor(images, labels)


# local complexity


def local_complexity(net: nn.Module, x: Floats, n_reference: int) -> None:
    """Compare with both references in both precisions."""
    d = x.shape[1]
    ours = {}
    for precision, dtype in DTYPES.items():
        settings: dict[str, Any] = {
            "sigma": SIGMA,
            "random_state": 0,
            "precision": precision,
            "n_noise": N_NOISE,
        }
        few = inscape.local_complexity(net, x[:n_reference], **settings)
        job = partial(inscape.local_complexity, net, x, **settings)
        ours[precision] = _best(job) / (len(x) * N_NOISE)
        weights, biases = _weights(net, dtype)
        noise_of = _noise(net, d, dtype)
        points = torch.from_numpy(x[:n_reference]).to(dtype)
        references: tuple[tuple[str, Callable[..., tuple[list[Tensor], list[Tensor]]], str], ...] = (
            ("vmap(jacrev)", by_jacrev, ">= 15 x" if d == 784 else ">= 40 x"),
            ("batched forward accumulation", by_accumulation, ">= 4 x" if d == 784 else "-"),
        )
        for label, route, bar in references:
            start = time.process_time()
            value = np.mean([_density(*route(weights, biases, points, b), b, weights) for b in noise_of])
            ratio = (time.process_time() - start) / (n_reference * N_NOISE) / ours[precision]
            error = abs(value / few.value - 1)
            details = f"{ours[precision] * 1e3:.3f} ms each, same value to {error:.0e}"
            row(f"LC of {d}-200x4-10 over {label}, {precision}", bar, f"{ratio:.1f} x", details)


def growth(x: Floats) -> None:
    """The cost of 3,072 inputs over that of 784, of networks that are alike otherwise."""
    for precision in DTYPES:
        times = []
        for d in (784, 3072):
            net = mlp(d, 200, 200, 200, 200, 10)
            options: dict[str, Any] = {"sigma": SIGMA, "random_state": 0, "n_noise": N_NOISE}
            times.append(
                _best(partial(inscape.local_complexity, net, x[:, :d], precision=precision, **options))
            )
        row(
            f"cost of 3,072 inputs over that of 784, {precision}",
            "nearly 1",
            f"{times[1] / times[0]:.2f} x",
            "",
        )


def _best(job: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return min(times)


def _weights(net: nn.Module, dtype: torch.dtype) -> tuple[list[Tensor], list[Tensor]]:
    layers = [m for m in net.modules() if isinstance(m, nn.Linear)]
    return [m.weight.detach().to(dtype) for m in layers], [m.bias.detach().to(dtype) for m in layers]


def _noise(net: nn.Module, d: int, dtype: torch.dtype) -> list[list[Tensor]]:
    """The same noise that the measure draws."""
    layers = unit_layers(inscape.wrap(net).graph((d,)))
    draws = Draws(SIGMA, N_NOISE, "bias", 0)
    return [[b[0] for b in draws.biases(k, layers, dtype) or []] for k in range(N_NOISE)]


def by_jacrev(
    weights: list[Tensor], biases: list[Tensor], x: Tensor, b: list[Tensor]
) -> tuple[list[Tensor], list[Tensor]]:
    """What every unit reads and the norm of its gradient, by reverse differentiation of all units at once."""

    def read(point: Tensor) -> tuple[Tensor, Tensor]:
        found, h = [], point
        for w, beta, delta in zip(weights[:-1], biases[:-1], b, strict=True):
            u = w @ h + beta
            found.append(u)
            h = torch.relu(u - delta)
        u = torch.cat(found)
        return u, u

    jacobian, u = torch.func.vmap(torch.func.jacrev(read, has_aux=True), chunk_size=8)(x)
    sizes = [len(w) for w in weights[:-1]]
    return list(u.split(sizes, dim=1)), list(jacobian.norm(dim=2).split(sizes, dim=1))


def by_accumulation(
    weights: list[Tensor], biases: list[Tensor], x: Tensor, b: list[Tensor]
) -> tuple[list[Tensor], list[Tensor]]:
    """The same by multiplying Jacobians forward, a batch of points at a time."""
    us, norms = [], []
    for part in x.split(16):  # type: ignore[no-untyped-call]
        h, j = part, weights[0].expand(len(part), -1, -1)
        u = part @ weights[0].T + biases[0]
        found, lengths = [u], [torch.linalg.vector_norm(j, dim=2)]
        for w, beta, delta in zip(weights[1:-1], biases[1:-1], b[:-1], strict=True):
            h = torch.relu(u - delta)
            j = torch.matmul(w, j * (h > 0)[..., None])
            u = h @ w.T + beta
            found.append(u)
            lengths.append(torch.linalg.vector_norm(j, dim=2))
        us.append(found)
        norms.append(lengths)
    return [torch.cat(p) for p in zip(*us, strict=True)], [torch.cat(p) for p in zip(*norms, strict=True)]


def _density(us: list[Tensor], norms: list[Tensor], b: list[Tensor], weights: list[Tensor]) -> float:
    """The sum of Theorem 2; wide networks have an active unit in every layer, so all units are good."""
    assert all(bool((u > delta).any(dim=1).all()) for u, delta in zip(us, b, strict=True))
    scale = 1 / (math.sqrt(2 * math.pi) * SIGMA)
    terms = [
        (g.double() * scale * torch.exp(-0.5 * (u.double() / SIGMA) ** 2)).sum(dim=1)
        for u, g in zip(us, norms, strict=True)
    ]
    return float(sum(t.mean() for t in terms))


# a residual network


def residual_network() -> None:
    """Exact norms of all gradients of a small ResNet18, and what random directions miss of them."""
    net, x = calibrated(resnet18(8)), noise(2)
    start = time.process_time()
    exact = inscape.local_complexity(net, x, n_directions=None, memory=BUDGET, **RESNET)
    seconds = (time.process_time() - start) / len(x)
    code = "from benchmarks.measures import resnet_memory; resnet_memory()"
    used = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    row(
        f"ResNet18 of width 8, exact gradients of {exact.n_units} units",
        f"<= {BUDGET // 2**20} MB",
        f"{float(used):.0f} MB",
        f"{seconds:.2f} s per point and network; memory above that of the process before",
    )
    for k in (8, 32, 128):
        start = time.process_time()
        found = inscape.local_complexity(net, x, n_directions=k, **RESNET).density / exact.density - 1
        each = (time.process_time() - start) / len(x)
        error = float(np.sqrt(np.mean(np.square(found))))
        row(
            f"  {k} random directions instead of 3,072", "-", f"{error:.2%}", f"error; {each:.2f} s per point"
        )


def resnet_memory() -> None:
    """Print how far the peak of memory lies above what the process had before, in MB."""
    torch.set_num_threads(1)
    net, x = calibrated(resnet18(8)), noise(1)
    inscape.local_complexity(net, x, n_directions=1, **RESNET)
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    inscape.local_complexity(net, x, n_directions=None, memory=BUDGET, **RESNET)
    status = Path("/proc/self/status").read_text()  # ru_maxrss of a child begins at that of its parent
    peak = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) * 1024
    print((peak - before) / 2**20)


# sharpness


def sharpness(images: Floats, labels: npt.NDArray[np.int64]) -> None:
    """The top eigenvalue of a network of 0.3 M parameters on 2,000 points, at the residual of PyHessian."""
    net = trained(mlp(784, 256, 256, 128, 10), images, labels, steps=200)
    x, y = images[:2000], labels[:2000]
    try:
        from pyhessian import hessian
    except ImportError:
        print("PyHessian is not installed: pip install pyhessian to compare with it")
        return
    data = (torch.from_numpy(x).float(), torch.from_numpy(y))
    warnings.filterwarnings("ignore", message="Using backward")  # how PyHessian does it
    exact = LossHessian(net, x, y, cross_entropy, dtype=torch.float64, batch_size=None)
    inscape.sharpness(net, x[:10], y[:10], method="lanczos", tolerance=1e-2)  # load what is loaded once
    for tol in (1e-3, 1e-4, 1e-5):
        seconds = []
        for seed in range(3):  # its random start decides how many steps it makes
            torch.manual_seed(seed)
            start = time.process_time()
            theirs = hessian(copy.deepcopy(net), nn.CrossEntropyLoss(), data=data, cuda=False)
            values, vectors = theirs.eigenvalues(maxIter=1000, tol=tol, top_n=1)
            seconds.append(time.process_time() - start)
        v = torch.cat([p.reshape(-1) for p in vectors[0]]).double().numpy()
        residual = float(np.linalg.norm(exact.product(v) - values[0] * v) / values[0])
        start = time.process_time()
        ours = [inscape.sharpness(net, x, y, tolerance=residual, random_state=s) for s in range(3)][-1]
        mine = (time.process_time() - start) / 3
        row(
            f"sharpness of {ours.n_parameters} parameters over PyHessian, tol {tol:g}",
            ">= 1 x",
            f"{np.mean(seconds) / mine:.2f} x",
            f"{mine:.2f} s, {ours.n_products} products; residuals {ours.residuals[0] / ours.value:.1e} "
            f"and {residual:.1e}; values {ours.value:.5g} and {values[0]:.5g}",
        )


# the monitor


def monitor(images: Floats, labels: npt.NDArray[np.int64]) -> None:
    """The share of training time that a monitor takes with its default settings, every 100 steps."""
    x, y = torch.from_numpy(images).float(), torch.from_numpy(labels)
    watch = inscape.Monitor(images, labels)
    watch.record(mlp(784, 200, 200, 200, 200, 10), 0)
    shares = []
    for _ in range(3):
        net = mlp(784, 200, 200, 200, 200, 10)
        optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)
        rng, measuring, start = np.random.default_rng(0), 0.0, time.process_time()
        for step in range(401):
            batch = torch.from_numpy(rng.integers(len(x), size=128))
            optimiser.zero_grad()
            F.cross_entropy(net(x[batch]), y[batch]).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            if step:
                before = time.process_time()
                watch.step(net, step)
                measuring += time.process_time() - before
        total = time.process_time() - start
        shares.append(measuring / (total - measuring))
    row(
        "monitor every 100 steps, over the time of training",
        "<= 10 %",
        f"{np.median(shares):.1%}",
        f"batches of 128, Adam; {watch.rows[-1]['seconds'] * 1e3:.0f} ms per measurement",
    )
