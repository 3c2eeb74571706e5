"""What a local complexity is: the value, its parts and its error."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from inscape.arrays import Floats
from inscape.measures.result import Measurement
from inscape.probes import Patch


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LocalComplexity(Measurement):
    """The mean density of a network's kinks at data points.

    Attributes:
        per_layer: what each layer of units adds to the value, (L,).
        layers: the names of the layers.
        density: f(x) at each point, the mean over perturbed networks, (n,).
        n_not_good: B, the expected number of units that are not good: without a path of active units to
            the output.
        n_units: how many units there are.
    """

    measure: ClassVar[str] = "local_complexity"

    per_layer: Floats
    layers: tuple[str, ...]
    density: Floats
    n_not_good: float
    n_units: int

    def plot(self, ax: Any = None) -> Any:
        """Draw what each layer adds; returns the matplotlib Axes."""
        from inscape.drawing.measures import draw_layers

        title = f"local complexity {self.value:.4g} of {self.provenance.model}"
        return draw_layers(self.per_layer, self.layers, ylabel="density of kinks", title=title, ax=ax)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DensityMap(Measurement):
    """The density f(x) of kinks on a grid of a patch.

    Attributes:
        density: f at the grid points, (resolution, resolution); the first axis is s, the second t. The value
            is its mean over the patch.
        bounds: the intervals of s and t.
        marks: coordinates of data points on the patch, (m, 2).
    """

    measure: ClassVar[str] = "density_map"

    density: Floats
    bounds: Floats
    marks: Floats

    def plot(self, ax: Any = None) -> Any:
        """Draw the map; returns the matplotlib Axes."""
        from inscape.drawing.measures import draw_density

        title = f"density of kinks, sigma = {self.settings['sigma']:g}"
        return draw_density(self.density, self.bounds, self.marks, title=title, ax=ax)


def grid_of(patch: Patch, resolution: int) -> Floats:
    """The points of a square grid on a patch, (resolution^2, *input_shape), corners included."""
    axes = [np.linspace(low, high, resolution) for low, high in patch.bounds]
    return patch.points(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2))
