"""What is trained and what is counted at each scale; "paper" is what was published.

What differs from the published runs at every scale, and why, is listed in docs/studies.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

NINE_NETWORKS = (
    "resnet18",
    "resnet34",
    "vgg19",
    "mobilenet_v2",
    "senet18",
    "shufflenet_v2",
    "efficientnet_b0",
    "regnet_x_200mf",
    "simple_dla",
)
"""The networks of the paper, in the order of its Table 7."""
CLASSICAL = ("tree", "forest", "knn", "svm")
"""Models that are not networks: the paper's two, and two more that are in the authors' files only."""
TREES = CLASSICAL[:2]
RATES = (0.1, 0.01, 0.001)
SIZES = (256, 512, 1024)
DECAYS = (1e-5, 1e-6, 1e-7)
DEPTHS = tuple(range(3, 18))
NEIGHBOURS = tuple(range(3, 34, 2))
KERNELS = ("linear", "poly", "rbf", "sigmoid")
SOFTNESS = (0.01, 0.1, 1.0, 10.0)
"""C of support vector machines; as NEIGHBOURS, read off the number of lines in the authors' files."""
NORMALISATION = {
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "cifar100": ((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761)),
}
"""Mean and deviation of pixels in the authors' code; on other data those of the training points."""
SCHEDULE_OF: dict[str, dict[str, Any]] = {
    "sgd": {"schedule": "epoch-cosine"},
    "adam": {"schedule": "constant"},
    "adagrad": {"schedule": "step", "milestones": (0.25, 0.5, 0.75), "decay": 0.1},
}
"""Optimiser -> the schedule of the published runs; Adagrad's steps are after 50, 100 and 150 of 200
epochs."""
AUGMENTED = ("cifar100",)
"""Data sets on which all networks were trained with crop and flip; and a folder, as ImageNet."""
FOLDER_EPOCHS = 50
FOLDER_SIDE = 224
"""How long networks were trained on ImageNet, and pixels each way there."""
EPOCHS_SEEN = (0, 10, 20, 50)
"""When a network is measured while it is trained, besides the end."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What is counted on a model.

    Attributes:
        lines: segments between test points for the count that the study is about.
        fewer: segments, triangles, ... of every variant.
        grids: points on a segment, to compare with the exact count.
        planes: points along each side of a triangle, to compare with the exact count of dimension 2.
        dims: dimension -> grid points along each axis, None for the best method there is.
        spans: how far segments reach beyond both points.
        picture: points along each side of the picture of a plane.
        measures: of `inscape.measure`, taken beside the counts: name -> settings. Those that need no labels
            are of the test points, the others of the first `points` training points, which is a setting here.
        rule: "as published" to count as the authors did (see `rows.AS_PUBLISHED`), "" for the best count
            there is.
    """

    lines: int = 500
    fewer: int = 100
    grids: tuple[int, ...] = (50, 100, 200, 300, 500)
    planes: tuple[int, ...] = (10, 20, 30, 40, 50)
    dims: Mapping[int, int | None] = field(default_factory=dict)
    spans: tuple[int, ...] = (1, 2, 3, 4, 5)
    picture: int = 64
    measures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rule: str = ""


@dataclass(frozen=True, kw_only=True)
class Training:
    """How one kind of network is swept.

    Attributes:
        n_train, n_test: points; None for all there are.
        rates, sizes, decays, seeds: the grid of Table 1.
        more: part of the study -> what is crossed there, name -> values; one seed unless it has replicates.
        fixed: settings of every network.
        seen: epochs after which networks of the sweep are measured, besides the last; if none, at the end
            alone.
        counts: what is counted.
    """

    n_train: int | None = None
    n_test: int | None = None
    rates: tuple[float, ...] = RATES
    sizes: tuple[int, ...] = SIZES
    decays: tuple[float, ...] = DECAYS
    seeds: int = 3
    more: Mapping[str, Mapping[str, tuple[Any, ...]]] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    seen: tuple[int, ...] = EPOCHS_SEEN
    counts: Counts = Counts()


@dataclass(frozen=True, kw_only=True)
class Growing:
    """How trees, forests and the other models of scikit-learn are swept; `seeds` of each."""

    n_train: int | None = None
    n_test: int | None = None
    depths: tuple[int, ...] = DEPTHS
    neighbours: tuple[int, ...] = NEIGHBOURS
    softness: tuple[float, ...] = SOFTNESS
    seeds: int = 1
    n_estimators: int = 100
    counts: Counts = Counts()


_SEEDS = {"replicate": (0, 1, 2)}
PAPER = Training(
    more={
        "learning rate": {
            "learning_rate": (0.1, 0.05, 0.01, 0.005, 0.001),
            "batch_size": (256,),
            "weight_decay": (5e-4,),
            **_SEEDS,
        },
        "batch size": {
            "learning_rate": (0.01,),
            "batch_size": (32, 64, 128, 256, 512, 1024),
            "weight_decay": (5e-4,),
            **_SEEDS,
        },
        "optimiser": {
            "optimiser": ("adam", "adagrad"),
            "learning_rate": RATES,
            "batch_size": SIZES,
            "weight_decay": DECAYS,
            **_SEEDS,
        },
        "augmentation": {
            "augmentation": ("mixup", "crop+flip"),
            "learning_rate": RATES,
            "batch_size": SIZES,
            "weight_decay": DECAYS,
            **_SEEDS,
        },
    },
    fixed={"epochs": 200},
    counts=Counts(dims={2: None, 3: 28, 4: 14, 5: 11}),
)
PAPER_MLP = replace(
    PAPER,
    more={**PAPER.more, "evolution": {"learning_rate": RATES, "batch_size": SIZES, "weight_decay": DECAYS}},
)
SMALL_MLP = Training(
    n_train=2000,
    n_test=2000,
    rates=(0.02, 0.005, 0.001),
    sizes=(16, 32, 64),
    more={
        "learning rate": {
            "learning_rate": (0.02, 0.01, 0.005, 0.002, 0.001),
            "batch_size": (32,),
            "weight_decay": (5e-4,),
            **_SEEDS,
        },
        "batch size": {
            "learning_rate": (0.005,),
            "batch_size": (8, 16, 32, 64, 128, 256),
            "weight_decay": (5e-4,),
            **_SEEDS,
        },
        "optimiser": {
            "optimiser": ("adam", "adagrad"),
            "learning_rate": (0.01, 0.003, 0.001),
            "batch_size": (32, 64),
        },
        "evolution": {"learning_rate": (0.02, 0.005, 0.001), "batch_size": (32, 64)},
        "augmentation": {
            "augmentation": ("mixup", "crop+flip"),
            "learning_rate": (0.02, 0.005, 0.001),
            "batch_size": (32, 64),
        },
    },
    fixed={"hidden": [64, 64], "epochs": 100},
    counts=Counts(dims={2: None, 3: 16, 4: 10, 5: 8}, fewer=60, picture=60),
)
SMALL_NET = Training(
    n_train=1000,
    n_test=2000,
    rates=(0.1, 0.03, 0.01),
    sizes=(8, 16, 32),
    decays=(1e-5,),
    seeds=2,
    more={
        "augmentation": {
            "augmentation": ("mixup", "crop+flip"),
            "learning_rate": (0.1, 0.03, 0.01),
            "batch_size": (16,),
        },
        "exact": {"learning_rate": (0.03,), "batch_size": (16,)},
    },
    fixed={"width": 1 / 16, "epochs": 30},
    counts=Counts(
        lines=100,
        fewer=20,
        grids=(50, 200),
        planes=(),
        dims={2: 30, 3: 10, 4: 7, 5: 6},
        spans=(1, 5),
        picture=48,
    ),
)
UNLABELLED: dict[str, dict[str, Any]] = {"confidence": {}, "prediction_entropy": {}, "nuclear_norm": {}}
"""What predictions say of a model without labels: older answers to what the count is asked."""
AGREEMENT = "agreement"
OF_PREDICTIONS = (*UNLABELLED, AGREEMENT)
"""Measures that any model has, of its predictions; agreement is that of the seeds of a configuration."""
MEASURES: dict[str, dict[str, Any]] = {
    **UNLABELLED,
    AGREEMENT: {},
    "sharpness": {"points": 200, "precision": "float32", "tolerance": 1e-3},
    "local_complexity": {"points": 100, "sigma": 0.1, "n_noise": 4, "precision": "float32"},
}
"""What can be measured beside the counts, with its settings."""
MEDIUM_NET = Training(
    n_train=2500,
    n_test=10_000,
    rates=(0.001, 0.1, 0.01),
    sizes=(64, 16, 32),
    seeds=1,
    fixed={"width": 1 / 8, "epochs": 60},
    seen=(),
    counts=Counts(
        lines=100,
        fewer=100,
        grids=(200,),
        planes=(),
        dims={2: 30},
        spans=(),
        measures={name: given for name, given in MEASURES.items() if name != AGREEMENT},
        picture=48,
    ),
)
"""The 27 settings of Table 1 on a twentieth of the images, with batches a sixteenth as large: about as many
steps in an epoch as published. Networks of an eighth of the width, for hours on one machine without a GPU.
They are not measured while they train, which would take a fifth of the time. The corner that is the last to
fit its data is trained first, so that one sees at once whether it does; then what is farthest from it."""
MEDIUM_NETS = ("resnet18", "senet18", "vgg19")
TREE_COUNTS = Counts(grids=(200,), planes=(), dims={2: 30}, spans=())
SMALL_TREES = Growing(n_train=1000, n_test=2000, counts=replace(TREE_COUNTS, fewer=30))
MEDIUM_TREES = Growing(n_train=10_000, n_test=10_000, counts=replace(TREE_COUNTS, measures=UNLABELLED))
SMOKE_MLP = Training(
    n_train=300,
    rates=(0.1, 0.03),
    sizes=(8, 32),
    decays=(1e-5,),
    seeds=2,
    more={
        "learning rate": {"learning_rate": (0.1, 0.05, 0.03), "batch_size": (16,), "weight_decay": (5e-4,)},
        "batch size": {"learning_rate": (0.1,), "batch_size": (8, 16, 32), "weight_decay": (5e-4,)},
        "optimiser": {
            "optimiser": ("adam", "adagrad"),
            "learning_rate": (0.01, 0.005),
            "batch_size": (8, 32),
        },
        "augmentation": {
            "augmentation": ("mixup", "crop+flip"),
            "learning_rate": (0.1, 0.03),
            "batch_size": (8, 32),
        },
        "evolution": {"learning_rate": (0.1, 0.03), "batch_size": (8, 32)},
    },
    fixed={"hidden": [32, 32], "epochs": 40, "normalise": False},
    counts=Counts(
        lines=100, fewer=20, grids=(50, 200), planes=(10, 30), dims={2: None, 3: 8}, spans=(1, 5), picture=32
    ),
)
SMOKE_NET = replace(
    SMALL_NET,
    n_train=200,
    n_test=200,
    rates=(0.1, 0.01),
    sizes=(32, 64),
    seeds=1,
    more={},
    fixed={"width": 1 / 16, "epochs": 5},
)
SMOKE_TREES = Growing(
    n_train=300,
    depths=(3, 5, 8),
    neighbours=(3, 9, 33),
    softness=(0.1, 1.0),
    n_estimators=20,
    counts=replace(TREE_COUNTS, dims={2: 15}, lines=100, fewer=20, picture=32),
)
KINDS: dict[str, tuple[Training, Training, Growing]] = {
    "smoke": (SMOKE_MLP, SMOKE_NET, SMOKE_TREES),
    "small": (SMALL_MLP, SMALL_NET, SMALL_TREES),
    "medium": (SMALL_MLP, MEDIUM_NET, MEDIUM_TREES),
    "paper": (PAPER_MLP, PAPER, Growing(counts=replace(TREE_COUNTS, lines=100))),
}
"""Scale -> how MLPs, image networks, and trees and forests are swept."""
DATA = {"smoke": "digits", "small": "mnist,cifar10", "medium": "cifar10", "paper": "cifar10"}
ABLATED = {
    "learning rate": ("resnet18", "efficientnet_b0", "senet18"),
    "batch size": ("resnet18", "efficientnet_b0", "senet18"),
    "augmentation": ("resnet18",),
}
"""Part of the study -> those of the nine networks that the paper shows there."""
RATES_REPLACED = {("vgg19", 0.1): 0.05}
"""Learning rates that the paper replaced, since the network did not train."""
