import numpy as np
from scipy import stats

from inscape.studies.correlation import pearson


def test_value_is_scipys(rng):
    x = rng.normal(size=30)
    y = x + rng.normal(size=30)
    assert np.isclose(pearson(x, y).value, stats.pearsonr(x, y).statistic)


def test_interval_contains_the_truth_usually(rng):
    hits = 0
    for seed in range(150):
        x, noise = rng.normal(size=(2, 60))
        c = pearson(x, x + noise, n_resamples=400, random_state=seed)
        hits += c.interval[0] <= np.sqrt(0.5) <= c.interval[1]
    assert 0.85 < hits / 150 <= 1


def test_a_constant_column_has_no_correlation():
    c = pearson(np.ones(5), np.arange(5.0))
    assert np.isnan(c.value)
    assert np.isnan(c.interval).all()


def test_deterministic(rng):
    x, y = rng.normal(size=(2, 12))
    assert pearson(x, y) == pearson(x, y)
