"""Both forms of the linear map along a bent line give what the network computes there."""

import numpy as np
import pytest

from inscape.partition.linear.bent_line import pass_breakpoint, sag, start_line


def bent_problem(seed, n_entries=12, n_out=5):
    """A map W relu(z) along a line on which z is affine: its breakpoints, W transposed and the map itself."""
    rng = np.random.default_rng(seed)
    first, last = rng.normal(size=(2, n_entries))
    columns = rng.normal(size=(n_entries, n_out))
    entry = np.flatnonzero(first * last < 0)
    s = first[entry] / (first[entry] - last[entry])
    order = np.argsort(s)
    change = np.abs(last - first)[entry]

    def map_at(t):
        return np.maximum(first + t * (last - first), 0.0) @ columns

    return s[order], entry[order], change[order], columns, map_at


@pytest.mark.parametrize("seed", range(5))
def test_in_order_along_the_line(seed):
    s, entry, change, columns, map_at = bent_problem(seed)
    assert len(s) > 2
    base, slope = np.empty(columns.shape[1]), np.empty(columns.shape[1])
    start_line(map_at(0.0), map_at(1.0), s, entry, change, 0, len(s), columns, base, slope)
    bounds = [0.0, *s, 1.0]
    for k in range(len(s) + 1):
        for t in np.linspace(bounds[k], bounds[k + 1], 4):
            assert np.allclose(base + t * slope, map_at(t), rtol=0, atol=1e-12)
        if k < len(s):
            pass_breakpoint(s[k], change[k], columns[entry[k]], base, slope)


@pytest.mark.parametrize("seed", range(5))
def test_at_any_point_by_the_sum_over_all_breakpoints(seed):
    s, entry, change, columns, map_at = bent_problem(seed)
    for t in np.linspace(0.0, 1.0, 11):
        straight = (1 - t) * map_at(0.0) + t * map_at(1.0)
        bent = straight - sum(sag(t, s[k], change[k]) * columns[entry[k]] for k in range(len(s)))
        assert np.allclose(bent, map_at(t), rtol=0, atol=1e-12)
