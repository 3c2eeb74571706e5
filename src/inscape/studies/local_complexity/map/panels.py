"""The pictures of the map study."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.drawing.axes import new_figure
from inscape.studies.local_complexity.map.coordinate_network import image_of, patch, with_weights

if TYPE_CHECKING:
    import pandas as pd

MAIN = 0.05
DPI = 100
_BOUNDS = np.array([[-1.0, 1.0], [-1.0, 1.0]])


def draw_all(frame: "pd.DataFrame", out: Path, fits: Mapping[float, Any]) -> dict[str, str]:
    """Write the four pictures; name -> caption."""
    run = frame.iloc[0]
    _map(run, out / "map.png")
    _sigmas(run, list(fits), out / "sigmas.png")
    _variants(run, out / "variants.png")
    _lengths(frame, fits, out / "lengths.png")
    return {
        "map.png": "The image, what the network makes of it, its exact linear regions, and the density f at "
        "sigma = 0.05 (Fig. 1).",
        "sigmas.png": "f at three values of sigma (Fig. 4).",
        "variants.png": "sigma = 0.05: noise on biases (left) and on weights too (right, Fig. 5), with (top) "
        "and without (bottom, Fig. 6) the Gaussian factor.",
        "lengths.png": "Length of boundary per area of the exact partition, averaged over noisy networks, "
        "against f, cell by cell; black: slope 1 (not in the paper).",
    }


def _map(run: Any, path: Path) -> None:
    from inscape.models import wrap
    from inscape.partition import linear_regions

    net = with_weights(run, run["weights"])
    figure = new_figure((14, 3.7))
    axes = figure.subplots(1, 4)
    axes[0].imshow(image_of(run), cmap="gray", vmin=0, vmax=1, extent=(-1, 1, -1, 1))
    axes[0].set_title("image")
    t = np.linspace(-1, 1, 200)
    points = np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2)
    shown = wrap(net).scores(points).reshape(200, 200)
    axes[1].imshow(shown, cmap="gray", vmin=0, vmax=1, extent=(-1, 1, -1, 1), origin="lower")
    axes[1].set_title("network")
    regions = linear_regions(net, patch())
    regions.plot(ax=axes[2])
    axes[2].set_title(f"{regions.n_regions:,} linear regions")
    _density(run, MAIN, "bias", "density", axes[3], "density f, sigma = 0.05")
    for ax in axes:
        _plain(ax)
    figure.savefig(path, dpi=DPI)


def _sigmas(run: Any, sigmas: list[float], path: Path) -> None:
    figure = new_figure((11.5, 3.5))
    for ax, sigma in zip(figure.subplots(1, len(sigmas)), sigmas, strict=True):
        _density(run, sigma, "bias", "density", ax, f"sigma = {sigma:g}")
        _plain(ax)
    figure.savefig(path, dpi=DPI)


def _variants(run: Any, path: Path) -> None:
    figure = new_figure((8.2, 7))
    axes = figure.subplots(2, 2)
    for row, kind in zip(axes, ("density", "norms"), strict=True):
        for ax, noise in zip(row, ("bias", "bias+weights"), strict=True):
            where = "biases" if noise == "bias" else "biases and weights"
            _density(run, MAIN, noise, kind, ax, f"noise on {where}{', no factor' * (kind == 'norms')}")
            _plain(ax)
    figure.savefig(path, dpi=DPI)


def _lengths(frame: "pd.DataFrame", fits: Mapping[float, Any], path: Path) -> None:
    from inscape.drawing.curves import draw_fit

    figure = new_figure((11.5, 3.8))
    for ax, (sigma, fit) in zip(figure.subplots(1, len(fits)), fits.items(), strict=True):
        density = np.concatenate([np.ravel(d) for d in frame[f"density_{sigma:g}"]])
        length = np.concatenate([np.mean(v, axis=0) for v in frame[f"length_{sigma:g}"]])
        low, high = fit.slope
        draw_fit(
            density,
            length,
            None,
            xlabel="density f",
            ylabel="length per area",
            title=f"sigma = {sigma:g}: slope {fit.value:.3f} [{low:.3f}, {high:.3f}]",
            ax=ax,
        )
        ax.axline((0, 0), slope=1, color="black", lw=1)
    figure.savefig(path, dpi=DPI)


def _density(run: Any, sigma: float, noise: str, kind: str, ax: Any, title: str) -> None:
    from inscape.drawing.measures import draw_density

    values = np.array(run[f"map_{sigma:g}_{noise}_{kind}"])
    draw_density(values, _BOUNDS, np.empty((0, 2)), title=title, ax=ax)


def _plain(ax: Any) -> None:
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_xlabel("")
    ax.set_ylabel("")
