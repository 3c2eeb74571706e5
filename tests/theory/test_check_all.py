"""`check_all`: every statement in each of its forms, or the reason why it does not apply."""

import json

import numpy as np
import pytest
import torch
from relu_networks import network

import inscape
from inscape import theory
from inscape.theory.check_all import STATEMENTS
from inscape.univariate import ShallowNet


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    net = network((rng.normal(size=(6, 2)), rng.normal(size=6)), (rng.normal(size=(2, 6)), [0.0, 0.0]))
    x = rng.normal(size=(30, 2))
    before = torch.nn.Sequential(*(type(m)(2, 6) if i == 0 else m for i, m in enumerate(net))).double()
    y = (x[:, 0] > 0).astype(int)
    return theory.check_all(net, x, y, start=before, n_noise=4, random_state=0)


def test_every_statement_is_there_in_each_of_its_forms(table):
    found = {(c.name, c.form) for c in table}
    assert found == {(name, form) for name, (forms, _) in STATEMENTS.items() for form in forms}
    assert len(table) == len(found)
    assert set(STATEMENTS) <= set(theory.__all__)


def test_what_does_not_apply_has_a_reason(table):
    reasons = {c.name: c.unmet[0] for c in table if c.verdict == "does not apply"}
    assert reasons["ms_theorem1"] == "about networks of one input, one hidden layer and one score"
    assert reasons["lc_proposition6"] == "the proposition is about one input, not 2"
    assert "several weight decays" in reasons["lc_corollary10"]
    assert not {"rc_lemma7", "rc_theorem5", "lc_theorem7", "lc_proposition17"} & set(reasons)
    assert all(c.holds for c in table if c.form == "corrected" and c.verdict != "does not apply")


def test_the_table_is_plain_data(table):
    data = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert len(data["checks"]) == len(table)
    assert list(table.to_frame()["name"]) == [c.name for c in table]
    assert "does not apply" in repr(table)


def test_univariate_nets_and_models_of_any_kind():
    net, x = ShallowNet([1.0, 1.0], [1.5, -0.5], [1.0, -2.0]), np.array([-1.0, 0.0, 1.0])
    found = {c.name: c for c in theory.check_all(net, x, net(x), step_size=0.25, n_noise=2)}
    assert found["ms_lemma1"].holds
    assert found["ms_theorem1"].lhs == theory.ms_theorem1(net, x, net(x), 0.25).lhs
    without = {c.name: c for c in theory.check_all(net, x, n_noise=2)}
    assert without["ms_lemma4"].unmet == ("needs y, the values that the network fits",)
    without = {c.name: c for c in theory.check_all(net, x, net(x), n_noise=2)}
    assert without["ms_lemma1"].unmet == ("needs the step size of gradient descent",)
    black_box = theory.check_all(
        lambda x: (x[:, 0] > 0).astype(int), np.random.default_rng(0).normal(size=(9, 2))
    )
    verdicts = {(c.name, c.form): c.verdict for c in black_box}
    assert verdicts["rc_theorem5", "stated"] == "violated"  # a half-plane, three points
    assert verdicts["lc_theorem7", "corrected"] == "does not apply"


def test_many_points_are_drawn(rng):
    x = rng.normal(size=(500, 1))
    seen = []
    theory.check_all(
        ShallowNet([1.0], [0.2], [1.0]),
        x,
        max_points=20,
        n_noise=2,
        progress=lambda done, n: seen.append(done),
    )
    assert seen == sorted(seen)
    assert len(seen) >= len(STATEMENTS) + 2  # the noisy networks report too, before the statements
    assert set(range(seen[-1] - len(STATEMENTS), seen[-1] + 1)) <= set(seen)
    with pytest.raises(inscape.InscapeError, match="entries for 500 points"):
        theory.check_all(ShallowNet([1.0], [0.2], [1.0]), x, [0.0, 1.0])
