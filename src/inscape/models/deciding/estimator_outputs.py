"""The numbers that a method of a fitted estimator returns: regressors, and scores that a rule decides by."""

from typing import Any

import numpy as np

from inscape.arrays import Shape
from inscape.errors import ModelError
from inscape.models.base import Array, Model, squeezed
from inscape.models.deciding.chosen_output import Output, follow
from inscape.models.sklearn_classifier import as_table, estimator_fingerprint


class EstimatorOutputs(Model):
    """What `predict`, or the method that `output` names, returns; images are flattened to features.

    A regressor has no classes: `decide`, `threshold` or `levels` must say what its labels are.
    """

    max_batch = 16384

    def __init__(
        self,
        estimator: Any,
        *,
        input_shape: Shape | None = None,
        batch_size: int | None = None,
        output: Output | None = None,
    ) -> None:
        name = type(estimator).__name__
        steps = () if output is None else output.steps
        method = steps[0] if steps and isinstance(steps[0], str) else "predict"
        if not callable(getattr(estimator, method, None)):
            raise ModelError(f"{name} has no method {method!r} that output=... could name")
        features = getattr(estimator, "n_features_in_", None)
        shape = (int(features),) if input_shape is None and features is not None else input_shape
        super().__init__(name, input_shape=shape, batch_size=batch_size, output=output)
        self.estimator = estimator
        self._method, self._steps = method, steps[1:] if steps and isinstance(steps[0], str) else steps
        if method == "predict":
            self.needs_rule = (
                f"{name} predicts numbers, not classes: cut them into classes by levels=[...] or "
                "threshold=..., or decide=... for several outputs"
            )

    def fingerprint(self) -> str:
        """A hash of the fitted estimator and of the output that was chosen."""
        return self._marked(estimator_fingerprint(self.estimator))

    def _outputs(self, x: Array) -> Array:
        found = getattr(self.estimator, self._method)(as_table(self.estimator, x))
        numbers = np.asarray(follow(self._steps, found, self.name))
        if numbers.dtype.kind not in "iubf":
            raise ModelError(f"{self.name}.{self._method} returned {numbers.dtype}, no numbers to decide by")
        return squeezed(numbers.astype(np.float64))

    def _call(self, x: Array, *, with_scores: bool) -> tuple[Array, Array | None]:
        return self._by_own_rule(self._outputs(x), x.shape[1:], with_scores)
