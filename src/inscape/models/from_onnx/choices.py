"""How ONNX comparisons, and the choices that are made by them, become nodes."""

import numpy as np

from inscape.arrays import Shape
from inscape.models.from_onnx.arithmetic import chosen, combined, negated, scaled, shifted
from inscape.models.from_onnx.steps import Array, Compared, Live, Step, Translation, Value, path_of, unknown
from inscape.models.graph import affine
from inscape.models.graph.gates import Both, Condition, Not, Positive
from inscape.models.graph.network import Foreign, NotSupportedYet

_SIGNS = {"Greater": 1.0, "GreaterOrEqual": 1.0, "Less": -1.0, "LessOrEqual": -1.0}


def _compare(step: Step) -> Value:
    """What is compared, for a choice to ask."""
    a, b = step.given(0), step.given(1)
    if _SIGNS[step.kind] < 0:
        a, b = b, a
    if isinstance(a, Live) and isinstance(b, Live):
        difference = combined(step, affine.subtract(), a, b)
    elif isinstance(a, Live):
        assert isinstance(b, np.ndarray)
        difference = shifted(step, a, -b) if b.any() else a
    else:
        assert isinstance(b, Live)
        assert isinstance(a, np.ndarray)
        difference = shifted(step, negated(step, b), a) if a.any() else negated(step, b)
    return _compared(step, Positive(step.laid(difference)), difference.shape)


def _compared(step: Step, condition: Condition, shape: Shape) -> Compared:
    return Compared(condition, shape, Foreign(step.kind, path_of(step.node), unknown(step.kind).verdict))


def _masks(step: Step) -> list[Compared]:
    masks = [v for v in step.inputs if isinstance(v, Compared)]
    if len(masks) < len(step.inputs) or len({m.shape for m in masks}) > 1:
        raise NotSupportedYet(f"{step.kind} of anything but two comparisons of one shape")
    return masks


def _not(step: Step) -> Value:
    (mask,) = _masks(step)
    return _compared(step, Not(mask.condition), mask.shape)


def _and(step: Step) -> Value:
    a, b = _masks(step)
    return _compared(step, Both(a.condition, b.condition), a.shape)


def _or(step: Step) -> Value:
    a, b = _masks(step)
    return _compared(step, Not(Both(Not(a.condition), Not(b.condition))), a.shape)


def _where(step: Step) -> Value:
    mask = step.inputs[0]
    if isinstance(mask, Compared):
        return chosen(step, mask, _side(step, 1), _side(step, 2))
    keep = step.required(0).astype(np.float64)
    total: Live | None = None
    for position, part in ((1, keep), (2, 1 - keep)):
        side = _side(step, position)
        if isinstance(side, Live):
            kept = scaled(step, side, part)
            total = kept if total is None else combined(step, affine.add(), total, kept)
    fill = sum((np.where(p > 0, s, 0.0) for p, s in _constants(step, keep)), np.zeros(()))
    assert total is not None
    return shifted(step, total, fill) if np.any(fill) or fill.ndim > len(total.shape) else total


def _constants(step: Step, keep: Array) -> list[tuple[Array, Array]]:
    sides = ((keep, _side(step, 1)), (1 - keep, _side(step, 2)))
    return [(p, s.astype(np.float64)) for p, s in sides if not isinstance(s, Live)]


def _side(step: Step, position: int) -> Live | Array:
    side = step.given(position)
    assert side is not None
    return side


TRANSLATIONS: dict[str, Translation] = {
    **dict.fromkeys(_SIGNS, _compare),
    "Not": _not,
    "And": _and,
    "Or": _or,
    "Where": _where,
}
