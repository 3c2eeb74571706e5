"""A model whose outputs a rule decides: `Model.decided_by` makes it."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from inscape.arrays import Array, Shape
from inscape.errors import PartitionError
from inscape.models.base import Model
from inscape.models.decision_rules import (
    AffineRule,
    Argmin,
    Custom,
    DecisionRule,
    Levels,
    NeverTaken,
)

if TYPE_CHECKING:
    import torch

    from inscape.models.graph import Graph
    from inscape.models.trees import TreeEnsemble


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
