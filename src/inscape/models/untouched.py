"""Evaluating a torch module without leaving a trace on it."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from inscape.seeding import random_state_kept


@contextmanager
def untouched(module: torch.nn.Module) -> Iterator[None]:
    """Put `module` into eval mode and, on leaving, restore all that evaluation could change.

    The mode is set on each submodule directly: `eval()` may be overridden, and its inverse
    `train(mode)` cannot restore mixed modes. `no_grad`, set by the caller, and not `inference_mode`
    is used to evaluate, because a module may cache tensors that its owner later trains with.
    """
    kept = [_State(m) for m in module.modules()]
    dtype = torch.get_default_dtype()
    with random_state_kept():
        try:
            for state in kept:
                state.set_eval()
            yield
        finally:
            torch.set_default_dtype(dtype)
            for state in kept:
                state.restore()


class _State:
    """Mode, buffers and tensor attributes of one submodule.

    Plain tensor attributes matter: the hooks of `weight_norm` and `spectral_norm` assign the weight anew in
    each forward pass, without gradients in ours.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module
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
