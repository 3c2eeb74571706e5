"""Our own convolution against that of torch."""

import itertools

import pytest
import torch
import torch.nn.functional as F

from inscape.models.graph import affine
from inscape.models.graph.convolution import convolve, in_slices


def random(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kernel", [(1, 1), (2, 2), (3, 3), (5, 4)])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolve_agrees_with_torch(kernel, groups):
    x, w, b = random(2, 4, 13, 14), random(6, 4 // groups, *kernel, seed=1), random(6, seed=2)
    for stride, padding, dilation in itertools.product(
        [(1, 1), (2, 2), (3, 1)], [(0, 0), (1, 2)], [(1, 1), (2, 1)]
    ):
        expected = F.conv2d(x, w, b, stride, padding, dilation, groups)
        assert torch.allclose(convolve(x, w, b, stride, padding, dilation, groups), expected, atol=1e-11)


def test_depthwise_and_wide_convolutions_agree_with_torch():
    x = random(2, 8, 30, 30)
    for w, groups in ((random(8, 1, 3, 3), 8), (random(8, 8, 3, 3), 1), (random(5, 8, 3, 3), 1)):
        y = affine.conv(w, None, padding=(1, 1), groups=groups)(x)
        assert torch.allclose(y, F.conv2d(x, w, None, 1, 1, 1, groups), atol=1e-11)


def test_slices_change_nothing():
    x, w = random(50, 16, 24, 24), random(4, 16, 3, 3)
    assert torch.equal(in_slices(lambda v: F.conv2d(v, w), x, w)[:7], F.conv2d(x[:7], w))
    assert in_slices(lambda v: F.conv2d(v, w), x, w).shape == (50, 4, 22, 22)
