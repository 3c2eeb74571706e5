"""Which of a model's outputs decides its labels, and the model behind a rule that decides by it."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from inscape.arrays import Array, Shape
from inscape.errors import ModelError, PartitionError
from inscape.models.base import Model
from inscape.models.decision_rules import (
    AffineRule,
    Argmin,
    Custom,
    DecisionRule,
    Levels,
    NeverTaken,
)
from inscape.models.function import code_fingerprint

if TYPE_CHECKING:
    import torch

    from inscape.models.graph import Graph
    from inscape.models.trees import TreeEnsemble


OutputStep = str | int | Callable[[Any], Any]


@dataclass(frozen=True)
class Output:
    """The way from what a model returns to the numbers (n, k) that decide.

    Attributes:
        steps: taken in turn: the key of a dictionary or the name of an attribute, the number in a tuple, or a
            function. What is returned alone is number 0; a later number is a column of an array.

    >>> import numpy as np
    >>> Output.of(("logits", 1)).pick({"logits": np.array([[1.0, 2.0], [3.0, 4.0]])}, "net").tolist()
    [[2.0], [4.0]]
    """

    steps: tuple[OutputStep, ...]

    @classmethod
    def of(cls, output: Any) -> "Output | None":
        """The output that the argument of `inscape.wrap` names; None if it is left out."""
        if output is None or isinstance(output, Output):
            return output
        steps = tuple(output) if isinstance(output, tuple | list) else (output,)
        for step in steps:
            is_number = isinstance(step, int) and not isinstance(step, bool)
            if isinstance(step, type) or not (is_number or isinstance(step, str) or callable(step)):
                raise ModelError(
                    f"output={output!r} is not understood: give a name, a number, a function of what the "
                    "model returns, or several of them in a tuple"
                )
        if not steps:
            raise ModelError("output=() names nothing: leave it out")
        return cls(steps)

    def pick(self, returned: Any, name: str) -> Any:
        """What the steps lead to."""
        if isinstance(self.steps[0], int) and outputs_of(returned) is None:
            returned = (returned,)
        return follow(self.steps, returned, name)

    def record(self) -> list[Any]:
        """Plain JSON; of a function its name and a hash of its code."""
        return [
            {"function": _name(step), "fingerprint": code_fingerprint(step)} if callable(step) else step
            for step in self.steps
        ]


def follow(steps: tuple[OutputStep, ...], value: Any, name: str) -> Any:
    """What steps lead to from a value; `name` is that of the model, for messages."""
    for step in steps:
        value = _taken(value, step, name)
    return value


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _taken(value: Any, step: OutputStep, name: str) -> Any:
    """One step."""
    if not isinstance(step, str | int):
        return step(value)
    outputs = outputs_of(value)
    if outputs is not None:
        if isinstance(step, str) and step in outputs:
            return outputs[step]
        if isinstance(step, int) and -len(outputs) <= step < len(outputs):
            return list(outputs.values())[step]
    elif (
        isinstance(step, int) and getattr(value, "ndim", 0) == 2 and -value.shape[1] <= step < value.shape[1]
    ):
        return value[:, [step]]
    elif isinstance(step, str) and not hasattr(value, "ndim") and hasattr(value, step):
        return getattr(value, step)
    alone = isinstance(value, tuple) and len(value) == 1
    raise ModelError(
        f"{name} has no output {step!r}: it returned {described(value[0] if alone else value)}"
        + (f", of which output=(0, {step}) is a column" if alone and isinstance(step, int) else "")
    )


def scores_among(returned: Any) -> Any:
    """What decides unless something else was chosen: the `logits` if there are any, as of Hugging Face.

    >>> scores_among({"logits": 1, "loss": 2}), scores_among((3,)), scores_among(4)
    (1, 3, 4)
    """
    outputs = outputs_of(returned) or {}
    if len(outputs) == 1 and isinstance(returned, list | tuple):
        return returned[0]
    return outputs["logits"] if "logits" in outputs else getattr(returned, "logits", returned)


def outputs_of(value: Any) -> dict[str, Any] | None:
    """The things that a value is made of, by name: of a dictionary, tuple or dataclass; None of an array."""
    if isinstance(value, Mapping):
        return {str(k): v for k, v in value.items()}
    if hasattr(value, "_asdict"):
        return dict(value._asdict())
    if isinstance(value, list | tuple):
        names = getattr(type(value), "__match_args__", ())  # those of torch.max(x, 1)
        return dict(
            zip(names if len(names) == len(value) else map(str, range(len(value))), value, strict=True)
        )
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    return None


def described(value: Any) -> str:
    """What a model returned, for a message: names, types and shapes.

    >>> import numpy as np
    >>> described({"logits": np.zeros((4, 2), np.float32)})
    'a dict of logits (4, 2) float32'
    """
    outputs = outputs_of(value)
    if outputs is None:
        shape = getattr(value, "shape", None)
        if shape is None:
            return f"a {type(value).__name__}"
        return f"{tuple(shape)} {str(getattr(value, 'dtype', '')).removeprefix('torch.')}".strip()
    inside = ", ".join(f"{k} {described(v)}" for k, v in outputs.items())
    return f"a {type(value).__name__} of {inside}" if outputs else f"an empty {type(value).__name__}"


def decided(model: Model, rule: DecisionRule | None) -> Model:
    """The model with its outputs decided by a rule; None leaves it to its own."""
    if rule is not None:
        return DecidedModel(model, rule)
    if model.needs_rule is not None:
        raise ModelError(model.needs_rule)
    return model


class DecidedModel(Model):
    """A model whose labels are what a rule makes of its outputs.

    An affine rule keeps the structure of a network, also behind a final softmax or sigmoid that it commutes
    with; behind any other head, and by a function, a network is a black box. Trees are constant between their
    splits, so that they stay trees behind any rule.
    """

    def __init__(self, inner: Model, rule: DecisionRule) -> None:
        super().__init__(inner.name, input_shape=inner.input_shape, batch_size=None, output=inner.output)
        self.inner, self.rule = inner, rule
        self.dtype = inner.dtype
        self.decision = (inner.decision or {}) | rule.record()
        self.reveals_classes = isinstance(rule, Custom)
        self.classes = rule.class_names(1) if isinstance(rule, Levels) else None
        self.feature_names = inner.feature_names
        self._forest: tuple[TreeEnsemble, TreeEnsemble] | None = None

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
    def device(self) -> Any:
        """Where a torch module runs."""
        return self.inner.device  # type: ignore[attr-defined]

    @property
    def torch_dtype(self) -> Any:
        """The precision of a torch module."""
        return self.inner.torch_dtype  # type: ignore[attr-defined]

    @property
    def layout(self) -> str | None:
        """The order of the data's axes, which the model's messages name."""
        return self.inner.layout

    @layout.setter
    def layout(self, layout: str | None) -> None:
        self.inner.layout = layout

    @property
    def coarse_precision(self) -> str | None:
        """That of the model."""
        return self.inner.coarse_precision

    @property
    def kind(self) -> str:
        """That of the model."""
        return self.inner.kind

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """A time in which nobody changes the model."""
        with self.inner.unchanged():
            yield

    @contextmanager
    def session(self) -> Iterator[None]:
        """The state in which batches are evaluated."""
        with self.inner.session():
            yield

    def fingerprint(self) -> str:
        """A hash of the model's own and of the rule."""
        return self._marked(self.inner.fingerprint())

    def batch_length(self, point_size: int) -> int:
        """How many points go into one batch, as for the model itself."""
        return self.inner.batch_length(point_size)

    def batch_memory(self, point_size: int, n_points: int) -> int:
        """That of the model."""
        return self.inner.batch_memory(point_size, n_points)

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
