"""Fitted scikit-learn classifiers and pipelines (and whatever follows their conventions)."""

import hashlib
import pickle
from typing import Any

import numpy as np

from inscape.errors import ModelError
from inscape.models.base import Array, Model, Shape, labels_of


class SklearnModel(Model):
    """A fitted classifier with `predict` and `classes_`; images are flattened to its features.

    Labels come from `predict`. Scores are the numbers that `predict` compares: `decision_function`
    where there is one (a binary one becomes two columns), else `predict_proba`, else none.
    """

    max_batch = 16384

    def __init__(
        self, estimator: Any, *, input_shape: Shape | None = None, batch_size: int | None = None
    ) -> None:
        name = type(estimator).__name__
        classes = getattr(estimator, "classes_", None)
        if classes is None:
            raise ModelError(
                f"{name} has no classes_: give a fitted classifier "
                "(call fit first; regressors have no regions)"
            )
        if isinstance(classes, list) or np.ndim(classes) != 1:
            raise ModelError(f"{name} predicts several outputs: wrap one of them as a function")
        features = getattr(estimator, "n_features_in_", None)
        if input_shape is None and features is not None:
            input_shape = (int(features),)
        super().__init__(name, input_shape=input_shape, batch_size=batch_size)
        self.estimator = estimator
        self.class_values = np.asarray(classes)
        self.classes = tuple(str(c) for c in self.class_values)
        self._score_method = _score_method(estimator, len(self.classes))
        self.has_scores = self._score_method is not None

    def fingerprint(self) -> str:
        """A hash of the fitted estimator."""
        try:
            content = pickle.dumps(self.estimator)
        except Exception:  # an estimator may hold what cannot be pickled; the name is then all we have
            content = repr(self.estimator).encode()
        return hashlib.blake2b(content, digest_size=8).hexdigest()

    def _call(self, x: Array, *, with_scores: bool) -> tuple[Array, Array | None]:
        flat = x.reshape(len(x), -1)
        predicted = np.asarray(self.estimator.predict(flat))
        order = np.argsort(self.class_values, kind="stable")
        labels = order[np.searchsorted(self.class_values, predicted, sorter=order)]
        return labels, self._scores(flat) if with_scores else None

    def _scores(self, x: Array) -> Array:
        assert self._score_method is not None
        scores = np.asarray(getattr(self.estimator, self._score_method)(x))
        if scores.ndim == 1:
            scores = np.stack([-scores / 2, scores / 2], axis=1)
        labels_of(scores, self.name)  # for its checks
        return scores


def _score_method(estimator: Any, n_classes: int) -> str | None:
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    one_versus_one = n_classes > 2 and getattr(last, "decision_function_shape", "ovr") == "ovo"
    if hasattr(estimator, "decision_function") and not one_versus_one:
        return "decision_function"
    return "predict_proba" if hasattr(estimator, "predict_proba") else None
