"""What a notebook shows of results, in a real kernel."""

import base64
import re

import numpy as np
import pytest

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


@pytest.mark.slow
def test_a_kernel_shows_a_result_once():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    code = (
        "import numpy as np, inscape\n"
        "inscape.decision_regions(lambda x: (x[:, 0] > 0).astype(int), inscape.Patch([0., 0.], np.eye(2)))"
    )
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
    shown = [o for o in book.cells[0].outputs if o.output_type in ("execute_result", "display_data")]
    (output,) = shown
    assert "2 decision regions" in output.data["text/html"]
    assert picture(output.data["text/html"])
