"""Record what a torch module does to one small batch, as nodes of the graph.

The module runs once, at a few random points, under a dispatch mode that sees every ATen operation: the
vocabulary that torch.export uses, but without symbolic shapes, so that no Python construct stands in the way
and the record costs one forward pass. What depends on the input becomes nodes; everything else (weights and
what is computed from them) is a constant. The axis of the batch is followed wherever a module moves it; it
stays free because each operation is admitted only if it treats points alike, and a branch on data
(`if x.sum() > 0`) is seen, since it must fetch a number from a tensor.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

from inscape.arrays import Shape
from inscape.models.from_torch.obstacles import called, obstacle, unknown
from inscape.models.graph import affine
from inscape.models.graph.affine import Affine, identity
from inscape.models.graph.gates import Condition, Gates
from inscape.models.graph.network import (
    INPUT,
    Foreign,
    MixesPoints,
    Node,
    NotPiecewiseAffine,
    NotSupportedYet,
    Unreadable,
    WritesEntries,
)
from inscape.models.graph.piecewise import Bend
from inscape.models.graph.trace import INCREASING

_FOREIGN = identity()
"""Stands for a foreign operation: a graph that needs one is refused."""
# these read only the shape of their argument
_BY_SHAPE = frozenset(
    ["zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones", "new_full", "new_empty"]
)
_MOVES = (
    "view _unsafe_view reshape flatten squeeze unsqueeze _reshape_alias select slice index index_select "
    "narrow unbind split chunk flip permute transpose t _to_copy clone detach alias cat stack"
)
"""What moves entries, so that a function of each entry may as well come afterwards."""
_BEHIND_HEADS = frozenset(f"{_MOVES} argmax argmin max min topk log sub rsub gt ge lt le".split())
"""What may follow a softmax, a tanh and the like without a change of labels."""
_SLICES = "select slice index index_select narrow unbind split chunk"
_FETCHES = frozenset(["_local_scalar_dense", "is_nonzero", "nonzero", "equal"])
"""What makes numbers or sizes of a tensor's entries, on which Python can branch."""


@dataclass(frozen=True)
class Value:
    """A recorded tensor: its node, and where the points of the batch are in it.

    Axis number `axis` of the tensor has before * n * after entries for n points: other axes may be merged
    with that of the batch, as `Linear` on (n, k, d) does. A point of the node has the shape of the tensor
    with that axis replaced by axes of size `before` and `after`, each left out if it is one.
    """

    node: int
    axis: int = 0
    before: int = 1
    after: int = 1

    @property
    def is_merged(self) -> bool:
        """Whether other axes are merged with that of the batch."""
        return self.before * self.after > 1

    @property
    def inner(self) -> Shape:
        """The sizes of the axes that stand for the batch axis in a point."""
        return tuple(n for n in (self.before, self.after) if n > 1)

    def at(self, node: int) -> "Value":
        """Another node with its points along the same axis."""
        return Value(node, self.axis, self.before, self.after)

    def point_shape(self, shape: Sequence[int]) -> Shape:
        """The shape of a point of a tensor of a shape."""
        return (*shape[: self.axis], *self.inner, *shape[self.axis + 1 :])

    def point_axis(self, axis: int) -> int:
        """The number that another axis of the tensor has in a point."""
        return axis if axis < self.axis else axis - 1 + len(self.inner)

    def laid(self, batch: Tensor, n_axes: int) -> Tensor:
        """A batch (n, *point) as the tensor of `n_axes` axes that the module sees."""
        if self.axis == 0 and not self.is_merged:
            return batch
        front, back = batch.shape[1 : self.axis + 1], batch.shape[batch.ndim - (n_axes - 1 - self.axis) :]
        apart = batch.reshape(len(batch), *front, self.before, self.after, *back)
        return apart.movedim(0, self.axis + 1).reshape(*front, self.before * len(batch) * self.after, *back)

    def batched(self, tensor: Tensor) -> Tensor:
        """The batch (n, *point) that a tensor is, as the module sees it."""
        if self.axis == 0 and not self.is_merged:
            return tensor
        front, back = tensor.shape[: self.axis], tensor.shape[self.axis + 1 :]
        apart = tensor.reshape(*front, self.before, -1, self.after, *back).movedim(self.axis + 1, 0)
        return apart.reshape(len(apart), *front, *self.inner, *back)


@dataclass
class Call:
    """One ATen call whose arguments depend on the input, as a translation sees it."""

    recorder: "Recorder"
    name: str
    function: Any
    args: Sequence[Any]
    kwargs: dict[str, Any]
    out: Any
    n_points: int

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """An argument given by position or by name."""
        return self.args[position] if len(self.args) > position else self.kwargs.get(name, default)

    def value(self, tensor: Any) -> Value | None:
        """What is known of a tensor: None for a constant or a number."""
        return self.recorder.value(tensor) if isinstance(tensor, Tensor) else None

    def varying(self, tensor: Any) -> Value:
        """What is known of a tensor that must depend on the input."""
        value = self.value(tensor)
        if value is None:
            raise NotSupportedYet(called(self.name), "of a constant by a value that depends on the input")
        return value

    def fixed(self, tensor: Any, what: str) -> None:
        """Raise an error if an argument depends on the input."""
        if self.value(tensor) is not None:
            raise NotPiecewiseAffine(called(self.name), f"whose {what} depends on the input")

    def constant(self, value: Any, like: Value, n_axes: int) -> Tensor:
        """A number or constant tensor as it broadcasts against the points of a tensor with `n_axes` axes."""
        if not isinstance(value, Tensor):
            return torch.tensor(float(value), dtype=torch.float64)
        constant = snapshot(value)
        if constant.ndim < n_axes - like.axis:
            return constant
        constant = constant.reshape(*(1,) * (n_axes - constant.ndim), *constant.shape)
        if constant.ndim > n_axes:
            raise NotSupportedYet(called(self.name), "with a constant of more axes")
        return self._point_of(constant, like)

    def constant_point(self, tensor: Tensor, like: Value) -> Tensor:
        """A constant tensor, of the same shape except along one axis, as the point that a batch shares."""
        return self._point_of(snapshot(tensor), like)

    def _point_of(self, constant: Tensor, like: Value) -> Tensor:
        size = constant.shape[like.axis]
        front, back = constant.shape[: like.axis], constant.shape[like.axis + 1 :]
        if size == 1:
            return constant.reshape(*front, *(1 for _ in like.inner), *back)
        points = constant.reshape(*front, like.before, -1, like.after, *back).movedim(like.axis + 1, 0)
        if not torch.equal(points, points[:1].expand_as(points)):
            raise MixesPoints(called(self.name), "with a constant that differs from point to point")
        return points[0].reshape(*front, *like.inner, *back)

    def aligned(self, value: Value, tensor: Tensor, n_axes: int) -> Value:
        """A value with axes of size one in front, as if broadcast against a tensor of `n_axes` axes."""
        missing = n_axes - tensor.ndim
        if missing == 0:
            return value
        shape = (*(1,) * missing, *value.point_shape(tensor.shape))
        node = self.emit(affine.reshape(shape), value.node)
        return Value(node, value.axis + missing, value.before, value.after)

    def image(self, tensor: Any) -> Value:
        """A value with points, or slices of them, along the first axis, as convolution needs it."""
        value = self.varying(tensor)
        if value.axis != 0 or value.before > 1:
            raise NotSupportedYet(called(self.name), "with a batch axis that is not the first")
        return value

    def emit(self, op: Affine | Bend, *inputs: int) -> int:
        """A new node."""
        return self.recorder.emit(op, inputs)

    def emit_foreign(self, reason: Unreadable, *inputs: int) -> int:
        """A node that stands for a foreign operation."""
        return self.recorder.emit_foreign(reason, inputs)

    def emit_head(self, head: str, reason: Unreadable, node: int) -> int:
        """A placeholder behind a node, which is set aside if it ends the model."""
        stand_in = self.emit_foreign(reason, node)
        self.recorder.heads[stand_in] = head
        return stand_in


CallTranslation = Callable[[Call], "Value | list[Value | None]"]


def snapshot(tensor: Tensor) -> Tensor:
    """A private copy on the CPU: later training does not change a graph that was recorded before."""
    return tensor.detach().to("cpu", copy=True)


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Collects nodes while a module runs.

    Args:
        x: the batch that the module is about to be called with; node 0.
        names: module paths, for messages.
        translations: how each ATen operation becomes nodes, by name without overload.

    Attributes:
        conditions: for the node that stands for a comparison, what is compared.
        heads: for the node that stands for an operation that changes no label, its name.
        calls_behind: for the node that stands for a call behind a foreign operation, the name of the call.
    """

    def __init__(
        self, x: Tensor, names: dict[torch.nn.Module, str], translations: dict[str, CallTranslation]
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.n_points = len(x)
        self.nodes: list[Node] = [INPUT]
        self.opaque: dict[int, Foreign] = {}
        self.branches: list[Foreign] = []
        self.conditions: dict[int, Condition] = {}
        self.heads: dict[int, str] = {}
        self.calls_behind: dict[int, str] = {}
        self._dtype = x.dtype
        self._values: dict[int, Value] = {id(x): Value(0)}
        self._kept: list[Tensor] = [x]  # alive, so that no id is used twice
        self._overwritten: dict[int, Foreign] = {}
        self._lost: set[int] = set()  # nodes behind a foreign operation
        self._names = names
        self._stack: list[torch.nn.Module] = []
        self._translations = translations

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """That torch need not guard this mode against its compiler, for which it would load all of that."""
        return False

    @cached_property
    def gates(self) -> Gates:
        """The choices by the sign of a value, for modules that make one."""
        return Gates(self.nodes, lambda op, *inputs: self.emit(op, inputs), self._dtype)

    def value(self, tensor: Tensor) -> Value | None:
        """What is known of a tensor, or None for a constant."""
        return self._values.get(id(tensor))

    def emit(self, op: Affine | Bend, inputs: Sequence[int]) -> int:
        """Append a node and return its number."""
        self.nodes.append(Node(op, tuple(inputs), self.path))
        return len(self.nodes) - 1

    def emit_foreign(self, reason: Unreadable, inputs: Sequence[int]) -> int:
        """Append a node that stands for a foreign operation and return its number."""
        number = self.emit(_FOREIGN, inputs)
        self.opaque[number] = self._foreign(reason)
        return number

    def _foreign(self, reason: Unreadable) -> Foreign:
        return obstacle(reason, self._stack[-1] if self._stack else None, self.path)

    def before_head(self, node: int) -> int:
        """The scores that a node has made of others without a change of labels, or the node itself."""
        return self.nodes[node].inputs[0] if node in self.heads else node

    @property
    def path(self) -> str:
        """The module that is running; one without a path of its own is called as the one that calls it."""
        return next((self._names[m] for m in reversed(self._stack) if m in self._names), "")

    @contextmanager
    def paths(self) -> Iterator[None]:
        """Follow which module runs, through hooks that belong to no module."""
        thread = threading.get_ident()  # such hooks see the modules of all threads

        def enter(module: torch.nn.Module, args: Any) -> None:
            if threading.get_ident() == thread:
                self._stack.append(module)

        def leave(module: torch.nn.Module, args: Any, out: Any) -> None:
            if threading.get_ident() == thread:
                self._stack.pop()

        hooks = [register_module_forward_pre_hook(enter), register_module_forward_hook(leave)]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation and note what it does to recorded tensors."""
        kwargs = kwargs or {}
        tensors = list(_tensors((args, kwargs)))
        read = [t for t in tensors if id(t) in self._values]
        overwritten = (self._overwritten.get(_storage(t)) for t in tensors if id(t) not in self._values)
        stale = next((f for f in overwritten if f is not None), None)
        name = func.overloadpacket.__name__
        is_random = torch.Tag.nondeterministic_seeded in func.tags and kwargs.get("generator") is None
        seen = self._before_write(args) if name.endswith("_") and (read or stale or is_random) else args
        out = func(*args, **kwargs)
        if (not read and not stale and not is_random) or name in _BY_SHAPE:
            return out
        writes = name.endswith("_") or "out" in kwargs
        call = Call(self, name.rstrip("_") or name, func, seen, kwargs, out, self.n_points)
        if name in _FETCHES:
            self.branches.append(
                self._foreign(NotSupportedYet("a branch", "on the data (a number is read from a tensor)"))
            )
            return out
        results = self._translate(call, stale=stale)
        outs = list(_tensors(out))
        if writes and outs:
            self._spread_write(outs[0], results[0])
        for tensor, value in zip(outs, results, strict=False):
            if value is not None:
                self._values[id(tensor)] = value
                self._kept.append(tensor)
        return out

    def _before_write(self, args: Sequence[Any]) -> Sequence[Any]:
        """The arguments of a call that writes into the first, as they are before that."""
        first = args[0]
        value = self.value(first)
        kept: Tensor = first.clone() if value is None else first.detach()
        if value is not None:
            self._values[id(kept)] = value
            self._kept.append(kept)
        return (kept, *args[1:])

    def _translate(self, call: Call, *, stale: Foreign | None) -> list[Value | None]:
        outs = list(_tensors(call.out))
        translation = self._translations.get(call.name)
        read = [v.node for t in _tensors((call.args, call.kwargs)) if (v := self.value(t)) is not None]
        if translation is not None and any(self._is_lost(i, call.name) for i in read):
            number = self.emit(_FOREIGN, read)  # what is in the way has been named already
            self._lost.add(number)
            self.calls_behind[number] = call.name
            return [Value(number)] * len(outs)
        try:
            if stale is not None or "out" in call.kwargs:
                raise WritesEntries()
            if translation is None:
                raise unknown(call.name)
            result = self._moved_before_head(call, translation) or translation(call)
            return result if isinstance(result, list) else [result] + [None] * (len(outs) - 1)
        except Unreadable as reason:
            return self._opaque(call, reason, outs, stale)
        except (AttributeError, IndexError, TypeError, ValueError, RuntimeError):
            # an overload that a translation does not expect is as foreign as an unknown operation
            return self._opaque(call, NotSupportedYet(called(call.name)), outs)

    def _is_lost(self, node: int, name: str) -> bool:
        return node in self._lost or (node in self.heads and name not in _BEHIND_HEADS)

    def _moved_before_head(self, call: Call, translation: CallTranslation) -> "list[Value | None] | None":
        """A call that moves entries behind a function of each entry, as if it came before; None if it is not.

        One entry of a softmax of two scores is the sigmoid of their difference.
        """
        tensors = [t for t in _tensors(call.args[0]) if call.name in _MOVES.split()]
        values = [v for t in tensors if (v := self.value(t)) is not None]
        heads = {self.heads.get(v.node) for v in values}
        if len(values) < len(tensors) or len(heads) != 1:
            return None
        [head], origin = heads, self.opaque.get(values[0].node)
        inner = [v.at(self.before_head(v.node)) for v in values]
        if head == "softmax" and call.name in _SLICES.split() and tensors[0].shape[-1] == 2:
            flipped = self.emit(affine.structural("flip", lambda z: z.flip(-1)), (inner[0].node,))
            difference = self.emit(affine.subtract(), (inner[0].node, flipped))
            inner, head = [inner[0].at(difference)], "sigmoid"
        if head not in INCREASING or origin is None:
            return None
        held = {id(t): v for t, v in zip(tensors, values, strict=True)}
        self._values.update({id(t): v for t, v in zip(tensors, inner, strict=True)})
        try:
            result = translation(call)
        finally:
            self._values.update(held)
        stand_ins = []
        for value in result if isinstance(result, list) else [result]:
            assert value is not None
            stand_in = self.emit(_FOREIGN, (value.node,))
            self.opaque[stand_in], self.heads[stand_in] = origin, head
            stand_ins.append(value.at(stand_in))
        return list(stand_ins)

    def _opaque(
        self, call: Call, reason: Unreadable, outs: list[Tensor], origin: Foreign | None = None
    ) -> list[Value | None]:
        """A node that stands for a call; `origin` is what is named instead of it."""
        read = [v.node for t in _tensors((call.args, call.kwargs)) if (v := self.value(t)) is not None]
        # the call is named, not the comparison that it reads
        inputs = [i for i in read if i not in self.conditions]
        number = self.emit_foreign(reason, inputs)
        self.opaque[number] = origin or self.opaque[number]
        self._lost.add(number)
        return [Value(number)] * len(outs)

    def _spread_write(self, written: Tensor, value: Value | None) -> None:
        """After a write in place, every other view of the same memory holds something else."""
        storage = _storage(written)
        was_constant = id(written) not in self._values
        for tensor in self._kept:
            if tensor is written or _storage(tensor) != storage:
                continue
            if tensor.shape == written.shape and tensor.stride() == written.stride() and value is not None:
                self._values[id(tensor)] = value
            else:
                number = self.emit_foreign(WritesEntries(), ())
                self._values[id(tensor)] = Value(number)
        if was_constant:
            self._overwritten[storage] = self._foreign(WritesEntries())
            self._kept.append(written)


def _tensors(tree: Any) -> Iterator[Tensor]:
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, list | tuple):
        for item in tree:
            yield from _tensors(item)
    elif isinstance(tree, dict):
        yield from _tensors(list(tree.values()))


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
