"""Files that are written whole or not at all, and zip archives that are measured before they are unpacked."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from inscape.errors import InscapeError
from inscape.memory import in_bytes, machine_memory

MOST_EXPANSION = 200
"""How many times its packed size a part may take: real data pack up to fifty times, a bomb a thousand."""
ALWAYS_UNPACKED = 2**28
"""Bytes that any part may take: zeros pack a thousand times smaller too, and so much does no harm."""


def check_sizes(archive: zipfile.ZipFile, path: Path, error: type[InscapeError]) -> None:
    """Raise `error` if the parts of an archive would unpack to more than they can sensibly hold."""
    memory = machine_memory()
    total = sum(part.file_size for part in archive.infolist())
    if memory is not None and total > memory:
        raise error(
            f"{path} unpacks to {in_bytes(total)}, and the machine has {in_bytes(memory)} of memory: "
            "keep fewer points or smaller types in it"
        )
    for part in archive.infolist():
        if part.file_size > max(ALWAYS_UNPACKED, MOST_EXPANSION * part.compress_size):
            raise error(
                f"{part.filename} in {path} unpacks from {in_bytes(part.compress_size)} to "
                f"{in_bytes(part.file_size)}: it is damaged or a trap; if it is neither, save it uncompressed"
            )


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
