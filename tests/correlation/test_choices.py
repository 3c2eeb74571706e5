"""Picking models by measures: brute force over all pairs, and bootstrap intervals that cover."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

from inscape.correlation.choices import choose, lead
from inscape.errors import StudyError


def runs(n=30, seed=0):
    rng = np.random.default_rng(seed)
    accuracy = rng.integers(50, 95, n) / 100
    return pd.DataFrame(
        {"test_accuracy": accuracy, "regions": np.round(5 - 3 * accuracy + rng.normal(0, 0.4, n), 1)}
    )


def test_every_number_by_brute_force():
    frame = runs()
    line = choose(frame, {"regions": "low"}).iloc[0]
    found = []
    for (_, a), (_, b) in combinations(frame.iterrows(), 2):
        if a["test_accuracy"] == b["test_accuracy"]:
            continue
        better, worse = (a, b) if a["test_accuracy"] > b["test_accuracy"] else (b, a)
        found.append(
            0.5 if better["regions"] == worse["regions"] else float(better["regions"] < worse["regions"])
        )
    assert line["pairs"] == pytest.approx(np.mean(found))
    assert line["kendall"] == pytest.approx(kendalltau(-frame["regions"], frame["test_accuracy"])[0])
    liked = frame[frame["regions"] == frame["regions"].min()]
    assert line["regret"] == pytest.approx(frame["test_accuracy"].max() - liked["test_accuracy"].mean())
    for key in ("kendall", "pairs", "regret"):
        assert line[f"{key} low"] <= line[key] <= line[f"{key} high"]
    assert choose(frame, {"regions": "high"}).iloc[0]["pairs"] == pytest.approx(1 - line["pairs"])


def test_a_measure_that_is_the_target_never_errs_and_noise_is_a_coin():
    rng = np.random.default_rng(2)
    frame = runs(200).assign(noise=rng.normal(size=200), oracle=lambda f: f["test_accuracy"])
    table = choose(frame, {"oracle": "high", "noise": "high"}).set_index("measure")
    assert table.loc["oracle", ["pairs", "regret"]].tolist() == pytest.approx([1.0, 0.0])
    assert table.loc["noise", "pairs low"] < 0.5 < table.loc["noise", "pairs high"]
    ahead = lead(frame, ("oracle", "high"), ("noise", "high"))
    assert ahead.value == pytest.approx(1 - table.loc["noise", "pairs"])
    assert ahead.interval[0] > 0.4


def test_seeds_of_a_configuration_are_drawn_together():
    frame = pd.concat([runs()] * 4, ignore_index=True)
    alone = choose(frame, {"regions": "low"}).iloc[0]
    owned = choose(frame.assign(configuration=np.tile(np.arange(30), 4)), {"regions": "low"}).iloc[0]
    assert owned["pairs"] == alone["pairs"]
    reach = [line["pairs high"] - line["pairs low"] for line in (owned, alone)]
    assert reach[0] > 1.5 * reach[1]  # four copies are no four models


def test_what_cannot_be():
    with pytest.raises(StudyError, match=r"unknown column 'region'.*did you mean 'regions'"):
        choose(runs(), {"region": "low"})
    with pytest.raises(StudyError, match="'down' must be 'high' or 'low'"):
        choose(runs(), {"regions": "down"})
    gaps = runs().assign(margin=np.nan)
    assert choose(gaps, {"margin": "high"})["models"].tolist() == [0]
