"""Downloads: checked, resumed where they broke off, and never two processes at one file."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from inscape.errors import DataError
from inscape.progress import Meter, meter

ATTEMPTS = 3
TIMEOUT = 30.0
_CHUNK = 1 << 16


def download(urls: Sequence[str], path: Path, md5: str, *, progress: bool | Meter | None = None) -> Path:
    """Fetch the first of some equal files that can be had, unless it is there already, and check it.

    What came before a connection broke stays in `path` with ".part" behind, and the next attempt asks for
    the rest. A file with another checksum is deleted.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path.with_name(f"{path.name}.lock")):
            if path.is_file() and checksum(path) == md5:
                return path
            part = path.with_name(f"{path.name}.part")
            _fetch_any(urls, part, md5, progress)
            part.replace(path)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error
    return path


def _fetch_any(urls: Sequence[str], part: Path, md5: str, progress: bool | Meter | None) -> None:
    """The file from one of the sources, each tried a few times."""
    reasons = []
    for url in urls:
        for _ in range(ATTEMPTS):
            try:
                with meter(progress, part.name.removesuffix(".part")) as show:
                    _fetch(url, part, show)
            except _Refused as error:
                reasons.append(f"{url}: {error}")
                break
            except _BrokenOff as error:
                reasons.append(f"{url}: {error}")
                continue
            if checksum(part) == md5:
                return
            part.unlink()
            reasons.append(f"{url}: wrong checksum, so not the file that was published")
            break
    raise DataError("; ".join(dict.fromkeys(reasons)))


class _Refused(Exception):
    """The source does not give the file."""


class _BrokenOff(Exception):
    """The source gave a part of the file."""


def _fetch(url: str, part: Path, show: Meter) -> None:
    """Append to `part` what is missing."""
    import urllib.error
    import urllib.request
    from http.client import HTTPException

    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            if answer.status != 206:
                have = 0  # the source sends all of it
            length = answer.headers.get("Content-Length")
            total = have + int(length) if length else 0
            with part.open("r+b" if have else "wb") as file:
                file.seek(have)
                while chunk := answer.read(_CHUNK):
                    file.write(chunk)
                    have += len(chunk)
                    show(have, max(total, have))
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing is missing
            return
        raise _Refused(f"{error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise _Refused(str(error.reason)) from error
    except (HTTPException, ConnectionError, TimeoutError) as error:
        raise _BrokenOff(f"broke off after {have} bytes ({error})") from error
    if total and have < total:
        raise _BrokenOff(f"broke off after {have} of {total} bytes")


def checksum(path: Path) -> str:
    """The MD5 of a file, which is what the publishers of the data sets give."""
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Wait until no other process holds the lock; it ends with the process, however that ends."""
    with lock.open("a+b") as file:
        if os.name == "posix":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
