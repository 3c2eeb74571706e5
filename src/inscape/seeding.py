"""Randomness: one seed per call, resolved once and recorded; no global generator is ever touched."""

import operator
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np

from inscape.errors import InscapeError

RandomState = int | np.random.Generator | None


def as_seed(random_state: RandomState) -> int:
    """The integer seed that stands for `random_state`, to be recorded in results.

    An integer is its own seed; a generator is asked for one (so two calls differ); None draws a
    fresh one from the operating system.

    >>> as_seed(7)
    7
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> 1)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    try:
        seed = operator.index(random_state)
    except TypeError:
        seed = -1
    if seed < 0:
        raise InscapeError(
            f"random_state={random_state!r} is not a seed: give a non-negative integer, "
            "a numpy.random.Generator, or None"
        )
    return seed


def as_generator(random_state: RandomState) -> np.random.Generator:
    """A generator that only the caller uses, made from `as_seed(random_state)`."""
    return np.random.default_rng(as_seed(random_state))


@contextmanager
def random_state_kept(torch_seed: int | None = None) -> Iterator[None]:
    """Put the global random states of Python, numpy and torch back on leaving, whatever happened inside.

    Args:
        torch_seed: what torch's global state is inside, for code that draws from it and must repeat.
    """
    torch = sys.modules.get("torch")  # nothing can draw from torch before it is loaded
    numpy_state = np.random.get_state()  # noqa: NPY002 - the caller's state, kept as it was
    python_state = random.getstate()
    with nullcontext() if torch is None else torch.random.fork_rng():
        if torch is not None and torch_seed is not None:
            torch.random.default_generator.manual_seed(torch_seed)
        try:
            yield
        finally:
            np.random.set_state(numpy_state)  # noqa: NPY002
            random.setstate(python_state)
