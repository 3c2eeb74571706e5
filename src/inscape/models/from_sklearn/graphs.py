"""Linear classifiers and perceptrons of scikit-learn, behind their transformers, as graphs."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Floats, Shape
from inscape.models.from_sklearn.transformers import (
    Chain,
    Each,
    Join,
    Limit,
    Named,
    Product,
    Take,
    dense,
    kind_of,
    read_transformers,
    unrolled,
)
from inscape.models.graph import INPUT, Graph, Node, affine
from inscape.models.graph.piecewise import Bend, Clip, Leaky
from inscape.models.trees import Unread


class ScoreNode(NamedTuple):
    """A node that holds scores.

    A single column is the score of the second of two classes.
    """

    node: int
    n_columns: int
    head: str | None = None


class Builder:
    """Collects the nodes of one graph on points of `n_features`."""

    def __init__(self, n_features: int) -> None:
        self.nodes: list[Node] = [INPUT]
        self.sizes = [n_features]

    def add(self, op: "affine.Affine | Bend", inputs: Sequence[int], size: int, path: str = "") -> int:
        """Append a node with points of `size` and return its number."""
        self.nodes.append(Node(op, tuple(inputs), path))
        self.sizes.append(size)
        return len(self.nodes) - 1

    def linear(self, source: int, matrix: Any, offset: Any, path: str = "") -> int:
        """The node y = M x + b, for M (m, d) and b of m numbers or one."""
        weight = dense(matrix)
        bias = np.broadcast_to(np.asarray(offset, dtype=np.float64), len(weight))
        if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            raise Unread(f"{path} has learned numbers that are not finite")
        return self.add(affine.linear(_tensor(weight), _tensor(bias)), (source,), len(weight), path)

    def transformed(self, source: int, chain: Chain) -> int:
        """What a chain of transformers makes of a node."""
        for step in chain:
            source = self._step(source, step)
        return source

    def _step(self, source: int, step: Any) -> int:
        size = self.sizes[source]
        if isinstance(step, Each):
            if step.operation in "+-":
                return self.add(
                    affine.shift(_tensor(step.amount if step.operation == "+" else -step.amount)),
                    (source,),
                    size,
                )
            factor = step.amount if step.operation == "*" else 1 / step.amount
            return self.add(affine.scale(_tensor(factor)), (source,), size)
        if isinstance(step, Take):
            columns = torch.from_numpy(np.array(step.columns, dtype=np.int64))
            return self.add(affine.take(0, columns), (source,), len(columns))
        if isinstance(step, Product):
            return self.add(affine.linear(_tensor(step.matrix)), (source,), len(step.matrix))
        if isinstance(step, Limit):
            return self.add(Clip(step.low, step.high), (source,), size)
        assert isinstance(step, Join)
        return self.joined([self.transformed(source, chain) for chain in step.branches])

    def joined(self, sources: Sequence[int]) -> int:
        """Nodes side by side."""
        if len(sources) == 1:
            return sources[0]
        return self.add(affine.concat(0), sources, sum(self.sizes[s] for s in sources))

    def scores(self, source: int, steps: Sequence[Named], estimator: Any) -> ScoreNode:
        """The scores of a fitted classifier behind transformers.

        Raises:
            Unread: if it is not piecewise affine, or not known to be.
        """
        more, last = unrolled(estimator)
        source = self.transformed(source, read_transformers([*steps, *more]))
        kind = kind_of(last)
        if kind not in READERS:
            raise Unread(f"{type(last).__name__} is not known to be piecewise affine")
        return READERS[kind](self, source, last)

    def single(self, source: int, steps: Sequence[Named], estimator: Any) -> ScoreNode:
        """The same of two classes in one column, positive for the second."""
        scores = self.scores(source, steps, estimator)
        if scores.n_columns == 2 and scores.head == "softmax":
            return ScoreNode(self.linear(scores.node, [[-1.0, 1.0]], 0.0), 1, scores.head)
        if scores.n_columns != 1:
            raise Unread(f"{type(estimator).__name__} has no single score of two classes")
        return scores

    def graph(self, output: int, input_shape: Shape, head: str | None = None) -> Graph:
        """The graph that ends in a node, on points of a shape."""
        whole = Graph(self.nodes, output=output, input_shape=(self.sizes[0],), head=head)
        if input_shape == whole.input_shape:
            return whole
        return whole.after(Graph([INPUT], output=0, input_shape=input_shape))


def classifier_graph(steps: Sequence[Named], estimator: Any, input_shape: Shape) -> Graph:
    """The graph of a fitted classifier behind transformers; two classes have two columns, (-s/2, s/2)."""
    builder = Builder(int(np.prod(input_shape)))
    scores = builder.scores(0, steps, estimator)
    node = scores.node
    if scores.n_columns == 1:
        node = builder.linear(node, [[-0.5], [0.5]], 0.0)
    return builder.graph(node, input_shape, scores.head)


def outputs_graph(estimator: Any, input_shape: Shape) -> Graph:
    """The graph of the numbers that a regressor predicts, or of the scores of a classifier of many labels.

    Raises:
        Unread: if they are not piecewise affine, or not known to be.
    """
    steps, last = unrolled(estimator)
    kind = kind_of(last)
    if kind not in _OUTPUTS:
        raise Unread(f"how {type(last).__name__} predicts is not known to be piecewise affine")
    builder = Builder(int(np.prod(input_shape)))
    scores = _OUTPUTS[kind](builder, builder.transformed(0, read_transformers(steps)), last)
    return builder.graph(scores.node, input_shape, scores.head)


def transformer_graph(steps: Sequence[Named], input_shape: Shape) -> Graph | None:
    """The graph of transformers alone; None for the identity."""
    chain = read_transformers(steps)
    if not chain:
        return None
    builder = Builder(int(np.prod(input_shape)))
    return builder.graph(builder.transformed(0, chain), input_shape)


def duel_graph(steps: Sequence[Named], estimator: Any, input_shape: Shape) -> Graph:
    """The graph of the scores of all pairs of classes i < j, positive for j."""
    builder = Builder(int(np.prod(input_shape)))
    source = builder.transformed(0, read_transformers(steps))
    if kind_of(estimator) == "OneVsOneClassifier":
        members = [builder.single(source, [], e) for e in estimator.estimators_]
        if any(m.head is not None for m in members):
            raise Unread("its members have probabilities, which break ties in a way that is not affine")
        node = builder.joined([m.node for m in members])
    else:
        node = builder.linear(source, -dense(estimator.coef_), -estimator.intercept_)
    return builder.graph(node, input_shape)


def _tensor(values: Floats) -> Tensor:
    return torch.from_numpy(np.array(values, dtype=np.float64, order="C"))


def _linear(builder: Builder, source: int, e: Any) -> ScoreNode:
    matrix = np.atleast_2d(dense(e.coef_))  # some have one row of numbers for two classes
    return ScoreNode(builder.linear(source, matrix, e.intercept_, type(e).__name__), len(matrix))


def _support_vectors(builder: Builder, source: int, e: Any) -> ScoreNode:
    if e.kernel != "linear":
        name = e.kernel if isinstance(e.kernel, str) else getattr(e.kernel, "__name__", "of its own")
        raise Unread(f"{type(e).__name__} has the kernel {name!r}, which is not piecewise affine")
    return _linear(builder, source, e)


def _perceptron(builder: Builder, source: int, e: Any) -> ScoreNode:
    if e.activation not in ("relu", "identity"):
        raise Unread(f"{type(e).__name__} has the activation {e.activation!r}, which is not piecewise affine")
    for i, (weight, bias) in enumerate(zip(e.coefs_, e.intercepts_, strict=True)):
        source = builder.linear(source, weight.T, bias, f"layer {i + 1} of {type(e).__name__}")
        if e.activation == "relu" and i < len(e.coefs_) - 1:
            source = builder.add(Leaky(), (source,), len(bias), f"layer {i + 1} of {type(e).__name__}")
    return ScoreNode(source, int(e.n_outputs_), "softmax")


def _counts(builder: Builder, source: int, e: Any) -> ScoreNode:
    prior = e.class_log_prior_ if type(e).__name__ == "MultinomialNB" or len(e.classes_) == 1 else 0.0
    node = builder.linear(source, e.feature_log_prob_, prior, type(e).__name__)
    return ScoreNode(node, len(e.classes_), "softmax")


def _centroids(builder: Builder, source: int, e: Any) -> ScoreNode:
    """|z - c|^2 = |z|^2 - 2 c z + |c|^2: the nearest centroid has the largest 2 c z - |c|^2."""
    if e.metric != "euclidean":
        raise Unread(f"{type(e).__name__} has the metric {e.metric!r}, which is not read")
    centre = dense(e.centroids_).mean(axis=0)  # large coordinates would cancel
    centroids, prior = dense(e.centroids_) - centre, getattr(e, "class_prior_", None)
    source, bonus = builder.transformed(source, (Each("-", centre),)), 0.0
    if prior is not None and not np.isclose(prior, 1 / len(prior)).all():
        spread = np.where(e.within_class_std_dev_ != 0, e.within_class_std_dev_, 1.0)
        centroids, bonus = centroids / spread, 2 * np.log(prior)
        source = builder.transformed(source, (Each("/", spread),))
    node = builder.linear(source, 2 * centroids, bonus - (centroids**2).sum(axis=1), type(e).__name__)
    return ScoreNode(node, len(centroids), "order")


def _one_versus_rest(builder: Builder, source: int, e: Any) -> ScoreNode:
    """The largest of the members' scores, or of their probabilities, which is the same."""
    members = [builder.single(source, [], member) for member in e.estimators_]
    head = members[0].head
    node = builder.joined([m.node for m in members])
    if len(members) > 1 and head is not None:
        return ScoreNode(node, len(members), "order")
    return ScoreNode(node, len(members), head)


def _codes(builder: Builder, source: int, e: Any) -> ScoreNode:
    """The nearest code to the members' scores."""
    members = [builder.single(source, [], member) for member in e.estimators_]
    if any(m.head is not None for m in members):
        raise Unread("its members have probabilities, which are not piecewise affine")
    codes = np.asarray(e.code_book_, dtype=np.float64)
    node = builder.joined([m.node for m in members])
    return ScoreNode(builder.linear(node, 2 * codes, -(codes**2).sum(axis=1)), len(codes), "order")


def _dummy(builder: Builder, source: int, e: Any) -> ScoreNode:
    if e.strategy in ("stratified", "uniform"):
        raise Unread(f"{type(e).__name__} with strategy={e.strategy!r} predicts at random")
    n = builder.sizes[source]
    scores = e.predict_proba(np.zeros((1, n)))[0]
    return ScoreNode(builder.linear(source, np.zeros((len(scores), n)), scores), len(scores))


def _constant(builder: Builder, source: int, e: Any) -> ScoreNode:
    """A class that all training points were in, or none."""
    return ScoreNode(builder.linear(source, np.zeros((1, builder.sizes[source])), e.y_), 1)


READERS: dict[str, Callable[[Builder, int, Any], ScoreNode]] = {
    "LogisticRegression": _linear,
    "LogisticRegressionCV": _linear,
    "LinearSVC": _linear,
    "RidgeClassifier": _linear,
    "RidgeClassifierCV": _linear,
    "SGDClassifier": _linear,
    "Perceptron": _linear,
    "PassiveAggressiveClassifier": _linear,
    "LinearDiscriminantAnalysis": _linear,
    "SVC": _support_vectors,
    "NuSVC": _support_vectors,
    "MLPClassifier": _perceptron,
    "MultinomialNB": _counts,
    "ComplementNB": _counts,
    "NearestCentroid": _centroids,
    "OneVsRestClassifier": _one_versus_rest,
    "OutputCodeClassifier": _codes,
    "DummyClassifier": _dummy,
    "_ConstantPredictor": _constant,
}
"""How each classifier becomes scores."""


def _outputs_of_perceptron(builder: Builder, source: int, e: Any) -> ScoreNode:
    """Numbers, or a probability of each label."""
    head = {"identity": None, "logistic": "sigmoid"}.get(e.out_activation_, e.out_activation_)
    return _perceptron(builder, source, e)._replace(head=head)


_LINEAR_REGRESSORS = (
    "LinearRegression Ridge RidgeCV Lasso LassoCV ElasticNet ElasticNetCV MultiTaskLasso MultiTaskElasticNet "
    "Lars LarsCV LassoLars LassoLarsCV LassoLarsIC OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV "
    "BayesianRidge ARDRegression HuberRegressor TheilSenRegressor QuantileRegressor SGDRegressor "
    "PassiveAggressiveRegressor LinearSVR"
)
_OUTPUTS: dict[str, Callable[[Builder, int, Any], ScoreNode]] = {
    **dict.fromkeys(_LINEAR_REGRESSORS.split(), _linear),
    "SVR": _support_vectors,
    "NuSVR": _support_vectors,
    "MLPRegressor": _outputs_of_perceptron,
    "MLPClassifier": _outputs_of_perceptron,
    "OneVsRestClassifier": _one_versus_rest,
}
"""How the numbers that are decided by a rule are computed."""
