"""Any callable on arrays: a remote service, a rule, a model of another library."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from inscape.arguments import as_array
from inscape.arrays import Array, Ints, Shape
from inscape.errors import ModelError
from inscape.models.base import Model
from inscape.models.class_names import ClassNames
from inscape.models.fingerprints import code_fingerprint
from inscape.models.outputs import Output, described, scores_among


class FunctionModel(Model):
    """A function from points (n, ...) to labels (n,) (integers, booleans or strings) or scores (n, c).

    String labels are numbered as they are met, in alphabetical order within a batch; `classes` follows. A
    function is called by several threads at a time where a call of ours has them (`n_jobs`), unless it
    returns strings.
    """

    reveals_classes = True
    is_concurrent = True
    batch_bytes = 2 * 2**20
    """Enough for products at full speed, and so little that there are batches for several threads."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        input_shape: Shape | None = None,
        batch_size: int | None = None,
        output: Output | None = None,
    ) -> None:
        name = getattr(function, "__name__", type(function).__name__)
        super().__init__(name, input_shape=input_shape, batch_size=batch_size, output=output)
        self.function = function
        self._names = ClassNames()
        self.has_scores = True  # until it is seen to return labels

    def fingerprint(self) -> str:
        """A hash of the function's name and, if it is Python, of its code, defaults and closure."""
        return self._marked(code_fingerprint(self.function))

    def _call(self, x: Array, *, with_scores: bool) -> tuple[Array, Array | None]:
        out = self._returned(x)
        if out.ndim == 1:
            self.has_scores = False
            return self._as_labels(out), None
        return self._by_own_rule(self._numbers(out), x.shape[1:], with_scores)

    def _outputs(self, x: Array) -> Array:
        out = self._numbers(self._returned(x))
        return out[:, None] if out.ndim == 1 else out

    def _returned(self, x: Array) -> Array:
        out = self.function(x)
        out = scores_among(out) if self.output is None else self.output.pick(out, self.name)
        if isinstance(out, Mapping):
            raise ModelError(f"{self.name} returned {described(out)}: choose one of them by output=...")
        out = _typed(as_array(out, f"what {self.name} returned", ModelError))
        if out.ndim == 0 or len(out) != len(x):
            raise ModelError(
                f"{self.name} returned shape {out.shape} for {len(x)} points: expected labels ({len(x)},) "
                f"or scores ({len(x)}, c)"
            )
        return out

    def _numbers(self, out: Array) -> Array:
        if out.dtype.kind not in "iubf":
            raise ModelError(f"{self.name} returned scores of {_kind(out)}: expected numbers")
        return out if out.dtype.kind == "f" else out.astype(np.float64)

    def _as_labels(self, out: Array) -> Ints:
        if out.dtype.kind in "iub":
            return out.astype(np.int64)
        if out.dtype.kind == "f":
            if not np.isfinite(out).all() or (out != np.rint(out)).any():
                raise ModelError(
                    f"{self.name} returned fractions of shape ({len(out)},), neither labels nor scores: "
                    "return integer labels (n,), or scores (n, c), (n, 1) for a one-output model; of a "
                    "regression say levels=[...], and threshold=... of a score or probability"
                )
            return out.astype(np.int64)
        if out.dtype.kind not in "US":
            raise ModelError(
                f"{self.name} returned labels of {_kind(out)}: expected integers, booleans or strings"
            )
        self.is_concurrent = False  # names are numbered as they come
        labels = self._names.number(out)
        self.classes = self._names.seen
        return labels


def _typed(out: Array) -> Array:
    """Python objects as the numbers or strings that they are, such as those of a pandas column."""
    return np.asarray(out.tolist()) if out.dtype.kind == "O" else out


def _kind(out: Array) -> str:
    first = out.ravel()[0]
    return f"type {type(first).__name__}" if out.dtype.kind == "O" else str(out.dtype)
