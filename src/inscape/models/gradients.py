"""Gradients for a measure, whatever its caller has switched off."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gradients() -> Iterator[None]:
    """A time in which torch records gradients and makes ordinary tensors, though its caller has said not to.

    For callers inside `torch.no_grad()` or `torch.inference_mode()`. Enter it in a function that ends by
    itself, not in a generator: one that is given up would set the caller's mode back much later, when it is
    collected.
    """
    torch = sys.modules.get("torch")  # before it is loaded nothing can have been switched off
    if torch is None:
        yield
        return
    with torch.inference_mode(False), torch.enable_grad():
        yield
