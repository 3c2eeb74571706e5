"""Commands with files of networks and tables: what they print, as text and JSON; errors are one line."""

import importlib
import json

import numpy as np
import pandas as pd
import pytest
import skops.io
import torch
import typer
from matplotlib.collections import PathCollection
from networks import mlp
from onnx_files import export
from PIL import Image
from rich.text import Text
from sklearn.datasets import load_wine, make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import inscape
from inscape.cli import app
from inscape.errors import NonGenericError
from inscape.partition.decision import DecisionSegment

UNTRAINED = pytest.mark.filterwarnings("ignore:.*no better than chance:inscape.errors.InscapeWarning")


@pytest.fixture(scope="module")
def models(tmp_path_factory, digits):
    folder = tmp_path_factory.mktemp("models")
    x = digits.x.reshape(len(digits), -1)
    for depth in (3, 10):
        tree = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(x[:600], digits.y[:600])
        skops.io.dump(tree, folder / f"depth{depth}.skops")
    return folder


def test_version_and_help(run):
    assert run("--version").stdout == f"inscape {inscape.__version__}\n"
    for command in ("demo", "measure", "rank", "plot", "check"):
        assert command in run("--help").stdout
        assert "Usage" in run(command, "--help").stdout


def test_no_help_is_taken_for_markup(run):
    """Brackets in a help text are markup to rich, which leaves them out, defaults among them."""
    commands = [typer.main.get_command(app)]
    for command in commands:
        commands += getattr(command, "commands", {}).values()
        helps = [getattr(p, "help", None) or "" for p in command.params]
        assert [Text.from_markup(h).plain for h in helps] == helps
    assert len(commands) > 10
    shown = " ".join(run("measure", "--help").stdout.replace("│", " ").split())
    assert "[default: (0.03 and 0.1)]" in shown


def test_a_plane_of_a_table_is_measured_in_standard_deviations_and_its_rows_are_named(run, tmp_path):
    """The deviation of proline is 300 times that of the others: in raw units it alone decides the picture."""
    wine = load_wine(as_frame=True)
    table = wine.data[wine.data.columns[::-1]]  # in another order: columns are found by name
    files = [tmp_path / "a.skops", tmp_path / "b.skops"]
    for seed, file in enumerate(files):
        model = RandomForestClassifier(5, random_state=seed).fit(table, wine.target_names[wine.target])
        skops.io.dump(model, file)
    wine.data.assign(y=wine.target_names[wine.target]).to_csv(tmp_path / "wine.csv", index=False)
    for data in ("wine", tmp_path / "wine.csv"):
        how = ("--data", data, "--points", 0, 70, 150)
        for command in (("plot", files[0]), ("compare", *files)):
            written = json.loads(run(*command, *how, "--json").stdout)
            plane = (written if command[0] == "plot" else written["regions"])["probe_data"]
            assert plane["unit"] == pytest.approx(table.std(ddof=0).tolist())
            assert plane["mark_names"] == ["row 0", "row 70", "row 150"]
            assert plane["feature_names"] == list(table.columns)


def test_two_features_are_drawn_whole_with_ticks_and_points(run, tmp_path, monkeypatch):
    x, y = make_moons(60, noise=0.2, random_state=0)
    skops.io.dump(DecisionTreeClassifier(random_state=0).fit(x, y), tmp_path / "tree.skops")
    pd.DataFrame(x, columns=["width", "height"]).assign(y=y).to_csv(tmp_path / "moons.csv", index=False)
    np.savez(tmp_path / "moons.npz", x=x, y=y)
    drawn = []
    module = importlib.import_module("inscape.cli.plot")
    monkeypatch.setattr(module, "save_picture", lambda ax, path: drawn.append(ax))
    for data, names in (("moons.csv", ("width", "height")), ("moons.npz", ("feature 0", "feature 1"))):
        result = run("plot", tmp_path / "tree.skops", "--data", tmp_path / data, "-o", "p.png")
        assert result.exit_code == 0, result.output
        ax = drawn.pop()
        assert (ax.get_xlabel(), ax.get_ylabel()) == names
        low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
        assert (low < x.min(axis=0)).all()
        assert (high > x.max(axis=0)).all()
        assert sum(len(c.get_offsets()) for c in ax.collections if isinstance(c, PathCollection)) >= 60


def test_no_arguments_show_the_help(run):
    assert "Usage" in run().output


def test_measure(run, models):
    result = run("measure", models / "depth3.skops", "--data", "digits")
    assert result.exit_code == 0
    assert "region_count" in result.stdout
    assert "accuracy" in result.stdout


def test_measure_json_equals_the_library(run, models, digits):
    result = run(
        "measure", models / "depth3.skops", "--data", "digits", "--probes", 20, "--seed", 5, "--json"
    )
    row = json.loads(result.stdout)["rows"][0]
    model = inscape.wrap(models / "depth3.skops")
    assert row["value"] == inscape.region_count(model, digits.x, n_probes=20, random_state=5).mean


def test_measures_by_name(run, models, digits):
    names = ("--measure", "accuracy", "--measure", "margin", "--measure", "local_complexity")
    rows = json.loads(run("measure", models / "depth3.skops", "--data", "digits", *names, "--json").stdout)[
        "rows"
    ]
    assert [row["measure"] for row in rows] == ["accuracy", "margin", "local_complexity"]
    assert rows[1]["value"] == inscape.margin(models / "depth3.skops", digits.x, digits.y).value
    assert "made of trees" in rows[2]["note"]
    wrong = run("measure", models / "depth3.skops", "--data", "digits", "--measure", "sharpnes")
    assert wrong.exit_code == 2
    assert "did you mean 'sharpness'" in wrong.stderr


def test_rank(run, models):
    arguments = ("rank", models / "depth10.skops", models / "depth3.skops", "--data", "digits")
    text = run(*arguments, "--train", "digits").stdout
    for heading in ("P(< next)", "train", "accuracy", "gap"):
        assert heading in text
    assert text.strip().endswith("more accurate.")
    data = json.loads(run(*arguments, "--json").stdout)
    assert data["order"] == ["depth3.skops", "depth10.skops"]
    assert data["probabilities"][0] > 0.99
    assert max(map(len, run(*arguments, "--json").stdout.splitlines())) > 200  # counts are on one line
    assert len(run(*arguments, "--json").stdout.splitlines()) < 120


@UNTRAINED
def test_rank_several_states_of_one_factory(run, tmp_path, monkeypatch, digits):
    import torch
    from safetensors.torch import save_file

    (tmp_path / "rank_nets.py").write_text(
        "from torch import nn\ndef net():\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    states = []
    for seed in range(3):
        weight = torch.randn(10, 64, generator=torch.Generator().manual_seed(seed))
        save_file({"1.weight": weight, "1.bias": torch.zeros(10)}, tmp_path / f"s{seed}.safetensors")
        states += ["--weights", tmp_path / f"s{seed}.safetensors"]
    result = run("rank", "rank_nets:net", *states, "--data", "digits", "--probes", 5, "--json")
    assert sorted(json.loads(result.stdout)["order"]) == [
        "s0.safetensors",
        "s1.safetensors",
        "s2.safetensors",
    ]
    both = run("rank", "rank_nets:net", "other:net", *states, "--data", "digits")
    assert both.exit_code == 2
    assert "give one MODEL" in both.stderr


@pytest.mark.parametrize("where", [("--points", 0, 1, 4), ("--segment", 0, 1), ()])
def test_plot(run, models, tmp_path, where):
    out = tmp_path / "picture.png"
    result = run("plot", models / "depth10.skops", "--data", "digits", *where, "-o", out, "--resolution", 40)
    assert result.exit_code == 0, result.output
    with Image.open(out) as picture:
        assert min(picture.size) > 300


@pytest.mark.slow
@pytest.mark.parametrize(("where", "method"), [((), "exact"), (("--segment", 0, 1), "exact")])
def test_plot_needs_no_resolution(run, models, tmp_path, where, method):
    out = tmp_path / "picture.png"
    result = run("plot", models / "depth10.skops", "--data", "digits", *where, "-o", out, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["method"] == method


@pytest.mark.parametrize("command", ["measure", "rank"])
def test_counting_adaptively(run, models, command):
    files = [models / "depth3.skops", models / "depth10.skops"][: 1 if command == "measure" else 2]
    result = run(command, *files, "--data", "digits", "--method", "adaptive", "--probes", 5, "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    rows = [data["rows"][0]] if command == "measure" else list(data["results"].values())
    assert {r["method"] for r in rows} == {"adaptive"}


def test_plot_json(run, models, tmp_path):
    out = tmp_path / "p.png"
    arguments = (
        "plot",
        models / "depth10.skops",
        "--data",
        "digits",
        "-o",
        out,
        "--resolution",
        30,
        "--json",
    )
    data = json.loads(run(*arguments).stdout)
    assert data["picture"] == str(out)
    assert data["n_regions"] == len(data["labels"])


@pytest.fixture
def net(tmp_path, monkeypatch):
    """A factory of a small relu network on digits."""
    (tmp_path / "plot_nets.py").write_text(
        "import torch\nfrom torch import nn\ndef net():\n    torch.manual_seed(0)\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 3))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return "plot_nets:net"


@UNTRAINED
@pytest.mark.parametrize(
    ("how", "method"),
    [
        ((), "exact"),
        (("--method", "exact"), "exact"),
        (("--method", "grid"), "grid"),
        (("--resolution", 9), "grid"),
    ],
)
def test_planes_of_networks_are_exact_unless_a_grid_is_asked_for(run, net, tmp_path, digits, how, method):
    out = tmp_path / "p.png"
    result = run("plot", net, "--data", "digits", "--points", 0, 1, 2, "-o", out, "--json", *how)
    data = json.loads(result.stdout)
    assert data["method"] == method
    if method == "exact":
        model = inscape.wrap(importlib.import_module("plot_nets").net())
        probe = inscape.Patch.through(digits.x[:3])
        assert data["n_regions"] == inscape.decision_regions(model, probe, method="exact").n_regions
    assert out.exists()


@pytest.mark.filterwarnings("default")
def test_a_plane_that_float64_cannot_order_is_drawn_adaptively(run, net, tmp_path, monkeypatch):
    def tied(*_, **__):
        raise NonGenericError("lines meet too closely")

    monkeypatch.setattr("inscape.partition.linear.planes.subdivision.subdivision_on", tied)
    arguments = ("plot", net, "--data", "digits", "-o", tmp_path / "p.png", "--json")
    drawn = run(*arguments)
    assert json.loads(drawn.stdout)["method"] == "adaptive"
    assert (
        "inscape: warning: method='adaptive' instead of exact, since lines meet too closely" in drawn.stderr
    )
    refused = run(*arguments, "--method", "exact")
    assert refused.exit_code == 2
    assert "lines meet too closely" in refused.stderr


@pytest.mark.parametrize("ending", ["json", "csv", "geojson"])
def test_a_plane_is_written_as_regions(run, models, tmp_path, ending):
    out = tmp_path / f"plane.{ending}"
    where = ("plot", models / "depth10.skops", "--data", "digits", "--points", 0, 1, 2)
    result = run(*where, "-o", out)
    assert result.exit_code == 0, result.stderr
    said = json.loads(run(*where, "--json").stdout)
    assert said["picture"] is None
    if ending == "csv":
        assert len(out.read_text().splitlines()) == 1 + said["n_regions"]
    elif ending == "json":
        assert json.loads(out.read_text())["polygons"] == said["polygons"]
    else:
        kinds = [f["geometry"]["type"] for f in json.loads(out.read_text())["features"]]
        assert sum("Polygon" in kind for kind in kinds) == said["n_regions"]


def test_regions_are_written_with_the_names_that_are_given(run, models, tmp_path):
    out = tmp_path / "plane.geojson"
    where = ("plot", models / "depth10.skops", "--data", "digits", "--points", 0, 1, 2)
    said = json.loads(run(*where, "--names", "o,i,b,c,d,e,f,g,h,j", "--json", "-o", out).stdout)
    assert said["class_names"] == list("oibcdefghj")
    features = [f["properties"] for f in json.loads(out.read_text())["features"]]
    regions = [f for f in features if f["kind"] == "region"]
    assert [f["class_name"] for f in regions] == ["oibcdefghj"[label] for label in said["labels"]]
    few = run(*where, "--names", "o", "-o", out)
    assert (few.exit_code, "class_names has 1 names" in few.stderr) == (2, True)


@UNTRAINED
def test_linear_regions_are_written_whatever_names_are_given(run, net, tmp_path):
    out = tmp_path / "plane.csv"
    where = ("plot", net, "--data", "digits", "--points", 0, 1, 2, "--linear", "-o", out)
    assert run(*where, "--names", "a,b,c").exit_code == 0
    assert len(out.read_text().splitlines()) > 3


def test_a_plane_needs_somewhere_to_go(run, models):
    result = run("plot", models / "depth3.skops", "--data", "digits")
    assert result.exit_code == 2
    assert "-o plane.png draws" in result.stderr


@UNTRAINED
@pytest.mark.parametrize("points", [("--points", 0, 1, 2), ("--segment", 0, 1)])
def test_a_picture_that_has_not_converged_says_so(run, tmp_path, monkeypatch, points):
    (tmp_path / "fine_waves.py").write_text(
        "import numpy as np\ndef waves():\n"
        "    return lambda x: np.sin(900 * x.reshape(len(x), -1).sum(axis=1, keepdims=True))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    out = tmp_path / "p.png"
    result = run("plot", "fine_waves:waves", "--data", "digits", "-o", out, "--json", *points)
    data = json.loads(result.stdout)
    assert data["status"].startswith("not converged")
    assert data["is_exact"] is False
    assert "inscape: warning: the picture may be wrong (adaptive): not converged" in result.stderr


@UNTRAINED
@pytest.mark.parametrize(
    "colour", [(), ("--colour", "pattern"), ("--colour", "layer"), ("--colour", "slope")]
)
def test_plot_linear(run, net, tmp_path, digits, colour):
    out = tmp_path / "p.png"
    result = run(
        "plot", net, "--data", "digits", "--points", 0, 1, 2, "--linear", *colour, "-o", out, "--json"
    )
    model = inscape.wrap(importlib.import_module("plot_nets").net())
    q = inscape.linear_regions(model, inscape.Patch.through(digits.x[:3]))
    assert json.loads(result.stdout)["n_regions"] == q.n_regions
    assert out.exists()


@UNTRAINED
def test_plot_linear_segment(run, net, tmp_path):
    out = tmp_path / "p.png"
    assert run("plot", net, "--data", "digits", "--segment", 0, 1, "--linear", "-o", out).exit_code == 0
    assert out.exists()


def test_what_a_factory_prints_does_not_break_json(run, tmp_path, monkeypatch):
    (tmp_path / "chatty.py").write_text(
        "def rule():\n    print('hello')\n    return lambda x: (x[:, 2, 3] > 0.4).astype(int)\n"
    )
    monkeypatch.chdir(tmp_path)
    result = run("measure", "chatty:rule", "--data", "digits", "--probes", 30, "--json")
    assert json.loads(result.stdout)["rows"]
    assert "hello" in result.stderr


def test_npz_data_and_scaling(run, models, tmp_path, digits):
    np.savez(tmp_path / "d.npz", x=(digits.x * 16).astype(np.uint8), y=digits.y)
    base = ("measure", models / "depth3.skops", "--json", "--probes", 10)
    a = json.loads(run(*base, "--data", tmp_path / "d.npz", "--divide", 16).stdout)
    b = json.loads(run(*base, "--data", "digits").stdout)
    assert [r["value"] for r in a["rows"]] == [r["value"] for r in b["rows"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("measure", "missing.onnx", "--data", "digits"), "missing.onnx cannot be read"),
        (("measure", "{m}/depth3.skops", "--data", "digit"), "did you mean 'digits'"),
        (("measure", "{m}/depth3.skops", "--data", "missing.npz"), "missing.npz does not exist"),
        (("measure", "{m}/depth3.skops", "--data", "iris"), "expects points of shape (64,), got (4,)"),
        (("measure", "{m}/depth3.skops", "--data", "digits", "--method", "gird"), "did you mean 'grid'"),
        (
            ("measure", "{m}/depth3.skops", "--data", "digits", "--resolution", "1"),
            "resolution=1 is too small",
        ),
        (("measure", "{m}/depth3.skops", "--data", "digits", "--divide", "0"), "give a non-zero number"),
        (("measure", "{m}/depth3.skops", "--data", "digits", "--input-shape", "8x8"), "write numbers"),
        *(
            (("measure", "{m}/depth3.skops", "--data", "digits", *words), message)
            for words, message in (
                (("--input-shape=-4",), "input_shape=(-4,) is not a shape: give positive numbers"),
                (("--input-shape", "0,8"), "input_shape=(0, 8) is not a shape"),
                (("--input-shape", ""), "is not a shape"),
                (("--probes", "1000000000"), "1,000,000,000 random probes are over the limit"),
                (("--resolution", "100000000"), "a grid of 10^8 points per probe, over the limit"),
                (("--dim", "8", "--probes", "100000"), "adaptive cells in 8 dimensions take about 12 s"),
            )
        ),
        (("measure", "{m}/depth3.skops"), "Missing option '--data'"),
        (("measure", "{m}/depth3.skops", "--data", "digits", "--dim", "0"), "--dim"),
        (("measure", "{m}/depth3.skops", "--data", "digits", "--dim", "12"), "lower the dimension"),
        (("measure", "{m}/depth3.skops", "--data", "digits", "--device", "cpu"), "is for torch modules"),
        (("measures",), "measures"),
        (
            ("plot", "{m}/depth3.skops", "--data", "digits", "-o", "x.png", "--resolution", "0"),
            "resolution=0",
        ),
        (("plot", "{m}/depth3.skops", "--data", "digits", "-o", "x.png", "--method", "gird"), "'grid'"),
        (
            ("plot", "{m}/depth3.skops", "--data", "digits", "-o", "x.png", "--linear", "--resolution", "9"),
            "leave out",
        ),
        (
            ("plot", "{m}/depth3.skops", "--data", "digits", "-o", "x.png", "--colour", "layer"),
            "with --linear",
        ),
        (
            ("plot", "{m}/depth3.skops", "--data", "digits", "-o", "x.png", "--linear", "--colour", "later"),
            "did you mean 'layer'",
        ),
        (("plot", "{m}/depth3.skops", "--data", "digits", "-o", "x.png", "--linear"), "piecewise constant"),
        (("rank", "{m}/depth3.skops", "--data", "digits"), "at least two models"),
        (("rank", "{m}/depth3.skops", "{m}/depth3.skops", "--data", "digits"), "named twice"),
        (("plot", "{m}/depth3.skops", "--data", "digits", "-o", "x.bmp2"), "must end in"),
        (("plot", "{m}/depth3.skops", "--data", "digits", "-o", "no/such/folder/x.png"), "cannot write"),
        (("plot", "{m}/nothing.skops", "--data", "digits", "-o", "no/where/x.csv"), "no folder no/where"),
        (
            ("compare", "{m}/nothing.skops", "{m}/none.skops", "--data", "digits", "-o", "no/x.png"),
            "folder no",
        ),
        (
            ("plot", "{m}/depth3.skops", "--data", "digits", "-o", "x.png", "--points", "0", "1", "9999"),
            "rows 0 to 1796",
        ),
        (
            ("plot", "{m}/depth3.skops", "--data", "digits", "-o", "x.png", "--points", "0", "0", "1"),
            "on a line",
        ),
    ],
)
def test_user_errors_are_one_line_on_stderr_and_exit_2(
    run, models, arguments, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    result = run(*[str(a).replace("{m}", str(models)) for a in arguments])
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_pickles_are_refused_without_trust(run, tmp_path, digits):
    import joblib

    tree = DecisionTreeClassifier(max_depth=2).fit(digits.x.reshape(-1, 64), digits.y)
    joblib.dump(tree, tmp_path / "tree.joblib")
    arguments = ("measure", tmp_path / "tree.joblib", "--data", "digits", "--probes", 5)
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert "--trust-pickle" in refused.stderr
    assert run(*arguments, "--trust-pickle").exit_code == 0


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line_on_stderr(run, tmp_path, digits):
    import joblib
    from sklearn.dummy import DummyClassifier

    joblib.dump(DummyClassifier().fit(digits.x.reshape(-1, 64), digits.y), tmp_path / "d.joblib")
    result = run("measure", tmp_path / "d.joblib", "--data", "digits", "--probes", 5, "--trust-pickle")
    assert result.exit_code == 0
    assert "inscape: warning:" in result.stderr
    assert "says nothing" in result.stderr


def test_python_dash_m(tmp_path):
    import subprocess
    import sys

    out = subprocess.run(
        [sys.executable, "-m", "inscape", "--version"], capture_output=True, text=True, check=True
    )
    assert out.stdout.startswith("inscape ")


def test_control_c_is_one_line(run, models, monkeypatch):
    from inscape.cli import options

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(options.DataOptions, "read", interrupted)
    result = run("measure", models / "depth3.skops", "--data", "digits")
    assert result.exit_code == 130
    assert result.stderr.strip() == "inscape: stopped"


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_traceback(models):
    import subprocess
    import sys

    command = f"{sys.executable} -m inscape measure {models}/depth3.skops --data digits --json | head -c 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr


def test_help_does_not_load_torch():
    import subprocess
    import sys

    code = (
        "import sys; sys.argv = ['inscape', '--help']\n"
        "from inscape.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "assert 'torch' not in sys.modules and 'sklearn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_picture_has_the_names_of_the_data(run, tmp_path, monkeypatch):
    """Of models that have numbers, or nothing; names that are given come first."""
    (tmp_path / "rules.py").write_text(
        "import numpy as np\ndef rule():\n    return lambda x: (x[:, 2] > 2.5).astype(int) * 2\n"
    )
    monkeypatch.chdir(tmp_path)
    drawn = []
    kept = DecisionSegment.plot
    monkeypatch.setattr(
        DecisionSegment,
        "plot",
        lambda self, *a, **k: drawn.append(kept(self, *a, **k)) or drawn[-1],
    )
    how = ("plot", "rules:rule", "--data", "iris", "--segment", 0, 149, "-o", "p.svg")
    assert run(*how).exit_code == 0
    assert run(*how, "--names", "a, b,c", "--title", "Two flowers").exit_code == 0
    legends = [[t.get_text() for t in ax.get_legend().get_texts()] for ax in drawn]
    assert legends == [["setosa", "virginica"], ["a", "c"]]
    assert drawn[1].get_title() == "Two flowers"
    assert drawn[0].get_title().endswith(": 2 decision regions")
    refused = run(*how, "--names", "a,b")
    assert refused.exit_code == 2
    assert "class_names has 2 names" in refused.stderr


def test_settings_of_scale_reach_the_measures_that_take_them(run, tmp_path, digits):
    export(mlp(64, 8, 10), (64,), tmp_path / "net.onnx")
    asked = ("local_complexity", "local_rank", "hull_crossings", "adversarial_accuracy")
    words = [w for name in asked for w in ("--measure", name)]
    given = ("--sigma", 0.7, "--eps", 0.2, "--radius", 0.3)
    result = run("measure", tmp_path / "net.onnx", "--data", "digits", *words, *given, "--json")
    rows = {row["measure"]: row["settings"] for row in json.loads(result.stdout)["rows"]}
    assert rows["local_complexity"]["sigma"] == 0.7
    assert rows["local_rank"]["eps"] == 0.2
    assert rows["hull_crossings"]["radius"] == 0.3
    assert (rows["adversarial_accuracy"]["eps"], rows["adversarial_accuracy"]["step_size"]) == (0.3, 0.075)
    printed = run("measure", tmp_path / "net.onnx", "--data", "digits", *words[:2], "--sigma", 0.7).stdout
    assert "sigma 0.7" in printed
    unused = run("measure", tmp_path / "net.onnx", "--data", "digits", "--sigma", 0.7)
    assert unused.exit_code == 2
    assert "--sigma is for local_complexity" in unused.stderr


def test_curves_over_a_folder_of_checkpoints(run, models, tmp_path, digits):
    """depth3 stands before depth10, whatever the alphabet says; each row is what one file gives alone."""
    options = ("--data", "digits", "--probes", 10, "--measure", "region_count", "--measure", "accuracy")
    picture = tmp_path / "curve.png"
    base = ("measure", models, "--over", "checkpoints", *options)
    found = json.loads(run(*base, "--json", "--curve", picture).stdout)["checkpoints"]
    assert [each["file"] for each in found] == ["depth3.skops", "depth10.skops"]
    for each in found:
        alone = json.loads(run("measure", models / each["file"], *options, "--json").stdout)
        assert [r["value"] for r in each["rows"]] == [r["value"] for r in alone["rows"]]
    assert picture.stat().st_size > 5_000
    printed = run(*base).stdout
    assert printed.index("depth3.skops") < printed.index("depth10.skops")
    assert "2 checkpoints on digits" in printed
    assert "of depth3.skops:" in printed  # notes, such as values by layer, are of one of them


def test_curves_over_weights_of_one_network(run, tmp_path, monkeypatch, digits):
    (tmp_path / "small_net.py").write_text(
        "from torch import nn\ndef net():\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    for step in (2, 10):
        state = {"1.weight": torch.full((10, 64), float(step)), "1.bias": torch.arange(10.0)}
        (tmp_path / "weights").mkdir(exist_ok=True)
        torch.save(state, tmp_path / "weights" / f"step-{step}.pt")
    base = ("measure", "small_net:net", "--data", "digits", "--measure", "total_variation")
    over = ("--over", "checkpoints", "--weights", tmp_path / "weights")
    found = json.loads(run(*base, *over, "--json").stdout)["checkpoints"]
    values = [each["rows"][0]["value"] for each in found]
    assert values == pytest.approx([2 * 640**0.5, 10 * 640**0.5], rel=1e-6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--over", "epochs"), "write --over checkpoints"),
        (("--over", "checkpoints"), "is no folder"),
        (("--curve", "a.png"), "give both"),
        (("--over", "checkpoints", "--curve", "a.txt2"), "must end in .png"),
    ],
)
def test_wrong_requests_for_curves(run, models, words, message):
    result = run("measure", models / "depth3.skops", "--data", "digits", *words)
    assert result.exit_code == 2
    assert message in result.stderr


def test_compare(run, models, tmp_path):
    pair = models / "depth3.skops", models / "depth10.skops"
    drawn = run("compare", *pair, "--data", "digits", "--points", 0, 1, 2, "-o", tmp_path / "where.png")
    assert drawn.exit_code == 0, drawn.output
    assert "depth3.skops and depth10.skops differ on" in drawn.stdout
    assert (tmp_path / "where.png").stat().st_size > 1000
    where = ("--points", 0, 1, 2, "-o", tmp_path / "named.png", "--title", "Both")
    assert run("compare", *pair, "--data", "digits", *where, "--names", "o,b,c,d,e,f,g,h,i,j").exit_code == 0
    few = run("compare", *pair, "--data", "digits", *where, "--names", "o")
    assert (few.exit_code, "class_names has 1 names" in few.stderr) == (2, True)
    written = json.loads(run("compare", *pair, "--data", "digits", "--segment", 0, 1, "--json").stdout)
    assert written["is_exact"]
    assert written["names"] == ["depth3.skops", "depth10.skops"]
    table = run("compare", *pair, "--data", "digits", "--probes", 5)
    assert "share of 5 random segments" in table.stdout
    alone = run("compare", pair[0], "--data", "digits")
    assert alone.exit_code == 2
    assert "one model alone cannot be compared" in alone.stderr
    wrong = run("compare", *pair, "--data", "digits", "-o", tmp_path / "where.txt")
    assert "must end in .png" in wrong.stderr
