"""What is rounding error is judged where it arises: neighbours in a batch, masks and pads change nothing."""

from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import inscape
from inscape import Segment
from inscape.errors import PartitionError

HOME = Segment([-3.0, -2.5], [3.0, 2.0])


def net(*sizes, bias=True, seed=0):
    torch.manual_seed(seed)
    layers = []
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b, bias=bias), nn.ReLU()]
    for layer in layers[::2]:
        layer.weight.data.normal_()
    return nn.Sequential(*layers[:-1]).double()


@pytest.mark.parametrize(
    "other",
    [
        Segment([0.0, 0.0], [1.0, 1.0]),
        Segment([-1e14, 1e14], [1e14, 1e14]),
        Segment([1e-9, 0.0], [2e-9, 1e-9]),
    ],
    ids=["from zero", "far away", "tiny"],
)
@pytest.mark.parametrize("bias", [True, False])
def test_other_segments_of_the_batch_change_nothing(other, bias):
    model = net(2, 30, 30, 4, bias=bias)
    alone = inscape.linear_regions(model, HOME)
    regions = inscape.decision_regions(model, HOME, method="exact")
    for batch in ([other, HOME], [other, other, other, HOME], [HOME, other], [other, HOME, other]):
        i = batch.index(HOME)
        assert inscape.linear_regions(model, batch)[i].n_regions == alone.n_regions
        again = inscape.decision_regions(model, batch, method="exact")[i]
        assert again.labels.tolist() == regions.labels.tolist()


@pytest.mark.parametrize("every", [False, True])
def test_units_that_cancel_after_a_start_at_zero(every):
    model = net(2, 30, 20, 3, bias=False, seed=3)
    w = model[0].weight.data
    w[10:20], w[20:30] = w[:10].clone(), w[:10].clone()
    v = model[2].weight.data
    n = 20 if every else 7
    v[:n, 10:20], v[:n, 20:30] = 0.2 * v[:n, :10], -1.2 * v[:n, :10]
    alone = inscape.linear_regions(model, HOME).n_regions
    batch = [Segment([0.0, 0.0], [1.0, 1.0]), HOME]
    assert inscape.linear_regions(model, batch)[1].n_regions == alone


class Masked(nn.Module):
    def __init__(self, mask, size):
        super().__init__()
        self.net, self.size = net(2, 40, 40, 5, seed=1), size
        self.register_buffer("mask", torch.tensor([0.0, 0, 0, 0, mask], dtype=torch.float64))

    def forward(self, x):
        return self.size * self.net(x) + self.mask


@pytest.mark.parametrize("mask", [-1e4, -1e9, -1e12, -1e20, -3e38])
@pytest.mark.parametrize("size", [1.0, 1e-4])
def test_a_masked_class_changes_nothing(mask, size):
    model = Masked(mask, size)
    exact = inscape.decision_regions(model, HOME, method="exact")
    grid = inscape.decision_regions(model, HOME, method="grid", resolution=20001)
    assert exact.labels.tolist() == grid.labels.tolist()
    assert exact.status == "complete"


class Padded(nn.Module):
    def __init__(self, value):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.out, self.value = nn.Conv2d(1, 4, 3), nn.Linear(36, 4), value
        self.double()

    def forward(self, x):
        z = F.max_pool2d(F.pad(self.conv(x), (0, 1, 0, 1), value=self.value), 3, 2)
        return self.out(z.relu().flatten(1))


def test_pads_with_large_negative_numbers(rng):
    a, b = rng.normal(size=(2, 1, 8, 8))
    counts = {inscape.linear_regions(Padded(v), Segment(a, b)).n_regions for v in (-1e4, -1e9, -1e30)}
    assert len(counts) == 1
    with pytest.raises(PartitionError, match="not finite"):
        inscape.linear_regions(Padded(-float("inf")), Segment(a, b))


def test_weights_that_are_no_numbers():
    model = net(2, 5, 3)
    model[0].weight.data[0, 0] = np.nan
    with pytest.raises(PartitionError, match="numbers that are not finite, made by linear"):
        inscape.linear_regions(model, HOME)


@pytest.mark.parametrize("scale", [1e-10, 1e-6, 1.0, 1e6])
def test_slopes_keep_their_digits(scale):
    model = net(2, 15, 10, 3)
    for p in model.parameters():
        p.data *= scale
    q = inscape.linear_regions(model, HOME)
    t = np.concatenate([[0.0], q.knots, [1.0]])
    middle = torch.from_numpy(HOME.points((t[:-1] + t[1:]) / 2)).requires_grad_()
    scores = model(middle)
    direction = torch.from_numpy(HOME.end - HOME.start)
    slopes = [
        torch.autograd.grad(scores[:, k].sum(), middle, retain_graph=True)[0] @ direction for k in range(3)
    ]
    assert np.allclose(q.slopes, torch.stack(slopes, dim=1).numpy(), rtol=1e-10, atol=0)
    assert q.n_linear > 5


@pytest.mark.parametrize("change", ["sign", "slope", "double"])
def test_a_wrapped_model_sees_every_change(change):
    model = nn.Sequential(nn.Linear(2, 20), nn.LeakyReLU(0.1), nn.Linear(20, 4)).double()
    wrapped = inscape.wrap(model)
    inscape.linear_regions(wrapped, HOME)
    if change == "sign":
        model[2].weight.data.neg_()
        model[2].bias.data.neg_()
    elif change == "slope":
        model[1].negative_slope = -2.0
    else:
        model[0].bias.data *= 2
    fresh = inscape.linear_regions(inscape.wrap(model), HOME)
    assert np.allclose(inscape.linear_regions(wrapped, HOME).slopes, fresh.slopes)


def test_a_hidden_branch_is_caught():
    class Branch(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net(2, 10, 3)

        def forward(self, x):
            return self.net(x) * (1.0 if x.numpy()[0, 0] < 50 else -1.0)

    with pytest.raises(PartitionError, match="is not what was recorded of it"):
        inscape.linear_regions(Branch(), Segment([0.0, 0.0], [100.0, 100.0]))
