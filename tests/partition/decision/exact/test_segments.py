"""Exact decision regions on segments: closed forms, ties, and grids that must not know better."""

import copy

import numpy as np
import pytest
import torch
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import mlp
from torch import nn

from inscape import Segment, wrap
from inscape.errors import PartitionError
from inscape.partition.decision.exact.networks import exact_segments


def lines(*pairs):
    """A classifier on R whose scores are the lines a + b x."""
    net = nn.Linear(1, len(pairs)).double()
    net.bias.data, net.weight.data = (torch.tensor(v, dtype=torch.float64) for v in zip(*pairs, strict=True))
    net.weight.data = net.weight.data[:, None]
    return wrap(net)


def regions(model, start=0.0, end=1.0, **options):
    return exact_segments(model, [Segment([start], [end])], **options)[0]


def test_the_upper_envelope_of_lines():
    p = regions(lines((0.0, 0.0), (-0.25, 1.0), (-1.25, 3.0), (-5.0, 0.0)))
    assert p.labels.tolist() == [0, 1, 2]
    assert np.allclose(p.boundaries, [0.25, 0.5])
    assert p.status == "complete"
    assert p.n_pieces == 1


def test_three_lines_through_one_point_change_once():
    p = regions(lines((0.5, -1.0), (0.0, 0.0), (-0.5, 1.0)))
    assert p.labels.tolist() == [0, 2]
    assert np.allclose(p.boundaries, [0.5])


def test_a_tie_on_an_interval_is_reported_and_goes_to_the_first():
    p = regions(lines((0.0, 1.0), (0.0, 1.0), (0.5, 0.0)))
    assert p.labels.tolist() == [2, 0]
    assert p.status == "ties on an interval"


def test_a_tie_below_the_winner_is_none():
    assert regions(lines((0.0, 1.0), (0.0, 1.0), (2.0, 0.0))).status == "complete"


@pytest.mark.parametrize(("head", "expected"), [(None, [0, 1]), (nn.Sigmoid(), [0, 1])])
def test_one_output_is_positive_or_not(head, expected):
    net = nn.Linear(1, 1).double()
    net.weight.data, net.bias.data = torch.tensor([[2.0]]).double(), torch.tensor([-0.5]).double()
    p = regions(wrap(net if head is None else nn.Sequential(net, head)))
    assert p.labels.tolist() == expected
    assert np.allclose(p.boundaries, [0.25])


def test_one_output_that_is_zero_on_an_interval_has_label_zero():
    net = nn.Sequential(nn.Linear(1, 1), nn.ReLU()).double()
    net[0].weight.data[:], net[0].bias.data[:] = 1.0, -0.5
    p = regions(wrap(net))
    assert p.labels.tolist() == [0, 1]
    assert np.allclose(p.boundaries, [0.5])
    assert p.status == "ties on an interval"


def test_a_boundary_at_a_knot_and_a_boundary_at_the_end():
    net = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 2)).double()
    net[0].weight.data[:], net[0].bias.data[:] = 1.0, torch.tensor([-0.5, 5.0])
    net[2].weight.data[:], net[2].bias.data[:] = (
        torch.tensor([[0.0, 0.0], [1.0, 0.0]]),
        torch.tensor([0.0, 0.0]),
    )
    p = regions(wrap(net))  # scores 0 and relu(x - 1/2): equal on the first half
    assert p.labels.tolist() == [0, 1]
    assert np.allclose(p.boundaries, [0.5])
    assert regions(lines((0.0, 0.0), (-1.0, 1.0))).labels.tolist() == [0]


def test_a_softmax_changes_no_label():
    net = mlp(3, 16, 16, 4, seed=3)
    segments = [Segment(3 * np.ones(3) * s, -3 * np.ones(3) * s) for s in (1, 2)]
    plain = exact_segments(wrap(net), segments)
    headed = exact_segments(wrap(nn.Sequential(net, nn.LogSoftmax(dim=1))), segments)
    for a, b in zip(plain, headed, strict=True):
        assert np.array_equal(a.boundaries, b.boundaries)
        assert np.array_equal(a.labels, b.labels)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), n_out=st.sampled_from([1, 2, 10]))
def test_a_fine_grid_agrees_and_never_finds_more(seed, n_out):
    net = mlp(4, 16, 16, n_out, seed=seed).double()
    rng = np.random.default_rng(seed)
    segment = Segment(4 * rng.normal(size=4), 4 * rng.normal(size=4), span=(-1, 2))
    model = wrap(net)
    p = exact_segments(model, [segment])[0]
    check_against_grid(model, segment, p)


def check_against_grid(model, segment, p, n=5000):
    t = np.linspace(*segment.span, n)
    labels = model.labels(segment.points(t))
    away = np.abs(t[:, None] - np.append(p.boundaries, np.inf)).min(axis=1) > 1e-9
    assert np.array_equal(labels[away], p.labels[np.searchsorted(p.boundaries, t)][away])
    assert 1 + np.count_nonzero(np.diff(labels[away])) <= len(p.labels)
    assert (np.diff(p.labels) != 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(zoo.MAKERS) - {"cnn"}))
def test_the_zoo_against_a_grid(name):
    net, shape = copy.deepcopy(zoo.make(name)).double(), zoo.shape_of(name)
    rng = np.random.default_rng(2)
    start = rng.normal(size=shape)
    segment = Segment(start, start + 0.3 * rng.normal(size=shape))
    with torch.no_grad():  # centre the scores, so that labels change
        last = [m for m in net.modules() if isinstance(m, nn.Linear | nn.Conv2d)][-1]
        last.bias -= net(torch.from_numpy(segment.points([0.5])))[0]
    model = wrap(net, input_shape=shape)
    (p,) = exact_segments(model, [segment])
    assert len(p.labels) >= 2
    check_against_grid(model, segment, p, n=1000)


def test_many_segments_in_little_memory():
    net = mlp(4, 16, 16, 3).double()
    rng = np.random.default_rng(0)
    segments = [Segment(3 * rng.normal(size=4), 3 * rng.normal(size=4)) for _ in range(30)]
    for a, b in zip(
        exact_segments(wrap(net), segments), exact_segments(wrap(net), segments, memory=2**14), strict=True
    ):
        assert np.array_equal(a.labels, b.labels)
        assert np.allclose(a.boundaries, b.boundaries)
        assert a.n_pieces == b.n_pieces


def test_maps_of_scores_have_no_labels():
    with pytest.raises(PartitionError, match=r"scores of shape \(n, 2, 6, 6\)"):
        exact_segments(wrap(nn.Conv2d(1, 2, 3)), [Segment(np.zeros((1, 8, 8)), np.ones((1, 8, 8)))])
