"""Vectors as points of a plane: by UMAP, an extra, or by their principal components."""

from importlib.util import find_spec

import numpy as np

from inscape.arrays import Floats
from inscape.errors import MissingExtraError, StudyError, unknown_name

PROJECTIONS = ("umap", "pca")


def chosen_projection(name: str | None) -> str:
    """The name, checked; None takes UMAP where it is installed."""
    if name is None:
        return "umap" if find_spec("umap") else "pca"
    if name not in PROJECTIONS:
        raise StudyError(unknown_name("projection", name, PROJECTIONS))
    if name == "umap" and not find_spec("umap"):
        raise MissingExtraError("umap-learn", "umap", "projecting by UMAP")
    return name


def project(vectors: Floats, name: str, *, seed: int = 0) -> Floats:
    """The vectors (n, d) as points (n, 2).

    >>> line = np.outer(np.arange(4.0), [3.0, 4.0])
    >>> np.abs(project(line, "pca")[:, 0]).round(6).tolist()
    [7.5, 2.5, 2.5, 7.5]
    """
    if name == "pca":
        return principal_components(vectors, 2)
    import warnings

    try:
        import umap
    except ImportError as error:
        raise MissingExtraError("umap-learn", "umap", "projecting by UMAP") from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads that a seed forbids, and of its own dependencies
        fitted = umap.UMAP(n_components=2, metric="cosine", random_state=seed, n_jobs=1).fit_transform(
            vectors
        )
    return np.asarray(fitted, dtype=np.float64)


def principal_components(vectors: Floats, n: int) -> Floats:
    """The first n coordinates along the principal axes, (len, n); the largest of each column is positive."""
    centred = vectors - vectors.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((len(vectors), n))
    k = min(n, len(s))
    points[:, :k] = u[:, :k] * s[:k]
    largest = np.abs(points).argmax(axis=0)
    return np.asarray(points * np.where(points[largest, np.arange(n)] < 0, -1, 1))
