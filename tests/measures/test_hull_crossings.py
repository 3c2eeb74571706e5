"""Hull crossings against hyperplanes by hand and evaluated corners."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from networks import cnn, mlp
from torch import nn

import inscape
from inscape.errors import MeasureError
from inscape.measures import HullCrossings


def test_in_one_dimension_the_hull_is_a_segment():
    """The first layer's crossings are the knots of that layer on [x - r, x + r], and so are the ball's."""
    net, x, r = mlp(1, 9, 1, seed=2).double(), np.linspace(-2, 2, 7)[:, None], 0.4
    found = inscape.hull_crossings(net, x, radius=r, n_directions=1)
    knots = [len(inscape.linear_regions(net, inscape.Segment(p - r, p + r)).knots) for p in x]
    assert found.counts.tolist() == knots
    assert found.ball.tolist() == knots


@given(st.integers(0, 30), st.integers(1, 5))
def test_the_first_layer_by_its_hyperplanes(seed, p):
    """|u| < r max_k |w v_k| on the hull with directions v, |u| < r |w| in the ball."""
    net, x, r = mlp(5, 12, 2, seed=seed).double(), np.random.default_rng(seed).normal(size=(4, 5)), 0.7
    found = inscape.hull_crossings(net, x, radius=r, n_directions=p, random_state=seed)
    w, b = net[0].weight.detach().numpy(), net[0].bias.detach().numpy()
    u = np.abs(x @ w.T + b)
    assert found.ball.tolist() == (u < r * np.linalg.norm(w, axis=1)).sum(axis=1).tolist()
    frames = np.linalg.qr(np.random.default_rng(seed).standard_normal((4, 5, p)))[0]
    reach = r * np.abs(np.einsum("hd,ndp->nhp", w, frames)).max(axis=2)
    assert found.counts.tolist() == (u < reach).sum(axis=1).tolist()
    assert (found.counts <= found.ball).all()


def test_deeper_layers_by_evaluating_the_corners():
    net, x, r = mlp(2, 6, 5, 4, 2, seed=1).double(), np.random.default_rng(0).normal(size=(3, 2)), 0.8
    found = inscape.hull_crossings(net, x, radius=r, n_directions=2, random_state=7)
    frames = np.linalg.qr(np.random.default_rng(7).standard_normal((3, 2, 2)))[0]
    expected = np.zeros(3)
    for i in range(3):
        corners = torch.from_numpy(
            np.stack([x[i] + s * r * frames[i][:, k] for k in range(2) for s in (1, -1)])
        )
        for stop in (1, 3, 5):
            positive = net[:stop](corners) > 0
            expected[i] += int((positive.any(dim=0) & ~positive.all(dim=0)).sum())
    assert found.counts.tolist() == expected.tolist()
    assert found.per_layer.sum() == pytest.approx(found.value)


def test_convolutions_and_pools():
    x = np.random.default_rng(0).normal(size=(2, 3, 32, 32))
    r = inscape.hull_crossings(cnn((2, 2, 2)), x, radius=0.5, n_directions=3, random_state=0)
    assert r.ball.shape == (2,)
    assert (r.counts > 0).all()
    net = nn.Sequential(nn.MaxPool1d(2), nn.Flatten(), nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    pooled = inscape.hull_crossings(
        inscape.wrap(net, input_shape=(1, 4)), np.ones((2, 1, 4)), radius=1, n_directions=2
    )
    assert pooled.ball.shape == (0,)


def test_result_and_bad_requests():
    net, x = mlp(2, 3, 2), np.ones((4, 2))
    r = inscape.hull_crossings(net, x, radius=0.5, n_directions=1, random_state=1)
    again = HullCrossings.from_dict(json.loads(json.dumps(r.to_dict(), allow_nan=False)))
    assert again.counts.tolist() == r.counts.tolist()
    assert r.plot().get_ylabel() == "units that change sign"
    with pytest.raises(MeasureError, match=r"radius=0 must be a positive number"):
        inscape.hull_crossings(net, x, radius=0, n_directions=1)
    with pytest.raises(MeasureError, match=r"n_directions=3 is more than the 2 dimensions"):
        inscape.hull_crossings(net, x, radius=1, n_directions=3)
