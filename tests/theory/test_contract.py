"""Every statement is called alike: a form, points as they come, and one clear line for bad input."""

import inspect
import math

import numpy as np
import pytest
import torch

from inscape import InscapeError, theory
from inscape.theory.check import compare
from inscape.theory.check_all import STATEMENTS
from inscape.training import mlp
from inscape.univariate import ShallowNet

X = np.random.default_rng(0).normal(size=(12, 2))
PLACES = np.array([-1.0, 0.0, 1.0])
WAVE = ShallowNet([1.0, 1.0], [1.5, -0.5], [1.0, -2.0])
HAT, GRID = ShallowNet([1.0, 1.0], [0.0, -1.0], [1.0, -2.0]), np.array([-1.0, 0.0, 1.0, 2.0])
NET = mlp(2, (4,), 1, random_state=0)
PAIR = (np.eye(2), np.array([1.0, -1.0]))


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_has_a_form(name: str) -> None:
    function = getattr(theory, name)
    parameters = inspect.signature(function).parameters
    assert parameters["form"].default == ("corrected" if len(STATEMENTS[name][0]) == 2 else "stated")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("rc_lemma7", (PAIR, X[0], X[1])),
        ("rc_lemma8", (PAIR, X)),
        ("rc_theorem6", (PAIR, X)),
        ("el_theorem42", (WAVE, PLACES, [1, 1, 1], 2)),
        ("el_theorem32", ([WAVE], 2)),
        ("el_pl_condition", (WAVE, PLACES, [1, 1, 1])),
        ("el_breakpoints", (WAVE, PLACES, WAVE)),
        ("el_corollary51", (WAVE, PLACES, [1, 1, 1], WAVE)),
        ("el_example1", ()),
        ("lc_corollary3_upper", (WAVE, PLACES)),
        ("lc_proposition6", (WAVE, PLACES)),
        ("lc_good_at_start", (2, (3, 3))),
        ("lc_theorem18", (WAVE, PLACES[:, None], [1, 1, 1], WAVE)),
        ("lc_corollary10", ([0.1, 0.01, 0.001], [1, 2, 3])),
        ("ms_lemma1", (WAVE, PLACES, WAVE(PLACES), 0.25)),
        ("ms_lemma2", (WAVE, PLACES, WAVE(PLACES), 0.25)),
        ("ms_lemma3", (WAVE, PLACES, WAVE(PLACES), 0.25)),
        ("ms_lemma4", (WAVE, PLACES, WAVE(PLACES))),
        ("ms_lemma5", (HAT, GRID, HAT(GRID))),
        ("ms_theorem1", (WAVE, PLACES, WAVE(PLACES), 0.25)),
    ],
)
def test_what_holds_as_stated_has_no_corrected_form(name: str, arguments: tuple) -> None:
    function = getattr(theory, name)
    found = function(*arguments, form="stated")
    assert (found.name, found.form) == (name, "stated")
    assert found.holds is not False
    with pytest.raises(InscapeError, match="holds as stated"):
        function(*arguments, form="corrected")
    with pytest.raises(InscapeError, match="unknown form"):
        function(*arguments, form="other")


def test_theorem_42_takes_the_width_of_the_teacher() -> None:
    assert theory.el_theorem42(WAVE, PLACES, [1, 1, 1], 3).rhs == 32 * 3 + 67


def test_points_of_one_input_may_be_flat() -> None:
    flat, column, tensor = (
        theory.lc_theorem5_upper(WAVE, x, random_state=0)
        for x in (PLACES.tolist(), PLACES[:, None], torch.from_numpy(PLACES))
    )
    assert flat.lhs == column.lhs == tensor.lhs
    assert flat.rhs == column.rhs == tensor.rhs


def test_equal_up_to_rounding_reads_as_holding() -> None:
    assert str(compare("one", 1.0 + 1e-15, 1.0)) == "<one (stated): 1 <= 1, holds>"


BAD = {
    "nan": np.where(np.arange(24).reshape(12, 2) == 3, math.nan, X),
    "empty": X[:0],
    "too narrow": X[:, :1],
    "none": None,
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("name", ["check_all", "rc_theorem5", "rc_lemma8", "rc_theorem6", "lc_proposition8"])
def test_bad_points_are_one_error(name: str, kind: str) -> None:
    with pytest.raises(InscapeError) as caught:
        getattr(theory, name)(NET, BAD[kind])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", BAD)
def test_bad_points_are_one_error_for_arrays(kind: str) -> None:
    with pytest.raises(InscapeError):
        theory.rc_lemma8(PAIR, BAD[kind])


def test_half_of_the_test_data_is_an_error() -> None:
    with pytest.raises(InscapeError, match="needs all of y, x_test and y_test"):
        theory.rc_theorem5(NET, X, x_test=X, y_test=np.zeros(12))


def test_norms_of_other_runs_are_an_error() -> None:
    with pytest.raises(InscapeError, match="one positive number per run"):
        theory.lc_corollary10([0.1, 0.01, 0.001], [1, 2, 3], norms=[1, 2])


def test_two_units_by_hand() -> None:
    """f = relu(x_1) - relu(x_2) at (2, -1) and (-1, 2): one active unit each, H = diag blocks, r^2 = 5."""
    x = np.array([[2.0, -1.0], [-1.0, 2.0]])
    assert theory.rc_lemma7(PAIR, x[0], x[1]).rhs == 4
    lemma8 = theory.rc_lemma8(PAIR, x)
    assert (lemma8.lhs, lemma8.rhs) == pytest.approx((5 / 4 * 2, 5 / 2))
    assert theory.rc_theorem6(PAIR, x).rhs == pytest.approx(2 * 2 * 2.5 / 5 + 2)
    assert theory.rc_theorem6(PAIR, x, step_size=0.5).rhs == pytest.approx(4 * 2 / (5 * 0.5) + 2)
    assert theory.rc_theorem6(PAIR, x).lhs == pytest.approx((1 + 1 + 2 + 2) / 4)
