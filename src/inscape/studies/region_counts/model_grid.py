"""The configurations of the study: every model that is trained, the user's own, and what is counted on it.

Models of the user's own join the tables of the study from a folder of files:

    folder/models.csv      file,model,data,learning_rate,batch_size,weight_decay,replicate
    folder/a.pt2           any file that `inscape.wrap` opens

`model` names the family whose configurations are correlated with each other, `data` the data set, by name or
as a file. Every other column is a hyper-parameter; `replicate` numbers the seeds of one configuration.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

from inscape.errors import StudyError, unknown_name
from inscape.studies.region_counts.settings import (
    ABLATED,
    AUGMENTED,
    CLASSICAL,
    DATA,
    EPOCHS_SEEN,
    FOLDER_EPOCHS,
    FOLDER_SIDE,
    KERNELS,
    KINDS,
    MEASURES,
    MEDIUM_NETS,
    NINE_NETWORKS,
    NORMALISATION,
    OF_PREDICTIONS,
    RATES_REPLACED,
    SCHEDULE_OF,
    TREES,
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
COUNTING = ("best", "as published")
OWN_TABLE = "models.csv"
OWN_COLUMNS = ("file", "model", "data")
"""What a table of the user's models must have."""
OPTIONS = {
    "data": "data sets, as mnist,cifar10 (digits, mnist, fashion_mnist, cifar10, cifar100, svhn), or the "
    "path of a folder of images, with train and test (or val) and a folder for each class in both",
    "image_size": "pixels each way to which images of a folder are scaled and cropped (224 at the scale "
    "paper); from 128 on networks have the stems of their papers",
    "nets": "models, as mlp,resnet18,tree,forest, each trained on each data set; `none` for --own alone",
    "n_train": "training points; `all` for all",
    "n_test": "test points; `all` for all",
    "width": "factor on the channels of image networks (on the hidden units of an mlp)",
    "epochs": "of every network",
    "rates": "learning rates of the sweep, as .1,.01,.001",
    "batches": "batch sizes of the sweep, as 16,32,64",
    "seeds": "of each configuration of the sweep",
    "init": "initial weights: torch (as published) or he",
    "n_lines": "segments of every count",
    "measures": "what else is measured in the sweep: confidence, prediction_entropy, nuclear_norm, agreement "
    "(that of the --seeds); of networks also sharpness, local_complexity",
    "counting": "best, or 'as published': the authors' grids, neighbours and points",
    "own": "a folder of models of yours, see `inscape study add`",
}
"""What can be asked for besides a scale, with a line of help each."""


def configurations(
    scale: str, data: str | None = None, nets: str | None = None, own: str | None = None, **given: Any
) -> list[Configuration]:
    """Table 1 for every network on every data set, the ablations, and trees and forests.

    Args:
        scale: "smoke", "small", "medium" or "paper".
        data: names of data sets with commas between them.
        nets: names of models likewise; each is trained on each data set. By default those of the paper on
            "paper"; else MLPs on small grey images, a narrow ResNet18, trees and forests on CIFAR.
        own: a folder of models that are measured beside these.
        given: other values for what the scale says, as texts: the rest of `OPTIONS`.
    """
    kinds = _changed(KINDS[scale], given)
    grid: list[Configuration] = []
    for source in _sources(data or DATA[scale]):
        if nets == "none":
            break
        swept = _on_folder(scale, kinds, given) if _is_folder(source) else kinds
        size = _image_size(scale, source, given)
        chosen = _names(nets, _models(), "model") if nets else _usual(scale, source)
        for net in chosen:
            of_model = (c | size for c in _of_model(scale, source, net, swept))
            grid += [c | _cropped(c) for c in of_model]
    order = list(dict.fromkeys(c["part"] for c in grid))
    grid.sort(key=lambda c: (c["model"] not in CHEAP, order.index(c["part"])))
    if own is not None:
        grid += own_configurations(Path(own), counted(kinds[1].counts, "own"))
    return grid


Kinds = tuple[Training, Training, Growing]


def _is_folder(source: str) -> bool:
    return source not in _data_sets() and Path(source).is_dir()


def _on_folder(scale: str, kinds: Kinds, given: dict[str, Any]) -> Kinds:
    """A folder stands for ImageNet, on which networks were trained for fewer epochs."""
    mlp, image, trees = kinds
    if scale == "paper" and given.get("epochs") is None:
        image = replace(image, fixed={**image.fixed, "epochs": FOLDER_EPOCHS})
    return mlp, image, trees


def _image_size(scale: str, source: str, given: dict[str, Any]) -> Configuration:
    if given.get("image_size") is not None:
        return {"image_size": _whole(given, "image_size")}
    return {"image_size": FOLDER_SIDE} if scale == "paper" and _is_folder(source) else {}


def _cropped(configuration: Configuration) -> Configuration:
    """Images are cropped by an eighth of their side, as 4 of 32."""
    if "crop" not in configuration:
        return {}
    side = configuration.get("image_size") or SIDES.get(configuration["data"], 32)
    return {"crop": side // 8}


def _changed(kinds: Kinds, given: dict[str, Any]) -> Kinds:
    """How models are swept, with the values that options give in place of the scale's."""
    mlp, image, trees = kinds
    if given.get("init") not in (None, "torch", "he"):
        raise StudyError(unknown_name("init", given["init"], ("torch", "he")))
    if given.get("counting") not in (None, *COUNTING):
        raise StudyError(unknown_name("counting", given["counting"], COUNTING))
    points: dict[str, Any] = {
        key: _points(given, key) for key in ("n_train", "n_test") if given.get(key) is not None
    }
    grid: dict[str, Any] = {
        field: _numbers(given, key, kind)
        for key, field, kind in (("rates", "rates", float), ("batches", "sizes", int))
        if given.get(key) is not None
    }
    seeds: dict[str, Any] = {"seeds": _whole(given, "seeds")} if given.get("seeds") is not None else {}
    fixed: dict[str, Any] = {}
    if given.get("epochs") is not None:
        fixed["epochs"] = _whole(given, "epochs")
    if given.get("width") is not None:
        fixed["width"] = _numbers(given, "width", float)[0]
    if given.get("init") is not None:
        fixed["init"] = given["init"]
    networks = [
        replace(k, **points, **grid, **seeds, fixed={**k.fixed, **fixed}, counts=_counts(k.counts, given))
        for k in (mlp, image)
    ]
    of_trees = _counts(trees.counts, given)
    without = {k: v for k, v in of_trees.measures.items() if k in OF_PREDICTIONS}
    return (
        networks[0],
        networks[1],
        replace(trees, **points, **seeds, counts=replace(of_trees, measures=without)),
    )


def _counts(counts: Counts, given: dict[str, Any]) -> Counts:
    if given.get("n_lines") is not None:
        n = _whole(given, "n_lines")
        counts = replace(counts, lines=n, fewer=n)
    if given.get("measures") is not None:
        names = _names(given["measures"], tuple(MEASURES), "measure")
        counts = replace(counts, measures={name: MEASURES[name] for name in names})
    return replace(counts, rule="as published") if given.get("counting") == COUNTING[1] else counts


def _points(given: dict[str, Any], key: str) -> int | None:
    return None if str(given[key]).strip() == "all" else _whole(given, key)


def _whole(given: dict[str, Any], key: str) -> int:
    return int(_numbers(given, key, int)[0])


def _numbers(given: dict[str, Any], key: str, kind: type) -> tuple[Any, ...]:
    """The positive numbers of a text with commas between them, or of a list."""
    value = given[key]
    listed = value if isinstance(value, list | tuple) else [value]
    words = value.split(",") if isinstance(value, str) else listed
    try:
        numbers = tuple(kind(word) for word in words)
    except (TypeError, ValueError):
        numbers = ()
    if not numbers or not all(0 < n < float("inf") for n in numbers):
        shown = f"--{key.replace('_', '-')} {value}"
        what = "whole numbers" if kind is int else "numbers"
        raise StudyError(f"cannot read {shown}: expected positive {what} with commas between them")
    return numbers


def _sources(text: str) -> list[str]:
    """The data sets that are named; a path stands alone, since it may hold commas."""
    if _is_folder(text):
        return [str(Path(text).resolve())]
    return _names(text, _data_sets(), "data set")


def _data_sets() -> tuple[str, ...]:
    from inscape.training.data.image_sets import IMAGE_SETS

    return ("digits", *IMAGE_SETS)


def _models() -> tuple[str, ...]:
    return ("mlp", "cnn", "mobilenet_v1", *NINE_NETWORKS, *CLASSICAL)


def _names(text: str, known: tuple[str, ...], what: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise StudyError(unknown_name(what, name, known))
        if names.count(name) > 1:
            raise StudyError(f"{what} {name!r} is named twice")
    return names


def _usual(scale: str, source: str) -> tuple[str, ...]:
    if source == "digits":
        return ("mlp", *TREES)
    if scale == "paper":
        return (*NINE_NETWORKS, *TREES)
    if source not in ("cifar10", "cifar100", "svhn") and not _is_folder(source):
        return ("mlp",)
    return (*MEDIUM_NETS, *TREES) if scale == "medium" else ("resnet18", *TREES)


def _of_model(scale: str, source: str, net: str, kinds: Kinds) -> Iterator[Configuration]:
    mlp, image, trees = kinds
    if net in CLASSICAL:
        yield from _grown(source, net, trees)
        return
    if source in SMALL_IMAGES and net != "mlp":
        raise StudyError(f"{net} needs larger images than those of {source}: use mlp, tree or forest there")
    how = mlp if net == "mlp" else image
    yield from _swept(source, net, how)
    for part, values in how.more.items():
        if scale == "paper" and net in NINE_NETWORKS and net not in ABLATED.get(part, NINE_NETWORKS):
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


def _network(source: str, net: str, how: Training, part: str) -> Configuration:
    """What all networks of a part have: pixels, initial weights and schedule as published."""
    base = _base(source, net, how, part) | {"init": "torch"} | SCHEDULE_OF["sgd"]
    if source in NORMALISATION:
        base["normalise"] = NORMALISATION[source]
    if source in AUGMENTED or _is_folder(source):
        base |= _augmented("crop+flip")
    return base | dict(how.fixed)


def _swept(source: str, net: str, how: Training) -> Iterator[Configuration]:
    base = _network(source, net, how, "sweep")
    if net != "mlp" and how.seen:  # MLPs train many at a time and are watched in configurations of their own
        base["epochs_seen"] = _seen(how)
    # what matters most changes first, so that a run which is stopped leaves whole grids of it
    for i, decay, size, rate in product(range(how.seeds), how.decays, how.sizes, how.rates):
        rate = RATES_REPLACED.get((net, rate), rate)
        yield base | {"learning_rate": rate, "batch_size": size, "weight_decay": decay, "replicate": i}


def _seen(how: Training) -> list[int]:
    return [epoch for epoch in (how.seen or EPOCHS_SEEN) if epoch < how.fixed["epochs"]] + [
        how.fixed["epochs"]
    ]


def _varied(source: str, net: str, how: Training, part: str, values: Any) -> Iterator[Configuration]:
    base = _network(source, net, how, part)
    if part == "evolution":
        base["epochs_seen"] = _seen(how)
    for chosen in product(*values.values()):
        setting: Configuration = {"weight_decay": how.decays[0], "replicate": 0}
        setting |= dict(zip(values, chosen, strict=True))
        setting["learning_rate"] = RATES_REPLACED.get(
            (net, setting["learning_rate"]), setting["learning_rate"]
        )
        schedule = SCHEDULE_OF[setting.get("optimiser", "sgd")]
        yield base | schedule | setting | _augmented(setting.get("augmentation"))


def _augmented(kind: str | None) -> Configuration:
    """The settings of a kind of augmentation; by how much images are cropped depends on their side."""
    if kind == "crop+flip":
        return {"crop": 0, "flip": True}
    return {"mixup": 1.0} if kind == "mixup" else {}


def _grown(source: str, net: str, how: Growing) -> Iterator[Configuration]:
    base = _base(source, net, how, "sweep")
    grown = {"max_depth": how.depths, "grown_depth": (max(how.depths),)}
    criteria = {"criterion": ("gini", "entropy")}
    varied: dict[str, dict[str, tuple[Any, ...]]] = {
        "tree": criteria | {"splitter": ("best", "random")} | grown,
        "forest": criteria | {"n_estimators": (how.n_estimators,)} | grown,
        "knn": {"n_neighbors": how.neighbours, "weights": ("uniform", "distance"), "p": (1, 2)},
        "svm": {"C": how.softness, "kernel": KERNELS},
    }
    for *chosen, i in product(*varied[net].values(), range(how.seeds)):
        yield base | dict(zip(varied[net], chosen, strict=True)) | {"replicate": i}


def counted(counts: Counts, part: str) -> dict[str, Any]:
    """What is counted: everything in the sweep, the lines alone in the other parts, or a few exactly."""
    rule = {"rule": counts.rule} if counts.rule else {}
    if part in ("sweep", "own"):
        every = asdict(counts) | {"dims": {str(d): r for d, r in counts.dims.items()}}
        return {k: v for k, v in every.items() if k not in ("measures", "rule") or v}
    return {"lines": counts.lines} | rule | ({"exact": EXACT_LINES} if part == "exact" else {})


def own_configurations(folder: Path, counts: dict[str, Any]) -> list[Configuration]:
    """A configuration for each line of the folder's table; a file is told by its content, not its place."""
    configurations = []
    for line in _lines(folder / OWN_TABLE):
        path = folder / str(line["file"])
        if not path.is_file():
            raise StudyError(f"{folder / OWN_TABLE} names {line['file']!r}, which is not in {folder}")
        base: Configuration = {
            "part": "sweep",
            "n_train": None,
            "n_test": None,
            "counts": counts,
            "replicate": 0,
        }
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        configurations.append(base | line | {"file": str(path.resolve()), "content": digest})
    return configurations


def _lines(table: Path) -> list[dict[str, Any]]:
    import pandas as pd

    try:
        frame = pd.read_csv(table)
    except (OSError, ValueError) as error:
        raise StudyError(
            f"cannot read {table} ({error}): expected a table with the columns {', '.join(OWN_COLUMNS)}, "
            "and one for each hyper-parameter"
        ) from error
    missing = [name for name in OWN_COLUMNS if name not in frame]
    if missing or not len(frame):
        what = f"no column {missing[0]!r}" if missing else "no models"
        raise StudyError(
            f"{table} has {what}: expected {', '.join(OWN_COLUMNS)}, and one for each hyper-parameter"
        )
    lines = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{str(k): _plain(v) for k, v in line.items() if v is not None} for line in lines]


def _plain(value: Any) -> Any:
    """A number of Python; whole ones as such, since columns with gaps hold floats."""
    plain = value.item() if hasattr(value, "item") else value
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain


def own_model(configuration: Configuration) -> Any:
    """The wrapped model of a configuration; an error if the file has changed since."""
    from inscape.models import wrap

    path = Path(configuration["file"])
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror or error}") from error
    if hashlib.sha256(content).hexdigest()[:16] != configuration["content"]:
        raise StudyError(f"{path} has changed since the study began: run `inscape study add` again")
    return wrap(path)
