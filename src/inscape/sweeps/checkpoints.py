"""Where the long tasks of a study leave what they have reached, so that a killed one goes on from there.

The folder stands beside the store; a task has one file in it, which is deleted when its row is stored. A task
on another machine that does not share the folder has none, and starts anew.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from inscape.sweeps.study import Configuration
from inscape.sweeps.tasks import hash_of

if TYPE_CHECKING:
    from inscape.training.checkpoint import Checkpoint

_folder: ContextVar[Path | None] = ContextVar("folder of checkpoints", default=None)


def checkpoint_of(configuration: Configuration) -> "Checkpoint | None":
    """The checkpoint of the task that is worked on, by its configuration with seeds; None outside of a study.

    >>> checkpoint_of({"n": 1, "seed": 0, "replicate_seed": 0}) is None
    True
    """
    from inscape import __version__
    from inscape.training.checkpoint import Checkpoint

    folder = _folder.get()
    if folder is None or not folder.is_dir():
        return None
    return Checkpoint(_path(folder, configuration), about={"inscape": __version__})


@contextmanager
def checkpoints_in(folder: str | Path | None) -> Iterator[None]:
    """Let the tasks that are worked on in the block keep their checkpoints in a folder."""
    token = _folder.set(None if folder is None else Path(folder))
    try:
        yield
    finally:
        _folder.reset(token)


def forget(folder: Path, configuration: Configuration) -> None:
    """Delete the checkpoint of a task, if it has one."""
    with suppress(OSError):
        _path(folder, configuration).unlink(missing_ok=True)


def _path(folder: Path, configuration: Configuration) -> Path:
    return folder / f"{hash_of(configuration)}.npz"
