"""Record what a torch module does to one small batch, as nodes of the graph.

The module runs once, on a few rows of noise, under a dispatch mode that sees every ATen operation: the
vocabulary that torch.export uses, but without symbolic shapes, so that no Python construct stands in the way
and the record costs one forward pass. What depends on the input becomes nodes; everything else (weights and
what is computed from them) is a constant. The batch axis stays free because each operation is admitted only
if it treats rows alike, and a branch on data (`if x.sum() > 0`) is seen, since it must fetch a number from a
tensor.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

from inscape.models.graph.affine import Affine, identity
from inscape.models.graph.network import INPUT, Foreign, Node, NotPiecewiseAffine
from inscape.models.graph.piecewise import Bend

_FOREIGN = identity()
"""Holds the place of a foreign operation: a graph that needs one is refused."""
# these read only the shape of their argument
_BY_SHAPE = frozenset(["zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"])


@dataclass(frozen=True)
class Value:
    """A recorded tensor: its node, and whether its first axis is the batch axis merged with the next.

    A merged tensor (n k, ...) stands for rows of shape (k, ...); `Linear` on (n, k, d) makes one.
    """

    node: int
    merged: bool = False


@dataclass
class Call:
    """One ATen call whose arguments depend on the input, as a translation sees it."""

    recorder: "Recorder"
    name: str
    function: Any
    args: Sequence[Any]
    kwargs: dict[str, Any]
    out: Any
    n_rows: int

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """An argument given by position or by name."""
        return self.args[position] if len(self.args) > position else self.kwargs.get(name, default)

    def value(self, tensor: Any) -> Value | None:
        """What is known of a tensor: None for a constant or a number."""
        return self.recorder.value(tensor) if isinstance(tensor, Tensor) else None

    def unmerged(self, tensor: Any) -> int:
        """The node of a tensor whose first axis is the batch axis alone."""
        value = self.value(tensor)
        if value is None or value.merged:
            raise NotPiecewiseAffine(self.name)
        return value.node

    def constant(self, value: Any, n_axes: int) -> Tensor:
        """A number or constant tensor as it broadcasts against rows of a tensor with `n_axes` axes in all."""
        if not isinstance(value, Tensor):
            return torch.tensor(float(value), dtype=torch.float64)
        constant = snapshot(value)
        if constant.ndim < n_axes:
            return constant
        if constant.ndim > n_axes or not torch.equal(constant, constant[:1].expand_as(constant)):
            raise NotPiecewiseAffine(f"{self.name} with a constant that differs from row to row")
        return constant[0]

    def emit(self, op: Affine | Bend, *inputs: int) -> int:
        """A new node."""
        return self.recorder.emit(op, inputs)


Translation = Callable[[Call], Value | list[Value | None]]


def snapshot(tensor: Tensor) -> Tensor:
    """A private copy on the CPU: later training does not change a graph that was recorded before."""
    return tensor.detach().to("cpu", copy=True)


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Collects nodes while a module runs.

    Args:
        x: the batch that the module is about to be called with; node 0.
        names: module paths, for messages.
        translations: how each ATen operation becomes nodes, by name without overload.
    """

    def __init__(
        self, x: Tensor, names: dict[torch.nn.Module, str], translations: dict[str, Translation]
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.n_rows = len(x)
        self.nodes: list[Node] = [INPUT]
        self.opaque: dict[int, Foreign] = {}
        self.branches: list[Foreign] = []
        self._values: dict[int, Value] = {id(x): Value(0)}
        self._kept: list[Tensor] = [x]  # alive, so that no id is used twice
        self._overwritten: set[int] = set()
        self._names = names
        self._stack: list[str] = []
        self._translations = translations

    def value(self, tensor: Tensor) -> Value | None:
        """What is known of a tensor, or None for a constant."""
        return self._values.get(id(tensor))

    def emit(self, op: Affine | Bend, inputs: Sequence[int]) -> int:
        """Append a node and return its number."""
        self.nodes.append(Node(op, tuple(inputs), self.path))
        return len(self.nodes) - 1

    def emit_foreign(self, operation: str, inputs: Sequence[int]) -> int:
        """Append a node that stands for a foreign operation and return its number."""
        number = self.emit(_FOREIGN, inputs)
        self.opaque[number] = Foreign(operation, self.path)
        return number

    @property
    def path(self) -> str:
        """The module that is running."""
        return self._stack[-1] if self._stack else ""

    @contextmanager
    def paths(self) -> Iterator[None]:
        """Follow which module runs, through hooks that belong to no module."""

        def enter(module: torch.nn.Module, args: Any) -> None:
            self._stack.append(self._names.get(module, self.path))

        def leave(module: torch.nn.Module, args: Any, out: Any) -> None:
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
        stale = any(_storage(t) in self._overwritten and id(t) not in self._values for t in tensors)
        out = func(*args, **kwargs)
        name = func.overloadpacket.__name__
        if (not read and not stale) or name in _BY_SHAPE:
            return out
        writes = name.endswith("_") or "out" in kwargs
        call = Call(self, name.rstrip("_") or name, func, args, kwargs, out, self.n_rows)
        if name in ("_local_scalar_dense", "is_nonzero"):
            self.branches.append(Foreign("a branch on the data (a number is read from a tensor)", self.path))
            return out
        results = self._translate(call, stale=stale or "out" in kwargs)
        outs = list(_tensors(out))
        if writes and outs:
            self._spread_write(outs[0], results[0])
        for tensor, value in zip(outs, results, strict=False):
            if value is not None:
                self._values[id(tensor)] = value
                self._kept.append(tensor)
        return out

    def _translate(self, call: Call, *, stale: bool) -> list[Value | None]:
        outs = list(_tensors(call.out))
        try:
            translation = self._translations.get(call.name)
            if translation is None or stale:
                raise NotPiecewiseAffine("a write into part of a tensor" if stale else call.name.lstrip("_"))
            result = translation(call)
            return result if isinstance(result, list) else [result] + [None] * (len(outs) - 1)
        except (NotPiecewiseAffine, AttributeError, IndexError, TypeError, ValueError) as reason:
            # an overload that a translation does not expect is as foreign as an unknown operation
            what = str(reason) if isinstance(reason, NotPiecewiseAffine) else call.name.lstrip("_")
            inputs = [v.node for t in _tensors((call.args, call.kwargs)) if (v := self.value(t)) is not None]
            return [Value(self.emit_foreign(what, inputs))] * len(outs)

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
                number = self.emit_foreign("a write into part of a tensor", ())
                self._values[id(tensor)] = Value(number)
        if was_constant:
            self._overwritten.add(storage)
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
