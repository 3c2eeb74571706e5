"""Exact pieces against two other routes, on networks of every kind, and what must not change them."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import zoo
from activity import TIE, activities, check_pieces
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import mlp, seeded
from torch import nn

from inscape import Segment, wrap
from inscape.partition.linear import linear_regions

SEEDS = st.integers(0, 10**6)


class Mixed(nn.Module):
    """Every piecewise-linear operation in one small network, with a residual and a dense connection."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(1, 3, 3, padding=1), nn.Conv2d(3, 3, 3, padding=1, groups=3)
        self.c, self.act = nn.Conv2d(6, 4, 2), nn.PReLU(4)
        self.out = nn.Linear(4 * 9, 3)

    def forward(self, x):
        a = F.leaky_relu(self.a(x), 0.1)
        b = F.relu6(4 * self.b(a)) + a
        c = self.act(self.c(torch.cat([a, b], 1)))
        c = torch.maximum(c, 0.5 - c) - torch.minimum(c, 0.1 * c).abs()
        c = F.max_pool2d(c, 3, 2, 1)
        return self.out(F.hardtanh(c).flatten(1))


def random_net(kind, seed):
    with seeded(seed):
        if kind == "mlp":
            return mlp(3, 12, 12, 12, 4, seed=seed), (3,)
        if kind == "mixed":
            return Mixed(), (1, 6, 6)
        pooled = [nn.Conv2d(2, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 2), nn.ReLU(), nn.Flatten()]
        return nn.Sequential(*pooled, nn.Linear(4 * 4, 3)), (2, 8, 8)


def random_segment(shape, seed, span=(0.0, 1.0)):
    rng = np.random.default_rng(seed)
    return Segment(2 * rng.normal(size=shape), 2 * rng.normal(size=shape), span=span)


@pytest.mark.parametrize("kind", ["mlp", "mixed", "pooled"])
@settings(max_examples=15)
@given(seed=SEEDS)
def test_activity_changes_at_knots_and_nowhere_else(kind, seed):
    net, shape = random_net(kind, seed)
    segment = random_segment(shape, seed)
    check_pieces(wrap(net).graph(shape), segment, linear_regions(net, segment).knots)


@pytest.mark.parametrize("kind", ["mlp", "mixed", "pooled"])
@settings(max_examples=8)
@given(seed=SEEDS)
def test_dense_sampling_finds_no_region_that_exact_misses(kind, seed):
    net, shape = random_net(kind, seed)
    segment = random_segment(shape, seed, span=(-0.3, 1.1))
    q = linear_regions(net, segment)
    t = np.linspace(*segment.span, 3000)
    seen = activities(wrap(net).graph(shape), torch.from_numpy(segment.points(t).reshape(-1, *shape)))
    pieces = np.searchsorted(q.knots, t)
    changes = ((seen[1:] != seen[:-1]) & (seen[1:] != TIE) & (seen[:-1] != TIE)).any(dim=1).numpy()
    assert (pieces[1:][changes] > pieces[:-1][changes]).all()
    assert 1 + changes.sum() <= q.n_regions


@pytest.mark.parametrize("name", sorted(zoo.MAKERS))
def test_the_zoo_piece_by_piece(name):
    net, shape = zoo.make(name), zoo.shape_of(name)
    rng = np.random.default_rng(1)
    start, step = rng.normal(size=shape), 2.0 if name == "mlp" else 0.05
    segment = Segment(start, start + step * rng.normal(size=shape))
    model = wrap(net, input_shape=shape)
    q = linear_regions(model, segment)
    assert q.n_regions > 5
    check_pieces(model.graph(shape), segment, q.knots)


@settings(max_examples=15)
@given(seed=SEEDS)
def test_permuting_neurons_changes_nothing(seed):
    net, segment = mlp(4, 10, 10, 3, seed=seed).double(), random_segment((4,), seed)
    before = linear_regions(net, segment)
    with torch.no_grad():
        order = torch.randperm(10, generator=torch.Generator().manual_seed(seed))
        for part in (net[0].weight, net[0].bias):
            part.copy_(part[order].clone())
        net[2].weight.copy_(net[2].weight[:, order].clone())
    after = linear_regions(net, segment)
    assert np.allclose(before.knots, after.knots, rtol=0, atol=1e-11)
    assert before.n_linear == after.n_linear


@settings(max_examples=15)
@given(seed=SEEDS)
def test_positive_rescaling_changes_nothing(seed):
    net, segment = mlp(4, 10, 10, 3, seed=seed).double(), random_segment((4,), seed)
    before = linear_regions(net, segment)
    factor = torch.from_numpy(10.0 ** np.random.default_rng(seed).uniform(-6, 6, 10))
    with torch.no_grad():
        net[0].weight.mul_(factor[:, None])
        net[0].bias.mul_(factor)
        net[2].weight.div_(factor)
    after = linear_regions(net, segment)
    assert np.allclose(before.knots, after.knots, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", ["mlp", "mixed", "pooled"])
@settings(max_examples=8)
@given(seed=SEEDS)
def test_pieces_add_up_when_a_segment_is_split_and_mirror_when_it_is_reversed(kind, seed):
    net, shape = random_net(kind, seed)
    segment = random_segment(shape, seed)
    middle = segment.points([0.4])[0]
    parts = [
        Segment(segment.start, middle),
        Segment(middle, segment.end),
        Segment(segment.end, segment.start),
    ]
    whole, first, second, mirrored = linear_regions(net, [segment, *parts])
    assert first.n_regions + second.n_regions == whole.n_regions + 1
    joined = np.concatenate([0.4 * first.knots, 0.4 + 0.6 * second.knots])
    assert np.allclose(joined, whole.knots, rtol=0, atol=1e-9)
    assert np.allclose(1 - mirrored.knots[::-1], whole.knots, rtol=0, atol=1e-9)
