"""What happens to points between the data and a model: axes transposed, values normalised."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import LAYOUTS, Array, Floats, Shape, transposed
from inscape.errors import ModelError, unknown_name

if TYPE_CHECKING:
    from inscape.models.graph import Graph


PerChannel = float | tuple[float, ...]


@dataclass(frozen=True)
class Normalisation:
    """The map y = (scale x - mean) / std, each of them one number or one per channel.

    >>> factor, offset = Normalisation(mean=0.5, std=0.25, scale=1 / 255).coefficients((1, 8, 8), None)
    >>> np.round(factor * 255 + offset, 12).item()
    2.0
    """

    mean: PerChannel = 0.0
    std: PerChannel = 1.0
    scale: PerChannel = 1.0

    def coefficients(self, shape: Shape, layout: str | None) -> tuple[Floats, Floats]:
        """The factor and the offset of y = factor x + offset, shaped to broadcast against points of `shape`.

        Args:
            shape: of one point, with its axes as the model takes them.
            layout: that of the data, if it is known; else the channels are the first axis if it has as many
                entries as there are numbers, or else the last.
        """
        mean, std, scale = (
            _along_channels(np.array(getattr(self, f.name)), f.name, shape, layout) for f in fields(self)
        )
        return np.asarray(scale / std), np.asarray(-mean / std)

    def record(self) -> dict[str, Any]:
        """Plain JSON."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def _along_channels(values: Floats, name: str, shape: Shape, layout: str | None) -> Floats:
    """One number, or numbers (c,) shaped to broadcast along the channels of points of `shape`."""
    if values.ndim == 0:
        return values
    axes = {"HWC": (0,), "CHW": (-1,), None: (0, -1)}[layout]
    axis = next((a for a in axes if shape[a] == len(values)), None)
    if axis is None:
        raise ModelError(
            f"{name} has {len(values)} numbers, but points of shape {shape} have no {len(values)} channels: "
            "give one number, or one per channel"
        )
    return values.reshape(-1, *(1,) * (len(shape) - 1)) if axis == 0 else values


def as_normalisation(given: Mapping[str, Any]) -> Normalisation:
    """The normalisation that a dictionary with any of "mean", "std" and "scale" describes.

    >>> as_normalisation({"scale": 0.5, "mean": [1, 2, 3]})
    Normalisation(mean=(1.0, 2.0, 3.0), std=1.0, scale=0.5)
    """
    known = [f.name for f in fields(Normalisation)]
    for name in given:
        if name not in known:
            raise ModelError(unknown_name("entry of preprocess", name, known))
    numbers = {name: _numbers(value, name) for name, value in given.items()}
    for name in ("std", "scale"):
        if np.any(np.equal(numbers.get(name, 1.0), 0.0)):
            raise ModelError(
                f"{name}={given[name]!r} holds 0, which would make all points equal: leave it out"
            )
    return Normalisation(**numbers)


def _numbers(value: Any, name: str) -> PerChannel:
    """One finite number, or a tuple of them."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    try:
        numbers = np.asarray(value, dtype=np.float64).squeeze()
    except (TypeError, ValueError):
        numbers = np.array(math.nan)
    if isinstance(value, str) or numbers.ndim > 1 or numbers.size == 0 or not np.isfinite(numbers).all():
        raise ModelError(f"{name}={value!r} must be a number, or one per channel such as (0.49, 0.48, 0.45)")
    return float(numbers) if numbers.ndim == 0 else tuple(numbers.tolist())


@dataclass(frozen=True, eq=False)
class Preparation:
    """A transposition of axes, then a normalisation or a function: what turns data into a model's input.

    Attributes:
        layout: the order of the data's axes, "HWC" or "CHW", if the model takes the other one.
        values: a `Normalisation`, a function on arrays (n, ...) in the model's layout, or None.
    """

    layout: str | None = None
    values: Normalisation | Callable[..., Any] | None = None

    @classmethod
    def of(cls, layout: str | None, preprocess: Any) -> "Preparation":
        """The preparation that the arguments of `inscape.wrap` describe."""
        if layout is not None and layout not in LAYOUTS:
            raise ModelError(unknown_name("layout", layout, LAYOUTS))
        if preprocess is None or isinstance(preprocess, Normalisation):
            return cls(layout, preprocess)
        if isinstance(preprocess, Mapping):
            return cls(layout, as_normalisation(preprocess))
        if isinstance(preprocess, type) or not callable(preprocess):
            raise ModelError(
                f"preprocess={preprocess!r} is not understood: give a dictionary with mean, std and scale, "
                "or a function on arrays (n, ...)"
            )
        return cls(layout, preprocess)

    @property
    def changes_nothing(self) -> bool:
        """Whether points reach the model as they are."""
        return self.layout is None and self.values is None

    @property
    def is_affine(self) -> bool:
        """Whether there is no function in it, of which nothing is known."""
        return self.values is None or isinstance(self.values, Normalisation)

    def inside(self, shape: Shape | None) -> Shape | None:
        """The shape that the model is given for data points of `shape`; None if that is not known."""
        if shape is None or not self.is_affine:
            return None
        return self.turned(shape)

    def outside(self, shape: Shape | None) -> Shape | None:
        """The shape of data points that the model is given as `shape`; None if that is not known."""
        if shape is None or not self.is_affine:
            return None
        if self.layout is None:
            return shape
        back = np.argsort(LAYOUTS[self.layout]).tolist()
        return transposed(shape, back) if len(shape) == len(back) else None

    def turned(self, shape: Shape) -> Shape:
        """The shape with its axes as the model takes them."""
        if self.layout is None:
            return shape
        axes = LAYOUTS[self.layout]
        if len(shape) != len(axes):
            raise ModelError(
                f"layout={self.layout!r} is for points of three axes, got shape {shape}: give input_shape, "
                f"the sizes of {', '.join(self.layout)}"
            )
        return transposed(shape, axes)

    def turn(self, x: Array) -> Array:
        """Points (n, ...) with their axes as the model takes them."""
        if self.layout is None:
            return x
        self.turned(x.shape[1:])
        return np.ascontiguousarray(x.transpose(0, *(a + 1 for a in LAYOUTS[self.layout])))

    def coefficients(self, shape: Shape) -> tuple[Floats, Floats]:
        """The factor and the offset of the normalisation, for points of `shape` in the model's layout."""
        values = self.values if isinstance(self.values, Normalisation) else Normalisation()
        return values.coefficients(shape, self.layout)

    def graph(self, shape: Shape) -> "Graph":
        """The transposition and the normalisation of data points of `shape` as affine nodes."""
        import torch

        from inscape.models.graph import INPUT, Graph, Node
        from inscape.models.graph.affine import permute, scale, shift

        operations = [] if self.layout is None else [permute(LAYOUTS[self.layout])]
        if isinstance(self.values, Normalisation):
            factor, offset = (torch.from_numpy(c) for c in self.coefficients(self.turned(shape)))
            operations += [scale(factor), shift(offset)]
        nodes = [INPUT, *(Node(op, (i,), "preprocess") for i, op in enumerate(operations))]
        return Graph(nodes, output=len(operations), input_shape=shape)
