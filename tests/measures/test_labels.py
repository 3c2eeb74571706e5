"""Labels that are no classes of the model are refused by name, everywhere that takes y."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

import inscape
from inscape.errors import DataError, InscapeError, InscapeWarning, ProbeError
from inscape.measures.accuracy import correct

pytestmark = pytest.mark.filterwarnings("ignore:.*no better than chance:inscape.errors.InscapeWarning")

X = np.random.default_rng(0).normal(size=(60, 2))
Y = np.digitize(X[:, 0], [-0.5, 0.5])
NAMES = np.array(["left", "middle", "right"])


@pytest.fixture
def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3))


def by_name(x):
    return NAMES[np.digitize(x[:, 0], [-0.5, 0.5])]


def spoilt(kind):
    y = Y.astype(float)
    if kind == "nan":
        y[[3, 5]] = np.nan
    elif kind == "fraction":
        y[4] = 0.5
    else:
        y = Y + 90
    return y


BAD = {
    "nan": "y holds nan for 2 of 60 points, the first at row 3",
    "fraction": r"y holds 0\.5",
    "unknown": "y holds (classes )?90, 91, 92",
}
ATTACK = {"eps": 0.1, "steps": 1, "step_size": 0.1}
MEASURES = {
    "accuracy": lambda net, y: inscape.measure(net, X, y, measures=["accuracy"]),
    "correct": lambda net, y: correct(inscape.wrap(net), X, y),
    "margin": lambda net, y: inscape.margin(net, X, y),
    "sharpness": lambda net, y: inscape.sharpness(net, X, y),
    "attack": lambda net, y: inscape.adversarial_accuracy(net, X, y, **ATTACK),
    "monitor": lambda net, y: inscape.Monitor(X, y, measures=["accuracy"]).record(net, 0),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("measure", MEASURES)
def test_every_measure_refuses_labels_that_are_no_classes(net, measure, kind):
    with pytest.raises(InscapeError, match=BAD[kind]):
        MEASURES[measure](net, spoilt(kind))


@pytest.mark.parametrize("kind", BAD)
def test_a_classifier_that_knows_its_classes_names_those_it_does_not(kind):
    model = inscape.wrap(LogisticRegression().fit(X, Y))
    with pytest.raises(DataError, match=BAD[kind]):
        correct(model, X, spoilt(kind))
    with pytest.raises(
        DataError, match=r"y holds 3, which is no class of LogisticRegression: it knows 0, 1, 2"
    ):
        correct(model, X, np.where(Y == 2, 3, Y))


@pytest.mark.parametrize(
    "y",
    [
        Y,
        Y.astype(float),
        Y.astype(np.uint8),
        Y.astype(object),
        Y.tolist(),
        torch.tensor(Y),
        torch.tensor(Y, dtype=torch.bfloat16),
        pd.Series(Y),
        pd.Series(Y, dtype="Int64"),
        pd.Series(Y).astype("category"),
        np.ma.masked_array(Y, mask=np.zeros(60, dtype=bool)),
    ],
    ids=lambda y: f"{type(y).__name__}-{getattr(y, 'dtype', '')}",
)
def test_whole_numbers_in_any_dress_are_the_same_classes(net, y):
    assert correct(inscape.wrap(LogisticRegression().fit(X, Y)), X, y).mean() > 0.8
    truth = inscape.wrap(net).labels(X) == Y
    assert (correct(inscape.wrap(net), X, y) == truth).all()
    assert inscape.measure(net, X, y, measures=["accuracy"])["accuracy"]["value"] == truth.mean()


def test_names_booleans_and_absent_classes_are_legitimate():
    named = LogisticRegression().fit(X, NAMES[Y])
    expected = (named.predict(X) == NAMES[Y]).mean()
    for y in (NAMES[Y], NAMES[Y].tolist(), pd.Series(NAMES[Y]), NAMES[Y].astype(object)):
        assert correct(inscape.wrap(named), X, y).mean() == expected
    some = Y < 2
    assert correct(inscape.wrap(named), X[some], NAMES[Y[some]]).mean() > 0.5
    yes = X[:, 0] > 0
    for classes in (yes, yes.astype(int), yes.astype(float)):
        model = inscape.wrap(LogisticRegression(C=1e6).fit(X, classes))
        for y in (yes, yes.astype(int), yes.astype(float)):
            assert correct(model, X, y).all()


def test_names_that_a_function_never_predicts_are_wrong_and_none_in_common_is_an_error():
    model = inscape.wrap(by_name)
    y = np.where(Y == 2, "far right", NAMES[Y])
    assert correct(model, X, y).tolist() == (Y != 2).tolist()
    with pytest.raises(DataError, match=r"y holds 'a', but by_name predicts only 'left'.*no class in common"):
        correct(model, X, np.full(60, "a"))


def test_a_function_of_labels_may_use_any_whole_numbers_but_predicting_none_of_y_is_said():
    signs = inscape.wrap(lambda x: np.where(x[:, 0] > 0, 1, -1))
    assert correct(signs, X, np.where(X[:, 0] > 0, 1, -1)).all()
    with pytest.raises(DataError, match=r"y holds 0\.5"):
        correct(signs, X, np.full(60, 0.5))
    with pytest.warns(InscapeWarning, match="y holds 90, 91, 92, and .* predicts only -1, 1"):
        assert not correct(signs, X, Y + 90).any()


def test_probes_by_class_need_classes(net):
    for classes in ("any", "same", "different"):
        with pytest.raises(ProbeError, match="y holds nan for 2 of 60"):
            inscape.sample_probes(X, y=spoilt("nan"), classes=classes)
        with pytest.raises(ProbeError, match="y holds nan for 2 of 60"):
            inscape.region_count(net, X, y=spoilt("nan"), classes=classes)
    with pytest.raises(ProbeError, match=r"y holds 0\.5: classes are whole numbers or names"):
        inscape.sample_probes(X, y=spoilt("fraction"), classes="same")
    with pytest.raises(ProbeError, match="y holds nan for 2 of 60"):
        inscape.rank({"a": net, "b": net}, X, y=spoilt("nan"))
    with pytest.raises(ProbeError, match="y holds None for 1 of 60"):
        inscape.sample_probes(X, y=[*NAMES[Y[:59]], None], classes="same")
    with pytest.raises(ProbeError, match=r"y holds (<NA>|nan) for 1 of 60"):
        inscape.sample_probes(X, y=pd.Series([*Y[:59], None], dtype="Int64"), classes="same")
    with pytest.raises(DataError, match="y holds nan for 2 of 60"):
        inscape.theory.check_all(net, X, spoilt("nan"))


def test_masked_values_are_refused_and_counted(net):
    x = np.ma.masked_array(X, mask=np.zeros_like(X, dtype=bool))
    assert inscape.wrap(net).labels(x).tolist() == inscape.wrap(net).labels(X).tolist()
    x[7] = np.ma.masked
    y = np.ma.masked_array(Y, mask=np.arange(60) < 3)
    for call in (
        lambda: inscape.region_count(net, x),
        lambda: inscape.sample_probes(x),
        lambda: inscape.wrap(net).labels(x),
        lambda: inscape.total_variation(net, x),
        lambda: inscape.Segment(x[6], x[7]),
        lambda: inscape.theory.check_all(net, x),
    ):
        with pytest.raises(InscapeError, match=r"2 of the \d+ values of .* are masked"):
            call()
    for call in MEASURES.values():
        with pytest.raises(InscapeError, match="3 of the 60 values of y are masked"):
            call(net, y)
