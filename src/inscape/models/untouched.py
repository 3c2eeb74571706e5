"""Evaluating a torch module without leaving a trace on it, from several threads if need be."""

import copy
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from weakref import WeakKeyDictionary

import torch

from inscape.seeding import random_state_kept


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
        self._states: dict[int, _State] = {}
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
                    state = self._states[id(module)] = _State(module)
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


class _State:
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
