"""How ONNX operations that pick entries by constant places become nodes.

Which entry goes where is found by the operation itself, as the reference implementation of the standard has
it, on numbers in place of the entries.
"""

import math

import numpy as np
import torch
from torch import Tensor

from inscape.models.from_onnx.arithmetic import scaled
from inscape.models.from_onnx.shapes import full
from inscape.models.from_onnx.steps import Array, Live, Step, Translation, Value, evaluated, tensor
from inscape.models.graph import affine
from inscape.models.graph.affine import Affine
from inscape.models.graph.network import NotSupportedYet


def _picked(step: Step) -> Value:
    """An operation whose first input varies and whose result holds entries of it only."""
    live = step.live()
    rest = [step.constant(i) for i in range(1, len(step.inputs))]
    numbers = np.arange(math.prod(live.shape), dtype=np.float64).reshape(live.shape)
    (places,) = evaluated(step.node, [numbers, *rest], step.reader.opsets)
    node = step.laid(live, (math.prod(live.shape),))
    chosen = torch.from_numpy(places.reshape(-1).astype(np.int64))
    return Live(step.emit(affine.take(0, chosen), node), places.shape)


def _scattered(step: Step) -> Value:
    """A tensor with some entries replaced by those of another, either of which may be constant."""
    if step.attributes.get("reduction", "none") != "none":
        raise NotSupportedYet(f"{step.kind} with a reduction")
    data, places, updates = step.given(0), step.required(1), step.given(2)
    assert data is not None
    assert updates is not None
    both = [data, updates]
    sizes = [math.prod(p.shape) for p in both]
    first = np.arange(sizes[0], dtype=np.float64).reshape(data.shape)
    second = sizes[0] + np.arange(sizes[1], dtype=np.float64).reshape(updates.shape)
    (sources,) = evaluated(step.node, [first, places, second], step.reader.opsets)
    chosen = torch.from_numpy(sources.reshape(-1).astype(np.int64))
    varying = [isinstance(p, Live) for p in both]
    fixed = [tensor(p).reshape(1, -1) for p in both if not isinstance(p, Live)]

    def apply(*tensors: Tensor) -> Tensor:
        moving, constant = iter(tensors), iter(tensors[sum(varying) :])
        n = len(tensors[0])
        rows = [next(moving) if v else next(constant).expand(n, -1) for v in varying]
        return torch.cat(rows, dim=1)[:, chosen]

    nodes = [step.laid(p, (math.prod(p.shape),)) for p in both if isinstance(p, Live)]
    op = Affine("scatter", apply, tuple(fixed), n_offsets=len(fixed))
    return Live(step.emit(op, *nodes), sources.shape)


def _cumulated(step: Step) -> Value:
    live = step.live()
    axis = int(step.required(1).item()) % len(live.shape)
    if live.shape[axis] == 1:
        return scaled(step, live, np.array(0.0)) if step.attributes.get("exclusive", 0) else live
    node, missing, _ = full(step, live, axis)
    exclusive, reverse = (bool(step.attributes.get(name, 0)) for name in ("exclusive", "reverse"))
    op = affine.cumulated(axis - missing, exclusive=exclusive, reverse=reverse)
    return Live(step.emit(op, node), live.shape)


def _triangle(step: Step) -> Value:
    live, k = step.live(), step.constant(1)
    ones: Array = np.ones(live.shape[-2:])
    offset = 0 if k is None else int(k.item())
    keep = np.triu(ones, offset) if step.attributes.get("upper", 1) else np.tril(ones, offset)
    return scaled(step, live, keep)


TRANSLATIONS: dict[str, Translation] = {
    **dict.fromkeys(
        ["GatherElements", "GatherND", "DepthToSpace", "SpaceToDepth", "ReverseSequence", "Compress"], _picked
    ),
    **dict.fromkeys(["ScatterElements", "ScatterND"], _scattered),
    "CumSum": _cumulated,
    "Trilu": _triangle,
}
