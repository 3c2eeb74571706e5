"""Every measure has the value that it has outside, whatever the caller has switched off."""

import numpy as np
import pytest
import torch
from torch import nn

import inscape
from inscape.errors import DataError
from inscape.measures.local_complexity import density_map
from inscape.training import Recipe, train
from inscape.training.many import train_many
from inscape.training.networks import mlp

X = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int)
ATTACK = {"eps": 0.3, "steps": 3, "step_size": 0.1, "random_state": 0}
PATCH = inscape.Patch(np.zeros(4), np.eye(4)[:2])


def relu_net():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2)
    )
    return net.train()


def smooth_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def conv_net():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Unflatten(1, (1, 2, 2)), nn.Conv2d(1, 3, 2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(27, 2)
    )


ONCE = {"random_state": 0}
NOISE = {"sigma": 0.1, "n_noise": 2, "random_state": 0}
ALL = {
    "local_complexity": {"sigma": 0.1, "n_noise": 2},
    "local_rank": {},
    "total_variation": {},
    "sharpness": {},
    "adversarial_accuracy": {},
    "accuracy": {},
}
MEASURES = {
    "region_count": lambda n: inscape.region_count(n, X, n_probes=5, **ONCE).mean,
    "linear_regions": lambda n: inscape.linear_regions(n, inscape.Segment(X[0], X[1])).n_linear,
    "plane": lambda n: inscape.linear_regions(n, PATCH).n_regions,
    "local_complexity": lambda n: inscape.local_complexity(n, X, **NOISE).value,
    "density_map": lambda n: density_map(n, PATCH, 5, **NOISE).density.sum(),
    "local_rank": lambda n: inscape.local_rank(n, X, eps=1e-3).value,
    "local_rank, smooth": lambda n: inscape.local_rank(smooth_net(), X, eps=1e-3).value,
    "total_variation": lambda n: inscape.total_variation(n, X).value,
    "total_variation, smooth": lambda n: inscape.total_variation(smooth_net(), X).value,
    "total_variation, noise": lambda n: inscape.total_variation(n, X, **NOISE).value,
    "hull_crossings": lambda n: inscape.hull_crossings(n, X, radius=0.5, n_directions=2, **ONCE).value,
    "sharpness": lambda n: inscape.sharpness(n, X, Y).value,
    "sharpness, lanczos": lambda n: inscape.sharpness(n, X, Y, method="lanczos", **ONCE).value,
    "margin": lambda n: inscape.margin(n, X, Y).value,
    "margin, gradient": lambda n: inscape.margin(n, X, Y, normalise="gradient").value,
    "margin, spectral": lambda n: inscape.margin(n, X, Y, normalise="spectral").value,
    "spectral_norm": lambda n: inscape.spectral_norm(n, X).value,
    "spectral_norm, conv": lambda n: inscape.spectral_norm(conv_net(), X).value,
    "path_norm": lambda n: inscape.path_norm(n, X).value,
    "path_norm, p=2": lambda n: inscape.path_norm(conv_net(), X, p=2).value,
    "adversarial_accuracy": lambda n: inscape.adversarial_accuracy(n, X, Y, **ATTACK).value,
    "measure": lambda n: [r["value"] for r in inscape.measure(n, X, Y, measures=ALL, **ONCE).rows],
    "monitor": lambda n: [v for k, v in inscape.Monitor(X, Y).record(n, 0).items() if k != "seconds"],
    "check_all": lambda n: [
        (c.name, c.verdict, c.lhs) for c in inscape.theory.check_all(n, X, Y, n_noise=2, **ONCE)
    ],
}
CONTEXTS = {"no_grad": torch.no_grad, "inference_mode": torch.inference_mode}


@pytest.fixture(params=CONTEXTS)
def switched_off(request):
    return CONTEXTS[request.param]


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_has_the_same_value(name, switched_off):
    outside = MEASURES[name](relu_net())
    with switched_off():
        inside = MEASURES[name](relu_net())  # made here, too
        modes = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    assert inside == outside or inside == pytest.approx(outside, rel=1e-12, nan_ok=True)
    assert modes == (False, switched_off is torch.inference_mode)
    assert torch.is_grad_enabled()


def test_what_is_kept_of_a_model_can_be_differentiated_later(switched_off):
    model = inscape.wrap(relu_net())
    with switched_off():
        inscape.region_count(model, X, n_probes=3, random_state=0)
        assert model.structure == "piecewise-affine"
    assert inscape.total_variation(model, X).value == inscape.total_variation(relu_net(), X).value


def test_an_error_gives_the_mode_back(switched_off):
    with switched_off():
        with pytest.raises(DataError):
            inscape.sharpness(relu_net(), X, Y + 5)
        assert not torch.is_grad_enabled()


def test_training_learns(switched_off):
    nets, recipe = [mlp(4, (6,), 2, random_state=0) for _ in range(4)], Recipe(0.1, 5, 2)
    train(nets[0], X, Y, recipe, random_state=0)
    train_many([nets[2]], X, Y, [recipe], random_states=[0])
    with switched_off():
        train(nets[1], torch.tensor(X), torch.tensor(Y), recipe, random_state=0)
        train_many([nets[3]], X, Y, [recipe], random_states=[0])
    for i in (0, 2):
        for p, q in zip(nets[i].parameters(), nets[i + 1].parameters(), strict=True):
            assert torch.equal(p, q)


def test_a_network_made_in_inference_mode_cannot_be_trained():
    with torch.inference_mode(), pytest.raises(DataError, match=r"made in torch\.inference_mode"):
        train(mlp(4, (6,), 2, random_state=0), X, Y, Recipe(0.1, 5, 2), random_state=0)
