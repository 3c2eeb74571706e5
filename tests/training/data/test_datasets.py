"""Data sets by name and from files, and files that cannot be read."""

import io
import zipfile

import numpy as np
import pytest

from inscape import files
from inscape.errors import DataError
from inscape.training import load_data


@pytest.mark.parametrize(
    ("name", "shape"), [("digits", (1797, 8, 8)), ("iris", (150, 4)), ("wine", (178, 13))]
)
def test_embedded_sets(name, shape):
    data = load_data(name)
    assert data.x.shape == shape
    assert len(data.y) == shape[0]


def test_digits_are_between_zero_and_one(digits):
    assert (digits.x.min(), digits.x.max()) == (0, 1)


def test_npz_with_and_without_splits(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones((4, 2)), y=np.arange(4))
    np.savez(tmp_path / "b.npz", x_train=np.ones((4, 2)), y_train=np.arange(4), x_test=np.zeros((3, 2)))
    assert load_data(tmp_path / "a.npz").y.tolist() == [0, 1, 2, 3]
    assert load_data(tmp_path / "b.npz").x.shape == (3, 2)
    assert load_data(tmp_path / "b.npz").y is None
    assert load_data(tmp_path / "b.npz", split="train").x.shape == (4, 2)
    with pytest.raises(DataError, match=r"unknown split 'trian'.*did you mean 'train'"):
        load_data(tmp_path / "b.npz", split="trian")


def test_npy_and_csv(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((4, 2, 2)))
    assert load_data(tmp_path / "x.npy").x.shape == (4, 2, 2)
    (tmp_path / "t.csv").write_text("a,b,Class\n1,2.5,cat\n3,4,dog\n")
    data = load_data(tmp_path / "t.csv")
    assert data.x.tolist() == [[1, 2.5], [3, 4]]
    assert data.y.tolist() == ["cat", "dog"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.npz", None, "does not exist"),
        ("a.npz", b"PK\x03\x04 truncated", "not a readable .npz"),
        ("a.npz", b"plain text", "not a readable .npz"),
        ("a.npz", b"", "not a readable .npz"),
        ("a.npy", b"\x93NUMPY", "not a readable .npy"),
        ("a.csv", b"", "not a readable .csv"),
        ("a.csv", b"a,b\n1,x\n", "column 'b' is not numeric"),
        ("a.csv", b"a,y,label\n1,2,3\n", "several columns of classes"),
        ("a.csv", b"\xff\xfe\x00", "not a readable .csv"),
        ("a.csv", b"a,b\n", "a header but no rows"),
        ("a.csv", b"1.5,2\n3,4\n", "has no header"),
        ("a.txt", b"1 2 3", "expected .npz, .npy or .csv"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_data(tmp_path / name)


def test_folders_and_corrupt_contents(tmp_path):
    (tmp_path / "d.npz").mkdir()
    with pytest.raises(DataError, match="is a folder"):
        load_data(tmp_path / "d.npz")
    path = tmp_path / "c.npz"
    np.savez_compressed(path, x=np.random.default_rng(0).normal(size=(200, 5)))
    content = bytearray(path.read_bytes())
    content[200:400] = bytes(200)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"not a readable .npz"):
        load_data(path)


def test_names_are_suggested():
    with pytest.raises(DataError, match="split='test' belongs to"):
        load_data("iris", split="test")
    with pytest.raises(DataError, match=r"unknown data set 'digit'.*did you mean 'digits'"):
        load_data("digit")
    with pytest.raises(DataError, match=r"unknown data set 'mnits'.*did you mean 'mnist'"):
        load_data("mnits", split="train")


def test_contents_that_are_no_points(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, z=np.ones(3))
    with pytest.raises(DataError, match="holds z: expected x"):
        load_data(path)
    np.savez(path, x=np.ones(3))
    with pytest.raises(DataError, match=r"x has shape \(3,\)"):
        load_data(path)
    np.savez(path, x=np.ones((3, 1)), y=np.ones(2))
    with pytest.raises(DataError, match=r"y has shape \(2,\), expected \(3,\)"):
        load_data(path)
    np.savez(path, x=np.array([["a"], ["b"]]))
    with pytest.raises(DataError, match="must hold numbers"):
        load_data(path)
    np.savez(path, x=np.array([[object()]]), allow_pickle=True)
    with pytest.raises(DataError, match="pickled"):
        load_data(path)
    np.save(tmp_path / "c.npy", np.ones((2, 2)))
    with pytest.raises(DataError, match=r"belongs to an .npz"):
        load_data(tmp_path / "c.npy", split="train")
    path.rename(tmp_path / "d.npy")
    with pytest.raises(DataError, match="rename it"):
        load_data(tmp_path / "d.npy")


def test_npz_with_another_compression(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        buffer = io.BytesIO()
        np.save(buffer, np.arange(5000.0).reshape(-1, 2))
        archive.writestr("x.npy", buffer.getvalue())
    assert load_data(path).x.shape == (2500, 2)
    content = path.read_bytes()
    for damaged in (
        content[:60] + b"\xff" * 200 + content[260:],
        content.replace(b"\x0e\x00", b"\x63\x00"),  # a compression that nobody knows
    ):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"not a readable \.npz"):
            load_data(path)


def test_a_source_that_is_no_name():
    with pytest.raises(DataError, match="expected the name of a data set"):
        load_data(3)


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def huge(array):
    """An array whose header declares 3.6 TiB."""
    before = f"{array.shape}".encode()
    after = b"(500000000000, 1)"
    return npy(array).replace(before + b", }" + b" " * (len(after) - len(before)), after + b", }")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            huge(np.ones((4, 1))),
            r"declares an array of shape \(500000000000, 1\) .*3\.64 TiB, and holds 160 bytes",
        ),
        (npy(np.ones((4, 1))).replace(b"'<f8'", b"'<f8"), "not a readable"),
        (npy(np.ones((4, 1))).replace(b"(4, 1)", b"(4 1) "), "not a readable"),
        (npy(np.ones((4, 1))).replace(b"(4, 1)", b"(-4,1)"), "declares an array of shape"),
        (b"no header at all", "not a readable"),
        (b"", "not a readable"),
    ],
    ids=["3.6 TiB", "no quote", "no comma", "negative", "no header", "empty"],
)
@pytest.mark.parametrize("kind", ["npy", "npz x", "npz y"])
def test_headers_that_lie(tmp_path, content, message, kind):
    path = tmp_path / f"a.{kind[:3]}"
    if kind == "npy":
        path.write_bytes(content)
    else:
        parts = {"x.npy": npy(np.ones((4, 1))), f"{kind[-1]}.npy": content}
        with zipfile.ZipFile(path, "w") as archive:
            for name, part in parts.items():
                archive.writestr(name, part)
    with pytest.raises(DataError, match=message):
        load_data(path)


def test_an_archive_that_unpacks_to_a_thousand_times_its_size_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "ALWAYS_UNPACKED", 2**16)
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, x=np.zeros((2**17, 2)))
    with pytest.raises(DataError, match=r"x\.npy in .*bomb\.npz unpacks from .* KiB to 2 MiB"):
        load_data(path)
    np.savez(path, x=np.zeros((2**17, 2)))
    assert load_data(path).x.shape == (2**17, 2)


def test_an_archive_larger_than_the_memory_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "machine_memory", lambda: 2**20)
    path = tmp_path / "a.npz"
    np.savez(path, x=np.zeros((2**17, 2)))
    with pytest.raises(DataError, match=r"unpacks to 2 MiB, and the machine has 1 MiB of memory"):
        load_data(path)
