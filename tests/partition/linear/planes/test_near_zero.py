"""Which networks bend in many directions near the input 0."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import inscape
from inscape.partition.linear.planes.subdivision import centre_of
from inscape.probes.plane import Plane


def small_biases(rng, d, width, scale):
    """A layer after a layer, with biases of which each is small with a chance of one half."""
    net = nn.Sequential(nn.Linear(d, 4), nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 1)).double()
    with torch.no_grad():
        net[0].bias *= float(rng.choice([0.0, scale]))
        net[1].bias *= torch.from_numpy(rng.choice([1.0, scale], size=width))
        net[1].weight[0] *= float(rng.choice([0.0, 1.0]))
    return net


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(-14, -3), st.floats(1e-3, 1e3))
def test_the_centre_is_found_where_two_units_vanish(seed, width, power, half):
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    net = small_biases(rng, 3, width, 10.0**power)
    plane = Plane(np.zeros(3), np.linalg.qr(rng.normal(size=(3, 2)))[0].T)
    corners = half * np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]])
    with torch.no_grad():
        z = np.abs(
            net[:2](torch.from_numpy(np.concatenate([np.zeros((1, 3)), corners @ plane.axes]))).numpy()
        )
    n_vanishing = int((z[0] <= 1e-6 * z[1:].max(axis=0)).sum())
    found = centre_of(inscape.wrap(net).graph((3,)), plane, corners)
    assert (found is not None) == (n_vanishing > 1)
    assert found is None or not found.any()
