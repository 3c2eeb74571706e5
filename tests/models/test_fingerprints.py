"""How a model is known again."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB

import inscape
from inscape.models.fingerprints import Held, checksum


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [2, 3, 7, 64, 1220, 4096])
def test_structured_changes_are_seen(n, dtype):
    a = np.random.default_rng(0).normal(size=n).astype(dtype)
    b = a.copy()
    b[0] *= -1
    others = [-a, 2 * a, a[::-1], np.zeros_like(a), np.append(a, dtype(0)), b]
    assert len({checksum(x) for x in (a, *others)}) == 7
    assert checksum(np.ones(n, dtype)) != checksum(2 * np.ones(n, dtype))


@given(st.integers(0, 10**6), st.integers(1, 40))
def test_single_bits_are_seen(seed, n):
    rng = np.random.default_rng(seed)
    a = rng.integers(256, size=n, dtype=np.uint8)
    b = a.copy()
    b[rng.integers(n)] ^= np.uint8(1 << rng.integers(8))
    assert checksum(a) != checksum(b)
    assert checksum(a) == checksum(a.copy())


def test_contents_are_held_from_the_first_of_overlapping_times_to_the_last():
    held = Held()
    with held.during("first"):
        later = held.during("second")
        later.__enter__()
        assert held.contents == "first"
    assert held.contents == "first"
    later.__exit__(None, None, None)
    assert held.contents is None


def test_a_model_that_holds_its_contents_can_be_copied():
    model = inscape.wrap(GaussianNB().fit([[0.0], [1.0]], [0, 1]))
    with model.unchanged():
        again = pickle.loads(pickle.dumps(model))
    assert again.labels([[0.2], [0.9]]).tolist() == [0, 1]
