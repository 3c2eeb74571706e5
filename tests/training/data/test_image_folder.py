"""Folders of images as data, also of more than the memory holds."""

import numpy as np
import pytest
from PIL import Image

import inscape
from inscape.arrays import Streamed
from inscape.errors import DataError
from inscape.measures.accuracy import correct
from inscape.training import load_data
from inscape.training.data import own_files, split_data
from inscape.training.fitting import fit
from inscape.training.networks import build


def fill(folder, sizes, seed=0):
    """Random images of the sizes, in turn in the classes ant and bee; their pixels by path."""
    rng = np.random.default_rng(seed)
    kept = {}
    for i, (w, h) in enumerate(sizes):
        path = folder / ("ant", "bee")[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        kept[path] = rng.integers(256, size=(h, w, 3), dtype=np.uint8)
        Image.fromarray(kept[path]).save(path)
    return kept


def test_a_folder_for_each_class(tmp_path):
    kept = fill(tmp_path, [(6, 5)] * 6)
    (tmp_path / "ant" / "notes.txt").write_text("no image")
    data = load_data(tmp_path)
    assert data.x.shape == (6, 3, 5, 6)
    assert data.classes == ("ant", "bee")
    assert data.y.tolist() == [0, 0, 0, 1, 1, 1]
    expected = np.stack([kept[p] for p in sorted(kept)]).transpose(0, 3, 1, 2) / 255
    assert np.allclose(data.x, expected, atol=1e-7)


def test_splits_and_subsets(tmp_path):
    fill(tmp_path / "train", [(4, 4)] * 12)
    fill(tmp_path / "val", [(4, 4)] * 4)
    assert len(load_data(tmp_path)) == 4
    assert len(load_data(tmp_path, split="train")) == 12
    few = load_data(tmp_path, split="train", n=5, random_state=1)
    assert sorted(np.bincount(few.y)) == [2, 3]
    with pytest.raises(DataError, match="too many: there are 4"):
        load_data(tmp_path, n=5)


def test_images_of_many_sizes_need_one(tmp_path):
    fill(tmp_path, [(8, 8), (10, 6), (5, 9)])
    with pytest.raises(DataError, match="give image_size"):
        load_data(tmp_path)
    assert load_data(tmp_path, image_size=4).x.shape == (3, 3, 4, 4)


def test_a_known_name_is_not_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fill(tmp_path / "digits", [(4, 4)] * 2)
    assert len(load_data("digits")) == 1797
    assert len(load_data("./digits")) == 2


def test_folders_that_hold_no_images(tmp_path):
    with pytest.raises(DataError, match="holds no images"):
        load_data(tmp_path)
    (tmp_path / "ant").mkdir()
    (tmp_path / "ant" / "a.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"a\.png is not a readable image"):
        load_data(tmp_path)
    with pytest.raises(DataError, match="leave split out"):
        load_data(tmp_path, split="train")
    with pytest.raises(DataError, match="image_size belongs to a folder"):
        load_data("digits", image_size=4)


def test_an_image_of_an_absurd_size_is_not_decoded(tmp_path, monkeypatch):
    fill(tmp_path, [(6, 5)])
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    with pytest.raises(DataError, match=r"0\.png is not a readable image: Image size \(30 pixels\) exceeds"):
        load_data(tmp_path)


def test_many_images_are_read_when_they_are_asked_for(tmp_path, monkeypatch):
    fill(tmp_path, [(20, 24)] * 10)
    held = load_data(tmp_path, image_size=16)
    monkeypatch.setattr(own_files, "STREAMED_FROM", 0)
    read, decode = [], own_files.read_image
    monkeypatch.setattr(own_files, "read_image", lambda path, size: read.append(path) or decode(path, size))
    data = load_data(tmp_path, image_size=16)
    assert isinstance(data.x, Streamed)
    assert not isinstance(held.x, Streamed)
    assert len(read) == 1  # for the shape
    assert data.x.shape == held.x.shape == (10, 3, 16, 16)
    np.testing.assert_array_equal(data.y, held.y)
    read.clear()
    np.testing.assert_array_equal(data.x[3], held.x[3])
    np.testing.assert_array_equal(data.x[-1], held.x[-1])
    assert len(read) == 2
    np.testing.assert_array_equal(data.x[np.array([7, 1, 7])], held.x[[7, 1, 7]])
    np.testing.assert_array_equal(data.x[2:5], held.x[2:5])
    np.testing.assert_array_equal(data.x[::4], held.x[::4])
    np.testing.assert_array_equal(np.asarray(data.x), held.x)
    assert data.subset(4).x.shape == (4, 3, 16, 16)
    with pytest.raises(IndexError):
        data.x[10]
    monkeypatch.setattr(own_files, "machine_memory", lambda: 1000)
    with pytest.raises(DataError, match=r"10 points of shape .* the machine has"):
        np.asarray(data.x)


def test_measures_of_streamed_images_are_those_of_held_ones(tmp_path, monkeypatch):
    fill(tmp_path, [(16, 16)] * 12)
    held = load_data(tmp_path)
    monkeypatch.setattr(own_files, "STREAMED_FROM", 0)
    data = load_data(tmp_path)
    net = inscape.wrap(build("cnn", (3, 16, 16), 2, width=1 / 8, random_state=0).eval(), batch_size=5)
    np.testing.assert_allclose(net.scores(data.x), net.scores(held.x), rtol=1e-6)
    assert inscape.margin(net, data.x, data.y).value == pytest.approx(
        inscape.margin(net, held.x, held.y).value
    )
    assert correct(net, data.x, data.y).tolist() == correct(net, held.x, held.y).tolist()
    stripes = inscape.wrap(lambda x: (x.mean(axis=(1, 2, 3)) * 500).astype(int) % 2)
    counts = [inscape.region_count(stripes, x, n_probes=5, random_state=0).counts for x in (data.x, held.x)]
    np.testing.assert_array_equal(*counts)


def test_training_on_streamed_images_is_that_on_held_ones(tmp_path, monkeypatch):
    fill(tmp_path / "train", [(16, 16)] * 12)
    fill(tmp_path / "val", [(16, 16)] * 4, seed=1)
    settings = {
        "model": "cnn",
        "width": 1 / 8,
        "learning_rate": 0.05,
        "batch_size": 5,
        "epochs": 2,
        "crop": 2,
    }
    one = fit(settings, split_data(str(tmp_path)), random_state=3)
    monkeypatch.setattr(own_files, "STREAMED_FROM", 0)
    split = split_data(str(tmp_path))
    asked = []
    whole = type(split.x_train).read
    monkeypatch.setattr(
        own_files.ImageFiles, "read", lambda s, rows: asked.append(len(rows)) or whole(s, rows)
    )
    two = fit(settings, split, random_state=3)
    assert one.history.losses == pytest.approx(two.history.losses, rel=1e-5)
    assert asked[1:] == [5, 5, 2] * 2  # after the mean and the deviation of pixels
    tree = {"model": "tree", "max_depth": 2}
    assert fit(tree, split, random_state=0).model.labels(split.x_test).tolist()
