"""How ONNX operations on images become nodes: convolution, pooling, resampling."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from inscape.arrays import Array, Shape
from inscape.models.from_onnx.shapes import full, taken
from inscape.models.from_onnx.steps import (
    FileValue,
    NodeTranslation,
    Step,
    Varying,
    integers,
    point_shape,
    tensor,
)
from inscape.models.graph import affine
from inscape.models.graph.affine import Affine
from inscape.models.graph.network import NotSupportedYet
from inscape.models.graph.piecewise import PaddedMaxPool, Windows, max_pool


@dataclass(frozen=True)
class Frame:
    """How windows lie on the axes after the channels; every tuple has one number per axis.

    Attributes:
        kernel: the entries of a window.
        stride: the distance from a window to the next.
        dilation: the distance of its entries.
        before: padding in front.
        after: padding behind.
        overhang: how far the last window reaches beyond that (`ceil_mode`).
    """

    kernel: Shape
    stride: Shape
    dilation: Shape
    before: Shape
    after: Shape
    overhang: Shape

    @property
    def is_symmetric(self) -> bool:
        """Whether the padding is the same in front and behind."""
        return self.before == self.after and not any(self.overhang)

    @property
    def widths(self) -> Shape:
        """All padding, as `torch.nn.functional.pad` takes it."""
        sides = zip(self.before, self.after, self.overhang, strict=True)
        return tuple(w for b, a, o in reversed(list(sides)) for w in (b, a + o))


def frame(step: Step, kernel: Shape, size: Shape) -> Frame:
    """The windows that a node's attributes describe, on axes of the given sizes."""
    n = len(kernel)
    stride, dilation = (integers(step.attributes.get(a, [1] * n)) for a in ("strides", "dilations"))
    reach = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
    mode, pads = step.attributes.get("auto_pad", "NOTSET"), integers(step.attributes.get("pads", [0] * 2 * n))
    if mode.startswith("SAME"):
        total = [max((-(-s // t) - 1) * t + r - s, 0) for s, t, r in zip(size, stride, reach, strict=True)]
        less, more = tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)
        pads = less + more if mode == "SAME_UPPER" else more + less
    elif mode == "VALID":
        pads = (0,) * 2 * n
    before, after = pads[:n], pads[n:]
    overhang = (0,) * n
    if step.attributes.get("ceil_mode", 0):
        overhang = tuple(map(_overhang, size, before, after, reach, stride))
    return Frame(kernel, stride, dilation, before, after, overhang)


def _overhang(size: int, before: int, after: int, reach: int, stride: int) -> int:
    spare = size + before + after - reach
    n_out = -(-spare // stride) + 1
    if (n_out - 1) * stride >= size + before:  # a window that would start in the padding behind is dropped
        n_out -= 1
    return max((n_out - 1) * stride - spare, 0)


def image(step: Step, n: int) -> tuple[Varying, int, Shape]:
    """The input as channels and `n` further axes: the tensor, a node with such points, and the sizes."""
    live = step.live()
    if len(live.shape) != n + 2 or live.shape[0] != 1:
        raise NotSupportedYet(f"{step.kind} of a tensor of shape {live.shape}")
    return live, step.laid(live), live.shape[2:]


def _result(step: Step, node: int) -> Varying:
    return Varying(node, (1, *step.reader.shape(node)))


def _kernel(step: Step) -> tuple[Tensor, Tensor | None]:
    weight, bias = step.required(1), step.constant(2)
    if not 3 <= weight.ndim <= 5:
        raise NotSupportedYet(f"{step.kind} with a kernel of shape {weight.shape}")
    return tensor(weight), None if bias is None else tensor(bias)


def _conv(step: Step) -> FileValue:
    weight, bias = _kernel(step)
    _, node, size = image(step, weight.ndim - 2)
    f = frame(step, tuple(weight.shape[2:]), size)
    padding = f.before
    if not f.is_symmetric:
        node, padding = step.emit(affine.pad(f.widths), node), (0,) * len(size)
    groups = int(step.attributes.get("group", 1))
    op = affine.conv(weight, bias, stride=f.stride, padding=padding, dilation=f.dilation, groups=groups)
    return _result(step, step.emit(op, node))


def _conv_transpose(step: Step) -> FileValue:
    weight, bias = _kernel(step)
    n = weight.ndim - 2
    _, node, size = image(step, n)
    stride, dilation, extra = (
        integers(step.attributes.get(name, [default] * n))
        for name, default in (("strides", 1), ("dilations", 1), ("output_padding", 0))
    )
    reach = [d * (k - 1) + 1 for k, d in zip(weight.shape[2:], dilation, strict=True)]
    whole = [(m - 1) * s + r + e for m, s, r, e in zip(size, stride, reach, extra, strict=True)]
    before, after, more = _taken_away(step, size, stride, whole)
    extra = tuple(a + b for a, b in zip(extra, more, strict=True))
    op = affine.conv_transpose(
        weight,
        bias,
        stride=stride,
        padding=before if before == after else (0,) * n,
        output_padding=extra,
        dilation=dilation,
        groups=int(step.attributes.get("group", 1)),
    )
    node = step.emit(op, node)
    if before != after:
        widths = [-w for b, a in reversed(list(zip(before, after, strict=True))) for w in (b, a)]
        node = step.emit(affine.pad(widths), node)
    return _result(step, node)


def _taken_away(step: Step, size: Shape, stride: Shape, whole: list[int]) -> tuple[Shape, Shape, Shape]:
    """What a transposed convolution cuts off in front and behind, or adds behind `whole`, the uncut size."""
    n, mode = len(size), step.attributes.get("auto_pad", "NOTSET")
    target = step.attributes.get("output_shape")
    if target is None and mode.startswith("SAME"):
        target = [m * s for m, s in zip(size, stride, strict=True)]
    if target is None:
        pads = (0,) * 2 * n if mode == "VALID" else integers(step.attributes.get("pads", [0] * 2 * n))
        return pads[:n], pads[n:], (0,) * n
    rest = [w - t for w, t in zip(whole, integers(target)[-n:], strict=True)]
    less, more = tuple(max(r, 0) // 2 for r in rest), tuple(max(r, 0) - max(r, 0) // 2 for r in rest)
    missing = tuple(max(-r, 0) for r in rest)
    return (less, more, missing) if mode == "SAME_UPPER" else (more, less, missing)


def _average_pool(step: Step) -> FileValue:
    kernel = integers(step.attributes["kernel_shape"])
    _, node, size = image(step, len(kernel))
    f = frame(step, kernel, size)
    inside = torch.ones(1, 1, *size, dtype=torch.float64)
    sides = [w for b, a in reversed(list(zip(f.before, f.after, strict=True))) for w in (b, a)]
    counted = F.pad(inside, sides, value=float(bool(step.attributes.get("count_include_pad", 0))))
    hangs = [w for o in reversed(f.overhang) for w in (0, o)]
    share = _averages(F.pad(counted, hangs), f)[0]  # the fraction of each window that counts, (1, ...)
    widths = f.widths

    def apply(x: Tensor, *factor: Tensor) -> Tensor:
        means = _averages(F.pad(x, widths) if any(widths) else x, f)
        return means * factor[0] if factor else means

    constants = () if bool((share == 1).all()) else (1 / share,)
    return _result(step, step.emit(Affine("avg_pool", apply, constants), node))


def _averages(x: Tensor, f: Frame) -> Tensor:
    """The mean over every window of each channel, padding included."""
    n = len(f.kernel)
    if max(f.dilation) > 1:
        convolve: Any = (F.conv1d, F.conv2d, F.conv3d)[n - 1]
        weight = torch.full((x.shape[1], 1, *f.kernel), 1 / torch.Size(f.kernel).numel(), dtype=x.dtype)
        spread: Tensor = convolve(x, weight, None, f.stride, 0, f.dilation, x.shape[1])
        return spread
    pool: Any = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[n - 1]
    result: Tensor = pool(x, f.kernel, f.stride)
    return result


def _max_pool(step: Step) -> FileValue:
    kernel = integers(step.attributes["kernel_shape"])
    live, node, size = image(step, len(kernel))
    f = frame(step, kernel, size)
    op: Windows
    if f.is_symmetric and all(2 * p <= k for p, k in zip(f.before, kernel, strict=True)):
        op = max_pool(kernel, f.stride, f.before, f.dilation)
    else:
        op = PaddedMaxPool(max_pool(kernel, f.stride, (0,), f.dilation), f.widths)
    if f.dilation != (1,) * len(kernel) and bool((op.table(point_shape(live.shape)) < 0).all(dim=1).any()):
        raise NotSupportedYet("MaxPool with a window that holds nothing but padding")
    return _result(step, step.emit(op, node))


def coordinates(mode: str, n_in: int, n_out: int, scale: float) -> Array:
    """Where each of `n_out` entries lies among `n_in`, by the formulas of the ONNX standard.

    >>> coordinates("asymmetric", 2, 4, 2.0).tolist()
    [0.0, 0.5, 1.0, 1.5]
    """
    i = np.arange(n_out, dtype=np.float64)
    if mode == "asymmetric":
        return i / scale
    if mode == "align_corners":
        return i * (n_in - 1) / max(n_out - 1, 1)
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and n_out > 1):
        return (i + 0.5) / scale - 0.5
    if mode == "pytorch_half_pixel":
        return np.zeros(1)
    raise NotSupportedYet(f"Resize with coordinates {mode!r}")


def nearest(x: Array, n_in: int, mode: str) -> Array:
    """The entry numbers next to coordinates."""
    rounded = {
        "round_prefer_floor": np.ceil(x - 0.5),
        "round_prefer_ceil": np.floor(x + 0.5),
        "floor": np.floor(x),
        "ceil": np.ceil(x),
    }[mode]
    return np.clip(rounded, 0, n_in - 1).astype(np.int64)


def weights(x: Array, n_in: int) -> Array:
    """The matrix (n_out, n_in) of linear interpolation at coordinates, which are clipped to the axis."""
    x = np.clip(x, 0, n_in - 1)
    low = np.floor(x).astype(np.int64)
    matrix, rows = np.zeros((len(x), n_in)), np.arange(len(x))
    np.add.at(matrix, (rows, low), 1 - (x - low))
    np.add.at(matrix, (rows, np.minimum(low + 1, n_in - 1)), x - low)
    return matrix


def _interpolated(step: Step, live: Varying, axis: int, matrix: Array) -> Varying:
    node, missing, sizes = full(step, live, axis)
    backwards = axis - missing - len(sizes)

    def apply(x: Tensor, m: Tensor) -> Tensor:
        return torch.nn.functional.linear(x.movedim(backwards, -1), m).movedim(-1, backwards)

    shape = (*live.shape[:axis], len(matrix), *live.shape[axis + 1 :])
    return Varying(step.emit(Affine("resize", apply, (tensor(matrix),)), node), shape)


def _resize(step: Step) -> FileValue:
    live, old = step.live(), step.kind == "Upsample" or step.opset < 11
    scales = step.constant(1 if old else 2, "scales")
    sizes = None if old else step.constant(3)
    rank = len(live.shape)
    axes = [a % rank for a in integers(step.attributes.get("axes", range(rank)))]
    mode = step.attributes.get("mode", "nearest")
    default = ("asymmetric", "floor") if old else ("half_pixel", "round_prefer_floor")
    where = step.attributes.get("coordinate_transformation_mode", default[0])
    rounding = step.attributes.get("nearest_mode", default[1])
    policy = step.attributes.get("keep_aspect_ratio_policy", "stretch")
    plain = policy == "stretch" and not step.attributes.get("antialias", 0)
    if mode not in ("nearest", "linear", "bilinear") or not plain:
        raise NotSupportedYet(f"{step.kind} of mode {mode!r}")
    for k, axis in enumerate(axes):
        n_in = live.shape[axis]
        by_scale = scales is not None and scales.size > 0
        scale = float(scales[k]) if by_scale and scales is not None else 0.0
        n_out = int(np.floor(n_in * scale)) if sizes is None or by_scale else integers(sizes)[k]
        if n_in == n_out and (not by_scale or scale == 1.0):
            continue
        x = coordinates(where, n_in, n_out, scale if by_scale else n_out / n_in)
        if mode == "nearest":
            live = taken(step, live, axis, nearest(x, n_in, rounding))
        else:
            live = _interpolated(step, live, axis, weights(x, n_in))
    return live


TRANSLATIONS: dict[str, NodeTranslation] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "AveragePool": _average_pool,
    "MaxPool": _max_pool,
    "Resize": _resize,
    "Upsample": _resize,
}
