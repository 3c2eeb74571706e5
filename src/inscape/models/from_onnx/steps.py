"""Read the nodes of an ONNX file one by one, as nodes of the graph.

Every tensor of the file is taken as it is for a *batch of one point*. Shapes are then known numbers, chains
of Shape, Gather and Concat fold to constants, and a file whose batch axis is fixed to one, or which moves or
drops that axis, is read like any other. That points do not influence each other is not assumed but checked:
the caller compares the graph with the file on several points at once.

A tensor is held as a node and the shape in which the file sees it. A point of the node has the same entries
in the same order but may have another shape, so that Reshape, Flatten, Squeeze and Unsqueeze cost nothing; an
operation that depends on the shape asks for it, and only then a reshape is recorded.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Array, Shape
from inscape.models.graph import affine
from inscape.models.graph.affine import Affine
from inscape.models.graph.gates import Condition, Gates
from inscape.models.graph.network import (
    INPUT,
    Foreign,
    IsRandom,
    Jumps,
    MixesPoints,
    Node,
    NotPiecewiseAffine,
    NotSupportedYet,
    Unreadable,
)
from inscape.models.graph.piecewise import Bend

RANDOM = frozenset(
    ["RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"]
)
"""Operations that give another result each time, so that they are no constants whatever they read."""
_CURVED = (
    "Acos Acosh Asin Asinh Atan Atanh Attention Celu Cos Cosh Det Elu Erf Exp Gelu GlobalLpPool GRU "
    "GroupNormalization HardSwish InstanceNormalization LRN LSTM LayerNormalization Log LogSoftmax "
    "LpNormalization LpPool MeanVarianceNormalization Mish Normalizer Pow RMSNormalization Reciprocal "
    "ReduceL2 ReduceLogSum ReduceLogSumExp ReduceProd ReduceSumSquare SVMClassifier Selu Sigmoid Sin "
    "Sinh Softmax Softplus Softsign Sqrt Swish Tan Tanh"
)
_STEPS = (
    "And ArgMax ArgMin BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Ceil DequantizeLinear "
    "DynamicQuantizeLinear Equal Floor Greater GreaterOrEqual Hardmax IsInf IsNaN Less LessOrEqual Mod "
    "NonZero Not OneHot Or QuantizeLinear Round Sign Xor"
)


def unknown(kind: str) -> Unreadable:
    """What is true of an operation that is not read.

    >>> type(unknown("Gelu")).__name__, type(unknown("Round")).__name__, type(unknown("Det2")).__name__
    ('NotPiecewiseAffine', 'Jumps', 'NotSupportedYet')
    """
    if kind in RANDOM:
        return IsRandom(kind)
    if kind in _CURVED.split():
        return NotPiecewiseAffine(kind)
    return Jumps(kind) if kind in _STEPS.split() else NotSupportedYet(kind)


@dataclass(frozen=True)
class Head:
    """A softmax, log-softmax, sigmoid or argmax that nothing but the output may read."""

    name: str
    origin: Foreign


@dataclass(frozen=True)
class Varying:
    """A tensor that depends on the input, for a batch of one point.

    Attributes:
        node: the node that holds its entries, in row-major order.
        shape: its shape in the file; the first axis is the batch axis, of size one, unless the file has none.
        head: what stands between the node and this tensor, if it may be set aside.
    """

    node: int
    shape: Shape
    head: Head | None = None


class Opaque:
    """A tensor behind a foreign operation."""


@dataclass(frozen=True)
class ComparisonMask:
    """A comparison with a tensor that depends on the input: a mask of a shape.

    Attributes:
        condition: what is compared, entry by entry of the shape without a batch axis.
        shape: its shape in the file.
        origin: what is named if anything but a choice reads it.
    """

    condition: Condition
    shape: Shape
    origin: Foreign


FileValue = Varying | Array | Opaque | ComparisonMask


def point_shape(shape: Shape) -> Shape:
    """The shape of a point: a leading axis of size one is that of the batch, unless it is the only one."""
    return shape[1:] if len(shape) > 1 and shape[0] == 1 else shape


@dataclass
class Reader:
    """Collects nodes while the nodes of a file are read.

    Args:
        input_shape: the shape of one point.
        opsets: the version of each operator set, by domain.
        translations: how each ONNX operation becomes nodes, by type.
        batch: the number of points that the file takes at once; None if it takes any.
        dtype: the precision of the input.
    """

    input_shape: Shape
    opsets: dict[str, int]
    translations: "Mapping[str, NodeTranslation]"
    batch: int | None = None
    dtype: torch.dtype = torch.float32
    nodes: list[Node] = field(default_factory=lambda: [INPUT])
    foreign: list[Foreign] = field(default_factory=list)
    values: dict[str, FileValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._shapes: list[Shape] = [self.input_shape]
        self._laid: dict[tuple[int, Shape], int] = {}
        self._path = ""
        self.gates = Gates(self.nodes, lambda op, *inputs: self.emit(op, inputs, self._path), self.dtype)

    def emit(self, op: Affine | Bend, inputs: Sequence[int], path: str) -> int:
        """Append a node and return its number; two points of zeros tell the shape of a point."""
        points = [torch.zeros(()).expand(2, *self._shapes[j]) for j in inputs]
        with torch.no_grad():
            shape = op.cast(torch.float32)(*points).shape
        if shape[:1] != (2,):
            raise NotSupportedYet(f"{op.name} that does not keep points apart")
        self._shapes.append(tuple(shape[1:]))
        self.nodes.append(Node(op, tuple(inputs), path))
        return len(self.nodes) - 1

    def laid(self, node: int, shape: Shape, path: str) -> int:
        """The node whose points are reshaped to `shape`, or itself."""
        if self._shapes[node] == shape:
            return node
        if (node, shape) not in self._laid:
            self._laid[node, shape] = self.emit(affine.reshape(shape), (node,), path)
        return self._laid[node, shape]

    def shape(self, node: int) -> Shape:
        """The shape of a point of a node."""
        return self._shapes[node]

    def read(self, nodes: Iterable[Any]) -> None:
        """Read nodes in order."""
        for node in nodes:
            inputs = [self.values.get(name, Opaque()) if name else None for name in node.input]
            self.values.update(zip(node.output, self._results(node, inputs), strict=False))

    def _results(self, node: Any, inputs: list[FileValue | None]) -> Sequence[FileValue]:
        kind, where = node.op_type, path_of(node)
        opaque: list[FileValue] = [Opaque() for _ in node.output]
        known = node.domain in ("", "ai.onnx", "ai.onnx.ml") and (kind in self.translations or kind == "If")
        varies = any(isinstance(v, Varying | ComparisonMask) for v in inputs) or kind in RANDOM
        self._path = where
        if any(isinstance(v, Opaque) for v in inputs):
            if not known:
                self.foreign.append(Foreign(kind, where, type(unknown(kind))))
            return opaque
        try:
            if kind == "If" and not varies:
                return self._branch(node, inputs)
            if not varies:
                return evaluated(
                    node, [v for v in inputs if v is None or isinstance(v, np.ndarray)], self.opsets
                )
            if not known:
                raise unknown(kind)
            result = self.translations[kind](Step(self, node, inputs, attributes(node)))
            return result if isinstance(result, list) else [result]
        except BehindHead as reason:
            self.foreign.append(reason.origin)
        except Unreadable as reason:
            self.foreign.append(Foreign(str(reason), where, type(reason)))
        except Exception as error:  # whatever a damaged or unusual node provokes, the file stays a black box
            line = next(iter(str(error).strip().splitlines()), type(error).__name__)
            reading = f"{kind} that cannot be read ({line})"
            self.foreign.append(Foreign(reading, where, NotSupportedYet))
        return opaque

    def _branch(self, node: Any, inputs: list[FileValue | None]) -> Sequence[FileValue]:
        """The branch of an If that a constant chooses; it sees all names of the file."""
        condition = inputs[0]
        assert isinstance(condition, np.ndarray)
        graph = attributes(node)["then_branch" if bool(condition.item()) else "else_branch"]
        self.values.update(stored(graph))
        self.read(graph.node)
        return [self.values.get(o.name, Opaque()) for o in graph.output]


class BehindHead(Exception):
    """A softmax, sigmoid or the like is read by another operation, so it is foreign after all."""

    def __init__(self, origin: Foreign) -> None:
        super().__init__(str(origin))
        self.origin = origin


def path_of(node: Any) -> str:
    """How messages call a node of the file."""
    return str(node.name) or f"the node that computes {node.output[0]!r}"


@dataclass(frozen=True)
class Step:
    """One node of the file, some of whose inputs vary, as a translation sees it."""

    reader: Reader
    node: Any
    inputs: list[FileValue | None]
    attributes: dict[str, Any]

    @property
    def kind(self) -> str:
        """The operation, such as "Conv"."""
        return str(self.node.op_type)

    @property
    def opset(self) -> int:
        """The version of the operator set."""
        return self.reader.opsets.get("", 1)

    def given(self, position: int) -> Varying | Array | None:
        """An input; None if it is left out."""
        value = self.inputs[position] if position < len(self.inputs) else None
        assert not isinstance(value, Opaque)
        if isinstance(value, Varying) and value.head is not None:
            raise BehindHead(value.head.origin)
        if isinstance(value, ComparisonMask):
            raise BehindHead(value.origin)
        return value

    def live(self, position: int = 0, *, behind_head: bool = False) -> Varying:
        """An input that must vary; `behind_head` if the operation leaves labels alone."""
        value = self.inputs[position] if behind_head else self.given(position)
        if not isinstance(value, Varying):
            raise NotSupportedYet(f"{self.kind} of a constant by a value that depends on the input")
        return value

    def constant(self, position: int, attribute: str | None = None) -> Array | None:
        """An input that must be constant, or the attribute that older files have instead; None if neither."""
        value = self.given(position)
        if isinstance(value, Varying):
            raise NotPiecewiseAffine(f"{self.kind} with an argument that depends on the input")
        if value is None and attribute is not None and attribute in self.attributes:
            return np.asarray(self.attributes[attribute])
        return value

    def required(self, position: int, attribute: str | None = None) -> Array:
        """A constant that must be there."""
        value = self.constant(position, attribute)
        if value is None:
            raise NotSupportedYet(f"{self.kind} without its argument {attribute or position}")
        return value

    def axis(self, default: int, rank: int) -> int:
        """The attribute `axis`, counted from the front."""
        return int(self.attributes.get("axis", default)) % max(rank, 1)

    def emit(self, op: Affine | Bend, *inputs: int) -> int:
        """A new node."""
        return self.reader.emit(op, inputs, path_of(self.node))

    def laid(self, live: Varying, shape: Shape | None = None) -> int:
        """A node that holds a tensor in points of a shape, by default its own without the batch axis."""
        return self.reader.laid(
            live.node, point_shape(live.shape) if shape is None else shape, path_of(self.node)
        )

    def reshaped(self, live: Varying, shape: Sequence[int]) -> Varying:
        """The same entries in another shape: no operation at all."""
        if math.prod(shape) != math.prod(live.shape):
            raise MixesPoints(f"{self.kind} of {live.shape} to {tuple(shape)}")
        return replace(live, shape=tuple(shape))


NodeTranslation = Callable[[Step], FileValue | list[FileValue]]


def stored(graph: Any) -> dict[str, Array]:
    """The initialisers of a GraphProto by name."""
    from onnx import numpy_helper

    return {t.name: numpy_helper.to_array(t) for t in graph.initializer}


def needed_nodes(graph: Any, output: str) -> list[Any]:
    """The nodes that an output depends on, in order."""
    wanted, kept = {output}, []
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            wanted.update(_reads(node))
            kept.append(node)
    return kept[::-1]


def _reads(node: Any) -> Iterator[str]:
    """The names that a node reads, those in its branches included."""
    yield from node.input
    for attribute in node.attribute:
        for branch in [attribute.g, *attribute.graphs]:
            yield from (o.name for o in branch.output)
            for inner in branch.node:
                yield from _reads(inner)


def attributes(node: Any) -> dict[str, Any]:
    """The attributes of a NodeProto as Python values; tensors are arrays, graphs stay as they are."""
    from onnx import TensorProto, helper, numpy_helper

    values = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    return {
        name: numpy_helper.to_array(v)
        if isinstance(v, TensorProto)
        else (v.decode() if isinstance(v, bytes) else v)
        for name, v in values.items()
    }


def evaluated(node: Any, inputs: Sequence[Array | None], opsets: dict[str, int]) -> list[Array]:
    """The outputs of a node on constants, by the reference implementation of the ONNX standard."""
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    given = {name: v for name, v in zip(node.input, inputs, strict=True) if v is not None}
    reads, writes = (
        [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in names if n]
        for names in (given, node.output)
    )
    graph = helper.make_graph([node], "constant", reads, writes)
    results = iter(np.asarray(r) for r in ReferenceEvaluator(graph, opsets=opsets).run(None, given))
    return [next(results) if name else np.empty(0) for name in node.output]


def tensor(array: Array) -> Tensor:
    """A private copy as a torch tensor; a float type that numpy lacks becomes float32."""
    known = array.dtype.kind in "iub" or array.dtype in (np.float16, np.float32, np.float64)
    return torch.from_numpy(np.array(array, dtype=None if known else np.float32, order="C"))


def integers(array: Array | Sequence[int]) -> tuple[int, ...]:
    """Axes, sizes or widths as a tuple of ints."""
    return tuple(int(i) for i in np.ravel(array))
