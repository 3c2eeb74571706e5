"""Tell the user what the first call waits for."""

import logging
from pathlib import Path

_SECONDS = 30
_told = False


def announce() -> None:
    """Say, once and on the log "inscape", that compiled code is being made, unless it is in numba's cache."""
    global _told
    if _told:
        return
    _told = True
    from inscape.partition.linear.planes.layer.cut_faces import cut_few

    if cut_few.signatures or any(Path(str(cut_few.stats.cache_path)).glob("cut_faces.cut_few-*.nbi")):
        return
    logging.getLogger("inscape").warning(
        "compiling the plane engine, which takes about %d seconds; it is kept on disk for the next time",
        _SECONDS,
    )
