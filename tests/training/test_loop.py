import numpy as np
import torch

from inscape.training.loop import Recipe, train
from inscape.training.networks import mlp


def test_one_full_batch_step_is_a_gradient_step(rng):
    x, y = rng.normal(size=(20, 3)), rng.integers(2, size=20)
    net = mlp(3, (5,), 2, seed=0).double()
    before = [p.detach().clone() for p in net.parameters()]
    loss = torch.nn.functional.cross_entropy(net(torch.from_numpy(x)), torch.from_numpy(y))
    grads = torch.autograd.grad(loss, list(net.parameters()))
    torch.set_default_dtype(torch.float64)
    try:
        train(net, x, y, Recipe(0.1, 20, 1, momentum=0.0), seed=0)
    finally:
        torch.set_default_dtype(torch.float32)
    for p, q, g in zip(net.parameters(), before, grads, strict=True):
        assert torch.allclose(p, q - 0.1 * g, atol=1e-12)


def test_same_seed_same_weights_and_global_state_untouched(digits):
    x, y = digits.x[:100], digits.y[:100]
    state = torch.get_rng_state()
    nets = []
    for _ in range(2):
        net = mlp(64, (16,), 10, seed=1)
        train(net, x, y, Recipe(0.1, 32, 2), seed=1)
        nets.append(net)
    assert all(torch.equal(a, b) for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True))
    assert torch.equal(state, torch.get_rng_state())


def test_it_learns(digits):
    net = mlp(64, (32,), 10, seed=0)
    loss = train(net, digits.x[:300], digits.y[:300], Recipe(0.1, 32, 30), seed=0)
    assert loss < 0.05
    assert not net.training


def test_he_initialisation():
    net = mlp(1000, (500,), 10, seed=0)
    assert np.isclose(net[1].weight.std().item(), np.sqrt(2 / 1000), rtol=0.01)
    assert net[1].bias.abs().max() == 0
