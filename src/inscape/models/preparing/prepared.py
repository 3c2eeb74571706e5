"""A model behind its preparation, seen from the coordinates of the data."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import Shape
from inscape.errors import InscapeError, ModelError, PartitionError
from inscape.models.base import Array, Model
from inscape.models.function import FunctionModel
from inscape.models.preparing.preprocessing import Normalisation, Preparation

if TYPE_CHECKING:
    import torch

    from inscape.models.graph import Graph


def prepared(
    read: Callable[[Shape | None], Model], preparation: Preparation, input_shape: Shape | None
) -> Model:
    """The model that `read` makes of the shape of its own input, behind its preparation.

    Args:
        read: from the shape that the model is given, or None, to the wrapped model.
        preparation: what happens to points first.
        input_shape: the shape of one data point, or None.
    """
    if preparation.changes_nothing:
        return read(input_shape)
    return PreparedModel(read(preparation.inside(input_shape)), preparation, input_shape)


class PreparedModel(Model):
    """A model whose points are first transposed and normalised: what is found of it is in data coordinates.

    Transposing and normalising by numbers is affine and keeps the structure of a network; so does a torch
    module that is itself piecewise affine. Behind another function a model is a black box, and so are trees.
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
            return self.inner.structure if self.inner.structure == "piecewise-affine" else "black-box"
        if self.input_shape is None:
            return "black-box"
        try:
            self.graph(self.input_shape)
        except InscapeError:
            return "black-box"
        return "piecewise-affine"

    @property
    def classes(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """The names of the classes, in label order."""
        return self.inner.classes

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
        from inscape.models.preparing.prepared_module import PreparedModule

        return PreparedModule(module, self.preparation, getattr(self._function, "module", None))

    @property
    def device(self) -> Any:
        """Where a torch module runs."""
        return self.inner.device  # type: ignore[attr-defined]

    @property
    def torch_dtype(self) -> Any:
        """The precision of a torch module."""
        return self.inner.torch_dtype  # type: ignore[attr-defined]

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
        found = inner.after(first if second is None else second.after(first))
        self._graphs = [(found, second, inner), *self._graphs[:1]]  # that of the scores and of the outputs
        return found

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
    from inscape.models.preparing.prepared_module import InPrecision

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
