"""From a fitted estimator to what it is along a line: graph, trees, parabolas, neighbours or votes."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from inscape.arrays import Floats, Shape
from inscape.models.fingerprints import checksum
from inscape.models.from_sklearn.forms import (
    Duels,
    Form,
    Neighbours,
    Quadratics,
    Votes,
    average_of,
    sums_of,
    trees_behind,
    view_behind,
    vote_of,
)
from inscape.models.from_sklearn.transformers import Named, Take, kind_of, unrolled
from inscape.models.trees import TreeEnsemble, Unread, is_made_of_trees
from inscape.models.trees.libraries import state_of

if TYPE_CHECKING:
    from inscape.models.graph import Graph

__all__ = [
    "Duels",
    "Form",
    "Neighbours",
    "Quadratics",
    "Unread",
    "Votes",
    "fitted_contents",
    "read_estimator",
    "read_sums",
    "view_behind",
]


def read_estimator(estimator: Any, input_shape: Shape) -> Form:
    """What a fitted classifier or pipeline is along a line through points of a shape.

    Raises:
        Unread: if it is none of the forms, or not known to be; the message says why.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> read_estimator(GaussianNB().fit([[0.0], [1.0], [3.0], [5.0]], [0, 0, 1, 1]), (1,)).structure
    'quadratic'
    """
    return _read([], estimator, input_shape)


def read_sums(estimator: Any, input_shape: Shape) -> TreeEnsemble | None:
    """The trees whose leaves' sums make the numbers of a fitted estimator; None if it is made of no trees.

    Raises:
        Unread: if it is made of trees that are not read.
    """
    steps, last = unrolled(estimator)
    kind, n_features = kind_of(last), math.prod(input_shape)
    if is_made_of_trees(last):
        return trees_behind(steps, last, n_features, numbers=True)
    if kind in _AVERAGES:
        members, weights = _AVERAGES[kind](steps, last)
        return sums_of([_sums_behind(s, m, n_features) for s, m in members], weights)
    if kind in ("VotingClassifier", "BaggingClassifier", "AdaBoostClassifier"):
        form = _READERS[kind](steps, last, input_shape)
        return form if isinstance(form, TreeEnsemble) else None
    return None


def _sums_behind(steps: Sequence[Named], estimator: Any, n_features: int) -> TreeEnsemble | None:
    """The trees of a member behind transformers; None if it is made of no trees."""
    more, last = unrolled(estimator)
    if not is_made_of_trees(last):
        return None
    return trees_behind([*steps, *more], last, n_features, numbers=True)


Members = tuple[list[tuple[Sequence[Named], Any]], list[float]]


def _voting_regressor(steps: Sequence[Named], e: Any) -> Members:
    weights = [1.0] * len(e.estimators_) if e.weights is None else e._weights_not_none
    total = float(np.sum(weights))
    return [(steps, member) for member in e.estimators_], [w / total for w in weights]


def _bagging_regressor(steps: Sequence[Named], e: Any) -> Members:
    members: list[tuple[Sequence[Named], Any]] = [
        ([*steps, ("", Take(np.asarray(columns)))], member)
        for columns, member in zip(e.estimators_features_, e.estimators_, strict=True)
    ]
    return members, [1.0 / len(members)] * len(members)


_AVERAGES: dict[str, Callable[[Sequence[Named], Any], Members]] = {
    "BaggingRegressor": _bagging_regressor,
    "VotingRegressor": _voting_regressor,
}
"""Regressors that average the numbers of members: these, behind their steps, and the weight of each."""


def fitted_contents(estimator: Any) -> list[Any]:
    """All that `estimator` and its members hold, arrays with a checksum: another fit changes some of it.

    Of a member that is a single tree, the nodes stand for all: a fit makes new ones.
    """
    steps, last = unrolled(estimator)
    contents: list[Any] = []
    for _, step in [*steps, ("", last)]:
        _collect_of(step, contents)
    return contents


def _collect_of(estimator: Any, contents: list[Any]) -> None:
    """Append what an estimator holds, and the state of a booster, which may be trained where it is."""
    _collect(vars(estimator) if hasattr(estimator, "__dict__") else {}, contents)
    if is_made_of_trees(estimator) and kind_of(estimator) == "":
        contents.append(state_of(estimator))


_TREES = frozenset(
    {"DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor"}
)
_PLAIN = frozenset({int, float, str, bool, type(None), np.int64, np.float64})
"""Types of what holds nothing more: most of what the trees of a forest have."""


def _collect(held: Any, contents: list[Any]) -> None:
    """Append what is held, one level after the other."""
    for member in held.values() if isinstance(held, dict) else held:
        contents.append(member)
        if type(member) in _PLAIN:
            continue
        if hasattr(member, "tree_") and kind_of(member) in _TREES:
            contents.append(member.tree_)
        elif isinstance(member, np.ndarray) and member.dtype != object:
            contents.append(checksum(member))
        elif isinstance(member, (list, tuple, np.ndarray)):
            _collect(member, contents)
        elif hasattr(member, "get_params") and hasattr(member, "__dict__"):
            _collect_of(member, contents)


def _read(steps: Sequence[Named], estimator: Any, input_shape: Shape) -> Form:
    """What an estimator is behind transformers."""
    more, last = unrolled(estimator)
    steps = [*steps, *more]
    kind = kind_of(last)
    if is_made_of_trees(last):
        return trees_behind(steps, last, math.prod(input_shape))
    if kind in _READERS:
        return _READERS[kind](steps, last, input_shape)
    if kind in _NOT_EXACT:
        raise Unread(f"{kind} {_NOT_EXACT[kind]}")
    return _graph(steps, last, input_shape)


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


def _voting(steps: Sequence[Named], e: Any, input_shape: Shape) -> Form:
    weights = [1.0] * len(e.estimators_) if e.weights is None else e._weights_not_none
    columns = np.eye(len(e.classes_))
    own = [columns[np.asarray(m.classes_)] for m in e.estimators_]
    members = _members([(steps, member) for member in e.estimators_], input_shape)
    if e.voting == "hard":
        return _votes(members, [w * c for w, c in zip(weights, own, strict=True)], 1.0)
    average = average_of(members, weights, own, float(np.sum(weights)))
    if average is None:
        raise Unread(f"{type(e).__name__} with voting='soft' averages probabilities, which are not affine")
    return average


def _bagging(steps: Sequence[Named], e: Any, input_shape: Shape) -> Form:
    own = [np.eye(len(e.classes_))[np.asarray(m.classes_)] for m in e.estimators_]
    n = len(e.estimators_)
    members = _members(
        [
            ([*steps, ("", Take(np.asarray(columns)))], member)
            for columns, member in zip(e.estimators_features_, e.estimators_, strict=True)
        ],
        input_shape,
    )
    if not hasattr(e.estimators_[0], "predict_proba"):
        return _votes(members, own, float(n))
    average = average_of(members, [1.0] * n, own, float(n))
    if average is None:
        kind = type(e.estimators_[0]).__name__
        raise Unread(f"{type(e).__name__} averages the probabilities of {kind}, which are not affine")
    return average


def _boosting(steps: Sequence[Named], e: Any, input_shape: Shape) -> Form:
    if getattr(e, "algorithm", "SAMME") == "SAMME.R":
        raise Unread(f"{type(e).__name__} with algorithm='SAMME.R' adds logarithms of probabilities")
    classes = np.asarray(e.classes_)
    return _votes(
        _members([(steps, member) for member in e.estimators_], input_shape),
        [
            np.where(np.asarray(m.classes_)[:, None] == classes, w, -1 / (len(classes) - 1) * w)
            for w, m in zip(e.estimator_weights_, e.estimators_, strict=False)
        ],
        float(np.sum(e.estimator_weights_)),
    )


def _members(members: list[tuple[Sequence[Named], Any]], input_shape: Shape) -> list[Form]:
    """What each member is, behind its steps."""
    read = []
    for i, (steps, member) in enumerate(members):
        try:
            read.append(_read(steps, member, input_shape))
        except Unread as reason:
            raise Unread(f"of its member {i}: {reason}") from None
    return read


def _votes(members: list[Form], values: list[Floats], divisor: float) -> Form:
    """Members that vote by their labels: one ensemble where each is a tree."""
    return vote_of(members, values, divisor) or Votes(tuple(members), tuple(values), divisor)


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
