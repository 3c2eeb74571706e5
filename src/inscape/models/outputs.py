"""What a model returns: which of it decides, what these numbers must be, and which labels they mean."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from inscape.arguments import bad_rows
from inscape.arrays import Array, Ints
from inscape.errors import ModelError, NonFiniteScoresError, warn
from inscape.models.fingerprints import code_fingerprint

OutputStep = str | int | Callable[[Any], Any]


@dataclass(frozen=True)
class Output:
    """The way from what a model returns to the numbers (n, k) that decide.

    Attributes:
        steps: taken in turn: the key of a dictionary or the name of an attribute, the number in a tuple, or a
            function. What is returned alone is number 0; a later number is a column of an array.

    >>> import numpy as np
    >>> Output.of(("logits", 1)).pick({"logits": np.array([[1.0, 2.0], [3.0, 4.0]])}, "net").tolist()
    [[2.0], [4.0]]
    """

    steps: tuple[OutputStep, ...]

    @classmethod
    def of(cls, output: Any) -> "Output | None":
        """The output that the argument of `inscape.wrap` names; None if it is left out."""
        if output is None or isinstance(output, Output):
            return output
        steps = tuple(output) if isinstance(output, tuple | list) else (output,)
        for step in steps:
            is_number = isinstance(step, int) and not isinstance(step, bool)
            if isinstance(step, type) or not (is_number or isinstance(step, str) or callable(step)):
                raise ModelError(
                    f"output={output!r} is not understood: give a name, a number, a function of what the "
                    "model returns, or several of them in a tuple"
                )
        if not steps:
            raise ModelError("output=() names nothing: leave it out")
        return cls(steps)

    def pick(self, returned: Any, name: str) -> Any:
        """What the steps lead to."""
        if isinstance(self.steps[0], int) and outputs_of(returned) is None:
            returned = (returned,)
        return follow(self.steps, returned, name)

    def record(self) -> list[Any]:
        """Plain JSON; of a function its name and a hash of its code."""
        return [
            {"function": _name(step), "fingerprint": code_fingerprint(step)} if callable(step) else step
            for step in self.steps
        ]


def follow(steps: tuple[OutputStep, ...], value: Any, name: str) -> Any:
    """What steps lead to from a value; `name` is that of the model, for messages."""
    for step in steps:
        value = _taken(value, step, name)
    return value


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _taken(value: Any, step: OutputStep, name: str) -> Any:
    """One step."""
    if not isinstance(step, str | int):
        return step(value)
    outputs = outputs_of(value)
    if outputs is not None:
        if isinstance(step, str) and step in outputs:
            return outputs[step]
        if isinstance(step, int) and -len(outputs) <= step < len(outputs):
            return list(outputs.values())[step]
    elif (
        isinstance(step, int) and getattr(value, "ndim", 0) == 2 and -value.shape[1] <= step < value.shape[1]
    ):
        return value[:, [step]]
    elif isinstance(step, str) and not hasattr(value, "ndim") and hasattr(value, step):
        return getattr(value, step)
    alone = isinstance(value, tuple) and len(value) == 1
    raise ModelError(
        f"{name} has no output {step!r}: it returned {described(value[0] if alone else value)}"
        + (f", of which output=(0, {step}) is a column" if alone and isinstance(step, int) else "")
    )


def scores_among(returned: Any) -> Any:
    """What decides unless something else was chosen: the `logits` if there are any, as of Hugging Face.

    >>> scores_among({"logits": 1, "loss": 2}), scores_among((3,)), scores_among(4)
    (1, 3, 4)
    """
    outputs = outputs_of(returned) or {}
    if len(outputs) == 1 and isinstance(returned, list | tuple):
        return returned[0]
    return outputs["logits"] if "logits" in outputs else getattr(returned, "logits", returned)


def outputs_of(value: Any) -> dict[str, Any] | None:
    """The things that a value is made of, by name: of a dictionary, tuple or dataclass; None of an array."""
    if isinstance(value, Mapping):
        return {str(k): v for k, v in value.items()}
    if hasattr(value, "_asdict"):
        return dict(value._asdict())
    if isinstance(value, list | tuple):
        names = getattr(type(value), "__match_args__", ())  # those of torch.max(x, 1)
        return dict(
            zip(names if len(names) == len(value) else map(str, range(len(value))), value, strict=True)
        )
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    return None


def described(value: Any) -> str:
    """What a model returned, for a message: names, types and shapes.

    >>> import numpy as np
    >>> described({"logits": np.zeros((4, 2), np.float32)})
    'a dict of logits (4, 2) float32'
    """
    outputs = outputs_of(value)
    if outputs is None:
        shape = getattr(value, "shape", None)
        if shape is None:
            return f"a {type(value).__name__}"
        return f"{tuple(shape)} {str(getattr(value, 'dtype', '')).removeprefix('torch.')}".strip()
    inside = ", ".join(f"{k} {described(v)}" for k, v in outputs.items())
    return f"a {type(value).__name__} of {inside}" if outputs else f"an empty {type(value).__name__}"


def check_outputs(outputs: Array, name: str) -> None:
    """Raise an error unless outputs are finite numbers (n, k)."""
    if outputs.ndim != 2 or outputs.shape[1] == 0:
        raise ModelError(
            f"{name} returned scores of shape {outputs.shape}: expected (n, c); output=... chooses among "
            f"them, such as output={picking(outputs.ndim)}"
        )
    if not np.isfinite(outputs).all():
        rows = bad_rows(outputs)
        raise NonFiniteScoresError(
            f"{name} returned NaN or infinite scores for {len(rows)} of the {len(outputs)} points of a "
            f"batch, first at row {rows[0]}",
            rows,
        )


def picking(n_axes: int, *, is_label: bool = False) -> str:
    """A function that picks scores (n, c), or labels (n,), from an array of more axes, for a message.

    >>> picking(4), picking(2, is_label=True)
    ('lambda y: y[:, :, 0, 0]', 'lambda y: y[:, 0]')
    """
    return f"lambda y: y[:{', 0' * (n_axes - 1) if is_label else ', :' + ', 0' * (n_axes - 2)}]"


def squeezed(outputs: Array) -> Array:
    """Outputs (n,), (n, k), (n, k, 1, 1) as (n, k); those with more than one long axis are left as they are.

    >>> [squeezed(np.zeros(shape)).shape for shape in [(4, 7, 1, 1), (4,), (4, 2, 3)]]
    [(4, 7), (4, 1), (4, 2, 3)]
    """
    point_shape = outputs.shape[1:]
    if outputs.ndim == 0 or sum(n > 1 for n in point_shape) > 1:
        return outputs
    return outputs.reshape(len(outputs), math.prod(point_shape))


def labels_of(scores: Array, name: str) -> Ints:
    """The winning column of each row; `score > 0` for one column.

    >>> labels_of(np.array([[0.2, 0.7], [0.9, 0.1]]), "net").tolist()
    [1, 0]
    >>> labels_of(np.array([[-3.0], [2.0]]), "net").tolist()
    [0, 1]
    """
    check_outputs(scores, name)
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.int64)
    return np.asarray(scores.argmax(axis=1))


def between_0_and_1(values: Array) -> bool:
    """Whether no value is outside of [0, 1]."""
    return bool(((values >= 0) & (values <= 1)).all())


ONE_SIDED = {"exp": "above", "softplus": "above", "log_sigmoid": "below"}
"""Functions that end a model -> on which side of 0 all their values are."""


def warn_of_one_label(name: str, ending: str) -> None:
    """Say that a score never changes its sign, so that all points have one label."""
    side = ONE_SIDED[ending]
    warn(
        f"{name} ends in {ending}, whose values are all {side} 0, with which one score is compared: every "
        f"point has the label {int(side == 'above')}; say threshold=... (--threshold) with a number that is "
        "reached, or levels=[...] for a regression"
    )


def warn_of_probabilities(name: str) -> None:
    """Say that outputs were taken for probabilities."""
    warn(
        f"{name} returns values between 0 and 1 wherever it was tried: they are taken for probabilities and "
        "compared with 1/2; say threshold=0.5 (--threshold 0.5), or threshold=0 if they are scores"
    )
