"""How tight the theory is: every statement over families of networks that are trained here.

What high and low mean: as for each check: a typical ratio near 1 is a tight bound, a large one says little.
When it does not hold: the networks of a survey are small and trained here; other families may be bounded more
tightly, or less.
"""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from inscape.arguments import whole_number
from inscape.arrays import Floats, Ints
from inscape.errors import TheoryError
from inscape.pictures import Drawn
from inscape.progress import Meter, meter
from inscape.seeding import RandomState, as_seed
from inscape.serialising import SCHEMA, check_schema, plain, restored_fields
from inscape.theory import effective_regions, local_complexity, minima_stability, region_counts
from inscape.theory.check import FORMS, Check
from inscape.theory.check_all import STATEMENTS, check_all
from inscape.theory.layers import Layers
from inscape.theory.local_complexity.moments import moments
from inscape.theory.region_counts.two_layer import TwoLayer, two_layer_descent
from inscape.univariate import ShallowNet, gradient_descent, gradient_flow, labels_of, random_teacher
from inscape.univariate.teacher import SUPPORT, alternating_teacher

if TYPE_CHECKING:
    import pandas as pd

Checks = Iterator[tuple[dict[str, Any], Check]]
"""What tells a network apart, with each check of it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Survey(Drawn):
    """The checks of many networks.

    Attributes:
        rows: one per check: statement, form, both sides, ratio, verdict, note, and which network.
        settings: the arguments, with the seed.
    """

    rows: tuple[dict[str, Any], ...]
    settings: dict[str, Any]

    def to_frame(self) -> "pd.DataFrame":
        """All checks as a pandas table."""
        import pandas as pd

        return pd.DataFrame(list(self.rows))

    def table(self) -> "pd.DataFrame":
        """One row per statement: median ratio and shares of violations and vacuous bounds of both forms.

        Networks to which a statement does not apply are not counted, but their number is given.
        """
        import pandas as pd

        frame = self.to_frame()
        rows = []
        for statement, group in frame.groupby("statement", sort=False):
            row: dict[str, Any] = {"statement": statement}
            for form in FORMS:
                judged = group[(group["form"] == form) & (group["verdict"] != "does not apply")]
                row |= {f"{form} {key}": value for key, value in _summary(judged).items()}
            unfit = group[(group["form"] == "stated") & (group["verdict"] == "does not apply")]
            rows.append(row | {"does not apply": len(unfit)})
        return pd.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; numbers that are not finite are None; `from_dict` reads it back."""
        rows = [
            {k: None if isinstance(v, float) and not math.isfinite(v) else plain(v) for k, v in row.items()}
            for row in self.rows
        ]
        return {"schema": SCHEMA, "measure": "survey", "settings": plain(self.settings), "rows": rows}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The survey that `to_dict` wrote: where a statement applies, a side that is None is infinite."""
        check_schema(data, "measure", "survey", what="survey", error=TheoryError)
        rows = tuple(_restored_row(row) for row in data.get("rows", ()))
        result: Self = restored_fields(cls, data, what="survey", error=TheoryError, rows=rows)
        return result

    def _draw(self, ax: Any) -> Any:
        """The ratios of every statement."""
        from inscape.drawing.curves import draw_tightness

        frame = self.to_frame()
        frame = frame[frame["verdict"] != "does not apply"]
        names = list(dict.fromkeys(frame["statement"]))
        ratios = {
            form: [
                frame.loc[(frame["statement"] == name) & (frame["form"] == form), "ratio"].to_numpy(
                    dtype=float
                )
                for name in names
            ]
            for form in FORMS
        }
        return draw_tightness(names, ratios, ax=ax)

    def __repr__(self) -> str:
        frame = self.to_frame()
        counts = {form: _summary(frame[frame["form"] == form])["violated"] for form in FORMS}
        shares = ", ".join(f"{counts[form]:.1%} of {form} forms violated" for form in FORMS)
        return f"<survey of {frame['statement'].nunique()} statements, {len(frame)} checks: {shares}>"


def survey(
    *,
    widths: Sequence[int] = (8, 32, 128),
    depths: Sequence[int] = (1, 2, 3),
    scales: Sequence[float] = (0.5, 1.0, 2.0),
    replicates: int = 1,
    epochs: int = 300,
    sigmas: Sequence[float] = (0.1, 1.0),
    eps: float = 0.1,
    n_noise: int = 16,
    random_state: RandomState = 0,
    progress: bool | Meter | None = None,
) -> Survey:
    """Every statement over a family of networks that are trained here.

    Classifiers of two inputs before, early in and after training, for all widths, depths and initial scales;
    and networks of one input, of gradient flow, at the edge of stability, at known optima and under several
    weight decays for the statements that are about those. A minute or two with the defaults.

    Args:
        widths: units per hidden layer.
        depths: hidden layers.
        scales: of the initial weights, times He's.
        replicates: seeds for each.
        epochs: of training.
        sigmas: of the noise on the biases.
        eps: the smallest singular value that counts for the rank.
        n_noise: noisy networks for each measurement.
        random_state: a seed, a generator, or None.
        progress: None for a bar after two seconds, False for none; a function gets (families done, families).

    >>> result = survey(widths=[4], depths=[1], scales=[1.0], epochs=10, n_noise=2, progress=False)
    >>> len(result.table()) > 20
    True
    """
    n = whole_number(replicates, "replicates", 1, TheoryError)
    whole_number(epochs, "epochs", 10, TheoryError)
    if not (len(widths) and len(depths) and len(scales) and len(sigmas)):
        raise TheoryError("give at least one width, one depth, one scale and one sigma")
    seed = as_seed(random_state)
    settings = {"eps": eps, "n_noise": n_noise}
    jobs = _jobs(widths, depths, scales, n, epochs, sigmas, settings | {"budget": None}, seed)
    rows: list[dict[str, Any]] = []
    with meter(progress, "networks") as show:
        for i, job in enumerate(jobs):
            show(i, len(jobs))
            rows += [_row(about, check) for about, check in job() if not math.isnan(check.slack)]
        show(len(jobs), len(jobs))
    given = {"widths": list(widths), "depths": list(depths), "scales": list(scales), "sigmas": list(sigmas)}
    order = list(STATEMENTS)
    rows.sort(key=lambda row: (order.index(row["name"]), row["statement"]))
    more = {"replicates": n, "epochs": epochs, "seed": seed}
    return Survey(rows=tuple(rows), settings=given | settings | more)


def _jobs(
    widths: Sequence[int],
    depths: Sequence[int],
    scales: Sequence[float],
    replicates: int,
    epochs: int,
    sigmas: Sequence[float],
    settings: dict[str, Any],
    seed: int,
) -> list[Callable[[], Checks]]:
    """What to train: each job trains some networks and gives their checks."""
    jobs: list[Callable[[], Checks]] = [
        lambda: iter([({"family": "example"}, effective_regions.el_example1())])
    ]
    widest = {"sigma": max(sigmas)} | settings
    for i in range(replicates):
        s = (seed + i) % 2**32
        for width in widths:
            for depth in depths:
                for scale in scales:
                    jobs.append(partial(_classifiers, width, depth, scale, epochs, sigmas, settings, s))
                jobs.append(partial(_one_input, width, depth, scales[-1], epochs, s))
                jobs.append(partial(_optima, max(2, width), depth + 2, widest, s))
            jobs += [partial(_minima, 4 * width, size, s) for size in (0.005, 0.02, 0.05, 0.1, 0.2, 0.4)]
            jobs += [partial(_edges, 2 * width, size, s) for size in (0.02, 0.1, 0.3)]
            jobs.append(partial(_decays, width, epochs, {"sigma": sigmas[0]} | settings, s))
        jobs += [partial(_flows, min(widths), r, scale, s) for r in (1, 3) for scale in scales]
        jobs += [partial(_flows, 8 * min(widths), r, scale, s) for r in (1, 3) for scale in scales]
        jobs += [partial(_narrow, r, 12, s) for r in (8, 16)]
    return jobs


class _Snapshots:
    """Keeps copies of a module at chosen steps of its training."""

    def __init__(self, steps: tuple[int, ...]) -> None:
        self.steps = steps
        self.kept: dict[int, Any] = {}

    def step(self, module: Any, step: int) -> None:
        """Keep a copy if this step was chosen."""
        if step in self.steps:
            self.kept[step] = copy.deepcopy(module).double().eval()


def _rings(n: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Points of a square with two classes in rings."""
    x = rng.uniform(-1, 1, size=(n, 2))
    return x, (np.linalg.norm(x, axis=1) % 0.6 > 0.3).astype(np.int64)


def _classifiers(
    width: int,
    depth: int,
    scale: float,
    epochs: int,
    sigmas: Sequence[float],
    settings: dict[str, Any],
    seed: int,
) -> Checks:
    """An MLP on rings before, early in and after training: whatever applies to it."""
    from inscape.training import Recipe, mlp, train

    rng = np.random.default_rng([seed, width, depth])
    x, y = _rings(60, rng)
    x_test, y_test = _rings(1000, rng)
    net = mlp(2, (width,) * depth, 2, random_state=seed, scale=scale)
    snapshots = _Snapshots((0, epochs // 10, epochs))
    train(net, x, y, Recipe(0.01, len(x), epochs, optimiser="adam"), random_state=seed, monitor=snapshots)
    start = snapshots.kept[0]
    for step, kept in snapshots.kept.items():
        about = {"family": "classifiers", "width": width, "depth": depth, "scale": scale, "step": step}
        for sigma in sigmas:
            drawn = settings | {"sigma": sigma, "random_state": seed}
            for check in check_all(kept, x, y, start=start if step else None, **drawn):
                if check.name in local_complexity.__all__ or sigma == sigmas[0]:
                    yield about | {"sigma": sigma}, check
        for form in FORMS:
            check = region_counts.rc_theorem5(
                kept, x, y, x_test=x_test, y_test=y_test, form=form, random_state=seed
            )
            yield about | {"statement": "rc_theorem5, gap"}, check


def _one_input(width: int, depth: int, scale: float, epochs: int, seed: int) -> Checks:
    """A classifier of one input, for Proposition 6."""
    from inscape.training import Recipe, mlp, train

    x = np.random.default_rng([seed, width, depth]).uniform(-1, 1, size=(60, 1))
    y = (np.sin(6 * x[:, 0]) > 0).astype(np.int64)
    net = mlp(1, (width,) * depth, 2, random_state=seed, scale=scale)
    train(net, x, y, Recipe(0.01, len(x), epochs, optimiser="adam"), random_state=seed)
    about = {"family": "one input", "width": width, "depth": depth, "scale": scale}
    yield about, local_complexity.lc_proposition6(net.double(), x, support=(-1.0, 1.0))


def _minima(width: int, step_size: float, seed: int) -> Checks:
    """A regression net where gradient descent ended, for the statements on stability."""
    x = np.linspace(-1.5, 1.5, 12)
    y = np.sin(2 * x)
    start = ShallowNet.random(width, random_state=seed)
    run = gradient_descent(start, x, y, step_size, 300_000, warm_up=20_000, tolerance=1e-12, patience=5_000)
    about = {"family": "minima", "width": width, "step_size": step_size, "status": run.status}
    yield about, minima_stability.ms_lemma1(run.net, x, y, step_size)
    yield about, minima_stability.ms_lemma2(run.net, x, y, step_size)
    yield about, minima_stability.ms_lemma3(run.net, x, y, step_size)
    yield about, minima_stability.ms_lemma4(run.net, x, y)
    yield about, minima_stability.ms_lemma5(run.net, x, y)
    yield about, minima_stability.ms_theorem1(run.net, x, y, step_size)
    for form in FORMS:
        yield about, minima_stability.ms_theorem2(run.net, x, y, step_size, form=form)


def _flows(width: int, n_changes: int, scale: float, seed: int) -> Checks:
    """The limit of gradient flow, for the number of linear regions and its generalisation."""
    rng = np.random.default_rng([seed, width, n_changes])
    teacher = random_teacher(n_changes, random_state=rng)
    x = rng.uniform(-1, 1, 30)
    y = labels_of(teacher, x)
    start = ShallowNet.random(width, init="gaussian", sigma_hidden=scale, random_state=rng)
    run = gradient_flow(start, x, y, max_steps=1000)
    about = {"family": "flows", "width": width, "n_changes": n_changes, "scale": scale, "status": run.status}
    yield about, effective_regions.el_theorem42(run, x, y)
    yield about, effective_regions.el_corollary51(run, x, y, teacher, support=(-1.0, 1.0))
    sizes: dict[str, Any] = {"sigma_hidden": scale, "sigma_output": float(np.sqrt(2 / width))}
    yield (
        about,
        effective_regions.el_theorem31(start, x, y, shortest=1 / (n_changes + 1), max_steps=50, **sizes),
    )
    yield about, effective_regions.el_theorem23(start, x, y, teacher, max_steps=50, **sizes)
    yield about, effective_regions.el_pl_condition(start, x, y)
    yield about, effective_regions.el_breakpoints(start, x, teacher)


def _narrow(n_changes: int, n_nets: int, seed: int) -> Checks:
    """Networks as wide as their teacher after gradient flow, for the width that is needed."""
    rng = np.random.default_rng([seed, n_changes])
    x = rng.uniform(*SUPPORT, 60)
    y = labels_of(alternating_teacher(n_changes), x)
    starts = [ShallowNet.random(n_changes, init="gaussian", random_state=rng) for _ in range(n_nets)]
    nets = [gradient_flow(start, x, y, max_steps=60).net for start in starts]
    yield {"family": "narrow", "width": n_changes}, effective_regions.el_theorem32(nets, n_changes)


def _edges(width: int, step_size: float, seed: int) -> Checks:
    """The two-layer network of Theorem 6 at the edge of stability."""
    rng = np.random.default_rng([seed, width])
    x = np.hstack([rng.uniform(-1, 1, size=(30, 2)), np.ones((30, 1))])
    y = np.where(np.sin(4 * x[:, 0] + x[:, 1]) > 0, 1.0, -1.0)
    start = TwoLayer(0.3 * rng.normal(size=(width, 3)), rng.choice([-1.0, 1.0], width), np.zeros(width))
    run = two_layer_descent(start, x, y, step_size, 4000, warm_up=1500, n_records=4)
    for step, net in zip(run.steps.tolist(), run.nets, strict=True):
        about = {"family": "edges", "width": width, "step_size": step_size, "step": step}
        yield about, region_counts.rc_lemma7(net, x[:15], x[15:])
        yield about, region_counts.rc_lemma8(net, x)
        yield about, region_counts.rc_theorem6(net, x)
        edge = region_counts.rc_theorem6(net, x, step_size=step_size)
        yield about | {"statement": "rc_theorem6, edge"}, edge


def _optima(width: int, depth: int, settings: dict[str, Any], seed: int) -> Checks:
    """Least-norm networks with margin 1 at one unit vector: matrices of rank one and norm one."""
    rng = np.random.default_rng([seed, width, depth])
    units = [u / np.linalg.norm(u) for u in np.abs(rng.normal(size=(depth, width)))]
    weights = [np.outer(b, a) for a, b in pairwise(units)] + [units[-1][None]]
    first = np.stack([units[0], np.zeros(width)])
    reference = Layers((first, np.array([[1.0, 0.0]])), (np.zeros(2), np.zeros(1)))
    x = units[0][None]
    m = moments(_module(weights), x, random_state=seed, **settings)
    about = {"family": "optima", "width": width, "depth": depth}
    for form in FORMS:
        yield about, local_complexity.lc_proposition9(m, x, [1.0], reference, form=form, is_optimum=True)
    yield about, local_complexity.lc_theorem18(m.layers, x, [1.0], reference, is_optimum=True)
    yield about, local_complexity.lc_good_at_start(width, (width,) * depth, random_state=seed)


def _decays(width: int, epochs: int, settings: dict[str, Any], seed: int) -> Checks:
    """Networks with one hidden layer trained under several weight decays, for Corollary 10."""
    from inscape.training import Recipe, mlp, train

    x, y = _rings(60, np.random.default_rng([seed, width]))
    rates = 10.0 ** -np.arange(1, 5)
    complexities, norms = [], []
    for rate in rates:
        net = mlp(2, (width,), 2, random_state=seed)
        recipe = Recipe(0.01, len(x), 4 * epochs, optimiser="adam", weight_decay=float(rate))
        train(net, x, y, recipe, random_state=seed)
        m = moments(net.double(), x, random_state=seed, **settings)
        complexities.append(float(m.draws["complexity"].sum(axis=1).mean()))
        norms.append(m.layers.size)
    check = local_complexity.lc_corollary10(rates, complexities, norms=norms, depth=2)
    yield {"family": "decays", "width": width}, check


def _module(weights: list[Floats]) -> Any:
    """A relu network in float64 without biases."""
    import torch
    from torch import nn

    layers: list[nn.Module] = []
    for w in weights:
        linear = nn.Linear(w.shape[1], w.shape[0], bias=False).double()
        linear.weight.data = torch.from_numpy(w.copy())
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _row(about: dict[str, Any], check: Any) -> dict[str, Any]:
    plain = {key: getattr(check, key) for key in ("form", "lhs", "rhs", "ratio", "verdict", "note")}
    return {"name": check.name, "statement": check.name} | plain | about


def _restored_row(row: dict[str, Any]) -> dict[str, Any]:
    beyond = math.nan if row["verdict"] == "does not apply" else math.inf
    return row | {key: beyond for key in ("lhs", "rhs", "ratio") if row[key] is None}


def _summary(judged: "pd.DataFrame") -> dict[str, float]:
    """How many checks, the median ratio, the shares that are violated and vacuous."""
    judged = judged[judged["verdict"] != "does not apply"]
    if len(judged) == 0:
        return {"n": 0, "median ratio": math.nan, "violated": math.nan, "vacuous": math.nan}
    return {
        "n": len(judged),
        "median ratio": float(np.median(judged["ratio"])),
        "violated": float((judged["verdict"] == "violated").mean()),
        "vacuous": float((judged["verdict"] == "vacuous").mean()),
    }
