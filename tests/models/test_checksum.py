import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inscape.models.base import checksum


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
