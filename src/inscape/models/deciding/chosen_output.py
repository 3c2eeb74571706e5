"""Which of the things that a model returns is looked at."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from inscape.errors import ModelError
from inscape.models.function import code_fingerprint

Step = str | int | Callable[[Any], Any]


@dataclass(frozen=True)
class Output:
    """The way from what a model returns to the numbers (n, k) that decide.

    Attributes:
        steps: taken in turn: the key of a dictionary or the name of an attribute, the place in a tuple, or a
            function. What is returned alone has the place 0; a later number is a column of an array.

    >>> import numpy as np
    >>> Output.of(("logits", 1)).pick({"logits": np.array([[1.0, 2.0], [3.0, 4.0]])}, "net").tolist()
    [[2.0], [4.0]]
    """

    steps: tuple[Step, ...]

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
        if isinstance(self.steps[0], int) and parts_of(returned) is None:
            returned = (returned,)
        return follow(self.steps, returned, name)

    def record(self) -> list[Any]:
        """Plain JSON; of a function its name and a hash of its code."""
        return [
            {"function": _name(step), "fingerprint": code_fingerprint(step)} if callable(step) else step
            for step in self.steps
        ]


def follow(steps: tuple[Step, ...], value: Any, name: str) -> Any:
    """What steps lead to from a value; `name` is that of the model, for messages."""
    for step in steps:
        value = _taken(value, step, name)
    return value


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _taken(value: Any, step: Step, name: str) -> Any:
    """One step."""
    if not isinstance(step, str | int):
        return step(value)
    parts = parts_of(value)
    if parts is not None:
        if isinstance(step, str) and step in parts:
            return parts[step]
        if isinstance(step, int) and -len(parts) <= step < len(parts):
            return list(parts.values())[step]
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
    """What is looked at unless something else was chosen: the `logits` if there are any, as of Hugging Face.

    >>> scores_among({"logits": 1, "loss": 2}), scores_among((3,)), scores_among(4)
    (1, 3, 4)
    """
    parts = parts_of(returned) or {}
    if len(parts) == 1 and isinstance(returned, list | tuple):
        return returned[0]
    return parts["logits"] if "logits" in parts else getattr(returned, "logits", returned)


def parts_of(value: Any) -> dict[str, Any] | None:
    """The things that a value is made of, by name: of a dictionary, tuple or dataclass; None of an array."""
    if isinstance(value, Mapping):
        return {str(k): v for k, v in value.items()}
    if hasattr(value, "_asdict"):
        return dict(value._asdict())
    if isinstance(value, list | tuple):
        return {str(i): v for i, v in enumerate(value)}
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    return None


def described(value: Any) -> str:
    """What a model returned, for a message: names, types and shapes.

    >>> import numpy as np
    >>> described({"logits": np.zeros((4, 2), np.float32)})
    'a dict of logits (4, 2) float32'
    """
    parts = parts_of(value)
    if parts is None:
        shape = getattr(value, "shape", None)
        if shape is None:
            return f"a {type(value).__name__}"
        return f"{tuple(shape)} {str(getattr(value, 'dtype', '')).removeprefix('torch.')}".strip()
    inside = ", ".join(f"{k} {described(v)}" for k, v in parts.items())
    return f"a {type(value).__name__} of {inside}" if parts else f"an empty {type(value).__name__}"
