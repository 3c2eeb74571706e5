"""What a notebook shows of results, in a real kernel."""

import base64
import io
import re

import numpy as np
import pytest
import torch
from PIL import Image

import inscape
from inscape import Patch, Segment, Simplex


def rule(x):
    return (x[:, 0] > 0).astype(int)


def picture(html):
    """The bytes of the picture in a page."""
    return base64.b64decode(re.search(r'src="data:image/png;base64,([^"]+)"', html)[1])


def test_a_result_is_a_line_its_status_and_a_picture():
    p = inscape.decision_regions(rule, Patch([0.0, 0.0], np.eye(2)))
    html = p._repr_html_()
    assert "&lt;2 decision regions on Patch(" in html
    assert p.status.detail
    assert p.status.detail in html
    assert picture(html).startswith(b"\x89PNG")


def test_every_kind_of_result_is_shown(rng):
    x = rng.normal(size=(20, 2))
    for result in (
        inscape.decision_regions(rule, Segment([-1.0, 0.0], [1.0, 0.0])),
        inscape.region_count(rule, x, n_probes=5, random_state=0),
        inscape.rank({"a": rule, "b": rule}, x, n_probes=5, random_state=0),
    ):
        assert picture(result._repr_html_())
    table = inscape.measure(rule, x, measures=["region_count"], random_state=0)
    assert "<table" in table._repr_html_()
    solid = inscape.decision_regions(rule, Simplex(np.eye(4)[:, :2] + rng.normal(size=(4, 2))), resolution=4)
    assert "dimension 3 has no picture" in solid._repr_html_()


def test_a_line_has_no_seventeen_digits(rng):
    for probe in (Patch.through(rng.normal(size=(3, 7))), Segment(*rng.normal(size=(2, 7)), (-1 / 3, 4 / 3))):
        assert not re.search(r"\d\.\d{6}", repr(probe))


def test_lines_are_seen_on_a_dark_style(rng):
    """No line of a picture has the colour of what it is drawn on."""
    matplotlib = pytest.importorskip("matplotlib")
    import matplotlib.pyplot as plt

    x, net = rng.normal(size=(20, 2)), inscape.training.mlp(2, (8,), 2, random_state=0).double()
    line = inscape.univariate.ShallowNet([1.0, -1.0], [0.5, 0.5], [1.0, 1.0])
    with plt.style.context("dark_background"):
        for draw in (
            inscape.region_count(net, x, n_probes=5, random_state=0).plot,
            inscape.margin(net, x, np.arange(20) % 2).plot,
            inscape.boundary_distance(net, x[0]).plot,
            inscape.linear_region(net, x[0]).plot,
            inscape.decision_regions(net, Segment([-1.0, 0.0], [1.0, 0.0])).plot,
            inscape.linear_regions(net, Segment([-1.0, 0.0], [1.0, 0.0])).plot,
            lambda: line.plot(x=[0.0, 1.0], y=[1.0, 2.0]),
        ):
            ax = draw()
            ground = matplotlib.colors.to_rgb(ax.get_facecolor())
            assert ground == (0, 0, 0)
            assert all(matplotlib.colors.to_rgb(drawn.get_color()) != ground for drawn in ax.lines), draw


@pytest.mark.slow
def test_a_kernel_shows_a_result_once_progress_and_a_dark_style():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    code = (
        "import numpy as np, inscape, matplotlib.pyplot as plt\n"
        "rule = lambda x: (x[:, 0] > 0).astype(int)\n"
        "square = inscape.Patch([0., 0.], np.eye(2))\n"
        "inscape.decision_regions(rule, square)",
        "x = np.random.default_rng(0).normal(size=(9, 2))\n"
        "_ = inscape.region_count(rule, x, n_probes=5, progress=True)",
        "plt.style.use('dark_background')\ninscape.decision_regions(rule, square)",
    )
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in code])
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
    bar = [o for o in book.cells[1].outputs if o.output_type == "display_data"]
    assert [o.data["text/plain"] for o in bar] == [""]  # one bar, updated in its place, then empty
    (shown,), (dark,) = (
        [o for o in book.cells[i].outputs if "text/html" in o.get("data", {})] for i in (0, 2)
    )
    assert "2 decision regions" in shown.data["text/html"]
    assert corner(shown) == (255, 255, 255)
    assert corner(dark) == (0, 0, 0)


def corner(output):
    """The colour in the corner of an output's picture."""
    image = Image.open(io.BytesIO(picture(output.data["text/html"]))).convert("RGB")
    return image.getpixel((0, 0))


def test_tables_are_shown_as_a_reader_wants_them():
    with torch.random.fork_rng():
        torch.manual_seed(1)
        net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    x, y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 2
    table = inscape.measure(net, x, y, measures=["region_count", "accuracy"], random_state=0)._repr_html_()
    assert "dim 1" in table
    checks = inscape.theory.check_all(net, x, y, n_noise=4, random_state=0)
    applied = [c for c in checks if c.verdict != "does not apply"]
    shown = checks._repr_html_()
    assert shown.count("<tr") == 1 + len(applied)
    assert applied[0].name in shown
    for html in (table, shown):
        assert not re.search(r"schema|NaN|None|[{}]", html)
