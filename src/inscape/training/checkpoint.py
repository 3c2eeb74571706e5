"""A file from which a run that was killed goes on: what training has reached, written every few minutes."""

import io
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from inscape.arrays import Array
from inscape.errors import InscapeError, warn
from inscape.files import replacing

SECONDS_BETWEEN_WRITES = 120.0
"""Seconds between two writings."""
_PLAIN = "plain"

State = dict[str, Any]


class Checkpoint:
    """A file for the state of one run: arrays by name, the rest plain JSON.

    The file is replaced as a whole, so that a run that is killed while it writes finds the state before. What
    is written holds every bit of the state: a run that goes on ends where the uninterrupted one would.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint = Checkpoint(Path(folder) / "run", about={"seed": 0}, every=0.0)
    ...     checkpoint.load(), checkpoint.is_due()
    ...     checkpoint.save({"weights": np.ones(2), "step": 7})
    ...     checkpoint.load()["step"], Checkpoint(checkpoint.path, about={"seed": 1}).load()
    (None, True)
    (7, None)
    """

    def __init__(self, path: str | Path, *, about: Mapping[str, Any], every: float | None = None) -> None:
        """The file at `path` of the run that `about` tells from others, written after `every` seconds."""
        self.path = Path(path)
        self._about = json.loads(json.dumps(dict(about)))
        self._every = SECONDS_BETWEEN_WRITES if every is None else every
        self._written = time.monotonic()

    def is_due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self._written >= self._every

    def save(self, state: State) -> None:
        """Write the state; a warning if it cannot be written, for the run itself can go on."""
        arrays = {k: v for k, v in state.items() if isinstance(v, np.ndarray)}
        plain = {"about": self._about} | {k: v for k, v in state.items() if k not in arrays}
        buffer = io.BytesIO()
        text = np.frombuffer(json.dumps(plain, default=_as_plain).encode(), np.uint8)
        np.savez(buffer, **{_PLAIN: text}, **arrays)  # type: ignore[arg-type]
        try:
            with replacing(self.path) as draft:
                draft.write_bytes(buffer.getvalue())
        except OSError as error:
            warn(f"cannot write {self.path}, from which the run could go on: {error.strerror or error}")
        self._written = time.monotonic()

    def load(self) -> State | None:
        """What was written last; None if nothing was, or by another run, or if it cannot be read."""
        if not self.path.is_file():
            return None
        try:
            with np.load(io.BytesIO(self.path.read_bytes()), allow_pickle=False) as content:
                arrays: dict[str, Array] = {k: content[k] for k in content.files}
            plain = json.loads(arrays.pop(_PLAIN).tobytes())
            about = plain.pop("about")
        except Exception as error:  # whatever a damaged archive raises
            warn(f"{self.path} is damaged, so the run starts anew: {error}")
            return None
        return {**plain, **arrays} if about == self._about else None


def _as_plain(value: Any) -> Any:
    """A number of numpy as one of Python."""
    return value.item()


def restored(arrays: Mapping[str, Array], state: State) -> None:
    """Put the arrays of a state into those of the run, which must be of the same kind."""
    for name, array in arrays.items():
        saved = state[name]
        if saved.shape != array.shape or saved.dtype != array.dtype:
            raise InscapeError(f"the checkpoint has {name} of {saved.shape}, the run of {array.shape}")
        array[...] = saved
