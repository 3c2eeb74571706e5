"""How ATen calls that may end a model without a change of labels are marked: softmax, tanh, argmax."""

import torch

from inscape.models.from_torch.known_names import called, unknown
from inscape.models.from_torch.recorder import Call, Translation, Value
from inscape.models.graph import affine
from inscape.models.graph.network import NotPiecewiseAffine
from inscape.models.graph.trace import INCREASING

_SETTINGS = {
    ("elu", (1.0, 1.0, 1.0)): "elu",
    ("elu", (1.6732632423543772, 1.0507009873554805, 1.0)): "selu",
    ("softplus", (1.0, 20.0)): "softplus",
}
"""ATen's functions with further arguments -> those of the table of heads."""


def _softmax(call: Call) -> Value:
    """Foreign; over all of at least two scores of a point it may end a model."""
    name, out = called(call.name), call.out
    value = call.varying(call.args[0])
    if int(call.args[1]) % max(out.ndim, 1) != out.ndim - 1:
        raise NotPiecewiseAffine(f"{name} over another axis than the last")
    if out.shape[-1] * call.n_rows != out.numel():
        raise NotPiecewiseAffine(f"{name} over a part of the scores")
    if out.shape[-1] == 1:
        raise NotPiecewiseAffine(f"{name} of one score, which is constant")
    return _marked(call, value, value.node, name, call.name)


def _increasing(call: Call) -> Value:
    """A strictly increasing function of each entry."""
    name, rest = called(call.name), tuple(float(a) for a in call.args[1:])
    heads = [h for (n, full), h in _SETTINGS.items() if n == name and full[: len(rest)] == rest]
    value = call.varying(call.args[0])
    if rest and not heads:
        raise unknown(call.name)
    return _marked(call, value, value.node, heads[0] if heads else name, call.name)


def _argmax(call: Call) -> Value:
    dim = call.argument(1, "dim")
    value = call.varying(call.args[0])
    if dim is None:
        raise unknown(call.name)
    return position(call, value, int(dim), is_largest=call.name == "argmax")


def position(call: Call, value: Value, dim: int, *, is_largest: bool) -> Value:
    """Where the largest or smallest score of each point is, which is its label if the model ends there."""
    name, x = "argmax" if is_largest else "argmin", call.args[0]
    is_label = x.ndim == 2 and value.at(0) == Value(0) and dim % 2 == 1 and x.shape[1] > 1
    if not is_label:
        return Value(call.emit_foreign(unknown(name), value.node))
    node = call.recorder.before_head(value.node)
    node = node if is_largest else call.emit(affine.scale(torch.tensor(-1.0)), node)
    return _marked(call, Value(0), node, "argmax", name)


def _marked(call: Call, like: Value, node: int, head: str, name: str) -> Value:
    """A place holder behind a node, which is set aside if it ends the model."""
    place = call.emit_foreign(unknown(name), node)
    call.recorder.heads[place] = head
    return like.at(place)


ENDINGS: dict[str, Translation] = {
    **dict.fromkeys(["_softmax", "_log_softmax"], _softmax),
    **dict.fromkeys([*INCREASING, "log_sigmoid_forward"], _increasing),
    **dict.fromkeys(["argmax", "argmin"], _argmax),
}
"""How each call becomes nodes, by its name without overload."""
