"""The row of a trained model: accuracies, baselines, counts, and the picture of a plane."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from inscape.errors import InscapeWarning, NotApplicableError
from inscape.sweeps.study import Configuration, Row
from inscape.sweeps.trained_model import outcome, settings_of, split_of

HEADLINE = "region_count"
NORM_OF_DIRECTION = 0.5
"""Of a random direction from a test point, in standard deviations of a pixel, as in the code of the published
files; the text says training points, and other versions of the code have 0.1, where little is crossed."""
OWN_KEYS = ("part", "counts", "epochs_seen", "augmentation")
PROBE_SEED = 0
WATCHED_LINES = 100
"""Most segments of each count while a network is trained; half of those at its end if these are few."""
PICTURED = 3
"""Test images, of as many classes, that span the plane of the pictures."""


def cell(configuration: Configuration) -> Row:
    """Train the model that a configuration describes, and measure it."""
    return batch([configuration])[0]


def batch(configurations: list[Configuration]) -> list[Row]:
    """The rows of configurations that agree in their data, and in whether they are watched."""
    from inscape.training.fitting import fit_many

    split = split_of(configurations[0])
    if "epochs_seen" in configurations[0]:
        return [_watched(c, split) for c in configurations]
    settings = [settings_of(c, without=OWN_KEYS) for c in configurations]
    fitted = fit_many(settings, split, seeds=[c["seed"] for c in configurations])
    return [_row(f, split, c) for f, c in zip(fitted, configurations, strict=True)]


def _row(fitted: Any, split: Any, configuration: Configuration) -> dict[str, Any]:
    plan = configuration["counts"]
    row = outcome(fitted, split) | _baselines(fitted, split)
    row |= count_regions(fitted.model, split, plan, PROBE_SEED)
    if "picture" in plan:
        row |= picture(fitted.model, split, plan["picture"])
    return row


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
    fitted = fit(settings, split, seed=configuration["seed"], monitor=watch)
    return _row(fitted, split, configuration) | watch.columns()


class Watch:
    """Counts regions and takes the gap of a network while it is trained, at the ends of some epochs."""

    def __init__(self, configuration: Configuration, split: Any) -> None:
        from inscape.training.recipe import batch_sizes

        n = len(split.x_train)
        per_epoch = len(batch_sizes(n, min(configuration["batch_size"], n)))
        self._epochs = {epoch * per_epoch: epoch for epoch in configuration["epochs_seen"]}
        self._split, self._plan = split, {"lines": min(WATCHED_LINES, configuration["counts"]["lines"] // 2)}
        self._seen: list[tuple[int, float, float]] = []

    def due(self, step: int) -> bool:
        """Whether an epoch that is asked for ends here."""
        return step in self._epochs

    def step(self, module: Any, step: int) -> None:
        """Look at the network if it is due."""
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
    found: dict[str, tuple[Any, dict[str, Any]]] = {HEADLINE: (test, {"n_probes": plan["lines"]})}
    if "exact" in plan:
        for method in ("exact", "adaptive", "grid"):
            found[f"count_check_{method}"] = (test, {"n_probes": plan["exact"], "method": method})
    if "fewer" not in plan:
        return found
    few = {"n_probes": plan["fewer"]}
    length = NORM_OF_DIRECTION * float(test.std()) * float(np.sqrt(test[0].size))
    found["count_train_pairs"] = (train, few)
    found["count_direction"] = (test, {**few, "how": "direction", "length": length})
    for r in plan["grids"]:
        found[f"count_grid_{r}"] = (test, {"n_probes": plan["lines"], "resolution": r})
    for k in plan["spans"]:
        found[f"count_span_{k}"] = (test, {**few, "span": (-float(k), 1.0 + k)})
    for d, r in plan["dims"].items():
        found[f"count_dim_{d}"] = (test, {**few, "dim": int(d), "resolution": r})
    for r in plan["planes"]:
        found[f"count_plane_{r}"] = (test, {**few, "dim": 2, "resolution": r})
    return found


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def picture(model: Any, split: Any, resolution: int) -> dict[str, Any]:
    """The labels on a grid of the plane through the first test images of three classes, row by row."""
    from inscape.probes import Patch

    first = np.sort(np.unique(split.y_test, return_index=True)[1])[:PICTURED]
    patch = Patch.through(split.x_test[first])
    grid = np.meshgrid(*(np.linspace(low, high, resolution) for low, high in patch.bounds))
    points = patch.points(np.stack(grid, axis=-1).reshape(-1, 2))
    return {
        "plane_labels": model.labels(points).reshape(resolution, resolution),
        "plane_bounds": patch.bounds,
        "plane_marks": patch.marks,
        "plane_classes": split.y_test[first],
    }
