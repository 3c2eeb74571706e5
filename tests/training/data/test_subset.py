"""Random subsets are balanced and nested."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inscape.errors import DataError
from inscape.training import load_data
from inscape.training.data.subset import balanced_rows


@given(n_classes=st.integers(1, 7), n=st.integers(1, 60), seed=st.integers(0, 10**6))
def test_balanced_up_to_one_without_repetition(n_classes, n, seed):
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(n_classes), 60))
    rows = balanced_rows(y, len(y), n, seed)
    assert len(rows) == len(set(rows.tolist())) == n
    counts = np.bincount(y[rows], minlength=n_classes)
    assert counts.max() - counts.min() <= 1
    assert np.array_equal(rows, balanced_rows(y, len(y), n, seed))


def test_subsets_are_nested_and_depend_on_the_seed(digits):
    small, large = (set(balanced_rows(digits.y, len(digits), n, 3).tolist()) for n in (100, 500))
    assert small < large
    assert small != set(balanced_rows(digits.y, len(digits), 100, 4).tolist())
    assert np.bincount(load_data("digits", n=50).y).tolist() == [5] * 10


def test_without_classes_any_points():
    assert sorted(balanced_rows(None, 9, 9, 0)) == list(range(9))


@pytest.mark.parametrize(
    ("n", "message"),
    [
        (0, "n=0 is too small"),
        (31, "too many: there are 30"),
        (20, "need 10 of class b, which has 5: take at most 10"),
    ],
)
def test_more_than_there_is(n, message):
    y = np.array(["a"] * 25 + ["b"] * 5)
    with pytest.raises(DataError, match=message):
        balanced_rows(y, 30, n, 0)
