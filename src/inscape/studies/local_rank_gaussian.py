"""Local complexity and local rank on correlated Gaussians (Patel, Montufar 2025, Fig. 2 and 7)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Floats
from inscape.studies.local_rank_gaussian_summary import (
    CLAIMS,
    D_IN,
    D_OUT,
    DEPTH,
    RANK_EPS,
    SIGMA,
    STRENGTH,
    summarise,
)
from inscape.studies.study import Configuration, Study
from inscape.studies.watched import Look, watch

_COMMON = {"batch_size": 64, "learning_rate": 1e-4, "optimiser": "adam", "weight_decay": 0.0}
_SCALES: dict[str, dict[str, Any]] = {
    "smoke": {"width": 32, "n_train": 5000, "n_steps": 1000, "n_times": 8, "n_points": 12, "n_noise": 2},
    "small": {"width": 200, "n_train": 200_000, "n_steps": 15_000, "n_times": 20, "n_points": 40}
    | {"n_noise": 4},
    "paper": {"width": 200, "n_train": 1_000_000, "n_steps": 200_000, "n_times": 40, "n_points": 500}
    | {"n_noise": 16},
}
N_RUNS = 6


def configurations(scale: str) -> list[Configuration]:
    """Six runs, each with a cross-covariance of its own."""
    return [{**_SCALES[scale], **_COMMON, "replicate": i} for i in range(N_RUNS)]


def gaussian_pair(
    n: int, cross: Floats, rng: np.random.Generator
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """X ~ N(0, I) and Y ~ N(0, I) with cross-covariance E[Y X'] = cross, whose norm is below one.

    >>> cross = np.array([[0.6, 0.0], [0.0, 0.0]])
    >>> x, y = gaussian_pair(100_000, cross, np.random.default_rng(0))
    >>> bool(np.abs(y.T @ x / 100_000 - cross).max() < 0.02)
    True
    """
    x = rng.standard_normal((n, cross.shape[1]), dtype=np.float32)
    rest = np.linalg.cholesky(np.eye(len(cross)) - cross @ cross.T).astype(np.float32)
    noise = rng.standard_normal((n, len(cross)), dtype=np.float32)
    return x, x @ cross.T.astype(np.float32) + noise @ rest.T


def random_cross(rng: np.random.Generator) -> Floats:
    """A Gaussian matrix, its largest singular value set to `STRENGTH`."""
    cross = rng.normal(size=(D_OUT, D_IN))
    return np.asarray(STRENGTH * cross / np.linalg.norm(cross, 2))


def cell(c: Configuration) -> Mapping[str, Any]:
    """One run on a sample so large that it is hardly seen twice."""
    from inscape.training.networks import mlp

    rng = np.random.default_rng([c["seed"], 0])
    cross = random_cross(rng)
    train, test = gaussian_pair(c["n_train"], cross, rng), gaussian_pair(1000, cross, rng)
    net = mlp(D_IN, (c["width"],) * DEPTH, D_OUT, random_state=c["seed"])
    points = test[0][: c["n_points"]]
    look = Look(
        x=points,
        sigma=SIGMA,
        n_noise=c["n_noise"],
        rank_eps=RANK_EPS,
        rank_points=len(points),
        also=(_Error(*test),),
    )
    return watch(net, train, test, c, look, {})


class _Error:
    """The mean square of the error on test points."""

    def __init__(self, x: npt.NDArray[Any], y: npt.NDArray[Any]) -> None:
        self._x, self._y = x, y

    def __call__(self, model: Any) -> dict[str, float]:
        return {"test_mse": float(np.mean((model.scores(self._x) - self._y) ** 2))}


STUDY = Study(
    name="local-rank-gaussian",
    title="Local complexity and local rank on correlated Gaussians",
    claims=CLAIMS,
    configurations=configurations,
    cell=cell,
    summarise=summarise,
)
