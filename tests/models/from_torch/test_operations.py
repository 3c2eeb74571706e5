"""Operations of torch that were not always read: values, and exact pieces against bisection of the scores."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from networks import Between
from torch import nn

from inscape import Segment, decision_regions, linear_regions, wrap
from tests.oracles.bisection import bends_on


class Recurrent(nn.Module):
    """nn.RNN with relu on a sequence (n, time, 2), and a linear layer on its last state."""

    def __init__(self, **options):
        super().__init__()
        self.batch_first = options.get("batch_first", False)
        self.rnn = nn.RNN(2, 5, nonlinearity="relu", **options)
        self.out = nn.Linear(10 if options.get("bidirectional") else 5, 3)

    def forward(self, x):
        states, _ = self.rnn(x if self.batch_first else x.transpose(0, 1))
        return self.out(states[:, -1] if self.batch_first else states[-1])


class ByHand(nn.Module):
    """The same by a loop over time, the sequence first, as in textbooks: weights times columns."""

    def __init__(self):
        super().__init__()
        self.w, self.u, self.v = (nn.Parameter(torch.randn(*s)) for s in ((5, 2), (5, 5), (3, 5)))

    def forward(self, x):
        state = torch.zeros(5, len(x), dtype=x.dtype)
        for step in x.permute(1, 2, 0):
            state = torch.relu(self.w @ step + self.u @ state + 0.1)
        return (self.v @ state).t()


class Frames(nn.Module):
    """One small convolution for each of several images of a point, their features averaged."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.AvgPool2d(2), nn.Flatten()
        )
        self.out = nn.Linear(4, 3)

    def forward(self, x):
        n, k = x.shape[:2]
        return self.out(self.net(x.reshape(n * k, 1, *x.shape[2:])).view(n, k, -1).mean(1))


def assigned(x):
    x = x.clone()
    x[x < 0] = 0.0
    return x


def write_into_a_slice(x):
    out = torch.zeros_like(x)
    out[:, :2] = x[:, 2:]
    out[:, 3] = x[:, 0].relu()
    return out


def write_through_a_view(x):
    x[:, :2] += 1
    x[:, [3, 2]] = x[:, 1:3].relu()
    return x


def write_constants(x):
    x = x.relu()
    x[:, 1] = 2.0
    x[:, 2:].zero_()
    return x


def write_columns(x):
    out = torch.ones(4, len(x), dtype=x.dtype)
    out[0] = x[:, 1].abs()
    out[2:] = x.t()[:2]
    return out.t()


def larger(x):
    y = x.flip(1)
    return torch.where(x > y, x, y)


WEIGHT = torch.randn(5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def weight(x):
    return WEIGHT.to(x.dtype)


FUNCTIONS = {
    "cumsum": lambda x: x.cumsum(1),
    "index_fill": lambda x: x.index_fill(1, torch.tensor([1, 3]), 2.0),
    "masked_fill by a constant": lambda x: x.masked_fill(torch.tensor([True, False, False, True]), 0.5),
    "where by a constant": lambda x: torch.where(torch.tensor([True, False, True, False]), x, 2 * x),
    "tril": lambda x: x.view(-1, 2, 2).tril().flatten(1),
    "gather": lambda x: x.gather(1, torch.tensor([[3, 1, 1, 0]]).expand(len(x), -1)),
    "roll": lambda x: x.roll(2, dims=1),
    "unfold": lambda x: x.unfold(1, 2, 1).sum(-1).repeat(1, 2)[:, :4],
    "index of several axes": lambda x: x.view(-1, 2, 2)[:, [0, 1, 1], [1, 0, 1]].repeat(1, 2)[:, :4],
    "indices of axes apart": lambda x: x.view(-1, 2, 1, 2)[:, [0, 1], :, [1, 0]].sum(-1).t().repeat(1, 2),
    "einsum": lambda x: torch.einsum("ni,ji->nj", x, weight(x))[:, :4],
    "einsum with the points last": lambda x: torch.einsum("ji,ni->jn", weight(x)[:4], x).relu().t(),
    "einsum on three axes": lambda x: torch.einsum(
        "nab,cb->nac", x.view(-1, 2, 2), weight(x)[:2, :2]
    ).flatten(1),
    "columns": lambda x: (weight(x)[:4] @ x.t() + 1).relu().t(),
    "a stack of matrices": lambda x: (
        (x.view(-1, 2, 2) @ weight(x)[:4, :2].view(2, 2, 2)[:, None]).sum(0).flatten(1)
    ),
    "the points in the middle": lambda x: x.view(-1, 2, 2).permute(1, 0, 2).relu().transpose(0, 1).flatten(1),
    "the sequence first": lambda x: sum(x.view(-1, 2, 2).transpose(0, 1).relu().unbind(0)).repeat(1, 2),
    "stack in front": lambda x: torch.stack([x, -x]).relu().sum(0),
    "broadcast against more axes": lambda x: (torch.stack([x, -x]) + x).relu().mean(0),
    "a write into a slice": write_into_a_slice,
    "a write through a view": write_through_a_view,
    "constants written": write_constants,
    "columns written": write_columns,
    "in place": lambda x: x.clone().unsqueeze_(1).transpose_(0, 1).relu_().squeeze_(0),
    "a constant that is written over": lambda x: torch.zeros(len(x), 4, dtype=x.dtype).add_(x).relu_(),
    "sort": lambda x: x.sort(1).values,
    "sort downwards": lambda x: x.sort(dim=1, descending=True, stable=True)[0],
    "group sort": lambda x: x.view(-1, 2, 2).sort(-1).values.flatten(1),
    "topk": lambda x: x.topk(2).values.repeat(1, 2),
    "topk of the smallest": lambda x: x.topk(3, largest=False)[0].repeat(1, 2)[:, :4],
    "topk of one": lambda x: x + x.topk(1)[0] - x.topk(1, largest=False)[0],
    "median": lambda x: x.median(1, keepdim=True).values + x,
    "kthvalue": lambda x: x.kthvalue(3, dim=1).values[:, None] - x,
    "where": lambda x: torch.where(x > 0, x, 0.1 * x),
    "where of a number": lambda x: torch.where(x > 0.2, x, 0.2),
    "where of two": larger,
    "a product with a comparison": lambda x: x * (x > 0),
    "a comparison as a number": lambda x: (x > 0).to(x.dtype) * x,
    "two products": lambda x: x * (x > 0) + 0.2 * x * (1 - (x > 0).to(x.dtype)),
    "an assignment by a comparison": assigned,
    "masked_fill": lambda x: x.masked_fill(x <= 0, 0.0),
    "softshrink by hand": lambda x: torch.where(x > 0.3, x - 0.3, torch.where(x < -0.3, x + 0.3, 0.0)),
    "a hat": lambda x: torch.where((x > -1) & (x < 1), 1 - x.abs(), 0.0),
    "the opposite of a hat": lambda x: torch.where((x < -1) | ~(x < 1), 0.0, 1 - x.abs()),
    "a bend on either side": lambda x: torch.where(x > 0, x.clamp(max=0.5) + (x - 1).relu(), -0.3 * x),
    "hard-tanh by hand": lambda x: torch.where(x > 1, 1.0, torch.where(x < -1, -1.0, x)),
    "adaptive max-pooling": lambda x: F.adaptive_max_pool1d(x[:, None], 3).flatten(1)[:, [0, 1, 2, 2]],
    "clamp by the input": lambda x: x.clamp(max=x.flip(1) + 0.1),
    "hardshrink of nothing": lambda x: F.hardshrink(x, 0.0),
}
NETWORKS = {
    "RNN": (lambda: Recurrent(batch_first=True), (6, 2)),
    "RNN with the sequence first": (Recurrent, (6, 2)),
    "RNN of two layers, both ways": (
        lambda: Recurrent(batch_first=True, num_layers=2, bidirectional=True),
        (4, 2),
    ),
    "RNN by hand": (ByHand, (5, 2)),
    "frames": (Frames, (3, 6, 6)),
    "max-pooling in three dimensions": (
        lambda: nn.Sequential(nn.Conv3d(1, 2, 2), nn.MaxPool3d(2), nn.Flatten(), nn.Linear(16, 3)),
        (1, 5, 5, 5),
    ),
    "adaptive max-pooling in three dimensions": (
        lambda: nn.Sequential(nn.AdaptiveMaxPool3d((2, 1, 3)), nn.Flatten(), nn.Linear(6, 3)),
        (1, 3, 3, 4),
    ),
    **{name: (lambda f=f: Between(f), (4,)) for name, f in FUNCTIONS.items()},
}


def network(name, seed=0):
    make, shape = NETWORKS[name]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make().double().eval(), shape


@pytest.mark.parametrize("name", NETWORKS)
def test_the_graph_has_the_scores_of_the_module(name):
    net, shape = network(name)
    model = wrap(net, input_shape=shape)
    assert model.structure == "piecewise-affine", model.trace(shape).foreign
    graph = model.graph(shape)
    single = wrap(copy.deepcopy(net).float(), input_shape=shape).graph(shape)
    for n in (1, 2, 3, 40):
        x = 2 * torch.randn(n, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
        with torch.no_grad():
            expected = net(x)
        scale = float(expected.abs().max()) + 1
        assert float((graph.evaluate(x) - expected).abs().max()) <= 1e-13 * scale
        assert float((single.evaluate(x) - expected).abs().max()) <= 1e-5 * scale


@pytest.mark.parametrize("name", NETWORKS)
def test_exact_pieces_are_where_the_scores_bend(name):
    net, shape = network(name)
    model = wrap(net, input_shape=shape)
    for start, end in 3 * np.random.default_rng(1).standard_normal((2, 2, *shape)):
        segment = Segment(start, end)
        found = linear_regions(model, segment)
        expected = bends_on(model.scores, segment)
        assert found.n_linear == len(expected) + 1
        nearest = np.abs(found.knots[:, None] - expected).min(axis=0, initial=np.inf)
        assert (nearest < 2e-6).all()
        regions = decision_regions(model, segment, method="exact")
        t = np.linspace(0, 1, 501)
        away = np.abs(t[:, None] - regions.boundaries).min(axis=1, initial=1.0) > 1e-9
        labels = regions.labels[np.searchsorted(regions.boundaries, t)]
        assert (labels == model.labels(segment.points(t)))[away].all()


def test_a_sort_has_the_regions_of_its_orders():
    """Along a line, k entries of different slope change their order k (k - 1) / 2 times."""
    torch.manual_seed(0)
    lines = nn.Linear(1, 6).double()
    model = wrap(_After(lines, lambda x: x.sort(-1).values), input_shape=(1,))
    found = linear_regions(model, Segment([-1000.0], [1000.0]))
    assert found.n_regions == found.n_linear == 6 * 5 // 2 + 1


@pytest.mark.parametrize(
    ("function", "same"),
    [
        (lambda x: x.argmax(1), lambda x: x),
        (lambda x: x.argmin(dim=-1), lambda x: -x),
        (lambda x: x.max(1).indices, lambda x: x),
        (lambda x: x.min(dim=1)[1], lambda x: -x),
        (lambda x: x.topk(1).indices.squeeze(1), lambda x: x),
        (lambda x: x.topk(1, largest=False).indices[:, 0], lambda x: -x),
        (lambda x: x.softmax(1).argmax(1), lambda x: x),
        (lambda x: (x[:, :1] > x[:, 1:2]).squeeze(1).long(), lambda x: x[:, :1] - x[:, 1:2]),
    ],
)
def test_a_module_that_returns_labels_is_counted_by_its_scores(function, same):
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 5)).double()
    labels, scores = (wrap(_After(body, f), input_shape=(4,)) for f in (function, same))
    assert labels.structure == "piecewise-affine"
    for seed in range(3):
        segment = Segment(*(5 * np.random.default_rng(seed).standard_normal((2, 4))))
        one, other = (decision_regions(m, segment, method="exact") for m in (labels, scores))
        assert one.labels.tolist() == other.labels.tolist()
        assert np.allclose(one.boundaries, other.boundaries, rtol=0, atol=1e-12)
        middle = np.concatenate([[0], one.boundaries, [1]])
        middle = (middle[1:] + middle[:-1]) / 2
        assert one.labels.tolist() == labels.labels(segment.points(middle)).tolist()


class _After(nn.Module):
    def __init__(self, body, function):
        super().__init__()
        self.body, self.function = body, function

    def forward(self, x):
        return self.function(self.body(x))


@pytest.mark.parametrize("function", [torch.tanh, F.elu, torch.atan, torch.asinh, F.selu, torch.expm1])
def test_the_sign_of_one_score_outlives_an_increasing_function(function):
    torch.manual_seed(1)
    body = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1)).double()
    model, plain = (wrap(_After(body, f), input_shape=(4,)) for f in (function, lambda x: x))
    x = np.random.default_rng(3).standard_normal((200, 4))
    order = np.argsort(plain.scores(x)[:, 0])
    segment = Segment(x[order[0]], x[order[-1]])
    one, other = (decision_regions(m, segment, method="exact") for m in (model, plain))
    assert other.n_regions > 1
    assert one.boundaries.tolist() == other.boundaries.tolist()
    assert one.labels.tolist() == other.labels.tolist()
