"""Files that are written whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A draft beside `path` to write into, which takes the place of `path` when the block ends well.

    A full disk, an error or a kill leaves what was there before. The draft has the ending of `path`, by which
    some libraries choose a format. What is no plain file (a link, a device, a pipe) is written in place.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.txt"
    ...     with replacing(path) as draft:
    ...         _ = draft.write_text("whole")
    ...     path.read_text(), len(list(path.parent.iterdir()))
    ('whole', 1)
    """
    path = Path(path)
    if path.is_symlink() or (path.exists() and not path.is_file()):
        yield path
        return
    draft = path.with_name(f".{path.stem}-{uuid4().hex[:8]}{path.suffix}")
    try:
        yield draft
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
