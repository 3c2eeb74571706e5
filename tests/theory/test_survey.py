"""`survey`: a small one, and the table of the docs."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

import inscape
from inscape import theory
from inscape.theory.check_all import STATEMENTS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
def test_a_small_survey(tmp_path):
    """One test, since the survey takes seconds."""
    small = theory.survey(
        widths=(16,), depths=(1, 2), scales=(1.0,), sigmas=(1.0,), epochs=20, n_noise=3, random_state=0
    )
    frame = small.to_frame()
    # every statement is surveyed
    assert set(frame["name"]) == set(STATEMENTS)
    assert set(frame.loc[frame["name"] == "lc_theorem7", "step"]) == {0.0, 2.0, 20.0}
    # no corrected form is violated
    assert not (frame.loc[frame["form"] == "corrected", "verdict"] == "violated").any()
    wrong = set(frame.loc[frame["verdict"] == "violated", "name"])
    assert {"rc_theorem5"} <= wrong <= {n for n, (forms, _) in STATEMENTS.items() if len(forms) == 2}
    # the table summarises the rows
    table = small.table().set_index("statement")
    rows = frame[(frame["statement"] == "lc_theorem5_upper") & (frame["form"] == "stated")]
    assert table.loc["lc_theorem5_upper", "stated n"] == len(rows)
    assert table.loc["lc_theorem5_upper", "stated median ratio"] == np.median(rows["ratio"])
    assert table.loc["lc_theorem5_upper", "corrected violated"] == 0.0
    assert table.loc["el_theorem31", "does not apply"] > 0
    assert np.isnan(table.loc["rc_lemma7", "corrected median ratio"])
    # it is plain data and a picture
    json.dumps(small.to_dict(), allow_nan=False)
    assert "of corrected forms violated" in repr(small)
    ax = small.plot()
    ax.figure.savefig(tmp_path / "tightness.png")
    assert (tmp_path / "tightness.png").stat().st_size > 10_000
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert "lc_proposition8" in names


def test_arguments_are_checked():
    with pytest.raises(inscape.InscapeError, match="at least one width"):
        theory.survey(widths=())
    with pytest.raises(inscape.InscapeError, match="epochs=3"):
        theory.survey(epochs=3)


def test_descent_of_two_layers(rng):
    net = theory.TwoLayer(rng.normal(size=(20, 3)), rng.choice([-1.0, 1.0], 20), np.zeros(20))
    x, y = rng.normal(size=(5, 3)), rng.choice([-1.0, 1.0], 5)
    run = theory.two_layer_descent(net, x, y, 0.02, 500, n_records=5)
    assert run.losses[-1] < run.losses[0] / 2
    assert (run.nets[0].w == net.w).all()
    rest = net(x) - y
    step = np.einsum("np,n,nd->pd", net.active(x) * net.a, rest, x) / 5
    one = theory.two_layer_descent(net, x, y, 0.02, 1, n_records=2).nets[-1]
    assert one.w == pytest.approx(net.w - 0.02 * step)
    assert theory.two_layer_descent(net, x, y, 1e3, 500).status == "diverged"
    assert theory.two_layer_descent(net, x, y, 0.02, 10, warm_up=9).nets[-1].w != pytest.approx(
        theory.two_layer_descent(net, x, y, 0.02, 10).nets[-1].w
    )


def test_the_table_of_the_docs_is_that_of_its_file(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    table = importlib.import_module("tightness_table")
    assert table.rows() in table.PAGE.read_text(encoding="utf-8")
