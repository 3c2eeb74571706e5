"""Windows and derivatives of piecewise-linear operations against torch and differences."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F

from inscape.models.graph.piecewise import Clip, Leaky, MaxOver, max_pool


@pytest.mark.parametrize("size", [7, 8])
def test_window_tables_agree_with_torch(size):
    x = torch.randn(2, 3, size, size + 3)
    for k, s, p, d, ceil in itertools.product((2, 3), (1, 2, 3), (0, 1), (1, 2), (False, True)):
        op = max_pool((k, k), (s, s), (p, p), (d, d), ceil_mode=ceil)
        y = F.max_pool2d(x, k, s, p, d, ceil)
        table = op.table((3, size, size + 3))
        entries = x.flatten(1)[:, table.clamp(min=0)].masked_fill(table < 0, -math.inf)
        assert torch.equal(op(x), y)
        assert torch.equal(entries.amax(-1), y.flatten(1))


@pytest.mark.parametrize(
    "op",
    [Leaky(), Leaky(0.1), Leaky(-1.0), Leaky(torch.tensor([0.0, 0.5, 2.0])), Clip(-0.5, 0.5), Clip(low=0.2)],
)
def test_derivatives_agree_with_differences(op):
    x, dx = torch.randn(2, 200, 3, dtype=torch.float64)
    difference = (op.cast(torch.float64)(x + 1e-9 * dx) - op.cast(torch.float64)(x)) / 1e-9
    assert torch.allclose(op.cast(torch.float64).derivative(x, dx), difference, atol=1e-5)


@pytest.mark.parametrize("op", [max_pool((2, 2)), max_pool((3, 3), (2, 2), (1, 1)), MaxOver((1, 2))])
def test_derivatives_of_windows_agree_with_differences(op):
    x, dx = torch.randn(2, 5, 2, 6, 6, dtype=torch.float64)
    assert torch.allclose(op.derivative(x, dx), (op(x + 1e-9 * dx) - op(x)) / 1e-9, atol=1e-5)


def test_among_equal_entries_the_steepest_gives_the_slope():
    x, dx = torch.zeros(1, 4), torch.tensor([[1.0, -2.0, 3.0, 0.0]])
    assert MaxOver((0,)).derivative(x, dx).item() == 3.0
