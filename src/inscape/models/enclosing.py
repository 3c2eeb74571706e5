"""Models around a model: its outputs decided by a rule, or its points prepared before it gets them."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import Array, Shape
from inscape.errors import InscapeError, ModelError, PartitionError
from inscape.models.base import Model
from inscape.models.decision_rules import (
    AffineRule,
    Argmin,
    Custom,
    DecisionRule,
    Levels,
    NeverTaken,
)
from inscape.models.fingerprints import short_hash
from inscape.models.function import FunctionModel
from inscape.models.preparation import Normalisation, Preparation

if TYPE_CHECKING:
    import torch

    from inscape.models.graph import Graph
    from inscape.models.trees import TreeEnsemble


class EnclosingModel(Model):
    """A model around another: what it does not change is that of the other.

    Attributes:
        inner: the other.
    """

    def __init__(self, inner: Model, input_shape: Shape | None) -> None:
        super().__init__(inner.name, input_shape=input_shape, batch_size=None, output=inner.output)
        self.inner, self.dtype = inner, inner.dtype
        self._forest: tuple[TreeEnsemble, TreeEnsemble] | None = None  # of the other, and what became of it

    @property
    def device(self) -> Any:
        """Where a torch module runs."""
        return self.inner.device  # type: ignore[attr-defined]

    @property
    def torch_dtype(self) -> Any:
        """The precision of a torch module."""
        return self.inner.torch_dtype  # type: ignore[attr-defined]

    @property
    def coarse_precision(self) -> str | None:
        """That of the other."""
        return self.inner.coarse_precision

    @property
    def kind(self) -> str:
        """That of the other."""
        return self.inner.kind

    def unchanged(self) -> AbstractContextManager[None]:
        """A time in which nobody changes the other."""
        return self.inner.unchanged()

    def session(self) -> AbstractContextManager[None]:
        """The state in which batches of the other are evaluated."""
        return self.inner.session()

    def batch_length(self, point_size: int) -> int:
        """How many points go into one batch, as for the other."""
        return self.inner.batch_length(point_size)

    def batch_memory(self, point_size: int, n_points: int) -> int:
        """That of the other."""
        return self.inner.batch_memory(point_size, n_points)


class DecidedModel(EnclosingModel):
    """A model whose labels are what a rule makes of its outputs.

    An affine rule keeps the structure of a network, also behind a final softmax or sigmoid that it commutes
    with; behind any other head, and by a function, a network is a black box. Trees are constant between their
    splits, so that they stay trees behind any rule.
    """

    def __init__(self, inner: Model, rule: DecisionRule) -> None:
        super().__init__(inner, inner.input_shape)
        self.rule = rule
        self.decision = (inner.decision or {}) | rule.record()
        self.reveals_classes = isinstance(rule, Custom)
        self.classes = rule.class_names(1) if isinstance(rule, Levels) else None
        self.feature_names = inner.feature_names

    @property
    def structure(self) -> str:  # type: ignore[override]
        """That of the model where the rule keeps it."""
        if self._has_trees():
            return "trees"
        return "piecewise-affine" if self._has_graph() else "black-box"

    @property
    def trees(self) -> "TreeEnsemble":
        """The trees of the model with the rule as their vote; an error says why there are none."""
        from inscape.models.trees.numbers import trees_by_rule

        summed = self.inner.summed_trees
        if self._forest is None or self._forest[0] is not summed:
            self._forest = summed, trees_by_rule(self, summed, self._rule_of_numbers)
        return self._forest[1]

    def _rule_of_numbers(self, outputs: Array, input_shape: Shape) -> DecisionRule:
        """The rule for outputs (n, k), with its threshold."""
        if isinstance(self.rule, Custom):
            return self.rule
        return self._rule_for(outputs.shape[1], input_shape, outputs)

    @property
    def has_scores(self) -> bool:  # type: ignore[override]
        """Whether the rule makes scores: a function may return labels only."""
        return self.rule.model.has_scores if isinstance(self.rule, Custom) else True

    @property
    def undecided(self) -> Model:
        """The model itself."""
        return self.inner

    @property
    def module(self) -> "torch.nn.Module":
        """The torch module with the rule as its last layer; an AttributeError if there is no such thing."""
        module = getattr(self.inner, "module", None)
        if module is None or not isinstance(self.rule, AffineRule):
            raise AttributeError(f"{self.name} is no torch module")
        from inscape.models.module_wrappers import DecidedModule

        return DecidedModule(module, lambda k, shape: self._rule_for(k, shape))

    @property
    def layout(self) -> str | None:
        """The order of the data's axes, which the model's messages name."""
        return self.inner.layout

    @layout.setter
    def layout(self, layout: str | None) -> None:
        self.inner.layout = layout

    def fingerprint(self) -> str:
        """A hash of the model's own and of the rule."""
        return self._marked(self.inner.fingerprint())

    def network(self, input_shape: Shape) -> "Graph":
        """The graph of the model without the rule."""
        return self.inner.network(input_shape)

    def known_shape(self) -> Shape | None:
        """That of the model."""
        return self.inner.known_shape()

    def _with_own_rule(self, network: "Graph") -> "Graph":
        """The graph with the rule as its last node."""
        if not isinstance(self.rule, AffineRule):
            raise PartitionError(
                f"{self.name} is decided by the function {self.rule.record()['function']}, of which nothing "
                "is known",
                remedy='it cannot be counted exactly; use method="adaptive", or decide="argmax", "argmin", '
                '"threshold" or "sign"',
            )
        with self.session():
            rule = self._rule_for(math.prod(network.shapes[network.output]), network.input_shape)
        return graph_with_rule(network, rule, self.name)

    def _rule_for(self, k: int, input_shape: Shape, outputs: Array | None = None) -> AffineRule:
        """The rule for k outputs, with its threshold."""
        self.rule.check(k, self.name)
        self.classes = self.rule.class_names(k)
        assert isinstance(self.rule, AffineRule)
        if not self.rule.is_open:
            return self.rule
        return self.rule.resolved(self.inner.natural_threshold(input_shape, outputs))

    def _to_input(self, x: Array) -> Array:
        """Points as they are: the model shapes and casts what it is given."""
        return x

    def _call(self, x: Array, *, with_scores: bool) -> tuple[Array, Array | None]:
        outputs = self.inner.outputs_batch(x)
        if isinstance(self.rule, Custom):
            decided = self.rule.decide(outputs, with_scores=with_scores)
            self.classes = self.rule.class_names(outputs.shape[1])
            return decided
        rule = self._rule_for(outputs.shape[1], self.input_shape or x.shape[1:], outputs)
        return rule.decide(outputs, with_scores=with_scores)

    def _outputs(self, x: Array) -> Array:
        return self.inner.outputs_batch(x)


def graph_with_rule(network: "Graph", rule: AffineRule, name: str) -> "Graph":
    """The graph whose output are the scores that a rule makes of what a network returns, head included.

    The rule goes before the head where it commutes with it; `name` is that of the model, for messages.
    """
    import torch

    from inscape.models.graph import Graph, Node
    from inscape.models.graph.affine import linear, scale

    try:
        before = rule if network.head is None else rule.before(network.head)
    except NeverTaken as value:
        raise PartitionError(
            f"{name} ends in {network.head}, whose values never reach {value}, with which they are compared",
            remedy="all points have one label; give threshold=... or levels=... that are reached, or use "
            'method="adaptive" or method="grid"',
        ) from None
    if before is None:
        raise PartitionError(
            f"{name} is decided by {rule.name} behind a {network.head}, which it does not commute with",
            remedy='it cannot be counted exactly; use method="adaptive", or choose the scores before it by '
            "output=...",
        )
    k = math.prod(network.shapes[network.output])
    flat = network.reshaped((k,))
    if before.changes_nothing:
        return flat
    if isinstance(before, Argmin):
        operation = scale(torch.tensor(-1.0))
    else:
        operation = linear(*(torch.from_numpy(c) for c in before.coefficients(k)))
    nodes = [*flat.nodes[: flat.output + 1], Node(operation, (flat.output,), f"decide={rule.name!r}")]
    return Graph(
        nodes,
        output=len(nodes) - 1,
        input_shape=network.input_shape,
        head=network.head,
        returned=flat.returned,
    )


def prepared(inner: Model, preparation: Preparation, input_shape: Shape | None) -> Model:
    """The model behind its preparation, for data points of one shape, or of any if it is None."""
    return inner if preparation.changes_nothing else PreparedModel(inner, preparation, input_shape)


class PreparedModel(EnclosingModel):
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
        super().__init__(inner, shape)
        self.decision = inner.decision
        self.preparation = preparation
        self.layout = inner.layout = preparation.layout
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
        return short_hash(record.encode())

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
