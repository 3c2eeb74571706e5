"""Files that are written whole or not at all, and archives that are measured before they are unpacked."""

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from inscape.budget import in_bytes, machine_memory
from inscape.errors import InscapeError

MOST_EXPANSION = 200
"""How many times its packed size a member may take: real data pack up to fifty times, a bomb a thousand."""
ALWAYS_UNPACKED = 2**28
"""Bytes that any member may take: zeros pack a thousand times smaller too, and so much does no harm."""

MOST_GUNZIPPED = 2**31
"""Bytes of a gzip file: protobuf, and so ONNX, ends there. A quarter of the memory is another limit."""


def check_sizes(archive: zipfile.ZipFile, path: Path, error: type[InscapeError]) -> None:
    """Raise `error` if the members of an archive would unpack to more than they can sensibly hold."""
    memory = machine_memory()
    total = sum(member.file_size for member in archive.infolist())
    if memory is not None and total > memory:
        raise error(
            f"{path} unpacks to {in_bytes(total)}, and the machine has {in_bytes(memory)} of memory: "
            "keep fewer points or smaller types in it"
        )
    for member in archive.infolist():
        if member.file_size > max(ALWAYS_UNPACKED, MOST_EXPANSION * member.compress_size):
            raise error(
                f"{member.filename} in {path} unpacks from {in_bytes(member.compress_size)} to "
                f"{in_bytes(member.file_size)}: it is damaged or a trap; "
                "if it is neither, save it uncompressed"
            )


def gunzipped(content: bytes, path: Path, error: type[InscapeError]) -> bytes:
    """What a gzip file holds, unpacked in memory; `error` if that is more than a model file can hold.

    Networks with many equal weights pack several hundred times, so that only the size itself is limited.
    """
    limit = min(MOST_GUNZIPPED, (machine_memory() or MOST_GUNZIPPED) // 4)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as archive:
            unpacked = archive.read(limit + 1)
    except (OSError, EOFError, zlib.error) as reason:
        raise error(f"{path} is not a readable gzip file: {reason}") from reason
    if len(unpacked) > limit:
        raise error(
            f"{path} unpacks from {in_bytes(len(content))} to more than {in_bytes(limit)}: it is damaged, a "
            "trap, or too large for this machine"
        )
    return unpacked


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
