"""Boosters of XGBoost, LightGBM and CatBoost themselves, beside their scikit-learn classifiers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from inscape.arrays import Array, Shape
from inscape.errors import MissingExtraError, ModelError, PartitionError
from inscape.models.base import Model
from inscape.models.fingerprints import estimator_fingerprint
from inscape.models.onnx_file import read_model_file
from inscape.models.outputs import Output, follow, squeezed
from inscape.models.trees import TreeEnsemble, Unread, check_agreement, read_trees
from inscape.models.trees.libraries import kind_in_library, n_features_of, state_of
from inscape.models.trees.libraries.booster_files import LOADERS, try_apart
from inscape.models.trees.numbers import own_rule, trees_by_rule

if TYPE_CHECKING:
    from inscape.models.graph import Graph


class BoosterOutputs(NamedTuple):
    """How a booster predicts.

    Attributes:
        outputs: from points (n, d) to numbers (n,) or (n, k).
        threshold: what a single number is compared with; None if it is no score of two classes.
        labels: from points (n, d) to labels (n,), if `outputs` are not what its own labels are decided by.
    """

    outputs: Callable[[Array], Any]
    threshold: float | None
    labels: Callable[[Array], Any] | None = None


class BoosterModel(Model):
    """A booster that was trained to classify: `predict` gives probabilities, scores or labels.

    Two classes have one output, a probability or a raw score; a regression needs a rule that makes classes.
    """

    max_batch = 16384

    def __init__(
        self,
        booster: Any,
        *,
        input_shape: Shape | None = None,
        batch_size: int | None = None,
        output: Output | None = None,
    ) -> None:
        library, kind = kind_in_library(booster)
        name = f"{library}.{kind}"
        shape = (n_features_of(booster),) if input_shape is None else input_shape
        super().__init__(name, input_shape=shape, batch_size=batch_size, output=output)
        self.booster = booster
        self._answers = _LIBRARIES[library](booster)
        self._read: tuple[int, TreeEnsemble | Unread] | None = None
        self._summed: tuple[int, TreeEnsemble] | None = None
        if self._answers.threshold is None and self._n_outputs() == 1:
            self.needs_rule = (
                f"{name} predicts numbers, not classes: cut them by levels=[...] or threshold=..."
            )

    @property
    def structure(self) -> str:  # type: ignore[override]
        """The word "trees" if they could be read and decide, else "black-box"."""
        return "trees" if isinstance(self._reading(), TreeEnsemble) else "black-box"

    @property
    def trees(self) -> TreeEnsemble:
        """The trees as flat arrays; an error says why there are none."""
        reading = self._reading()
        if isinstance(reading, TreeEnsemble):
            return reading
        raise reading.refusal(self.name)

    @property
    def summed_trees(self) -> TreeEnsemble:
        """The trees of whose sums the outputs are functions; an error says why they are not read."""
        state = state_of(self.booster)
        if self._summed is None or self._summed[0] != state:
            try:
                self._summed = state, read_trees(self.booster, numbers=True)
            except Unread as reason:
                raise reason.refusal(self.name) from None
        return self._summed[1]

    def network(self, input_shape: Shape) -> "Graph":
        """An error: trees have no linear pieces."""
        _ = self.trees
        raise PartitionError(
            f"{self.name} is made of trees, which are piecewise constant",
            remedy='it has no linear pieces; use decision_regions(..., method="exact")',
        )

    def fingerprint(self) -> str:
        """A hash of the booster."""
        return self._marked(estimator_fingerprint(self.booster))

    def _reading(self) -> TreeEnsemble | Unread:
        """What was read, or why not, of the booster as it is now."""
        state = state_of(self.booster)
        if self._read is None or self._read[0] != state:
            try:
                reading: TreeEnsemble | Unread = self._own_trees()
            except Unread as reason:
                reading = reason
            self._read = state, reading
        return self._read[1]

    def _own_trees(self) -> TreeEnsemble:
        """The trees that decide without a rule of the user's."""
        if self.needs_rule is not None:
            raise Unread("it predicts numbers, not classes")
        if self.output is not None:
            return trees_by_rule(self, read_trees(self.booster, numbers=True), own_rule(self))
        trees = read_trees(self.booster)
        check_agreement(trees, lambda x: self._call(x, with_scores=False)[0])
        return trees

    def _n_outputs(self) -> int:
        zeros = np.zeros((1, n_features_of(self.booster)))
        return int(squeezed(np.asarray(self._answers.outputs(zeros))).shape[1])

    def _outputs(self, x: Array) -> Array:
        steps = () if self.output is None else self.output.steps
        outputs = follow(steps, self._answers.outputs(x.reshape(len(x), -1)), self.name)
        return squeezed(np.asarray(outputs, dtype=np.float64))

    def _call(self, x: Array, *, with_scores: bool) -> tuple[Array, Array | None]:
        rows = x.reshape(len(x), -1)
        own = self._answers.labels
        if own is not None and self.output is None:
            return np.asarray(own(rows)).astype(np.int64), self._outputs(x) if with_scores else None
        return self._by_own_rule(self._outputs(x), x.shape[1:], with_scores)

    def natural_threshold(self, input_shape: Shape, outputs: Array | None = None) -> float:
        """What the one output of two classes is compared with: 1/2 if it is a probability."""
        if self._answers.threshold is None or self.output is not None:
            return super().natural_threshold(input_shape, outputs)
        return self._answers.threshold


def _xgboost(booster: Any) -> BoosterOutputs:
    from xgboost import DMatrix

    objective = json.loads(booster.save_config())["learner"]["objective"]["name"]

    def predict(x: Array, **options: Any) -> Any:
        return booster.predict(DMatrix(x, feature_names=booster.feature_names), **options)

    if objective == "multi:softmax":
        return BoosterOutputs(lambda x: predict(x, output_margin=True), None, predict)
    thresholds = {"binary:logistic": 0.5, "reg:logistic": 0.5, "binary:hinge": 0.5, "binary:logitraw": 0.0}
    return BoosterOutputs(predict, thresholds.get(objective))


def _lightgbm(booster: Any) -> BoosterOutputs:
    objective = str(booster.dump_model(num_iteration=1).get("objective", "")).partition(" ")[0]
    return BoosterOutputs(booster.predict, 0.5 if objective in ("binary", "cross_entropy") else None)


def _catboost(model: Any) -> BoosterOutputs:
    loss = str(model.get_all_params().get("loss_function", "")) if model.is_fitted() else ""
    return BoosterOutputs(
        lambda x: model.predict(x, prediction_type="RawFormulaVal"),
        0.0 if loss.partition(":")[0] in ("Logloss", "CrossEntropy") else None,
    )


_LIBRARIES: dict[str, Callable[[Any], BoosterOutputs]] = {
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
    "catboost": _catboost,
}


FILES = (".json", ".ubj", ".txt", ".cbm")
"""Files of boosters: of XGBoost and CatBoost, XGBoost, LightGBM, CatBoost."""
MAY_CRASH = (".ubj", ".txt")
"""Those of which a damaged one may crash the library."""


def load_booster(path: Path) -> Any:
    """The booster, or CatBoost's classifier, in a file.

    Raises:
        ModelError: if it is none, or damaged.
        MissingExtraError: if its library is not installed.
    """
    content = read_model_file(path)
    library = _library_of(path, content)
    try:
        if path.suffix.lower() in MAY_CRASH:
            try_apart(library, path)
        return LOADERS[library](path, content)
    except ImportError as error:
        raise MissingExtraError(library, "boosting", f"a model of {library}") from error
    except ModelError:
        raise
    except Exception as error:  # each library has its own classes for a damaged file
        line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ModelError(f"{path} is not a readable model of {library}: {line}") from error


def _library_of(path: Path, content: bytes) -> str:
    suffix = path.suffix.lower()
    if suffix == ".ubj":
        return "xgboost"
    if suffix == ".txt":
        if not content.startswith(b"tree") or b"\nend of trees" not in content:
            raise ModelError(f"{path} is no whole model of LightGBM: it lacks its first line, or its end")
        return "lightgbm"
    if suffix == ".cbm":
        return "catboost"
    try:
        document = json.loads(content)
    except ValueError as error:
        raise ModelError(f"{path} is not readable JSON: {error}") from error
    keys = set(document) if isinstance(document, dict) else set()
    if "learner" in keys:
        return "xgboost"
    if {"features_info", "model_info"} <= keys:
        return "catboost"
    raise ModelError(f"{path} is JSON, but no model of XGBoost or CatBoost")
