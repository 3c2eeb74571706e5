import numpy as np
import pytest
from PIL import Image

from inscape.errors import DataError
from inscape.training import load_data


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
