"""Exact regions of forests against grids: 200 points on a segment, 300 x 300 on a plane.

On segments, the forest has 100 full-grown trees on 3,072 inputs. The images are CIFAR-10 if the folder
INSCAPE_DATA holds cifar10.npz, otherwise smooth random images of the same shape. One thread; all jobs take
turns in one run.

The baseline is what one would write without inscape: build 200 points a segment in float64 by broadcasting
and call `predict` on them. How many segments go into one call matters more than anything else, so three
forms are timed, and the building of points apart:

- one segment in each call: half of the time is what a call costs 100 trees however few the points are;
- five in each call, the fastest of 1, 2, 5, 20, 50 and 100;
- all in one call: 0.5 GB of points and 1 GB of temporaries.

On planes through three of scikit-learn's digits, the forest has 100 trees of depth 10, and the baseline is
`predict` on the points of a grid of 300 x 300, which are there already. XGBoost, LightGBM and CatBoost, where
they are installed, have 100 rounds each; their own predictions are much faster than scikit-learn's.
"""

import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.timing import best_times, report
from inscape.models import wrap
from inscape.partition.decision import DecisionSegment, decision_regions
from inscape.partition.decision.exact.trees import tree_plane, tree_segments
from inscape.probes import Patch, Segment, sample_probes

Array = npt.NDArray[Any]

N_IMAGES, N_TREES, N_SEGMENTS, N_POINTS = 5000, 100, 100, 200
N_PLANES, DEPTH, RESOLUTION = 5, 10, 300
FASTEST = 5
TOGETHER = (1, FASTEST, N_SEGMENTS)  # segments in each call of predict


def images() -> tuple[Array, Array, str]:
    """Pictures (n, 3072) in [0, 1], their classes, and where they come from."""
    path = Path(os.environ.get("INSCAPE_DATA", "")) / "cifar10.npz"
    if path.is_file():
        with np.load(path) as data:
            x, y = data["x_test"][:N_IMAGES], data["y_test"][:N_IMAGES]
        return x.reshape(len(x), -1) / 255.0, y.astype(np.int64), "CIFAR-10"
    return (*synthetic_images(N_IMAGES), "synthetic images")


def synthetic_images(n: int) -> tuple[Array, Array]:
    """Ten classes of smooth random pictures: waves of low frequency around a wave of the class, 8 bits."""
    rng = np.random.default_rng(0)
    waves = np.cos(np.arange(8)[:, None] * np.linspace(0, np.pi, 32))  # (8, 32)
    decay = 1 / (1 + np.add.outer(np.arange(8), np.arange(8)))
    y = rng.integers(10, size=n)
    centre = rng.normal(size=(10, 3, 8, 8))
    weights = (0.35 * centre[y] + rng.normal(size=(n, 3, 8, 8))) * decay
    pictures = np.einsum("ncij,ih,jw->nhwc", weights, waves, waves, optimize=True).reshape(n, -1)
    return np.clip(np.rint(128 + 40 * pictures), 0, 255) / 255.0, y


def grid_points(segments: list[Segment]) -> Array:
    """The points of the grids of some segments, (segments * N_POINTS, d)."""
    t = np.linspace(0, 1, N_POINTS)[:, None]
    start = np.stack([s.start for s in segments])[:, None]
    end = np.stack([s.end for s in segments])[:, None]
    return ((1 - t) * start + t * end).reshape(-1, start.shape[-1])


def build(segments: list[Segment], together: int) -> None:
    """Build all points, so many segments at a time."""
    for i in range(0, len(segments), together):
        grid_points(segments[i : i + together])


def grid_counts(forest: Any, segments: list[Segment], together: int) -> list[int]:
    """Regions that the grid sees on each segment, so many segments in each call of predict."""
    counts: list[int] = []
    for i in range(0, len(segments), together):
        chunk = segments[i : i + together]
        labels = forest.predict(grid_points(chunk)).reshape(len(chunk), N_POINTS)
        counts += (1 + (np.diff(labels, axis=1) != 0).sum(axis=1)).tolist()
    return counts


def speed(model: Any, forest: Any, segments: list[Segment]) -> None:
    """The time of the grid over that of the exact regions, for each form of the grid."""
    tree_segments(model, segments[:1])  # compiles, or loads what was compiled before, and reads the trees
    grids = [partial(grid_counts, forest, segments, together) for together in TOGETHER]
    builds = [partial(build, segments, together) for together in TOGETHER]
    exact, *times = best_times(partial(tree_segments, model, segments), *grids, *builds, repeats=5)
    each = 1e3 / len(segments)
    print(f"exact: {each * exact:.3f} ms a segment")
    for i, together in enumerate(TOGETHER):
        grid, points = times[i], times[len(TOGETHER) + i]
        share = f"{each * grid:.2f} ms a segment, {points / grid:.0%} building"
        bar = "none: the grid at its best" if together == FASTEST else "at least 50"
        report(f"grid and predict, {together} segments a call ({share}), over exact", grid / exact, bar)


def agreement(model: Any, segments: list[Segment], results: list[DecisionSegment], grid: list[int]) -> None:
    """How often the grid is right, and that `predict` agrees with the exact regions."""
    counts, seen = np.array([r.n_regions for r in results]), np.array(grid)
    assert (counts >= seen).all()
    print(f"mean regions: exact {counts.mean():.2f}, grid {seen.mean():.2f}")
    report("segments on which the grid is right", 100 * (counts == seen).mean(), "none", "%")
    wrong = 0
    for s, r in zip(segments, results, strict=True):
        ends = np.concatenate([[0.0], r.boundaries, [1.0]])
        wrong += int((model.labels(s.points((ends[1:] + ends[:-1]) / 2)) != r.labels).sum())
    report("regions whose middle predict labels otherwise", wrong, "0", "")
    narrow = sum(r.trees.n_narrow for r in results if r.trees)
    wide = np.array([r.n_regions for r in tree_segments(model, segments)])
    print(f"{narrow} of {counts.sum()} regions are narrower than the float32 spacing at their splits")
    print(
        f"without them: {wide.mean():.2f} regions, another count on {(counts != wide).sum()} of "
        f"{len(counts)} segments"
    )


def on_grid(patch: Patch) -> Array:
    """The points of the grid on a patch, (RESOLUTION ** 2, d)."""
    s, t = (np.linspace(*b, RESOLUTION) for b in patch.bounds)
    return patch.points(np.stack(np.meshgrid(s, t), axis=-1).reshape(-1, 2))


def planes() -> None:
    """Exact planes of a forest and of boosted trees against `predict` on a grid."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier

    x, y = load_digits(return_X_y=True)
    forest = RandomForestClassifier(N_TREES, max_depth=DEPTH, random_state=0)
    on_planes("forest", forest.fit(x[:1000], y[:1000]), x)
    for name, estimator in boosted().items():
        on_planes(name, estimator.fit(x[:1000], y[:1000]), x)


def boosted() -> dict[str, Any]:
    """Classifiers of the libraries that are installed, of 100 rounds each, that is 1,000 trees or scores."""
    found: dict[str, Any] = {}
    with suppress(ImportError):
        from xgboost import XGBClassifier

        found["XGBClassifier"] = XGBClassifier(n_estimators=N_TREES, max_depth=6, n_jobs=1)
    with suppress(ImportError):
        from lightgbm import LGBMClassifier

        found["LGBMClassifier"] = LGBMClassifier(n_estimators=N_TREES, n_jobs=1, verbose=-1)
    with suppress(ImportError):
        from catboost import CatBoostClassifier

        quiet = {"thread_count": 1, "verbose": 0, "allow_writing_files": False}
        found["CatBoostClassifier"] = CatBoostClassifier(iterations=N_TREES, depth=6, **quiet)
    return found


def on_planes(name: str, estimator: Any, x: Array) -> None:
    """The time of exact planes over that of `predict` on a grid, and what the grid sees of them."""
    model = wrap(estimator)
    probes = [Patch.through(x[3 * i : 3 * i + 3]) for i in range(N_PLANES)]
    tree_plane(model, probes[0])  # compiles, or loads what was compiled before, and reads the trees
    for i, probe in enumerate(probes):
        points = on_grid(probe)
        exact, grid = best_times(partial(tree_plane, model, probe), partial(model.labels, points))
        found = tree_plane(model, probe)
        seen = decision_regions(model, probe, method="grid", resolution=RESOLUTION)
        what = f"{found.n_regions} regions of {found.n_evaluations} faces, the grid sees {seen.n_regions}"
        bar = "at most 1" if name == "forest" else "none"
        report(f"{name}, digits plane {i}, {1e3 * exact:.0f} ms, over the grid ({what})", exact / grid, bar)
        inside = _inside(probe)
        wrong = found.labels[found.locate(inside)] != model.labels(probe.points(inside))
        report("random points that predict labels otherwise", float(wrong.sum()), "0", "")


def _inside(patch: Patch) -> Array:
    """Coordinates of random points, (n, 2)."""
    (s0, s1), (t0, t1) = patch.bounds
    return np.random.default_rng(0).uniform((s0, t0), (s1, t1), (10_000, 2))


def main() -> None:
    """Print every figure."""
    planes()
    segments_of_images()


def segments_of_images() -> None:
    """The figures on segments."""
    from sklearn.ensemble import RandomForestClassifier

    x, y, source = images()
    print(f"{source}: fitting {N_TREES} trees to {len(x)} images of {x.shape[1]} numbers", file=sys.stderr)
    forest = RandomForestClassifier(N_TREES, random_state=0).fit(x, y)
    model = wrap(forest)
    segments = [s for s in sample_probes(x, n=N_SEGMENTS, random_state=0) if isinstance(s, Segment)]
    n_nodes = sum(tree.tree_.node_count for tree in forest.estimators_)
    results = tree_segments(model, segments, narrow=True)  # what predict sees, as the grid does
    visited = np.mean([r.trees.n_nodes for r in results if r.trees])
    print(f"{source}, {len(x)} training images: {n_nodes} nodes, of which a segment meets {visited:.0f}")
    speed(model, forest, segments)
    agreement(model, segments, results, grid_counts(forest, segments, FASTEST))
