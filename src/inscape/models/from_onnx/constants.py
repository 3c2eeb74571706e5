"""Constants of ONNX files: stored tensors, attributes, and nodes whose inputs are all constant."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Array = npt.NDArray[Any]

RANDOM = frozenset(
    ["RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"]
)
"""Operations that give another result each time, so that they are no constants whatever they read."""


def stored(graph: Any) -> dict[str, Array]:
    """The initialisers of a GraphProto by name."""
    from onnx import numpy_helper

    return {t.name: numpy_helper.to_array(t) for t in graph.initializer}


def attributes(node: Any) -> dict[str, Any]:
    """The attributes of a NodeProto as Python values; tensors are arrays, graphs stay as they are."""
    from onnx import TensorProto, helper, numpy_helper

    values = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    return {
        name: numpy_helper.to_array(v)
        if isinstance(v, TensorProto)
        else (v.decode() if isinstance(v, bytes) else v)
        for name, v in values.items()
    }


def evaluated(node: Any, inputs: Sequence[Array | None], opsets: dict[str, int]) -> list[Array]:
    """The outputs of a node on constants, by the reference implementation of the ONNX standard."""
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    given = {name: v for name, v in zip(node.input, inputs, strict=True) if v is not None}
    reads, writes = (
        [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in names if n]
        for names in (given, node.output)
    )
    graph = helper.make_graph([node], "constant", reads, writes)
    found = iter(np.asarray(r) for r in ReferenceEvaluator(graph, opsets=opsets).run(None, given))
    return [next(found) if name else np.empty(0) for name in node.output]


def tensor(array: Array) -> Tensor:
    """A private copy as a torch tensor; a float type that numpy lacks becomes float32."""
    known = array.dtype.kind in "iub" or array.dtype in (np.float16, np.float32, np.float64)
    return torch.from_numpy(np.array(array, dtype=None if known else np.float32, order="C"))


def integers(array: Array | Sequence[int]) -> tuple[int, ...]:
    """Axes, sizes or widths as a tuple of ints."""
    return tuple(int(i) for i in np.ravel(array))
