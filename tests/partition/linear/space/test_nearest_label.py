"""The distance to the decision boundary against closed forms, exact planes, and the labels around it."""

import json
import math

import numpy as np
import pytest
import torch
from networks import mlp
from scipy.optimize import minimize_scalar
from torch import nn

import inscape
from inscape.errors import PartitionError
from inscape.partition import BoundaryDistance

INF = float("inf")
DUAL = {1: INF, 2: 2, INF: 1}


@pytest.mark.parametrize("norm", [1, 2, INF])
def test_of_a_linear_classifier_it_is_the_margin_over_the_dual_norm(norm):
    torch.manual_seed(0)
    net = nn.Linear(6, 4).double()
    x = np.random.default_rng(1).standard_normal(6)
    w, scores = net.weight.detach().numpy(), inscape.wrap(net).scores(x[None])[0]
    best = int(scores.argmax())
    expected = min(
        (scores[best] - scores[j]) / np.linalg.norm(w[best] - w[j], ord=DUAL[norm])
        for j in range(4)
        if j != best
    )
    found = inscape.boundary_distance(net, x, norm=norm)
    assert found.is_exact
    assert found.status == "complete"
    assert found.upper == pytest.approx(expected, rel=1e-9)
    assert found.lower == pytest.approx(expected, rel=1e-9)
    assert np.linalg.norm(found.point - x, ord=norm) == pytest.approx(expected, rel=1e-9)
    assert (found.label, found.n_regions) == (best, 1)


def from_plane(net, x, norm):
    """The least distance to an edge of the exact decision boundary on a square around x."""
    patch = inscape.Patch(x, np.eye(2), bounds=((-6, 6), (-6, 6)))
    regions = inscape.decision_regions(net, patch, method="exact")
    least = math.inf
    for start, end in regions.boundary:
        on_edge = minimize_scalar(
            lambda s, a=start, b=end: np.linalg.norm(a + s * (b - a), ord=norm),
            bounds=(0, 1),
            method="bounded",
            options={"xatol": 1e-12},
        )
        ends = (np.linalg.norm(p, ord=norm) for p in (start, end))
        least = min(least, float(on_edge.fun), *ends)
    return least


@pytest.mark.parametrize("norm", [1, 2, INF])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_in_two_dimensions_it_is_that_of_the_exact_plane(norm, n_outputs):
    rng = np.random.default_rng(0)
    n_far = 0
    for seed in range(4):
        net = mlp(2, 8, 8, n_outputs, seed=seed).double()
        x = 2 * rng.standard_normal(2)
        expected = from_plane(net, x, norm)
        if not expected < 5:
            continue
        found = inscape.boundary_distance(net, x, norm=norm)
        assert found.is_exact
        assert found.upper == pytest.approx(expected, rel=1e-6)
        assert found.lower <= found.upper
        n_far += found.n_regions > 3
    assert n_far > 0


def test_the_label_changes_at_the_point_and_nowhere_nearer():
    rng = np.random.default_rng(2)
    net = mlp(5, 10, 10, 3, seed=1).double()
    model = inscape.wrap(net)
    for _ in range(3):
        x = rng.standard_normal(5)
        found = inscape.boundary_distance(net, x)
        assert found.is_exact
        along = x + np.array([[1 - 1e-6], [1 + 1e-6]]) * (found.point - x)
        assert model.labels(along).tolist() == [found.label, found.other_label]
        steps = rng.standard_normal((20_000, 5))
        steps *= found.lower * (1 - 1e-9) / np.linalg.norm(steps, axis=1, keepdims=True)
        assert set(model.labels(x + steps).tolist()) == {found.label}


def test_a_budget_leaves_two_bounds_around_the_truth():
    net = mlp(2, 16, 16, 3, seed=1).double()
    x = np.random.default_rng(1).standard_normal(2)
    exact = inscape.boundary_distance(net, x)
    assert exact.is_exact
    assert exact.n_regions > 5
    lower = 0.0
    for n in (1, 3, exact.n_regions - 2):
        found = inscape.boundary_distance(net, x, max_regions=n)
        assert not found.is_exact
        assert found.status.kind == "budget"
        assert lower <= found.lower <= exact.upper <= found.upper
        lower = found.lower
    assert lower > 0


def test_two_units_on_one_hyperplane_do_not_end_the_walk():
    net = nn.Sequential(nn.Linear(1, 3), nn.ReLU(), nn.Linear(3, 1)).double()
    with torch.no_grad():  # f(x) = relu(x - 1) + relu(x - 1) + relu(x - 2) - 1, which is 0 at 1.5
        net[0].weight.fill_(1.0)
        net[0].bias.copy_(torch.tensor([-1.0, -1.0, -2.0]))
        net[2].weight.fill_(1.0)
        net[2].bias.fill_(-1.0)
    found = inscape.boundary_distance(net, [0.0])
    assert found.is_exact
    assert found.upper == pytest.approx(1.5, rel=1e-9)


def test_where_there_is_one_label_the_distance_is_infinite():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)).double()
    with torch.no_grad():
        net[2].weight.abs_()
        net[2].bias.fill_(1.0)
    found = inscape.boundary_distance(net, [0.2, 0.1])
    assert found.is_exact
    assert found.lower == found.upper == math.inf
    assert found.other_label == -1
    assert np.isnan(found.point).all()
    assert found.plot().get_xlabel() == "distance: no other found"


def test_max_pooling_and_images():
    torch.manual_seed(1)
    layers = nn.Conv2d(1, 2, 3), nn.MaxPool2d(2), nn.LeakyReLU(0.1), nn.Flatten(), nn.Linear(2, 2)
    net = nn.Sequential(*layers).double().eval()
    with torch.no_grad():  # the larger of the two channels wins
        net[4].weight.copy_(torch.tensor([[1.0, -1.0], [-1.0, 1.0]]))
        net[4].bias.zero_()
    model = inscape.wrap(net, input_shape=(1, 4, 4))
    x = np.random.default_rng(0).standard_normal((1, 4, 4))
    found = inscape.boundary_distance(model, x)
    assert found.is_exact
    assert found.point.shape == (1, 4, 4)
    along = x + np.array([1 - 1e-6, 1 + 1e-6]).reshape(2, 1, 1, 1) * (found.point - x)
    assert model.labels(along).tolist() == [found.label, found.other_label]


@pytest.mark.parametrize("norm", [2, INF])
def test_it_comes_back_from_json_and_is_drawn(norm):
    found = inscape.boundary_distance(nn.Linear(2, 1).double(), [3.0, 4.0], norm=norm)
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    again = BoundaryDistance.from_dict(data)
    assert again.to_dict() == found.to_dict()
    assert again.norm == norm
    assert "norm" in found.plot().get_title()
    assert f"{found.upper:.6g}" in repr(found)


def test_errors_say_what_to_do():
    net = nn.Linear(2, 1)
    with pytest.raises(PartitionError, match="give 1, 2 or"):
        inscape.boundary_distance(net, [0.0, 1.0], norm=3)
    with pytest.raises(PartitionError, match="max_regions"):
        inscape.boundary_distance(net, [0.0, 1.0], max_regions=0)
    with pytest.raises(PartitionError, match="black-box"):
        inscape.boundary_distance(lambda x: x[:, 0] > 0, [0.0])
