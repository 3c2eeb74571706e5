"""The row of a trained model: accuracies, baselines, counts, and the picture of a plane."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from inscape.arrays import Streamed
from inscape.errors import InscapeWarning, NotApplicableError
from inscape.studies.region_counts.settings import AGREEMENT, UNLABELLED
from inscape.sweeps.study import Configuration, Row
from inscape.sweeps.trained_model import outcome, seed_of, settings_of, split_of

HEADLINE = "region_count"
NORM_OF_DIRECTION = 0.5
"""Of a random direction from a test point, in normalised pixels, as in the code of the published files; the
text says training points, and other versions of the code have 0.1, where little is crossed."""
AS_PUBLISHED = {2: 10, 3: 5, 4: 5, 5: 5}
"""Dimension -> points along each axis of the authors' grid on the hull of *training* points: joined with all
eight neighbours in two dimensions, along axes alone above. On a line they take 200 points."""
OWN_KEYS = ("part", "counts", "epochs_seen", "augmentation")
MEASURED_POINTS = 200
"""Training points at which other measures are taken beside the counts."""
PROBE_SEED = 0
WATCHED_LINES = 100
"""Most segments of each count while a network is trained; half of those at its end if these are few."""
N_PICTURED = 3
"""Test images, of as many classes, that span the plane of the pictures."""


def cell(configuration: Configuration) -> Row:
    """Train the model that a configuration describes, and measure it."""
    return batch([configuration])[0]


def batch(configurations: list[Configuration]) -> list[Row]:
    """The rows of configurations that agree in their data, and in whether they are watched."""
    from inscape.studies.region_counts.model_grid import own_model
    from inscape.training.fitting import Fitted, fit_many

    split = split_of(configurations[0])
    if "file" in configurations[0]:
        return [_row(Fitted(own_model(c)), split, c) for c in configurations]
    if "epochs_seen" in configurations[0]:
        return [_watched(c, split) for c in configurations]
    settings = [settings_of(c, without=OWN_KEYS) for c in configurations]
    fitted = fit_many(settings, split, random_states=[seed_of(c) for c in configurations])
    return [_row(f, split, c) for f, c in zip(fitted, configurations, strict=True)]


def _row(fitted: Any, split: Any, configuration: Configuration) -> dict[str, Any]:
    plan = _plan(configuration)
    row = outcome(fitted, split) | _baselines(fitted, split)
    row |= count_regions(fitted.model, split, plan, PROBE_SEED)
    row |= _measured(fitted.model, split, plan.get("measures", {}))
    if "picture" in plan:
        row |= picture(fitted.model, split, plan["picture"])
    return row


def _plan(configuration: Configuration) -> dict[str, Any]:
    """What is counted, and the deviation by which the model divides pixels, if the configuration says it."""
    given = configuration.get("normalise")
    more = {"deviation": float(np.mean(given[1]))} if isinstance(given, list | tuple) else {}
    counts: dict[str, Any] = configuration["counts"]
    return counts | more


def _measured(model: Any, split: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Other measures: those that need no labels on the test points, the rest on some training points.

    Whether seeds agree is asked of their rows, so that each keeps its predictions.
    """
    from inscape.measures import measure

    measured: dict[str, Any] = {}
    if AGREEMENT in settings:
        measured["test_labels"] = model.labels(split.x_test)
    by_points: dict[int | None, dict[str, Any]] = {}
    for name, given in settings.items():
        if name == AGREEMENT:
            continue
        options = dict(given)
        points = None if name in UNLABELLED else options.pop("points", MEASURED_POINTS)
        by_points.setdefault(points, {})[name] = options
    for n, chosen in by_points.items():
        x, y = split.test if n is None else (split.x_train[:n], split.y_train[:n])
        table = measure(model, x, y, measures=chosen, random_state=PROBE_SEED, budget=None)
        measured |= {row["measure"]: row["value"] for row in table.rows}
    return measured


def _baselines(fitted: Any, split: Any) -> dict[str, float | None]:
    """The measures of Fig. 4: how far the weights have moved, and the output margin on training points."""
    from inscape.measures import margin, parameter_distance

    distance = None
    if fitted.initial is not None:
        distance = parameter_distance(fitted.model, fitted.initial).value
    try:
        mean_margin = margin(fitted.model, *split.train).value
    except NotApplicableError:
        mean_margin = None
    return {"distance": distance, "margin": mean_margin}


def _watched(configuration: Configuration, split: Any) -> dict[str, Any]:
    from inscape.training.fitting import fit

    watch = Watch(configuration, split)
    settings = settings_of(configuration, without=OWN_KEYS)
    fitted = fit(settings, split, random_state=configuration["seed"], monitor=watch)
    return _row(fitted, split, configuration) | watch.columns()


class Watch:
    """Counts regions and takes the gap of a network while it is trained, at the ends of some epochs."""

    def __init__(self, configuration: Configuration, split: Any) -> None:
        from inscape.training.recipe import batch_sizes

        n = len(split.x_train)
        per_epoch = len(batch_sizes(n, min(configuration["batch_size"], n)))
        self._epochs = {epoch * per_epoch: epoch for epoch in configuration["epochs_seen"]}
        n_lines = max(1, min(WATCHED_LINES, configuration["counts"]["lines"] // 2))
        self._split, self._plan = split, {"lines": n_lines}
        self._seen: list[tuple[int, float, float]] = []

    def due(self, step: int) -> bool:
        """Whether an epoch that is asked for ends here."""
        return step in self._epochs

    def step(self, module: Any, step: int) -> None:
        """Measure the network if it is due."""
        if not self.due(step):
            return
        from inscape.measures.accuracy import correct
        from inscape.models import wrap
        from inscape.seeding import random_state_kept

        model = wrap(module, input_shape=self._split.x_train.shape[1:])
        with random_state_kept(), model.unchanged():
            gap = correct(model, *self._split.train).mean() - correct(model, *self._split.test).mean()
            count = count_regions(model, self._split, self._plan, PROBE_SEED)[HEADLINE]
        self._seen.append((self._epochs[step], count, float(gap)))

    def columns(self) -> dict[str, Any]:
        """What was seen, epoch by epoch."""
        epochs, counts, gaps = zip(*self._seen, strict=True)
        return {"seen_epochs": list(epochs), "seen_counts": list(counts), "seen_gaps": list(gaps)}


def count_regions(model: Any, split: Any, plan: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The columns of all counts in a plan, see `settings.Counts`.

    Args:
        model: a wrapped model.
        split: its training and test points.
        plan: "lines" alone, or with all the variants.
        seed: of the probes: models that share it are counted on the same ones.
    """
    from inscape.measures import region_count

    row: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InscapeWarning)  # a model that predicts one class: the accuracy tells
        for name, (points, settings) in _variants(split, plan).items():
            result = region_count(model, points, random_state=seed, **settings)
            row |= {name: result.mean, f"{name}_error": _finite(result.std_error)}
            if name == HEADLINE:
                row |= {"count_method": result.method, "line_counts": result.counts}
            if name == "count_dim_2":
                row["plane_method"] = result.method
    return row


def _variants(split: Any, plan: Mapping[str, Any]) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Name of the column -> the points that span the probes, and the settings of `region_count`."""
    test, train = split.x_test, split.x_train
    variants: dict[str, tuple[Any, dict[str, Any]]] = {HEADLINE: (test, {"n_probes": plan["lines"]})}
    if plan.get("rule"):
        return _as_published(split, plan)
    if "exact" in plan:
        for method in ("exact", "adaptive", "grid"):
            variants[f"count_check_{method}"] = (test, {"n_probes": plan["exact"], "method": method})
    if "fewer" not in plan:
        return variants
    few = {"n_probes": plan["fewer"]}
    variants["count_train_pairs"] = (train, few)
    variants["count_direction"] = (test, {**few, **_direction(split, plan)})
    for r in plan["grids"]:
        variants[f"count_grid_{r}"] = (test, {"n_probes": plan["lines"], "resolution": r})
    for k in plan["spans"]:
        variants[f"count_span_{k}"] = (test, {**few, "span": (-float(k), 1.0 + k)})
    for d, r in plan["dims"].items():
        variants[f"count_dim_{d}"] = (test, {**few, "dim": int(d), "resolution": r})
    for r in plan["planes"]:
        variants[f"count_plane_{r}"] = (test, {**few, "dim": 2, "resolution": r})
    return variants


def _direction(split: Any, plan: Mapping[str, Any]) -> dict[str, Any]:
    """A Gaussian step of `NORM_OF_DIRECTION` in each normalised pixel: in so many it has one length."""
    test = split.x_test.some() if isinstance(split.x_test, Streamed) else split.x_test
    deviation = plan.get("deviation") or float(test.std())
    length = NORM_OF_DIRECTION * deviation * float(np.sqrt(test[0].size))
    return {"how": "direction", "length": length}


def _as_published(split: Any, plan: Mapping[str, Any]) -> dict[str, tuple[Any, dict[str, Any]]]:
    """The same columns, each counted as the authors did: for comparison with their numbers only."""
    test, train = split.x_test, split.x_train
    line = {"n_probes": plan["lines"], "method": "grid", "resolution": 200}
    variants: dict[str, tuple[Any, dict[str, Any]]] = {HEADLINE: (test, line)}
    if "fewer" not in plan:
        return variants
    few = line | {"n_probes": plan["fewer"]}
    variants["count_train_pairs"] = (train, few)
    variants["count_direction"] = (test, few | _direction(split, plan))
    for k in plan["spans"]:
        variants[f"count_span_{k}"] = (test, few | {"span": (-float(k), 1.0 + k)})
    for d in map(int, plan["dims"]):
        how = {"dim": d, "resolution": AS_PUBLISHED[d], "connectivity": "full" if d == 2 else "axes"}
        variants[f"count_dim_{d}"] = (train, few | how)
    return variants


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def picture(model: Any, split: Any, resolution: int) -> dict[str, Any]:
    """The labels on a grid of the plane through the first test images of three classes, row by row."""
    from inscape.probes import Patch

    one_each = np.unique(split.y_test, return_index=True)[1]
    others = np.setdiff1d(np.arange(len(split.y_test)), one_each)  # for data of two classes
    first = np.concatenate([np.sort(one_each), others])[:N_PICTURED]
    patch = Patch.through(split.x_test[first])
    grid = np.meshgrid(*(np.linspace(low, high, resolution) for low, high in patch.bounds))
    points = patch.points(np.stack(grid, axis=-1).reshape(-1, 2))
    return {
        "plane_labels": model.labels(points).reshape(resolution, resolution),
        "plane_bounds": patch.bounds,
        "plane_marks": patch.marks,
        "plane_classes": split.y_test[first],
    }
