"""What a first look tells of a model."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from torch import nn

import inscape
from inscape import Patch, Segment, Simplex, decision_regions
from inscape.errors import InscapeWarning
from inscape.partition.decision.adaptive.answers import N_POINTS, try_out

SQUARE = Patch([0.0, 0.0], np.eye(2))
LINE = Segment([-1.0, -1.0], [1.0, 0.8])


@pytest.fixture(scope="module")
def data():
    x = np.random.default_rng(0).uniform(-1, 1, size=(300, 2))
    return x, (np.linalg.norm(x, axis=1) > 0.7).astype(int) + (x[:, 0] > 0.5)


def tried(model, probes=(LINE,)):
    return try_out(inscape.wrap(model), list(probes))


@pytest.mark.parametrize(
    "model", [RandomForestClassifier(random_state=0), KNeighborsClassifier()], ids=["forest", "neighbours"]
)
def test_piecewise_constant_scores_are_seen(data, model):
    model.fit(*data)
    trial = tried(model)
    assert (trial.rule, trial.reason) == ("steps", "the scores are piecewise constant")
    p = decision_regions(model, LINE, method="adaptive")
    truth = decision_regions(model, LINE, method="grid", resolution=5000)
    assert p.n_evaluations < 400
    rest = iter(truth.labels.tolist())
    assert all(label in rest for label in p.labels.tolist())
    wide = np.diff(np.concatenate([[0.0], truth.boundaries, [1.0]])) > 1 / 150
    assert p.n_regions >= wide.sum()


def test_smooth_scores_are_used(data):
    for model in (
        LogisticRegression().fit(*data),
        nn.Sequential(nn.Linear(2, 5), nn.GELU(), nn.Linear(5, 3)),
    ):
        assert tried(model).rule == "scores"
    assert tried(LogisticRegression().fit(*data)).as_logarithms is False
    assert tried(nn.Sequential(nn.Linear(2, 3), nn.Softmax(dim=1))).as_logarithms is True


def test_labels_without_scores_are_seen():
    trial = tried(lambda x: (x[:, 0] > 0).astype(int))
    assert (trial.rule, trial.reason) == ("labels", "the model has no scores")


def test_a_label_that_is_not_the_highest_score_is_believed():
    class Contrary(LogisticRegression):
        def predict(self, x):
            return self.classes_[self.decision_function(x).argmin(axis=1)]

    x = np.random.default_rng(0).normal(size=(60, 2))
    model = Contrary().fit(x, np.arange(60) % 3)
    assert tried(model).reason == "the label is not that of the highest score"
    p = decision_regions(model, LINE, method="adaptive")
    assert p.labels.tolist() == decision_regions(model, LINE, method="grid", resolution=2000).labels.tolist()


class LeftOn(nn.Module):
    """Dropout that does not ask whether the module is being trained."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 3)

    def forward(self, x):
        return F.dropout(self.linear(x), 0.5, training=True)


@pytest.mark.parametrize("probe", [LINE, SQUARE, Simplex(np.eye(3)[:, :2] + 0.1)])
def test_a_model_that_is_not_deterministic_is_reported_and_costs_little(probe):
    with pytest.warns(InscapeWarning, match="LeftOn is not deterministic, as with dropout left on"):
        p = decision_regions(LeftOn(), probe, method="adaptive")
    assert p.status.startswith("not deterministic")
    assert p.n_evaluations < 400


def test_a_region_count_of_it_says_so_too(data):
    with pytest.warns(InscapeWarning, match="not deterministic"):
        r = inscape.region_count(LeftOn(), data[0], method="adaptive", n_probes=5, random_state=0)
    assert r.status.startswith("not deterministic")


def test_noisy_labels_are_not_deterministic():
    rng = np.random.default_rng(0)
    with pytest.warns(InscapeWarning, match="not deterministic"):
        assert not tried(lambda x: rng.integers(2, size=len(x))).is_deterministic


def test_rounding_that_depends_on_the_batch_is_not_randomness():
    def scores(x):
        return np.column_stack([x[:, 0], x[:, 1]]) * (1 + 1e-6 * (len(x) % 7))

    assert tried(scores).is_deterministic


def test_the_trial_is_paid_for_by_the_first_probes(rng):
    probes = inscape.sample_probes(rng.normal(size=(30, 2)), n=20, random_state=0)
    net = nn.Linear(2, 2).double()
    found = decision_regions(net, probes, method="adaptive")
    extra = [p.n_evaluations - len(p.samples) for p in found]
    assert extra == [3] * N_POINTS + [0] * 12
    assert sum(extra) == 3 * N_POINTS
    with torch.no_grad():
        assert decision_regions(net, probes[0], method="adaptive").n_evaluations >= 3 * N_POINTS
