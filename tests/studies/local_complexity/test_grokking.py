"""Findings on grokking, on tables made by hand."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

import inscape
from inscape.errors import StudyError
from inscape.studies.local_complexity.grokking.outcome import (
    THRESHOLDS,
    bound,
    curves_of,
    findings,
    prepared,
    summarise,
)
from inscape.studies.local_complexity.grokking.training import (
    PLAIN,
    PUBLISHED_LOSS,
    Lipschitz,
    configurations,
)
from inscape.studies.local_complexity.training_curves import coefficients, log_steps
from inscape.theory import lc_theorem7, moments
from inscape.training.networks import mlp

ALL = ("accuracy", "attacked_published", "attacked_margin", "attacked_0.02", "attacked_0.05")


def run(he, replicate, lc, attacked, regions, tv, fit_at=1, depth=4, width=200, loss=PUBLISHED_LOSS, top=1.0):
    n = len(lc)
    row = {"depth": depth, "width": width, "he_scale": he, "replicate": replicate, "seconds": 1.0}
    row |= {"loss": loss, "normalise": True, "decay_biases": False, "tolerance": 0.01, "attack": 0.1}
    row |= {
        "n_train": 10,
        "n_test": 10,
        "data": "none",
        "learning_rate": 1e-4,
        "weight_decay": 0.01,
        "batch_size": 4,
    }
    row |= {"n_points": 2, "n_noise": 2, "lc": lc, "tv": tv, "region_count": regions, "optimiser": "adamw"}
    row |= {"step": [250_000 * i for i in range(n)], "not_good": [0.0] * n}
    row |= dict.fromkeys(ALL, attacked) | {"attacked_margin": [a / 20 for a in attacked]}
    row |= {"tv_hidden": tv, "tv_probabilities": tv}
    row |= {"train_accuracy": [top if i >= fit_at else 0.5 for i in range(n)]}
    row |= {"lipschitz_stated": [2.0] * n, "lipschitz_corrected": [4.0] * n}
    row |= {f"{t.name}_{k}": list(lc) for t in THRESHOLDS for k in range(1, depth + 1)}
    return row | {"theorem_7_stated": -1.0, "theorem_7_corrected": -2.0}


def frame_of(fall, **further):
    """Runs whose local complexity falls after the fit, or rises, with all else alike."""
    lc = [9.0, 10.0, 8.0, 6.0, 5.0] if fall else [9.0, 5.0, 6.0, 8.0, 10.0]
    up, down = [0.0, 0.1, 0.2, 0.3, 0.4], [5.0, 4.0, 3.0, 2.0, 1.0]
    regions = [5.0, 4.5, 3.0, 1.5, 1.0]
    settings = ((1, 8), (2, 2), (3, 2))
    rows = [run(he, i, lc, up, regions, down, **further) for he, n in settings for i in range(n)]
    rows += [run(1, i, lc, up, down, down, depth=3, **further) for i in range(2)]
    rows += [run(1, 0, lc, up, down, down, width=10, **further)]
    rising = [1.0, 2.0, 3.0, 4.0, 5.0]
    rows += [run(2, i, up, up, regions, rising, loss=PLAIN, **further) for i in range(2)]
    return pd.DataFrame(rows)


def test_findings_follow_the_runs():
    falls = findings(prepared(frame_of(True)))
    assert {k for k, f in falls.items() if f.holds} == set(falls) - {"breaks"}
    assert falls["drop"].value == pytest.approx(-50)
    assert falls["together"].value == pytest.approx(-1)
    assert falls["decision"].value == pytest.approx(1)
    assert "the number is that of He 1" in falls["drop"].evidence
    rises = findings(prepared(frame_of(False)))
    assert {k for k, f in rises.items() if f.holds is False} == {
        *("drop", "together", "loss", "breaks", "rank", "decision")
    }


def test_runs_of_several_lengths_are_summarised(tmp_path):
    """Means at each step are those of the longest runs; what is said is of all."""
    up, down = [0.0, 0.1, 0.2, 0.3], [5.0, 4.0, 3.0, 2.0]
    short = run(1, 0, [9.0, 10.0, 8.0, 6.0], up, down, down)
    long = [run(1, i, [9.0, 10.0, 8.0, 6.0, i + 1.0], [*up, 0.4], [*down, 1.0], [*down, 1.0]) for i in (1, 2)]
    other = run(2, 0, [9.0, 10.0, 8.0], up[:3], down[:3], down[:3])
    frame = pd.DataFrame([short, *long, other])
    steps, mean, _, _ = curves_of(prepared(frame[frame["he_scale"] == 1]), {"lc": "lc"})["lc"]
    assert steps.tolist() == long[0]["step"]
    assert mean.tolist() == [9.0, 10.0, 8.0, 6.0, 2.5]
    done = summarise(frame, tmp_path)
    curves = done.tables["Curves"]
    assert curves.groupby("he_scale")["runs"].agg(["size", "max"]).to_numpy().tolist() == [[5, 2], [3, 1]]
    assert "14 of 14 measurements of 3 runs" in done.findings["bound"].evidence


def test_a_plateau_below_one_is_a_fit():
    frame = frame_of(True, top=0.89)
    assert prepared(frame)["fit"].tolist() == [1] * len(frame)
    assert findings(prepared(frame))["drop"].holds


def test_a_fit_at_the_last_look_says_nothing():
    found = findings(prepared(frame_of(False, fit_at=4)))
    changes = ("drop", "robust", "masked", "variation", "loss", "breaks", "constant", "rank")
    assert {found[k].holds for k in changes} == {None}
    assert "no run was measured after the fit" in found["drop"].evidence


def test_short_runs_cannot_deny_a_late_change():
    frame = frame_of(False)
    frame["step"] = [[s // 100 for s in steps] for steps in frame["step"]]
    found = findings(prepared(frame))
    assert found["drop"].holds is None
    assert "to deny a change takes two runs or more of 1,000,000 steps" in found["drop"].evidence
    assert found["robust"].holds


def test_one_run_cannot_deny_a_change_and_runs_that_disagree_show_none():
    lc, up, down = [9.0, 5.0, 10.0], [0.0, 0.1, 0.2], [3.0, 2.0, 1.0]
    alone = prepared(pd.DataFrame([run(1, 0, lc, up, down, down)]))
    alone["step"] = [[0, 1, 1_000_000]]
    assert findings(alone)["drop"].holds is None
    assert findings(alone)["robust"].holds  # what one run shows it shows
    ends = [[9.0, 5.0, end] for end in (4.0, 5.9)]
    two = prepared(pd.DataFrame([run(1, i, end, up, down, down) for i, end in enumerate(ends)]))
    assert findings(two)["drop"].value == pytest.approx(-1)
    assert findings(two)["drop"].holds is None
    ends = [[9.0, 5.0, end] for end in (4.9, 1.0)]  # by how much differs, that they fall does not
    both = prepared(pd.DataFrame([run(1, i, end, up, down, down) for i, end in enumerate(ends)]))
    assert findings(both)["drop"].holds


def test_a_narrow_network_is_spoken_of_where_there_is_one():
    frame = frame_of(True)
    assert "in the narrow one" in findings(prepared(frame))["not_good"].evidence
    wide = frame[frame["width"] == 200]
    assert findings(prepared(wide))["not_good"].evidence == "at most 0 in wide networks"


def test_masking_is_denied_by_two_long_runs_or_more():
    lc, up, down = [9.0, 5.0, 4.0, 3.0, 2.0], [0.0, 0.1, 0.2, 0.3, 0.4], [5.0, 4.0, 3.0, 2.0, 1.0]
    frame = pd.DataFrame([run(2, i, lc, up, down, down) for i in range(2)])
    masked = findings(prepared(frame))["masked"]
    assert masked.holds
    assert masked.value == pytest.approx(0.05)
    plain = frame.assign(attacked_margin=[[0.32 * a for a in up], [0.33 * a for a in up]])
    assert findings(prepared(plain))["masked"].holds is False
    assert findings(prepared(plain))["masked"].value == pytest.approx(0.325)
    assert findings(prepared(plain.iloc[:1]))["masked"].holds is None
    short = plain.assign(step=[[s // 100 for s in steps] for steps in plain["step"]])
    assert findings(prepared(short))["masked"].holds is None


def test_a_fall_at_some_he_scales_is_none_at_every():
    frame = frame_of(True)
    frame["train_accuracy"] = [
        [0.5] * 4 + [1.0] if he == 3 else a
        for he, a in zip(frame["he_scale"], frame["train_accuracy"], strict=True)
    ]
    drop = findings(prepared(frame))["drop"]
    assert drop.holds is None
    assert "not seen after the fit at He 3" in drop.evidence


def test_columns_that_fall_one_after_the_other_do_not_fall_together():
    frame = frame_of(True).assign(replicate=range(17))
    frame["lc"] = [[9.0, 8.9, 8.8, 8.7, 5.0, 2.0]] * 17
    frame["region_count"] = [[9.0, 6.0, 4.0, 2.0, 1.9, 1.8]] * 17
    assert coefficients(frame.assign(fit=0), "lc", "region_count", "fit") == pytest.approx([1.0] * 17)
    assert max(coefficients(frame.assign(fit=0), "lc", "region_count", "fit", changes=True)) < -0.5


def test_coefficients_of_two_runs_that_disagree_deny_nothing():
    frame = frame_of(True).iloc[:2].assign(replicate=range(2))
    frame["region_count"] = [[9.0, 6.0, 4.0, 2.0, 1.9], [9.0, 6.0, 4.0, 5.0, 6.0]]
    decision = findings(prepared(frame))["decision"]
    assert decision.interval is not None
    assert decision.interval[0] < 0 < decision.interval[1]
    assert decision.holds is None


def test_runs_that_never_fit_say_nothing():
    frame = frame_of(True)
    frame["train_accuracy"] = [[0.5] * 5] * len(frame)
    found = findings(prepared(frame))
    assert {found[k].holds for k in ("drop", "robust", "variation", "together", "rank", "decision")} == {None}


def test_the_fit_is_the_first_look_at_full_accuracy():
    frame = pd.DataFrame([run(1, 0, [1.0, 2.0, 3.0], [0.0] * 3, [1.0] * 3, [1.0] * 3, fit_at=2)])
    assert prepared(frame)["fit"].tolist() == [2]


def test_the_bound_is_the_theorem_without_the_lost_terms():
    torch.manual_seed(0)
    net = mlp(5, (30, 30), 3, random_state=0).double()
    x = np.random.default_rng(0).normal(size=(20, 5))
    found = moments(net, x, sigma=1.0, eta=1.0, n_noise=8, random_state=0)
    tv = float(found.draws["variation"].mean())
    constants = Lipschitz(x)(inscape.wrap(net))
    sides = {form: lc_theorem7(found, form=form).lhs for form in ("stated", "corrected")}
    ours = {form: bound(tv, 2, constants[f"lipschitz_{form}"]) for form in sides}
    # xi does not depend on the Lipschitz constant, and B is 0: the forms differ by the bound alone
    assert found.draws["not_good_at_kink"].max() == 0
    difference = sides["stated"] - sides["corrected"]
    assert difference == pytest.approx(ours["stated"] - ours["corrected"], rel=1e-9)


def test_the_constants_of_one_layer_are_both_its_norm():
    net = mlp(2, (4,), 3, random_state=0).double()
    found = Lipschitz(np.zeros((1, 2)))(inscape.wrap(net))
    norm = float(torch.linalg.matrix_norm(net[3].weight.detach(), 2))
    assert found == pytest.approx({"lipschitz_stated": norm, "lipschitz_corrected": norm})
    assert bound(2.0, 1, 4.0) == pytest.approx(0.5 * math.exp(-0.5) / math.sqrt(2 * math.pi))


@pytest.mark.parametrize(("n_steps", "n_times"), [(5, 4), (100, 3), (100_000, 22), (12, 30)])
def test_steps_begin_at_zero_and_end_at_the_last(n_steps, n_times):
    steps = log_steps(n_steps, n_times)
    assert steps[0] == 0
    assert steps[-1] == n_steps
    assert len(steps) <= n_times
    assert list(steps) == sorted(set(steps))


def test_options_change_every_run():
    given = {"loss": PLAIN, "normalise": "false", "decay_biases": "true", "tolerance": "0.5", "attack": "0.1"}
    found = configurations("smoke", **given)
    assert {c["loss"] for c in found} == {PLAIN}
    assert {(c["normalise"], c["decay_biases"], c["tolerance"], c["attack"]) for c in found} == {
        (False, True, 0.5, 0.1)
    }
    for wrong in ({"loss": "square"}, {"normalise": "perhaps"}, {"tolerance": "no"}, {"attack": 0}):
        with pytest.raises(StudyError, match=next(iter(wrong))):
            configurations("smoke", **wrong)
