"""Convolution in float64 for few channels on large maps, where torch has no fast kernel.

torch lowers a float64 convolution to a matrix product per image, whose one side is the number of output
channels; with 8 channels on 32 x 32 maps it runs at a tenth of the speed of a large product. Here every image
is padded once and sorted into stride x stride phases, so that each tap of the kernel is a contiguous shift of
a flattened plane; four output planes and three taps are summed in one vector loop.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from inscape.compiled import compiled

SHIFTED_UP_TO_CHANNELS, SHIFTED_FROM_PIXELS = 64, 784
"""Output channels up to which, and pixels of a map from which on, sums of shifted planes beat a product."""
NUMBERS_IN_SLICE = 2**19
"""Numbers that torch may spread out for one product: four megabytes. Larger matrices leave the cache of a
core before the product reads them; smaller ones are so many calls that these take a tenth of the time."""


def is_faster(x: Tensor, weight: Tensor, stride: tuple[int, ...], groups: int) -> bool:
    """Whether `convolve` is expected to beat torch: float64 on large maps with few or separate channels."""
    if x.requires_grad:
        return False  # torch differentiates its own convolution only
    if x.dtype != torch.float64 or x.device.type != "cpu" or weight.ndim != 4 or stride != (1, 1):
        return False
    if groups > 1:
        return weight.shape[1] == 1
    few = weight.shape[0] <= SHIFTED_UP_TO_CHANNELS and weight.shape[2] * weight.shape[3] > 1
    return few and math.prod(x.shape[2:]) >= SHIFTED_FROM_PIXELS


def in_slices(function: Callable[[Tensor], Tensor], x: Tensor, weight: Tensor) -> Tensor:
    """A convolution of torch, on chunks of points whose matrix of columns stays small."""
    if x.dtype != torch.float64:
        return function(x)
    n = max(1, NUMBERS_IN_SLICE // (math.prod(weight.shape[2:]) * math.prod(x.shape[1:])))
    if len(x) <= n:
        return function(x)
    first = function(x[:n])
    out = torch.empty((len(x), *first.shape[1:]), dtype=x.dtype)
    out[:n] = first
    for start in range(n, len(x), n):
        out[start : start + n] = function(x[start : start + n])
    return out


def convolve(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> Tensor:
    """The convolution of x (n, c, h, w) with weight (o, c / groups, kh, kw), as torch defines it."""
    size = [
        (x.shape[k + 2] + 2 * padding[k] - dilation[k] * (weight.shape[k + 2] - 1) - 1) // stride[k] + 1
        for k in (0, 1)
    ]
    out = torch.empty((len(x), len(weight), *size), dtype=x.dtype)
    shift = np.zeros(len(weight)) if bias is None else bias.numpy()
    _convolve(
        x.contiguous().numpy(),
        weight.contiguous().numpy(),
        shift,
        stride,
        padding,
        dilation,
        groups,
        out.numpy(),
    )
    return out


@compiled(fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def _convolve(x, weight, bias, stride, padding, dilation, groups, out):
    n, n_in, height, width = x.shape
    n_out, per_group, kh, kw = weight.shape
    sy, sx = stride
    ho, wo = out.shape[2:]
    rows, pitch = (height + 2 * padding[0] + sy - 1) // sy, (width + 2 * padding[1] + sx - 1) // sx
    length = (ho - 1) * pitch + wo
    # the last taps may read past a plane's end, into entries that are never copied out
    planes = np.zeros((n_in, sy, sx, rows * pitch + kw * dilation[1] + kh * dilation[0] * pitch))
    total = np.empty((4, length))
    outs = n_out // groups
    for r in range(n):
        # (1) the padded image, sorted by phase so that a stride reads neighbours
        _sort_by_phase(x[r], planes, padding, pitch)
        for o in range(n_out):
            group = o // outs
            inside = o - group * outs
            block = 4 if outs - outs % 4 > inside else 1
            if block == 4 and inside % 4 != 0:
                continue  # done with the three planes before it
            # (2) four output planes at once where the group has them: start from the bias, add every tap
            for k in range(block):
                total[k] = bias[o + k]
            for i in range(per_group):
                for a in range(kh):
                    phases = planes[group * per_group + i, (a * dilation[0]) % sy]
                    down = (a * dilation[0]) // sy * pitch
                    if block == 4:
                        _add_four(total, phases, weight[o : o + 4, i, a], down, dilation[1], length)
                    else:
                        _add_one(total[0], phases, weight[o, i, a], down, dilation[1], length)
            # (3) copy out, without the entries between the rows
            for k in range(block):
                for y in range(ho):
                    for v in range(wo):
                        out[r, o + k, y, v] = total[k, y * pitch + v]


@compiled
def _sort_by_phase(image, planes, padding, pitch):
    """Put an image (c, h, w) into the phases of its padded planes; the padding is zero already."""
    n_in, height, width = image.shape
    sy, sx = planes.shape[1:3]
    for c in range(n_in):
        for y in range(height):
            py, row = (y + padding[0]) % sy, (y + padding[0]) // sy * pitch
            if sx == 1:
                for v in range(width):
                    planes[c, py, 0, row + padding[1] + v] = image[c, y, v]
            else:
                for v in range(width):
                    planes[c, py, (v + padding[1]) % sx, row + (v + padding[1]) // sx] = image[c, y, v]


@compiled(fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def _add_four(total, phases, weight, down, dilation, length):
    """Add the taps of one kernel row, weight (4, kw), to four planes."""
    sx, kw = len(phases), weight.shape[1]
    t0, t1, t2, t3 = total[0], total[1], total[2], total[3]
    b = 0
    # (1) three taps at a time: each pass over the planes reads three inputs for twelve products
    while b + 3 <= kw:
        s0, s1 = down + b * dilation // sx, down + (b + 1) * dilation // sx
        s2 = down + (b + 2) * dilation // sx
        x0 = phases[b * dilation % sx][s0 : s0 + length]
        x1 = phases[(b + 1) * dilation % sx][s1 : s1 + length]
        x2 = phases[(b + 2) * dilation % sx][s2 : s2 + length]
        w00, w01, w02 = weight[0, b], weight[0, b + 1], weight[0, b + 2]
        w10, w11, w12 = weight[1, b], weight[1, b + 1], weight[1, b + 2]
        w20, w21, w22 = weight[2, b], weight[2, b + 1], weight[2, b + 2]
        w30, w31, w32 = weight[3, b], weight[3, b + 1], weight[3, b + 2]
        for v in range(length):
            p, q, u = x0[v], x1[v], x2[v]
            t0[v] += w00 * p + w01 * q + w02 * u
            t1[v] += w10 * p + w11 * q + w12 * u
            t2[v] += w20 * p + w21 * q + w22 * u
            t3[v] += w30 * p + w31 * q + w32 * u
        b += 3
    # (2) the one or two taps that are left over
    while b < kw:
        s0 = down + b * dilation // sx
        x0 = phases[b * dilation % sx][s0 : s0 + length]
        w0, w1, w2, w3 = weight[0, b], weight[1, b], weight[2, b], weight[3, b]
        for v in range(length):
            p = x0[v]
            t0[v] += w0 * p
            t1[v] += w1 * p
            t2[v] += w2 * p
            t3[v] += w3 * p
        b += 1


@compiled(fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def _add_one(total, phases, weight, down, dilation, length):
    """Add the taps of one kernel row, weight (kw,), to one plane."""
    sx = len(phases)
    for b in range(len(weight)):
        s0 = down + b * dilation // sx
        x0, w = phases[b * dilation % sx][s0 : s0 + length], weight[b]
        for v in range(length):
            total[v] += w * x0[v]
