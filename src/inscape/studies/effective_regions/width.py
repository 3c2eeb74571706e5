"""Width r is not enough: Theorem 3.2 of Safran, Vardi, Lee 2022, with a construction of our own."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.reports.findings import Finding, Summary, in_all, judge, varied
from inscape.sweeps.study import Configuration, Study

if TYPE_CHECKING:
    import pandas as pd

R = 8
POINTS_PER_INTERVAL = 6
LOSS = "logistic"
RUNS = (
    *("alpha", "replicate", "width", "n_alive", "fits", "least_error", "error", "train_error"),
    *("least_loss", "final_loss", "sign_changes", "status"),
)
_ALPHAS = {
    "smoke": (1.0, 32.0),
    "small": (1.0, 1.15, 1.3, 2.0, 8.0, 64.0),
    "paper": (1.0, 1.1, 1.2, 1.3, 2.0, 4.0, 8.0, 32.0, 128.0),
}
_REPLICATES = {"smoke": 3, "small": 16, "paper": 400}
_STEPS = {"smoke": 100, "small": 800, "paper": 4000}
LEAST_FITTED = 0.5
"""The least share of the widest networks that must fit their data before widths are compared."""


def configurations(scale: str) -> list[Configuration]:
    """Widths floor(alpha r) by starting points."""
    return [
        {"r": R, "alpha": alpha, "max_steps": _STEPS[scale], "replicate": i}
        for alpha in _ALPHAS[scale]
        for i in range(_REPLICATES[scale])
    ]


def cell(configuration: Configuration) -> dict[str, Any]:
    """Gradient flow, and the population loss where it starts, at a tenth of its steps, and where it ends."""
    from inscape.univariate import (
        ShallowNet,
        alternating_teacher,
        gradient_flow,
        labels_of,
        least_error,
        population_error,
    )
    from inscape.univariate.teacher import SUPPORT, alive

    r, most = configuration["r"], configuration["max_steps"]
    k = int(configuration["alpha"] * r)
    rng = np.random.default_rng(configuration["seed"])
    teacher = alternating_teacher(r)
    x = rng.uniform(*SUPPORT, POINTS_PER_INTERVAL * (r + 1))
    y = labels_of(teacher, x)
    start = ShallowNet.random(k, init="gaussian", random_state=rng)
    runs = [gradient_flow(start, x, y, LOSS, max_steps=steps) for steps in (max(1, most // 10), most)]
    run = runs[-1]
    losses = [population_error(net, teacher, *SUPPORT, loss=LOSS) for net in (start, *(r.net for r in runs))]
    n_alive = int(alive(start).sum())
    return {
        "status": run.status,
        "width": k,
        "n_alive": n_alive,
        "least_error": least_error(r, n_alive),
        "least_loss": min(losses),
        "final_loss": losses[-1],
        "error": population_error(run.net, teacher, *SUPPORT),
        "train_error": float((labels_of(run.net, x) != y).mean()),
        "fits": bool(run.margin > 0),
        "sign_changes": len(run.net.sign_changes(*SUPPORT)),
    }


def summarise(frame: "pd.DataFrame", out: Path) -> Summary:
    """How often the loss stays above the stated bound, and how the error falls with the width."""
    from inscape.univariate.teacher import stated_loss

    _draw(frame, out)
    stated = frame["alpha"].map(stated_loss)
    above = (frame["least_loss"] >= stated).groupby(frame["alpha"]).mean()
    dead = 1 - frame["n_alive"].sum() / frame["width"].sum()
    spread = np.sqrt(0.25 * 0.75 / frame["width"].sum())
    fits = frame.groupby("alpha")["fits"].mean()
    wide = frame[frame["alpha"] == frame["alpha"].max()]["error"].to_numpy(float)
    narrow = frame[frame["alpha"] == frame["alpha"].min()]["error"].to_numpy(float)
    smaller = _difference(narrow, wide)
    words = ", ".join(
        f"{share:.0%} at alpha {alpha:g}" for alpha, share in above[above.index < 4 / 3].items()
    )
    return Summary(
        findings={
            "dead": Finding(
                holds=bool(abs(dead - 0.25) < 4 * spread), evidence=f"{dead:.4f}, standard error {spread:.4f}"
            ),
            "stated": Finding(
                holds=bool((above[above.index < 4 / 3] >= 0.25).all()),
                evidence=f"the loss stayed above at the start, on the way and in the end in {words}",
            ),
            "least": in_all(frame["error"] >= frame["least_error"] - 1e-12, "runs"),
            "width": Finding(
                holds=judge(smaller).holds if fits.iloc[-1] >= LEAST_FITTED else None,
                evidence=f"{fits.iloc[-1]:.0%} of the widest fit their data; their mean error is smaller by "
                f"{narrow.mean() - wide.mean():.3f} [{smaller[0]:.3f}, {smaller[1]:.3f}]",
                value=float(narrow.mean() - wide.mean()),
                interval=smaller,
                unsaid="" if fits.iloc[-1] >= LEAST_FITTED else "too few fit their data",
            ),
        },
        figures={
            "width.png": "The error of each run against alpha, the width over r, above the least error that "
            "its living neurons allow."
        },
        notes=_notes(frame),
        tables={"All runs": frame[[c for c in RUNS if c in frame]].reset_index(drop=True)},
    )


def _difference(a: Any, b: Any) -> tuple[float, float]:
    """The 95 % interval of the difference of two means (Welch)."""
    from scipy.stats import ttest_ind

    low, high = ttest_ind(a, b, equal_var=False).confidence_interval()
    return float(low), float(high)


def _notes(frame: "pd.DataFrame") -> str:
    columns = [
        "width",
        "n_alive",
        "fits",
        "least_error",
        "error",
        "train_error",
        "least_loss",
        "sign_changes",
    ]
    return "\n".join(
        [
            "x uniform on [0, 2], a teacher that alternates on r + 1 equal intervals, "
            f"r = {varied(frame, 'r')},",
            f"{POINTS_PER_INTERVAL} points for each,",
            f"w, b ~ N(0, 1), v ~ N(0, 2/k), gradient flow of the {LOSS} loss, at most "
            f"{varied(frame, 'max_steps')} steps. Means:",
            "",
            "```",
            frame.groupby("alpha")[columns].mean().round(3).to_string(),
            "```",
            "",
            "least_error is what no net with so many living neurons can beat; the theorem's own bound on the",
            "loss is (1 - 0.75 alpha) / 4, positive up to alpha = 4/3.",
        ]
    )


def _draw(frame: "pd.DataFrame", out: Path) -> None:
    from inscape.drawing.univariate import draw_errors_by_width

    groups = {float(str(a)): g["error"].to_numpy(dtype=float) for a, g in frame.groupby("alpha")}
    least = np.array([g["least_error"].mean() for _, g in frame.groupby("alpha")])
    ax = draw_errors_by_width(groups, least)
    ax.figure.savefig(out / "width.png", dpi=150)


STUDY = Study(
    name="overparameterisation",
    title="A net of about the teacher's width cannot learn it",
    paper="Safran, Vardi and Lee 2022, Theorem 3.2",
    claims={
        "dead": "A quarter of the neurons is dead on x > 0 from the start.",
        "stated": "With width floor(alpha r), alpha < 4/3, the population loss stays above "
        "(1 - 0.75 alpha) / 4 with probability at least 1/4.",
        "least": "No run beats the least error of its living neurons.",
        "width": "Nets that are wide enough to fit their data have smaller errors than narrow ones.",
    },
    configurations=configurations,
    cell=cell,
    summarise=summarise,
)
