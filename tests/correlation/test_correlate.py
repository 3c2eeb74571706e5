"""`correlate` on made-up runs with known answers, and on the figures that were published."""

import json
import os
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import inscape
from inscape.correlation.coefficients import granulated_kendall, tau_a
from inscape.correlation.configurations import variation
from inscape.correlation.correlate import HYPER_PARAMETERS
from inscape.errors import InscapeWarning, StudyError

DATA = Path(__file__).parents[1] / "data"
PUBLISHED = Path(os.environ.get("INSCAPE_DATA", "")) / "published_region_count_runs.csv"
NETS = {  # in the order of the paper's list; the correlation over configurations, averaged over seeds
    "Resnet18": 0.984,
    "Resnet34": 0.975,
    "VGG19": 0.938,
    "MobileNet": 0.949,
    "SENet18": 0.981,
    "ShuffleNetV2": 0.953,
    "EfficientNetB0": 0.980,
    "RegNetX_200MF": 0.980,
    "SimpleDLA": 0.983,
}
TREES = {"decision_tree": 0.962, "random_forest": 0.981}


def published_means(models):
    """Region count and gap (percentage points) of Li et al. 2025: seed means of networks, runs of trees."""
    figures = json.loads((DATA / "published_means.json").read_text())
    rates, sizes, decays = (0.1, 0.01, 0.001), (256, 512, 1024), (1e-5, 1e-6, 1e-7)
    grid = [dict(zip(HYPER_PARAMETERS, g, strict=True)) for g in product(rates, sizes, decays)]
    rows = []
    for model in models:
        points = figures[model]
        settings = grid if model in NETS else [{}] * len(points)
        for setting, (count, gap) in zip(settings, points, strict=True):
            rows.append({"model": model, **setting, "region_count": count, "gap": gap})
    return pd.DataFrame(rows)


def check_networks(nets):
    assert {m: round(c.pearson.value, 3) for m, c in nets.models.items()} == NETS
    assert [round(v, 2) for v in nets.granulated.values()] == [0.94, 0.84, 0.24]
    assert round(nets.models["Resnet18"].strata["learning_rate"][0.1].pearson.value, 2) == 0.81
    text = str(nets)
    assert "within a model r is 0.94 to 0.98, over all 9 models together 0.78" in text
    assert "a change of weight_decay alone is hardly ordered: granulated Kendall +0.24" in text
    assert "SENet18: inside learning_rate=0.1 alone r = -0.17" in text


def check_trees(trees):
    assert round(trees.pearson.value, 3) == 0.902
    assert {m: round(c.pearson.value, 3) for m, c in trees.models.items()} == TREES
    assert trees.n_configurations == trees.n_runs == 118


def test_the_published_correlations():
    check_networks(inscape.correlate(published_means(NETS), n_resamples=100))
    check_trees(inscape.correlate(published_means(TREES), n_resamples=100))


@pytest.mark.slow
@pytest.mark.skipif(not PUBLISHED.is_file(), reason="INSCAPE_DATA does not hold the published runs")
def test_the_published_runs_themselves():
    runs = pd.read_csv(PUBLISHED)
    check_trees(inscape.correlate(runs[runs.group == "classical"], n_resamples=100))
    nets = inscape.correlate(runs[runs.group == "sgd"], n_resamples=100)
    check_networks(nets)
    assert round(nets.models["Resnet18"].strata["learning_rate"][0.1].single_runs.value, 2) == 0.36
    assert (nets.n_runs, nets.n_configurations) == (704, 243)
    everything = inscape.correlate(runs, n_resamples=1)
    configurations = runs[runs.group != "classical"].groupby(["group", "model", *HYPER_PARAMETERS]).ngroups
    assert everything.n_configurations == configurations + 118


def runs(rng, seeds=3):
    """A sweep with a pooled correlation by the rate alone: inside a rate the measure says nothing."""
    return pd.DataFrame(
        [
            {
                "learning_rate": rate,
                "batch_size": size,
                "region_count": 10 * rate + 0.1 * rng.normal(),
                "train_accuracy": 1.0 - 0.2 * (size == 64),
                "test_accuracy": 0.9 - rate + 0.02 * rng.normal() - 0.2 * (size == 64),
            }
            for rate in (0.1, 0.2, 0.3)
            for size in (8, 16, 32, 64)
            for _ in range(seeds)
        ]
    )


def test_seeds_are_averaged_and_strata_tell_what_the_pooled_number_hides(rng):
    frame = runs(rng)
    c = inscape.correlate(frame, random_state=5)
    frame["gap"] = frame.train_accuracy - frame.test_accuracy
    means = frame.groupby(["learning_rate", "batch_size"])[["region_count", "gap"]].mean()
    assert c.pearson.value == pytest.approx(means.corr().iloc[0, 1])
    assert c.single_runs.value == pytest.approx(frame.region_count.corr(frame.gap))
    assert (c.n_runs, c.n_configurations, c.by) == (36, 12, ("learning_rate", "batch_size"))
    inside = frame[frame.learning_rate == 0.2]
    stratum = c.strata["learning_rate"][0.2]
    assert stratum.single_runs.value == pytest.approx(inside.region_count.corr(inside.gap))
    assert (stratum.pearson.n, stratum.single_runs.n) == (4, 12)
    assert c.pearson.value > 0.9 > abs(c.partial["learning_rate"].value)
    assert any("learning_rate=" in text for text in c.hidden)
    assert c.granulated["learning_rate"] == 1
    json.dumps(c.to_dict(), allow_nan=False)
    assert "36 runs over seeds" in str(c)
    assert c.plot().get_title().startswith("r = +0.9")


def test_the_gate_on_training_accuracy_is_shown(rng):
    c = inscape.correlate(runs(rng), min_train_accuracy=0.99)
    assert (c.n_gated, c.n_configurations, c.lowest_train_accuracy) == (9, 9, 1.0)
    assert "train accuracy >= 0.99; 9 runs left out" in str(c)
    assert c.to_dict()["gate"] == {"min_train_accuracy": 0.99, "n_left_out": 9, "lowest_kept": 1.0}
    with pytest.raises(StudyError, match="no runs"):
        inscape.correlate(runs(rng), min_train_accuracy=2.0)
    with pytest.raises(StudyError, match="needs a column 'train_accuracy'"):
        inscape.correlate({"region_count": [1.0], "gap": [1.0]}, min_train_accuracy=0.5)


def test_configurations_of_a_study_are_its_hashes():
    frame = pd.DataFrame({"configuration": ["a", "a", "b", "c"], "m": [1, 3, 4, 6], "gap": [0, 2, 3, 4.0]})
    c = inscape.correlate(frame, measure="m")
    assert c.n_configurations == 3
    assert c.pearson.value == pytest.approx(np.corrcoef([2, 4, 6], [1, 3, 4])[0, 1])


def test_lists_can_be_hyper_parameters():
    frame = {"hidden": [[8], [8], [8, 8], [16]], "region_count": [1, 3, 3, 4], "gap": [1, 1, 2, 3]}
    c = inscape.correlate(frame | {"model": ["mlp"] * 4}, by=("hidden", "model"))
    assert (c.n_configurations, c.by) == (3, ("hidden",))


def test_runs_without_hyper_parameters_stay_apart():
    frame = {"model": ["t"] * 3 + ["f"] * 3, "learning_rate": [np.nan] * 6, "region_count": range(6)}
    c = inscape.correlate(frame | {"gap": [0, 1, 2, 0, 1, 3]})
    assert c.n_configurations == 6
    assert c.models["t"].pearson.value == pytest.approx(1)
    assert c.models["f"].n_configurations == 3


def test_means_of_the_same_numbers_in_another_order_are_a_tie():
    a = [0.1, 0.2, 0.3]
    assert np.mean(a) != np.mean(a[::-1]) or sum(a) != sum(a[::-1])
    frame = {"learning_rate": [1] * 3 + [2] * 3, "region_count": a + a[::-1], "gap": [1, 1, 1, 2, 2, 2]}
    assert inscape.correlate(frame).granulated["learning_rate"] == 0


def test_granulated_kendall_by_hand():
    """Rate free: at size 1 t falls (-1), at size 2 it rises (+1), at size 3 it is tied (0): mean 0. Size free
    at rate 1: measures 1 2 3, targets 5 4 9: pairs -1 +1 +1, tau 1/3; at rate 2: 4 5 6 and 1 7 9: tau 1."""
    frame = pd.DataFrame(
        {"rate": [1, 1, 1, 2, 2, 2], "size": [1, 2, 3] * 2, "m": [1, 2, 3, 4, 5, 6], "t": [5, 4, 9, 1, 7, 9]}
    )
    assert granulated_kendall(frame, "m", "t", ["rate", "size"]) == pytest.approx({"rate": 0, "size": 2 / 3})
    assert tau_a(np.array([1, 2, 3, 4]), np.array([1, 1, 1, 1])) == 0
    lonely = frame[frame["size"] == 1]
    assert np.isnan(granulated_kendall(lonely, "m", "t", ["rate", "size"])["size"])


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"gap": [1.0]}, "no column 'region_count': it has gap"),
        ({"region_count": ["a"], "gap": [1.0]}, "must hold numbers"),
        ({"region_count": [1.0, np.nan], "gap": [1.0, 2.0]}, "not finite in 1 of 2 runs"),
    ],
)
def test_frames_that_cannot_be_used(frame, message):
    with pytest.raises(StudyError, match=message):
        inscape.correlate(frame)


SIX = {"region_count": [1.0, 2, 3, 4, 5, 7], "gap": [1.0, 3, 2, 5, 4, 6]}


def test_configurations_are_never_merged_in_silence():
    """Six runs, of which no two are the same: whatever `by` names, and with a missing value as a value."""
    hyper = {"learning_rate": [1, 1, 1, 2, 2, 2], "batch_size": [8, 16, None, 8, 16, None]}
    for by in ("learning_rate", ["batch_size"], HYPER_PARAMETERS):
        assert inscape.correlate(SIX | hyper, by=by).n_configurations == 6
    for name in ("group", "model"):
        families = {"learning_rate": [1, 2, 3] * 2, name: ["a"] * 3 + ["b"] * 3}
        assert inscape.correlate(SIX | families).n_configurations == 6
    missing = {"learning_rate": [1, 1, 2, 2, 3, 3], "weight_decay": [0.1, None] * 3}
    assert inscape.correlate(SIX | missing).n_configurations == 6
    assert inscape.correlate(SIX | hyper, by="learning_rate").by == ("learning_rate",)


def test_settings_that_vary_inside_a_configuration_are_named():
    frame = SIX | {"learning_rate": [1, 1, 2, 2, 3, 3], "seed": [0, 1] * 3, "augment": ["no", "yes"] * 3}
    with pytest.warns(InscapeWarning, match="differ in augment, momentum are averaged"):
        inscape.correlate(frame | {"momentum": [0.0, 0.9] * 3})
    assert inscape.correlate(frame, by=("learning_rate", "augment")).n_configurations == 6


def test_strata_of_words_and_numbers_and_containers():
    c = inscape.correlate(SIX | {"depth": [2, "auto", 10, 2, "auto", 10]}, by="depth")
    assert list(c.strata["depth"]) == [2, 10, "auto"]
    cells = [{"a": 1}, {"a": 2}, np.arange(2), (1, 2), [3], {"a": 1}]
    assert inscape.correlate(SIX | {"hidden": cells}, by="hidden").n_configurations == 5


@pytest.mark.parametrize(
    ("frame", "arguments", "message"),
    [
        (SIX | {"learning_rate": [1] * 6}, {"by": ["learning_rat"]}, "did you mean 'learning_rate'"),
        (SIX, {"by": ["region_count"]}, "compared and cannot be in by"),
        (SIX | {"depth": [1] * 6}, {"by": ["depth", "depth"]}, "in by twice"),
        (SIX, {"target": "region_count"}, "both 'region_count'"),
        (SIX | {"train_accuracy": ["high"] * 6}, {}, "'train_accuracy' must hold numbers"),
        (SIX | {"gap": [1, 2, 3, 4, 5, pd.NA]}, {}, "not finite in 1 of 6 runs"),
        (SIX, {"n_resamples": 0}, "n_resamples=0 must be a whole number"),
        (SIX, {"n_resamples": -1}, "n_resamples=-1 must be"),
        (SIX, {"n_resamples": 1.5}, "n_resamples=1.5 must be"),
        (SIX, {"min_train_accuracy": "all"}, "must be a number"),
        ("runs.csv", {}, "expected a table with a line per run, not str"),
        (pd.DataFrame([[1, 2, 3]], columns=["gap", "gap", "region_count"]), {}, "several columns gap"),
    ],
)
def test_arguments_that_make_no_sense(frame, arguments, message):
    with pytest.raises(StudyError, match=message):
        inscape.correlate(frame, **arguments)


def test_variation_between_configurations_beside_that_between_seeds():
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(200), 3)
    for spread in (0.0, 2.0):  # normal numbers: the means of three seeds have a deviation of spread^2 + 1 / 3
        values = rng.normal(size=600) + spread * np.repeat(rng.normal(size=200), 3)
        assert variation(values, owner) == pytest.approx(np.sqrt(spread**2 + 1 / 3), rel=0.15)
    apart = np.where(owner < 20, 50.0, 0.0) + rng.normal(size=600)
    assert (
        variation(apart, owner) < 1
    )  # a tenth of the configurations that stands apart is no family that varies
    assert variation([1.0, 2.0], [0, 1]) is None
    assert variation([1.0, 1.0, 2.0, 2.0], [0, 0, 1, 1]) == np.inf


def test_a_hyper_parameter_that_no_two_configurations_share_is_no_level(rng):
    """Drawn at random, of 1,000 networks: as so many levels it would have taken 8 GB, and left nothing."""
    rates = rng.uniform(size=1000)
    runs = [
        {"learning_rate": r, "batch_size": i % 4, "region_count": r, "gap": r} for i, r in enumerate(rates)
    ]
    found = inscape.correlate(runs, by=["batch_size", "learning_rate"], n_resamples=4)
    assert np.isnan(found.partial["learning_rate"].value)
    assert np.isnan(found.partial["all"].value)
    assert found.partial["batch_size"].value == pytest.approx(1.0)
