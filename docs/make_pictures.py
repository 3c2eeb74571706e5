"""Draw the pictures of README and docs again: `python docs/make_pictures.py`.

Those of MNIST and CIFAR-10 need the folder INSCAPE_DATA with mnist.npz and cifar10.npz, else are skipped.
Some minutes in all; name pictures to draw only those: readme, concepts, density, spirals, mnist, cifar10,
tightness, edge, growth.
"""

import io
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tightness_table
import torch
import trained_networks
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import inscape
from inscape.training.networks import mlp

HERE = Path(__file__).parent / "images"
CIFAR10 = ("airplane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def main() -> None:
    """All pictures, or those named."""
    pictures = {
        "readme": readme,
        "concepts": concepts,
        "density": density,
        "spirals": spirals,
        "mnist": mnist,
        "cifar10": cifar10,
        "tightness": tightness,
        "edge": edge,
        "growth": growth,
    }
    for name in sys.argv[1:] or pictures:
        pictures[name]()


def density() -> None:
    """The density of kinks of a network that has learned two rings."""
    x = np.random.default_rng(0).uniform(-1, 1, size=(1000, 2))
    y = torch.from_numpy((np.linalg.norm(x, axis=1) % 0.6 > 0.3).astype(np.int64))
    points = torch.from_numpy(x).float()
    net = mlp(2, (40, 40), 2, random_state=0)
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(1500):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(net(points), y).backward()
        optimiser.step()
    patch = inscape.Patch([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    for ax, sigma in zip(figure.subplots(1, 2), (0.05, 0.2), strict=True):
        inscape.density_map(net, patch, 200, sigma=sigma, n_noise=24, random_state=0, budget=None).plot(ax)
    figure.savefig(HERE / "density.png", dpi=70)


def concepts() -> None:
    """The figures of the page on concepts: one network of two inputs, and two univariate ones."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(400, 2))
    y = torch.from_numpy(
        np.floor(1.8 * np.linalg.norm(x, axis=1) + 0.3 * x[:, 0]).astype(np.int64).clip(0, 2)
    )
    net = mlp(2, (12, 12), 3, random_state=1)
    optimiser = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(800):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(net(torch.from_numpy(x).float()), y).backward()
        optimiser.step()
    square = inscape.Patch([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    p = inscape.decision_regions(net, square)
    p.plot(figure.subplots(), title=f"{p.n_regions} decision regions", class_names=["a", "b", "c"])
    save(figure, "concepts-decision.png", 64)

    figure = Figure(figsize=(10, 4.4), layout="constrained")
    for ax, n, words in zip(figure.subplots(1, 2), (1, 2), ("one layer", "two layers"), strict=True):
        q = inscape.linear_regions(net, square, n_layers=n)
        q.plot(ax, title=f"after {words}: {q.n_regions} activation regions")
    save(figure, "concepts-layers.png", 64)

    figure = Figure(figsize=(9, 4), layout="constrained")
    ax, segment = figure.subplots(), inscape.Segment([-1.0, -0.3], [1.0, 0.2])
    q, d = inscape.linear_regions(net, segment), inscape.decision_regions(net, segment)
    t = np.concatenate([[0.0], q.knots, [1.0]])
    scores = inscape.wrap(net).scores(segment.points(t))
    for name, score in zip("abc", scores.T, strict=True):
        ax.plot(t, score, ".-", ms=5, label=f"score of {name}")
    for boundary in d.boundaries:
        ax.axvline(boundary, color="0.4", ls="--", lw=1)
    ax.set(xlabel="t", title=f"{q.n_regions} pieces, {d.n_regions} decision regions on one segment")
    ax.legend()
    save(figure, "concepts-segment.png", 64)

    figure = Figure(figsize=(10.6, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    inscape.linear_regions(net, square).plot(left)
    inscape.density_map(net, square, 150, sigma=0.05, random_state=0).plot(right)
    save(figure, "concepts-density.png", 64)

    at = np.linspace(-1.5, 1.5, 10)
    values = np.where(np.arange(10) % 3 == 0, 1.0, -0.3) + 0.2 * np.random.default_rng(2).normal(size=10)
    start, steps = inscape.univariate.ShallowNet.random(100, random_state=3), (0.01, 0.2)
    runs = inscape.univariate.gradient_descent(start, at, values, list(steps), 400_000, warm_up=20_000)
    figure = Figure(figsize=(10, 4), layout="constrained")
    for ax, run, step in zip(figure.subplots(1, 2), runs, steps, strict=True):
        sharp = inscape.univariate.stability(run.net, at, values, step).sharpness
        run.net.plot(ax=ax, x=at, y=values)
        ax.set_title(f"step size {step}: sharpness {sharp:.1f}, at most {2 / step:.0f}")
    save(figure, "concepts-stability.png", 64)


def readme() -> None:
    """The plane of the README."""
    digits = load_digits()
    x, y = digits.images / 16, digits.target
    net = MLPClassifier((64,), max_iter=500, random_state=0).fit(x[:900].reshape(900, -1), y[:900])
    plane = inscape.decision_regions(net, inscape.Patch.through(x[[1025, 1617, 1728]]))
    plane.plot().figure.savefig(HERE / "plane.png", dpi=110)


def spirals() -> None:
    """A network on the plane itself, its linear regions coloured in three ways, and its decision regions."""
    net, x, _ = trained_networks.spirals()
    square = inscape.Patch([0, 0], np.eye(2), ((-1.25, 1.25), (-1.25, 1.25)))
    q = inscape.linear_regions(net, square)
    p = inscape.decision_regions(net, square, method="exact")
    axes = Figure(figsize=(11, 9.2), layout="compressed").subplots(2, 2).ravel()
    for ax, colour in zip(axes, ("pattern", "layer", "slope"), strict=False):
        q.plot(ax, colour=colour)
    p.plot(axes[3], points=x[:300])
    save(axes[0].figure, "spirals.png")


def mnist() -> None:
    """The plane through three digits: linear and decision regions of an MLP."""
    found = trained_networks.mnist()
    if found is None:
        return skip("mnist")
    plane = inscape.Patch.through(trained_networks.three_classes(*found, (2, 4, 8)))
    figure = Figure(figsize=(13, 5.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    inscape.linear_regions(found[0], plane).plot(left)
    inscape.decision_regions(found[0], plane, method="exact").plot(right)
    return save(figure, "mnist.png", 64)


def cifar10() -> None:
    """The plane through three photographs: decision regions of a small ResNet, linear regions close up."""
    found = trained_networks.cifar10()
    if found is None:
        return skip("cifar10")
    net = found[0]
    points = trained_networks.three_classes(*found, (0, 3, 8))
    plane = inscape.Patch.through(points)
    figure = Figure(figsize=(13, 5.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
    p = inscape.decision_regions(net, plane, method="exact", progress=True, budget=None)
    p.plot(left, class_names=CIFAR10)
    middle = plane.marks.mean(axis=0)
    reach = 0.05 * np.ptp(plane.marks, axis=0).max()
    window = inscape.Patch(
        plane.origin,
        plane.axes,
        ((middle[0] - reach, middle[0] + reach), (middle[1] - reach, middle[1] + reach)),
    )
    inscape.linear_regions(net, window).plot(right)
    right.set_title(right.get_title() + " in the small square")
    left.add_patch(_square(middle, reach))
    return save(figure, "cifar10.png", 64)


def tightness() -> None:
    """How tight theory is: the picture, and its table as tightness.csv and in theory.md."""
    found = inscape.theory.survey(random_state=0, progress=True)
    save(found.plot().figure, "tightness.png", 64)
    found.table().to_csv(tightness_table.CSV, index=False, float_format="%.4g")
    tightness_table.write()


def edge() -> None:
    """The study of the edge of stability."""
    with tempfile.TemporaryDirectory() as folder:
        inscape.studies.run("edge-of-stability", scale="small", out=folder)
        image = Image.open(Path(folder) / "edge.png").convert("RGB")
        image.quantize(64, kmeans=3, dither=Image.Dither.NONE).save(HERE / "edge.png", optimize=True)


def growth() -> None:
    """How time and memory of exact counts grow, measured here and now."""
    from benchmarks.growth import fitted, measured

    figure = Figure(figsize=(9, 5.4), layout="constrained")
    panels = figure.subplots(2, 3)
    for ax, (name, points) in zip(panels.flat, measured().items(), strict=True):
        sizes = [p.size for p in points]
        fit = fitted(sizes, [p.seconds for p in points])
        ax.loglog(sizes, [1000 * p.seconds for p in points], "o-", ms=4, label="milliseconds")
        ax.loglog(sizes, [p.megabytes for p in points], "s:", ms=4, label="megabytes")
        ax.set_title(f"{name}: time ~ n^{fit.exponent:.2f}", fontsize=10)
        ax.set_xlabel(name)
        ax.grid(alpha=0.3)
    panels[0, 0].legend(fontsize=8)
    save(figure, "growth.png", 64)


def _square(middle: Any, reach: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(middle - reach, 2 * reach, 2 * reach, fill=False, ec="white", lw=1.5, zorder=4)


def save(figure: Any, name: str, n_colours: int = 256) -> None:
    """Write a PNG of few colours, which keeps pictures with many lines small."""
    memory = io.BytesIO()
    figure.savefig(memory, dpi=80)
    image = Image.open(memory).convert("RGB").quantize(n_colours, kmeans=3, dither=Image.Dither.NONE)
    image.save(HERE / name, optimize=True)


def skip(name: str) -> None:
    """Say that a picture was left out."""
    print(f"{name}.png is left as it is: INSCAPE_DATA does not hold {name}.npz")


if __name__ == "__main__":
    main()
