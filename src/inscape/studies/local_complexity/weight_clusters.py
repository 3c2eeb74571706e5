"""Weight vectors before and after the drop of local complexity (Patel, Montufar 2025, Fig. 11).

How much their directions cluster is one number with a null; as points of a plane they are shown by UMAP, an
extra, or by their principal components.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.arrays import Array, Floats, Points
from inscape.drawing.axes import new_figure
from inscape.errors import MissingExtraError, StudyError, unknown_name
from inscape.reports.findings import Finding, Summary, judge
from inscape.seeding import RandomState, as_generator
from inscape.studies.local_complexity.training_curves import (
    NetworkMeasurement,
    band,
    curve_chart,
    image_split,
    mean_frame,
    mean_of,
    watch,
)
from inscape.sweeps.study import Configuration, Study

if TYPE_CHECKING:
    import pandas as pd


FITTED_FROM = 0.999
SIGMA = 1.0
SETTINGS: dict[str, dict[str, Any]] = {
    "smoke": {
        "data": "digits",
        "n_train": 300,
        "n_test": 150,
        "width": 120,
        "n_steps": 2000,
        "n_times": 7,
        "n_points": 30,
        "optimiser": "adamw",
        "learning_rate": 1e-3,
        "weight_decay": 0.5,
    },
    "small": {
        "data": "mnist",
        "n_train": 1000,
        "n_test": 1000,
        "width": 5000,
        "n_steps": 10_000,
        "n_times": 12,
        "n_points": 60,
        "optimiser": "adamw",
        "learning_rate": 1e-4,
        "weight_decay": 1.0,
    },
    "paper": {
        "data": "mnist",
        "n_train": 1000,
        "n_test": 1000,
        "width": 5000,
        "n_steps": 1_000_000,
        "n_times": 40,
        "n_points": 200,
        "optimiser": "adamw",
        "learning_rate": 1e-4,
        "weight_decay": 0.01,
    },
}
_REPLICATES = {"smoke": 2, "small": 2, "paper": 8}


def configurations(scale: str, projection: str | None = None) -> list[Configuration]:
    """One hidden layer; the replicates."""
    how = {"projection": chosen_projection(projection), "batch_size": 64, "n_noise": 1}
    how |= {"decay_biases": False}
    return [{**SETTINGS[scale], **how, "replicate": i} for i in range(_REPLICATES[scale])]


def cell(c: Configuration) -> Mapping[str, Any]:
    """One run; its weight vectors where the images are first fitted and at the end, projected."""
    from inscape.training.networks import mlp

    split = image_split(c)
    net = mlp(split.x_train.shape[1], (c["width"],), split.n_classes, random_state=c["seed"])
    keep = _Weights(split.train)
    measured = NetworkMeasurement(
        x=split.x_test[: c["n_points"]], sigma=SIGMA, n_noise=c["n_noise"], also=(keep,)
    )
    columns: dict[str, Any] = dict(watch(net, split.train, split.test, c, measured, {"accuracy": {}}))
    fit = next((i for i, a in enumerate(columns["train_accuracy"]) if a >= FITTED_FROM), 0)
    columns["fit"] = fit
    for when, i in (("before", fit), ("after", -1)):
        vectors, output = keep.seen[i]
        columns[f"xy_{when}"] = np.round(project(vectors, c["projection"], random_state=0), 3)
        columns[f"class_{when}"] = output.argmax(axis=0)
        lengths = np.linalg.norm(vectors, axis=1)
        columns[f"length_{when}"] = np.round(lengths / lengths.max(), 3)
    return columns


class _Weights:
    """Keeps the weights of both layers whenever it is called, and says how the first cluster."""

    def __init__(self, train: tuple[Points, Array]) -> None:
        self._train = train
        self.seen: list[tuple[Array, Array]] = []

    def __call__(self, model: Any) -> dict[str, float]:
        from inscape.measures.accuracy import correct

        first, last = (p.detach().numpy().copy() for p in model.module.parameters() if p.ndim == 2)
        self.seen.append((first, last))
        accuracy = float(correct(model, *self._train).mean())
        return {"train_accuracy": accuracy, "clustering": clustering(first)}


def summarise(frame: "pd.DataFrame", out: Path) -> Summary:
    """Whether clustering rises while local complexity falls."""
    import pandas as pd

    before, after = ([r["clustering"][i] for r, i in _at(frame, when)] for when in ("fit", "end"))
    drops = [r["lc"][-1] / r["lc"][r["fit"]] - 1 for _, r in frame.iterrows()]
    _draw(frame, out)
    curves = mean_frame(frame, ["width"], ["lc", "clustering"], ["accuracy", "train_accuracy", "tv"])
    table = pd.DataFrame(
        {
            "run": frame["replicate"],
            "fit_step": [r["step"][r["fit"]] for _, r in frame.iterrows()],
            "clustering_before": before,
            "clustering_after": after,
            "lc_change": drops,
            "seconds": frame["seconds"].round(),
        }
    )
    return Summary(
        findings=findings_of(before, after, drops),
        figures={
            "clusters.png": f"Weight vectors of one run by {frame['projection'].iloc[0].upper()}, "
            "before and after the drop, coloured by the class to whose score they add most (Fig. 11); "
            "right: clustering and local complexity over training."
        },
        notes=_notes(frame),
        charts=[
            curve_chart(
                curves, "clustering", title="Clustering of weight vectors over training", ylabel="clustering"
            )
        ],
        tables={"Clustering": table.round(4), "Curves": curves.round(4)},
        limits=(
            "Clusters are of directions; units whose weights have vanished are left out of the number.",
            "A projection may draw clusters where there are none: the number is of the vectors themselves.",
            "At scale small a decay of 1 for 10,000 steps stands for the paper's 0.01 for a million: "
            "learning rate x decay x steps is the same, the path there is not.",
        ),
    )


def findings_of(before: list[float], after: list[float], drops: list[float]) -> dict[str, Finding]:
    """What the clustering before and after the drop, and the drop itself, say of each claim."""
    rise, rise_interval = mean_of(np.subtract(after, before))
    end, end_interval = mean_of(after)
    drop, drop_interval = mean_of(drops)
    return {
        "drop": Finding(
            holds=None if drop_interval is None else judge((-drop_interval[1], -drop_interval[0])).holds,
            evidence=f"{drop:+.1%} from the fit to the end, mean of {len(drops)} runs",
            value=drop,
            interval=drop_interval,
            published="falls (Fig. 11)",
        ),
        "clusters": Finding(
            holds=None if rise_interval is None else judge(rise_interval).holds,
            evidence=f"the number rises from {np.mean(before):.3f} to {np.mean(after):.3f}",
            value=rise,
            interval=rise_interval,
            published="more intricate clusters, by eye (Fig. 11)",
        ),
        "beyond": Finding(
            holds=None if end_interval is None else judge(end_interval).holds,
            evidence=f"{end:.3f} at the end, where 0 is no more than a Gaussian of equal covariance",
            value=end,
            interval=end_interval,
        ),
    }


def _at(frame: "pd.DataFrame", when: str) -> list[tuple[Any, int]]:
    return [(r, r["fit"] if when == "fit" else -1) for _, r in frame.iterrows()]


def _draw(frame: "pd.DataFrame", out: Path) -> None:
    from inscape.drawing.curves import draw_runs
    from inscape.drawing.palette import TEN

    run = frame.iloc[0]
    figure = new_figure((12, 3.9))
    left, middle, right = figure.subplots(1, 3)
    for ax, when, i in ((left, "before", run["fit"]), (middle, "after", -1)):
        xy, classes = np.array(run[f"xy_{when}"]), np.array(run[f"class_{when}"])
        size = 2 + 14 * np.array(run[f"length_{when}"])
        ax.scatter(*xy.T, s=size, c=[TEN[k % 10] for k in classes], lw=0)
        ax.set_title(f"step {run['step'][i]:,}: clustering {run['clustering'][i]:.3f}", fontsize=10)
        ax.set_xticks([])
        ax.set_yticks([])
    top = max(max(v) for v in frame["lc"])
    scaled = frame.assign(lc=frame["lc"].map(lambda lc: [v / top for v in lc]))
    draw_runs(
        {
            "clustering": band(frame, "clustering"),
            f"local complexity / {top:.0f}": band(scaled, "lc"),
            "test accuracy": band(frame, "accuracy"),
        },
        ylabel="",
        ax=right,
    )
    figure.savefig(out / "clusters.png", dpi=100)


def _notes(frame: "pd.DataFrame") -> str:
    c = frame.iloc[0]
    return (
        f"{len(frame)} networks with one hidden layer of {c['width']}, {c['n_train']} images of "
        f"{c['data']}, {c['optimiser']} {c['learning_rate']:g} with weight decay {c['weight_decay']:g}, "
        f"batch {c['batch_size']}, {max(c['step']):,} steps. Clustering is (S - S_0) / (1 - S_0): S the "
        "mean cosine of a weight vector with the nearest other, S_0 that of Gaussian vectors of equal mean "
        "and covariance."
    )


STUDY = Study(
    name="weight-clusters",
    title="Clusters of weight vectors before and after the drop of local complexity",
    paper="Patel and Montufar 2025, Fig. 11",
    claims={
        "clusters": "Weight vectors cluster more after the drop of local complexity than before (Fig. 11).",
        "beyond": "They cluster beyond what their mean and covariance explain.",
        "drop": "Local complexity falls after the images are fitted.",
    },
    configurations=configurations,
    cell=cell,
    summarise=summarise,
    options={"projection": "umap (an extra) or pca; by default umap where it is installed"},
)


SHORTEST_VECTOR = 0.01
"""Vectors shorter than this fraction of the longest have no direction to speak of and are left out."""


def clustering(vectors: npt.ArrayLike, *, n_nulls: int = 4, random_state: RandomState = 0) -> float:
    """How near the nearest other direction is, beyond what mean and covariance explain: 0 none, 1 copies.

    With S the mean over vectors of the cosine to the nearest other, and S_0 the same of as many Gaussian
    vectors with the mean and covariance of the vectors, it is (S - S_0) / (1 - S_0). The null shares what
    makes neighbours near without clusters: few dimensions, unequal variances, a common mean. Below 0,
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
    kept = lengths > SHORTEST_VECTOR * lengths.max()
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


def project(vectors: Floats, name: str, *, random_state: int = 0) -> Floats:
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
        fitted = umap.UMAP(
            n_components=2, metric="cosine", random_state=random_state, n_jobs=1
        ).fit_transform(vectors)
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
