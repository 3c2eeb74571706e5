"""All linear regions of a box or ball against closed forms, exact planes, and patterns at random points."""

import json
from math import comb

import numpy as np
import pytest
import torch
from activity import activities
from networks import mlp
from torch import nn

import inscape
from inscape.errors import PartitionError, ProbeError
from inscape.partition import LinearBody
from inscape.partition.linear.space import polytope


def written(result):
    return json.loads(json.dumps(result.to_dict(), allow_nan=False))


def points_of(body, n, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([body.sample(rng) for _ in range(n)])


def patterns_at(net, x):
    """The different activities at points, by definition."""
    graph = inscape.wrap(net, input_shape=x.shape[1:]).graph(x.shape[1:])
    return {row.tobytes() for row in activities(graph, torch.from_numpy(x)).numpy()}


def check_regions(net, found):
    """Each region's point is in it and in the body, with the network's value; random points lie in one."""
    model = inscape.wrap(net, input_shape=found.body.input_shape)
    x = np.array([r.x for r in found.regions])
    assert found.body.contains(x).all()
    scores = model.scores(x)
    for region, own, score in zip(found.regions, x, scores, strict=True):
        assert region.contains(own[None]).all()
        assert region.weight @ own.reshape(-1) + region.bias == pytest.approx(score, abs=1e-9)
    random = points_of(found.body, 300, seed=1)
    holders = np.sum([r.contains(random) for r in found.regions], axis=0)
    assert (holders == 1).all()
    values = model.scores(random)
    for k, point in enumerate(random):
        region = next(r for r in found.regions if r.contains(point[None])[0])
        assert region.weight @ point.reshape(-1) + region.bias == pytest.approx(values[k], abs=1e-9)


@pytest.mark.parametrize(("d", "h"), [(1, 7), (2, 9), (3, 8), (4, 6), (6, 6)])
def test_one_generic_hidden_layer_has_the_regions_of_an_arrangement(d, h):
    net = mlp(d, h, 2).double()
    found = inscape.enumerate_regions(net, inscape.Box(np.full(d, -1e4), 1e4))
    assert found.is_exact
    assert found.n_regions == sum(comb(h, i) for i in range(d + 1))
    assert found.n_facets == h * sum(comb(h - 1, i) for i in range(d))  # each hyperplane is cut by the others
    check_regions(net, found)


@pytest.mark.parametrize("seed", range(4))
def test_a_box_of_two_inputs_is_an_exact_plane(seed):
    net = mlp(2, 10, 8, 6, 3, seed=seed).double()
    found = inscape.enumerate_regions(net, inscape.Box([-2.0, -1.0], [1.0, 2.5]))
    plane = inscape.linear_regions(net, inscape.Patch(np.zeros(2), np.eye(2), ((-2, 1), (-1, 2.5))))
    assert (found.n_regions, found.n_linear) == (plane.n_regions, plane.n_linear)
    assert sorted(found.volumes) == pytest.approx(sorted(plane.areas), abs=1e-9)
    assert sorted(map(len, found.polygons)) == sorted(map(len, plane.polygons))


@pytest.mark.parametrize("k", [1, 3, 6])
def test_composed_tents_have_two_to_the_k_regions(k):
    layers = []
    for _ in range(k):
        hidden, join = nn.Linear(1, 2), nn.Linear(2, 1, bias=False)
        with torch.no_grad():
            hidden.weight.fill_(1.0)
            hidden.bias.copy_(torch.tensor([0.0, -0.5]))
            join.weight.copy_(torch.tensor([[2.0, -4.0]]))
        layers += [hidden, nn.ReLU(), join]
    found = inscape.enumerate_regions(nn.Sequential(*layers).double(), inscape.Box([0.0], 1.0))
    assert found.is_exact
    assert found.n_regions == found.n_linear == 2**k
    assert found.volumes == pytest.approx(np.full(2**k, 2.0**-k))


@pytest.mark.parametrize("body", [inscape.Box([-1.0, -1.5, -1.0], 1.2), inscape.Ball([0.2, 0.0, -0.1], 1.1)])
@pytest.mark.parametrize("seed", range(2))
def test_patterns_at_random_points_are_all_among_the_regions(body, seed):
    net = mlp(3, 8, 6, 2, seed=seed).double()
    found = inscape.enumerate_regions(net, body)
    inside = patterns_at(net, np.array([r.x for r in found.regions]))
    met = patterns_at(net, points_of(body, 20_000))
    assert len(inside) == found.n_regions
    assert met <= inside
    assert len(met) > 0.4 * len(inside)  # so that a missing region would be noticed
    check_regions(net, found)


def test_a_ball_meets_the_regions_that_are_near_enough():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.eye(2))
        net[0].bias.copy_(torch.tensor([-0.6, -0.6]))
    counts = {
        r: inscape.enumerate_regions(net, inscape.Ball([0.0, 0.0], r)).n_regions for r in (0.5, 0.8, 0.9)
    }
    assert counts == {0.5: 1, 0.8: 3, 0.9: 4}  # the corner (0.6, 0.6) is at a distance of 0.849


@pytest.mark.parametrize("n_copies", [1, 2])
def test_units_that_coincide_change_together(n_copies):
    """Copies of every unit in the same and in the next layer bend where the first does."""
    first = mlp(2, 5, 1).double()[0]
    wide = nn.Linear(2, 5 * n_copies).double()
    after = nn.Linear(5 * n_copies, 5, bias=False).double()
    with torch.no_grad():
        wide.weight.copy_(first.weight.repeat(n_copies, 1))
        wide.bias.copy_(first.bias.repeat(n_copies))
        after.weight.copy_(torch.eye(5).repeat(1, n_copies))
    net = nn.Sequential(wide, nn.ReLU(), after, nn.ReLU(), nn.Linear(5, 2).double())
    found = inscape.enumerate_regions(net, inscape.Box([-1e3, -1e3], 1e3))
    assert found.is_exact
    assert found.n_regions == sum(comb(5, i) for i in range(3))
    check_regions(net, found)


def test_cones_of_a_network_without_biases_meet_in_one_point():
    net = nn.Sequential(
        *(m for k in (3, 6, 4) for m in (nn.Linear(k, {3: 6, 6: 4, 4: 2}[k], bias=False), nn.ReLU()))
    )
    torch.manual_seed(5)
    net = net[:-1].double()
    found = inscape.enumerate_regions(net, inscape.Box([-1.0, -1.0, -1.0], 1.0))
    assert found.is_exact
    assert patterns_at(net, points_of(found.body, 20_000)) <= patterns_at(
        net, np.array([r.x for r in found.regions])
    )
    check_regions(net, found)


def test_other_bends_and_max_pooling():
    torch.manual_seed(3)
    layers = (
        nn.Conv2d(1, 2, 2),
        nn.ReLU(),
        nn.MaxPool2d(2, stride=1),
        nn.Flatten(),
        nn.Linear(2, 4),
        nn.Hardtanh(),
    )
    net = nn.Sequential(*layers, nn.Linear(4, 2)).double().eval()
    model = inscape.wrap(net, input_shape=(1, 3, 3))
    found = inscape.enumerate_regions(model, inscape.Ball(np.full((1, 3, 3), 0.3), 0.5))
    assert found.is_exact
    assert found.n_regions > 5
    check_regions(net, found)


def test_linear_programs_find_the_facets_that_vertices_do(monkeypatch):
    net, box = mlp(3, 4, 3, 2).double(), inscape.Box([-1.0, -1.0, -1.0], 1.0)
    by_vertices = inscape.enumerate_regions(net, box)
    monkeypatch.setattr(polytope, "HULL_DIMENSIONS", 1)
    by_programs = inscape.enumerate_regions(net, box)
    assert by_programs.volumes is None
    assert by_vertices.volumes.sum() == pytest.approx(8.0)
    assert by_programs.is_exact
    assert (by_programs.n_regions, by_programs.n_facets) == (by_vertices.n_regions, by_vertices.n_facets)


def test_hyperplanes_too_near_to_each_other_are_ties():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
        net[0].bias.copy_(torch.tensor([0.0, 1e-10]))  # kinks at 0 and 1e-10
    found = inscape.enumerate_regions(net, inscape.Box([-1.0, -1.0], 1.0))
    assert found.status.kind == "ties"
    assert not found.is_exact
    assert "may be missing" in found.certificate


def test_a_budget_ends_the_walk_with_a_lower_bound():
    net = mlp(2, 12, 2).double()
    found = inscape.enumerate_regions(net, inscape.Box([-9.0, -9.0], 9.0), max_regions=10)
    assert found.status.kind == "budget"
    assert found.n_regions == 10
    assert repr(found).startswith("<at least 10 linear regions")
    seen = []
    inscape.enumerate_regions(net, inscape.Box([-1.0, -1.0], 1.0), progress=lambda *done: seen.append(done))
    assert all(0 < done <= known for done, known in seen)


@pytest.mark.parametrize("body", [inscape.Box([-1.0, -1.0], 2.0), inscape.Ball([0.0, 0.5], 1.0)])
def test_results_are_written_read_and_drawn(body):
    net = mlp(2, 6, 2).double()
    found = inscape.enumerate_regions(net, body)
    again = LinearBody.from_dict(written(found))
    assert written(again) == written(found)
    assert again.n_linear == found.n_linear
    ax = found.plot()
    assert f"{found.n_regions} linear regions" in ax.get_title()
    ax = found.plot(
        title="mine", class_names=["cat", "dog"], points=(np.array([[0.1, 0.2], [0.3, 0.4]]), [0, 1])
    )
    assert ax.get_title() == "mine"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["cat", "dog"]
    assert "<img" in found._repr_html_()


def test_what_cannot_be_enumerated():
    net = mlp(2, 3, 2).double()
    with pytest.raises(ProbeError, match="expected a Box or a Ball"):
        inscape.enumerate_regions(net, inscape.Segment([0.0, 0.0], [1.0, 1.0]))
    with pytest.raises(PartitionError, match="max_regions"):
        inscape.enumerate_regions(net, inscape.Box([0, 0], 1), max_regions=0)
    with pytest.raises(ProbeError, match="shape"):
        inscape.enumerate_regions(inscape.wrap(net, input_shape=(2,)), inscape.Box([0, 0, 0], 1))
    with pytest.raises(PartitionError, match="2 inputs"):
        inscape.enumerate_regions(mlp(3, 2, 2).double(), inscape.Box([0, 0, 0], 1)).plot()
