"""Coefficients of correlation against scipy, closed forms and simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from inscape.correlation.coefficients import KINDS, correlation, partial_correlation
from inscape.errors import StudyError

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


@pytest.mark.parametrize("kind", SCIPY)
@pytest.mark.parametrize("decimals", [0, 9])
def test_values_are_scipys_with_and_without_ties(kind, decimals, rng):
    x = rng.normal(size=700).round(decimals)  # more than one block of pairs
    y = (x + rng.normal(size=700)).round(decimals)
    assert np.isclose(correlation(x, y, kind=kind, n_resamples=1).value, SCIPY[kind](x, y).statistic)


@given(
    points=st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=3, max_size=12),
    seed=st.integers(0, 1000),
)
@pytest.mark.parametrize("kind", SCIPY)
def test_a_weighted_point_is_that_point_repeated(kind, points, seed):
    x, y = np.array(points, float).T
    counts = np.random.default_rng(seed).integers(0, 3, size=len(x))
    a, b = np.repeat(x, counts), np.repeat(y, counts)
    (value,) = KINDS[kind](counts[None].astype(float), x, y) if counts.sum() else [np.nan]
    if len(np.unique(a)) < 2 or len(np.unique(b)) < 2:
        assert np.isnan(value)
    else:
        assert np.isclose(value, SCIPY[kind](a, b).statistic)


def test_closed_forms():
    # x = 1..n against its square: r = sum((x - m) x^2) / sqrt(...), worked out for n = 3: 1, 4, 9
    assert np.isclose(correlation([1, 2, 3], [1, 4, 9]).value, 8 / np.sqrt(2 * 98 / 3))
    # one swap of neighbours among n = 4: Spearman 1 - 6 * 2 / (4 * 15), Kendall 1 - 2 * 2 / 12 ... of 6 pairs
    assert np.isclose(correlation([1, 2, 3, 4], [1, 2, 4, 3], kind="spearman").value, 0.8)
    assert np.isclose(correlation([1, 2, 3, 4], [1, 2, 4, 3], kind="kendall").value, 4 / 6)


@pytest.mark.parametrize("kind", SCIPY)
def test_interval_contains_the_truth_usually(kind, rng):
    truth = {"pearson": np.sqrt(0.5), "spearman": 6 / np.pi * np.arcsin(np.sqrt(0.5) / 2), "kendall": 0.5}
    hits = 0
    for seed in range(150):
        x, noise = rng.normal(size=(2, 60))
        c = correlation(x, x + noise, kind=kind, n_resamples=400, random_state=seed)
        hits += c.interval[0] <= truth[kind] <= c.interval[1]
    assert 0.85 < hits / 150 <= 1


def test_clusters_are_drawn_together(rng):
    """Ten copies of each point add nothing; as clusters the interval stays, as points it shrinks."""
    x = rng.normal(size=12)
    y = x + rng.normal(size=12)
    alone = correlation(x, y, random_state=1)
    copies = np.repeat(x, 10), np.repeat(y, 10)
    clustered = correlation(*copies, clusters=np.repeat(np.arange(12), 10), random_state=1)
    naive = correlation(*copies, random_state=1)
    assert np.allclose([clustered.value, *clustered.interval], [alone.value, *alone.interval])
    assert naive.interval[1] - naive.interval[0] < 0.6 * (alone.interval[1] - alone.interval[0])


@pytest.mark.parametrize("value", [1.0, 0.1, 1e9 / 3])
@pytest.mark.parametrize("kind", SCIPY)
def test_a_constant_column_has_no_correlation(kind, value):
    c = correlation(np.full(5, value), np.arange(5.0), kind=kind)
    assert np.isnan(c.value)
    assert np.isnan(c.interval).all()
    assert c.to_dict() == {"value": None, "interval": [None, None], "n": 5}


def test_deterministic_and_unpackable(rng):
    x, y = rng.normal(size=(2, 12))
    assert correlation(x, y) == correlation(x, y)
    value, (low, high) = correlation(x, y)
    assert low < value < high
    with pytest.raises(StudyError, match=r"unknown correlation 'pearsn'.*did you mean 'pearson'"):
        correlation(x, y, kind="pearsn")


def test_partial_correlation_is_the_closed_form(rng):
    z = rng.integers(2, size=40).astype(float)
    x, y = z + rng.normal(size=(2, 40))
    xy, xz, yz = (np.corrcoef(a, b)[0, 1] for a, b in ((x, y), (x, z), (y, z)))
    expected = (xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2))
    assert np.isclose(partial_correlation(x, y, z[:, None]).value, expected)


def test_partial_correlation_is_that_of_residuals(rng):
    z = rng.normal(size=(50, 3))
    x, y = z @ rng.normal(size=(3, 2)) @ np.eye(2) + rng.normal(size=(50, 2)) @ [[1, 0.5], [0, 1]], None
    x, y = x.T
    design = np.column_stack([np.ones(50), z])
    left = [v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in (x, y)]
    c = partial_correlation(x, y, z)
    assert np.isclose(c.value, np.corrcoef(*left)[0, 1])
    assert c.interval[0] < c.value < c.interval[1]
    assert np.isnan(partial_correlation(z[:, 0], y, z).value)  # the controls explain all of x


def test_three_clusters_have_no_interval():
    c = correlation([1, 2, 3, 1, 2, 3], [1, 3, 2, 1, 3, 2], clusters=[0, 1, 2, 0, 1, 2])
    assert c.value == pytest.approx(0.5)
    assert np.isnan(c.interval).all()
    assert str(c) == "+0.50 (no interval)"


def test_partial_correlation_in_little_memory_is_the_same(rng, monkeypatch):
    controls, (x, y) = rng.normal(size=(60, 5)), rng.normal(size=(2, 60))
    whole = partial_correlation(x, y, controls, n_resamples=50)
    monkeypatch.setattr("inscape.correlation.coefficients.MEMORY", 8 * 8 * 8 * 7)
    parts = partial_correlation(x, y, controls, n_resamples=50)
    assert parts.value == pytest.approx(whole.value, rel=1e-9)
    assert parts.interval == pytest.approx(whole.interval, rel=1e-9)
