"""Fitted transformers of scikit-learn as chains of maps of a vector of features.

Scalers, projections, selectors and whatever joins them are affine, or clip; the rest is refused by name.
Scalers keep the operations of scikit-learn in their order, so that a chain rounds as `transform` does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from inscape.arrays import Floats, Ints
from inscape.models.trees import AffineMap, Unread

Named = tuple[str, Any]
"""A step of a pipeline: its name and what was fitted."""


class Each:
    """What happens to every feature by itself: x + a, x - a, x * a or x / a, in the precision of x."""

    def __init__(self, operation: str, amount: Any) -> None:
        self.operation = operation
        self.amount: Floats = np.asarray(amount, dtype=np.float64)

    def __call__(self, x: Floats, *, linear: bool = False) -> Floats:
        """The map on points (n, d), or its linear part."""
        if self.operation in "+-":
            signed = self.amount if self.operation == "+" else -self.amount
            return x if linear else x + signed
        return x * self.amount if self.operation == "*" else x / self.amount


@dataclass(frozen=True, eq=False)
class Take:
    """The features at `columns`, (m,)."""

    columns: Ints

    def __call__(self, x: Floats, *, linear: bool = False) -> Floats:
        """The map on points (n, d), which is linear."""
        return x[:, self.columns]


@dataclass(frozen=True, eq=False)
class Product:
    """y = M x for `matrix` M, (m, d)."""

    matrix: Floats

    def __call__(self, x: Floats, *, linear: bool = False) -> Floats:
        """The map on points (n, d), which is linear."""
        return x @ self.matrix.T


@dataclass(frozen=True, eq=False)
class Limit:
    """Every feature clipped to between `low` and `high`."""

    low: float
    high: float

    def __call__(self, x: Floats, *, linear: bool = False) -> Floats:
        """The map on points (n, d); it has no linear part."""
        if linear:
            raise Unread("its features are clipped, which is not affine")
        return np.clip(x, self.low, self.high)


@dataclass(frozen=True, eq=False)
class Join:
    """Several chains of the same point, their results side by side."""

    branches: tuple["Chain", ...]

    def __call__(self, x: Floats, *, linear: bool = False) -> Floats:
        """The map on points (n, d), or its linear part."""
        return np.concatenate([applied(chain, x, linear=linear) for chain in self.branches], axis=1)


Map = Each | Take | Product | Limit | Join
Chain = tuple[Map, ...]
"""Maps one after the other; the empty chain is the identity."""


def applied(chain: Chain, x: Floats, *, linear: bool = False) -> Floats:
    """What a chain makes of points (n, d), or its linear part."""
    for step in chain:
        x = step(x, linear=linear)
    return x


def affine_map(chain: Chain, n_features: int) -> AffineMap:
    """A chain on points of `n_features` as one matrix and offset.

    Raises:
        Unread: if it clips.

    >>> chain = affine_map((Each("-", [1.0, 3.0]), Take(np.array([1])), Each("/", [2.0])), 2)
    >>> chain.matrix.tolist(), chain.offset.tolist()
    ([[0.0, 0.5]], [-1.5])
    """
    matrix = applied(chain, np.eye(n_features), linear=True).T
    return AffineMap(np.ascontiguousarray(matrix), applied(chain, np.zeros((1, n_features)))[0])


def unrolled(estimator: Any) -> tuple[list[Named], Any]:
    """The transformers that a point goes through, and the estimator at the end that predicts it.

    Pipelines may be nested; a search stands for its best estimator, recursive feature elimination for a
    selector and the estimator behind it.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.naive_bayes import GaussianNB
    >>> steps, last = unrolled(make_pipeline(StandardScaler(), GaussianNB()))
    >>> [name for name, _ in steps], last
    (['standardscaler'], GaussianNB())
    """
    steps: list[Named] = []
    while True:
        kind = kind_of(estimator)
        if kind == "Pipeline":
            *first, (_, last) = estimator.steps
            steps += first
        elif kind in ("RFE", "RFECV"):
            steps.append((kind, estimator))
            last = estimator.estimator_
        elif kind in _STANDING_FOR and hasattr(estimator, _STANDING_FOR[kind]):
            last = getattr(estimator, _STANDING_FOR[kind])
        else:
            return steps, estimator
        estimator = last


_STANDING_FOR = {
    "GridSearchCV": "best_estimator_",
    "RandomizedSearchCV": "best_estimator_",
    "HalvingGridSearchCV": "best_estimator_",
    "HalvingRandomSearchCV": "best_estimator_",
    "SelfTrainingClassifier": "estimator_",
    "FrozenEstimator": "estimator",
}
"""What predicts exactly as one of its attributes does."""


def kind_of(estimator: Any) -> str:
    """The class of an estimator if it is scikit-learn's own, else "": a subclass may act in its own way."""
    kind = type(estimator)
    return kind.__name__ if kind.__module__.startswith("sklearn.") else ""


def read_transformers(steps: Sequence[Named]) -> Chain:
    """The chain of fitted transformers, with their names.

    Raises:
        Unread: if one of them is neither affine nor clips; the message names the step.

    >>> from sklearn.preprocessing import MinMaxScaler
    >>> chain = read_transformers([("scale", MinMaxScaler().fit([[2.0], [4.0]]))])
    >>> applied(chain, np.array([[3.0]])).tolist()
    [[0.5]]
    """
    chain: list[Map] = []
    for name, transformer in steps:
        chain += _maps(name, transformer)
    return tuple(chain)


def _maps(name: str, transformer: Any) -> Sequence[Map]:
    """What a fitted transformer does to a point."""
    if isinstance(transformer, Map):
        return [transformer]
    if transformer is None or (isinstance(transformer, str) and transformer == "passthrough"):
        return []
    kind = kind_of(transformer)
    if kind in _READERS:
        try:
            return _READERS[kind](transformer)
        except Unread as reason:
            raise Unread(f"its step {name!r}, a {kind}, {reason}") from None
    if type(transformer).__module__.startswith("sklearn.feature_selection.") and kind:
        return [Take(transformer.get_support(indices=True))]
    if kind in _NOT_AFFINE:
        raise Unread(f"its step {name!r}, a {kind}, {_NOT_AFFINE[kind]}")
    raise Unread(f"what its step {name!r}, a {type(transformer).__name__}, does is not known to be affine")


def _standard(s: Any) -> Sequence[Map]:
    return [Each("-", s.mean_)] * bool(s.with_mean) + [Each("/", s.scale_)] * bool(s.with_std)


def _min_max(s: Any) -> list[Map]:
    return [Each("*", s.scale_), Each("+", s.min_), *[Limit(*map(float, s.feature_range))] * bool(s.clip)]


def _max_abs(s: Any) -> list[Map]:
    low_and_high = [Limit(-1.0, 1.0)] * bool(getattr(s, "clip", False))
    return [Each("/", s.scale_), *low_and_high]


def _robust(s: Any) -> Sequence[Map]:
    return [Each("-", s.center_)] * bool(s.with_centering) + [Each("/", s.scale_)] * bool(s.with_scaling)


def _principal_components(s: Any) -> list[Map]:
    maps: list[Map] = [Product(dense(s.components_)), Each("-", s.mean_ @ s.components_.T)]
    if s.whiten:
        scale = np.sqrt(s.explained_variance_)
        maps.append(Each("/", np.maximum(scale, np.finfo(scale.dtype).eps)))
    return maps


def _projection(s: Any) -> list[Map]:
    return [Product(dense(s.components_))]


def _independent_components(s: Any) -> list[Map]:
    return [Each("-", s.mean_)] * bool(s.whiten) + _projection(s)


def _discriminants(s: Any) -> list[Map]:
    product = Product(dense(s.scalings_[:, : s._max_components].T))
    return [Each("-", s.xbar_), product] if s.solver == "svd" else [product]


def _imputer(s: Any) -> list[Map]:
    if s.add_indicator or not _is_nan(s.missing_values) or np.isnan(np.asarray(s.statistics_, float)).any():
        raise Unread("does more than to fill in NaN, or drops a feature")
    return []  # no point of ours holds NaN


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and np.isnan(value)


def _function(s: Any) -> list[Map]:
    if s.func is None:
        return []
    name = getattr(s.func, "__name__", type(s.func).__name__)
    raise Unread(f"calls the function {name}, of which nothing is known")


def _pipeline(s: Any) -> list[Map]:
    return [*read_transformers(s.steps)]


def _union(s: Any) -> list[Map]:
    weights = s.transformer_weights or {}
    return [
        Join(
            tuple(
                (*_maps(name, t), *([Each("*", weights[name])] if weights.get(name) is not None else []))
                for name, t in s.transformer_list
                if not _is_dropped(t)
            )
        )
    ]


def _columns(s: Any) -> list[Map]:
    where = s._transformer_to_input_indices
    return [
        Join(
            tuple(
                (Take(np.asarray(where[name], dtype=np.int64)), *_maps(name, t))
                for name, t, _ in s.transformers_
                if not _is_dropped(t) and len(where[name])
            )
        )
    ]


def _is_dropped(transformer: Any) -> bool:
    return isinstance(transformer, str) and transformer == "drop"


def dense(matrix: Any) -> Floats:
    """A matrix as a float64 array, be it sparse or not."""
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64)


_READERS: dict[str, Callable[[Any], Sequence[Map]]] = {
    "StandardScaler": _standard,
    "MinMaxScaler": _min_max,
    "MaxAbsScaler": _max_abs,
    "RobustScaler": _robust,
    "PCA": _principal_components,
    "IncrementalPCA": _principal_components,
    "TruncatedSVD": _projection,
    "GaussianRandomProjection": _projection,
    "SparseRandomProjection": _projection,
    "NeighborhoodComponentsAnalysis": _projection,
    "FastICA": _independent_components,
    "LinearDiscriminantAnalysis": _discriminants,
    "SimpleImputer": _imputer,
    "FunctionTransformer": _function,
    "Pipeline": _pipeline,
    "FeatureUnion": _union,
    "ColumnTransformer": _columns,
}

_NOT_AFFINE = {
    "Normalizer": "divides a point by its length, which is not piecewise affine",
    "PolynomialFeatures": "multiplies features with each other, which is not piecewise affine",
    "SplineTransformer": "makes piecewise polynomials of the features, which are not piecewise affine",
    "PowerTransformer": "takes powers of the features, which is not piecewise affine",
    "KBinsDiscretizer": "makes steps of the features, which are not read",
    "Binarizer": "makes steps of the features, which are not read",
    "OneHotEncoder": "takes classes, not numbers",
    "OrdinalEncoder": "takes classes, not numbers",
    "TargetEncoder": "takes classes, not numbers",
}
