"""Model files that are packed, or that are something else by mistake."""

import gzip

import numpy as np
import pytest
from onnx_files import save

import inscape
from inscape import files
from inscape.errors import ModelError
from inscape.models.loading import load

NODES = [("Gemm", "x w", "h"), ("Relu", "h", "y")]


@pytest.fixture
def plain(tmp_path):
    w = np.random.default_rng(0).standard_normal((4, 3))
    return save(tmp_path / "m.onnx", NODES, (4,), {"w": w})


def packed(plain):
    path = plain.with_name("m.onnx.gz")
    path.write_bytes(gzip.compress(plain.read_bytes()))
    return path


def test_a_packed_file_is_the_same_model(plain):
    one, other = inscape.wrap(plain), inscape.wrap(packed(plain))
    x = np.random.default_rng(1).standard_normal((5, 4))
    assert np.array_equal(one.scores(x), other.scores(x))
    assert other.structure == "piecewise-affine"
    assert one.fingerprint() == other.fingerprint()
    segment = inscape.Segment(*x[:2])
    assert inscape.linear_regions(one, segment).n_regions == inscape.linear_regions(other, segment).n_regions
    assert load(packed(plain)).name == "m.onnx.gz"


def test_a_packed_file_that_is_cut_off(plain):
    path = packed(plain)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ModelError, match=r"m\.onnx\.gz is not a readable gzip file"):
        inscape.wrap(path)


def test_a_packed_file_that_unpacks_to_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_GUNZIPPED", 10_000)
    path = tmp_path / "m.onnx.gz"
    path.write_bytes(gzip.compress(bytes(1_000_000)))
    with pytest.raises(ModelError, match=r"to more than .*: it is damaged, a trap, or too large"):
        inscape.wrap(path)


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
MISTAKES = {
    "pointer": (POINTER, "is a Git LFS pointer, not the model itself: fetch that with `git lfs pull`"),
    "page": (b"\n<!DOCTYPE html>\n<html><body>Not found</body></html>", "is a page of HTML, not a model"),
    "packed": (gzip.compress(b"model"), r"is packed by gzip: name it m\.\w+\.gz, or unpack it"),
}


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("suffix", [".onnx", ".skops", ".pt2"])
def test_what_is_no_model_is_called_what_it_is(name, suffix, tmp_path):
    content, message = MISTAKES[name]
    path = tmp_path / f"m{suffix}"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=message):
        inscape.wrap(path)


def test_a_pointer_with_the_name_of_a_packed_file(tmp_path):
    path = tmp_path / "m.onnx.gz"
    path.write_bytes(POINTER)
    with pytest.raises(ModelError, match="Git LFS pointer"):
        inscape.wrap(path)
