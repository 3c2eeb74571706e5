"""Fitted scikit-learn classifiers and pipelines (and whatever follows their conventions)."""

import hashlib
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import Shape
from inscape.errors import ModelError, PartitionError
from inscape.models.base import Array, Model, labels_of
from inscape.models.trees import TreeEnsemble, fitted_parts, obstacle, read_trees

if TYPE_CHECKING:
    from inscape.models.graph import Graph


class SklearnModel(Model):
    """A fitted classifier with `predict` and `classes_`; images are flattened to its features.

    Labels come from `predict`. Scores come from `decision_function` where there is one (a binary one
    becomes two columns), else from `predict_proba`; there are none if they are not one per class (an SVC
    that compares pairs). An estimator that was fitted on a table with column names is given one. Its
    structure is "trees" for the tree classifiers of scikit-learn, also behind scalers; `trees` is then what
    it learned.
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
        self.has_scores = _score_method(estimator, len(classes)) is not None
        self.structure = "trees" if obstacle(estimator) is None else "black-box"
        self._trees: tuple[TreeEnsemble, list[Any]] | None = None

    @property
    def class_values(self) -> Array:
        """The classes as the estimator has them now, in label order."""
        return np.asarray(self.estimator.classes_)

    @property
    def classes(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the classes, in label order."""
        return tuple(str(c) for c in self.class_values)

    @property
    def trees(self) -> TreeEnsemble:
        """The trees as flat arrays, read once and again after another fit; a ModelError if there are none."""
        parts = fitted_parts(self.estimator)
        if self._trees is None or not _identical(self._trees[1], parts):
            self._trees = read_trees(self.estimator), parts
        return self._trees[0]

    def graph(self, input_shape: Shape) -> "Graph":
        """An error that says why there is none: trees have no linear pieces, other estimators no graph."""
        reason = obstacle(self.estimator)
        if reason is None:
            raise PartitionError(
                f"{self.name} is made of trees, which are piecewise constant",
                remedy='it has no linear pieces; use decision_regions(..., method="exact")',
            )
        raise PartitionError(
            f"{self.name} cannot be counted exactly because {reason}",
            remedy='use method="adaptive", or method="grid" to compare with grids',
        )

    def fingerprint(self) -> str:
        """A hash of the fitted estimator."""
        try:
            content = pickle.dumps(self.estimator)
        except Exception:  # an estimator may hold what cannot be pickled; the name is then all we have
            content = repr(self.estimator).encode()
        return hashlib.blake2b(content, digest_size=8).hexdigest()

    def _call(self, x: Array, *, with_scores: bool) -> tuple[Array, Array | None]:
        points = self._table(x.reshape(len(x), -1))
        predicted = np.asarray(self.estimator.predict(points))
        values = self.class_values
        order = np.argsort(values, kind="stable")
        places = np.searchsorted(values, predicted, sorter=order)
        labels = order[np.minimum(places, len(order) - 1)]
        strange = predicted[values[labels] != predicted]
        if len(strange):
            raise ModelError(f"{self.name} predicted {strange[0]!r}, which is none of its classes_")
        return labels, self._scores(points) if with_scores else None

    def _table(self, x: Array) -> Any:
        names = getattr(self.estimator, "feature_names_in_", None)
        if names is None:
            return x
        import pandas as pd

        return pd.DataFrame(x, columns=names)

    def _scores(self, points: Any) -> Array | None:
        n_classes = len(self.class_values)
        method = _score_method(self.estimator, n_classes)
        if method is None:  # since another fit
            self.has_scores = False
            return None
        scores = np.asarray(getattr(self.estimator, method)(points))
        if scores.ndim == 1:
            scores = np.stack([-scores / 2, scores / 2], axis=1)
        if scores.shape[1] != n_classes:
            self.has_scores = False
            return None
        labels_of(scores, self.name)  # for its checks
        return scores


def _score_method(estimator: Any, n_classes: int) -> str | None:
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    one_versus_one = n_classes > 2 and getattr(last, "decision_function_shape", "ovr") == "ovo"
    if hasattr(estimator, "decision_function") and not one_versus_one:
        return "decision_function"
    return "predict_proba" if hasattr(estimator, "predict_proba") else None


def _identical(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))
