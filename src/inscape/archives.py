"""Zip archives from anywhere: what they would unpack to is looked at before anything is unpacked."""

import zipfile
from pathlib import Path

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
