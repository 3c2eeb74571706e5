"""A finished study with everything that a report can show, made of numbers in closed form."""

from dataclasses import replace

import numpy as np
import pandas as pd

from inscape.studies import Chart, Finding, StudyRun, Summary

EVIL = "<b>bold</b><script>evil()</script><img src=x onerror=evil()>\"'&"
LONG = "A measure counts what the lines between data points cross, and says nothing of what lies elsewhere."


def rows(n_seeds=3):
    """27 configurations of a network by seeds: more regions and larger gaps at small rates."""
    rng = np.random.default_rng(0)
    grid = [
        (rate, size, decay, i)
        for rate in (0.1, 0.01, 0.001)
        for size in (256, 512, 1024)
        for decay in (1e-5, 1e-6, 1e-7)
        for i in range(n_seeds)
    ]
    frame = pd.DataFrame(grid, columns=["learning_rate", "batch_size", "weight_decay", "replicate"])
    frame.insert(0, "model", "mlp")
    frame.insert(1, "data", "digits")
    frame["configuration"] = [f"{i // n_seeds:016x}" for i in range(len(frame))]
    frame["seed"] = np.arange(len(frame))
    frame["seconds"] = 2.0 + frame["seed"] / 7
    frame["region_count"] = 3 - np.log10(frame["learning_rate"]) + rng.normal(0, 0.2, len(frame))
    frame["train_accuracy"] = 1.0
    frame["test_accuracy"] = 0.97 - 0.02 * frame["region_count"] + rng.normal(0, 0.004, len(frame))
    frame["gap"] = frame["train_accuracy"] - frame["test_accuracy"]
    frame.loc[frame.index[-1], "gap"] = np.nan
    frame["knots"] = [[0.1] * 40] * len(frame)
    return frame


def summary(frame):
    """Two charts, three claims with the three verdicts, tables, limits, notes."""
    means = frame.groupby(["model", "learning_rate"], as_index=False)[["region_count", "gap"]].mean()
    means["low"], means["high"] = means["gap"] - 0.01, means["gap"] + 0.01
    return Summary(
        findings={
            "rises": Finding(
                holds=True,
                evidence="r = +0.93 [+0.86, +0.97] over 27 configurations",
                value=0.931,
                interval=(0.862, 0.968),
                published="0.98 (CIFAR-10, six networks)",
            ),
            "rate": Finding(
                holds=False, evidence="largest at 0.001, by 2.1 regions", value=-2.1, interval=(-2.4, -1.8)
            ),
            "trees": Finding(holds=None, evidence="no trees were trained at this scale"),
        },
        charts=(
            Chart(
                title="Regions and gap",
                data=frame,
                x="region_count",
                y="gap",
                colour="learning_rate",
                hover=("model", "learning_rate", "batch_size", "train_accuracy", "test_accuracy"),
                xlabel="regions on a segment",
                ylabel="generalisation gap",
                caption="One point for each trained network. The published figure has the same axes.",
            ),
            Chart(
                title="The gap by learning rate",
                data=means,
                x="learning_rate",
                y="gap",
                kind="lines",
                colour="model",
                low="low",
                high="high",
                log_x=True,
            ),
        ),
        tables={"Means by learning rate (Table 2)": means},
        limits=(LONG, "Networks that do not fit their training data are left out."),
        notes="Fitted to **100 %** training accuracy.\n\n"
        "| net | r |\n| --- | ---: |\n| mlp | 0.93 |\n| lenet | -0.2 |\n",
    )


def finished(out, **changes):
    """The run, without figures."""
    frame = rows()
    known = {
        "study": "region-counts",
        "title": "Region counts and generalisation",
        "claims": {
            "rises": "Networks with more decision regions between data points have larger gaps.",
            "rate": "A larger learning rate leads to more regions.",
            "trees": "The same holds for decision trees and random forests.",
        },
        "scale": "smoke",
        "seed": 7,
        "options": {"data": "digits"},
        "reference": "digits",
        "provenance": {"inscape": "0.1.0", "numpy": "2.0", "machine": "Linux x86_64", "host": "secret-host"},
        "frame": frame,
        "failed": {'{"model":"mlp","rate":9}': "Traceback\n  File x\nStudyError: the loss is <NaN>"},
        "summary": summary(frame),
        "out": out,
        "store": out / "region-counts.sqlite",
        "finished": 1.7e9,
    }
    return StudyRun(**known | changes)


def evil(folder):
    """A run whose every text tries to be an element of the page."""
    run = finished(folder)
    data = pd.DataFrame({EVIL: [1.0, 2.0], "name": [EVIL, "b"], "y": [1.0, 3.0]})
    chart = Chart(title=EVIL, data=data, x=EVIL, y="y", colour="name", caption=EVIL, xlabel=EVIL)
    summary = Summary(
        findings={k: Finding(holds=None, evidence=EVIL, value=1.0, published=EVIL) for k in run.claims},
        charts=(chart,),
        tables={EVIL: data},
        limits=(EVIL,),
        notes=f"{EVIL}\n\n# {EVIL}\n\n| {EVIL} |\n| --- |\n| {EVIL} |\n\n"
        "[a](javascript:evil()) ![b](https://example.org/b.png)",
        figures={"missing.png": EVIL},
    )
    return replace(
        run,
        title=EVIL,
        study=EVIL,
        claims=dict.fromkeys(run.claims, EVIL),
        options={EVIL: EVIL},
        reference=EVIL + ".toml",
        provenance={EVIL: EVIL, "inscape": EVIL},
        failed={EVIL: EVIL},
        frame=data,
        summary=summary,
    )
