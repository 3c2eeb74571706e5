"""How ONNX resampling becomes nodes: nearest neighbours and linear interpolation, axis by axis."""

import numpy as np
import torch
from torch import Tensor

from inscape.models.from_onnx.shapes import full, taken
from inscape.models.from_onnx.steps import Array, Live, Step, Translation, Value, integers, tensor
from inscape.models.graph.affine import Affine
from inscape.models.graph.network import NotSupportedYet


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


def _interpolated(step: Step, live: Live, axis: int, matrix: Array) -> Live:
    node, missing, row = full(step, live, axis)
    backwards = axis - missing - len(row)

    def apply(x: Tensor, m: Tensor) -> Tensor:
        return torch.nn.functional.linear(x.movedim(backwards, -1), m).movedim(-1, backwards)

    shape = (*live.shape[:axis], len(matrix), *live.shape[axis + 1 :])
    return Live(step.emit(Affine("resize", apply, (tensor(matrix),)), node), shape)


def _resize(step: Step) -> Value:
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


TRANSLATIONS: dict[str, Translation] = {"Resize": _resize, "Upsample": _resize}
