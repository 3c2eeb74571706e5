"""What outputs stand for, from the command line: as `wrap` has it."""

import json

import numpy as np
import pytest
import torch
from torch import nn

import inscape


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rules")
    torch.manual_seed(0)
    for name, n_out in (("scores", 5), ("value", 1)):
        net = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, n_out))
        torch.export.save(torch.export.export(net, (torch.zeros(1, 4),)), folder / f"{name}.pt2")
    np.savez(folder / "x.npz", x=np.random.default_rng(0).normal(size=(60, 4)))
    return folder


@pytest.mark.parametrize(
    ("model", "arguments", "options"),
    [
        ("scores", ("--decide", "argmin"), {"decide": "argmin"}),
        ("scores", ("--decide", "sign"), {"decide": "sign"}),
        ("scores", ("--output", "0,2", "--threshold", "-0.2"), {"output": (0, 2), "threshold": -0.2}),
        ("value", ("--levels", "-0.1,0.1"), {"levels": [-0.1, 0.1]}),
        ("value", ("--levels", "3"), None),
    ],
)
def test_a_rule_is_that_of_wrap(run, files, model, arguments, options):
    data = ("--data", files / "x.npz", "--probes", 20, "--json", "--measure", "region_count")
    result = run("measure", files / f"{model}.pt2", *data, *arguments)
    assert result.exit_code == 0, result.output
    x = np.load(files / "x.npz")["x"]
    if options is None:
        options = {"levels": inscape.quantile_levels(files / f"{model}.pt2", x, 3)}
    expected = inscape.region_count(
        inscape.wrap(files / f"{model}.pt2", **options), x, n_probes=20, random_state=0
    )
    assert expected.is_exact
    assert json.loads(result.stdout)["rows"][0]["value"] == expected.mean


def test_an_unknown_rule_is_one_line(run, files):
    result = run("measure", files / "scores.pt2", "--data", files / "x.npz", "--decide", "median")
    assert result.exit_code == 2
    assert "decide" in result.stderr


def test_quantiles_cut_the_data_into_equal_parts(files):
    x = np.load(files / "x.npz")["x"]
    levels = inscape.quantile_levels(files / "value.pt2", x, 4)
    labels = inscape.wrap(files / "value.pt2", levels=levels).labels(x)
    assert np.bincount(labels).tolist() == [15, 15, 15, 15]


def test_several_outputs_have_no_quantiles(files):
    with pytest.raises(inscape.InscapeError, match="output"):
        inscape.quantile_levels(files / "scores.pt2", np.zeros((3, 4)))
