"""Accuracies no better than chance are noticed, and weak ones left alone."""

import warnings

import numpy as np
import pytest

import inscape
from inscape.errors import InscapeWarning
from inscape.measures.accuracy import chance_note, correct


def columns(labels, c):
    """A function that gives point i, whose only number is i, the label i of an array."""
    return inscape.wrap(lambda x: np.eye(c)[np.asarray(labels)[x[:, 0].astype(int)]])


def note(labels, y, c):
    x = np.arange(len(y), dtype=float)[:, None]
    model = columns(labels, c)
    return chance_note(model, correct(model, x, y), x, y)


def mixed(rng, y, c, share):
    """Labels that are right for a share of the points and drawn at random for the rest."""
    return np.where(rng.uniform(size=len(y)) < share, y, rng.integers(c, size=len(y)))


@pytest.mark.parametrize(("c", "n"), [(2, 100), (10, 100), (10, 1000)])
def test_random_labels_are_noticed_and_weak_models_are_not(c, n, rng):
    noticed = {0.0: 0, 0.3: 0}
    for _ in range(100):
        y = rng.integers(c, size=n)
        for share in noticed:
            noticed[share] += bool(note(mixed(rng, y, c, share), y, c))
    assert noticed[0.0] >= 70  # of two classes, five points in a hundred are enough to be let go
    assert noticed[0.3] <= 5


def test_constant_and_permuted_labels_are_noticed_however_unequal_the_classes(rng):
    y = (rng.uniform(size=500) < 0.05).astype(int)
    assert "labels 9" in note(np.zeros(500, int), y, 2)
    balanced = np.arange(200) % 4
    assert "no better than chance among 4 classes" in note((balanced + 1) % 4, balanced, 4)


def test_good_models_few_points_and_single_classes_are_left_alone(rng):
    rare = np.zeros(60, int)
    rare[0] = 1
    assert note(rare, rare, 2) == ""
    y = np.arange(49) % 2
    assert note(1 - y, y, 2) == ""
    assert note(np.ones(80, int), np.zeros(80, int), 2) == ""


def test_two_classes_of_a_hundred_are_judged_by_the_hundred(rng):
    y = np.arange(400) % 2
    weak = np.where(rng.uniform(size=400) < 0.4, y, 2 + rng.integers(98, size=400))
    assert note(weak, y, 100) == ""


def test_measure_and_rank_warn(rng):
    x = rng.normal(size=(200, 1))
    y = (np.arange(200) % 2).astype(int)
    sign = inscape.wrap(lambda x: np.hstack([-x, x]))
    with pytest.warns(InscapeWarning, match="no better than chance among 2 classes.*laid out, scaled"):
        table = inscape.measure(sign, x, y, measures="accuracy")
    assert "no better than chance" in table["accuracy"]["note"]
    with pytest.warns(InscapeWarning, match="no better than chance"):
        inscape.rank({"a": sign, "b": lambda x: np.hstack([x, -x])}, x, y=y, n_probes=5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inscape.measure(sign, x, (x[:, 0] > 0).astype(int), measures="accuracy")
        named = inscape.rank({"a": sign, "b": sign.function}, x, y=np.array(["u", "v"])[y], n_probes=5)
    assert len(named.order) == 2
