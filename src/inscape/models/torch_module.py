"""torch modules: evaluated in eval mode and left exactly as they were found, also by several threads."""

import copy
import hashlib
import inspect
import itertools
import math
import threading
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from inscape.arrays import Array, Shape
from inscape.errors import ModelError
from inscape.models.base import Model, layout_advice
from inscape.models.device import Device, MixedPrecision, as_device, lacks_float64
from inscape.models.fingerprints import Held, checksum
from inscape.models.from_torch import N_POINTS, trace
from inscape.models.graph import Graph
from inscape.models.graph.trace import Trace
from inscape.models.module_wrappers import OutputModule
from inscape.models.outputs import Output, described, labels_of, outputs_of, scores_among, squeezed
from inscape.seeding import random_state_kept


class TorchModel(Model):
    """A `torch.nn.Module` that maps a batch (n, ...) to scores (n, c), (n, 1) or (n,), or to integer labels.

    One output is a binary score, whose label is `score > 0`; if it comes out of a final sigmoid, the score is
    the output minus 1/2. Of a module that returns several things `output` picks one.

    Without `device` the module runs where its parameters are. With another device a copy runs there,
    since moving the module itself would be seen by its owner.

    Attributes:
        device: where the module runs, as torch names it.
        runs_on: what is known of the memory there.
        mixed: how far half precision can be trusted, if labels are computed with it.
    """

    max_batch = 1024

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        input_shape: Shape | None = None,
        device: str | torch.device | None = None,
        batch_size: int | None = None,
        fixed_batch: int | None = None,
        output: Output | None = None,
    ) -> None:
        super().__init__(type(module).__name__, input_shape=input_shape, batch_size=batch_size, output=output)
        _check_layers(module)
        module = module if output is None else OutputModule(module, output)
        tensors = [*module.parameters(), *module.buffers()]
        home = tensors[0].device if tensors else torch.device("cpu")
        self.device = home if device is None else as_device(device)
        if lacks_float64(self.device) and any(t.dtype == torch.float64 for t in tensors):
            raise ModelError(
                f"{self.name} has parameters in float64, in which {self.device.type} computes nothing: "
                "convert it with .float(), or leave out device"
            )
        self.module = module if self.device == home else copy.deepcopy(module).to(self.device)
        self.fixed_batch = fixed_batch
        self._held = Held[tuple[Any, ...]]()
        self._coarse: tuple[tuple[Any, ...] | None, str | None] | None = None
        self._fingerprint: tuple[tuple[Any, ...], str] | None = None
        self._traced: tuple[tuple[Any, ...], Trace] | None = None
        self._seen: Array | None = None
        self._guessed: tuple[tuple[Any, ...], Shape | None] | None = None
        self.torch_dtype = next((t.dtype for t in tensors if t.dtype.is_floating_point), torch.float32)
        self.dtype = np.dtype(np.float64 if self.torch_dtype == torch.float64 else np.float32)
        self.runs_on = Device(self.device)
        self.batch_bytes = self.runs_on.batch_bytes()
        self.mixed: MixedPrecision | None = None

    @property
    def structure(self) -> str:  # type: ignore[override]
        """Piecewise-affine if the module's graph holds no foreign operation, else black-box.

        Without `input_shape` the shape is that of the points seen last or of the graph recorded last, or one
        that fits the first weights (a square for images); a module that takes none of these is a black box
        until it has seen points.
        """
        return "piecewise-affine" if self._has_graph() else "black-box"

    def known_shape(self) -> Shape | None:
        """The shape that was given or seen last, else that of the graph, or the first guess that fits."""
        if self.input_shape is not None or self._seen is not None:
            return self.input_shape if self._seen is None else self._seen.shape[1:]
        state = self._state()
        if self._traced is not None and self._traced[0][1:] == state:
            recorded: Shape = self._traced[0][0]
            return recorded
        if self._guessed is None or self._guessed[0] != state:
            self._guessed = state, self._first_fitting()
        return self._guessed[1]

    def _first_fitting(self) -> Shape | None:
        """The first guess that the module takes."""
        with self.session():
            for shape in itertools.islice(guessed_shapes(self.module), MOST_GUESSES):
                try:
                    self.trace(shape)
                except ModelError:
                    continue
                return shape
        return None

    def network(self, input_shape: Shape) -> Graph:
        """The piecewise-affine graph of the module as it is now."""
        return self.trace(self.input_shape or input_shape).require(self.name)

    def trace(self, input_shape: Shape) -> Trace:
        """The module's graph or its foreign operations, recorded anew when weights or layers have changed.

        It is recorded at random points; if it does not take these, on points seen before, or on zeros.
        """
        state = (input_shape, *self._state())
        traced = self._traced
        if traced is None or traced[0] != state:
            seen = None if self._seen is None or self._seen.shape[1:] != input_shape else self._seen
            try:
                traced = state, self._recorded(input_shape, None)
            except ModelError as error:
                points = np.zeros((N_POINTS, *input_shape)) if seen is None else seen
                try:
                    traced = state, self._recorded(input_shape, torch.from_numpy(points))
                except ModelError:
                    raise error from None
            self._traced = traced
        return traced[1]

    def _recorded(self, input_shape: Shape, points: torch.Tensor | None) -> Trace:
        x = np.empty((self.fixed_batch or 1, *input_shape))
        with self.session(), self._explained(x), one_at_a_time(self.module), torch.inference_mode(False):
            return trace(self.module, input_shape, n_points=self.fixed_batch, points=points)

    @property
    def coarse_precision(self) -> str | None:
        """The name bfloat16 or float16 if a parameter is so, else None."""
        known, coarse = self._held.contents, self._coarse
        if known is None or coarse is None or coarse[0] != known:
            kinds = {t.dtype for t in self.module.parameters()} & {torch.bfloat16, torch.float16}
            name = None if not kinds else str(min(kinds, key=str)).removeprefix("torch.")
            coarse = self._coarse = known, name
        return coarse[1]

    def unchanged(self) -> AbstractContextManager[None]:
        """A time in which the weights are taken to stay as they are; it may overlap with that of a thread."""
        return self._held.during(self._state())

    def _state(self) -> tuple[Any, ...]:
        known = self._held.contents
        return tuple(_contents(self.module)) if known is None else known

    def session(self) -> AbstractContextManager[None]:
        """Eval mode without gradients; everything observable is put back on leaving."""
        return untouched(self.module)

    def fingerprint(self) -> str:
        """A hash of the parameters and buffers, their names and the module's printed structure."""
        state = self._state()
        if self._fingerprint is None or self._fingerprint[0] != state:
            self._fingerprint = (state, self._marked(self._digest()))
        return self._fingerprint[1]

    def _digest(self) -> str:
        digest = hashlib.blake2b(repr(self.module).encode(), digest_size=8)
        for key, value in self.module.state_dict().items():
            digest.update(key.encode())
            if isinstance(value, torch.Tensor):
                digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def _call(self, x: Array, *, with_scores: bool) -> tuple[Array, Array | None]:
        if self.mixed is not None:
            scores = self.mixed.scores(x, lambda b: self._scores(b, autocast=True), self._scores)
            return labels_of(scores, self.name), scores if with_scores else None
        out = self._returned(x)
        if not out.dtype.is_floating_point:
            labels = out.numpy()
            return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels, None
        return self._by_own_rule(_numbers(out), x.shape[1:], with_scores)

    def _scores(self, x: Array, autocast: bool = False) -> Array:
        """Scores in one precision, by the module's own rule."""
        out = self._returned(x, autocast)
        if not out.dtype.is_floating_point:
            raise ModelError(f"{self.name} returns labels, no scores that half precision could be trusted by")
        scores = self._by_own_rule(_numbers(out), x.shape[1:], True)[1]
        assert scores is not None
        return scores

    def use_autocast(self) -> None:
        """Compute labels with torch's autocast from now on, and in full precision near boundaries."""
        if self.fixed_batch is not None:
            raise ModelError(
                f"{self.name} takes batches of {self.fixed_batch} points only, and autocast evaluates some "
                "of them again: leave autocast out"
            )
        self.mixed = MixedPrecision()

    def batch_length(self, point_size: int) -> int:
        """As `Model.batch_length`, and no longer than the memory of the device was seen to take."""
        length, most = super().batch_length(point_size), self.runs_on.most_points
        return length if most is None or self.fixed_batch is not None else min(length, most)

    def _outputs(self, x: Array) -> Array:
        return _numbers(self._returned(x))

    def _returned(self, x: Array, autocast: bool = False) -> torch.Tensor:
        """The tensor of scores or labels, in the memory of the processor."""
        self._seen = x[: self.fixed_batch or N_POINTS].copy()
        if self.fixed_batch is not None:
            return self._forward(x, autocast)
        batches = self.runs_on.in_memory(lambda batch: self._forward(batch, autocast), x, self.name)
        return batches[0] if len(batches) == 1 else torch.cat(batches)

    def _forward(self, x: Array, autocast: bool) -> torch.Tensor:
        """The tensor of scores or labels of a batch that fits into memory."""
        with (
            one_at_a_time(self.module),
            torch.inference_mode(False),
            torch.no_grad(),
            torch.autocast(self.device.type) if autocast else nullcontext(),
        ):
            returned = self.module(self.runs_on.send(x, self.torch_dtype))
            out = scores_among(returned)
            if isinstance(out, torch.Tensor):  # before the next call writes over what was sent
                out = out.cpu()
        if not isinstance(out, torch.Tensor):
            raise ModelError(
                f"{self.name} returned {described(returned)}: choose the tensor of scores (n, c) by "
                f"output=..., such as output={_first_name(returned)!r}"
            )
        if out.ndim == 0 or len(out) != len(x):
            raise ModelError(
                f"{self.name} returned {described(out)} for {len(x)} points: expected scores ({len(x)}, c) "
                f"or labels ({len(x)},)"
            )
        return out

    def ending(self, input_shape: Shape) -> str | None:
        """What the recorded forward pass ends in; None if it was not seen."""
        try:
            return self.trace(input_shape).ending
        except ModelError:
            return None

    def _bytes_per_point(self, size: int) -> int:
        """Bytes of the input or of the first convolution's output, usually a network's largest tensor."""
        layers = (m for m in self.module.modules() if isinstance(m, torch.nn.Conv2d | torch.nn.Conv1d))
        filters = (p for p in self.module.parameters() if p.ndim > 2)  # an exported module has no layers
        if (layer := next(layers, None)) is not None:
            size = max(size, size // layer.in_channels * layer.out_channels // math.prod(layer.stride))
        elif (weight := next(filters, None)) is not None:
            size = max(size, size // weight.shape[1] * weight.shape[0])
        return size * self.dtype.itemsize

    def _layout_hint(self, shape: Shape) -> str:
        """That the points are channel-last, also where the network does not take their size."""
        hint = super()._layout_hint(shape)
        first = next((m for m in self.module.modules() if isinstance(m, torch.nn.Conv2d)), None)
        if hint or first is None or len(shape) != 3:
            return hint
        if first.in_channels == shape[0] or first.in_channels != shape[-1]:
            return ""
        return f"; its first layer takes {shape[-1]} channels, the last axis here: {layout_advice('HWC')}"

    def _input_hint(self, error: BaseException) -> str:
        missing = _missing_arguments(self.module)
        if missing and isinstance(error, TypeError):
            return (
                f"; its forward needs {', '.join(missing)} too: wrap a small module whose forward takes the "
                "points alone and calls this one with the rest held fixed, which keeps it exact"
            )
        table = next((p for p, m in self.module.named_modules() if isinstance(m, torch.nn.Embedding)), None)
        if table is not None and isinstance(error, IndexError | RuntimeError):
            return (
                f"; its Embedding {table!r} looks whole numbers up in a table, and there is nothing between "
                "them: embed the data first, and wrap a module of the layers behind it"
            )
        for layer in self.module.modules():
            if isinstance(layer, torch.nn.Linear):
                return f"; its first layer takes {layer.in_features} features" + super()._input_hint(error)
            if isinstance(layer, torch.nn.Conv1d | torch.nn.Conv2d | torch.nn.Conv3d):
                return f"; its first layer takes {layer.in_channels} channels" + super()._input_hint(error)
        return super()._input_hint(error)


def _missing_arguments(module: torch.nn.Module) -> list[str]:
    """What forward must be given besides the points."""
    try:
        arguments = list(inspect.signature(module.forward).parameters.values())[1:]
    except (TypeError, ValueError):  # a forward without a signature
        return []
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [a.name for a in arguments if a.default is inspect.Parameter.empty and a.kind not in kinds]


def _numbers(out: torch.Tensor) -> Array:
    """Scores as an array (n, k); axes of size one behind the second are dropped."""
    numbers = out.double() if out.dtype in (torch.float64, torch.int64, torch.int32) else out.float()
    return squeezed(numbers.numpy())  # numpy knows no bfloat16


def _first_name(returned: Any) -> Any:
    """The name or number of the first floating tensor among several things, for an example."""
    outputs = outputs_of(returned) or {}
    tensors = [k for k, v in outputs.items() if isinstance(v, torch.Tensor) and v.dtype.is_floating_point]
    first = next(iter(tensors or outputs), "name")
    return int(first) if first.isdigit() else first


SIDES = {1: (128, *range(1, 1025)), 2: (32, 28, 64, 224, *range(1, 257)), 3: tuple(range(1, 65))}
"""By the number of spatial axes, sides of inputs in the order in which they are tried."""


def guessed_shapes(module: torch.nn.Module) -> Iterator[Shape]:
    """Input shapes that the module may take: what it declares itself, or what its weights fit."""
    if isinstance(module, OutputModule):
        module = module.network
    declared = getattr(module, "input_shape", None)  # as Keras has it, with None for the batch
    if isinstance(declared, tuple) and all(isinstance(n, int) for n in declared[1:]):
        yield declared[1:]
    for layer in module.modules():
        if isinstance(layer, torch.nn.RNNBase):
            yield (N_STEPS_GUESSED, layer.input_size)
            return
    weight = next((p for p in module.parameters() if p.ndim > 1), None)
    if weight is not None and weight.ndim == 2:
        yield (weight.shape[1],)
    shapes = [*_images(module, weight), *_rows(module)]
    if isinstance(module, torch.jit.ScriptModule):  # it computes on its own tensors only
        yield from shapes[:4]
        return
    state = {k: v.detach().to("meta") for k, v in (*module.named_parameters(), *module.named_buffers())}
    yield from (shape for shape in shapes if _fits(module, state, shape))


def _images(module: torch.nn.Module, weight: torch.Tensor | None) -> Iterator[Shape]:
    """Shapes that a first convolution takes: channels first, then last, then without an axis for one."""
    if weight is None or weight.ndim < 3:
        return
    first = next((m for m in module.modules() if isinstance(m, torch.nn.modules.conv._ConvNd)), None)
    channels, n_axes = weight.shape[1] if first is None else first.in_channels, weight.ndim - 2
    sides = [(side,) * n_axes for side in SIDES.get(n_axes, ())]
    yield from ((channels, *side) for side in sides)
    yield from ((*side, channels) for side in sides)
    if channels == 1:
        yield from sides


def _rows(module: torch.nn.Module) -> Iterator[Shape]:
    """Rows of as many features as an axis of a parameter has; of few, if there are no parameters."""
    sizes = dict.fromkeys(n for p in module.parameters() for n in p.shape)
    yield from ((n,) for n in sizes or range(1, 33))


MOST_GUESSES = 4
"""Shapes that seem to fit and are tried."""
N_STEPS_GUESSED = 4
"""The length of sequences that recurrent layers are tried with: they take any."""


def _fits(module: torch.nn.Module, state: dict[str, torch.Tensor], shape: Shape) -> bool:
    """Whether the layers take a point of this shape; with tensors on "meta" nothing else is computed."""
    dtype = next((t.dtype for t in state.values() if t.is_floating_point()), torch.float32)
    x = torch.empty(2, *shape, device="meta", dtype=dtype)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are about our guess
            torch.func.functional_call(module, state, x)
    except (Exception, SystemExit):  # whatever a layer says of a shape that it does not take
        return False
    return True


def _check_layers(module: torch.nn.Module) -> None:
    """Raise an error for layers that make no function of a point: without values, or of the whole batch."""
    for path, m in module.named_modules():
        where = path or type(m).__name__
        for name, tensor in [*m._parameters.items(), *m._buffers.items()]:
            if isinstance(tensor, UninitializedParameter | UninitializedBuffer):
                raise ModelError(
                    f"{name} of the lazy layer {where} has no value yet: call the module once on a batch"
                )
            if tensor is not None and tensor.is_meta:
                raise ModelError(
                    f"{name} of {where} is on the meta device, where tensors have no values: give the module "
                    'memory with .to_empty(device="cpu") and load its weights with .load_state_dict(...)'
                )
        if isinstance(m, torch.nn.modules.batchnorm._BatchNorm) and m.running_mean is None:
            raise ModelError(
                f"{where} is a batch-norm without running statistics: what it predicts for a point depends "
                "on the rest of the batch, so that there are no regions to count"
            )


def _contents(module: torch.nn.Module) -> Iterator[tuple[Any, ...]]:
    """What identifies the function that a module computes: layers, plain attributes, checksums of tensors.

    Version counters would be cheaper, but writes through `.data` do not move them.
    """
    for m in module.modules():
        yield (id(m), type(m), len(m._forward_hooks), len(m._forward_pre_hooks))
        for name in [n for n in vars(m) if n not in _INTERNAL]:
            value = vars(m)[name]
            if isinstance(value, _PLAIN):
                yield (name, value)
            elif isinstance(value, torch.Tensor):
                yield (name, *_summary(value))
        for tensors in (m._parameters, m._buffers):
            for name, tensor in tensors.items():
                if tensor is not None:
                    yield (name, *_summary(tensor))


_PLAIN = (bool, int, float, complex, str, tuple)
_INTERNAL = frozenset(vars(torch.nn.Module()))


def _summary(tensor: torch.Tensor) -> tuple[torch.dtype, Shape, int]:
    """The type and shape of a tensor and a checksum of its contents."""
    try:
        array = tensor.detach().numpy()
    except (TypeError, RuntimeError):  # on another device, or of a type that numpy does not know
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        return tensor.dtype, tuple(tensor.shape), checksum(flat.view(torch.uint8).numpy())
    return tensor.dtype, array.shape, checksum(array)


@contextmanager
def untouched(module: torch.nn.Module) -> Iterator[None]:
    """Put `module` into eval mode and, on leaving, restore all that evaluation could change.

    The mode is set on each submodule directly: `eval()` may be overridden, and its inverse
    `train(mode)` cannot restore mixed modes. `no_grad`, set by the caller, and not `inference_mode`
    is used to evaluate, because a module may cache tensors that its owner later trains with.

    Sessions on one module, or on modules that share layers, may overlap in time: the first to come keeps the
    state and the last to go restores it. No lock is held in between, so that no two can wait for each other.
    """
    modules = list(module.modules())
    _OPEN.enter(modules)
    try:
        with random_state_kept():
            yield
    finally:
        _OPEN.leave(modules)


def eval_copy(module: torch.nn.Module) -> torch.nn.Module:
    """A private copy in eval mode; call it outside `inference_mode`, so that its tensors have gradients."""
    copied = copy.deepcopy(module)
    for m in copied.modules():
        m.training = False
    return copied


def one_at_a_time(module: torch.nn.Module) -> threading.RLock:
    """The lock to hold during one forward pass: a module may keep what it computes in its own attributes."""
    with _OPEN.lock:
        return _OPEN.passes.setdefault(module, threading.RLock())


class _Sessions:
    """The sessions that are open, in all threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.passes: WeakKeyDictionary[torch.nn.Module, threading.RLock] = WeakKeyDictionary()
        self._states: dict[int, _ModuleState] = {}
        self._n_sessions = 0
        self._world = ExitStack()

    def enter(self, modules: list[torch.nn.Module]) -> None:
        with self.lock:
            if self._n_sessions == 0:
                self._world.enter_context(_world_kept())
            self._n_sessions += 1
            for module in modules:
                state = self._states.get(id(module))
                if state is None:
                    state = self._states[id(module)] = _ModuleState(module)
                    state.set_eval()
                state.n_sessions += 1

    def leave(self, modules: list[torch.nn.Module]) -> None:
        with self.lock:
            self._n_sessions -= 1
            if self._n_sessions == 0:
                self._world.close()
            for module in modules:
                state = self._states[id(module)]
                state.n_sessions -= 1
                if state.n_sessions == 0:
                    del self._states[id(module)]
                    state.restore()


@contextmanager
def _world_kept() -> Iterator[None]:
    """What a module could change outside of itself: random states and the default precision."""
    dtype = torch.get_default_dtype()
    with random_state_kept():
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)


class _ModuleState:
    """Mode, buffers and tensor attributes of one submodule, and how many sessions need it in eval mode.

    Plain tensor attributes matter: the hooks of `weight_norm` and `spectral_norm` assign the weight anew in
    each forward pass, without gradients in ours.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module
        self.n_sessions = 0
        self.training = getattr(module, "training", None)  # frozen TorchScript has no mode
        self.attributes = {k: v for k, v in vars(module).items() if isinstance(v, torch.Tensor)}
        self.buffers = dict(module._buffers.items())
        self.values = {k: b.clone() for k, b in self.buffers.items() if b is not None}

    def set_eval(self) -> None:
        if self.training is not None:
            self.module.training = False

    def restore(self) -> None:
        if self.training is not None:
            self.module.training = self.training
        vars(self.module).update(self.attributes)
        now = dict(self.module._buffers.items())
        if now.keys() != self.buffers.keys() or any(now[k] is not b for k, b in self.buffers.items()):
            self.module._buffers.clear()
            self.module._buffers.update(self.buffers)
        for name, value in self.values.items():
            buffer = self.buffers[name]
            if buffer is not None and not _same(buffer, value):
                with torch.no_grad():
                    buffer.copy_(value)


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(torch.equal(a, b)) or bool(torch.allclose(a, b, rtol=0, atol=0, equal_nan=True))


_OPEN = _Sessions()
