"""Sharpness against dense Hessians and linear least squares."""

import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from networks import cnn, mlp
from torch import nn

import inscape
from inscape.errors import DataError, MeasureError, NotApplicableError
from inscape.measures import Sharpness


def dense_hessian(net, loss):
    """The Hessian by differentiating each entry of the gradient."""
    params = list(net.parameters())
    grads = torch.autograd.grad(loss, params, create_graph=True)
    flat = torch.cat([g.reshape(-1) for g in grads])
    rows = []
    for g in flat:
        row = torch.autograd.grad(g, params, retain_graph=True, allow_unused=True)
        rows.append(
            torch.cat(
                [
                    (torch.zeros_like(p) if r is None else r).reshape(-1)
                    for r, p in zip(row, params, strict=True)
                ]
            )
        )
    return torch.stack(rows).detach().numpy()


@pytest.mark.parametrize("method", ["dense", "lanczos"])
def test_linear_least_squares(method):
    x, y = np.random.default_rng(0).normal(size=(50, 6)), np.random.default_rng(1).normal(size=50)
    net = nn.Linear(6, 1)
    r = inscape.sharpness(net, x, y, loss="mse", k=3, method=method, tolerance=1e-9)
    design = np.concatenate([x, np.ones((50, 1))], axis=1)
    expected = np.linalg.eigvalsh(design.T @ design / 50)[::-1]
    np.testing.assert_allclose(r.eigenvalues, expected[:3], rtol=1e-8)
    assert r.converged
    assert r.residuals.max() < 1e-7 * r.value


@pytest.mark.parametrize("loss", ["cross_entropy", "mse"])
def test_small_nets_against_the_dense_hessian(loss):
    net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)).double()
    x = torch.randn(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y = torch.arange(20) % 3
    if loss == "mse":
        value = 0.5 * (net(x) - F.one_hot(y, 3)).square().sum() / 20
    else:
        value = F.cross_entropy(net(x), y)
    expected = np.linalg.eigvalsh(dense_hessian(net, value))[::-1][:4]
    for options in (
        {},
        {"method": "lanczos", "tolerance": 1e-10},
        {"batch_size": 7},
        {"method": "lanczos", "batch_size": 6},
    ):
        r = inscape.sharpness(net, x, y, loss=loss, k=4, **options)
        np.testing.assert_allclose(r.eigenvalues, expected, rtol=1e-9, atol=4e-6 * expected[0])
        assert r.n_parameters == sum(p.numel() for p in net.parameters())


def test_convolution_and_own_loss():
    net = cnn((1, 2, 1), 2).double()
    x, y = torch.randn(4, 3, 32, 32, dtype=torch.float64), torch.tensor([0, 1, 1, 0])
    expected = np.linalg.eigvalsh(dense_hessian(net, F.cross_entropy(net(x), y)))[-1]
    assert inscape.sharpness(net, x, y).value == pytest.approx(expected, rel=1e-8)
    own = inscape.sharpness(net, x, y, loss=F.cross_entropy)
    assert own.value == pytest.approx(expected, rel=1e-8)
    assert own.settings["loss"] == "cross_entropy"


def test_gram_form_at_an_interpolating_minimum():
    """There the Hessian of 1/(2n) sum (f - y)^2 is Phi' Phi / n, with the spectrum of the Gram matrix."""
    net = mlp(2, 12, 1, seed=3).double()
    x = torch.randn(9, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y = net(x).detach()[:, 0].numpy()
    rows = [
        torch.cat([g.reshape(-1) for g in torch.autograd.grad(net(p[None])[0, 0], list(net.parameters()))])
        for p in x
    ]
    phi = torch.stack(rows).numpy()
    expected = np.linalg.eigvalsh(phi @ phi.T / 9)[::-1]
    r = inscape.sharpness(net, x, y, loss="mse", k=3)
    np.testing.assert_allclose(r.eigenvalues, expected[:3], rtol=1e-9)


def test_rescaling_neurons_changes_sharpness_and_not_the_regions():
    net, x = mlp(2, 8, 8, 2, seed=1).double(), np.random.default_rng(0).normal(size=(30, 2))
    y = inscape.wrap(net).labels(x)
    before = inscape.sharpness(net, x, y).value
    regions = inscape.region_count(net, x, random_state=0)
    segment = inscape.Segment([-3.0, 1.0], [3.0, 0.5])
    pieces = inscape.linear_regions(net, segment)
    with torch.no_grad():
        net[0].weight *= 10
        net[0].bias *= 10
        net[2].weight /= 10
    assert inscape.sharpness(net, x, y).value > 5 * before
    assert inscape.region_count(net, x, random_state=0).counts.tolist() == regions.counts.tolist()
    np.testing.assert_allclose(inscape.linear_regions(net, segment).knots, pieces.knots, atol=1e-9)


def test_one_score_and_probabilities():
    net, x = mlp(3, 4, 1).double(), torch.randn(12, 3, dtype=torch.float64)
    y = torch.arange(12) % 2
    loss = F.binary_cross_entropy_with_logits(net(x)[:, 0], y.double())
    expected = np.linalg.eigvalsh(dense_hessian(net, loss))[-1]
    assert inscape.sharpness(net, x, y).value == pytest.approx(expected, rel=1e-8)
    with_head = nn.Sequential(net, nn.Sigmoid())
    assert inscape.sharpness(with_head, x, y).value == pytest.approx(expected, rel=1e-6)
    many = mlp(3, 4, 3).double()
    a, b = inscape.sharpness(many, x, y), inscape.sharpness(nn.Sequential(many, nn.Softmax(dim=1)), x, y)
    assert a.value == pytest.approx(b.value, rel=1e-6)


def test_many_points_start_from_a_part_of_them():
    net, x = mlp(5, 9, 3, seed=2).double(), np.random.default_rng(0).normal(size=(1200, 5))
    y = np.random.default_rng(1).integers(3, size=1200)
    dense = inscape.sharpness(net, x, y, k=2, method="dense")
    for tol in (1e-2, 1e-8):
        r = inscape.sharpness(net, x, y, k=2, method="lanczos", tolerance=tol, random_state=0)
        assert r.converged
        assert (np.abs(r.eigenvalues - dense.eigenvalues) <= np.maximum(r.residuals, 1e-12)).all()
        assert r.residuals.max() <= 2 * tol * r.value


def test_without_convergence_the_status_says_so():
    net, x = mlp(10, 30, 30, 3).double(), np.random.default_rng(0).normal(size=(40, 10))
    r = inscape.sharpness(net, x, np.arange(40) % 3, max_products=5, tolerance=1e-9, k=5, random_state=0)
    assert not r.converged
    assert "not converged" in r.status
    assert (r.residuals > 0).all()
    best = inscape.sharpness(net, x, np.arange(40) % 3, k=5, tolerance=1e-9, random_state=0)
    assert best.converged
    assert r.value <= best.value * (1 + 1e-9)
    assert best.n_products < 200


def test_single_precision_module_and_provenance():
    net, x = mlp(4, 6, 2), np.random.default_rng(0).normal(size=(10, 4))
    grads = net[0].weight.grad
    r = inscape.sharpness(net.train(), x, [0, 1] * 5)
    assert r.provenance.dtype == "float64"
    assert net.training
    assert net[0].weight.grad is grads is None
    rough = inscape.sharpness(
        net, x, [0, 1] * 5, precision="float32", method="lanczos", tolerance=1e-4, random_state=0
    )
    assert rough.value == pytest.approx(r.value, rel=1e-3)
    again = Sharpness.from_dict(json.loads(json.dumps(r.to_dict(), allow_nan=False)))
    np.testing.assert_array_equal(again.eigenvalues, r.eigenvalues)
    assert r.plot().get_xlabel() == "rank"


def test_bad_requests():
    net, x = mlp(2, 3, 2), np.ones((4, 2))
    with pytest.raises(NotApplicableError, match="needs y"):
        inscape.sharpness(net, x)
    with pytest.raises(MeasureError, match=r"unknown loss 'mes'.*did you mean 'mse'"):
        inscape.sharpness(net, x, [0, 1, 0, 1], loss="mes")
    with pytest.raises(NotApplicableError, match="needs the parameters of a torch module"):
        inscape.sharpness(lambda x: x, x, [0, 1, 0, 1])
    with pytest.raises(DataError, match=r"y holds class 2, but Sequential has scores for 2 classes"):
        inscape.sharpness(net, x, [0, 1, 2, 1])
    with pytest.raises(DataError, match=r"give \(n, 2\)"):
        inscape.sharpness(net, x, [0.5, 1.0, 2.0, 1.0], loss="mse")
    with pytest.raises(MeasureError, match="k=99 is more than the 17 parameters"):
        inscape.sharpness(net, x, [0, 1, 0, 1], k=99)
    with pytest.raises(DataError, match="y has 2 rows for 4 points"):
        inscape.sharpness(net, x, np.ones((2, 2)), loss="mse")
