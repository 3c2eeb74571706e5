"""The choice that "auto" makes: exact where that is affordable, and another method where exact fails."""

import json
import re
import time
import warnings

import numpy as np
import pytest
import torch

import inscape
from inscape import Patch, Segment, decision_regions
from inscape.errors import BudgetError, InscapeWarning, NonGenericError, PartitionError
from inscape.partition.decision import DecisionRegions, method
from inscape.partition.linear import exact_cost
from tests.fixtures.networks import cnn, mlp


def collision_avoidance(seed):
    """A network of the sizes and of about the number of regions of ACAS Xu: five inputs, six layers of 50."""
    net = mlp(5, 50, 50, 50, 50, 50, 50, 5, seed=seed)
    with torch.no_grad():
        for layer in net[::2]:
            layer.bias.normal_(std=0.4, generator=torch.Generator().manual_seed(seed))
        x = torch.randn(100, 5, generator=torch.Generator().manual_seed(seed))
        net[-1].bias -= net(x).mean(dim=0)  # so that several classes lead somewhere
    return net


SLICE = Patch(np.array([0.0, 0.0, 0.25, 0.32, 0.0]), 3 * np.eye(5)[:2])


@pytest.mark.parametrize("seed", [0, 1])
def test_auto_is_exact_on_a_plane_where_that_is_affordable(seed):
    p = decision_regions(collision_avoidance(seed), SLICE)
    assert (p.method, p.is_exact) == ("exact", True)
    assert p.n_evaluations > 9000  # more than it would evaluate adaptively, and quicker all the same
    assert "linear regions per plane" in p.reason


def test_auto_is_exact_on_triangles_where_that_is_affordable():
    x = np.random.default_rng(0).uniform(-3, 3, size=(40, 5))
    r = inscape.region_count(collision_avoidance(0), x, dim=2, n_probes=4, random_state=0)
    assert (r.method, r.status) == ("exact", "complete")
    assert r.n_evaluations / 4 > 500


def test_auto_is_adaptive_where_exact_would_take_minutes():
    images = np.random.default_rng(0).normal(size=(3, 3, 32, 32))
    p = decision_regions(cnn((8, 8, 8)), Patch.through(images), resolution=None)
    assert p.method == "adaptive"
    assert "exact would take about" in p.reason
    assert "over 10 s" in p.reason
    assert json.loads(json.dumps(p.to_dict()))["reason"] == p.reason
    assert DecisionRegions.from_dict(p.to_dict()).reason == p.reason


def test_the_choice_can_be_repeated():
    model = inscape.wrap(collision_avoidance(0))
    first, again = (method.RegionRequest().choose(model, [SLICE]) for _ in range(2))
    assert first == again


@pytest.mark.parametrize("sizes", [(2, 16, 16, 3), (2, 60, 3), (5, 40, 40, 40, 5), (64, 50, 50, 10)])
def test_the_cost_of_a_plane_is_foreseen(sizes):
    model, rng = inscape.wrap(mlp(*sizes)), np.random.default_rng(0)
    patch = Patch(rng.normal(size=sizes[0]), rng.normal(size=(2, sizes[0])))
    triangle = inscape.Simplex(rng.normal(size=(3, sizes[0])))
    for probe in (patch, triangle, Patch(patch.origin, patch.axes, corners=[[0, 0], [2, 0], [1, 1.5]])):
        true = inscape.linear_regions(model, probe).n_regions
        assert true / 4 < exact_cost.plane_cost(model, [probe]).n_regions < 4 * true


def test_lines_drawn_at_random_are_counted_as_they_cross():
    """Distances from the origin and directions are even, so that the formula of `plane_cost` is the mean."""
    rng, h = np.random.default_rng(0), 600
    angle, distance = rng.uniform(0, np.pi, h), rng.uniform(-1.5, 1.5, h)
    net = mlp(2, h, 2).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor(np.column_stack([np.cos(angle), np.sin(angle)])))
        net[0].bias.copy_(torch.tensor(distance))
    model, patch = inscape.wrap(net), Patch([0.0, 0.0], np.eye(2))
    true = inscape.linear_regions(model, patch).n_regions
    assert exact_cost.plane_cost(model, [patch]).n_regions == pytest.approx(true, rel=0.3)


def test_a_plane_with_far_more_regions_than_foreseen_is_given_up(monkeypatch):
    monkeypatch.setattr(method, "GIVEN_UP_AFTER_WORK", 1e-6)
    with pytest.warns(InscapeWarning, match="more than .* linear regions, far more than foreseen"):
        p = decision_regions(collision_avoidance(0), SLICE)
    assert p.method == "adaptive"
    assert "far more than foreseen" in p.reason


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RuntimeError("It is expected kernel_size equals to 2"), "RuntimeError: It is expected kernel_size"),
        (NonGenericError("lines meet too closely"), "lines meet too closely"),
        (PartitionError("the reading is wrong"), "the reading is wrong"),
        (MemoryError(), "more memory than there is"),
        (ZeroDivisionError(), r"\(ZeroDivisionError\)"),
    ],
)
def test_auto_falls_back_on_any_failure_of_exact_and_says_why(monkeypatch, dim, error, words):
    def fails(*args, **settings):
        raise error

    monkeypatch.setattr("inscape.partition.decision.exact.networks.exact_plane", fails)
    monkeypatch.setattr("inscape.partition.decision.exact.networks.exact_segments", fails)
    net = mlp(2, 8, 3)
    probe = Segment([0.0, 0.0], [1.0, 1.0]) if dim == 1 else Patch([0.0, 0.0], np.eye(2))
    with pytest.warns(InscapeWarning, match="method='adaptive' instead of exact"):
        p = decision_regions(net, probe)
    assert p.method == "adaptive"
    assert re.search(words, p.reason)
    x = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.warns(InscapeWarning, match="instead of exact"):
        r = inscape.region_count(net, x, dim=dim, n_probes=3, random_state=0)
    assert re.search(words, r.reason)
    with pytest.raises(type(error)):
        decision_regions(net, probe, method="exact")


@pytest.mark.parametrize("error", [RuntimeError("a shape that does not fit"), ValueError("ragged")])
def test_auto_falls_back_where_reading_fails(monkeypatch, error):
    model = inscape.wrap(mlp(2, 8, 3))

    def fails(shape):
        raise error

    monkeypatch.setattr(model, "graph", fails)
    with pytest.warns(InscapeWarning, match=f"instead of exact, since {error}"):
        p = decision_regions(model, Segment([0.0, 0.0], [1.0, 1.0]))
    assert p.method == "adaptive"
    assert f"{type(error).__name__}: {error}" in p.reason


def test_who_interrupts_an_exact_count_is_not_given_another_one(monkeypatch):
    def interrupted(*args, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("inscape.partition.decision.exact.networks.exact_segments", interrupted)
    with pytest.raises(KeyboardInterrupt):
        decision_regions(mlp(2, 8, 3), Segment([0.0, 0.0], [1.0, 1.0]))


def test_a_setting_that_is_wrong_is_no_reason_to_fall_back():
    net = mlp(2, 8, 3)
    with pytest.raises(PartitionError, match="precision='float32' is for segments"):
        decision_regions(net, Patch([0.0, 0.0], np.eye(2)), precision="float32")
    with pytest.raises(PartitionError, match="unknown precision 'float16'"):
        decision_regions(net, Segment([0.0, 0.0], [1.0, 1.0]), precision="float16")


def test_an_error_of_the_model_itself_is_raised_and_not_hidden():
    def broken(x):
        raise RuntimeError("no such file")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(inscape.InscapeError, match="no such file"):
            decision_regions(broken, Segment([0.0, 0.0], [1.0, 1.0]))


def test_a_long_segment_of_a_small_network_is_exact_if_it_takes_seconds(monkeypatch):
    monkeypatch.setattr(method, "EXACT_BUDGET", 3)
    p = decision_regions(mlp(2, 50, 3), Segment([-3.0, -3.0], [3.0, 2.0]))
    assert p.method == "exact"
    monkeypatch.setattr(method, "AFFORDABLE_SECONDS", 1e-9)
    p = decision_regions(mlp(2, 50, 3), Segment([-3.0, -3.0], [3.0, 2.0]))
    assert p.method == "adaptive"
    assert "evaluations per segment" in p.reason


@pytest.mark.parametrize("probe", [Segment([0.0, 0.0], [1.0, 1.0]), Patch([0.0, 0.0], np.eye(2))])
def test_the_title_of_a_picture_says_if_it_has_not_converged(probe):
    fine = decision_regions(lambda x: np.sin(3e5 * x.sum(axis=1, keepdims=True)), probe)
    assert fine.status.kind == "not_converged"
    assert fine.plot().get_title().endswith("decision regions, not converged in resolution")
    smooth = decision_regions(lambda x: x[:, :1] - 0.3, probe)
    assert smooth.plot().get_title() == "2 decision regions"
    rng = np.random.default_rng(0)
    with pytest.warns(InscapeWarning, match="not deterministic"):
        noisy = decision_regions(lambda x: rng.normal(size=(len(x), 2)), probe)
    assert "not deterministic" in noisy.plot().get_title()


@pytest.mark.parametrize("method", ["auto", "exact", "adaptive", "grid"])
def test_points_that_the_models_precision_cannot_hold(method):
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    far = inscape.Segment([0.0, 0.0], [1e300, 1.0])
    with pytest.raises(inscape.errors.OutOfRangeError, match=r"float32 holds numbers of at most 3.4e\+38"):
        inscape.decision_regions(net, far, method=method)


@pytest.mark.parametrize(
    ("channels", "size", "way"), [((8, 8, 8), 0.05, "n_changes"), ((2, 1, 1), 0.4, "walk")]
)
def test_foreseeing_what_a_plane_takes_is_a_small_part_of_it(monkeypatch, channels, size, way):
    """A large network is evaluated at the ends of a few stretches, a small one walked along them."""
    n_evaluated, walk, n_changes = {"walk": 0, "n_changes": 0}, exact_cost.walk, exact_cost.n_changes

    def walking(graph, segments, sink, **settings):
        def counted(rows, scores, scale):
            n_evaluated["walk"] += len(rows.t)
            sink(rows, scores, scale)

        return walk(graph, segments, counted, **settings)

    def comparing(graph, segment):
        n_evaluated["n_changes"] += 2
        return n_changes(graph, segment)

    images = np.random.default_rng(0).uniform(size=(3, 3, 32, 32))
    triangle = inscape.Simplex(images.mean(axis=0) + size * (images - images.mean(axis=0)))
    model = inscape.wrap(cnn(channels))
    plane = inscape.linear_regions(model, triangle, budget=None)
    monkeypatch.setattr(exact_cost, "walk", walking)
    monkeypatch.setattr(exact_cost, "n_changes", comparing)
    exact_cost.check_planes(model, [triangle], 60.0)
    assert [name for name, n in n_evaluated.items() if n] == [way]
    assert 0 < n_evaluated[way] < 0.03 * plane.n_vertices, (n_evaluated, plane.n_vertices)


@pytest.mark.parametrize("kind", ["patch", "triangle"])
def test_the_budget_of_decisions_on_a_plane_is_measured_on_decisions(monkeypatch, kind):
    """They can take several times as long as linear regions; timed is a plane with the same middle."""
    monkeypatch.setattr(exact_cost, "QUICK_SECONDS", 0.0)
    monkeypatch.setattr(exact_cost, "TIMED_WORK", 0.0)
    corners = np.array([[-1.0, -1.0], [1.0, -1.0], [0.0, 2.0]])
    plane = inscape.Simplex(corners) if kind == "triangle" else Patch([0.0, 0.0], np.eye(2))
    model, asked = inscape.wrap(mlp(2, 64, 64, 5)), []
    budget = 8 * exact_cost.plane_cost(model, [plane], exact_cost.CLOSER_SAMPLING).seconds

    def slow(probe):
        asked.append(probe)
        time.sleep(0.05)
        return 1

    exact_cost.check_planes(model, [plane], budget)
    with pytest.raises(BudgetError, match="linear regions on this plane would take about"):
        exact_cost.check_planes(model, [plane], budget, slow)
    small = asked[0]
    assert type(small) is type(plane)
    corners, middle = plane.extremes, plane.extremes.mean(axis=0)
    side = np.linalg.norm(small.extremes - middle, axis=1) / np.linalg.norm(corners - middle, axis=1)
    assert side == pytest.approx(np.full(len(side), side[0]))
    assert 0 < side[0] < 1
