"""What a fitted estimator is along a straight line, beside a piecewise-affine graph and trees."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from inscape.arrays import Floats, Ints
from inscape.models.trees import TreeEnsemble

if TYPE_CHECKING:
    from inscape.models.graph import Graph


@dataclass(frozen=True, eq=False)
class Quadratics:
    """Classes whose scores are f_k(z) = constants_k - |F_k (z - centres_k)|^2; the largest wins.

    Attributes:
        factors: F_k of each class, (r, d), or its diagonal (d,).
        centres: (c, d).
        constants: (c,), all finite.
        labels: which label each of the c classes is, (c,).
        front: from a point x of the input to z; None for the identity.
    """

    structure: ClassVar[str] = "quadratic"

    factors: tuple[Floats, ...]
    centres: Floats
    constants: Floats
    labels: Ints
    front: "Graph | None"


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The k training points nearest to z vote, the smallest label first among equals.

    Attributes:
        points: (n, d).
        labels: (n,).
        k: how many of them vote.
        n_classes: the number of labels.
        front: from a point x of the input to z; None for the identity.
    """

    structure: ClassVar[str] = "neighbours"

    points: Floats
    labels: Ints
    k: int
    n_classes: int
    front: "Graph | None"


@dataclass(frozen=True, eq=False)
class Duels:
    """Every two classes i < j duel: a positive score is a vote for j, else i gets it; most votes win.

    Attributes:
        scores: the graph of the c (c - 1) / 2 scores, in the order (0, 1), (0, 2), ..., (1, 2), ...
        n_classes: c.
        by_confidence: whether among the most votes the largest sum of a class's scores decides, else the
            smallest label.
    """

    structure: ClassVar[str] = "votes"

    scores: "Graph"
    n_classes: int
    by_confidence: bool


@dataclass(frozen=True, eq=False)
class Votes:
    """Members vote: label = argmax of (the sum over members of values[their label]) / divisor.

    Attributes:
        members: what each of them is along a line.
        values: for each member, what each of its labels gives to the c classes, (its classes, c); added in
            this order in float64, as scikit-learn does.
        divisor: what the sums are divided by.
    """

    structure: ClassVar[str] = "votes"

    members: "tuple[Form, ...]"
    values: tuple[Floats, ...]
    divisor: float


Form: TypeAlias = "Graph | TreeEnsemble | Quadratics | Neighbours | Duels | Votes"
"""Whatever is exact along a line."""
