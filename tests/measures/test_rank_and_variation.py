"""Local rank and total variation against the singular values and the norm of known Jacobians."""

import json

import numpy as np
import pytest
import torch
from networks import mlp
from noisy import GraphModel, perturbed
from sklearn.tree import DecisionTreeClassifier
from torch import nn
from zoo import make, shape_of

import inscape
from inscape.errors import MeasureError, NotApplicableError
from inscape.measures import LocalRank, TotalVariation
from inscape.measures.jacobian.forward import unit_layers
from inscape.measures.jacobian.passes import Draws


def brute_variation(net, x, winner=False):
    found = []
    for point in x:
        j = torch.autograd.functional.jacobian(lambda p: net(p[None])[0], point).flatten(1)
        found.append(float((j[net(point[None])[0].argmax()] if winner else j).norm()))
    return np.array(found)


@pytest.mark.parametrize("name", ["mlp", "cnn", "resnet18", "vgg", "unet"])
def test_total_variation_is_the_norm_of_the_jacobian(name):
    net = make(name).double()
    x = torch.randn(3, *shape_of(name), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    model = inscape.wrap(net, input_shape=shape_of(name))
    r = inscape.total_variation(model, x)
    np.testing.assert_allclose(r.norms, brute_variation(net, x), rtol=1e-9)
    assert r.value == pytest.approx(r.norms.mean())
    winning = inscape.total_variation(model, x, of="predicted")
    np.testing.assert_allclose(winning.norms, brute_variation(net, x, winner=True), rtol=1e-9)


class Smooth(nn.Module):
    """Differentiable, not piecewise affine."""

    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b, self.c = nn.Linear(4, 6), nn.LayerNorm(6), nn.Linear(6, 2), nn.Linear(2, 3)

    def forward(self, x):
        return self.c(torch.tanh(self.b(nn.functional.gelu(self.norm(self.a(x))))))


def test_any_differentiable_module():
    net, x = Smooth().double(), torch.randn(5, 4, dtype=torch.float64)
    np.testing.assert_allclose(inscape.total_variation(net, x).norms, brute_variation(net, x), rtol=1e-10)
    r = inscape.local_rank(net, x, eps=1e-9)
    assert r.layers == ("a", "b")
    assert r.per_layer.tolist() == [4.0, 2.0]
    assert r.method == "reverse differentiation"


@pytest.mark.parametrize("eps", [1e-6, 0.05, 0.3])
def test_local_rank_counts_singular_values(eps):
    net = nn.Sequential(
        nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2)
    )
    net.double()
    x = torch.randn(1, 2, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    r = inscape.local_rank(net, x, eps=eps)
    for k, stop in ((0, 1), (1, 3)):
        values = net[:stop](x.requires_grad_()).flatten(1)
        grads = [torch.autograd.grad(v, x, retain_graph=True)[0].flatten() for v in values[0]]
        expected = int((torch.linalg.svdvals(torch.stack(grads)) >= eps).sum())
        assert r.per_layer[k] == expected


def test_rank_of_known_matrices():
    net = nn.Sequential(
        nn.Linear(3, 4, bias=False), nn.ReLU(), nn.Linear(4, 4, bias=False), nn.ReLU(), nn.Linear(4, 1)
    )
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[2.0, 0, 0], [0, 1.0, 0], [0, 0, 0.1], [0, 0, 0]]))
        net[2].weight.copy_(torch.eye(4))
    x = torch.tensor([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0]])
    r = inscape.local_rank(net, x, eps=0.5)
    assert r.ranks.tolist() == [[2.0, 2.0], [2.0, 1.0]]
    assert inscape.local_rank(net, x, eps=0.05).per_layer.tolist() == [3.0, 2.5]


def test_with_noise_both_are_means_over_noisy_networks():
    net, x = mlp(3, 6, 6, 2).double(), np.random.default_rng(0).normal(size=(8, 3))
    graph = inscape.wrap(net).graph((3,)).cast(torch.float64)
    layers, draws = unit_layers(graph), Draws(0.7, 5, "bias", 4)
    copies = [GraphModel(perturbed(graph, layers, draws.biases(k, layers, torch.float64))) for k in range(5)]
    noise = {"sigma": 0.7, "n_noise": 5, "random_state": 4}
    one_by_one = [inscape.total_variation(m, x).value for m in copies]
    assert inscape.total_variation(net, x, **noise).value == pytest.approx(np.mean(one_by_one), rel=1e-12)
    ranks = [inscape.local_rank(m, x, eps=0.4).per_layer for m in copies]
    np.testing.assert_allclose(inscape.local_rank(net, x, eps=0.4, **noise).per_layer, np.mean(ranks, axis=0))
    assert np.std(one_by_one) > 0.01


def test_results_are_plain():
    net, x = mlp(3, 4, 2), np.random.default_rng(0).normal(size=(6, 3))
    for cls, r in (
        (LocalRank, inscape.local_rank(net, x, eps=0.1)),
        (TotalVariation, inscape.total_variation(net, x)),
    ):
        again = cls.from_dict(json.loads(json.dumps(r.to_dict(), allow_nan=False)))
        assert (again.value, again.interval, again.settings) == (r.value, r.interval, r.settings)
        assert r.plot().get_title()


def test_one_point_has_no_error():
    r = inscape.total_variation(mlp(3, 4, 2), np.ones((1, 3)))
    assert np.isnan(r.std_error)
    assert TotalVariation.from_dict(r.to_dict()).to_dict() == r.to_dict()


def test_bad_requests():
    net, x = mlp(2, 3, 1), np.ones((2, 2))
    with pytest.raises(MeasureError, match=r"eps=-1 must be a positive number"):
        inscape.local_rank(net, x, eps=-1)
    with pytest.raises(MeasureError, match=r"unknown of 'score'.*did you mean 'scores'"):
        inscape.total_variation(net, x, of="score")
    with pytest.raises(
        NotApplicableError, match="needs derivatives, and DecisionTreeClassifier is a trees model"
    ):
        inscape.total_variation(DecisionTreeClassifier().fit([[0.0, 0.0], [1.0, 1.0]], [0, 1]), x)
    with pytest.raises(NotApplicableError, match="needs derivatives"):
        inscape.local_rank(lambda x: (x[:, 0] > 0).astype(int), x, eps=1)
    with pytest.raises(NotApplicableError, match="with noise is defined for networks of affine"):
        inscape.total_variation(Smooth(), np.ones((2, 4)), sigma=1.0)
    with pytest.raises(NotApplicableError, match="needs hidden layers"):
        inscape.local_rank(nn.Sequential(nn.Linear(2, 2), nn.Sigmoid(), nn.Softmax(1), nn.Tanh()), x, eps=1)


def jacobians(function, x):
    """By reverse differentiation, one point after the other, (n, outputs, d)."""
    return torch.stack([torch.autograd.functional.jacobian(function, p) for p in x])


@pytest.mark.parametrize("n_scores", [1, 3])
def test_variation_of_probabilities_and_of_the_last_hidden_layer(n_scores):
    net = mlp(5, 7, 6, n_scores, seed=3).double()
    x = torch.randn(20, 5, generator=torch.Generator().manual_seed(0)).double()

    def probabilities(p):
        scores = net(p)
        return scores.softmax(-1) if n_scores > 1 else torch.cat([scores.sigmoid(), (-scores).sigmoid()])

    expected = {"probabilities": probabilities, "hidden": net[:-2]}
    for of, function in expected.items():
        norms = jacobians(function, x).flatten(1).norm(dim=1).numpy()
        assert inscape.total_variation(net, x, of=of).norms == pytest.approx(norms, rel=1e-9)
    noisy = inscape.total_variation(net, x, of="hidden", sigma=1e-9, n_noise=2, random_state=0)
    assert noisy.value == pytest.approx(inscape.total_variation(net, x, of="hidden").value, rel=1e-6)
    with pytest.raises(NotApplicableError, match="hidden"):
        inscape.total_variation(nn.Linear(5, 2).double(), x, of="hidden")


def test_a_relative_rank_does_not_know_the_scale():
    net = mlp(5, 7, 6, 3, seed=4).double()
    x = torch.randn(12, 5, generator=torch.Generator().manual_seed(1)).double()
    values = torch.linalg.svdvals(jacobians(net[:-2], x))
    found = inscape.local_rank(net, x, eps=0.3, relative=True)
    assert found.ranks[:, -1] == pytest.approx((values >= 0.3 * values[:, :1]).sum(dim=1).double().numpy())
    scaled = make_scaled(1e-6)
    assert (
        inscape.local_rank(scaled, x, eps=0.3, relative=True).per_layer.tolist() == found.per_layer.tolist()
    )
    assert inscape.local_rank(scaled, x, eps=0.3).per_layer.tolist() == [0.0, 0.0]
    curved = nn.Sequential(net[0], nn.Tanh(), net[2]).double()
    by_hand = torch.linalg.svdvals(jacobians(curved[:1], x))
    ranks = inscape.local_rank(curved, x, eps=0.3, relative=True).ranks[:, 0]
    assert ranks == pytest.approx((by_hand >= 0.3 * by_hand[:, :1]).sum(dim=1).double().numpy())
    dead = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)).double()
    nn.init.zeros_(dead[0].weight)
    assert inscape.local_rank(dead, x[:, :2], eps=0.3, relative=True).value == 0
    with pytest.raises(MeasureError, match="at most 1"):
        inscape.local_rank(net, x, eps=2, relative=True)


def make_scaled(factor):
    """The network with the first layer's weights and biases scaled; relu passes a factor on."""
    copied = mlp(5, 7, 6, 3, seed=4).double()
    with torch.no_grad():
        copied[0].weight.mul_(factor)
        copied[0].bias.mul_(factor)
        copied[2].bias.mul_(factor)
    return copied
