"""Each rule against its own words at many points, on both sides of every boundary that is reported."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

import inscape
from inscape.errors import InscapeWarning, ModelError, PartitionError
from inscape.models.decision_rules import (
    MOST_SIGNS,
    Argmin,
    Levels,
    Signs,
    Threshold,
    inverse_of,
    rule_of,
)


class Negated(nn.Module):
    def forward(self, x):
        return -x


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 12), nn.ReLU(), nn.Linear(12, 5))


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).normal(size=(60, 3)) * 3


SEGMENTS = [inscape.Segment(*np.random.default_rng(k).normal(size=(2, 3)) * 4) for k in range(6)]
PATCH = inscape.Patch(np.zeros(3), np.eye(3)[:2], bounds=((-4, 4), (-4, 4)))


def by_hand(rule, outputs):
    """The label of each row of outputs by the words of the documentation."""
    labels = []
    for row in outputs.tolist():
        if rule == "argmin":
            labels.append(row.index(min(row)))
        elif rule == "sign":
            labels.append(int("".join("1" if o > 0 else "0" for o in row), 2))
        elif isinstance(rule, list):
            labels.append(sum(level < row[0] for level in rule))
        else:
            labels.append(int(row[0] > rule))
    return labels


RULES = {
    "argmin": ({"decide": "argmin"}, "argmin"),
    "signs of five outputs": ({"decide": "sign"}, "sign"),
    "levels of one output": ({"output": (0, 2), "levels": [-0.4, -0.1, 0.2]}, [-0.4, -0.1, 0.2]),
    "a threshold": ({"output": (0, 1), "threshold": 0.05}, 0.05),
}


@pytest.mark.parametrize(("options", "rule"), RULES.values(), ids=RULES)
def test_labels_are_those_of_the_rule(net, x, options, rule):
    model = inscape.wrap(net, **options)
    outputs = model.outputs(x)
    assert model.labels(x).tolist() == by_hand(rule, outputs)
    assert len(set(model.labels(x).tolist())) > 1
    scores = model.scores(x)
    winner = scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(1)
    assert winner.tolist() == model.labels(x).tolist()
    column = options.get("output", (0, slice(None)))[1]
    with torch.no_grad():
        own = net(torch.from_numpy(x).float()).numpy().reshape(60, 5)[:, column].reshape(60, -1)
    assert np.array_equal(outputs, own)


@pytest.mark.parametrize(("options", "rule"), RULES.values(), ids=RULES)
def test_exact_boundaries_part_what_the_rule_parts(net, options, rule):
    model = inscape.wrap(copy.deepcopy(net).double(), **options)
    assert model.structure == "piecewise-affine"
    found = inscape.decision_regions(model, SEGMENTS, method="exact")
    assert sum(len(f.boundaries) for f in found) >= 2
    for segment, regions in zip(SEGMENTS, found, strict=True):
        t = np.linspace(0, 1, 4001)
        t = t[(np.abs(t[:, None] - regions.boundaries[None]) > 1e-9).all(1)]
        sides = np.concatenate([regions.boundaries - 1e-9, regions.boundaries + 1e-9, t])
        inside = regions.labels[np.searchsorted(regions.boundaries, sides)]
        assert inside.tolist() == by_hand(rule, model.outputs(segment.points(sides)))


@pytest.mark.parametrize(("options", "rule"), RULES.values(), ids=RULES)
def test_an_exact_plane_has_the_labels_of_the_rule(net, options, rule):
    model = inscape.wrap(copy.deepcopy(net).double(), **options)
    plane = inscape.decision_regions(model, PATCH, method="exact")
    assert plane.is_exact
    found = plane.subdivision
    middles = found.plane.points(found.planar.centroids())
    assert found.labels.tolist() == by_hand(rule, model.outputs(middles))
    assert len(set(found.labels.tolist())) > 1


def test_the_smallest_wins_is_the_largest_of_the_negated(net, x):
    y = np.arange(60) % 5
    lowest, negated = inscape.wrap(net, decide="argmin"), inscape.wrap(nn.Sequential(net, Negated()))
    assert (lowest.labels(x) == negated.labels(x)).all()
    assert np.array_equal(lowest.scores(x), negated.scores(x))
    for method in ("exact", "adaptive", "grid"):
        a, b = (inscape.decision_regions(m, SEGMENTS, method=method) for m in (lowest, negated))
        assert [r.labels.tolist() for r in a] == [r.labels.tolist() for r in b]
        assert np.allclose(
            np.concatenate([r.boundaries for r in a]), np.concatenate([r.boundaries for r in b])
        )
    a, b = (inscape.decision_regions(m, PATCH, method="exact") for m in (lowest, negated))
    assert a.n_regions == b.n_regions > 2
    a, b = (inscape.region_count(m, x, n_probes=10, random_state=0) for m in (lowest, negated))
    assert (a.counts == b.counts).all()
    for normalise in ("none", "gradient", "spectral"):
        a, b = (inscape.margin(m, x, y, normalise=normalise) for m in (lowest, negated))
        assert np.allclose(a.margins, b.margins)
    attack = {"eps": 0.3, "steps": 5, "step_size": 0.1, "random_state": 0}
    truth = lowest.labels(x)
    a, b = (inscape.adversarial_accuracy(m, x, truth, **attack) for m in (lowest, negated))
    assert a.value == b.value < 1.0
    a, b = (inscape.sharpness(m, x, y, random_state=0) for m in (lowest, negated))
    assert np.isclose(a.value, b.value)
    a, b = (inscape.total_variation(m, x, of="predicted").value for m in (lowest, negated))
    assert np.isclose(a, b)


def test_what_is_measured_of_the_network_itself_knows_no_rule(net, x):
    plain, cut = inscape.wrap(net), inscape.wrap(net, decide="sign")
    for measure in (
        lambda m: inscape.local_complexity(m, x[:5], sigma=1.0, n_noise=2, random_state=0),
        lambda m: inscape.local_rank(m, x[:5], eps=0.1),
        lambda m: inscape.total_variation(m, x[:5]),
        lambda m: inscape.spectral_norm(m, x[:5]),
        lambda m: inscape.path_norm(m, x[:5]),
        lambda m: inscape.sharpness(m, x[:5], np.zeros((5, 5)), loss="mse", random_state=0),
        lambda m: inscape.parameter_distance(m, net.state_dict()),
    ):
        assert measure(plain).value == measure(cut).value
    assert (
        inscape.linear_regions(cut, SEGMENTS[0]).n_linear
        == inscape.linear_regions(plain, SEGMENTS[0]).n_linear
    )


@pytest.mark.parametrize("head", [nn.Sigmoid(), nn.Sequential(nn.Sigmoid(), nn.Flatten(0))], ids=["2d", "1d"])
def test_a_threshold_behind_a_sigmoid_is_one_on_the_logit(head, x):
    torch.manual_seed(2)
    body = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
    model = inscape.wrap(nn.Sequential(body, head), threshold=0.45)
    logit = inscape.wrap(body, threshold=np.log(0.45 / 0.55))
    assert model.structure == "piecewise-affine"
    a, b = (inscape.decision_regions(m, SEGMENTS, method="exact") for m in (model, logit))
    assert np.allclose(np.concatenate([r.boundaries for r in a]), np.concatenate([r.boundaries for r in b]))
    assert sum(len(r.boundaries) for r in a) > 1
    assert (model.labels(x) == (model.outputs(x)[:, 0].astype(float) > 0.45)).all()
    attack = {"eps": 0.3, "steps": 5, "step_size": 0.1, "random_state": 0}
    truth = model.labels(x)
    a, b = (inscape.adversarial_accuracy(m, x, truth, **attack).value for m in (model, logit))
    assert a == b < 1
    with pytest.raises(PartitionError, match=r"ends in sigmoid, whose values never reach 1.5, with"):
        inscape.wrap(nn.Sequential(body, head), threshold=1.5).graph((3,))


def test_several_labels_at_once_behind_sigmoids(x):
    torch.manual_seed(3)
    body = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 3))
    model = inscape.wrap(nn.Sequential(body, nn.Sigmoid()), decide="sign")
    assert model.structure == "piecewise-affine"
    digits = (model.outputs(x) > 0.5).astype(int)
    assert model.labels(x).tolist() == (digits @ [4, 2, 1]).tolist()
    assert model.classes == ("---", "--+", "-+-", "-++", "+--", "+-+", "++-", "+++")
    a = inscape.decision_regions(model, SEGMENTS, method="exact")
    b = inscape.decision_regions(inscape.wrap(body, decide="sign"), SEGMENTS, method="exact")
    assert [r.labels.tolist() for r in a] == [r.labels.tolist() for r in b]
    own = inscape.wrap(nn.Sequential(body, nn.Sigmoid()), decide="sign", threshold=(0.3, 0.5, 0.7))
    assert own.labels(x).tolist() == ((own.outputs(x) > [0.3, 0.5, 0.7]) @ [4, 2, 1]).tolist()


def test_a_softmax_keeps_argmin_exact_and_signs_not(net, x):
    soft = nn.Sequential(net, nn.Softmax(1))
    lowest = inscape.wrap(soft, decide="argmin")
    assert lowest.structure == "piecewise-affine"
    assert (lowest.labels(x) == inscape.wrap(net, decide="argmin").labels(x)).all()
    signs = inscape.wrap(soft, decide="sign", threshold=0.2)
    assert signs.structure == "black-box"
    with pytest.raises(PartitionError, match="decided by sign behind a softmax, which it does not"):
        inscape.decision_regions(signs, SEGMENTS[0], method="exact")
    found = inscape.decision_regions(signs, SEGMENTS[0])
    assert found.method == "adaptive"


def test_a_function_decides(net, x):
    named = inscape.wrap(net, decide=lambda y: np.where(y[:, 0] > y[:, 1], "up", "down"))
    outputs = named.outputs(x)
    assert [named.classes[i] for i in named.labels(x)] == [
        "up" if a > b else "down" for a, b in outputs[:, :2]
    ]
    assert named.structure == "black-box"
    with pytest.raises(PartitionError, match=r"decided by the function <lambda>, of which nothing is known"):
        named.graph((3,))
    scored = inscape.wrap(net, decide=lambda y: y[:, ::-1])
    assert np.array_equal(scored.scores(x), outputs[:, ::-1])
    assert inscape.region_count(scored, x, n_probes=4, random_state=0).method == "adaptive"


def test_rules_tell_results_apart(net):
    wrapped = [
        inscape.wrap(net, **options)
        for options in ({}, {"decide": "argmin"}, {"decide": "sign"}, {"output": (0, 1), "threshold": 0.0})
    ]
    prints = {m.fingerprint() for m in wrapped}
    assert len(prints) == 4
    found = inscape.decision_regions(wrapped[3], SEGMENTS[0])
    assert found.provenance.decision == {"output": [0, 1], "decide": "threshold", "threshold": 0.0}
    assert inscape.decision_regions(wrapped[0], SEGMENTS[0]).provenance.decision is None
    assert type(found.provenance).from_dict(found.provenance.to_dict()) == found.provenance


def test_a_rule_behind_a_preparation(net, x):
    shown = inscape.wrap(net, decide="argmin", preprocess={"mean": 0.5, "std": 2.0})
    assert shown.structure == "piecewise-affine"
    assert (shown.labels(x) == inscape.wrap(net, decide="argmin").labels((x - 0.5) / 2)).all()
    assert shown.decision == {"decide": "argmin"}
    assert np.isclose(
        inscape.total_variation(shown, x).value,
        inscape.total_variation(inscape.wrap(net, preprocess={"mean": 0.5, "std": 2.0}), x).value,
    )


def test_levels_of_a_function_and_of_estimators(x):
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import LinearRegression

    y = x[:, 0] - 2 * x[:, 1]
    straight = LinearRegression().fit(x, y)
    model = inscape.wrap(straight, levels=[-1.0, 0.0, 2.0])
    assert (model.labels(x) == np.searchsorted([-1.0, 0.0, 2.0], straight.predict(x))).all()
    assert model.classes == ("y <= -1", "-1 < y <= 0", "0 < y <= 2", "y > 2")
    function = inscape.wrap(straight.predict, levels=[-1.0, 0.0, 2.0])
    assert (function.labels(x) == model.labels(x)).all()
    crossings = inscape.decision_regions(model, inscape.Segment([-4.0, 0, 0], [4.0, 0, 0]))
    slope, offset = straight.coef_[0], straight.intercept_
    expected = ((np.array([-1.0, 0.0, 2.0]) - offset) / slope + 4) / 8
    assert crossings.is_exact
    assert np.allclose(crossings.boundaries, expected, atol=1e-12)
    forest = inscape.wrap(RandomForestRegressor(3, random_state=0).fit(x, y), levels=[0.0])
    assert (forest.labels(x) == (forest.outputs(x)[:, 0] > 0)).all()
    with pytest.raises(ModelError, match=r"LinearRegression predicts numbers, .* levels="):
        inscape.wrap(straight)


def test_the_scores_of_an_estimator_by_the_name_of_a_method(x):
    from sklearn.linear_model import LogisticRegression

    y = (x[:, 0] > 0).astype(int)
    fitted = LogisticRegression().fit(x, y)
    careful = inscape.wrap(fitted, output=("predict_proba", 1), threshold=0.9)
    assert (careful.labels(x) == (fitted.predict_proba(x)[:, 1] > 0.9)).all()
    assert careful.decision == {"output": ["predict_proba", 1], "decide": "threshold", "threshold": 0.9}
    with pytest.raises(ModelError, match="has no method 'prdict'"):
        inscape.wrap(fitted, output="prdict", threshold=0.9)


REFUSED = {
    "an unknown rule": ({"decide": "argmix"}, "unknown decide 'argmix'.*did you mean 'argm"),
    "levels and a rule": ({"decide": "argmin", "levels": [1]}, "levels=... is a rule by itself"),
    "a threshold of argmin": (
        {"decide": "argmin", "threshold": 1},
        "threshold=1 does not go with decide='argmin'",
    ),
    "levels that fall": ({"levels": [1, 0]}, "must increase strictly"),
    "no levels": ({"levels": []}, "must be a number, or several"),
    "a text": ({"threshold": "high"}, "threshold='high' must be a number"),
    "two thresholds": ({"threshold": [1, 2]}, "several thresholds go with decide='sign'"),
    "a class": ({"decide": int}, "unknown decide"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_what_no_rule_is(options, message):
    with pytest.raises(ModelError, match=message):
        inscape.wrap(lambda x: x, **options)


def test_rules_that_do_not_fit_the_outputs():
    points = np.zeros((2, 12))
    with pytest.raises(ModelError, match=r"threshold is for one output, but <lambda> has 12"):
        inscape.wrap(lambda x: x, threshold=0).labels(points)
    with pytest.raises(ModelError, match=r"levels are for one output, but <lambda> has 12"):
        inscape.wrap(lambda x: x, levels=[0]).labels(points)
    with pytest.raises(ModelError, match=r"2\^k labels of k outputs, and <lambda> has 12: choose at most 8"):
        inscape.wrap(lambda x: x, decide="sign").labels(points)
    with pytest.raises(ModelError, match=r"2 thresholds do not fit the 3 outputs"):
        inscape.wrap(lambda x: x[:, :3], decide="sign", threshold=[0, 1]).labels(points)
    with pytest.raises(ModelError, match=r"decide='argmin' compares outputs, but <lambda> has one"):
        inscape.wrap(lambda x: x[:, :1], decide="argmin").labels(points)
    with pytest.raises(ModelError, match=r"returned scores of <U1: expected numbers"):
        inscape.wrap(lambda x: np.array(["a", "b"]), decide="argmin").labels(points)


@pytest.mark.parametrize("rule", [Argmin(), Threshold(0.3), Signs((0.1, -0.2)), Levels((-1.0, 0.5, 2.0))])
def test_scores_decide_as_the_rule_does(rule):
    k = {Threshold: 1, Levels: 1, Signs: 2, Argmin: 3}[type(rule)]
    outputs = np.random.default_rng(0).normal(size=(1000, k)) * 2
    scores = rule.scores(outputs)
    winner = (scores[:, 0] > 0) if scores.shape[1] == 1 else scores.argmax(1)
    assert (winner == rule.labels(outputs)).all()
    names = rule.class_names(k)
    assert names is None or len(names) == scores.shape[1]


def test_on_a_level_and_on_a_threshold_the_smaller_label_counts():
    assert Levels((0.5, 1.0)).labels(np.array([[0.5], [1.0]])).tolist() == [0, 1]
    assert Threshold(0.5).labels(np.array([[0.5]])).tolist() == [0]
    assert Signs((0.0,)).labels(np.array([[0.0, 1.0]])).tolist() == [1]
    assert Levels((0.5, 1.0)).scores(np.array([[0.5], [1.0]])).argmax(1).tolist() == [0, 1]


def test_close_levels_have_names_of_their_own():
    assert len(set(Levels((1.0, 1.0 + 1e-9)).class_names(1))) == 3


def test_a_rule_is_itself():
    assert rule_of(Argmin(), None, None) == Argmin()
    assert inverse_of("softmax") is None
    assert MOST_SIGNS == 8


@pytest.mark.filterwarnings("ignore::inscape.errors.InscapeWarning")
def test_an_open_threshold_of_probabilities(x):
    probabilities = inscape.wrap(lambda x: 1 / (1 + np.exp(-x[:, :2])), decide="sign")
    with pytest.warns(InscapeWarning, match="taken for probabilities"):
        labels = probabilities.labels(x)
    assert labels.tolist() == ((x[:, :2] > 0) @ [2, 1]).tolist()
