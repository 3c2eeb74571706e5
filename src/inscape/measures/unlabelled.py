"""What predictions say without labels: confidence, entropy, nuclear norm, agreement with other models.

What high and low mean: a confident model, of low entropy, tends to be right more often than an unsure one of
the same kind; a high nuclear norm asks besides that predictions be spread over all classes. None of them sees
a label, so that each can order models on data that nobody has labelled. When it does not hold: training long,
or on noisy labels, or a temperature, raises confidence without one prediction changing, and scores of
different kinds of models (votes of a forest, logits of a network, distances of a support vector machine) do
not compare.

Agreement with other models: those that agree with others trained alike tend to be right, since models that
are wrong are wrong in different ways. When it does not hold: models that share a mistake agree on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from inscape.arrays import Array, Floats, Ints
from inscape.errors import MeasureError, NotApplicableError, unknown_name
from inscape.measures.measurement import Measurement, mean_with_error, measuring, points_of
from inscape.models import Model, wrap
from inscape.pictures import Drawn
from inscape.progress import Meter, meter
from inscape.provenance import Provenance

SCORES = ("auto", "probabilities", "logits")
SUM_ERROR = 1e-5
"""By how much the scores of a point may miss 1 in their sum and be probabilities: votes are kept in
float32."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Confidence(Measurement, Drawn):
    """The mean of the largest probability.

    Attributes:
        confidences: the largest probability at each point, (n,).
    """

    measure: ClassVar[str] = "confidence"

    confidences: Floats

    def _draw(self, ax: Any) -> Any:
        """How confidence is distributed."""
        from inscape.drawing.measures import draw_values

        title = f"confidence of {self.provenance.model}"
        return draw_values(self.confidences, self.value, xlabel="largest probability", title=title, ax=ax)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PredictionEntropy(Measurement, Drawn):
    """The mean entropy of the predicted probabilities.

    Attributes:
        entropies: the entropy at each point, (n,), 1 for a guess.
    """

    measure: ClassVar[str] = "prediction_entropy"

    entropies: Floats

    def _draw(self, ax: Any) -> Any:
        """How the entropies are distributed."""
        from inscape.drawing.measures import draw_values

        title = f"prediction entropy of {self.provenance.model}"
        return draw_values(self.entropies, self.value, xlabel="entropy", title=title, ax=ax)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NuclearNorm(Measurement, Drawn):
    """The nuclear norm of the matrix of predicted probabilities, over the largest that it can have.

    Attributes:
        singular_values: of that matrix, descending.
    """

    measure: ClassVar[str] = "nuclear_norm"

    singular_values: Floats

    def _draw(self, ax: Any) -> Any:
        """The singular values."""
        from inscape.drawing.measures import draw_layers

        names = [str(i + 1) for i in range(len(self.singular_values))]
        title = f"singular values of the predictions of {self.provenance.model}"
        ax = draw_layers(self.singular_values, names, ylabel="singular value", title=title, ax=ax)
        ax.set_xlabel("rank")
        return ax


def confidence(
    model: Any, x: Any, *, scores: str = "auto", progress: bool | Meter | None = None
) -> Confidence:
    """The mean over points of the largest predicted probability.

    The baseline of Hendrycks and Gimpel 2017 (arXiv 1610.02136).

    Args:
        model: anything that `inscape.wrap` takes and that has scores.
        x: the points, as for `inscape.sample_probes`; no classes are needed.
        scores: "probabilities", or "logits" of which softmax (of a single score, the logistic function) makes
            them; "auto" takes scores for probabilities where they are in 0..1 and sum to 1 at every point.
            The result says which it was.
        progress: None for a bar after two seconds, False for none; a function gets (points done, n).

    >>> import numpy as np
    >>> votes = lambda x: np.column_stack([x[:, 0], 1 - x[:, 0]])
    >>> confidence(votes, [[0.9], [0.3]]).value
    0.8
    """
    wrapped = wrap(model)
    p, settings = _predicted(wrapped, x, scores, "confidence", progress)
    highest = p.max(axis=1)
    value, error, interval = mean_with_error(highest)
    return Confidence(
        value=value,
        std_error=error,
        interval=interval,
        n=len(p),
        method="scores",
        settings=settings,
        provenance=Provenance.of(wrapped),
        confidences=highest,
    )


def prediction_entropy(
    model: Any, x: Any, *, scores: str = "auto", progress: bool | Meter | None = None
) -> PredictionEntropy:
    """The mean over points of -sum_j p_j log p_j / log c: 0 for a sure prediction, 1 for equal probabilities.

    Args:
        model: as for `confidence`.
        x: the points.
        scores: as for `confidence`.
        progress: likewise.

    >>> import numpy as np
    >>> prediction_entropy(lambda x: np.full((len(x), 4), 0.25), [[0.0], [1.0]]).value
    1.0
    """
    wrapped = wrap(model)
    p, settings = _predicted(wrapped, x, scores, "prediction_entropy", progress)
    logs = np.log(p, out=np.zeros_like(p), where=p > 0)
    entropies = -(p * logs).sum(axis=1) / np.log(p.shape[1])
    value, error, interval = mean_with_error(entropies)
    return PredictionEntropy(
        value=value,
        std_error=error,
        interval=interval,
        n=len(p),
        method="scores",
        settings=settings,
        provenance=Provenance.of(wrapped),
        entropies=entropies,
    )


def nuclear_norm(
    model: Any, x: Any, *, scores: str = "auto", progress: bool | Meter | None = None
) -> NuclearNorm:
    """The sum of the singular values of the matrix P (n, c) of probabilities, over sqrt(n min(n, c)).

    That is at most 1, where every prediction is sure and all classes are predicted equally often (Deng et al.
    2023, arXiv 2302.01094): confidence and dispersity in one number.

    Args:
        model: as for `confidence`.
        x: the points.
        scores: as for `confidence`.
        progress: likewise.

    >>> import numpy as np
    >>> round(nuclear_norm(lambda x: np.eye(3)[[0, 1, 2, 0, 1, 2]], np.zeros((6, 1))).value, 12)
    1.0
    """
    wrapped = wrap(model)
    p, settings = _predicted(wrapped, x, scores, "nuclear_norm", progress)
    singular = np.sqrt(np.maximum(np.linalg.eigvalsh(p.T @ p), 0.0))[::-1]
    return NuclearNorm(
        value=float(singular.sum() / np.sqrt(len(p) * min(p.shape))),
        n=len(p),
        method="singular values",
        settings=settings,
        provenance=Provenance.of(wrapped),
        singular_values=singular.copy(),
    )


def _predicted(
    model: Model, x: Any, scores: str, measure: str, progress: bool | Meter | None
) -> tuple[Floats, dict[str, Any]]:
    if scores not in SCORES:
        raise MeasureError(unknown_name("scores", scores, SCORES))
    with measuring(model):
        given = model.predict(points_of(model, x), with_scores=True, progress=progress).scores
    if given is None:
        raise NotApplicableError(f"{measure} needs a score per class, and {model.name} has labels only")
    kind = ("probabilities" if are_probabilities(given) else "logits") if scores == "auto" else scores
    return as_probabilities(given, kind), {"scores": kind}


def are_probabilities(scores: Array) -> bool:
    """Whether scores (n, c) are in 0..1 and sum to 1 at every point; a single one, whether it is in 0..1."""
    if not bool(((scores >= 0) & (scores <= 1)).all()):
        return False
    return scores.shape[1] == 1 or bool((np.abs(scores.sum(axis=1, dtype=np.float64) - 1) <= SUM_ERROR).all())


def as_probabilities(scores: Array, kind: str) -> Floats:
    """Probabilities (n, c), c at least 2: the scores themselves, or their softmax.

    >>> as_probabilities(np.array([[0.0, 0.0]]), "logits").tolist()
    [[0.5, 0.5]]
    >>> as_probabilities(np.array([[0.25]]), "probabilities").tolist()
    [[0.75, 0.25]]
    """
    f = np.asarray(scores, np.float64)
    if kind == "probabilities":
        return np.column_stack([1 - f[:, 0], f[:, 0]]) if f.shape[1] == 1 else f
    if f.shape[1] == 1:
        f = np.column_stack([np.zeros(len(f)), f[:, 0]])
    powers = np.exp(f - f.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Agreement(Measurement, Drawn):
    """The share of points on which a model predicts as others do.

    Attributes:
        shares: the share with each of the others, (m,).
    """

    measure: ClassVar[str] = "agreement"

    shares: Floats

    def _draw(self, ax: Any) -> Any:
        """The share with each of the others."""
        from inscape.drawing.measures import draw_layers

        names = [str(i + 1) for i in range(len(self.shares))]
        title = f"agreement of {self.provenance.model} with others"
        ax = draw_layers(self.shares, names, ylabel="share of agreement", title=title, ax=ax)
        ax.set_xlabel("other model")
        return ax


def agreement(
    model: Any, x: Any, *, others: Sequence[Any], progress: bool | Meter | None = None
) -> Agreement:
    """The mean over other models of the share of points that they and this one label alike.

    With others that differ in the seed of training alone that share is, often, near their test accuracy
    (Jiang et al. 2022, arXiv 2106.13799).

    Args:
        model: anything that `inscape.wrap` takes.
        x: the points.
        others: such models, at least one.
        progress: None for a bar after two seconds, False for none; a function gets (models done, in all).

    >>> halves = lambda x: (x[:, 0] > 0).astype(int)
    >>> agreement(halves, [[-1.0], [1.0], [2.0], [3.0]], others=[lambda x: (x[:, 0] > 1.5).astype(int)]).value
    0.75
    """
    if not isinstance(others, Sequence) or isinstance(others, str) or not others:
        raise MeasureError(f"others={others!r} names no models: give a list of at least one")
    wrapped = wrap(model)
    points = points_of(wrapped, x)
    with measuring(wrapped), meter(progress, "models") as show:
        predicted = wrapped.labels(points)
        shares = np.empty(len(others))
        for i, other in enumerate(others):
            show(i + 1, len(others) + 1)
            shares[i] = (_labels(other, points) == predicted).mean()
        value, error, interval = mean_with_error(shares)
        return Agreement(
            value=value,
            std_error=error,
            interval=interval,
            n=len(points),
            method="labels",
            settings={"others": len(others)},
            provenance=Provenance.of(wrapped),
            shares=shares,
        )


def _labels(model: Any, points: Floats) -> Ints:
    return wrap(model).labels(points)
