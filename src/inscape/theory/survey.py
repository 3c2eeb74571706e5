"""How tight is theory: every statement over a family of trained networks."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arguments import whole_number
from inscape.errors import TheoryError
from inscape.progress import Meter, meter
from inscape.seeding import RandomState, as_seed
from inscape.theory import family
from inscape.theory.check import FORMS
from inscape.theory.check_all import STATEMENTS
from inscape.theory.effective_regions.limit import el_example1

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, kw_only=True)
class Survey:
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
        for statement, part in frame.groupby("statement", sort=False):
            row: dict[str, Any] = {"statement": statement}
            for form in FORMS:
                judged = part[(part["form"] == form) & (part["verdict"] != "does not apply")]
                row |= {f"{form} {key}": value for key, value in _summary(judged).items()}
            unfit = part[(part["form"] == "stated") & (part["verdict"] == "does not apply")]
            rows.append(row | {"does not apply": len(unfit)})
        return pd.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        plain = [
            {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
            for row in self.rows
        ]
        return {"schema": 1, "measure": "survey", "settings": self.settings, "rows": plain}

    def plot(self, ax: Any = None) -> Any:
        """Draw the ratios of every statement; returns the matplotlib Axes."""
        from inscape.drawing.theory import draw_tightness

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
        progress: True shows a bar on stderr; a function gets (families done, families).
    """
    n = whole_number(replicates, "replicates", 1, TheoryError)
    whole_number(epochs, "epochs", 10, TheoryError)
    if not (len(widths) and len(depths) and len(scales) and len(sigmas)):
        raise TheoryError("give at least one width, one depth, one scale and one sigma")
    seed = as_seed(random_state)
    settings = {"eps": eps, "n_noise": n_noise}
    jobs = _jobs(widths, depths, scales, n, epochs, sigmas, settings, seed)
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
) -> list[Callable[[], family.Found]]:
    """What to train, in small pieces."""
    jobs: list[Callable[[], family.Found]] = [lambda: iter([({"family": "example"}, el_example1())])]
    widest = {"sigma": max(sigmas)} | settings
    for i in range(replicates):
        s = (seed + i) % 2**32
        for width in widths:
            for depth in depths:
                for scale in scales:
                    jobs.append(partial(family.classifiers, width, depth, scale, epochs, sigmas, settings, s))
                jobs.append(partial(family.one_input, width, depth, scales[-1], epochs, s))
                jobs.append(partial(family.optima, max(2, width), depth + 2, widest, s))
            jobs += [
                partial(family.minima, 4 * width, size, s) for size in (0.005, 0.02, 0.05, 0.1, 0.2, 0.4)
            ]
            jobs += [partial(family.edges, 2 * width, size, s) for size in (0.02, 0.1, 0.3)]
            jobs.append(partial(family.decays, width, epochs, {"sigma": sigmas[0]} | settings, s))
        jobs += [partial(family.flows, min(widths), r, scale, s) for r in (1, 3) for scale in scales]
        jobs += [partial(family.flows, 8 * min(widths), r, scale, s) for r in (1, 3) for scale in scales]
        jobs += [partial(family.narrow, r, 12, s) for r in (8, 16)]
    return jobs


def _row(about: dict[str, Any], check: Any) -> dict[str, Any]:
    plain = {key: getattr(check, key) for key in ("form", "lhs", "rhs", "ratio", "verdict", "note")}
    return {"name": check.name, "statement": check.name} | plain | about


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
