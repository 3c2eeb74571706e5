"""How a model is known again: short hashes of what it computes, and times in which it is taken to stay."""

import hashlib
import marshal
import pickle
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import numpy as np

from inscape.arrays import Array

Contents = TypeVar("Contents")
_COUNTING = threading.Lock()  # of all: a model with a lock of its own could not be pickled


class Held(Generic[Contents]):
    """What a model holds, kept in times in which nobody changes it so that it need not be looked up again.

    Attributes:
        contents: what it holds; None at other times.
    """

    def __init__(self) -> None:
        self.contents: Contents | None = None
        self._n_times = 0

    @contextmanager
    def during(self, contents: Contents) -> Iterator[None]:
        """A time in which these are the contents; it may overlap with that of a thread."""
        with _COUNTING:
            self.contents = contents if self._n_times == 0 else self.contents
            self._n_times += 1
        try:
            yield
        finally:
            with _COUNTING:
                self._n_times -= 1
                self.contents = None if self._n_times == 0 else self.contents


def short_hash(content: bytes) -> str:
    """Sixteen digits that change with the content.

    >>> short_hash(b"a"), short_hash(b"b")
    ('40f89e395b66422f', '8472c2e34d854f75')
    """
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def checksum(array: Array) -> int:
    """A 64-bit number of this process that changes, but by chance, when any byte of the array does.

    Python's hash of bytes (SipHash) passes gigabytes in a second, and nothing has to be compiled for it.

    >>> a = np.zeros(10)
    >>> before = checksum(a)
    >>> a[3] = 1e-300
    >>> checksum(a) == before
    False
    """
    return hash(array.tobytes())


def code_fingerprint(function: Any) -> str:
    """A short hash of a function's name and, if it is Python, of its code, defaults and closure."""
    name = getattr(function, "__name__", type(function).__name__)
    digest = hashlib.blake2b(name.encode(), digest_size=8)
    if hasattr(function, "__code__"):
        captured = [c.cell_contents for c in function.__closure__ or ()]
        digest.update(marshal.dumps(function.__code__))
        _add_to(digest, (function.__defaults__, function.__kwdefaults__, captured))
    return digest.hexdigest()


def _add_to(digest: Any, value: Any) -> None:
    """Add a value to a hash: every number of an array, of which `repr` shows a few only."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype} {value.shape}".encode())
        digest.update(np.ascontiguousarray(value).view(np.uint8).data if value.size else b"")
    elif isinstance(value, list | tuple):
        digest.update(f"{type(value).__name__} {len(value)}".encode())
        for item in value:
            _add_to(digest, item)
    elif isinstance(value, dict):
        digest.update(f"dict {len(value)}".encode())
        for item in value.items():
            _add_to(digest, item)
    else:
        digest.update(repr(value).encode())


def estimator_fingerprint(estimator: Any) -> str:
    """A short hash of a fitted estimator."""
    try:
        content = pickle.dumps(estimator)
    except Exception:  # an estimator may hold what cannot be pickled; the name is then all we have
        content = repr(estimator).encode()
    return short_hash(content)
