"""The configurations of the study: every model that is trained, and what is counted on it."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from typing import Any

from inscape.errors import StudyError, unknown_name
from inscape.studies.region_counts.settings import (
    ABLATED,
    CLASSICAL,
    DATA,
    EPOCHS_SEEN,
    INSTEAD,
    KINDS,
    NINE,
    Counts,
    Growing,
    Training,
)
from inscape.sweeps.study import Configuration

CHEAP = ("mlp", *CLASSICAL)
"""Models whose configurations come first; of these and of the others the sweep does."""
SMALL_IMAGES = ("digits",)
EXACT_LINES = 5
"""Segments on which a network too large for exact counts is counted exactly all the same, as a check."""
SIDES = {"digits": 8, "mnist": 28, "fashion_mnist": 28}


def configurations(scale: str, data: str | None = None, nets: str | None = None) -> list[Configuration]:
    """Table 1 for every network on every data set, the ablations, and trees and forests.

    Args:
        scale: "smoke", "small" or "paper".
        data: names of data sets with commas between them.
        nets: names of models likewise; each is trained on each data set. By default those of the paper on
            "paper"; else MLPs on small grey images, a narrow ResNet18, trees and forests on CIFAR.
    """
    grid: list[Configuration] = []
    for source in _names(data or DATA[scale], _data_sets(), "data set"):
        chosen = _names(nets, _models(), "model") if nets else _usual(scale, source)
        for net in chosen:
            grid += _of_model(scale, source, net)
    order = list(dict.fromkeys(c["part"] for c in grid))
    return sorted(grid, key=lambda c: (c["model"] not in CHEAP, order.index(c["part"])))


def _data_sets() -> tuple[str, ...]:
    from inscape.training.data.image_sets import IMAGE_SETS

    return ("digits", *IMAGE_SETS)


def _models() -> tuple[str, ...]:
    return ("mlp", "cnn", *NINE, *CLASSICAL)


def _names(text: str, known: tuple[str, ...], what: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise StudyError(unknown_name(what, name, known))
        if names.count(name) > 1:
            raise StudyError(f"{what} {name!r} is named twice")
    return names


def _usual(scale: str, source: str) -> tuple[str, ...]:
    if scale == "paper" and source != "digits":
        return (*NINE, *CLASSICAL)
    if source == "digits":
        return ("mlp", *CLASSICAL)
    return ("resnet18", *CLASSICAL) if source.startswith("cifar") else ("mlp",)


def _of_model(scale: str, source: str, net: str) -> Iterator[Configuration]:
    mlp, image, trees = KINDS[scale]
    if net in CLASSICAL:
        yield from _grown(source, net, trees)
        return
    if source in SMALL_IMAGES and net != "mlp":
        raise StudyError(f"{net} needs larger images than those of {source}: use mlp, tree or forest there")
    how = mlp if net == "mlp" else image
    yield from _swept(source, net, how)
    for part, values in how.more.items():
        if scale == "paper" and net in NINE and net not in ABLATED.get(part, NINE):
            continue
        yield from _varied(source, net, how, part, values)


def _base(source: str, net: str, how: Training | Growing, part: str) -> Configuration:
    digits = source in SMALL_IMAGES
    return {
        "part": part,
        "data": source,
        "n_train": min(how.n_train or 600, 600) if digits else how.n_train,
        "n_test": None if digits else how.n_test,
        "model": net,
        "counts": counted(how.counts, part),
    }


def _swept(source: str, net: str, how: Training) -> Iterator[Configuration]:
    base = _base(source, net, how, "sweep") | dict(how.fixed)
    if net != "mlp":  # MLPs train many at a time and are watched in configurations of their own
        base["epochs_seen"] = _seen(how)
    for rate, size, decay, i in product(how.rates, how.sizes, how.decays, range(how.seeds)):
        rate = INSTEAD.get((net, rate), rate)
        yield base | {"learning_rate": rate, "batch_size": size, "weight_decay": decay, "replicate": i}


def _seen(how: Training) -> list[int]:
    return [epoch for epoch in EPOCHS_SEEN if epoch < how.fixed["epochs"]] + [how.fixed["epochs"]]


def _varied(source: str, net: str, how: Training, part: str, values: Any) -> Iterator[Configuration]:
    base = _base(source, net, how, part) | dict(how.fixed)
    if part == "evolution":
        base["epochs_seen"] = _seen(how)
    for chosen in product(*values.values()):
        setting: Configuration = {"weight_decay": how.decays[0], "replicate": 0}
        setting |= dict(zip(values, chosen, strict=True))
        setting["learning_rate"] = INSTEAD.get((net, setting["learning_rate"]), setting["learning_rate"])
        yield base | setting | _augmented(setting.get("augmentation"), source)


def _augmented(kind: str | None, source: str) -> Configuration:
    """The settings of a kind of augmentation; images are cropped by an eighth of their side, as 4 of 32."""
    if kind == "crop+flip":
        return {"crop": SIDES.get(source, 32) // 8, "flip": True}
    return {"mixup": 1.0} if kind == "mixup" else {}


def _grown(source: str, net: str, how: Growing) -> Iterator[Configuration]:
    base = _base(source, net, how, "sweep")
    if net == "forest":
        base["n_estimators"] = how.n_estimators
    splitters = ("best", "random") if net == "tree" else (None,)
    for depth, criterion, splitter, i in product(
        how.depths, ("gini", "entropy"), splitters, range(how.seeds)
    ):
        more = {} if splitter is None else {"splitter": splitter}
        yield base | {"max_depth": depth, "criterion": criterion, **more, "replicate": i}


def counted(counts: Counts, part: str) -> dict[str, Any]:
    """What is counted: everything in the sweep, the lines alone in the other parts, or a few exactly."""
    if part == "sweep":
        return {**asdict(counts), "dims": {str(d): r for d, r in counts.dims.items()}}
    return {"lines": counts.lines} | ({"exact": EXACT_LINES} if part == "exact" else {})
