"""Which class of the one model is which of the other, and whether their scores can be compared."""

import math
from typing import NamedTuple

import numpy as np

from inscape.arrays import Array, Ints
from inscape.errors import ModelError
from inscape.measures.unlabelled import are_probabilities
from inscape.models import Model
from inscape.models.class_names import ClassNames, name_of

HEADS = {
    "softmax": "probabilities",
    "sigmoid": "probabilities",
    "log_softmax": "logarithms of probabilities",
    "log_sigmoid": "logarithms of probabilities",
}
"""What a network returns that ends so."""


class Matching:
    """The labels of two models in one numbering.

    Attributes:
        by: "name", or "place" where not both models have names.
        names: the class names in that numbering; None where neither model has names.
        n: how many classes there are; None if that is not known.
        columns: for each score of the first model the column of the second one's; None where one of them has
            no score for each class, or they have not the same number of them.
        kinds: what the scores of each model are: "scores", "probabilities", ...; None without scores.
    """

    def __init__(self, a: Model, b: Model, x: Array) -> None:
        """Match the classes of two models; those that are no networks are asked at points x for it."""
        told = [_told(m, x) for m in (a, b)]
        self._models = a, b
        self._n_scores = [t.n for t in told]
        self._revealed = ClassNames() if _reveals(a) or _reveals(b) else None
        sizes = [_n_classes(m, t.n) for m, t in zip((a, b), told, strict=True)]
        own = [None if _are_places(m.classes) else m.classes for m in (a, b)]
        self._order: Ints | None = None
        self.by: str
        self.names: tuple[str, ...] | None
        if own[0] is not None and own[1] is not None:
            self.by, self.names = "name", own[0]
            if self._revealed is None:
                self._order = _ordered(a, b, own[0], own[1])
        else:
            self.by, self.names = "place", own[0] or own[1] or a.classes or b.classes
            _check_sizes(a, b, sizes)
        self.n = None if self._revealed is not None else sizes[0] or sizes[1]
        self.columns = self._columns()
        self.kinds = tuple(t.kind for t in told)

    def common(self, first: Ints, second: Ints) -> tuple[Ints, Ints]:
        """Labels of both models, (n,) each, in one numbering."""
        if self._revealed is not None and self.by == "name":
            a, b = self._models
            names = [np.array([m.class_name(k) for k in v.tolist()]) for m, v in ((a, first), (b, second))]
            numbers = [self._revealed.number(v) for v in names]
            self.names = self._revealed.seen
            return numbers[0], numbers[1]
        return first, second if self._order is None else self._order[second]

    def name(self, label: int) -> str:
        """What a label of the common numbering is called."""
        return name_of(label, self.names)

    def _columns(self) -> Ints | None:
        n, other = self._n_scores
        if n is None or n != other or not all(m.labels_are_columns for m in self._models):
            return None
        if self._order is None:
            return np.arange(n)
        return np.argsort(self._order) if n == len(self._order) else None

    @property
    def why_not_scores(self) -> str | None:
        """Why the scores of the models cannot be compared; None if they can."""
        (a, b), (first, second) = told_apart(*self._models), self.kinds
        for name, kind in ((a, first), (b, second)):
            if kind is None:
                return f"{name} has labels but no score per class"
        if self.columns is None:
            return "the models have not the same number of scores"
        if first != second:
            return f"{a} gives {first} and {b} {second}, which are on different scales"
        return None


def told_apart(a: Model, b: Model) -> tuple[str, str]:
    """The names of two models, (a) and (b) behind them if they are the same."""
    return (a.name, b.name) if a.name != b.name else (f"{a.name} (a)", f"{b.name} (b)")


def _reveals(model: Model) -> bool:
    """Whether a model has names, and only those that were met so far."""
    return model.reveals_classes and model.classes is not None


def _are_places(names: tuple[str, ...] | None) -> bool:
    """Whether names are none, or only the numbers of their places."""
    return names is None or all(name == str(i) for i, name in enumerate(names))


def _n_classes(model: Model, n_scores: int | None) -> int | None:
    if model.classes is not None and not model.reveals_classes:
        return len(model.classes)
    return None if n_scores is None or not model.labels_are_columns else max(2, n_scores)


def _ordered(a: Model, b: Model, first: tuple[str, ...], second: tuple[str, ...]) -> Ints:
    """The label of the first model for each label of the second."""
    if set(first) != set(second):
        raise _unequal(a, b, [_listed(first), _listed(second)])
    return np.array([first.index(name) for name in second])


def _unequal(a: Model, b: Model, classes: list[str]) -> ModelError:
    own = [f"{name} has {listed}" for name, listed in zip(told_apart(a, b), classes, strict=True)]
    return ModelError(
        f"the models tell different classes apart: {', '.join(own)}",
        remedy="compare models of one set of classes",
    )


def _check_sizes(a: Model, b: Model, sizes: list[int | None]) -> None:
    if None not in sizes and sizes[0] != sizes[1]:
        own = [
            _listed(m.classes) if m.classes else f"{n} classes" for m, n in zip((a, b), sizes, strict=True)
        ]
        raise _unequal(a, b, own)


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(repr(name) for name in names[:20])
    return f"{shown}, ... ({len(names)} in all)" if len(names) > 20 else shown


class _Told(NamedTuple):
    """How many scores a model has and what they are; None without scores."""

    n: int | None
    kind: str | None


def _told(model: Model, x: Array) -> _Told:
    """What the graph of a network says of its scores, or the scores of any other model at points x."""
    if model.structure == "piecewise-affine":
        graph = model.graph(x.shape[1:])
        return _Told(math.prod(graph.shapes[graph.output]), HEADS.get(graph.head or "", "scores"))
    scores = model.predict(x, with_scores=model.has_scores).scores
    if scores is None:
        return _Told(None, None)
    if model.structure == "piecewise-affine":  # it is one at points of the shape that it has seen now
        return _told(model, x)
    n, kind = scores.shape[1], "scores"
    if n > 1 and are_probabilities(scores):
        kind = "probabilities"
    elif n > 1 and are_probabilities(np.exp(scores.astype(np.float64))):
        kind = "logarithms of probabilities"
    return _Told(n, kind)
