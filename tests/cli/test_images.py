"""Commands on images: folders of them, layouts, and what cannot be read."""

import json

import numpy as np
import pytest
import torch
from onnx_files import export
from PIL import Image
from torch import nn

import inscape

NORMALISED = ("--mean", "0.4,0.5,0.6", "--std", "0.2,0.3,0.25", "--scale", "1/255")
PREPROCESS = {"mean": (0.4, 0.5, 0.6), "std": (0.2, 0.3, 0.25), "scale": 1 / 255}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A network of (3, 8, 6) as a file, and channel-last images of pixels that it labels rightly."""
    folder = tmp_path_factory.mktemp("images")
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(48, 4)
    net = export(nn.Sequential(*layers), (3, 8, 6), folder / "net.onnx")
    x = np.random.default_rng(0).integers(256, size=(80, 8, 6, 3)).astype(float)
    y = inscape.wrap(net, layout="HWC", preprocess=PREPROCESS).labels(x)
    np.savez(folder / "data.npz", x=x, y=y)
    return net, folder / "data.npz", x


def test_measure_equals_the_library(run, files):
    net, data, x = files
    result = run("measure", net, "--data", data, "--layout", "HWC", *NORMALISED, "--probes", 10, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    model = inscape.wrap(net, layout="HWC", preprocess=PREPROCESS)
    expected = inscape.region_count(model, x, n_probes=10, random_state=0)
    assert found["rows"][0]["value"] == expected.mean
    assert found["rows"][1]["value"] == 1.0
    assert found["provenance"]["layout"] == "HWC"
    assert found["provenance"]["preprocess"]["mean"] == [0.4, 0.5, 0.6]


def test_a_missing_layout_is_one_line_with_both_shapes(run, files):
    net, data, _ = files
    result = run("measure", net, "--data", data)
    assert result.exit_code == 2
    assert "takes points of shape (3, 8, 6), got (8, 6, 3)" in result.stderr
    assert "--layout HWC" in result.stderr


def test_rank_plot_and_check_take_them_too(run, files, tmp_path):
    net, data, _ = files
    other = tmp_path / "other.onnx"
    other.write_bytes(net.read_bytes())
    how = ("--data", data, "--layout", "hwc", *NORMALISED)
    ranked = run("rank", net, other, *how, "--probes", 5, "--json")
    assert ranked.exit_code == 0, ranked.output
    assert json.loads(ranked.stdout)["results"]["net.onnx"]["provenance"]["layout"] == "HWC"
    out = tmp_path / "p.png"
    drawn = run("plot", net, *how, "--points", 0, 1, 2, "-o", out, "--json")
    assert drawn.exit_code == 0, drawn.output
    assert json.loads(drawn.stdout)["provenance"]["preprocess"]["scale"] == 1 / 255
    with Image.open(out) as picture:
        assert min(picture.size) > 300
    checked = run("check", net, *how, "--max-points", 10, "--noise", 2, "--json")
    assert checked.exit_code == 0, checked.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--mean", "a,b"), "--mean 'a,b' is not a number"),
        (("--scale", "1/0"), "--scale '1/0' is not a number"),
        (("--std", "0"), "holds 0"),
        (("--layout", "WHC"), "unknown layout 'WHC'"),
        (("--layout", "HWC", "--mean", "1,2"), "mean has 2 numbers, but points of shape (3, 8, 6)"),
    ],
)
def test_what_cannot_be_read_is_one_line(run, files, options, message):
    net, data, _ = files
    result = run("measure", net, "--data", data, *options)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.filterwarnings("default")
def test_an_accuracy_at_chance_is_a_warning_on_stderr(run, files, tmp_path):
    net, _, x = files
    y = np.random.default_rng(1).integers(4, size=len(x))
    np.savez(tmp_path / "shuffled.npz", x=x, y=y)
    how = ("--data", tmp_path / "shuffled.npz", "--layout", "HWC", *NORMALISED)
    for command in (("measure", net), ("plot", net, "-o", tmp_path / "p.png", "--segment", 0, 1)):
        result = run(*command, *how)
        assert result.exit_code == 0, result.output
        assert "inscape: warning:" in result.stderr
        assert "no better than chance among 4 classes" in result.stderr


def test_images_that_are_not_held_are_divided_by_the_model(run, files, tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for k in range(3):
            Image.fromarray(np.full((8, 6, 3), 40 * k, np.uint8)).save(tmp_path / name / f"{k}.png")
    monkeypatch.setattr("inscape.training.data.own_files.STREAMED_FROM", 0)
    asked = ("measure", files[0], "--data", tmp_path, "--probes", 2, "--json")
    refused = run(*asked, "--divide", 2)
    assert refused.exit_code == 2
    assert "has too many images" in refused.output
    assert run(*asked, "--scale", refused.output.split("--scale ")[1].split()[0]).exit_code == 0
