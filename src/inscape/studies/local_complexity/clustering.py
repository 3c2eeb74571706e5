"""How much the directions of vectors cluster, as one number with a null."""

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats
from inscape.errors import StudyError
from inscape.seeding import RandomState, as_generator

SMALLEST = 0.01
"""Vectors shorter than this part of the longest have no direction to speak of and are left out."""


def clustering(vectors: npt.ArrayLike, *, n_nulls: int = 4, random_state: RandomState = 0) -> float:
    """How near the nearest other direction is, beyond what mean and covariance explain: 0 none, 1 copies.

    With S the mean over vectors of the cosine to the nearest other, and S_0 the same of as many Gaussian
    vectors with the mean and covariance of the vectors, it is (S - S_0) / (1 - S_0). The null shares what
    makes neighbours near without clusters: few dimensions, unequal variances, a common part. Below 0,
    directions keep apart. The covariance of fewer vectors than dimensions is far from that of their source:
    variances are those of one half of the vectors along the principal axes of the other. What that misses of
    very unequal variances leaves Gaussian vectors with up to 0.1 instead of 0.

    Args:
        vectors: (n, d).
        n_nulls: how many Gaussian samples S_0 is the mean of.
        random_state: seed of these.

    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(8, 50))
    >>> tight = np.repeat(centres, 40, axis=0) + 0.1 * rng.normal(size=(320, 50))
    >>> bool(clustering(tight) > 0.8), bool(abs(clustering(rng.normal(size=(320, 50)))) < 0.03)
    (True, True)
    """
    v = np.asarray(vectors, dtype=np.float64)
    if v.ndim != 2 or len(v) < 3:
        raise StudyError(f"clustering needs at least three vectors (n, d), got shape {v.shape}")
    lengths = np.linalg.norm(v, axis=1)
    kept = lengths > SMALLEST * lengths.max()
    if kept.sum() < 3:
        raise StudyError("clustering needs at least three vectors that are not short beside the longest")
    rng = as_generator(random_state)
    null = float(np.mean([nearest_cosine(_alike(v[kept], rng)) for _ in range(n_nulls)]))
    return float((nearest_cosine(v[kept]) - null) / (1 - null))


def nearest_cosine(vectors: Floats) -> float:
    """The mean cosine of each vector with the one that is nearest in direction."""
    u = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = u @ u.T
    np.fill_diagonal(cosines, -1.0)
    return float(cosines.max(axis=1).mean())


def _alike(v: Floats, rng: np.random.Generator) -> Floats:
    """As many Gaussian vectors, in other coordinates: cosines are the same in all that are orthonormal."""
    n, d = v.shape
    order = rng.permutation(n)
    axes = np.linalg.svd(v[order[: n // 2]] - v.mean(axis=0), full_matrices=True)[2].T
    variances = (((v[order[n // 2 :]] - v.mean(axis=0)) @ axes) ** 2).mean(axis=0)
    return np.asarray(v.mean(axis=0) @ axes + rng.standard_normal((n, d)) * np.sqrt(variances))
