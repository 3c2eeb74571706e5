import json

import numpy as np
import pytest
import torch
from sklearn.tree import DecisionTreeClassifier
from torch.utils.data import TensorDataset

import inscape
from inscape.errors import DataError, InscapeError
from inscape.measures.accuracy import correct


@pytest.fixture
def x(rng):
    return rng.uniform(size=(60, 2))


def halves(x):
    return (x[:, 0] > 0.5).astype(int)


def test_default_measures(x):
    assert [r["measure"] for r in inscape.measure(halves, x).rows] == ["region_count"]
    table = inscape.measure(halves, x, halves(x), random_state=0)
    assert [r["measure"] for r in table.rows] == ["region_count", "accuracy"]
    assert table["accuracy"]["value"] == 1.0
    assert table["region_count"]["value"] == inscape.region_count(halves, x, random_state=0).mean


def test_tidy_frame_and_json(x):
    table = inscape.measure(halves, x, halves(x), random_state=0)
    frame = table.to_frame()
    assert list(frame.columns)[:6] == ["measure", "value", "std_error", "low", "high", "n"]
    assert len(frame) == 2
    json.dumps(table.to_dict(), allow_nan=False)
    assert "region_count 1." in repr(table)


def test_settings_of_a_measure(x):
    table = inscape.measure(halves, x, measures={"region_count": {"dim": 2, "n_probes": 9}}, random_state=4)
    row = table["region_count"]
    assert row["n"] == 9
    assert row["settings"]["dim"] == 2
    assert row["settings"]["seed"] == 4


def test_a_measure_that_does_not_apply_is_a_row_with_the_reason(x):
    row = inscape.measure(halves, x, measures=["accuracy"])["accuracy"]
    assert row["value"] is None
    assert "needs y" in row["note"]


def test_off_data_classes_are_noted():
    x = np.array([[0.0], [1.0]])
    row = inscape.measure(lambda x: np.digitize(x[:, 0], [0.4, 0.6]), x)["region_count"]
    assert row["note"] == "classes 1 appear only off the data"


def test_data_sets_carry_their_classes(x):
    data = TensorDataset(torch.from_numpy(x), torch.from_numpy(halves(x)))
    assert inscape.measure(halves, data)["accuracy"]["value"] == 1.0


def test_accuracy_compares_names(x):
    names = np.where(halves(x) == 1, "right", "left")
    model = inscape.wrap(DecisionTreeClassifier().fit(x, names))
    assert correct(model, x, names).all()
    numbers = inscape.wrap(DecisionTreeClassifier().fit(x, halves(x) * 4 + 3))
    assert correct(numbers, x, halves(x) * 4 + 3).all()
    assert correct(numbers, x, (halves(x) * 4 + 3).astype(float)).all()


def test_bad_requests(x):
    with pytest.raises(InscapeError, match=r"unknown measure 'region_cuont'.*did you mean 'region_count'"):
        inscape.measure(halves, x, measures=["region_cuont"])
    with pytest.raises(DataError, match="has no class names"):
        correct(inscape.wrap(halves), x, np.full(60, "a"))
    with pytest.raises(DataError, match=r"y has shape \(2,\) for 60 points"):
        correct(inscape.wrap(halves), x, [0, 1])
