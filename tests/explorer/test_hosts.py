"""The other hosts: a notebook's widget, checkpoints in a row, saved files, the command line."""

import base64
import json
import re

import numpy as np
import pandas as pd
import pytest
import torch
from explored import images, moons, network
from typer.testing import CliRunner

import inscape
from inscape.cli import app
from inscape.errors import DataError, ModelError, PictureError
from inscape.explorer.messages import unpacked


def test_a_widget_answers_as_the_server_does():
    anywidget = pytest.importorskip("anywidget")
    explorer = inscape.explore(network(0), *images())
    bundle = explorer._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "application/vnd.jupyter.widget-view+json" in data
    assert anywidget


@pytest.mark.slow
def test_a_kernel_shows_the_widget_below_the_cell():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("anywidget")
    code = (
        "import numpy as np, inscape\n"
        "x = np.random.default_rng(0).normal(size=(30, 2))\n"
        "inscape.explore(lambda x: (x[:, 0] > 0).astype(int), x)"
    )
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(book, timeout=240, kernel_name="python3").execute()
    shown = [o for o in book.cells[0].outputs if o.output_type in ("execute_result", "display_data")]
    (output,) = shown
    view = output["data"]["application/vnd.jupyter.widget-view+json"]
    states = book.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    state = states[view["model_id"]]["state"]
    assert "export default { render }" in state["_esm"]
    assert ".inscape-explorer" in state["_css"]


def test_a_monitor_that_kept_its_models_is_a_sequence():
    x, y = moons()
    net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).double()
    monitor = inscape.Monitor(x, y, measures=["margin"], every=1, keep_models=True)
    for step in range(3):
        monitor.step(net, step)
        with torch.no_grad():
            net[0].bias += 1.0
    explorer = inscape.explore(monitor, x, y)
    assert explorer.exhibit.is_sequence
    assert explorer.exhibit.names == ("step 0", "step 1", "step 2")
    biases = [m.module[0].bias[0].item() for m in explorer.exhibit.models]
    assert np.diff(biases) == pytest.approx([1.0, 1.0])
    with pytest.raises(ModelError, match="kept no models: make it with keep_models=True"):
        inscape.explore(inscape.Monitor(x, y), x, y)


def messages_of(path):
    text = re.search(r"data-inscape-messages>\n(.*?)\n</script>", path.read_text(), re.S)[1]
    return [unpacked(base64.b64decode(line)) for line in text.split("\n")]


def test_a_saved_file_holds_what_was_given_escaped(tmp_path):
    x, y = images()
    explorer = inscape.explore(
        {"a": network(0), "b": network(1)}, x, y, title="</title><script>evil()</script>"
    )
    path = explorer.save(tmp_path / "page.html", count=False)
    text = path.read_text()
    assert "<script>evil" not in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "script-src 'sha256-" in text
    found = messages_of(path)
    asked = [header["reply"] for header, _ in found]
    assert asked.count("plane") == 2
    assert asked.count("difference") == asked.count("largest") == 2
    header, _ = next(m for m in found if m[0]["reply"] == "difference")
    window = header["window"]
    home = inscape.Patch.through(x[[int(np.flatnonzero(y == k)[0]) for k in y_order(y)]])
    patch = inscape.Patch(home.origin, home.axes, ((window[0], window[1]), (window[2], window[3])))
    expected = inscape.compare(network(0), network(1), patch).disagreement
    assert header["disagreement"] == pytest.approx(expected)
    with pytest.raises(PictureError, match=r"ends in \.html"):
        explorer.save(tmp_path / "page.png")


def y_order(y):
    """The first three classes in the order of their first rows."""
    classes, first = np.unique(y, return_index=True)
    return classes[np.argsort(first)][:3]


def test_tables_are_measured_in_standard_deviations(rng):
    x = rng.normal(size=(20, 3)) * [1.0, 100.0, 0.01]
    shown = inscape.explore(lambda x: x, x, rows=(0, 1, 2), features=["a", "b", "c"]).exhibit
    assert shown.about["data"]["kind"] == "table"
    expected = inscape.Patch.through(x, rows=(0, 1, 2), scale="std")
    np.testing.assert_allclose(shown.start.home.axes, expected.axes)
    np.testing.assert_allclose(shown.start.corner_coordinates, expected.marks, atol=1e-9)
    plain = inscape.explore(lambda x: x, x, rows=(0, 1, 2), scale=None).exhibit
    np.testing.assert_allclose(plain.start.home.axes, inscape.Patch.through(x[:3]).axes)


def test_features_have_units_by_name_in_order_or_from_the_frame(rng):
    frame = pd.DataFrame(rng.normal(size=(9, 3)), columns=["height", "age", "colour"])
    for units in ({"height": "cm", "age": "a"}, ["cm", "a", None]):
        about = inscape.explore(lambda x: x, frame, units=units).exhibit.about
        assert about["data"]["units"] == ["cm", "a", ""]
    frame.attrs["units"] = {"age": "a", "income": "EUR"}
    assert inscape.explore(lambda x: x, frame).exhibit.about["data"]["units"] == ["", "a", ""]
    with pytest.raises(DataError, match="hieght"):
        inscape.explore(lambda x: x, frame, units={"hieght": "cm"})
    with pytest.raises(DataError, match="one for each of the 3 features"):
        inscape.explore(lambda x: x, frame, units="cm")


def test_data_that_make_no_plane_are_refused():
    with pytest.raises(DataError, match="one feature"):
        inscape.explore(lambda x: x, np.zeros((5, 1)))
    with pytest.raises(DataError, match="a plane goes through three"):
        inscape.explore(lambda x: x, np.eye(4)[:2])
    with pytest.raises(DataError, match=r"image_shape=\(5, 5\) does not hold the 36 numbers"):
        inscape.explore(lambda x: x, np.random.default_rng(0).normal(size=(9, 36)), image_shape=(5, 5))
    with pytest.raises(ModelError, match="no model to explore"):
        inscape.explore({}, np.eye(4))


@pytest.mark.slow
def test_the_command_takes_a_folder_of_checkpoints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kept.py").write_text("import torch\ndef net():\n    return torch.nn.Linear(2, 2)\n")
    (tmp_path / "run").mkdir()
    for step in (2, 10):
        torch.manual_seed(step)
        torch.save(torch.nn.Linear(2, 2).state_dict(), tmp_path / "run" / f"step{step}.pt")
    x, y = moons()
    np.savez(tmp_path / "data.npz", x=x, y=y)
    line = ["explore", "kept:net", "--weights", "run", "--data", "data.npz", "--save", "page.html"]
    line += ["--names", "upper, lower"]
    result = CliRunner().invoke(app, line)
    assert result.exit_code == 0, result.output
    (about,) = [header for header, _ in messages_of(tmp_path / "page.html") if header["reply"] == "hello"]
    assert [m["name"] for m in about["models"]] == ["step2.pt", "step10.pt"]
    assert about["is_sequence"]
    assert [c["name"] for c in about["classes"]] == ["upper", "lower"]
    assert "weights='run/step2.pt'" in about["source"]
    known = {}
    exec(about["source"], known)
    assert sorted(known["models"]) == ["step10.pt", "step2.pt"]
    assert json.dumps(known["x"].tolist()) == json.dumps(x.tolist())
    empty = CliRunner().invoke(app, ["explore", str(tmp_path), "--data", "data.npz"])
    assert (empty.exit_code, "holds no model" in empty.output) == (2, True)
