"""From a fitted estimator to what it is along a line: graph, trees, parabolas, neighbours or votes."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import Floats, Shape
from inscape.models.from_sklearn.forms import Duels, Form, Neighbours, Quadratics, Votes
from inscape.models.from_sklearn.transformers import Named, Take, Unread, kind_of, unrolled
from inscape.models.trees import obstacle, read_trees

if TYPE_CHECKING:
    from inscape.models.graph import Graph


def read_estimator(estimator: Any, input_shape: Shape) -> Form:
    """What a fitted classifier or pipeline is along a line through points of a shape.

    Raises:
        Unread: if it is none of the forms, or not known to be; the message says why.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> read_estimator(GaussianNB().fit([[0.0], [1.0], [3.0], [5.0]], [0, 0, 1, 1]), (1,)).structure
    'quadratic'
    """
    return _read([], estimator, input_shape)


def fitted_parts(estimator: Any) -> list[Any]:
    """All that `estimator` and its members hold, arrays with a checksum: another fit changes some of it."""
    steps, last = unrolled(estimator)
    parts: list[Any] = []
    for _, step in [*steps, ("", last)]:
        _collect(vars(step) if hasattr(step, "__dict__") else {}, parts)
    return parts


def _collect(held: Any, parts: list[Any]) -> None:
    """Append what is held, one level after the other."""
    for part in held.values() if isinstance(held, dict) else held:
        parts.append(part)
        if isinstance(part, np.ndarray) and part.dtype != object:
            from inscape.models.checksum import checksum

            parts.append(checksum(part))
        elif isinstance(part, list | tuple) or (isinstance(part, np.ndarray) and part.dtype == object):
            _collect(part, parts)
        elif hasattr(part, "get_params") and hasattr(part, "__dict__"):
            _collect(vars(part), parts)


def _read(steps: Sequence[Named], estimator: Any, input_shape: Shape) -> Form:
    """What an estimator is behind transformers."""
    more, last = unrolled(estimator)
    steps = [*steps, *more]
    kind = kind_of(last)
    whole = _pipeline(steps, last)
    if whole is not None and obstacle(whole) is None:
        return read_trees(whole)
    if kind in _READERS:
        return _READERS[kind](steps, last, input_shape)
    if kind in _NOT_EXACT:
        raise Unread(f"{kind} {_NOT_EXACT[kind]}")
    if whole is not None and _is_tree(kind):
        raise Unread(str(obstacle(whole)))
    return _graph(steps, last, input_shape)


def _pipeline(steps: Sequence[Named], last: Any) -> Any:
    """Fitted steps and what follows them as one pipeline, as trees are read; None if that cannot be."""
    if not steps:
        return last
    if any(isinstance(step, Take) for _, step in steps):
        return None
    from sklearn.pipeline import Pipeline

    return Pipeline([*steps, ("last", last)])


def _graph(steps: Sequence[Named], estimator: Any, input_shape: Shape) -> "Graph":
    from inscape.models.from_sklearn.graphs import READERS, classifier_graph

    if kind_of(estimator) not in READERS:
        raise Unread(f"how {type(estimator).__name__} predicts is not known")
    if len(estimator.classes_) < 2:
        raise Unread(f"{type(estimator).__name__} knows one class only")
    return classifier_graph(steps, estimator, input_shape)


def _support_vectors(steps: Sequence[Named], estimator: Any, input_shape: Shape) -> Form:
    """Two classes have one score; several duel."""
    if estimator.kernel != "linear" or len(estimator.classes_) == 2:
        return _graph(steps, estimator, input_shape)
    return _duels(steps, estimator, input_shape, by_confidence=bool(estimator.break_ties))


def _one_versus_one(steps: Sequence[Named], estimator: Any, input_shape: Shape) -> Form:
    if getattr(estimator, "pairwise_indices_", None) is not None:
        raise Unread("its members take kernels, not points")
    return _duels(steps, estimator, input_shape, by_confidence=True)


def _duels(steps: Sequence[Named], estimator: Any, input_shape: Shape, *, by_confidence: bool) -> Duels:
    from inscape.models.from_sklearn.graphs import duel_graph

    return Duels(duel_graph(steps, estimator, input_shape), len(estimator.classes_), by_confidence)


def _front(steps: Sequence[Named], input_shape: Shape) -> "Graph | None":
    from inscape.models.from_sklearn.graphs import transformer_graph

    return transformer_graph(steps, input_shape)


def _gaussians(steps: Sequence[Named], e: Any, input_shape: Shape) -> Quadratics:
    """The score log prior - 1/2 sum log(2 pi var) - sum (z - theta)^2 / (2 var), of each class."""
    with np.errstate(divide="ignore"):
        constants = np.log(e.class_prior_) - 0.5 * np.log(2 * np.pi * e.var_).sum(axis=1)
    return _quadratics(1 / np.sqrt(2 * e.var_), e.theta_, constants, _front(steps, input_shape))


def _discriminants(steps: Sequence[Named], e: Any, input_shape: Shape) -> Quadratics:
    """The score log prior - 1/2 sum log s - 1/2 |s^-1/2 R (z - mean)|^2, of each class."""
    factors = [(r * s**-0.5).T / np.sqrt(2) for r, s in zip(e.rotations_, e.scalings_, strict=True)]
    with np.errstate(divide="ignore"):
        constants = np.log(e.priors_) - 0.5 * np.array([np.log(s).sum() for s in e.scalings_])
    return _quadratics(factors, e.means_, constants, _front(steps, input_shape))


def _quadratics(factors: Any, centres: Any, constants: Floats, front: "Graph | None") -> Quadratics:
    """The form without classes of prior zero, which never win."""
    kept = np.flatnonzero(constants > -np.inf)
    centres = np.asarray(centres, dtype=np.float64)[kept]
    own = tuple(np.ascontiguousarray(factors[k], dtype=np.float64) for k in kept)
    if not np.isfinite(constants[kept]).all() or not all(np.isfinite(f).all() for f in own):
        raise Unread("it has learned numbers that are not finite")
    return Quadratics(own, centres, np.asarray(constants[kept], dtype=np.float64), kept, front)


def _neighbours(steps: Sequence[Named], e: Any, input_shape: Shape) -> Neighbours:
    name = type(e).__name__
    if e.weights not in ("uniform", None):
        raise Unread(f"{name} has weights={e.weights!r}, with which distances do more than to order points")
    if (
        e.effective_metric_ not in ("euclidean", "sqeuclidean")
        or e.effective_metric_params_.get("w") is not None
    ):
        raise Unread(f"{name} has the metric {e.effective_metric_!r}, of which only 'euclidean' is read")
    if not isinstance(e._fit_X, np.ndarray):
        raise Unread(f"{name} has sparse training points")
    return Neighbours(
        np.ascontiguousarray(e._fit_X, dtype=np.float64),
        np.asarray(e._y, dtype=np.int64).ravel(),
        int(e.n_neighbors),
        len(e.classes_),
        _front(steps, input_shape),
    )


def _voting(steps: Sequence[Named], e: Any, input_shape: Shape) -> Votes:
    if e.voting != "hard":
        raise Unread(f"{type(e).__name__} with voting='soft' averages probabilities, which are not affine")
    weights = [1.0] * len(e.estimators_) if e.weights is None else e._weights_not_none
    columns = np.eye(len(e.classes_))
    return _votes(
        [(steps, member) for member in e.estimators_],
        [w * columns[np.asarray(m.classes_)] for w, m in zip(weights, e.estimators_, strict=True)],
        1.0,
        input_shape,
    )


def _bagging(steps: Sequence[Named], e: Any, input_shape: Shape) -> Votes:
    if hasattr(e.estimators_[0], "predict_proba"):
        kind = type(e.estimators_[0]).__name__
        raise Unread(f"{type(e).__name__} averages the probabilities of {kind}, which are not affine")
    columns = np.eye(len(e.classes_))
    return _votes(
        [
            ([*steps, ("", Take(np.asarray(columns_of)))], member)
            for columns_of, member in zip(e.estimators_features_, e.estimators_, strict=True)
        ],
        [columns[np.asarray(m.classes_)] for m in e.estimators_],
        float(len(e.estimators_)),
        input_shape,
    )


def _boosting(steps: Sequence[Named], e: Any, input_shape: Shape) -> Votes:
    if getattr(e, "algorithm", "SAMME") == "SAMME.R":
        raise Unread(f"{type(e).__name__} with algorithm='SAMME.R' adds logarithms of probabilities")
    classes = np.asarray(e.classes_)
    return _votes(
        [(steps, member) for member in e.estimators_],
        [
            np.where(np.asarray(m.classes_)[:, None] == classes, w, -1 / (len(classes) - 1) * w)
            for w, m in zip(e.estimator_weights_, e.estimators_, strict=False)
        ],
        float(np.sum(e.estimator_weights_)),
        input_shape,
    )


def _votes(
    members: list[tuple[Sequence[Named], Any]], values: list[Floats], divisor: float, input_shape: Shape
) -> Votes:
    """The form of members, each behind its steps."""
    read = []
    for i, (steps, member) in enumerate(members):
        try:
            read.append(_read(steps, member, input_shape))
        except Unread as reason:
            raise Unread(f"of its member {i}: {reason}") from None
    return Votes(tuple(read), tuple(values), divisor)


def _is_tree(kind: str) -> bool:
    return any(word in kind for word in ("Tree", "Forest", "GradientBoosting"))


_READERS: dict[str, Callable[[Sequence[Named], Any, Shape], Form]] = {
    "SVC": _support_vectors,
    "NuSVC": _support_vectors,
    "OneVsOneClassifier": _one_versus_one,
    "GaussianNB": _gaussians,
    "QuadraticDiscriminantAnalysis": _discriminants,
    "KNeighborsClassifier": _neighbours,
    "VotingClassifier": _voting,
    "BaggingClassifier": _bagging,
    "AdaBoostClassifier": _boosting,
}
"""How each classifier becomes a form, beside those that are graphs as they are."""

_NOT_EXACT = {
    "BernoulliNB": "makes steps of the features, which are not read",
    "CalibratedClassifierCV": "calibrates scores, which is not piecewise affine",
    "CategoricalNB": "takes classes, not numbers",
    "FixedThresholdClassifier": "decides by a threshold of its own, which is not read",
    "GaussianProcessClassifier": "is not piecewise affine",
    "LabelPropagation": "weighs training points by a kernel, which is not piecewise affine",
    "LabelSpreading": "weighs training points by a kernel, which is not piecewise affine",
    "RadiusNeighborsClassifier": "asks who is within a radius, which is not read",
    "StackingClassifier": "predicts from what its members predict, which is not piecewise affine",
    "TunedThresholdClassifierCV": "decides by a threshold of its own, which is not read",
}
"""Why a classifier has no exact regions, as the end of a sentence that begins with its name."""
