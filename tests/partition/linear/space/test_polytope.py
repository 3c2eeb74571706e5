"""The linear region of a point against closed forms, faces of exact planes, and activities by definition."""

import json
import math

import numpy as np
import pytest
import torch
from activity import activities
from networks import mlp
from torch import nn

import inscape
from inscape.errors import NonGenericError, PartitionError, ProbeError
from inscape.partition import LinearRegion


def written(result):
    return json.loads(json.dumps(result.to_dict(), allow_nan=False))


def box():
    """hardtanh of each input: the region of 0 is the square [-1, 1]^2."""
    net = nn.Sequential(nn.Linear(2, 2), nn.Hardtanh(), nn.Linear(2, 1)).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.eye(2))
        net[0].bias.zero_()
        net[2].weight.copy_(torch.tensor([[2.0, -1.0]]))
        net[2].bias.fill_(0.5)
    return net


def test_a_box_has_four_facets_its_ball_and_its_map():
    region = inscape.linear_region(box(), [0.25, -0.5])
    assert len(region.offsets) == region.n_facets == 4
    assert region.distance == 0.5
    assert region.inradius == pytest.approx(1.0)
    assert region.centre == pytest.approx([0.0, 0.0])
    assert region.weight.tolist() == [[2.0, -1.0]]
    assert region.bias.tolist() == [0.5]
    assert region.contains([[0.9, 0.9], [1.1, 0.0]]).tolist() == [True, False]
    assert [p.tolist() for p in region.pattern] == [[1, 1]]


def test_above_the_bounds_a_unit_is_constant_in_the_map():
    region = inscape.linear_region(box(), [3.0, 0.0])
    assert region.weight.tolist() == [[0.0, -1.0]]
    assert region.bias.tolist() == [2.5]
    assert region.n_facets == 3
    assert math.isclose(region.inradius, 1.0)  # a strip of width 2, to the right of 1


def test_a_cone_holds_balls_of_any_size():
    net = mlp(2, 1, 1).double()
    region = inscape.linear_region(net, [0.3, 0.7])
    assert region.inradius == math.inf
    assert region.centre is None


@pytest.mark.parametrize("seed", range(4))
def test_in_two_dimensions_it_is_the_face_of_the_exact_plane(seed):
    net = mlp(2, 12, 12, 3, seed=seed).double()
    plane = inscape.linear_regions(net, inscape.Patch([0.0, 0.0], np.eye(2), bounds=((-3, 3), (-3, 3))))
    inside = [p for p in plane.polygons if np.abs(p).max() < 2.999]
    assert len(inside) > 10
    for polygon in inside[:: max(1, len(inside) // 6)]:
        region = inscape.linear_region(net, polygon.mean(axis=0))
        slack = region.offsets - polygon @ region.normals.T
        assert slack.min() > -1e-9  # every corner is in the region
        assert ((np.abs(slack) < 1e-9)[:, region.is_facet].sum(axis=1) == 2).all()  # and on two facets
        assert region.n_facets == len(polygon)
        expected = inscape.wrap(net).scores(polygon)
        assert polygon @ region.weight.T + region.bias == pytest.approx(expected, abs=1e-9)


def pooled():
    torch.manual_seed(3)
    layers = nn.Conv2d(1, 3, 3, padding=1), nn.LeakyReLU(0.2), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 8)
    return nn.Sequential(*layers, nn.ReLU6(), nn.Linear(8, 3)).double().eval()


@pytest.mark.parametrize(
    ("build", "shape"), [(lambda: mlp(7, 16, 16, 4).double(), (7,)), (pooled, (1, 6, 6))], ids=["mlp", "cnn"]
)
def test_activities_change_beyond_the_border_and_not_before(build, shape):
    net, rng = build(), np.random.default_rng(0)
    graph = inscape.wrap(net, input_shape=shape).graph(shape)
    for _ in range(3):
        region = inscape.linear_region(inscape.wrap(net, input_shape=shape), rng.standard_normal(shape))
        x = region.x.reshape(-1).copy()
        nearest = region.normals[region.distances.argmin()]
        steps = rng.standard_normal((20, x.size))
        steps /= np.linalg.norm(steps, axis=1, keepdims=True)
        near = x + np.vstack([0.999 * region.distance * steps, 0.999 * region.distance * nearest])
        beyond = x + 1.001 * region.distance * nearest
        at_x, *others, last = (
            activities(graph, torch.from_numpy(p.reshape(1, *shape))) for p in (x, *near, beyond)
        )
        assert all(torch.equal(at_x, other) for other in others)
        assert not torch.equal(at_x, last)
        assert region.is_facet[region.distances.argmin()]


def test_redundant_halfspaces_are_no_facets():
    net = nn.Sequential(nn.Linear(1, 3), nn.ReLU(), nn.Linear(3, 1)).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0], [1.0], [1.0]]))
        net[0].bias.copy_(torch.tensor([1.0, 2.0, 1.0]))  # kinks at -1, -2 and again -1
    region = inscape.linear_region(net, [0.0])
    assert len(region.offsets) == 3
    assert region.is_facet.tolist() == [True, False, False]


def test_it_comes_back_from_json_and_is_drawn():
    region = inscape.linear_region(box(), [0.25, -0.5])
    again = LinearRegion.from_dict(written(region))
    assert again.to_dict() == region.to_dict()
    assert again.n_facets == 4
    ax = region.plot()
    assert "4 units" in ax.get_title()
    assert "4 halfspaces in 2 dimensions" in repr(region)


def test_errors_say_what_to_do():
    with pytest.raises(NonGenericError, match=r"on the kink of unit 0 .* move it a little"):
        inscape.linear_region(box(), [1.0, 0.0])
    with pytest.raises(ProbeError, match="give one point of shape"):
        inscape.linear_region(box(), np.zeros((3, 2)))
    with pytest.raises(PartitionError, match="black-box"):
        inscape.linear_region(lambda x: x[:, 0] > 0, [0.0])
    with pytest.raises(PartitionError, match="give a larger memory"):
        inscape.linear_region(box(), [0.25, -0.5], memory=8)
