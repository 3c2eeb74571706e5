"""Can the same model be learnt twice? How far decision regions of two trainings agree, exactly and on a grid.

Somepalli et al. 2022 (arXiv 2203.08124) lay a plane through three training images, ask two networks for their
labels on a grid of 50 x 50 points around them, and call the share of points with equal labels their
reproducibility score (so in their code, where it is named IoU). Here the share is exact, of the area, beside
that of their grid.
"""

from itertools import combinations_with_replacement
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.drawing.axes import new_figure
from inscape.measures.measurement import mean_with_error
from inscape.reports.findings import Chart, Finding, Summary, judge, varied
from inscape.sweeps.study import Configuration, Study

if TYPE_CHECKING:
    import pandas as pd

LEARNT_ABOVE = 0.2
"""Accuracy on ten classes below which a network learnt nothing: claims on networks leave such pairs out,
and the report says how many those were."""
POINTS_PER_SIDE = 50
"""Points per side of the plane in the literature."""
MARGIN = 0.1
"""How far the plane reaches beyond the three images there, of their extent."""
FINE_BELOW_ERROR = 0.01
"""The error of a share below which we call the grid fine enough."""
LEARNING_RATE = 0.05
OF_DATA: dict[str, dict[str, Any]] = {"cifar10": {"learning_rate": 0.01, "n_planes": 10}}
"""What is special to a data set: at the common learning rate perceptrons on CIFAR-10 end at chance."""
_TRAINING = {"batch_size": 32}
MODELS: dict[str, dict[str, Any]] = {
    "narrow": {"model": "mlp", "hidden": (16, 16), **_TRAINING},
    "wide": {"model": "mlp", "hidden": (128, 128), **_TRAINING},
    "deep": {"model": "mlp", "hidden": (32, 32, 32, 32), **_TRAINING},
    "forest": {"model": "forest", "max_depth": 12, "n_estimators": 20},
    "cnn": {"model": "cnn", "width": 0.125, **_TRAINING},
}
"""What is trained, by the names that the tables have."""
NETWORKS = ("narrow", "wide", "deep", "cnn")
SETTINGS: dict[str, dict[str, Any]] = {
    "smoke": {
        "data": ("digits",),
        "models": ("narrow", "wide"),
        "fixed": {"n_train": 200, "n_test": 200, "epochs": 5, "n_planes": 3},
        "replicates": 2,
    },
    "small": {
        "data": ("mnist", "cifar10"),
        "models": ("narrow", "wide", "deep", "forest"),
        "fixed": {"n_train": 1000, "n_test": 1000, "epochs": 15, "n_planes": 20},
        "replicates": 8,
    },
    "paper": {
        "data": ("mnist", "cifar10"),
        "models": ("narrow", "wide", "deep", "forest", "cnn"),
        "fixed": {"n_train": 50_000, "n_test": 10_000, "epochs": 50, "n_planes": 500},
        "replicates": 5,
    },
}


def configurations(scale: str) -> list[Configuration]:
    """Data sets by pairs of models by replicates."""
    s = SETTINGS[scale]
    return [
        {
            "data": data,
            "first": first,
            "second": second,
            **s["fixed"],
            **_of_data(data, scale),
            "replicate": i,
        }
        for i in range(s["replicates"])
        for data in s["data"]
        for first, second in combinations_with_replacement(s["models"], 2)
    ]


def _of_data(data: str, scale: str) -> dict[str, Any]:
    special = OF_DATA.get(data, {})
    return {k: v for k, v in special.items() if scale == "small" or k != "n_planes"}


def cell(c: Configuration) -> dict[str, Any]:
    """Two trainings from two seeds, compared on planes through three training images each.

    Images and planes are those of the replicate, whatever the models.
    """
    from inscape.compare import compare
    from inscape.models import wrap
    from inscape.probes import Patch
    from inscape.training.data import split_data
    from inscape.training.fitting import fit

    split = split_data(c["data"], n_train=c["n_train"], n_test=c["n_test"], random_state=c["replicate_seed"])
    seeds = np.random.default_rng(c["seed"]).integers(2**31, size=2).tolist()
    pair: list[Any] = []
    for name, seed in zip((c["first"], c["second"]), seeds, strict=True):
        training = {"epochs": c["epochs"], "learning_rate": c.get("learning_rate", LEARNING_RATE)}
        settings = MODELS[name] | (training if name in NETWORKS else {})
        pair.append(wrap(fit(settings, split, random_state=seed).model))
    rng = np.random.default_rng(c["replicate_seed"])
    planes = [
        Patch.through(split.x_train[rng.choice(len(split.x_train), 3, replace=False)], margin=MARGIN)
        for _ in range(c["n_planes"])
    ]
    exact = compare(pair[0], pair[1], planes, method="exact", progress=False)
    grid = compare(pair[0], pair[1], planes, method="grid", resolution=POINTS_PER_SIDE, progress=False)
    labels = [m.labels(split.x_test) for m in pair]
    ours, theirs = ([d.agreement for d in differences] for differences in (exact, grid))
    return {
        "agreement": float(np.mean(ours)),
        "agreement_grid": float(np.mean(theirs)),
        "error": float(np.abs(np.subtract(ours, theirs)).mean()),
        "largest_error": float(np.abs(np.subtract(ours, theirs)).max()),
        "iou": float(np.mean([d.iou for d in exact])),
        "iou_grid": float(np.mean([d.iou for d in grid])),
        "regions": float(np.mean([d.n_regions for d in exact])),
        "regions_grid": float(np.mean([d.n_regions for d in grid])),
        "at_test_points": float((labels[0] == labels[1]).mean()),
        "accuracy_first": float((labels[0] == split.y_test).mean()),
        "accuracy_second": float((labels[1] == split.y_test).mean()),
        "planes": [round(float(a), 6) for a in ours],
        "planes_grid": [round(float(a), 6) for a in theirs],
    }


def summarise(frame: "pd.DataFrame", out: Path) -> Summary:
    """The scores of all pairs of models, and how far the grid is from them."""
    rows = frame.assign(pair=[_pair(r) for r in frame.to_dict("records")])
    _draw(rows, out)
    means = rows.groupby(["data", "first", "second"], sort=False)[_MEANS].mean().reset_index()
    means.insert(3, "replicates", rows.groupby(["data", "first", "second"], sort=False).size().to_numpy())
    columns = ["data", "first", "second", "replicate", *_MEANS, "largest_error"]
    return Summary(
        findings=_findings(rows),
        figures={
            "scores.png": "Left: the exact share of the plane on which two trainings agree, means over "
            "replicates. Right: the share on a grid of 50 x 50 points against it, a point per plane."
        },
        notes=_notes(frame),
        charts=[
            Chart(
                title="Agreement of two trainings",
                data=rows[["data", "pair", "replicate", "agreement", "agreement_grid", "regions", "iou"]],
                x="agreement",
                y="agreement_grid",
                colour="data",
                hover=("pair", "replicate", "regions", "iou"),
                xlabel="exact share of agreement",
                ylabel="on the grid",
                caption="A point for each pair of trainings, the mean over its planes.",
            )
        ],
        tables={"Scores": means.round(4), "Rows": rows[columns].round(4)},
        limits=(
            "Networks are small and trained on few images, so that every plane can be cut exactly: the "
            "published ones are convolutional, trained on tens of thousands.",
            "Replicates are few; an interval rests on the spread between them, data set by data set.",
        ),
    )


_MEANS = [
    *("agreement", "agreement_grid", "error", "iou", "iou_grid", "regions", "regions_grid"),
    *("at_test_points", "accuracy_first", "accuracy_second"),
]


def _pair(row: Any) -> str:
    return f"{row['first']} and {row['second']}"


def _findings(rows: "pd.DataFrame") -> dict[str, Finding]:
    networks = _of_networks(rows)
    nets = networks[_learnt(networks)]
    alike = nets["first"] == nets["second"]
    of_width = [nets[alike & (nets["first"] == name)] for name in ("wide", "narrow")]
    missed = (rows["regions"] - rows["regions_grid"]).groupby([rows["data"], rows["replicate"]]).mean()
    errors = rows["error"].groupby([rows["data"], rows["replicate"]]).mean()
    return {
        "same": _difference(
            nets[alike], nets[~alike], "of one architecture", "of two", "strong similarities (abstract)"
        ),
        "wide": _difference(
            of_width[0], of_width[1], "of wide networks", "of narrow ones", "especially wide (abstract)"
        ),
        "grid": _finding(
            FINE_BELOW_ERROR - errors.to_numpy(),
            f"mean error {errors.mean():.4f}, largest of one plane {rows['largest_error'].max():.4f}",
        ),
        "regions": _finding(
            missed.to_numpy(),
            f"{rows['regions'].mean():.2f} regions of the pair per plane, "
            f"{rows['regions_grid'].mean():.2f} on the grid",
        ),
    }


def _of_networks(rows: "pd.DataFrame") -> "pd.DataFrame":
    """The pairs of two networks."""
    return rows[rows["first"].isin(NETWORKS) & rows["second"].isin(NETWORKS)]


def _learnt(rows: "pd.DataFrame") -> Any:
    return rows[["accuracy_first", "accuracy_second"]].min(axis=1) >= LEARNT_ABOVE


def _difference(
    more: "pd.DataFrame", less: "pd.DataFrame", of_more: str, of_less: str, published: str
) -> Finding:
    """Whether one kind of pair agrees more than another, data set by data set and replicate by replicate."""
    means = [f.groupby(["data", "replicate"])["agreement"].mean() for f in (more, less)]
    both = (means[0] - means[1]).dropna()
    words = f"agreement {means[0].mean():.3f} {of_more}, {means[1].mean():.3f} {of_less}"
    return _finding(both.to_numpy(), words, published)


def _finding(effects: Any, words: str, published: str = "") -> Finding:
    """Whether an effect is positive; its interval is over data sets and replicates."""
    if len(effects) < 2:
        return Finding(holds=None, evidence=f"{words}; too few rows for an interval", published=published)
    mean, _, interval = mean_with_error(effects)
    verdict = judge(interval)
    return Finding(
        holds=verdict.holds,
        evidence=f"{words}; difference {mean:.4f} [{interval[0]:.4f}, {interval[1]:.4f}] over {len(effects)} "
        "data sets and replicates",
        value=mean,
        interval=interval,
        published=published,
        unsaid=verdict.unsaid,
    )


def _draw(rows: "pd.DataFrame", out: Path) -> None:
    from inscape.drawing.pairs import draw_matrix

    sets = list(dict.fromkeys(rows["data"]))
    names = list(dict.fromkeys([*rows["first"], *rows["second"]]))
    figure = new_figure((4.2 * (len(sets) + 1), 3.9))
    axes = np.atleast_1d(figure.subplots(1, len(sets) + 1))
    for ax, data in zip(axes, sets, strict=False):
        own = rows[rows["data"] == data]
        matrix = np.full((len(names), len(names)), np.nan)
        for (a, b), score in own.groupby(["first", "second"])["agreement"].mean().items():
            i, j = names.index(a), names.index(b)
            matrix[i, j] = matrix[j, i] = score
        draw_matrix(matrix, names, title=f"{data}: share of agreement", ax=ax)
    last = axes[-1]
    for data in sets:
        own = rows[rows["data"] == data]
        pairs = np.array(
            [p for r in own.to_dict("records") for p in zip(r["planes"], r["planes_grid"], strict=True)]
        )
        last.plot(*pairs.T, ".", ms=3, label=data)
    last.plot([0, 1], [0, 1], lw=0.6, color="grey")
    last.set_xlabel("exact share of agreement")
    last.set_ylabel("on a grid of 50 x 50")
    last.legend(frameon=False)
    figure.savefig(out / "scores.png", dpi=100)


def _notes(frame: "pd.DataFrame") -> str:
    c = frame.iloc[0]
    networks = _of_networks(frame)
    return (
        f"{c['n_train']:,} training images, {c['epochs']} epochs of SGD (batch {_TRAINING['batch_size']}, "
        f"learning rate {LEARNING_RATE:g}, on CIFAR-10 {OF_DATA['cifar10']['learning_rate']:g}); "
        f"{varied(frame, 'n_planes')} planes per pair, each through three training images and "
        f"{MARGIN:.0%} beyond them on every side; narrow, wide and deep are "
        "perceptrons of 2 x 16, 2 x 128 and 4 x 32 units, the forest has 20 trees of depth 12. "
        f"Claims on networks leave out pairs with a network below an accuracy of {LEARNT_ABOVE:g}: "
        f"{(~_learnt(networks)).sum()} of {len(networks)} here."
    )


STUDY = Study(
    name="same-model-twice",
    title="Can the same model be learnt twice? Agreement of decision regions, exactly and on a grid",
    paper="Somepalli et al. 2022, arXiv 2203.08124",
    claims={
        "same": "Two networks of one architecture agree on more of a plane than two of different ones.",
        "wide": "Two wide networks agree on more of a plane than two narrow ones.",
        "grid": f"The grid of {POINTS_PER_SIDE} x {POINTS_PER_SIDE} points of the paper gives that share to "
        f"{FINE_BELOW_ERROR:g} on average.",
        "regions": "The grid finds fewer regions of the pair than there are.",
    },
    configurations=configurations,
    cell=cell,
    summarise=summarise,
)
