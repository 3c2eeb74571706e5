"""How an ONNX RNN with relu becomes nodes: unrolled over time."""

from collections.abc import Sequence

import numpy as np

from inscape.models.from_onnx.arithmetic import added, applied, shifted
from inscape.models.from_onnx.products import product
from inscape.models.from_onnx.shapes import joined, taken
from inscape.models.from_onnx.steps import Array, Live, Step, Translation, Value
from inscape.models.graph.network import NotPiecewiseAffine, NotSupportedYet
from inscape.models.graph.piecewise import Leaky

_TIMES_OF = {"forward": [1], "reverse": [-1], "bidirectional": [1, -1]}


def _rnn(step: Step) -> list[Value]:
    """The states h_t = relu(W x_t + R h_(t-1) + b) in one direction or both: all, and the last."""
    kinds = step.attributes.get("activations", [b"Tanh"])
    for kind in {k.decode() if isinstance(k, bytes) else str(k) for k in kinds} - {"Relu"}:
        raise NotPiecewiseAffine(f"RNN with {kind}")
    if step.attributes.get("clip") is not None or step.constant(4) is not None:
        raise NotSupportedYet("RNN with clip or sequence_lens")
    points_first = bool(step.attributes.get("layout", 0))
    live = step.live()
    time, batch = (1, 0) if points_first else (0, 1)
    if live.shape[batch] != 1:
        raise NotSupportedYet(f"RNN of a tensor of shape {live.shape}")
    weights = [step.required(i) for i in (1, 2)]
    bias, start = step.constant(3), step.constant(5)
    signs = _TIMES_OF[step.attributes.get("direction", "forward")]
    runs = []
    for d, sign in enumerate(signs):
        w, r = (m[d] for m in weights)
        offset = np.zeros(2 * len(r), w.dtype) if bias is None else bias[d]
        first = None if start is None else (start[0, d] if points_first else start[d, 0])
        inputs = [_at(step, live, time, t) for t in range(live.shape[time])][::sign]
        runs.append(_states(step, inputs, w, r, offset, first)[::sign])
    last = [run[-1 if sign > 0 else 0] for run, sign in zip(runs, signs, strict=True)]
    return _arranged(step, runs, last, points_first=points_first)


def _at(step: Step, live: Live, time: int, t: int) -> Live:
    """The input (1, size) at one time."""
    return step.reshaped(taken(step, live, time, np.array([t])), (1, live.shape[-1]))


def _states(
    step: Step, inputs: Sequence[Live], w: Array, r: Array, bias: Array, start: Array | None
) -> list[Live]:
    """The state (1, hidden) after each of the inputs."""
    h = len(r)
    states: list[Live] = []
    for x in inputs:
        z = shifted(step, product(step, x, w.T), bias[:h] + bias[h:])
        if states:
            z = added(step, z, product(step, states[-1], r.T))
        elif start is not None:
            z = shifted(step, z, start @ r.T)
        states.append(applied(step, Leaky(), z))
    return states


def _arranged(
    step: Step, runs: Sequence[Sequence[Live]], last: Sequence[Live], *, points_first: bool
) -> list[Value]:
    """All states and the last ones of each direction, in the layout of the file."""
    n, dirs, h = len(runs[0]), len(runs), last[0].shape[-1]
    every = joined(step, [run[t] for t in range(n) for run in runs], 1)
    final = joined(step, last, 1)
    if points_first:
        return [step.reshaped(every, (1, n, dirs, h)), step.reshaped(final, (1, dirs, h))]
    return [step.reshaped(every, (n, dirs, 1, h)), step.reshaped(final, (dirs, 1, h))]


TRANSLATIONS: dict[str, Translation] = {"RNN": _rnn}
