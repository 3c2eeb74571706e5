"""Decision rules: which label the outputs of a model stand for.

A rule turns outputs (n, k) into labels (n,), and into scores (n, c) of which the largest is that of the
label; a single score is compared with 0. The scores of every rule that is named here are affine in the
outputs, so that a network stays piecewise affine behind its rule, and whatever knows scores (margins,
adaptive counts, exact regions, attacks) follows the rule without knowing it.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from inscape.arrays import Array, Floats, Ints
from inscape.errors import ModelError, unknown_name
from inscape.models.function import FunctionModel

MOST_SIGNS = 8
"""Outputs whose signs are told apart: k of them make 2^k labels."""


class DecisionRule(ABC):
    """From what a model returns to labels and scores.

    Attributes:
        name: what `decide` calls the rule.
    """

    name: ClassVar[str]

    @abstractmethod
    def decide(self, outputs: Array, *, with_scores: bool) -> tuple[Array, Array | None]:
        """The label of each row of outputs (n, k), and the scores (n, c) if they are asked for and known."""

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """Plain JSON."""

    @abstractmethod
    def check(self, k: int, name: str) -> None:
        """Raise an error unless the rule is for the `k` outputs of a model."""

    def class_names(self, k: int) -> tuple[str, ...] | None:
        """What the labels stand for; None if they are their own names."""
        return None


class AffineRule(DecisionRule):
    """A rule whose scores are affine in the outputs: scores = A outputs + b."""

    @abstractmethod
    def labels(self, outputs: Array) -> Ints:
        """The label of each row of outputs (n, k)."""

    @abstractmethod
    def coefficients(self, k: int) -> tuple[Floats, Floats]:
        """The matrix A (c, k) and the offset b (c,)."""

    @abstractmethod
    def before(self, head: str) -> "AffineRule | None":
        """The rule that decides alike from what a final softmax, sigmoid or the like is applied to.

        None if there is no such rule; `NeverTaken` if a threshold is none of the head's values.
        """

    @property
    def is_open(self) -> bool:
        """Whether a threshold is left to the model."""
        return False

    @property
    def changes_nothing(self) -> bool:
        """Whether the scores are the outputs."""
        return False

    def resolved(self, threshold: float) -> "AffineRule":
        """The rule with the threshold that was left open."""
        return self

    def scores(self, outputs: Array) -> Array:
        """The score of each label, (n, c); (n, 1) for two labels, of which 1 is that of a positive score."""
        matrix, offset = self.coefficients(outputs.shape[1])
        return np.asarray(outputs.astype(np.float64) @ matrix.T + offset)

    def decide(self, outputs: Array, *, with_scores: bool) -> tuple[Array, Array | None]:
        """Labels, by the rule itself and not by rounded scores, and scores."""
        return self.labels(outputs), self.scores(outputs) if with_scores else None

    def record(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"decide": self.name}


@dataclass(frozen=True)
class Argmax(AffineRule):
    """The largest output wins, the first of equal ones."""

    name: ClassVar[str] = "argmax"

    def labels(self, outputs: Array) -> Ints:
        """The column of the largest output."""
        return np.asarray(outputs.argmax(axis=1))

    def coefficients(self, k: int) -> tuple[Floats, Floats]:
        """The identity."""
        return np.eye(k), np.zeros(k)

    def scores(self, outputs: Array) -> Array:
        """The outputs themselves."""
        return outputs

    @property
    def changes_nothing(self) -> bool:
        """Whether the scores are the outputs."""
        return type(self) is Argmax

    def before(self, head: str) -> AffineRule | None:
        """The same: a head does not change the order of the outputs, unless it returns labels."""
        return None if head in ("argmax", "positive") else self

    def check(self, k: int, name: str) -> None:
        """Raise an error for one output, of which nothing is the largest."""
        if k < 2:
            raise ModelError(
                f"decide={self.name!r} compares outputs, but {name} has one: give threshold=... or levels=..."
            )


@dataclass(frozen=True)
class Argmin(Argmax):
    """The smallest output wins, the first of equal ones.

    >>> Argmin().labels(np.array([[3.0, 1.0, 2.0]])).tolist()
    [1]
    """

    name: ClassVar[str] = "argmin"

    def labels(self, outputs: Array) -> Ints:
        """The column of the smallest output."""
        return np.asarray(outputs.argmin(axis=1))

    def coefficients(self, k: int) -> tuple[Floats, Floats]:
        """Minus the identity."""
        return -np.eye(k), np.zeros(k)

    def scores(self, outputs: Array) -> Array:
        """The outputs with the other sign."""
        return -outputs


@dataclass(frozen=True)
class Threshold(AffineRule):
    """Label 1 where the one output is above a number, else 0; None leaves the number to the model.

    >>> Threshold(0.7).labels(np.array([[0.6], [0.8]])).tolist()
    [0, 1]
    """

    name: ClassVar[str] = "threshold"

    threshold: float | None = None

    def labels(self, outputs: Array) -> Ints:
        """Whether the output is above the threshold."""
        return (outputs[:, 0].astype(np.float64) > self._number).astype(np.int64)

    def coefficients(self, k: int) -> tuple[Floats, Floats]:
        """The output minus the threshold."""
        return np.eye(1), np.array([-self._number])

    @property
    def _number(self) -> float:
        assert self.threshold is not None
        return self.threshold

    def before(self, head: str) -> AffineRule | None:
        """The threshold on what a strictly increasing head is applied to."""
        inverse = inverse_of(head)
        return None if inverse is None else Threshold(inverse(self._number))

    @property
    def is_open(self) -> bool:
        """Whether the threshold is left to the model."""
        return self.threshold is None

    @property
    def changes_nothing(self) -> bool:
        """Whether the score is the output."""
        return self.threshold == 0

    def resolved(self, threshold: float) -> AffineRule:
        """The rule with the threshold that was left open."""
        return Threshold(threshold)

    def check(self, k: int, name: str) -> None:
        """Raise an error for several outputs."""
        if k > 1:
            raise ModelError(
                f"a threshold is for one output, but {name} has {k}: choose one by output=..., or take all "
                "of them by decide='sign'"
            )

    def record(self) -> dict[str, Any]:
        """Plain JSON; a threshold that was left open is null."""
        return {"decide": self.name, "threshold": self.threshold}


@dataclass(frozen=True)
class Signs(AffineRule):
    """The label is the pattern of signs of outputs minus thresholds: 0 for all "-", 2^k - 1 for all "+".

    The first output is the highest digit. The score of a pattern s is the sum of s_i (output_i -
    threshold_i), which is largest for the pattern itself and leads by twice the smallest of their sizes.

    >>> rule = Signs((0.0,))
    >>> rule.labels(np.array([[1.0, -2.0], [-1.0, 2.0]])).tolist(), rule.class_names(2)
    ([2, 1], ('--', '-+', '+-', '++'))
    """

    name: ClassVar[str] = "sign"

    threshold: tuple[float, ...] | None = None

    def labels(self, outputs: Array) -> Ints:
        """The signs as the digits of a binary number."""
        above = outputs.astype(np.float64) > self._numbers(outputs.shape[1])
        return np.asarray(above @ 2 ** np.arange(outputs.shape[1])[::-1])

    def coefficients(self, k: int) -> tuple[Floats, Floats]:
        """All patterns of signs, and minus what they make of the thresholds."""
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=k)))
        return signs, -signs @ self._numbers(k)

    def _numbers(self, k: int) -> Floats:
        assert self.threshold is not None
        return np.broadcast_to(np.array(self.threshold), (k,))

    def before(self, head: str) -> AffineRule | None:
        """The thresholds on what a strictly increasing head is applied to."""
        inverse = inverse_of(head)
        if inverse is None or self.threshold is None:
            return None
        return Signs(tuple(inverse(t) for t in self.threshold))

    @property
    def is_open(self) -> bool:
        """Whether the threshold is left to the model."""
        return self.threshold is None

    def resolved(self, threshold: float) -> AffineRule:
        """The rule with the threshold that was left open."""
        return Signs((threshold,))

    def check(self, k: int, name: str) -> None:
        """Raise an error for more patterns than can be told apart."""
        if k > MOST_SIGNS:
            raise ModelError(
                f"decide='sign' makes 2^k labels of k outputs, and {name} has {k}: choose at most "
                f"{MOST_SIGNS} of them by output=..., such as output=lambda y: y[:, :{MOST_SIGNS}]"
            )
        if self.threshold is not None and len(self.threshold) not in (1, k):
            raise ModelError(
                f"{len(self.threshold)} thresholds do not fit the {k} outputs of {name}: give one, or one "
                "per output"
            )

    def class_names(self, k: int) -> tuple[str, ...]:
        """The patterns."""
        return tuple("".join(signs) for signs in itertools.product("-+", repeat=k))

    def record(self) -> dict[str, Any]:
        """Plain JSON; a threshold that was left open is null."""
        return {"decide": self.name, "threshold": None if self.threshold is None else list(self.threshold)}


@dataclass(frozen=True)
class Levels(AffineRule):
    """The label is the number of levels below the one output: what cuts a regression into regions.

    The score of label j is j y - (l_1 + ... + l_j): lines whose upper envelope changes at the levels.

    >>> rule = Levels((0.5, 1.0))
    >>> rule.labels(np.array([[0.2], [0.5], [0.7], [3.0]])).tolist()
    [0, 0, 1, 2]
    >>> rule.class_names(1)
    ('y <= 0.5', '0.5 < y <= 1', 'y > 1')
    """

    name: ClassVar[str] = "levels"

    levels: tuple[float, ...]

    def labels(self, outputs: Array) -> Ints:
        """How many levels are below the output."""
        return np.searchsorted(np.array(self.levels), outputs[:, 0].astype(np.float64), side="left")

    def coefficients(self, k: int) -> tuple[Floats, Floats]:
        """The slopes 0, 1, ..., m and the sums of the levels."""
        sums = np.concatenate([[0.0], np.cumsum(self.levels)])
        return np.arange(len(sums), dtype=np.float64)[:, None], -sums

    def before(self, head: str) -> AffineRule | None:
        """The levels of what a strictly increasing head is applied to."""
        inverse = inverse_of(head)
        return None if inverse is None else Levels(tuple(inverse(level) for level in self.levels))

    def check(self, k: int, name: str) -> None:
        """Raise an error for several outputs."""
        if k > 1:
            raise ModelError(f"levels are for one output, but {name} has {k}: choose one by output=...")

    def class_names(self, k: int) -> tuple[str, ...]:
        """The intervals."""
        short = [f"{level:.4g}" for level in self.levels]
        texts = short if len(set(short)) == len(short) else [repr(level) for level in self.levels]
        between = [f"{a} < y <= {b}" for a, b in itertools.pairwise(texts)]
        return (f"y <= {texts[0]}", *between, f"y > {texts[-1]}")

    def record(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"decide": self.name, "levels": list(self.levels)}


class Custom(DecisionRule):
    """A function from outputs (n, k) to labels (n,) or scores (n, c), of which nothing else is known."""

    name: ClassVar[str] = "function"

    def __init__(self, function: Callable[[Array], Any]) -> None:
        self.model = FunctionModel(function)

    def decide(self, outputs: Array, *, with_scores: bool) -> tuple[Array, Array | None]:
        """What the function says."""
        return self.model._call(outputs, with_scores=with_scores)

    def check(self, k: int, name: str) -> None:
        """Any outputs will do."""

    def class_names(self, k: int) -> tuple[str, ...] | None:
        """The names that the function returned so far."""
        return self.model.classes

    def record(self) -> dict[str, Any]:
        """Plain JSON: the function's name and a hash of its code."""
        return {"decide": self.name, "function": self.model.name, "fingerprint": self.model.fingerprint()}


RULES: dict[str, Callable[[Any], DecisionRule]] = {
    "argmax": lambda threshold: Argmax(),
    "argmin": lambda threshold: Argmin(),
    "threshold": lambda threshold: Threshold(_one_number(threshold)),
    "sign": lambda threshold: Signs(None if threshold is None else _numbers(threshold, "threshold")),
}
"""What `decide` may be, besides a function."""


def rule_of(decide: Any, threshold: Any, levels: Any) -> DecisionRule | None:
    """The rule that the arguments of `inscape.wrap` describe; None if they are all left out.

    >>> rule_of(None, 0.7, None), rule_of(None, None, [1, 2])
    (Threshold(threshold=0.7), Levels(levels=(1.0, 2.0)))
    """
    if isinstance(decide, DecisionRule) and threshold is None and levels is None:
        return decide
    if levels is not None:
        if decide not in (None, "levels") or threshold is not None:
            raise ModelError("levels=... is a rule by itself: leave out decide and threshold")
        return Levels(_increasing(_numbers(levels, "levels")))
    if decide is None:
        return None if threshold is None else RULES["threshold"](threshold)
    if callable(decide) and not isinstance(decide, type):
        _refuse_threshold(threshold, "a function")
        return Custom(decide)
    if decide not in RULES:
        raise ModelError(unknown_name("decide", decide, RULES) + ", or a function from outputs to labels")
    if decide not in ("threshold", "sign"):
        _refuse_threshold(threshold, repr(decide))
    return RULES[decide](threshold)


def _refuse_threshold(threshold: Any, decide: str) -> None:
    if threshold is not None:
        raise ModelError(f"threshold={threshold!r} does not go with decide={decide}: leave it out")


def _numbers(values: Any, name: str) -> tuple[float, ...]:
    """Finite numbers, at least one."""
    try:
        numbers = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if isinstance(values, str) or numbers.ndim != 1 or not len(numbers) or not np.isfinite(numbers).all():
        raise ModelError(f"{name}={values!r} must be a number, or several such as [0.1, 0.5]")
    return tuple(numbers.tolist())


def _one_number(threshold: Any) -> float | None:
    if threshold is None:
        return None
    numbers = _numbers(threshold, "threshold")
    if len(numbers) > 1:
        raise ModelError(f"threshold={threshold!r}: several thresholds go with decide='sign'")
    return numbers[0]


def _increasing(levels: Sequence[float]) -> tuple[float, ...]:
    if any(a >= b for a, b in itertools.pairwise(levels)):
        raise ModelError(f"levels={list(levels)} must increase strictly, such as [0.1, 0.5]")
    return tuple(levels)


class NeverTaken(ValueError):
    """A threshold is no value of the head that a model ends in, so that all points are on one side of it."""


def inverse_of(head: str) -> Callable[[float], float] | None:
    """The inverse of a head that acts on each output alone and increases strictly; None of any other.

    >>> inverse_of("sigmoid")(0.5)
    0.0
    """
    from inscape.models.graph.trace import INVERSES

    if head not in INVERSES:
        return None

    def inverse(value: float) -> float:
        try:
            undone = INVERSES[head](value)
        except (ValueError, ZeroDivisionError, OverflowError):
            undone = math.nan
        if not math.isfinite(undone):
            raise NeverTaken(f"{value:g}")
        return undone

    return inverse
