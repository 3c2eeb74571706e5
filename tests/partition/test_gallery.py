"""Several pictures as one."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

import inscape
from inscape import Patch
from inscape.errors import PictureError

SQUARE = Patch([0.0, 0.0], np.eye(2))


def named(left, right):
    return lambda x: np.where(x[:, 0] > 0, right, left)


def colour_at(ax, xy):
    canvas = ax.figure.canvas
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())
    column, row = ax.transData.transform(xy)
    return tuple(pixels[len(pixels) - 1 - int(row), int(column), :3].tolist())


def test_panels_share_colours_and_a_legend():
    """Alone, "dog" would be second of the names on the left, and first on the right."""
    figure = inscape.side_by_side({"a": named("cat", "dog"), "b": named("dog", "fox")}, SQUARE, title="Both")
    left, right = figure.axes
    assert colour_at(left, (0.9, 0.9)) == colour_at(right, (-0.9, 0.9))
    assert [ax.get_title().splitlines()[0] for ax in figure.axes] == ["a", "b"]
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["cat", "dog", "fox"]
    assert left.get_legend() is None
    box = figure.legends[0].get_window_extent()
    assert box.x1 <= figure.bbox.x1
    assert box.x0 >= right.get_window_extent().x1


def test_results_of_any_kind_in_rows():
    p = inscape.decision_regions(named(0, 1), SQUARE)
    count = inscape.region_count(named(0, 1), np.random.default_rng(0).normal(size=(20, 2)))
    figure = inscape.side_by_side([p, count, p, p], columns=3)
    assert len([ax for ax in figure.axes if ax.get_visible()]) == 4
    with pytest.raises(PictureError, match="give results, or models and a probe"):
        inscape.side_by_side({"a": named(0, 1)})
    with pytest.raises(PictureError, match="nothing to draw"):
        inscape.side_by_side([])


def test_pairs_and_linear_pieces_have_a_common_legend():
    a, b = named("cat", "dog"), named("cat", "fox")
    line = inscape.Segment([-1.0, 0.0], [1.0, 0.0])
    figure = inscape.side_by_side([inscape.compare(a, b, probe) for probe in (line, SQUARE)])
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["cat", "dog", "fox"]
    net = inscape.training.mlp(2, (4,), 3, random_state=0)
    figure = inscape.side_by_side([inscape.linear_regions(net, line)])
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["0", "1", "2"]


def test_an_animation_has_a_frame_for_each_result(tmp_path):
    results = [
        inscape.decision_regions(lambda x, a=a: (x[:, 0] > a).astype(int), SQUARE) for a in (-0.5, 0, 0.5)
    ]
    path = inscape.animate(results, tmp_path / "a.gif", seconds=0.2, dpi=40)
    with Image.open(path) as gif:
        assert (gif.n_frames, gif.size, gif.info["duration"]) == (3, (256, 192), 200)
        shares = []
        for i in range(3):
            gif.seek(i)
            pixels = np.asarray(gif.convert("RGB")).astype(int)
            shares.append(int((np.abs(pixels - (63, 144, 218)).max(axis=2) < 12).sum()))
    assert shares == sorted(shares)  # class 0 grows
    with pytest.raises(PictureError, match=r"must end in \.gif or \.mp4"):
        inscape.animate(results, tmp_path / "a.avi")


def test_a_film_says_that_ffmpeg_is_missing(tmp_path, monkeypatch):
    from matplotlib.animation import FFMpegWriter

    monkeypatch.setattr(FFMpegWriter, "isAvailable", classmethod(lambda cls: False))
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(PictureError, match=r"ffmpeg was not found: pip install 'inscape\[film\]'"):
        inscape.animate([named(0, 1)], tmp_path / "a.mp4", SQUARE)
    assert not list(tmp_path.iterdir())


def test_a_film_by_the_program_that_a_package_brings(tmp_path, monkeypatch):
    """A program in place of ffmpeg that keeps all bytes: three frames of 256 x 192 pixels of four bytes."""
    from matplotlib.animation import FFMpegWriter

    program = tmp_path / "film"
    program.write_text('#!/bin/sh\nfor last in "$@"; do :; done\nexec cat > "$last"\n')
    program.chmod(0o755)
    monkeypatch.setattr(FFMpegWriter, "isAvailable", classmethod(lambda cls: False))
    package = SimpleNamespace(get_ffmpeg_exe=lambda: str(program))
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", package)
    path = inscape.animate([named(0, 1)] * 3, tmp_path / "a.mp4", SQUARE, dpi=40)
    assert path.stat().st_size == 3 * 256 * 192 * 4


def test_the_common_legend_has_classes_that_only_points_have():
    """Every dot of a picture is explained, also of a class that no model predicts here."""
    x, y = np.array([[0.5, 0.5], [-0.5, 0.5]]), np.array(["dog", "fox"])
    figure = inscape.side_by_side({"a": named("cat", "dog"), "b": named("cat", "dog")}, SQUARE, points=(x, y))
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["cat", "dog", "fox"]


def test_pictures_are_counted_as_they_are_looked_at_and_drawn(tmp_path):
    models = [lambda x, a=a: (x[:, 0] > a).astype(int) for a in (-0.5, 0.0, 0.5)]
    probe = inscape.Segment([-1.0, 0.0], [1.0, 0.0])
    expected = [(k, 6) for k in range(1, 7)]
    for draw in (
        lambda show: inscape.side_by_side(models, probe, progress=show),
        lambda show: inscape.animate(models, tmp_path / "film.gif", probe, dpi=30, progress=show),
    ):
        shown = []
        draw(lambda done, total: shown.append((done, total)))  # noqa: B023
        assert shown == expected


def test_the_common_legend_of_twenty_classes_is_inside_the_figure():
    def twenty(x):
        return np.clip(10 * (x[:, 0] + 1), 0, 19).astype(int)

    figure = inscape.side_by_side([twenty, twenty], SQUARE, class_names=[f"class {k:02}" for k in range(20)])
    figure.canvas.draw()
    legend = figure.legends[0].get_window_extent()
    assert len(figure.legends[0].get_texts()) == 20
    assert 0 <= legend.y0 <= legend.y1 <= figure.bbox.y1
    assert legend.x1 <= figure.bbox.x1
