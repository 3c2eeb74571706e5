"""What a module ends in: labels are its own on both sides of every boundary, and exact where they can be."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from networks import seeded
from predictions import assert_along
from torch import nn

from inscape import Segment, decision_regions, wrap
from inscape.errors import ModelError, PartitionError

LINE = Segment([-2.0, -1.0, 0.5, 1.0], [2.0, 1.5, -1.0, 0.0], span=(-2, 3))


class Ending(nn.Module):
    """A perceptron with a function behind it."""

    def __init__(self, function, n_out=3):
        super().__init__()
        with seeded(1):
            self.first, self.last, self.function = nn.Linear(4, 8), nn.Linear(8, n_out), function

    def forward(self, x):
        return self.function(self.last(torch.relu(self.first(x))))


def largest(out):
    return out.flatten(1).argmax(1)


def over_half(out):
    return (out.flatten() > 0.5).long()


CASES = {
    "scores of an image of one pixel": (lambda z: z[:, :, None, None], 3, {}, largest),
    "scores behind an axis of one": (lambda z: z[:, None], 3, {}, largest),
    "a sigmoid in more digits": (lambda z: z.sigmoid().double(), 1, {}, over_half),
    "a softmax in more digits": (lambda z: z.double().softmax(1), 3, {}, largest),
    "argmax that keeps its axis": (lambda z: z.argmax(1, keepdim=True), 3, {}, torch.ravel),
    "the largest of one": (lambda z: z.topk(1).indices, 3, {}, torch.ravel),
    "max by name": (lambda z: z.max(1), 3, {"output": "indices"}, lambda out: out.indices),
    "a probability over a threshold": (lambda z: (z.sigmoid() > 0.45).long()[:, 0], 1, {}, lambda out: out),
    "a threshold over a tanh": (lambda z: (z.tanh() > 0.1)[:, 0], 1, {}, lambda out: out),
    "split probabilities": (lambda z: torch.cat(z.sigmoid().split(1, dim=1)[::-1], 1), 3, {}, largest),
    "sums and maxima of sizes": (
        lambda z: torch.stack([z.norm(p=1, dim=1), 2 * z.norm(p=float("inf"), dim=1)], 1),
        3,
        {},
        largest,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_labels_are_those_of_the_module_on_both_sides_of_every_boundary(name):
    function, n_out, options, decide = CASES[name]
    module = Ending(function, n_out)
    model = wrap(module, **options)
    assert model.structure == "piecewise-affine"  # before it has seen a point

    def predict(x):
        with torch.no_grad():
            return decide(module(torch.from_numpy(x).float())).numpy().astype(np.int64)

    found = decision_regions(model, LINE)
    assert found.is_exact
    assert found.n_regions > 1
    assert_along(predict, found, 1e-5)


def test_the_logarithm_of_a_probability_is_never_positive():
    model = wrap(Ending(lambda z: z.sigmoid().log(), 1))
    with pytest.warns(UserWarning, match="ends in log_sigmoid, whose values are all below 0"):
        model.labels(np.zeros((2, 4)))


class Hidden(nn.Module):
    """Labels of a network to which numpy adds what torch does not see."""

    def __init__(self):
        super().__init__()
        self.body = Ending(lambda z: z)

    def forward(self, x):
        unseen = torch.from_numpy(np.maximum(np.abs(x.detach().numpy()).max(axis=1, keepdims=True) - 3, 0))
        return (self.body(x) + unseen * torch.tensor([9.0, 0.0, -9.0])).argmax(1)


def test_labels_are_compared_with_the_module_at_the_points_of_a_request():
    line = Segment([9.0, 0.0, 0.0, 0.0], [0.0, 9.0, 0.0, 0.0])
    with pytest.raises(PartitionError, match="is not what was recorded of it"):
        decision_regions(Hidden(), line, method="exact")


def test_scores_that_are_all_rounding_are_called_that():
    def cancel(z):
        large = 1e6 * F.pad(z, (0, 61), value=1.0).cumsum(1)
        return torch.stack(
            [large.sum(1) - large.flip(1).sum(1), 0.1 * large.sum(1) - (0.1 * large).sum(1)], 1
        )

    with pytest.raises(PartitionError, match="which rounding makes of much larger numbers"):
        decision_regions(Ending(cancel), LINE, method="exact")


class Weights(nn.Module):
    """Weights of three axes that are no convolution."""

    def __init__(self):
        super().__init__()
        with seeded(0):
            self.weight = nn.Parameter(torch.randn(4, 2, 3))

    def forward(self, x):
        return torch.einsum("ni,ijk->njk", x, self.weight).relu().amax(1)


class Vector(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(5))

    def forward(self, x):
        return x @ self.weight


def convolution(before):
    body = nn.Sequential(nn.Conv2d(3, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 6 * 6, 3))
    return nn.Sequential(before, body)


class Last(nn.Module):
    """Takes images with their channels last."""

    def forward(self, x):
        return x.permute(0, 3, 1, 2)


UNCALLED = {
    "three axes": (Weights(), {}),
    "a vector": (Vector(), {}),
    "nothing": (nn.Identity(), {}),
    "channels last": (convolution(Last()), {}),
    "a pixel": (nn.Conv2d(1, 3, 3, padding=1), {"output": lambda y: y[:, :, 2, 3]}),
}


@pytest.mark.parametrize("name", UNCALLED)
def test_the_structure_is_known_before_the_first_call(name):
    module, options = UNCALLED[name]
    assert wrap(module, **options).structure == "piecewise-affine"


def test_integers_of_several_columns_are_no_labels():
    with pytest.raises(ModelError, match=r"returned labels of shape \(2, 3\)"):
        wrap(Ending(lambda z: (z > 0).long())).labels(np.zeros((2, 4)))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda z: z.T, r"returned \(3, 5\) float32 for 5 points: expected scores \(5, c\)"),
        (lambda z: z.sum(), r"returned \(\) float32 for 5 points"),
        (lambda z: z.reshape(5, -1, 1).expand(5, 3, 2), r"\(5, 3, 2\): .* output=lambda y: y\[:, :, 0\]"),
    ],
    ids=["transposed", "one number", "a map"],
)
def test_outputs_that_are_no_scores_are_called_what_they_are(function, words):
    with pytest.raises(ModelError, match=words):
        wrap(Ending(function)).labels(np.zeros((5, 4)))
