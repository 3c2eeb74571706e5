"""Agreement over random probes, several models at once, and churn along training."""

import copy
import json

import numpy as np
import pytest
import torch
from networks import mlp
from sklearn.ensemble import RandomForestClassifier
from twins import permuted

import inscape
from inscape.compare import ComparisonMatrix, PairAgreement, compare
from inscape.errors import MeasureError, ModelError, PartitionError, ProbeError

X = 2 * np.random.default_rng(0).normal(size=(40, 5))


def net(seed):
    found = mlp(5, 16, 16, 3, seed=seed)
    with torch.no_grad():
        found[-1].bias -= found(torch.from_numpy(X).float()).mean(dim=0)
    return found


def step_at(place):
    """Two classes on the line, told apart at a place."""
    return lambda x: np.c_[0 * x, x - place]


def test_two_thresholds_on_a_line_have_a_known_agreement():
    """Both ends uniform: on a segment from u to v the labels differ on the part of [0.4, 0.6] that it covers.

    Over all pairs that share is |[0.4, 0.6] n [u, v]| / |u - v|, whose mean we integrate numerically.
    """
    x = np.linspace(0, 1, 401)[:, None]
    r = inscape.agreement(step_at(0.4), step_at(0.6), x, n_probes=400, random_state=0)
    u, v = np.random.default_rng(1).uniform(size=(2, 400_000))
    low, high = np.minimum(u, v), np.maximum(u, v)
    expected = 1 - (np.clip(np.minimum(high, 0.6) - np.maximum(low, 0.4), 0, None) / (high - low)).mean()
    assert r.interval[0] < expected < r.interval[1]
    assert r.at_points == pytest.approx(1 - 80 / 401, abs=2 / 401)
    assert r.at_points_interval[0] < 0.8 < r.at_points_interval[1]


@pytest.mark.parametrize("dim", [1, 2])
def test_agreement_is_the_mean_of_the_comparisons(dim):
    a, b = net(0), net(1)
    r = inscape.agreement(a, b, X, n_probes=6, dim=dim, random_state=3)
    probes = inscape.sample_probes(X, dim=dim, n=6, random_state=3)
    every = compare(a, b, list(probes))
    assert r.shares == pytest.approx([d.agreement for d in every], abs=1e-12)
    assert r.mean == pytest.approx(np.mean(r.shares))
    assert r.disagreement == pytest.approx(1 - r.mean)
    assert r.is_exact
    assert r.method == "exact"
    assert r.status == "complete"
    assert r.std_error == pytest.approx(np.std(r.shares, ddof=1) / np.sqrt(6))
    again = PairAgreement.from_dict(json.loads(json.dumps(r.to_dict(), allow_nan=False)))
    assert again.to_dict() == r.to_dict()
    assert repr(again) == repr(r)
    assert r.plot().get_xlabel() == "share of agreement"


def test_where_nothing_differs_the_interval_says_how_little_that_means():
    a = net(0)
    r = inscape.agreement(a, permuted(a), X, n_probes=30, random_state=0)
    assert r.mean == 1.0
    assert r.interval == (0.9, 1.0)
    assert r.at_points == 1.0


def test_agreement_of_other_models():
    y = inscape.wrap(net(0)).labels(X)
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    assert inscape.agreement(forest, net(0), X, n_probes=5, random_state=0).is_exact
    smooth = torch.nn.Sequential(*[torch.nn.GELU() if isinstance(m, torch.nn.ReLU) else m for m in net(0)])
    r = inscape.agreement(smooth.eval(), net(0), X, n_probes=5, random_state=0)
    assert not r.is_exact
    assert r.method == "adaptive"
    assert r.missed is not None
    with pytest.raises(ProbeError, match="segments \\(1\\) and triangles \\(2\\)"):
        inscape.agreement(net(0), net(1), X, dim=3)


def test_several_models_give_the_matrix_of_disagreements():
    models = {"one": net(0), "two": net(1), "same as one": permuted(net(0))}
    patch = inscape.Patch.through(X[:3], margin=0.3)
    m = compare(models, patch)
    assert m.names == ("one", "two", "same as one")
    assert np.array_equal(m.disagreement, m.disagreement.T)
    assert m.disagreement[0, 2] == 0.0
    assert m.disagreement[0, 1] == compare(net(0), net(1), patch).disagreement == m.disagreement[1, 2]
    assert m.iou[0, 2] == 1.0
    assert np.array_equal(np.diag(m.iou), np.ones(3))
    assert m.is_exact
    assert m.between("two", "one").names == ("one", "two")
    assert m.to_frame().loc["one", "two"] == m.disagreement[0, 1]
    again = ComparisonMatrix.from_dict(json.loads(json.dumps(m.to_dict(), allow_nan=False)))
    assert again.to_dict() == m.to_dict()
    with pytest.raises(PartitionError, match="compute it again"):
        again.between("one", "two")
    assert "%" in m.plot().get_title()
    assert len(compare([net(0), net(1)], [patch, inscape.Segment(X[0], X[1])])) == 2
    assert compare([net(0), net(1)], patch).names == ("Sequential 1", "Sequential 2")


def test_the_regions_of_each_of_several_models_are_found_once():
    seen = []

    def counted(x):
        seen.append(len(x))
        return np.c_[0 * x[:, :1], x[:, :1] - 0.3]

    probes = [inscape.Segment([0.0], [1.0]), inscape.Segment([-1.0], [0.5])]
    others = [step_at(0.1 * k) for k in range(5)]
    compare([counted, others[0]], probes, n_jobs=1)
    of_two = sum(seen)
    seen.clear()
    several = compare([counted, *others], probes, n_jobs=1)
    assert of_two <= sum(seen) < 2.5 * of_two  # classes are matched with each other model
    assert several[0].disagreement[0, 1] == compare(counted, others[0], probes[0]).disagreement


def test_what_several_models_cannot_be():
    patch = inscape.Patch.through(X[:3])
    with pytest.raises(ModelError, match="give at least two"):
        compare([net(0)], patch)
    with pytest.raises(ProbeError, match=r"there is no probe: give compare\(a, b, probe\)"):
        compare(3, patch)
    with pytest.raises(ModelError, match="as a dictionary of models by name"):
        compare([net(0), net(1)], patch, names=("a", "b"))
    with pytest.raises(PartitionError, match="no model is called 'c': there are a, b"):
        compare({"a": net(0), "b": net(1)}, patch).between("a", "c")
    with pytest.raises(PartitionError, match="not compared with itself"):
        compare({"a": net(0), "b": net(1)}, patch).between("a", "a")


def test_churn_is_the_disagreement_with_the_last_look_and_with_the_first():
    nets = [net(0), net(1), net(2)]
    monitor = inscape.Monitor(X, measures={"churn": {"n_probes": 8}}, every=1, n_points=None, random_state=5)
    live = copy.deepcopy(nets[0])
    for step, state in enumerate(nets):
        live.load_state_dict(state.state_dict())
        monitor.step(live, step)
    rows = monitor.rows
    assert rows[0]["churn"] is None
    assert rows[0]["churn_first"] is None
    probes = inscape.sample_probes(monitor.x, n=8, random_state=5)
    differ = {
        (i, j): np.mean([d.disagreement for d in compare(nets[i], nets[j], list(probes))])
        for i, j in ((0, 1), (1, 2), (0, 2))
    }
    assert rows[1]["churn"] == pytest.approx(differ[0, 1])
    assert rows[1]["churn_first"] == pytest.approx(differ[0, 1])
    assert rows[2]["churn"] == pytest.approx(differ[1, 2])
    assert rows[2]["churn_first"] == pytest.approx(differ[0, 2])
    assert monitor.settings["churn"]["n_probes"] == 8
    assert {"churn", "churn_first"} <= set(monitor.to_frame().columns)
    monitor.plot()


def test_churn_of_a_model_that_stays_is_zero_and_settings_are_checked():
    monitor = inscape.Monitor(X, measures=["churn", "total_variation"], every=1)
    for step in range(2):
        monitor.step(net(0), step)
    assert monitor.rows[1]["churn"] == 0.0
    assert "total_variation" in monitor.rows[1]
    with pytest.raises(MeasureError, match=r"unknown setting of churn 'probes'.*did you mean 'n_probes'"):
        inscape.Monitor(X, measures={"churn": {"probes": 3}})


def test_the_picture_counts_probes():
    ax = inscape.agreement(step_at(0.4), step_at(0.6), [[0.0], [1.0]], n_probes=5, random_state=0).plot()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("share of agreement", "probes")
