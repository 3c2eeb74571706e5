"""What happens to points between the data and a model: axes transposed, values normalised.

`Preparation` says what, `PreparedModel` is the model behind it, seen from the coordinates of the data.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import LAYOUTS, Array, Floats, Shape, transposed
from inscape.errors import InscapeError, ModelError, PartitionError, unknown_name
from inscape.models.base import Model
from inscape.models.function import FunctionModel

if TYPE_CHECKING:
    import torch

    from inscape.models.graph import Graph
    from inscape.models.trees import TreeEnsemble


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


def prepared(inner: Model, preparation: Preparation, input_shape: Shape | None) -> Model:
    """The model behind its preparation, for data points of one shape, or of any if it is None."""
    return inner if preparation.changes_nothing else PreparedModel(inner, preparation, input_shape)


class PreparedModel(Model):
    """A model whose points are first transposed and normalised: what is found of it is in data coordinates.

    Transposing and normalising by numbers is affine and keeps the structure of a network; so does a torch
    module that is itself piecewise affine. Normalising by numbers also keeps trees. Behind another function a
    model is a black box, and so is what is exact on segments only.
    """

    def __init__(self, inner: Model, preparation: Preparation, input_shape: Shape | None) -> None:
        if preparation.layout is not None and hasattr(inner, "estimator"):
            raise ModelError(
                f"layout={preparation.layout!r} is for models that take images; {inner.name} takes rows of "
                "features: put the data in the order in which it was fitted"
            )
        shape = preparation.outside(inner.input_shape) if input_shape is None else input_shape
        super().__init__(inner.name, input_shape=shape, batch_size=None, output=inner.output)
        self.inner = inner
        self.decision = inner.decision
        self.preparation = preparation
        self.layout = inner.layout = preparation.layout
        self.dtype = inner.dtype
        self._function = _as_model(preparation, inner)
        self._graphs: list[tuple[Graph, Graph | None, Graph]] = []
        self._forest: tuple[TreeEnsemble, TreeEnsemble] | None = None

    @property
    def preprocess(self) -> dict[str, Any] | None:  # type: ignore[override]
        """The numbers of the normalisation, or the name and fingerprint of the function, for the record."""
        values = self.preparation.values
        if self._function is not None:
            return {"function": self._function.name, "fingerprint": self._function.fingerprint()}
        return values.record() if isinstance(values, Normalisation) else None

    @property
    def structure(self) -> str:  # type: ignore[override]
        """That of the model where the preparation keeps it."""
        if self._function is None:
            kept = ("piecewise-affine", "trees") if self.layout is None else ("piecewise-affine",)
            return self.inner.structure if self.inner.structure in kept else "black-box"
        if self.input_shape is None:
            return "black-box"
        try:
            self.graph(self.input_shape)
        except InscapeError:
            return "black-box"
        return "piecewise-affine"

    @property
    def trees(self) -> "TreeEnsemble":
        """The trees behind the normalisation; an error says why there are none."""
        if self.structure != "trees" or self.input_shape is None:
            return super().trees
        inner = self.inner.trees
        if self._forest is None or self._forest[0] is not inner:
            shape = self.input_shape
            factor, offset = (
                np.array(np.broadcast_to(c, shape), dtype=np.float64).ravel()
                for c in self.preparation.coefficients(shape)
            )
            self._forest = inner, inner.behind(factor, offset)
        return self._forest[1]

    @property
    def classes(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """The names of the classes, in label order."""
        return self.inner.classes

    @property
    def feature_names(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """The columns that the model was fitted to."""
        return self.inner.feature_names

    @property
    def reveals_classes(self) -> bool:  # type: ignore[override]
        """Whether the classes are only those that were met so far."""
        return self.inner.reveals_classes

    @property
    def labels_are_columns(self) -> bool:  # type: ignore[override]
        """Whether a label is the column of a score."""
        return self.inner.labels_are_columns

    @property
    def coarse_precision(self) -> str | None:
        """That of the model."""
        return self.inner.coarse_precision

    @property
    def has_scores(self) -> bool:  # type: ignore[override]
        """Whether the model has scores."""
        return self.inner.has_scores

    @cached_property
    def undecided(self) -> Model:
        """The model behind the same preparation, without a decision rule."""
        inner = self.inner.undecided
        return self if inner is self.inner else PreparedModel(inner, self.preparation, self.input_shape)

    @property
    def module(self) -> "torch.nn.Module":
        """The preparation and the torch module as one module; an AttributeError if there is no such thing."""
        module = getattr(self.inner, "module", None)
        if module is None or isinstance(self._function, FunctionModel):
            raise AttributeError(f"{self.name} is no torch module")
        from inscape.models.module_wrappers import PreparedModule

        return PreparedModule(module, self.preparation, getattr(self._function, "module", None))

    @property
    def device(self) -> Any:
        """Where a torch module runs."""
        return self.inner.device  # type: ignore[attr-defined]

    @property
    def torch_dtype(self) -> Any:
        """The precision of a torch module."""
        return self.inner.torch_dtype  # type: ignore[attr-defined]

    @property
    def kind(self) -> str:
        """That of the model."""
        return self.inner.kind

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """A time in which nobody changes the model or what prepares its points."""
        with self.inner.unchanged(), (self._function or self.inner).unchanged():
            yield

    @contextmanager
    def session(self) -> Iterator[None]:
        """The state in which batches are evaluated, of the model and of what prepares its points."""
        with self.inner.session(), (self._function or self.inner).session():
            yield

    def fingerprint(self) -> str:
        """A hash of the model's own and of the preparation."""
        record = json.dumps([self.inner.fingerprint(), self.layout, self.preprocess])
        return hashlib.blake2b(record.encode(), digest_size=8).hexdigest()

    def batch_length(self, point_size: int) -> int:
        """How many points go into one batch, as for the model itself."""
        return self.inner.batch_length(point_size)

    def batch_memory(self, point_size: int, n_points: int) -> int:
        """That of the model."""
        return self.inner.batch_memory(point_size, n_points)

    def graph(self, input_shape: Shape) -> "Graph":
        """The graph of the scores behind that of the preparation, on data points of one shape."""
        return self._behind(input_shape, self.inner.graph)

    def network(self, input_shape: Shape) -> "Graph":
        """The graph of what the model returns behind that of the preparation."""
        return self._behind(input_shape, self.inner.network)

    def _behind(self, input_shape: Shape, graph_of: Callable[[Shape], "Graph"]) -> "Graph":
        if self.inner.structure not in ("piecewise-affine", "black-box"):
            raise PartitionError(
                f"the exact regions of {self.name} are not computed behind preprocess",
                remedy='put a scaler into its pipeline instead, or use method="adaptive"',
            )
        shape = self.input_shape or input_shape
        first = self.preparation.graph(shape)
        second = self._graph_of_function(first)
        inner = graph_of((second or first).shapes[(second or first).output])
        for known in self._graphs:
            if known[0].input_shape == shape and known[1] is second and known[2] is inner:
                return known[0]
        joined = inner.after(first if second is None else second.after(first))
        self._graphs = [(joined, second, inner), *self._graphs[:1]]  # that of the scores and of the outputs
        return joined

    def _graph_of_function(self, first: "Graph") -> "Graph | None":
        """The graph of a torch module that prepares points; an error if the function has none."""
        if self._function is None:
            return None
        if isinstance(self._function, FunctionModel):
            raise PartitionError(
                f"the points of {self.name} are prepared by the function {self._function.name}, of which "
                "nothing is known",
                remedy='it cannot be counted exactly; use method="adaptive", or give preprocess as numbers '
                "or as a torch module",
            )
        graph: Graph = self._function.network(first.shapes[first.output])
        if graph.head is not None:
            raise PartitionError(f"{self._function.name}, which prepares the points, ends in a {graph.head}")
        return graph

    def _to_input(self, x: Array) -> Array:
        """Points in the data's shape; the model casts what it is given."""
        return self._shaped(x)

    def _call(self, x: Array, *, with_scores: bool) -> tuple[Array, Array | None]:
        return self.inner.predict_batch(self._prepare(self.preparation.turn(x)), with_scores)

    def _outputs(self, x: Array) -> Array:
        return self.inner.outputs_batch(self._prepare(self.preparation.turn(x)))

    def _prepare(self, x: Array) -> Array:
        """Points in the model's layout, normalised."""
        if self._function is None:
            factor, offset = self.preparation.coefficients(x.shape[1:])
            return np.asarray(x * factor + offset)
        out = _values(self._function, x)
        if out.ndim < 2 or len(out) != len(x):
            raise ModelError(
                f"{self._function.name}, which prepares the points, returned shape {out.shape} for "
                f"{x.shape}: expected (n, ...)"
            )
        return out


def _as_model(preparation: Preparation, inner: Model) -> Any:
    """The function that prepares points, in the form of a model: a torch module can be traced."""
    from inscape.models.wrapping import wrap

    if preparation.is_affine:
        return None
    model = wrap(preparation.values)
    if isinstance(model, FunctionModel):
        return model
    from inscape.models.module_wrappers import InPrecision

    typed = wrap(InPrecision(preparation.values, inner.dtype), device=getattr(inner, "device", None))
    typed.name = model.name
    return typed


def _values(function: Any, x: Array) -> Array:
    """What a function or a torch module makes of a batch."""
    if isinstance(function, FunctionModel):
        out = function.function(x)
    else:
        import torch

        with torch.no_grad():
            out = function.module(torch.from_numpy(x).to(function.device, function.torch_dtype))
    return np.asarray(out.detach().cpu() if hasattr(out, "detach") else out, dtype=np.float64)
