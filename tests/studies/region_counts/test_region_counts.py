"""The study of region counts: its grid, what the rows are asked, and a short run from nothing to the page."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from PIL import Image
from scipy.ndimage import label
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import inscape
from inscape.correlation.coefficients import Correlation
from inscape.errors import StudyError
from inscape.probes import sample_probes
from inscape.studies.region_counts import (
    STUDY,
    claims,
    model_choice,
    model_grid,
    paper_tables,
    rows,
    settings,
    summary,
)
from inscape.studies.region_counts.claims import ComparedCorrelation
from inscape.studies.region_counts.rows import count_regions
from inscape.studies.region_counts.selection import Subject
from inscape.sweeps.run import reopen
from inscape.sweeps.tasks import as_tasks
from inscape.sweeps.trained_model import settings_of, split_of
from inscape.training.data import own_files
from inscape.training.data.datasets import split_data
from inscape.training.fitting import fit


def sweep_frame(slope, *, noise=0.0, seed=0, accuracy=1.0):
    """Rows of a sweep in which the gap is `slope` times the count, and the count falls with the rate."""
    rng = np.random.default_rng(seed)
    lines = []
    for rate, size, decay, i in product((0.1, 0.01, 0.001), (16, 64, 256), (1e-5, 1e-6), range(2)):
        count = 3 - 0.3 * np.log10(rate) + 0.1 * np.log2(size) + noise * rng.normal()
        lines.append(
            {
                "part": "sweep",
                "data": "mnist",
                "model": "mlp",
                "configuration": f"{rate} {size} {decay}",
                "learning_rate": rate,
                "batch_size": size,
                "weight_decay": decay,
                "replicate": i,
                "train_accuracy": accuracy,
                "test_accuracy": accuracy - 0.05 - slope * count / 100,
                "gap": 0.05 + slope * count / 100 + noise * rng.normal() / 100,
                "region_count": count,
                "region_count_error": 0.1,
                "count_method": "exact",
                "distance": rng.normal(),
                "margin": rng.normal(),
                "line_counts": [2, 4] * 50,
                "seconds": 1.0,
            }
        )
    return pd.DataFrame(lines)


# the grid -----------------------------------------------------------------------------------------


def test_the_scale_paper_is_table_1():
    cells = STUDY.configurations("paper")
    sweep = pd.DataFrame([c for c in cells if c["part"] == "sweep"])
    nets = sweep[sweep["model"].isin(settings.NINE_NETWORKS)]
    assert len(nets) == 27 * 3 * 9
    names = ["learning_rate", "batch_size", "weight_decay"]
    assert all(len(g[names].drop_duplicates()) == 27 for _, g in nets.groupby("model"))
    assert set(nets[nets["model"] == "resnet18"]["learning_rate"]) == {0.1, 0.01, 0.001}
    assert set(nets["batch_size"]) == {256, 512, 1024}
    assert set(nets["weight_decay"]) == {1e-5, 1e-6, 1e-7}
    assert nets["epochs"].eq(200).all()
    assert set(nets[nets["model"] == "vgg19"]["learning_rate"]) == {0.05, 0.01, 0.001}
    assert (sweep["model"] == "tree").sum() == 15 * 2 * 2
    assert (sweep["model"] == "forest").sum() == 15 * 2
    assert sweep[sweep["model"] == "forest"]["n_estimators"].eq(100).all()
    assert {c["model"] for c in cells if c["part"] == "augmentation"} == {"resnet18"}


@pytest.mark.parametrize("scale", STUDY.scales)
def test_no_cell_comes_twice_and_cheap_models_and_the_sweep_come_first(scale):
    cells = STUDY.configurations(scale)
    as_tasks(cells, 0)  # raises if two are the same
    order = [(c["model"] not in model_grid.CHEAP, c["part"] != "sweep") for c in cells]
    assert order == sorted(order)


def test_data_and_nets_can_be_chosen():
    cells = STUDY.configurations("smoke", data="digits", nets="tree, mlp")
    assert {(c["data"], c["model"]) for c in cells} == {("digits", "tree"), ("digits", "mlp")}
    small = STUDY.configurations("small", data="fashion_mnist")
    assert {(c["data"], c["model"], c["n_train"]) for c in small} == {("fashion_mnist", "mlp", 2000)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data": "mnits"}, "unknown data set 'mnits'.*did you mean 'mnist'"),
        ({"nets": "mlp,resnet"}, "unknown model 'resnet'"),
        ({"nets": "mlp,mlp"}, "model 'mlp' is named twice"),
        ({"data": "digits", "nets": "resnet18"}, "resnet18 needs larger images"),
        ({"rates": "fast"}, "cannot read --rates fast: expected positive numbers"),
        ({"batches": "16,.5"}, "cannot read --batches 16,.5: expected positive whole numbers"),
        ({"n_train": "-3"}, "cannot read --n-train -3"),
        ({"init": "xavier"}, "unknown init 'xavier'"),
        ({"counting": "best "}, "unknown counting 'best '"),
    ],
)
def test_wrong_options_say_so(options, message):
    with pytest.raises(StudyError, match=message):
        STUDY.configurations("smoke", **options)


def test_options_take_the_place_of_what_the_scale_says():
    given = {"n_train": "500", "n_test": "all", "width": ".25", "epochs": "7", "rates": ".1,.03"}
    given |= {"batches": "8", "seeds": "4", "init": "he", "n_lines": "30"}
    cells = STUDY.configurations("small", nets="resnet18,tree", data="cifar10", **given)
    nets = [c for c in cells if c["model"] == "resnet18" and c["part"] == "sweep"]
    assert len(nets) == 2 * 1 * 1 * 4
    assert {c["learning_rate"] for c in nets} == {0.1, 0.03}
    for key, value in {"n_train": 500, "n_test": None, "width": 0.25, "epochs": 7, "init": "he"}.items():
        assert {c[key] for c in nets} == {value}
    assert all(c["counts"]["lines"] == 30 for c in cells)
    assert nets[0]["epochs_seen"] == [0, 7]
    assert sum(c["model"] == "tree" for c in cells) == 60 * 4


@pytest.mark.parametrize("scale", STUDY.scales)
def test_networks_are_trained_as_published_at_every_scale(scale):
    cells = STUDY.configurations(scale, data="cifar10", nets="resnet18")
    cells += [c for c in STUDY.configurations(scale) if c["model"] == "mlp"]
    assert all(c["init"] == "torch" for c in cells)
    published = {"adam": "constant", "adagrad": "step"}
    assert all(c["schedule"] == published.get(c.get("optimiser"), "epoch-cosine") for c in cells)
    pixels = {c.get("normalise", "own") for c in cells if c["data"] == "cifar10" and c["model"] != "mlp"}
    assert pixels == {((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))}
    (steps,) = {c["milestones"] for c in cells if c.get("optimiser") == "adagrad"} or {(0.25, 0.5, 0.75)}
    assert [200 * m for m in steps] == [50, 100, 150]
    assert all(c["flip"] and c["crop"] == 4 for c in STUDY.configurations(scale, "cifar100", "resnet18"))


def test_the_scale_medium_is_table_1_in_small():
    cells = STUDY.configurations("medium")
    for net in ("resnet18", "senet18", "vgg19"):
        mine = pd.DataFrame([c for c in cells if c["model"] == net])
        assert len(mine) == 27
        assert mine[["n_train", "n_test", "width", "epochs"]].drop_duplicates().to_numpy().tolist() == [
            [2500, 10_000, 0.125, 60]
        ]
        assert set(mine["learning_rate"]) == {0.05 if net == "vgg19" else 0.1, 0.01, 0.001}
        assert set(mine["batch_size"]) == {16, 32, 64}
        measured = {name for counts in mine["counts"] for name in counts["measures"]}
        assert measured == {*settings.UNLABELLED, "sharpness", "local_complexity"}
        first = mine.iloc[0]  # the corner that is the last to fit
        assert (first["learning_rate"], first["batch_size"]) == (0.001, 64)
        assert mine.groupby("weight_decay", sort=False).size().tolist() == [9, 9, 9]
        assert mine["weight_decay"].iloc[:9].nunique() == 1  # a run that is stopped leaves a whole grid
    grown = [c for c in cells if c["model"] in ("tree", "forest")]
    assert all(list(c["counts"]["measures"]) == list(settings.UNLABELLED) for c in grown)
    with pytest.raises(StudyError, match="unknown scale 'medium'"):
        inscape.studies.run("digits", scale="medium", out="nowhere")


def test_neighbours_and_support_vectors_are_rows_when_asked_for():
    cells = STUDY.configurations("paper", nets="knn,svm")
    assert [sum(c["model"] == m for c in cells) for m in ("knn", "svm")] == [64, 16]
    assert not {c["model"] for c in STUDY.configurations("paper")} & {"knn", "svm"}
    configuration = next(c for c in STUDY.configurations("smoke", nets="knn") if c["p"] == 1) | {"seed": 0}
    row, split = rows.cell(configuration), split_of(configuration)
    x = split.x_train.reshape(len(split.x_train), -1)
    model = KNeighborsClassifier(3, weights="uniform", p=1).fit(x, split.y_train)
    test = model.score(split.x_test.reshape(len(split.x_test), -1), split.y_test)
    assert row["test_accuracy"] == pytest.approx(test)


def test_a_folder_of_images_is_a_data_set(tmp_path):
    rng = np.random.default_rng(0)
    for split, n in (("train", 12), ("val", 8)):
        for name in ("cat", "dog"):
            (tmp_path / split / name).mkdir(parents=True)
            for i in range(n // 2):
                pixels = rng.integers(0, 128, (9, 12, 3), dtype=np.uint8) + 127 * (name == "dog")
                Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / split / name / f"{i}.png")
    cells = STUDY.configurations(
        "smoke", data=str(tmp_path), nets="tree", image_size="8", n_train="all", n_test="all", n_lines="6"
    )
    row = rows.cell(cells[0] | {"seed": 0, "replicate_seed": 0})
    assert (row["train_accuracy"], row["test_accuracy"]) == (1.0, 1.0)  # one is dark, the other bright
    assert 1 <= row["region_count"] <= 2
    assert {c["image_size"] for c in cells} == {8}
    assert split_of(cells[0]).x_train.shape == (12, 3, 8, 8)
    with pytest.raises(StudyError, match="unknown data set"):
        STUDY.configurations("smoke", data=str(tmp_path / "nowhere"))


def test_svhn_becomes_rows(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    y = {split: np.arange(40) % 5 for split in ("train", "test")}
    x = {
        s: (rng.integers(0, 20, (40, 3, 32, 32)) + 44 * y[s][:, None, None, None]).astype(np.uint8) for s in y
    }
    arrays = {f"x_{s}": x[s] for s in y} | {f"y_{s}": y[s] for s in y}
    np.savez(tmp_path / "svhn.npz", **arrays)
    monkeypatch.setenv("INSCAPE_DATA", str(tmp_path))
    options = {"n_train": "all", "n_test": "all", "n_lines": "5"}
    assert {c["model"] for c in STUDY.configurations("small", data="svhn")} == {"resnet18", "tree", "forest"}
    cells = STUDY.configurations("smoke", data="svhn", nets="tree", **options)
    row = rows.cell(next(c for c in cells if c["max_depth"] == 8) | {"seed": 0, "replicate_seed": 0})
    assert (row["train_accuracy"], row["test_accuracy"]) == (1.0, 1.0)  # a class is a brightness
    assert row["region_count"] > 1


def test_a_folder_is_swept_as_imagenet_was(tmp_path):
    for split in ("train", "val"):
        for name in ("cat", "dog"):
            (tmp_path / split / name).mkdir(parents=True)
    cells = STUDY.configurations("paper", data=str(tmp_path), nets="resnet18")
    sweep = [c for c in cells if c["part"] == "sweep"]
    assert len(sweep) == 81
    assert {(c["epochs"], c["image_size"], c["crop"], c["flip"]) for c in sweep} == {(50, 224, 28, True)}
    other = STUDY.configurations("paper", data=str(tmp_path), nets="resnet18", image_size="160", epochs="7")
    assert {(c["epochs"], c["image_size"], c["crop"]) for c in other if c["part"] == "sweep"} == {
        (7, 160, 20)
    }
    assert not any(
        "crop" in c for c in STUDY.configurations("paper", nets="resnet18") if c["part"] == "sweep"
    )


def test_a_network_on_streamed_images_of_128_pixels_becomes_a_row(tmp_path, monkeypatch):
    monkeypatch.setattr(own_files, "STREAMED_FROM", 0)
    rng = np.random.default_rng(0)
    for split, n in (("train", 8), ("val", 6)):
        for name in ("cat", "dog"):
            (tmp_path / split / name).mkdir(parents=True)
            for i in range(n // 2):
                pixels = rng.integers(0, 128, (140, 150, 3), dtype=np.uint8) + 127 * (name == "dog")
                Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / split / name / f"{i}.png")
    options = {"image_size": "128", "n_train": "all", "n_test": "all", "n_lines": "2", "width": "0.0625"}
    cells = STUDY.configurations(
        "smoke", data=str(tmp_path), nets="resnet18", batches="4", epochs="2", **options
    )
    row = rows.cell(cells[0] | {"seed": 0, "replicate_seed": 0, "counts": {"lines": 2}})
    assert 0 <= row["test_accuracy"] <= 1
    assert row["region_count"] >= 1
    assert row["seen_epochs"][-1] == 2


def test_crops_are_an_eighth_of_the_image():
    cells = STUDY.configurations("small", data="mnist,cifar10")
    crops = {(c["data"], c["crop"]) for c in cells if c.get("augmentation") == "crop+flip"}
    assert crops == {("mnist", 3), ("cifar10", 4)}


# what the rows are asked --------------------------------------------------------------------------


@pytest.mark.parametrize(("slope", "holds"), [(1.0, True), (-1.0, False)])
def test_the_headline_follows_the_rows(slope, holds):
    found = paper_tables.correlations(sweep_frame(slope, noise=0.01))
    finding = claims.main_findings(found)["networks"]
    assert finding.holds is holds
    assert finding.value == pytest.approx(slope, abs=0.1)
    assert finding.interval[0] <= finding.value <= finding.interval[1]
    assert claims.main_findings(found)["tree"].holds is None


def test_networks_that_do_not_fit_are_left_out():
    frame = pd.concat([sweep_frame(1.0), sweep_frame(-5.0, accuracy=0.9)], ignore_index=True)
    frame["configuration"] += frame["train_accuracy"].astype(str)
    found = paper_tables.correlations(frame)
    assert found[Subject("mlp", "mnist")].pearson.value == pytest.approx(1.0)
    table = paper_tables.correlation_table(frame, found)
    assert table["left out"].tolist() == [36]


def test_networks_are_pooled_on_one_data_set_and_the_weakest_counts():
    good, bad = sweep_frame(1.0, noise=0.01), sweep_frame(-1.0, noise=0.01, seed=1).assign(model="cnn")
    there = bad.assign(data="cifar10", configuration=bad["configuration"] + "y")
    frame = pd.concat([good, bad.assign(configuration=bad["configuration"] + "x"), there], ignore_index=True)
    found = paper_tables.correlations(frame)
    one = {Subject(name, "mnist") for name in ("mlp", "cnn", "networks together")}
    assert set(found) == {*one, Subject("cnn", "cifar10")}
    finding = claims.main_findings(found)["networks"]
    assert (finding.holds, round(finding.value)) == (False, -1)
    assert "mlp on mnist: r = +1.00" in finding.evidence
    table = paper_tables.correlation_table(frame, found).set_index("model")
    accuracy = table["r test accuracy"]  # the rows have it as a constant minus the slope times the count
    assert accuracy[Subject("mlp", "mnist")] == pytest.approx(-1, abs=1e-3)
    assert accuracy[Subject("cnn", "mnist")] == pytest.approx(1, abs=1e-3)


def two_networks():
    """Rows of two networks on one data set; three configurations of the second do not fit."""
    one, other = sweep_frame(1.0, noise=0.1), sweep_frame(1.0, noise=0.1, seed=1).assign(model="cnn")
    other["configuration"] += "x"
    other.loc[other["configuration"].isin(other["configuration"].unique()[:3]), "train_accuracy"] = 0.9
    return pd.concat([one, other], ignore_index=True)


def test_networks_together_leave_out_what_each_does_and_have_baselines_too():
    frame = two_networks()
    table = paper_tables.correlation_table(frame, paper_tables.correlations(frame))
    left_out = dict(zip(table["model"].map(str), table["left out"], strict=True))
    assert left_out == {"mlp on mnist": 0, "cnn on mnist": 6, "networks together on mnist": 6}
    means = frame[frame["train_accuracy"] > 0.99].groupby("configuration")[["margin", "gap"]].mean()
    expected = np.corrcoef(means["margin"], means["gap"])[0, 1]
    lines = paper_tables.baseline_table(frame).set_index(["model", "measure"])
    assert lines.loc[(Subject("networks together", "mnist"), "margin"), "r"] == pytest.approx(expected)
    glance = paper_tables.glance_table(frame).set_index("measure")
    assert list(glance.columns) == ["mlp on mnist", "cnn on mnist", "networks together on mnist"]
    assert glance.loc["margin", "networks together on mnist"].startswith(f"{expected:+.2f} [")
    assert list(glance.index) == [
        "regions between test points",
        "distance",
        "margin",
        "margin over distance",
    ]


def test_tables_and_pictures_of_one_value_are_left_out(tmp_path):
    frame = two_networks().assign(count_grid_200=lambda f: f["region_count"], count_direction=1.5)
    plain = STUDY.summarise(frame, tmp_path)
    titles = " ".join(plain.tables)
    assert "Table 8" in titles
    assert not any(f"Table {n}" in titles for n in (4, 5, 7))
    assert "grids.png" not in plain.figures
    assert {"correlation.png", "baselines.png"} <= set(plain.figures)
    assert plain.findings["span"].evidence == "nothing was measured of fitted models"


def test_pictures_name_their_settings_whatever_kind_of_number_they_are():
    row = pd.DataFrame({"learning_rate": [0.1], "batch_size": [64], "criterion": ["gini"]}).iloc[0]
    assert summary.trained_with(row) == "rate 0.1, batch 64, gini"


# choosing -------------------------------------------------------------------------------------------


def test_measures_choose_among_the_models_of_the_study():
    frame = two_networks().assign(local_complexity=1.0)
    frame["test_accuracy"] += np.random.default_rng(0).normal(0, 0.01, len(frame))
    frame["confidence"] = frame["test_accuracy"]
    families = model_choice.families(frame)
    choices = model_choice.choice_table(families)
    table = choices.set_index(["family", "measure"])
    assert (
        list(families)
        == list(dict.fromkeys(choices["family"]))
        == [
            "mlp on mnist",
            "cnn on mnist",
            "cnn on mnist, fitted (99%)",
            "networks together on mnist",
            "networks together on mnist, fitted (99%)",
        ]
    )
    rows = frame[(frame["model"] == "cnn") & (frame["train_accuracy"] > 0.99)]
    count, truth = rows["region_count"].to_numpy(), rows["test_accuracy"].to_numpy()
    pairs = [(i, j) for i in range(len(rows)) for j in range(i) if truth[i] != truth[j]]
    right = np.mean([(count[i] < count[j]) == (truth[i] > truth[j]) for i, j in pairs])
    line = table.loc[("cnn on mnist, fitted (99%)", "fewer regions")]
    assert 0.5 < right < 1
    assert line["models"] == len(rows) == 30
    assert line["pairs"] == pytest.approx(right)
    assert line["regret"] == pytest.approx(truth.max() - truth[count.argmin()])
    assert table.loc[("mlp on mnist", "average confidence"), "pairs"] == 1
    assert table.loc[("mlp on mnist", "low local complexity"), "pairs"] == 0.5
    glance = model_choice.glance_table(families, choices).set_index("measure")
    assert glance.loc["average confidence", "mlp on mnist"] == "100 % [100, 100], regret 0.0"
    behind = round(100 * (right - 1))  # confidence is accuracy itself here
    last = glance.loc["fewer regions ahead of confidence by", "cnn on mnist, fitted (99%)"]
    assert last.startswith(f"{behind:+d} points [")


def test_seeds_agree_as_often_as_their_predictions_do():
    frame = sweep_frame(1.0)[:5].assign(test_labels=[[0, 1, 2, 3], [0, 1, 2, 9], [5] * 4, [5] * 4, None])
    frame.loc[4, "configuration"] = "alone"
    frame.index = [7, 3, 5, 1, 2]
    agreement = model_choice.with_agreement(frame)["agreement"]
    assert agreement.tolist()[:4] == [0.75, 0.75, 1.0, 1.0]
    assert np.isnan(agreement.iloc[4])
    three = sweep_frame(1.0)[:3].assign(configuration="a", test_labels=[[0, 0], [0, 1], [1, 1]])
    assert model_choice.with_agreement(three)["agreement"].tolist() == [0.25, 0.5, 0.25]


def test_other_measures_can_be_asked_for():
    options = {"measures": "confidence,agreement,sharpness", "seeds": "2"}
    cells = STUDY.configurations("smoke", nets="mlp,tree", **options)
    sweep = [c for c in cells if c["part"] == "sweep"]
    named = {c["model"]: set(c["counts"]["measures"]) for c in sweep}
    assert named == {"mlp": {"confidence", "agreement", "sharpness"}, "tree": {"confidence", "agreement"}}
    assert all("measures" not in c["counts"] for c in cells if c["part"] != "sweep")
    with pytest.raises(StudyError, match=r"unknown measure 'confidense'.*did you mean 'confidence'"):
        STUDY.configurations("smoke", measures="confidense")
    cell = next(c for c in sweep if c["model"] == "tree")
    row = rows.cell(cell | {"seed": 1, "replicate_seed": 2, "counts": cell["counts"] | {"fewer": 2}})
    assert len(row["test_labels"]) == len(split_of(cell).y_test)
    assert np.mean(row["test_labels"] == split_of(cell).y_test) == row["test_accuracy"]
    assert "agreement" not in row


RESULTS = Path(__file__).parents[3] / "docs" / "results" / "region-counts"


@pytest.mark.parametrize(
    ("name", "scale", "nets"),
    [("medium", "medium", "resnet18,vgg19,senet18"), ("trees-50000", "paper", "tree,forest")],
)
def test_rows_that_we_publish_are_those_of_a_scale_of_today(name, scale, nets):
    """Whoever merges them and runs that scale works on what is missing, and on nothing twice."""
    lines = (RESULTS / f"{name}-rows.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    published = {(row["hash"], row["seed"]) for row in map(json.loads, lines)}
    assert published
    assert published <= {task.key for task in as_tasks(STUDY.configurations(scale, nets=nets), 0)}


def test_published_numbers_are_those_of_the_data_set():
    frame = sweep_frame(1.0, noise=0.1).assign(model="resnet18", data="cifar10")
    for data, known in (("cifar10", [0.98, 0.74, 0.6, 0.16]), ("mnist", [])):
        mine = frame.assign(data=data)
        table = paper_tables.correlation_table(mine, paper_tables.correlations(mine))
        baselines = paper_tables.baseline_table(mine)["published"]
        assert [*table["published"].dropna(), *baselines.dropna()] == known


def test_what_does_not_vary_more_than_seeds_do_is_no_failure():
    still = sweep_frame(0.0, noise=0.01).assign(region_count=lambda f: np.arange(len(f)) % 7)
    finding = claims.main_findings(paper_tables.correlations(still))["networks"]
    assert (finding.holds, finding.verdict) == (None, "no variation to test")
    assert "variation 0." in finding.evidence
    one_seed = sweep_frame(-1.0, noise=0.01)[::2]
    finding = claims.main_findings(paper_tables.correlations(one_seed))["networks"]
    assert (finding.verdict, finding.evidence.endswith("one seed")) == ("cannot be said", True)


def test_the_table_of_models_has_what_was_measured_once():
    frame = sweep_frame(1.0).assign(sharpness=2.0, confidence=0.5, prediction_entropy=0.1)
    table = paper_tables.model_table(frame)
    assert {"distance", "margin", "sharpness", "confidence", "prediction_entropy"} <= set(table.columns)
    assert table.columns.is_unique


def test_margin_over_distance_is_a_baseline():
    rng = np.random.default_rng(0)
    frame = sweep_frame(1.0, noise=0.1)
    frame["distance"] = rng.uniform(1, 2, len(frame))
    frame["margin"] = frame["gap"] * frame["distance"]
    table = paper_tables.baseline_table(frame).set_index("measure")
    assert table.loc["margin over distance", "r"] == pytest.approx(1.0)
    assert table.loc["margin", "r"] < 0.9


def test_published_numbers_go_by_the_network_and_grids_are_judged_on_networks_alone():
    net = sweep_frame(1.0, noise=0.1).assign(model="vgg19", data="cifar10")
    net["count_grid_200"] = 0.9 * net["region_count"]
    tree = net.assign(model="tree", criterion="gini", count_grid_200=net["region_count"])
    frame = pd.concat([net, tree.assign(configuration=tree["configuration"] + "t")], ignore_index=True)
    found = paper_tables.correlations(frame)
    assert paper_tables.correlation_table(frame, found)["published"].tolist() == [0.94, 0.96]
    assert paper_tables.probe_table(frame)["published"].tolist() == [0.94]
    finding = claims.grid_findings(paper_tables.grid_table(frame))["grid"]
    assert (finding.holds, finding.evidence) == (False, "vgg19 on cifar10: 10.00%")


def test_trends_in_both_directions():
    frame = sweep_frame(1.0)
    trends = claims.trend_findings(frame)
    assert trends["learning_rate"].holds is True  # the count falls with the rate, and grows with the batch
    assert trends["batch_size"].holds is True
    reversed_rates = frame.assign(learning_rate=1e-4 / frame["learning_rate"])
    assert claims.trend_findings(reversed_rates)["learning_rate"].holds is False


@pytest.mark.parametrize(
    ("claim", "one", "other"),
    [("baselines", "distance", "margin"), ("earlier", "sharpness", "local_complexity")],
)
def test_other_measures_trail_or_lead(claim, one, other):
    frame = sweep_frame(1.0, noise=0.02).rename(columns={"distance": one, "margin": other})
    found = claims.baseline_findings(frame)
    assert {key for key, finding in found.items() if finding.holds} == {claim}
    better = frame.assign(**{other: frame["gap"], "region_count": frame[other]})
    verdict = claims.baseline_findings(better)[claim].verdict
    assert verdict == "no variation to test"  # counts of seeds alone
    steady = frame.groupby("configuration")[one].transform("mean") + 0.01 * frame[other]
    assert claims.baseline_findings(better.assign(region_count=steady))[claim].holds is False


def test_a_correlation_cannot_be_said_where_its_interval_is_wide():
    assert ComparedCorrelation(Correlation(0.4, (-0.3, 0.9), 5), 2.0).judged().holds is None
    assert ComparedCorrelation(Correlation(0.4, (np.nan, np.nan), 3), 2.0).judged().holds is None
    assert claims.weakest({}).holds is None
    constant = {
        "a": ComparedCorrelation(Correlation(0.9, (0.8, 1.0), 9), 2.0),
        "b": ComparedCorrelation(Correlation(np.nan, (np.nan, np.nan), 9)),
    }
    assert claims.weakest(constant).holds is None
    assert claims.weakest(constant).evidence.endswith("b: no variation")


@pytest.mark.parametrize(("share", "holds"), [(0.999, True), (0.9, False)])
def test_what_a_grid_misses(share, holds):
    frame = sweep_frame(1.0, noise=0.1)
    frame["count_grid_200"] = share * frame["region_count"] + 1e-6 * np.arange(len(frame))
    table = paper_tables.grid_table(frame)
    assert table["missed share"].iloc[0] == pytest.approx(1 - share, abs=1e-4)
    found = claims.grid_findings(table)
    assert found["grid"].holds is holds
    assert found["plane_grid"].holds is None


@pytest.mark.parametrize(("change", "holds"), [(-0.5, True), (0.5, False)])
def test_augmentation_is_compared_with_equal_settings(change, holds):
    plain = sweep_frame(1.0, noise=0.01)
    mixed = plain.assign(
        part="augmentation", augmentation="mixup", region_count=plain["region_count"] + change
    )
    table = paper_tables.augmentation_table(pd.concat([plain, mixed], ignore_index=True))
    assert table["change"].iloc[0] == pytest.approx(change)
    assert table["pairs"].iloc[0] == 18
    assert claims.augmentation_finding(table).holds is holds


@pytest.mark.parametrize(("sign", "holds"), [(1, True), (-1, False)])
def test_evolution_asks_for_a_correlation_that_grows(sign, holds):
    rng = np.random.default_rng(0)
    frame = sweep_frame(1.0)
    frame["seen_epochs"] = [[0, 10]] * len(frame)
    frame["seen_counts"] = [[rng.normal(), c] for c in frame["region_count"]]
    frame["seen_gaps"] = [[0.0 + rng.normal(), sign * g] for g in frame["gap"]]
    table = paper_tables.evolution_table(frame)
    assert table["epoch"].tolist() == [0, 10]
    assert table["r"].iloc[1] == pytest.approx(sign)
    assert claims.evolution_finding(table).holds is holds


def test_fewer_lines_are_the_first_ones():
    table = paper_tables.line_table(sweep_frame(1.0)).set_index("lines")
    assert table.loc[100, "count"] == 3
    assert table.loc[100, "standard error"] == pytest.approx(np.sqrt(100 / 99) / 10)
    assert 300 not in table.index


# from nothing to the page -------------------------------------------------------------------------


@pytest.fixture
def short(monkeypatch):
    """A scale smoke of a few networks and trees."""
    counts = replace(settings.SMOKE_MLP.counts, lines=20, fewer=5, picture=12)
    more = {
        name: {
            k: v[:2] if k in ("learning_rate", "augmentation", "optimiser") else v[-1:]
            for k, v in values.items()
        }
        for name, values in settings.SMOKE_MLP.more.items()
    }
    mlp = replace(settings.SMOKE_MLP, n_train=100, seeds=1, more=more, counts=counts)
    trees = replace(settings.SMOKE_TREES, n_train=100, depths=(2, 5), n_estimators=5)
    trees = replace(trees, counts=replace(trees.counts, lines=20, fewer=5, picture=12))
    monkeypatch.setitem(model_grid.KINDS, "smoke", (mlp, settings.SMOKE_NET, trees))


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_one_command_from_nothing_to_the_claims(tmp_path):
    with ThreadPoolExecutor(1) as executor:
        run = inscape.studies.run(
            "region-counts", scale="smoke", options={"nets": "mlp,tree"}, out=tmp_path, executor=executor
        )
    assert run.failed == {}
    assert set(run.summary.findings) == set(STUDY.claims)
    figures = set(run.summary.figures)
    named = ("correlation", "trends", "baselines", "grids", "planes", "augmentation")
    assert {f"{name}.png" for name in named} <= figures
    assert all((tmp_path / name).stat().st_size > 1000 for name in figures)
    assert len(run.summary.tables) >= 11
    assert "## Kind of probe (Table 8)" in (tmp_path / "summary.md").read_text()
    assert all({c.x, c.y, *c.hover} <= set(c.data) for c in run.summary.charts)
    assert all(chart.caption for chart in run.summary.charts)
    assert any("granulated Kendall" in text or "inside" in text for text in run.summary.limits)

    frame = run.frame
    assert frame["count_method"].eq("exact").all()
    means = [np.mean(counts) for counts in frame["line_counts"]]
    assert frame["region_count"].tolist() == pytest.approx(means)
    assert frame[frame["model"] == "mlp"]["distance"].gt(0).all()
    assert reopen(tmp_path).summary.findings == run.summary.findings
    assert reopen(tmp_path, "region-counts").summary.findings == run.summary.findings


def test_the_row_of_a_tree_is_that_of_scikit_learn():
    deepest = next(
        c for c in STUDY.configurations("smoke", nets="tree") if c["max_depth"] == c["grown_depth"]
    )
    configuration = deepest | {"seed": 4, "replicate_seed": 5}
    row = rows.cell(configuration)
    split = split_of(configuration)
    tree = DecisionTreeClassifier(max_depth=8, criterion="gini", splitter="best", random_state=5)
    tree.fit(split.x_train.reshape(300, -1), split.y_train)
    assert row["train_accuracy"] == tree.score(split.x_train.reshape(300, -1), split.y_train)
    count = inscape.region_count(tree, split.x_test, n_probes=100, method="exact", random_state=0)
    assert row["region_count"] == count.mean
    assert row["line_counts"].tolist() == count.counts.tolist()


def test_trees_of_all_depths_are_cut_from_one_and_go_together():
    cells = STUDY.configurations("smoke", nets="tree,forest")
    assert {c["grown_depth"] for c in cells} == {max(settings.SMOKE_TREES.depths)}
    groups = {}
    for c in cells:
        groups.setdefault(STUDY.together(c), []).append(c["max_depth"])
    assert sorted(groups.values()) == [list(settings.SMOKE_TREES.depths)] * 6


def test_every_way_of_counting_on_a_half_space():
    split = split_data("digits", n_train=300)
    level = float(np.median(split.x_test.reshape(len(split.x_test), -1)[:, 20])) + 1 / 32  # no pixel has it
    model = inscape.wrap(lambda x: (x.reshape(len(x), -1)[:, 20] > level).astype(int))
    plan = model_grid.counted(settings.SMOKE_MLP.counts, "sweep") | {
        "lines": 50,
        "dims": {"2": 12},
        "planes": [10],
    }
    row = count_regions(model, split, plan, 0)
    counts = {k: v for k, v in row.items() if k.startswith("count_") and not k.endswith(("_error", "method"))}
    assert len(counts) == 2 + 2 + 2 + 1 + 1  # probes, grids, spans, dimension, plane
    assert all(1 <= v <= 2 for v in counts.values())
    assert row["region_count"] == pytest.approx(counts["count_grid_200"])
    assert counts["count_span_5"] >= counts["count_span_1"] >= 1.5


def test_counting_as_published_is_their_grid():
    split = split_data("digits", n_train=300)
    x = split.x_train.reshape(300, -1)
    tree = DecisionTreeClassifier(max_depth=6, random_state=0).fit(x, split.y_train)
    plan = model_grid.counted(replace(settings.SMOKE_MLP.counts, rule="as published"), "sweep")
    row = count_regions(inscape.wrap(tree), split, plan | {"dims": {"2": None, "3": None}, "fewer": 6}, 0)
    assert row["count_method"] == row["plane_method"] == "grid"
    probes = sample_probes(split.x_train, dim=3, n=6, random_state=0)
    steps = np.linspace(0, 1, 5)
    found = []
    for probe in probes:  # the labels on 5^3 weights, without those of sum above 1; equal faces are joined
        a = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), -1).reshape(-1, 3)
        points = probe.generators[0] + np.tensordot(a, probe.generators[1:] - probe.generators[0], 1)
        labels = tree.predict(points.reshape(125, -1)).reshape(5, 5, 5)
        inside = (a.sum(axis=1) <= 1 + 1e-9).reshape(5, 5, 5)
        found.append(sum(label(inside & (labels == c))[1] for c in range(10)))
    assert row["count_dim_3"] == np.mean(found)
    assert (
        row["count_dim_3"]
        > inscape.region_count(
            tree, split.x_train, dim=3, n_probes=6, resolution=5, method="grid", random_state=0
        ).mean
    )


# models of the user's own -------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path):
    """A folder of three trees, and what is known of them."""
    split = split_data("digits", n_train=300)
    folder = tmp_path / "mine"
    folder.mkdir()
    lines = ["file,model,data,n_train,max_depth,criterion"]
    for depth in (2, 4, 8):
        tree = DecisionTreeClassifier(max_depth=depth, random_state=0)
        skops.io.dump(tree.fit(split.x_train.reshape(300, -1), split.y_train), folder / f"{depth}.skops")
        lines.append(f"{depth}.skops,tree,digits,300,{depth},gini")
    (folder / "models.csv").write_text("\n".join(lines))
    return folder


@pytest.mark.slow
def test_models_of_ones_own_stand_in_the_same_tables(own, tmp_path):
    options = {"nets": "none", "own": str(own), "n_lines": "10"}
    with ThreadPoolExecutor(1) as executor:
        run = inscape.studies.run(
            "region-counts", scale="smoke", options=options, out=tmp_path / "out", executor=executor
        )
    split = split_data("digits", n_train=300)
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(
        split.x_train.reshape(300, -1), split.y_train
    )
    row = run.frame[run.frame["max_depth"] == 4].iloc[0]
    assert row["test_accuracy"] == tree.score(split.x_test.reshape(len(split.x_test), -1), split.y_test)
    count = inscape.region_count(tree, split.x_test, n_probes=10, method="exact", random_state=0)
    assert row["region_count"] == count.mean
    table = run.summary.tables["Correlation of region count and gap (Fig. 2 and 5)"]
    assert table["model"].tolist() == ["tree on digits"]


def test_what_a_folder_of_ones_own_lacks_is_said(own):
    (own / "4.skops").unlink()
    with pytest.raises(StudyError, match=r"models.csv names '4.skops', which is not in"):
        STUDY.configurations("smoke", nets="none", own=str(own))
    (own / "models.csv").write_text("file,model\n2.skops,tree\n")
    with pytest.raises(StudyError, match="has no column 'data'"):
        STUDY.configurations("smoke", nets="none", own=str(own))
    with pytest.raises(StudyError, match=r"cannot read .*models.csv"):
        STUDY.configurations("smoke", nets="none", own=str(own.parent))


def test_other_measures_stand_beside_the_counts_each_on_its_points():
    configuration = STUDY.configurations("smoke", nets="mlp")[0] | {"seed": 0, "epochs": 1}
    wanted = {"confidence": {}, "sharpness": {"points": 30}, "local_complexity": {"points": 10, "sigma": 0.2}}
    plan = {"lines": 5, "measures": wanted}
    row, split = rows.cell(configuration | {"counts": plan}), split_of(configuration)
    model = fit(settings_of(configuration, without=rows.OWN_KEYS), split, random_state=0).model
    some = split.x_train[:30], split.y_train[:30]
    assert row["sharpness"] == pytest.approx(inscape.sharpness(model, *some, random_state=0).value)
    density = inscape.local_complexity(model, split.x_train[:10], sigma=0.2, random_state=0)
    assert row["local_complexity"] == pytest.approx(density.value)
    assert row["confidence"] == pytest.approx(inscape.confidence(model, split.x_test).value)


def test_watching_changes_nothing():
    cells = [c for c in STUDY.configurations("smoke", nets="mlp") if c["part"] == "evolution"]
    configuration = cells[0] | {"seed": 3, "n_train": 80, "epochs": 4, "epochs_seen": [0, 2, 4]}
    split = split_of(configuration)
    watch = rows.Watch(configuration, split)
    plain = settings_of(configuration, without=rows.OWN_KEYS)
    watched, alone = fit(plain, split, random_state=3, monitor=watch), fit(plain, split, random_state=3)
    assert watch.columns()["seen_epochs"] == [0, 2, 4]
    pairs = zip(watched.model.module.parameters(), alone.model.module.parameters(), strict=True)
    assert all(bool((a == b).all()) for a, b in pairs)
    moved = alone.initial["1.weight"] - alone.model.module[1].weight.detach()
    assert float(moved.norm()) > 0
