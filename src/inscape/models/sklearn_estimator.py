"""Fitted scikit-learn estimators and pipelines (and what follows their conventions): classes or numbers."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import Array, Shape
from inscape.errors import ModelError, PartitionError
from inscape.models.base import Model
from inscape.models.fingerprints import Held, estimator_fingerprint
from inscape.models.from_sklearn import Form, Unread, fitted_contents, read_estimator, read_sums
from inscape.models.from_sklearn.transformers import unrolled
from inscape.models.outputs import Output, follow, labels_of, squeezed
from inscape.models.trees import TreeEnsemble, check_agreement, is_made_of_trees
from inscape.models.trees.libraries import n_features_of
from inscape.models.trees.numbers import own_rule, trees_by_rule

if TYPE_CHECKING:
    from inscape.models.graph import Graph


class SklearnModel(Model):
    """A fitted classifier with `predict` and `classes_`; images are flattened to its features.

    Labels come from `predict`. Scores come from `decision_function` where there is one (a binary one
    becomes two columns), else from `predict_proba`; there are none if they are not one per class (an SVC
    that compares pairs). An estimator that was fitted on a table with column names is given one.

    What it computes is read from its fitted attributes, behind scalers, projections and selectors, and again
    after another fit: `form` is the piecewise-affine graph of a linear classifier or a perceptron, the flat
    arrays of trees, or one of `inscape.models.from_sklearn.forms`. Its structure says which.
    """

    max_batch = 16384

    def __init__(
        self, estimator: Any, *, input_shape: Shape | None = None, batch_size: int | None = None
    ) -> None:
        name = type(estimator).__name__
        classes = _classes_of(estimator)
        features = (
            n_features_of(estimator)
            if is_made_of_trees(estimator)
            else getattr(estimator, "n_features_in_", None)
        )
        if input_shape is None and features is not None:
            input_shape = (int(features),)
        super().__init__(name, input_shape=input_shape, batch_size=batch_size)
        self.estimator = estimator
        self.has_scores = _score_method(estimator, len(classes)) is not None
        if type(unrolled(estimator)[1]).__module__.startswith("skorch."):  # torch takes no other precision
            self.dtype = np.dtype(np.float32)
        self._read: tuple[Shape, list[Any], Form | Unread] | None = None
        self._confirmed: Form | None = None
        self._hashed: tuple[list[Any], str] | None = None
        self._held = Held[list[Any]]()

    @property
    def kind(self) -> str:
        """The class of what predicts, behind the other steps of a pipeline."""
        return type(unrolled(self.estimator)[1]).__name__

    def unchanged(self) -> AbstractContextManager[None]:
        """A time in which the estimator is not fitted again; it may overlap with that of a thread."""
        return self._held.during(self._contents())

    def _contents(self) -> list[Any]:
        """What the estimator holds; see `fitted_contents`."""
        held = self._held.contents
        return fitted_contents(self.estimator) if held is None else held

    @property
    def class_values(self) -> Array:
        """The classes as the estimator has them now, in label order."""
        return np.asarray(self.estimator.classes_)

    @property
    def classes(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the classes, in label order."""
        return tuple(str(c) for c in self.class_values)

    @property
    def feature_names(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """The columns of the table that it was fitted to, None if that had no names."""
        return feature_names_of(self.estimator)

    @property
    def structure(self) -> str:  # type: ignore[override]
        """What the estimator is along a line; "black-box" if that is not known."""
        form = self._form(self.input_shape or (1,))
        if isinstance(form, Unread):
            return "black-box"
        if isinstance(form, TreeEnsemble):
            return "trees"
        return getattr(form, "structure", "piecewise-affine")

    def form(self, input_shape: Shape) -> Form:
        """What the estimator is along a line of points of a shape; an error says why that is not known."""
        form = self._form(self.input_shape or input_shape)
        if isinstance(form, Unread):
            raise form.refusal(self.name)
        return form

    @property
    def trees(self) -> TreeEnsemble:
        """The trees as flat arrays; an error says why there are none."""
        form = self.form(self.input_shape or (1,))
        return form if isinstance(form, TreeEnsemble) else super().trees

    @property
    def summed_trees(self) -> TreeEnsemble:
        """The trees of the scores."""
        return self.trees

    def graph(self, input_shape: Shape) -> "Graph":
        """The piecewise-affine graph of the estimator; an error says why there is none."""
        form = self.form(input_shape)
        if self.structure == "piecewise-affine":
            return form  # type: ignore[return-value]
        raise PartitionError(
            f"{self.name} is {_IN_WORDS[self.structure]}",
            remedy='it has no linear pieces; use decision_regions(..., method="exact")',
        )

    def known_shape(self) -> Shape:
        """Rows of features."""
        return self.input_shape or (1,)

    def confirm(self, form: Form, check: Callable[[], None]) -> None:
        """Run a check of what was read, once for each reading."""
        if self._confirmed is not form:
            check()
            self._confirmed = form

    def _form(self, input_shape: Shape) -> "Form | Unread":
        """What was read, or why not, for the estimator as it is now."""
        contents = self._contents()
        known = self._read
        if known is None or known[0] != input_shape or not _identical(known[1], contents):
            try:
                form: Form | Unread = read_estimator(self.estimator, input_shape)
                if isinstance(form, TreeEnsemble) and form.vote.doubt >= 0:
                    check_agreement(form, lambda x: self._call(x, with_scores=False)[0])
            except Unread as reason:
                form = reason
            known = input_shape, contents, form
        self._read = known[0], contents, known[2]  # soon compared again with the very same contents
        return known[2]

    def fingerprint(self) -> str:
        """A hash of the fitted estimator, taken again after another fit: a forest is large."""
        contents = self._contents()
        if self._hashed is None or not _identical(self._hashed[0], contents):
            self._hashed = contents, estimator_fingerprint(self.estimator)
        self._hashed = contents, self._hashed[1]
        return self._hashed[1]

    def _call(self, x: Array, *, with_scores: bool) -> tuple[Array, Array | None]:
        points = as_table(self.estimator, x)
        predicted = np.asarray(self.estimator.predict(points))
        if predicted.ndim == 2 and predicted.shape[1] > 1:
            raise ModelError(_SEVERAL.format(self.name))
        predicted = predicted.reshape(len(predicted))  # CatBoost returns columns
        values = self.class_values
        order = np.argsort(values, kind="stable")
        numbers = np.searchsorted(values, predicted, sorter=order)
        labels = order[np.minimum(numbers, len(order) - 1)]
        strange = predicted[values[labels] != predicted]
        if len(strange):
            raise ModelError(f"{self.name} predicted {strange[0]!r}, which is none of its classes_")
        return labels, self._scores(points) if with_scores else None

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


_IN_WORDS = {
    "trees": "made of trees, which are piecewise constant",
    "quadratic": "quadratic along a line",
    "neighbours": "decided by the nearest training points, so that it is piecewise constant",
    "votes": "decided by votes of its members, so that it is piecewise constant",
}

_SEVERAL = (
    "{} predicts several outputs, which are not all yes or no: choose one of them by output=... and "
    "levels=[...], or wrap one of them as a function"
)


def _classes_of(estimator: Any) -> Any:
    """The classes of a fitted classifier; an error that says what else it is."""
    name = type(estimator).__name__
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        raise ModelError(f"{name} {_WITHOUT_CLASSES.get(_kind(estimator), _UNFITTED)}")
    if isinstance(classes, list) or np.ndim(classes) != 1:
        raise ModelError(_SEVERAL.format(name))
    return classes


_UNFITTED = "has no classes_: give a fitted classifier (call fit first)"
_WRAP_PREDICT = "to look at the regions of what it predicts, wrap its method: inscape.wrap(estimator.predict)"
_WITHOUT_CLASSES = {
    "clusterer": f"is a clusterer, not a classifier; {_WRAP_PREDICT}",
    "outlier_detector": f"is an outlier detector, not a classifier; {_WRAP_PREDICT}",
    "density_estimator": f"is a density estimator, not a classifier; {_WRAP_PREDICT}",
}


def _kind(estimator: Any) -> str:
    """What an estimator says that it is, such as "clusterer"; "" if it does not say."""
    old = getattr(estimator, "_estimator_type", None)  # before scikit-learn 1.6
    if old is not None:
        return "density_estimator" if old == "DensityEstimator" else str(old)
    try:
        from sklearn.utils import get_tags

        return str(get_tags(estimator).estimator_type)
    except Exception:  # an estimator of another library may have no tags, or raise whatever it likes
        return ""


def as_table(estimator: Any, x: Array) -> Any:
    """Points as rows of features, with column names if the estimator was fitted with such."""
    rows = x.reshape(len(x), -1)
    names = feature_names_of(estimator)
    if names is None:
        return rows
    import pandas as pd

    return pd.DataFrame(rows, columns=pd.Index(names))


def feature_names_of(estimator: Any) -> tuple[str, ...] | None:
    """The columns of the table that an estimator was fitted to, None if that had no names."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)


def _score_method(estimator: Any, n_classes: int) -> str | None:
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    one_versus_one = n_classes > 2 and getattr(last, "decision_function_shape", "ovr") == "ovo"
    if hasattr(estimator, "decision_function") and not one_versus_one:
        return "decision_function"
    return "predict_proba" if hasattr(estimator, "predict_proba") else None


def _identical(a: list[Any], b: list[Any]) -> bool:
    if a is b:
        return True
    if len(a) != len(b):
        return False
    others = [(x, y) for x, y in zip(a, b, strict=True) if x is not y]
    return all(type(x) is type(y) is int and x == y for x, y in others)


class EstimatorOutputs(Model):
    """What `predict`, or the method that `output` names, returns; images are flattened to features.

    A regressor has no classes: `decide`, `threshold` or `levels` must say what its labels are. Nor has a
    classifier that says yes or no to several labels at once; `decide="sign"` takes all of them.
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
        named = steps[0] if steps and isinstance(steps[0], str) else None
        method = named or _method_of_labels(estimator)
        if not callable(getattr(estimator, method, None)):
            raise ModelError(f"{name} has no method {method!r} that output=... could name")
        features = (
            n_features_of(estimator)
            if is_made_of_trees(estimator)
            else getattr(estimator, "n_features_in_", None)
        )
        shape = (int(features),) if input_shape is None and features is not None else input_shape
        super().__init__(name, input_shape=shape, batch_size=batch_size, output=output)
        self.estimator = estimator
        self._method, self._steps = method, steps if named is None else steps[1:]
        self._read: tuple[Shape, list[Any], Graph | TreeEnsemble | Unread] | None = None
        self._forest: tuple[TreeEnsemble, TreeEnsemble] | None = None
        if is_multilabel(estimator) and output is None:
            self.needs_rule = (
                f"{name} predicts several outputs: take all of them by decide='sign', or one by output=... "
                "and threshold=..."
            )
        elif method == "predict" and _kind(estimator) == "classifier" and not is_multilabel(estimator):
            self.needs_rule = (
                f"output={output.record() if output else None} of {name} does not say which of its numbers: "
                "name a method first, such as output=('predict_proba', 1) with threshold=0.5"
            )
        elif method == "predict":
            self.needs_rule = (
                f"{name} predicts numbers, not classes: cut them into classes by levels=[...] or "
                "threshold=..., or decide=... for several outputs"
            )

    @property
    def structure(self) -> str:  # type: ignore[override]
        """Piecewise-affine for linear regressors and perceptrons, trees, else black-box."""
        if self.needs_rule is None and self._has_trees():
            return "trees"
        return "piecewise-affine" if self._has_graph() else "black-box"

    @property
    def summed_trees(self) -> TreeEnsemble:
        """The trees of whose sums the outputs are functions; an error says why there are none."""
        form = self._form(self.known_shape() or (1,))
        return form if isinstance(form, TreeEnsemble) else super().summed_trees

    @property
    def trees(self) -> TreeEnsemble:
        """The trees that decide by the outputs without a rule of the user's; an error if there are none."""
        summed = self.summed_trees
        if self._forest is None or self._forest[0] is not summed:
            self._forest = summed, trees_by_rule(self, summed, own_rule(self))
        return self._forest[1]

    @property
    def feature_names(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """The columns of the table that it was fitted to, None if that had no names."""
        return feature_names_of(self.estimator)

    def fingerprint(self) -> str:
        """A hash of the fitted estimator and of the output that was chosen."""
        return self._marked(estimator_fingerprint(self.estimator))

    def network(self, input_shape: Shape) -> "Graph":
        """The piecewise-affine graph of the outputs; an error says why there is none."""
        form = self._form(self.input_shape or input_shape)
        if isinstance(form, TreeEnsemble):
            raise PartitionError(
                f"{self.name} is {_IN_WORDS['trees']}",
                remedy='it has no linear pieces; use decision_regions(..., method="exact")',
            )
        return form

    def _form(self, shape: Shape) -> "Graph | TreeEnsemble":
        """What the outputs are, for the estimator as it is now; an error says why that is not known."""
        contents = fitted_contents(self.estimator)
        known = self._read
        if known is None or known[0] != shape or not _identical(known[1], contents):
            try:
                trees = read_sums(self.estimator, shape)
                read: Graph | TreeEnsemble | Unread = self._read_outputs(shape) if trees is None else trees
            except Unread as reason:
                read = reason
            known = self._read = shape, contents, read
        if isinstance(known[2], Unread):
            raise known[2].refusal(self.name)
        return known[2]

    def _read_outputs(self, shape: Shape) -> "Graph":
        from sklearn.base import is_regressor

        from inscape.models.from_sklearn.graphs import outputs_graph
        from inscape.models.graph.trace import Trace
        from inscape.models.module_wrappers import picked

        if self._method != ("predict" if is_regressor(self.estimator) else _method_of_labels(self.estimator)):
            raise Unread(f"what its method {self._method} returns is not read")
        graph = outputs_graph(self.estimator, shape)
        if not self._steps:
            return graph
        return picked(Trace(graph), self._steps, graph.shapes[graph.output]).require(self.name)

    def ending(self, input_shape: Shape) -> str | None:
        """The sigmoid of a perceptron's probabilities."""
        try:
            return self.network(input_shape).head
        except PartitionError:
            return None

    def natural_threshold(self, input_shape: Shape, outputs: Array | None = None) -> float:
        """What an output is compared with: 1/2 for probabilities, 0 for distances from a boundary."""
        known = {"predict_proba": 0.5, "decision_function": 0.0}
        return (
            known[self._method] if self._method in known else super().natural_threshold(input_shape, outputs)
        )

    def _outputs(self, x: Array) -> Array:
        outputs = getattr(self.estimator, self._method)(as_table(self.estimator, x))
        numbers = np.asarray(follow(self._steps, outputs, self.name))
        if numbers.dtype.kind not in "iubf":
            raise ModelError(f"{self.name}.{self._method} returned {numbers.dtype}, no numbers to decide by")
        return squeezed(numbers.astype(np.float64))

    def _call(self, x: Array, *, with_scores: bool) -> tuple[Array, Array | None]:
        return self._by_own_rule(self._outputs(x), x.shape[1:], with_scores)


def is_multilabel(estimator: Any) -> bool:
    """Whether a fitted classifier says yes or no, 1 or 0, to each of several labels."""
    classes = getattr(estimator, "classes_", None)
    if isinstance(classes, list):
        return all(set(np.asarray(c).tolist()) <= {0, 1} for c in classes)
    binarizer = getattr(estimator, "_label_binarizer", getattr(estimator, "label_binarizer_", None))
    return str(getattr(binarizer, "y_type_", "")).startswith("multilabel")


def _method_of_labels(estimator: Any) -> str:
    """The method whose outputs are on the same side of a threshold as the labels that are predicted."""
    if is_multilabel(estimator) and type(estimator).__name__ in ("MLPClassifier", "OneVsRestClassifier"):
        return "decision_function" if hasattr(estimator, "decision_function") else "predict_proba"
    return "predict"
