"""Adversarial accuracy against margins in closed form."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from networks import mlp
from sklearn.neighbors import KNeighborsClassifier
from torch import nn

import inscape
from inscape.errors import DataError, MeasureError, NotApplicableError
from inscape.measures import AdversarialAccuracy


def linear(n_scores, seed=0):
    net = nn.Linear(5, n_scores).double()
    with torch.no_grad():
        net.weight.copy_(torch.randn(net.weight.shape, generator=torch.Generator().manual_seed(seed)))
        net.bias.copy_(torch.randn(net.bias.shape, generator=torch.Generator().manual_seed(seed + 1)) / 4)
    return net


@given(st.integers(0, 50), st.sampled_from(["linf", "l2"]), st.sampled_from([1, 2]), st.floats(0.05, 1.0))
def test_a_linear_classifier_falls_exactly_where_its_margin_says(seed, norm, n_scores, eps):
    net, x = linear(n_scores, seed), np.random.default_rng(seed).normal(size=(60, 5))
    w = net.weight.detach().numpy()
    w = w[0] if n_scores == 1 else w[1] - w[0]
    b = net.bias.detach().numpy()
    s = x @ w + (b[0] if n_scores == 1 else b[1] - b[0])
    y = np.random.default_rng(seed + 1).integers(2, size=60)
    distance = (2 * y - 1) * s / (np.abs(w).sum() if norm == "linf" else np.linalg.norm(w))
    clear = np.abs(distance - eps) > 1e-6
    # a step of eps / 5 along the sphere shrinks the tangent of the angle to the nearest point by 1.2
    r = inscape.adversarial_accuracy(
        net, x, y, eps=eps, steps=60, step_size=eps / 5, norm=norm, random_state=seed
    )
    assert (r.robust == (distance > eps))[clear].all()


def test_within_a_box_the_margin_shrinks_less():
    """One input, f = x - 0.5, points at 0.9 of class 1: with eps = 1 the box [0.6, 1] keeps them right."""
    net = nn.Linear(1, 1).double()
    with torch.no_grad():
        net.weight.fill_(1.0)
        net.bias.fill_(-0.5)
    x, y = np.full((4, 1), 0.9), np.ones(4, dtype=int)
    attack = {"eps": 1.0, "steps": 10, "step_size": 0.3, "random_state": 0}
    assert inscape.adversarial_accuracy(net, x, y, **attack).value == 0
    assert inscape.adversarial_accuracy(net, x, y, box=(0.6, 1.0), **attack).value == 1
    assert inscape.adversarial_accuracy(net, x, y, box=(0.0, 1.0), **attack).value == 0


@pytest.mark.filterwarnings("ignore:.*no better than chance:inscape.errors.InscapeWarning")
def test_without_radius_it_is_the_accuracy():
    net, x = mlp(4, 16, 3), np.random.default_rng(0).normal(size=(80, 4))
    y = np.random.default_rng(1).integers(3, size=80)
    clean = inscape.measure(net, x, y, measures="accuracy")["accuracy"]["value"]
    for norm in ("linf", "l2"):
        r = inscape.adversarial_accuracy(net, x, y, eps=0, steps=3, step_size=0.1, norm=norm)
        assert r.value == r.clean == clean


def test_larger_balls_and_more_steps_never_help_the_network():
    net, x = mlp(4, 32, 3), np.random.default_rng(0).normal(size=(100, 4))
    y = inscape.wrap(net).labels(x)
    values = [
        inscape.adversarial_accuracy(net, x, y, eps=e, steps=10, step_size=e / 4, random_start=False).value
        for e in (0.01, 0.05, 0.2, 1.0)
    ]
    assert values == sorted(values, reverse=True)
    assert values[0] > 0.9 > 0.5 > values[-1]


def test_a_sure_network_still_has_gradients():
    """Scores of size 1000 make the cross-entropy vanish in float32; the attack must not."""
    net = linear(3).float()
    x = np.random.default_rng(0).normal(size=(50, 5))
    y = inscape.wrap(net).labels(x)
    attack = {"eps": 0.3, "steps": 10, "step_size": 0.1, "random_state": 0}
    before = inscape.adversarial_accuracy(net, x, y, **attack)
    with torch.no_grad():
        net.weight *= 1000
        net.bias *= 1000
    assert before.value < 1
    assert inscape.adversarial_accuracy(net, x, y, **attack).value <= before.value + 0.04


def test_eval_mode_and_nothing_left_behind():
    net = nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.9), nn.Linear(8, 2)
    ).train()
    x = np.random.default_rng(0).normal(size=(40, 4))
    y = inscape.wrap(net).labels(x)
    before = {k: v.clone() for k, v in net.state_dict().items()}
    state = torch.get_rng_state()
    r = inscape.adversarial_accuracy(net, x, y, eps=1e-6, steps=2, step_size=1e-6, random_state=0)
    assert r.value == 1.0  # in training mode dropout would break most points
    assert all(m.training for m in net.modules())
    assert all(torch.equal(before[k], v) for k, v in net.state_dict().items())
    assert all(p.grad is None for p in net.parameters())
    assert torch.equal(state, torch.get_rng_state())


def test_result_is_plain_and_repeats():
    net, x = mlp(3, 8, 2), np.random.default_rng(0).normal(size=(30, 3))
    y = inscape.wrap(net).labels(x)
    attack = {"eps": 0.2, "steps": 3, "step_size": 0.1, "random_state": 5}
    r = inscape.adversarial_accuracy(net, x, y, **attack)
    again = AdversarialAccuracy.from_dict(json.loads(json.dumps(r.to_dict(), allow_nan=False)))
    np.testing.assert_array_equal(again.robust, r.robust)
    assert inscape.adversarial_accuracy(net, x, y, **attack).robust.tolist() == r.robust.tolist()
    assert r.interval[0] <= r.value <= r.interval[1]
    assert r.plot().get_ylim() == (0, 1)


def test_bad_requests():
    net, x, y = mlp(2, 3, 2), np.ones((4, 2)), [0, 1, 0, 1]
    attack = {"eps": 0.1, "steps": 1, "step_size": 0.1}
    with pytest.raises(MeasureError, match=r"unknown norm 'l1'"):
        inscape.adversarial_accuracy(net, x, y, norm="l1", **attack)
    with pytest.raises(MeasureError, match="eps=-1 must be"):
        inscape.adversarial_accuracy(net, x, y, **attack | {"eps": -1})
    with pytest.raises(DataError, match=r"outside of box=\(0, 0.5\)"):
        inscape.adversarial_accuracy(net, x, y, box=(0, 0.5), **attack)
    with pytest.raises(NotApplicableError, match="needs y"):
        inscape.adversarial_accuracy(net, x, **attack)
    other = KNeighborsClassifier(1).fit([[0.0, 0.0], [1.0, 1.0]], [0, 1])
    with pytest.raises(NotApplicableError, match="needs gradients, and KNeighborsClassifier is a neighbours"):
        inscape.adversarial_accuracy(other, x, y, **attack)
    with pytest.raises(DataError, match="y holds class 5"):
        inscape.adversarial_accuracy(net, x, [0, 1, 5, 1], **attack)


class _Gelu(torch.nn.Module):
    """A foreign network whose sigmoid or softmax is a function, not a layer."""

    def __init__(self, n_scores, head):
        super().__init__()
        self.inner, self.head = torch.nn.Linear(2, n_scores, bias=False), head

    def forward(self, x):
        return self.head(self.inner(torch.nn.functional.gelu(x)))


@pytest.mark.parametrize("n_scores", [1, 2])
@pytest.mark.parametrize("foreign", [False, True])
def test_a_saturated_head_hides_nothing(n_scores, foreign):
    head = torch.nn.Softmax(1) if n_scores == 2 else torch.nn.Sigmoid()
    inner = torch.nn.Linear(2, n_scores, bias=False)
    rows = [[300.0, 0.0], [-300.0, 0.0]][:n_scores]
    inner.weight.data = torch.tensor(rows)
    plain, headed = inner, torch.nn.Sequential(inner, head)
    if foreign:
        plain = _Gelu(n_scores, lambda s: s)
        headed = _Gelu(n_scores, lambda s: s.softmax(1) if n_scores == 2 else torch.sigmoid(s))
        plain.inner.weight.data = headed.inner.weight.data = inner.weight.data
    x, y = [[1.0, 0.0], [2.0, 0.0], [0.1, 0.0]], [0 if n_scores == 2 else 1] * 3
    attack = {"eps": 1.5, "steps": 10, "step_size": 0.5, "random_state": 0}
    expected = inscape.adversarial_accuracy(plain, x, y, **attack)
    found = inscape.adversarial_accuracy(headed, x, y, **attack)
    assert found.robust.tolist() == expected.robust.tolist() == [False, True, False]


@pytest.mark.parametrize("head", [torch.nn.Softmax(1), torch.nn.LogSoftmax(1), torch.nn.Sigmoid()])
def test_sharpness_of_saturated_probabilities(head):
    inner = torch.nn.Linear(2, 1 if isinstance(head, torch.nn.Sigmoid) else 2)
    inner.weight.data.mul_(2000)
    x, y = [[1.0, 0.5], [-2.0, 0.3], [0.1, 1.0], [0.0, 0.0]], [0, 0, 1, 1]
    expected = inscape.sharpness(inner, x, y).value
    assert inscape.sharpness(torch.nn.Sequential(inner, head), x, y).value == pytest.approx(expected)


def test_a_loss_that_saturates_hides_what_is_near():
    """One-hot probabilities have no gradient in float32: the attack stands still, and all points survive."""
    net = nn.Linear(2, 2)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]) * 1e4)
        net.bias.zero_()
    x, y = [[0.05, 0.0], [-0.05, 0.0]], [0, 1]
    attack = {"eps": 0.1, "steps": 5, "step_size": 0.1, "random_start": False, "random_state": 0}
    masked = inscape.adversarial_accuracy(net, x, y, loss="softmax-cross-entropy", **attack)
    assert masked.value == 1.0
    assert masked.settings["loss"] == "softmax-cross-entropy"
    assert inscape.adversarial_accuracy(net, x, y, **attack).value == 0.0
    with torch.no_grad():
        net.weight.div_(1e4)  # where it does not saturate both find the same
    assert inscape.adversarial_accuracy(net, x, y, loss="softmax-cross-entropy", **attack).value == 0.0
    with pytest.raises(MeasureError, match="loss"):
        inscape.adversarial_accuracy(net, x, y, loss="square", **attack)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_the_length_of_batches_does_not_matter(norm):
    rng = np.random.default_rng(0)
    module = torch.nn.Linear(4, 3)
    x = rng.normal(size=(50, 4))
    y = inscape.wrap(module).labels(x)
    attack = {"eps": 0.5, "steps": 2, "step_size": 0.1, "norm": norm, "random_state": 0}
    whole, short = (
        inscape.adversarial_accuracy(inscape.wrap(module, batch_size=size), x, y, **attack).robust
        for size in (64, 7)
    )
    np.testing.assert_array_equal(short, whole)
