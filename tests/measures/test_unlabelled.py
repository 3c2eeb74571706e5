"""What predictions say of themselves: closed forms, and scikit-learn's own probabilities."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier

import inscape
from inscape.errors import MeasureError, NotApplicableError
from inscape.measures import Agreement, Confidence, NuclearNorm, PredictionEntropy, agreement
from inscape.measures.unlabelled import are_probabilities, as_probabilities


@pytest.fixture
def forest(digits):
    x = digits.x.reshape(len(digits.x), -1)
    return RandomForestClassifier(20, max_depth=5, random_state=0).fit(x[:600], digits.y[:600]), x[600:900]


def test_probabilities_of_a_forest_are_scikit_learns(forest):
    model, x = forest
    p = model.predict_proba(x)
    assert inscape.confidence(model, x).value == pytest.approx(p.max(axis=1).mean())
    assert inscape.confidence(model, x).settings == {"scores": "probabilities"}
    entropy = -(np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0)).sum(axis=1) / np.log(10)
    assert inscape.prediction_entropy(model, x).value == pytest.approx(entropy.mean())
    norm = np.linalg.norm(p, "nuc") / np.sqrt(len(p) * 10)
    assert inscape.nuclear_norm(model, x).value == pytest.approx(norm)


def test_logits_become_probabilities_by_softmax():
    torch.manual_seed(0)
    net, x = torch.nn.Linear(4, 3), torch.randn(50, 4)
    p = torch.softmax(net(x).double(), 1).detach().numpy()
    assert inscape.confidence(net, x).value == pytest.approx(p.max(axis=1).mean(), rel=1e-6)
    assert inscape.nuclear_norm(net, x).value == pytest.approx(
        np.linalg.norm(p, "nuc") / np.sqrt(150), rel=1e-6
    )
    one = torch.nn.Linear(4, 1)
    q = torch.sigmoid(one(x)).detach().numpy()
    assert inscape.confidence(one, x).value == pytest.approx(np.maximum(q, 1 - q).mean(), rel=1e-6)


def test_temperature_changes_confidence_and_no_prediction():
    torch.manual_seed(0)
    net, x = torch.nn.Linear(4, 3), torch.randn(50, 4)
    cold = torch.nn.Sequential(net, torch.nn.Linear(3, 3, bias=False))
    cold[1].weight.data = 10 * torch.eye(3)
    assert inscape.confidence(cold, x).value > inscape.confidence(net, x).value
    assert agreement(cold, x, others=[net]).value == 1.0


def test_one_class_for_all_points_is_confident_and_not_spread():
    def always(x):
        return np.tile([1.0, 0.0, 0.0, 0.0], (len(x), 1))

    x = np.zeros((100, 2))
    assert inscape.confidence(always, x).value == 1.0
    assert inscape.prediction_entropy(always, x).value == 0.0
    assert inscape.nuclear_norm(always, x).value == pytest.approx(0.5)  # sqrt(n) of at most sqrt(4 n)


def test_agreement_is_the_share_of_equal_labels(forest):
    model, x = forest
    others = [lambda x: np.zeros(len(x), int), model]
    result = agreement(model, x, others=others)
    zeros = (model.predict(x) == 0).mean()
    assert result.shares.tolist() == [zeros, 1.0]
    assert result.value == pytest.approx((1 + zeros) / 2)


def test_in_the_table_and_in_a_ranking(forest):
    model, x = forest
    table = inscape.measure(
        model, x, measures=["confidence", "nuclear_norm", "prediction_entropy", "agreement"]
    )
    assert table["confidence"]["value"] == inscape.confidence(model, x).value
    assert "needs the setting others" in table["agreement"]["note"]
    labels_only = inscape.wrap(lambda x: (x[:, 20] > 0.5).astype(int))
    ranking = inscape.rank({"forest": model, "again": model}, x, n_probes=5, random_state=0)
    assert ranking.unlabelled["agreement"] == {"forest": 1.0, "again": 1.0}
    row = ranking.rows()[0]
    assert row["confidence"] == pytest.approx(table["confidence"]["value"])
    assert inscape.measures.Ranking.from_dict(ranking.to_dict()).unlabelled == ranking.unlabelled
    mixed = inscape.rank({"a": labels_only, "b": labels_only}, x, n_probes=5, random_state=0)
    assert mixed.rows()[0]["confidence"] is None


@pytest.mark.parametrize(
    ("function", "kind", "settings"),
    [
        (inscape.confidence, Confidence, {}),
        (inscape.prediction_entropy, PredictionEntropy, {}),
        (inscape.nuclear_norm, NuclearNorm, {}),
        (agreement, Agreement, {"others": [lambda x: x]}),
    ],
)
def test_there_and_back(function, kind, settings):
    result = function(lambda x: x, np.eye(3), **settings)
    again = kind.from_dict(result.to_dict())
    assert again.to_dict() == result.to_dict()


def test_what_cannot_be():
    x = np.zeros((3, 1))
    with pytest.raises(NotApplicableError, match="has labels only"):
        inscape.confidence(lambda x: np.zeros(len(x), int), x)
    with pytest.raises(MeasureError, match="unknown scores 'votes'"):
        inscape.nuclear_norm(lambda x: np.ones((len(x), 2)), x, scores="votes")
    with pytest.raises(MeasureError, match="names no models"):
        agreement(lambda x: np.zeros(len(x), int), x, others=[])


def test_scores_are_probabilities_only_if_they_sum_to_one():
    assert are_probabilities(np.array([[0.25, 0.75], [1.0, 0.0]]))
    assert not are_probabilities(np.array([[0.25, 0.75], [1.0, 0.1]]))
    assert not are_probabilities(np.array([[2.0, -1.0]]))
    assert as_probabilities(np.array([[1000.0, 0.0]]), "logits").tolist() == [[1.0, 0.0]]


def test_each_has_a_picture():
    def votes(x):
        return np.column_stack([x[:, 0], 1 - x[:, 0]])

    x = np.linspace(0, 1, 9)[:, None]
    assert inscape.confidence(votes, x).plot().get_xlabel() == "largest probability"
    assert inscape.prediction_entropy(votes, x).plot().get_xlabel() == "entropy"
    assert len(inscape.nuclear_norm(votes, x).plot().patches) == 2
    bars = agreement(votes, x, others=[votes, lambda x: 1 - votes(x)]).plot(title="mine").patches
    assert [bar.get_height() for bar in bars] == pytest.approx([1.0, 1 / 9])  # a tie is class 0 for both
