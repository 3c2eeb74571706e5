"""What inscape needs of a classifier: points in, integer labels and float scores out, in bounded batches."""

import json
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from inscape.arguments import as_points, whole_number
from inscape.arrays import LAYOUTS, Array, Ints, Shape, Streamed, transposed
from inscape.errors import (
    InscapeError,
    ModelError,
    OutOfRangeError,
    PartitionError,
    warn,
)
from inscape.models.class_names import name_of
from inscape.models.fingerprints import short_hash
from inscape.models.outputs import (
    ONE_SIDED,
    Output,
    between_0_and_1,
    check_outputs,
    labels_of,
    warn_of_one_label,
    warn_of_probabilities,
)
from inscape.progress import Meter, meter

if TYPE_CHECKING:
    from inscape.models.decision_rules import DecisionRule
    from inscape.models.graph import Graph
    from inscape.models.trees import TreeEnsemble


Answer = TypeVar("Answer")

N_COMPARED = 16
"""Points that are evaluated in two batches, once per wrapped model; four times as many without scores."""
FEWEST_COMPARED = 4
"""Points of a batch that tell anything: two in each half."""
SAME_SCORES = 2**-12
"""Relative to the largest score: far above rounding, and below what one bit of eight makes."""


class Prediction(NamedTuple):
    """What a model says of a batch of n points.

    Attributes:
        labels: the class of each point, (n,).
        scores: the scores of each point, (n, c); None where they were not asked for, or are not known.

    >>> import inscape
    >>> p = inscape.wrap(lambda x: x).predict([[0.2, 0.8], [0.9, 0.1]], with_scores=True)
    >>> p.labels.tolist(), p.scores.tolist()
    ([1, 0], [[0.2, 0.8], [0.9, 0.1]])
    """

    labels: Ints
    scores: Array | None


class Model(ABC):
    """A classifier seen from its input space.

    A label is the column of the winning score; `classes[label]` is its name where the model has names.
    A one-column score is that of a binary net: its label is `score > 0`.

    Attributes:
        structure: what exact methods may rely on. "piecewise-affine", "trees": exact on segments and planes.
            On segments: "quadratic" (scores are parabolas along a line), "neighbours" (the nearest of given
            points vote) and "votes" (of members that are exact). "black-box": nothing is known.
        name: how results and error messages call the model.
        input_shape: the shape of one point that the model takes, or None if it does not say.
        classes: the class names in label order, or None.
        has_scores: whether `scores` works; a model without scores still has labels.
        dtype: the precision in which points are handed to the model.
        reveals_classes: whether `classes` are only those that were met so far.
        labels_are_columns: whether a label is the column of a score, if there are scores.
        fixed_batch: the only batch length that the model takes (some exported files), or None.
        layout: the order of the data's axes, "HWC" or "CHW", if points are transposed on their way in.
        output: the way to the output that decides, if one was chosen.
        preprocess: what is done to points on their way in, as plain JSON for the record; None if nothing is.
        decision: which output decides and which rule turns it into labels, as plain JSON for the record;
            None if the model was left to its own.
        needs_rule: why the model has no labels without a decision rule, and what to say; None if it has.
        is_random: whether the same points were seen to be predicted differently a second time.
        one_by_one: whether points are evaluated alone, since the rest of a batch was seen to matter.
        is_concurrent: whether several threads may evaluate batches at a time.
        concurrency_seen: whether that was tried.
        feature_names: the columns of the table that the model was fitted to, in their order; None if that
            had no names.
    """

    structure: str = "black-box"
    has_scores: bool = True
    dtype: np.dtype[Any] = np.dtype(np.float64)
    classes: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    reveals_classes: bool = False
    labels_are_columns: bool = True
    fixed_batch: int | None = None
    layout: str | None = None
    preprocess: dict[str, Any] | None = None
    decision: dict[str, Any] | None = None
    needs_rule: str | None = None
    is_random: bool = False
    one_by_one: bool = False
    is_concurrent: bool = False
    concurrency_seen: bool = False
    _batches_compared: bool = False
    _threshold: float | None = None
    _only_probabilities: bool = False
    _decided: "tuple[Graph, Graph] | None" = None
    batch_bytes: int = 32 * 2**20
    max_batch: int = 4096

    def __init__(
        self,
        name: str,
        *,
        input_shape: Shape | None,
        batch_size: int | None,
        output: Output | None = None,
    ) -> None:
        self.name = name
        self.output = output
        self.decision = None if output is None else {"output": output.record()}
        try:
            self.input_shape = None if input_shape is None else tuple(int(n) for n in input_shape)
        except (TypeError, ValueError, OverflowError) as error:
            raise ModelError(f"input_shape={input_shape!r} is not a shape such as (1, 28, 28)") from error
        if self.input_shape is not None and min(self.input_shape, default=0) < 1:
            raise ModelError(
                f"input_shape={input_shape!r} is not a shape: give positive numbers, such as (1, 28, 28)"
            )
        self.batch_size = (
            None if batch_size is None else whole_number(batch_size, "batch_size", 1, ModelError, ", or None")
        )

    def __repr__(self) -> str:
        return f"<inscape model {self.name}, {self.structure}>"

    @property
    def kind(self) -> str:
        """What it is called in a list of models."""
        return self.name

    # what a subclass provides

    @abstractmethod
    def _call(self, x: Array, *, with_scores: bool) -> tuple[Array, Array | None]:
        """Labels (n,) and scores (n, c) or None of one batch; `x` has the model's dtype and shape."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A short hash of what the model computes now, for the record."""

    def network(self, input_shape: Shape) -> "Graph":
        """The piecewise-affine graph of what the model returns at points of one shape, before a rule decides.

        An error says why there is none. A model whose scores are its outputs may give `graph` instead.
        """
        if type(self).graph is not Model.graph:
            return self.graph(input_shape)
        raise PartitionError(
            f"{self.name} is a {self.structure} model, not a piecewise-affine network",
            remedy='it has no linear pieces; use decision_regions(..., method="adaptive") or method="grid"',
        )

    def graph(self, input_shape: Shape) -> "Graph":
        """The piecewise-affine graph of the scores at points of one shape; an error says why it has none."""
        network = self.network(input_shape)
        if self._decided is None or self._decided[0] is not network:
            self._decided = network, self._with_own_rule(network)
        return self._decided[1]

    @property
    def trees(self) -> "TreeEnsemble":
        """The trees of a model of structure "trees"; an error says why there are none."""
        raise PartitionError(
            f"{self.name} is not made of trees",
            remedy='use decision_regions(..., method="adaptive") or method="grid"',
        )

    @property
    def summed_trees(self) -> "TreeEnsemble":
        """The trees of whose sums the model's outputs are functions; an error says why there are none."""
        raise PartitionError(
            f"{self.name} is not made of trees",
            remedy='use decision_regions(..., method="adaptive") or method="grid"',
        )

    def known_shape(self) -> Shape | None:
        """The shape of the points that the model takes, as far as it is known."""
        return self.input_shape

    def ending(self, input_shape: Shape) -> str | None:
        """What outputs come out of: "sigmoid" or another head, "weights" of a layer; None if not known."""
        return None

    def decided_by(self, rule: "DecisionRule | None") -> "Model":
        """The model with its outputs decided by a rule; None leaves it to its own."""
        if rule is not None:
            from inscape.models.enclosing import DecidedModel

            return DecidedModel(self, rule)
        if self.needs_rule is not None:
            raise ModelError(self.needs_rule)
        return self

    @property
    def undecided(self) -> "Model":
        """The model whose scores are its outputs, whatever decision rule it was given: the network itself."""
        return self

    @property
    def coarse_precision(self) -> str | None:
        """The precision of the model if it has eleven bits or fewer, so that its linear pieces are steps."""
        return None

    def unchanged(self) -> AbstractContextManager[None]:
        """A time in which nobody changes the model, so that it need not be checked again and again."""
        return nullcontext()

    def use_autocast(self) -> None:
        """Compute labels with half precision where that is safe: for torch modules."""
        raise ModelError(f"autocast=True is for torch modules, and {self.name} is none: leave it out")

    def session(self) -> AbstractContextManager[None]:
        """The state in which batches are evaluated; entered once around a stream of them."""
        return nullcontext()

    def _outputs(self, x: Array) -> Array:
        """The numbers (n, k) that the model returns for one batch; `x` has the model's dtype and shape."""
        scores = self._call(x, with_scores=True)[1]
        if scores is None:
            raise ModelError(f"{self.name} returns labels, no numbers that a rule could decide by")
        return scores

    def _marked(self, fingerprint: str) -> str:
        """The fingerprint with the decision, if there is one: what is found by two rules differs."""
        if self.decision is None:
            return fingerprint
        record = json.dumps([fingerprint, self.decision])
        return short_hash(record.encode())

    def _bytes_per_point(self, size: int) -> int:
        """Memory that one point of `size` numbers needs inside the model."""
        return size * self.dtype.itemsize

    # what users call

    def labels(self, x: npt.ArrayLike, *, progress: bool | Meter | None = None) -> Ints:
        """The predicted label of each point, (n,)."""
        return self.predict(x, with_scores=False, progress=progress).labels

    def scores(self, x: npt.ArrayLike) -> Array:
        """The score of each class at each point, (n, c)."""
        if not self.has_scores:
            raise ModelError(f"{self.name} has labels but no score per class")
        scores = self.predict(x, with_scores=True).scores
        if scores is None:
            raise ModelError(f"{self.name} has labels but no score per class")
        return scores

    def outputs(self, x: npt.ArrayLike) -> Array:
        """The numbers (n, k) that the model itself returns, before any decision rule."""
        return np.concatenate(self._in_batches(x, self.outputs_batch))

    def predict(
        self, x: npt.ArrayLike, *, with_scores: bool, progress: bool | Meter | None = None
    ) -> Prediction:
        """Labels and scores of any number of points, batch by batch.

        Args:
            x: the points (n, ...).
            with_scores: whether scores are wanted.
            progress: None for a bar after two seconds, False for none; a function gets (points done, n).
        """
        batches = self._in_batches(x, lambda batch: self.predict_batch(batch, with_scores), progress)
        labels = np.concatenate([p.labels for p in batches])
        scores = [p.scores for p in batches if p.scores is not None]
        return Prediction(labels, np.concatenate(scores) if scores else None)

    def _in_batches(
        self, x: npt.ArrayLike, answer: Callable[[Array], Answer], progress: bool | Meter | None = None
    ) -> list[Answer]:
        """What `answer` says of each batch of points, inside one session."""
        points = x if isinstance(x, Streamed) else as_points(x)
        n, size = len(points), self.batch_length(math.prod(points.shape[1:]))
        answers: list[Answer] = []
        with meter(progress, "points") as show, self.session():
            for i in range(0, n, size):
                answers.append(answer(points[i : i + size].copy()))  # a model may write into its input
                show(min(i + size, n), n)
        return answers

    def outputs_batch(self, x: Array) -> Array:
        """The numbers (n, k) that the model returns for one batch, checked; call it inside `session()`."""
        x = self._to_input(x)
        if self.one_by_one and len(x) > 1:
            return np.concatenate([self.outputs_batch(x[i : i + 1]) for i in range(len(x))])
        with self._explained(x):
            out = self._outputs(self._padded(x))[: len(x)]
        check_outputs(out, self.name)
        return out

    def predict_batch(self, x: Array, with_scores: bool) -> Prediction:
        """Labels and scores of one batch, checked; call it inside `session()`."""
        n = len(x)
        x = self._to_input(x)
        compare = not self._batches_compared and n >= FEWEST_COMPARED
        kept = x.copy() if compare else x  # a model may write into its input
        labels, scores = self._evaluate(x, with_scores)
        if labels.ndim != 1 or len(labels) < n:
            raise ModelError(
                f"{self.name} returned labels of shape {labels.shape} for {n} points: expected ({n},), "
                f"or scores ({n}, c)"
            )
        if compare:
            self._batches_compared = True
            compare_batches(self, kept)
            if self.one_by_one:
                labels, scores = self._evaluate(kept, with_scores)
        return Prediction(labels[:n].astype(np.int64, copy=False), None if scores is None else scores[:n])

    def _evaluate(self, x: Array, with_scores: bool) -> tuple[Array, Array | None]:
        """Labels and scores of one batch, at least as many as there are points."""
        if self.one_by_one and len(x) > 1:
            answers = [self._evaluate(x[i : i + 1], with_scores) for i in range(len(x))]
            scores = [s[:1] for _, s in answers if s is not None]
            return np.concatenate([b[:1] for b, _ in answers]), np.concatenate(scores) if scores else None
        with self._explained(x):
            labels, returned = self._call(self._padded(x), with_scores=with_scores and self.has_scores)
        if returned is not None and returned.dtype == np.float16:  # compiled loops know no half precision
            returned = returned.astype(np.float32)
        return labels, returned

    def class_name(self, label: int) -> str:
        """The name of a label, or its number where the model has no names."""
        return name_of(label, self.classes)

    def batch_length(self, point_size: int) -> int:
        """How many points of `point_size` numbers go into one batch.

        `batch_size` if the user gave one; otherwise the largest power of two whose largest intermediate
        array stays within `batch_bytes`, between 8 and `max_batch`. It depends on the model and the size of
        a point only, never on timing, so that results repeat.
        """
        if self.fixed_batch is not None:
            return self.fixed_batch
        if self.batch_size is not None:
            return self.batch_size
        fitting = max(1, self.batch_bytes // self._bytes_per_point(point_size))
        return int(np.clip(2 ** int(math.log2(fitting)), 8, self.max_batch))

    def batch_memory(self, point_size: int, n_points: int) -> int:
        """Bytes that a batch of at most n points takes: the points, and what goes into and out of a layer."""
        n = min(n_points, self.batch_length(point_size))
        return n * (point_size * self.dtype.itemsize + 2 * self._bytes_per_point(point_size))

    def natural_threshold(self, input_shape: Shape, outputs: Array | None = None) -> float:
        """What an output is compared with: 1/2 if it is a probability, else 0; call it inside `session()`.

        A probability comes out of a final sigmoid. Where it is not known what outputs come out of, those that
        stay between 0 and 1 wherever it was tried, far from the data too, are taken for probabilities, with a
        warning.

        Args:
            input_shape: of one point, as the model takes it.
            outputs: (n, k) at some points, if they are at hand.
        """
        if self._threshold is None:
            ending = self.ending(input_shape)
            if ending is not None:
                self._threshold = 0.5 if ending in ("sigmoid", "softmax") else 0.0
                if ending in ONE_SIDED:
                    warn_of_one_label(self.name, ending)
            elif outputs is not None and not between_0_and_1(outputs):
                self._threshold = 0.0
            elif outputs is not None and np.isin(outputs, (0.0, 1.0)).all():
                return 0.5  # whichever it is
            else:
                self._only_probabilities = self._stays_between_0_and_1(input_shape, outputs)
                self._threshold = 0.5 if self._only_probabilities else 0.0
                if self._only_probabilities:
                    warn_of_probabilities(self.name)
        if self._only_probabilities and outputs is not None and not between_0_and_1(outputs):
            raise ModelError(
                f"{self.name} returned values between 0 and 1 before, which were compared with 1/2, and now "
                "others: say threshold=0 or threshold=0.5"
            )
        return self._threshold

    def _stays_between_0_and_1(self, input_shape: Shape, outputs: Array | None) -> bool:
        """Whether the outputs that are known, and those at random points of three sizes, are in [0, 1]."""
        known = [] if outputs is None else [outputs]
        drawn = np.random.default_rng(0).standard_normal((N_COMPARED, *input_shape))
        points = np.concatenate([drawn, 10 * drawn, 100 * drawn]).astype(self.dtype)
        length = self.fixed_batch or N_COMPARED
        for i in range(0, len(points), length):
            try:
                out = self._outputs(self._padded(points[i : i + length]))
            except Exception:  # whatever the model raises far from its data tells nothing
                continue
            known.append(out[np.isfinite(out)])
        return bool(known) and all(between_0_and_1(values) for values in known)

    # shared steps

    def _has_graph(self) -> bool:
        """Whether there is a graph on points of the known shape, which the model has the bits to follow."""
        shape = None if self.coarse_precision is not None else self.known_shape()
        try:
            return shape is not None and self.graph(shape) is not None
        except Exception:  # whatever stands in the way: asking for the regions says what
            return False

    def _has_trees(self) -> bool:
        """Whether there are trees that decide as the model does."""
        try:
            return self.trees is not None
        except Exception:  # whatever stands in the way: asking for the regions says what
            return False

    def _with_own_rule(self, network: "Graph") -> "Graph":
        """The graph of the scores where no rule was given: one output minus its threshold."""
        from inscape.models.decision_rules import Threshold
        from inscape.models.enclosing import graph_with_rule
        from inscape.models.graph.trace import HEADS

        has_outputs = network.head is None or network.head in HEADS
        shape = network.shapes[network.output]
        if math.prod(shape) > 1 or not has_outputs:
            return network if sum(n > 1 for n in shape) > 1 else network.reshaped((math.prod(shape),))
        with self.session():
            rule = Threshold(self.natural_threshold(network.input_shape))
        return graph_with_rule(network, rule, self.name)

    def _by_own_rule(
        self, outputs: Array, input_shape: Shape, with_scores: bool
    ) -> tuple[Array, Array | None]:
        """Labels and scores where no rule was given: the largest output, or one above its threshold."""
        check_outputs(outputs, self.name)
        threshold = self.natural_threshold(input_shape, outputs) if outputs.shape[1] == 1 else 0.0
        if threshold:
            outputs = outputs - np.asarray(threshold, dtype=outputs.dtype)
        return labels_of(outputs, self.name), outputs if with_scores else None

    def _to_input(self, x: Array) -> Array:
        """Points in the model's shape and precision; an error if that cannot hold their numbers."""
        shaped = self._shaped(x)
        try:
            with np.errstate(over="raise"):
                return shaped.astype(self.dtype, copy=False)
        except FloatingPointError:
            raise OutOfRangeError(
                f"points given to {self.name} reach {np.abs(shaped).max():.3g}: {self.dtype} holds numbers "
                f"of at most {np.finfo(self.dtype).max:.3g}; choose probes or data of a smaller scale"
            ) from None

    def _shaped(self, x: Array) -> Array:
        """Points in the model's shape; an error if that would take more than a reshape."""
        check_size(self, x.shape[1:])
        return x if self.input_shape is None else x.reshape(len(x), *self.input_shape)

    def _padded(self, x: Array) -> Array:
        """The batch, its last point repeated up to the only length that the model takes."""
        if self.fixed_batch is None or len(x) == self.fixed_batch:
            return x
        return np.concatenate([x, np.repeat(x[-1:], self.fixed_batch - len(x), axis=0)])

    @contextmanager
    def _explained(self, x: Array) -> Iterator[None]:
        """Turn what the model raises into an error that says on what."""
        try:
            yield
        except InscapeError:
            raise
        except (Exception, SystemExit) as error:  # a model's code may end the process, but not ours
            line = next(iter(str(error).strip().splitlines()), "no message")
            raise ModelError(
                f"{self.name} failed on a batch of shape {x.shape}: {type(error).__name__}: {line}"
                + (self._layout_hint(x.shape[1:]) or self._input_hint(error))
            ) from error

    def _layout_hint(self, shape: Shape) -> str:
        """What to do if the model refuses points of `shape` for the order of their axes, else ""."""
        if self.layout is not None:
            return (
                f", where layout={self.layout!r} has transposed the points: leave it out if the data have "
                "the order of axes that the model takes"
            )
        for layout, axes in LAYOUTS.items():
            if len(shape) == len(axes) and self._takes(transposed(shape, axes)):
                return f"; it does take points of shape {transposed(shape, axes)}: {layout_advice(layout)}"
        return ""

    def size_hint(self, shape: Shape) -> str:
        """What to do about points of a shape that the model does not take, else ""."""
        return ""

    def _takes(self, shape: Shape) -> bool:
        """Whether the model answers at a point of `shape`."""
        try:
            self._call(self._padded(np.zeros((1, *shape), dtype=self.dtype)), with_scores=False)
        except Exception:  # whatever the model's library raises
            return False
        return True

    def _input_hint(self, error: BaseException) -> str:
        """What to do about an error that the model raised at points of a shape that it may not take."""
        return (
            "" if self.input_shape is not None else "; pass input_shape=... if the points need another shape"
        )


def check_size(model: Model, shape: Shape) -> None:
    """Raise an error unless points of `shape` are in the model's shape after a reshape.

    The same axes in another order are refused: a reshape would shuffle the values between them.
    """
    expected = model.input_shape
    if expected is None or shape == expected:
        return
    if math.prod(shape) != math.prod(expected):
        hint = model.size_hint(shape)
        raise ModelError(f"{model.name} expects points of shape {expected}, got {shape}{hint}")
    given, wanted = ([n for n in s if n > 1] for s in (shape, expected))
    if given != wanted and sorted(given) == sorted(wanted):
        fitting = [
            k for k, axes in LAYOUTS.items() if len(shape) == 3 and transposed(shape, axes) == expected
        ]
        if model.layout is not None:
            cure = (
                f"with layout={model.layout!r} an input_shape is that of the data; leave layout out if the "
                "data have the order that the model takes"
            )
        else:
            cure = layout_advice(fitting[0]) if fitting else "transpose the data first"
        raise ModelError(
            f"{model.name} takes points of shape {expected}, got {shape}, the same axes in another order, "
            f"which a reshape would scramble: {cure}"
        )


def layout_advice(layout: str) -> str:
    """What to do with data of another layout than the model's."""
    return (
        f'wrap it with layout="{layout}" (--layout {layout}), which transposes the data; an input_shape is '
        "then that of the data"
    )


def compare_batches(model: Model, x: Array) -> None:
    """Find out, from a few points in two batches, whether the rest of a batch matters to a model.

    Batch-norm in training mode inside a function, `x - x.mean(0)` and dynamic quantisation are such models:
    they are no function of a point. If a point alone always gets the same answer the model is evaluated one
    by one from then on, with a warning; otherwise it is random, with another. Differences up to the rounding
    that batches of another length bring about are none.
    """
    n = N_COMPARED if model.has_scores else 4 * N_COMPARED  # labels tell less
    some = x[np.unique(np.linspace(0, len(x) - 1, n).astype(int))]
    some = some[np.argsort(np.linalg.norm(some.reshape(len(some), -1), axis=1), kind="stable")]
    half = len(some) // 2  # the short points and the long ones: another mean, another range
    try:
        together, *halves = (_told(model, b) for b in (some, some[:half], some[half:]))
    except ModelError:
        return  # it takes some batches only
    if _agree(model, together, _joined(halves)):
        return
    try:
        first, second = (_joined([_told(model, p[None]) for p in some]) for _ in range(2))
    except ModelError as error:
        raise ModelError(
            f"{model.name} predicts a point by the rest of its batch, as batch-norm in training mode does, "
            f"and cannot be given one point alone, so that it has no regions: put it into eval mode ({error})"
        ) from error
    model.is_random = not _agree(model, first, second)
    model.one_by_one = not model.is_random
    warn(
        f"{model.name} is not deterministic, as with dropout left on: the same points were predicted "
        "differently a second time, so that its regions mean nothing"
        if model.is_random
        else f"{model.name} predicts a point by the rest of its batch, as batch-norm in training mode or "
        "dynamic quantisation does: its points are evaluated one by one, which is slow"
    )


def _told(model: Model, x: Array) -> Prediction:
    labels, scores = model._evaluate(x.copy(), with_scores=True)
    return Prediction(labels[: len(x)], None if scores is None else scores[: len(x)])


def _joined(batches: list[Prediction]) -> Prediction:
    scores = [p.scores for p in batches if p.scores is not None]
    return Prediction(np.concatenate([p.labels for p in batches]), np.concatenate(scores) if scores else None)


def _agree(model: Model, a: Prediction, b: Prediction) -> bool:
    """Whether two predictions of the same points are equal up to rounding; labels alone must be the same."""
    if a.scores is None or b.scores is None or a.scores.shape != b.scores.shape:
        return bool(np.array_equal(a.labels, b.labels))
    eps = {"bfloat16": 2**-7, "float16": 2**-10}.get(model.coarse_precision or "")
    relative = max(SAME_SCORES, math.sqrt(eps or np.finfo(a.scores.dtype).eps))
    largest = max(float(np.abs(a.scores).max()), float(np.abs(b.scores).max()))
    return bool((np.abs(a.scores - b.scores) <= relative * largest).all())


@contextmanager
def gradients() -> Iterator[None]:
    """A time in which torch records gradients and makes ordinary tensors, though its caller has said not to.

    For callers inside `torch.no_grad()` or `torch.inference_mode()`. Enter it in a function that ends by
    itself, not in a generator: one that is given up would set the caller's mode back much later, when it is
    collected.
    """
    torch = sys.modules.get("torch")  # before it is loaded nothing can have been switched off
    if torch is None:
        yield
        return
    with torch.inference_mode(False), torch.enable_grad():
        yield
