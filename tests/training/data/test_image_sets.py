"""The published image sets, against a local server that misbehaves in known ways."""

import gzip
import hashlib
import io
import socket
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from scipy.io import savemat

from inscape.errors import DataError
from inscape.training import load_data
from inscape.training.data import image_sets
from inscape.training.data.image_sets import IMAGE_SETS, KEYS, ImageSet, download, find_or_fetch


class Handler(BaseHTTPRequestHandler):
    """Gives out `server.files`; the first `server.cut` answers break off after half of what was asked for."""

    def do_GET(self):
        self.server.ranges.append(self.headers.get("Range"))
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        start = 0
        if self.headers.get("Range") and self.server.resumes:
            start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
        if start >= len(content):
            self.send_error(416)
            return
        body = content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.cut > 0:
            self.server.cut -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.files, server.cut, server.ranges, server.resumes = {}, 0, [], True
        server.url = f"http://127.0.0.1:{server.server_port}/"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("INSCAPE_DATA", raising=False)
    monkeypatch.setattr(image_sets, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


def md5(content):
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return gzip.compress(head + array.tobytes())


def mnist_files(rng):
    arrays = {
        "x_train": rng.integers(256, size=(20, 4, 5), dtype=np.uint8),
        "y_train": np.arange(20, dtype=np.uint8) % 10,
        "x_test": rng.integers(256, size=(10, 4, 5), dtype=np.uint8),
        "y_test": np.arange(10, dtype=np.uint8),
    }
    return arrays, {name: idx(arrays[key]) for key, name in zip(KEYS, image_sets.MNIST_FILES, strict=True)}


def as_set(files, url, like="mnist"):
    pairs = tuple((name, md5(content)) for name, content in files.items())
    return ImageSet(like, (url,), pairs, IMAGE_SETS[like].parse)


CONTENT = bytes(range(256)) * 1000


def test_download_shows_progress_and_is_checked(server, tmp_path):
    server.files["/a"] = CONTENT
    seen = []
    path = download([server.url + "a"], tmp_path / "a", md5(CONTENT), progress=lambda *v: seen.append(v))
    assert path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert not (tmp_path / "a.part").exists()
    download([server.url + "a"], tmp_path / "a", md5(CONTENT))
    assert len(server.ranges) == 1  # what is there is not fetched again


def test_a_truncated_download_is_resumed(server, tmp_path):
    server.files["/a"], server.cut = CONTENT, 2
    assert download([server.url + "a"], tmp_path / "a", md5(CONTENT)).read_bytes() == CONTENT
    half, rest = len(CONTENT) // 2, len(CONTENT) // 4
    assert server.ranges == [None, f"bytes={half}-", f"bytes={half + rest}-"]


def test_a_source_that_cannot_resume_sends_all_of_it(server, tmp_path):
    server.files["/a"], server.cut, server.resumes = CONTENT, 1, False
    assert download([server.url + "a"], tmp_path / "a", md5(CONTENT)).read_bytes() == CONTENT


def test_a_download_that_keeps_breaking_off_keeps_its_part(server, tmp_path):
    server.files["/a"], server.cut = CONTENT, 100
    with pytest.raises(DataError, match=r"broke off after \d+ of 256000 bytes"):
        download([server.url + "a"], tmp_path / "a", md5(CONTENT))
    part = (tmp_path / "a.part").read_bytes()
    assert 0 < len(part) < len(CONTENT)
    assert CONTENT.startswith(part)
    server.cut = 0
    assert download([server.url + "a"], tmp_path / "a", md5(CONTENT)).read_bytes() == CONTENT
    assert server.ranges[-1] == f"bytes={len(part)}-"


def test_a_part_that_was_complete_already(server, tmp_path):
    server.files["/a"] = CONTENT
    (tmp_path / "a.part").write_bytes(CONTENT)
    assert download([server.url + "a"], tmp_path / "a", md5(CONTENT)).read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing(server, tmp_path):
    server.files["/a"] = CONTENT[::-1]
    with pytest.raises(DataError, match="wrong checksum"):
        download([server.url + "a"], tmp_path / "a", md5(CONTENT))
    assert not (tmp_path / "a").exists()
    assert not (tmp_path / "a.part").exists()


def test_the_next_source_is_tried(server, tmp_path):
    server.files["/good"] = CONTENT
    urls = [f"http://127.0.0.1:{closed_port()}/a", server.url + "missing", server.url + "good"]
    assert download(urls, tmp_path / "a", md5(CONTENT)).read_bytes() == CONTENT


def closed_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_refused_says_which_file_to_put_where(cache, rng):
    _, files = mnist_files(rng)
    offline = as_set(files, f"http://127.0.0.1:{closed_port()}/")
    with pytest.raises(DataError, match=r"cannot download mnist .*[Rr]efused") as caught:
        find_or_fetch(offline, "train")
    for part in ("train-images-idx3-ubyte.gz", str(cache / "mnist"), "mnist.npz", "x_train", "INSCAPE_DATA"):
        assert part in str(caught.value)


def test_mnist_from_its_files(server, cache, rng, monkeypatch):
    arrays, files = mnist_files(rng)
    server.files = {f"/{name}": content for name, content in files.items()}
    monkeypatch.setitem(IMAGE_SETS, "mnist", as_set(files, server.url))
    data = load_data("mnist", split="train")
    assert data.x.dtype == np.float32
    assert np.array_equal(data.x, (arrays["x_train"] / 255).astype(np.float32))
    assert np.array_equal(data.y, arrays["y_train"])
    assert np.array_equal(load_data("mnist").y, arrays["y_test"])  # "test" is the default
    assert len(server.ranges) == 4  # the second time from the cache
    with np.load(cache / "mnist.npz") as kept:
        assert all(np.array_equal(kept[key], arrays[key]) for key in KEYS)
    small = load_data("mnist", split="train", n=10, random_state=1)
    assert sorted(small.y) == list(range(10))
    assert np.array_equal(small.x, load_data("mnist", split="train", n=10, random_state=1).x)


def test_official_files_put_there_by_hand_need_no_network(cache, rng, tmp_path, monkeypatch):
    arrays, files = mnist_files(rng)
    monkeypatch.setenv("INSCAPE_DATA", str(tmp_path / "mine"))
    (tmp_path / "mine" / "mnist").mkdir(parents=True)
    cache.mkdir()
    for name, content in files.items():
        (tmp_path / "mine" / "mnist" / name).write_bytes(content)
    offline = as_set(files, f"http://127.0.0.1:{closed_port()}/")
    assert np.array_equal(find_or_fetch(offline, "test")[1], arrays["y_test"])


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_cifar_from_its_archive(name, server, cache, rng, monkeypatch):
    n_labels = 1 if name == "cifar10" else 2
    folder = "cifar-10-batches-bin" if name == "cifar10" else "cifar-100-binary"
    train = image_sets.CIFAR_FILES if name == "cifar10" else ("train.bin",)
    test = "test_batch.bin" if name == "cifar10" else "test.bin"
    records = {m: rng.integers(256, size=(4, n_labels + 3072), dtype=np.uint8) for m in (*train, test)}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for member, content in records.items():
            info = tarfile.TarInfo(f"{folder}/{member}")
            info.size = content.nbytes
            archive.addfile(info, io.BytesIO(content.tobytes()))
    files = {"a.tar.gz": buffer.getvalue()}
    server.files = {"/a.tar.gz": buffer.getvalue()}
    monkeypatch.setitem(IMAGE_SETS, name, as_set(files, server.url, name))
    for split, members in (("train", train), ("test", (test,))):
        data = load_data(name, split=split)
        expected = np.concatenate([records[m] for m in members])
        assert np.array_equal(data.y, expected[:, n_labels - 1])
        pixels = expected[:, n_labels:].reshape(-1, 3, 32, 32)  # channel first: all red, all green, all blue
        assert np.allclose(data.x, pixels / 255, atol=1e-7)


def test_svhn_from_its_matlab_files(server, cache, rng, monkeypatch):
    pixels = rng.integers(256, size=(2, 5, 32, 32, 3), dtype=np.uint8)
    digits = np.array([[1, 10, 3, 4, 9], [10, 2, 3, 4, 5]], np.uint8)
    files = {}
    for name, x, y in zip(("train.mat", "test.mat"), pixels, digits, strict=True):
        buffer = io.BytesIO()
        savemat(buffer, {"X": x.transpose(1, 2, 3, 0), "y": y[:, None]})
        files[name] = buffer.getvalue()
    server.files = {f"/{name}": content for name, content in files.items()}
    monkeypatch.setitem(IMAGE_SETS, "svhn", as_set(files, server.url, "svhn"))
    for i, split in enumerate(("train", "test")):
        data = load_data("svhn", split=split)
        assert data.y.tolist() == (digits[i] % 10).tolist()  # their 10 is the digit 0
        assert np.allclose(data.x, pixels[i].transpose(0, 3, 1, 2) / 255, atol=1e-7)


def test_an_npz_of_another_kind(cache):
    cache.mkdir()
    np.savez(cache / "mnist.npz", x_test=np.zeros((3, 4, 4)), y_test=np.zeros(3))
    with pytest.raises(DataError, match="does not hold images as bytes"):
        load_data("mnist")


def test_the_official_checksums_are_md5s():
    for images in IMAGE_SETS.values():
        assert all(len(bytes.fromhex(value)) == 16 for _, value in images.files)
        assert all(source.endswith("/") for source in images.sources)
