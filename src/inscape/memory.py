"""How much memory there is, how much of it a call may take, and how much something takes, in words."""

import os

MEMORY = 2**30
"""Bytes that the arrays of one call may fill at once: the default of every argument `memory`. A gigabyte
holds the walk of most networks in one chunk, and is little on a machine that trains networks."""


def machine_memory() -> int | None:
    """The bytes of memory that the machine has, None where that is not known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def in_bytes(n: float) -> str:
    """A number of bytes for a reader.

    >>> in_bytes(3 * 2**40), in_bytes(512)
    ('3 TiB', '512 bytes')
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n /= 1024
    return f"{n:.3g} TiB" if n < 1000 else f"{n:.0f} TiB"
