"""The image sets that papers use, from a folder of the user, the cache, or their official sources.

Downloads are checked, resumed where they broke off, and never two processes at one file.
"""

import gzip
import hashlib
import io
import os
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from inscape.arrays import Array, Bytes
from inscape.errors import DataError
from inscape.files import replacing
from inscape.progress import Meter, meter
from inscape.training.data.own_files import read_npz

ImageArrays = dict[str, Bytes]
ATTEMPTS = 3
TIMEOUT = 30.0
_CHUNK = 1 << 16
KEYS = ("x_train", "y_train", "x_test", "y_test")


@dataclass(frozen=True)
class ImageSet:
    """Where a data set is published, the files with their MD5, and how they become arrays."""

    name: str
    sources: tuple[str, ...]
    files: tuple[tuple[str, str], ...]
    parse: Callable[[list[bytes]], ImageArrays]
    classes: tuple[str, ...] | None = None


def _read_idx(content: bytes) -> Bytes:
    """The array in an IDX file: magic number with the number of axes, big-endian lengths, bytes."""
    content = gzip.decompress(content)
    n_axes = content[3]
    shape = np.frombuffer(content, ">u4", n_axes, 4).astype(int)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * n_axes).reshape(shape)


def _parse_mnist(contents: list[bytes]) -> ImageArrays:
    return dict(zip(KEYS, map(_read_idx, contents), strict=True))


def _cifar_parser(
    folder: str, train: tuple[str, ...], test: str, n_labels: int
) -> Callable[[list[bytes]], ImageArrays]:
    """For records of `n_labels` label bytes, the last of which counts, and 3x32x32 pixels."""

    def parse(contents: list[bytes]) -> ImageArrays:
        arrays = {}
        with tarfile.open(fileobj=io.BytesIO(contents[0])) as archive:
            for split, names in (("train", train), ("test", (test,))):
                members = [archive.extractfile(f"{folder}/{name}") for name in names]
                content = b"".join(m.read() for m in members if m is not None)
                records = np.frombuffer(content, np.uint8).reshape(-1, n_labels + 3072)
                arrays[f"x_{split}"] = records[:, n_labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
                arrays[f"y_{split}"] = records[:, n_labels - 1]
        return arrays

    return parse


def _parse_svhn(contents: list[bytes]) -> ImageArrays:
    """Two MATLAB files with X (32, 32, 3, n) and y (n, 1), in which the digit 0 is called 10."""
    from scipy.io import loadmat

    arrays = {}
    for split, content in zip(("train", "test"), contents, strict=True):
        tables = loadmat(io.BytesIO(content))
        arrays[f"x_{split}"] = tables["X"].transpose(3, 0, 1, 2)
        arrays[f"y_{split}"] = (tables["y"][:, 0] % 10).astype(np.uint8)
    return arrays


_TORONTO = ("https://www.cs.toronto.edu/~kriz/",)
MNIST_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
CIFAR_FILES = tuple(f"data_batch_{i}.bin" for i in range(1, 6))
_MNIST_MD5 = (
    "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "d53e105ee54ea40749a09fcbcd1e9432",
    "9fb629c4189551a2d022fa330f9573f3",
    "ec29112dd5afa0611ce80d1b7f02629c",
)
_FASHION_MD5 = (
    "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "25c81989df183df01b3e8a0aad5dffbe",
    "bef4ecab320f06d8554ea6380940ec79",
    "bb300cfdad3c16e7a12a480ee83cd310",
)
_FASHION = (
    *("T-shirt", "trouser", "pullover", "dress", "coat"),
    *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
)
_CIFAR100 = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel
can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur
dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion
lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree
pear pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea
seal shark shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank
telephone television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
IMAGE_SETS = {
    s.name: s
    for s in (
        ImageSet(
            "mnist",
            (
                "https://ossci-datasets.s3.amazonaws.com/mnist/",
                "https://storage.googleapis.com/cvdf-datasets/mnist/",
                "http://yann.lecun.com/exdb/mnist/",  # the author's, often closed: the two above copy it
            ),
            tuple(zip(MNIST_FILES, _MNIST_MD5, strict=True)),
            _parse_mnist,
            tuple("0123456789"),
        ),
        ImageSet(
            "fashion_mnist",
            ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
            tuple(zip(MNIST_FILES, _FASHION_MD5, strict=True)),
            _parse_mnist,
            _FASHION,
        ),
        ImageSet(
            "cifar10",
            _TORONTO,
            (("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"),),
            _cifar_parser("cifar-10-batches-bin", CIFAR_FILES, "test_batch.bin", 1),
            ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
        ),
        ImageSet(
            "cifar100",
            _TORONTO,
            (("cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8"),),
            _cifar_parser("cifar-100-binary", ("train.bin",), "test.bin", 2),
            tuple(name.replace("_", " ") for name in _CIFAR100.split()),
        ),
        ImageSet(
            "svhn",
            ("http://ufldl.stanford.edu/housenumbers/",),
            (
                ("train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373"),
                ("test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3"),
            ),
            _parse_svhn,
            tuple("0123456789"),
        ),
    )
}


def cache_folder() -> Path:
    """Where downloads are kept."""
    try:
        return _cache_base() / "inscape"
    except RuntimeError as error:
        raise DataError("no home folder is known to keep downloads in: set HOME or XDG_CACHE_HOME") from error


def _cache_base() -> Path:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base)


def find_or_fetch(
    images: ImageSet, split: str | None, progress: bool | Meter | None = None
) -> tuple[Array, Array]:
    """The images of a split as bytes, (n, h, w) or channels first, and their classes."""
    folders = [Path(f) for f in (os.environ.get("INSCAPE_DATA"), cache_folder()) if f]
    paths = [folder / f"{images.name}.npz" for folder in folders]
    path = next((p for p in paths if p.is_file()), None)
    if path is None:
        path = paths[-1]
        _fetch(images, folders, path, progress)
    return _read(path, split, path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _read(path: Path, split: str | None, changed: int) -> tuple[Array, Array]:
    x, y = read_npz(path, split)
    if y is None or x.dtype != np.uint8 or x.ndim not in (3, 4) or y.shape != (len(x),):
        raise DataError(f"{path} does not hold images as bytes 0..255 with classes: move it away")
    if x.ndim == 4 and x.shape[3] == 3:
        x = x.transpose(0, 3, 1, 2)
    y = y.astype(np.int64)
    for array in (x, y):
        array.flags.writeable = False
    return x, y


def _fetch(images: ImageSet, folders: list[Path], path: Path, progress: bool | Meter | None) -> None:
    """Make the .npz from the official files, which may lie beside it already."""
    contents = []
    for name, md5 in images.files:
        placed = [f / images.name / name for f in folders]
        file = next((p for p in placed if p.is_file() and checksum(p) == md5), None)
        if file is None:
            try:
                urls = [source + name for source in images.sources]
                file = download(urls, placed[-1], md5, progress=progress)
            except DataError as error:
                raise DataError(
                    f"cannot download {images.name} ({error}): put the official file {name} into "
                    f"{placed[-1].parent}, or {path.name} with the uint8 arrays {', '.join(KEYS)} into "
                    f"{path.parent} or the folder that INSCAPE_DATA names"
                ) from error
        contents.append(file.read_bytes())
    try:
        arrays = images.parse(contents)
    except (ValueError, KeyError, EOFError, OSError, tarfile.TarError, gzip.BadGzipFile) as error:
        raise DataError(f"the files of {images.name} cannot be read: {error}") from error
    _save(path, arrays)


def _save(path: Path, arrays: ImageArrays) -> None:
    """Write the .npz, whole or not at all."""
    try:
        with replacing(path) as draft:
            np.savez_compressed(draft, allow_pickle=False, **arrays)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error


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
            partial = path.with_name(f"{path.name}.part")
            _fetch_any(urls, partial, md5, progress)
            partial.replace(path)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error
    return path


def _fetch_any(urls: Sequence[str], partial: Path, md5: str, progress: bool | Meter | None) -> None:
    """The file from one of the sources, each tried a few times."""
    reasons = []
    for url in urls:
        for _ in range(ATTEMPTS):
            try:
                with meter(progress, partial.name.removesuffix(".part")) as show:
                    _fetch_rest(url, partial, show)
            except _Refused as error:
                reasons.append(f"{url}: {error}")
                break
            except _BrokenOff as error:
                reasons.append(f"{url}: {error}")
                continue
            if checksum(partial) == md5:
                return
            partial.unlink()
            reasons.append(f"{url}: wrong checksum, so not the file that was published")
            break
    raise DataError("; ".join(dict.fromkeys(reasons)))


class _Refused(Exception):
    """The source does not give the file."""


class _BrokenOff(Exception):
    """The source broke off within the file."""


def _fetch_rest(url: str, partial: Path, show: Meter) -> None:
    """Append to `partial` what is missing."""
    import urllib.error
    import urllib.request
    from http.client import HTTPException

    have = partial.stat().st_size if partial.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            if answer.status != 206:
                have = 0  # the source sends all of it
            length = answer.headers.get("Content-Length")
            total = have + int(length) if length else 0
            with partial.open("r+b" if have else "wb") as file:
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
