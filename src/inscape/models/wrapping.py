"""`wrap`: one door for every kind of model."""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from inscape.arguments import as_points, whole_number
from inscape.arrays import Shape
from inscape.errors import ModelError
from inscape.models.base import Model
from inscape.models.decision_rules import rule_of
from inscape.models.enclosing import prepared
from inscape.models.function import FunctionModel
from inscape.models.outputs import Output
from inscape.models.preparation import Preparation
from inscape.models.trees.libraries import kind_in_library

_BOOSTERS = (("xgboost", "Booster"), ("lightgbm", "Booster"), ("catboost", "CatBoost"))


def wrap(
    model: Any,
    *,
    input_shape: Shape | None = None,
    device: Any = None,
    batch_size: int | None = None,
    autocast: bool | None = None,
    layout: str | None = None,
    preprocess: Any = None,
    output: Any = None,
    decide: Any = None,
    threshold: Any = None,
    levels: Any = None,
) -> Model:
    """The model as inscape sees it: `.labels(x)`, `.scores(x)` and `.structure`.

    Args:
        model: a `torch.nn.Module`, a fitted scikit-learn classifier or pipeline, a classifier or booster of
            XGBoost, LightGBM or CatBoost, a path to an .onnx, .skops or .pt2 file or to one of boosted trees
            (.json, .ubj, .txt, .cbm), a callable from points (n, ...) to labels (n,) or scores (n, c), or a
            model that is wrapped already.
        input_shape: the shape of one point of the data; flat points of equal size are reshaped, while points
            with the same axes in another order are refused.
        device: for torch modules, where to run; a copy is moved if that is not where the module is.
        batch_size: the most points in one call; chosen from the size of a point if None, on an accelerator
            from its free memory too. A batch that does not fit there is halved.
        autocast: True for a torch module to be evaluated in the half precision that torch's autocast takes on
            its device, and again in full precision wherever the two could give other labels: labels are
            those of full precision, scores far from a boundary have three digits.
        layout: the order of the axes *of the data* where the model takes the other one: "HWC" for images
            (height, width, channels) and a model of (channels, height, width), "CHW" for the reverse. Each
            point is transposed; nothing is reshaped. Leave it out where data and model agree.
        preprocess: what the model expects to have been done to the data: a dictionary with any of "mean",
            "std" and "scale", numbers or one per channel, for (scale x - mean) / std; or a function on arrays
            (n, ...) in the layout that the model takes. It becomes part of the model, so that probes, regions
            and pictures stay in the coordinates of the data. Numbers keep a network exact, and so does a
            torch module that is piecewise affine; behind any other function it is a black box.
        output: which of several outputs decides: a name or a number, of an ONNX file's outputs, or of a
            dictionary, tuple or dataclass that a module returns; or a function of what the model returns,
            such as `lambda y: y[:, :, 3, 4]` for a pixel of a segmentation. What is returned alone has the
            number 0. Several steps go into a tuple, where a number behind the first is the column of a tensor
            (n, k): output=(0, 1) is column 1 of the only one. Of an estimator, the name of a method, a column
            of what it returns, or both: ("predict_proba", 1). A function of torch operations that are
            piecewise affine keeps a network exact.
        decide: which label outputs stand for. "argmax": the largest wins, the default for several outputs.
            "argmin": the smallest wins. "threshold": whether one output is above `threshold`, the default for
            one output. "sign": the pattern of signs of several outputs, for multi-label models. All of them
            keep a network exact. A function from outputs (n, k) to labels (n,) or scores (n, c) makes it a
            black box. Trees stay exact behind any rule.
        threshold: for "threshold" and "sign" (there also one per output). If None, 1/2 for probabilities,
            which come out of a final sigmoid, else 0.
        levels: increasing numbers that cut the one output of a regression into classes;
            `inscape.quantile_levels` computes some.

    >>> m = wrap(lambda x: (x[:, 0] > 0).astype(int))
    >>> m.labels([[-1.0], [2.0]]).tolist(), m.structure
    ([0, 1], 'black-box')
    >>> wrap(lambda x: x, decide="argmin").labels([[2.0, 1.0, 3.0]]).tolist()
    [1]
    >>> centred = wrap(lambda x: (x[:, 0] > 0).astype(int), preprocess={"mean": 128})
    >>> centred.labels([[127.0], [129.0]]).tolist()
    [0, 1]
    """
    if isinstance(model, Model):
        options = (
            *(input_shape, device, batch_size, autocast, layout),
            *(preprocess, output, decide, threshold, levels),
        )
        if _any_given(*options):
            raise ModelError(
                f"{model.name} is wrapped already: give input_shape, device, batch_size, autocast, layout, "
                "preprocess, output, decide, threshold and levels there"
            )
        return model
    chosen = Output.of(output)
    rule = rule_of(decide, threshold, levels) if _any_given(decide, threshold, levels) else None
    preparation = Preparation.of(layout, preprocess) if _any_given(layout, preprocess) else None
    shape = input_shape if preparation is None else preparation.inside(input_shape)
    inner = read(model, input_shape=shape, device=device, batch_size=batch_size, output=chosen)
    if autocast:
        inner.use_autocast()
    ruled = inner.decided_by(rule)
    return ruled if preparation is None else prepared(ruled, preparation, input_shape)


def _any_given(*options: Any) -> bool:
    return any(option is not None for option in options)


def read(
    model: Any,
    *,
    input_shape: Shape | None = None,
    device: Any = None,
    batch_size: int | None = None,
    output: Output | None = None,
) -> Model:
    """The model of whatever kind, taking points as they are and deciding by its own rule."""
    if isinstance(model, type):
        raise ModelError(
            f"cannot read a model from the class {model.__name__}, not an instance: call it first"
        )
    options: dict[str, Any] = {"input_shape": input_shape, "batch_size": batch_size, "output": output}
    if isinstance(model, str | Path):
        from inscape.models.loading import load

        return load(model, device=device, **options)
    torch = sys.modules.get("torch")  # an object can only be a module if torch is loaded
    if torch is not None and isinstance(model, torch.nn.Module):
        from inscape.models.torch_module import TorchModel

        return TorchModel(model, device=device, **options)
    skorch = sys.modules.get("skorch")
    if skorch is not None and isinstance(model, skorch.NeuralNet):
        from inscape.models.from_sklearn.skorch_net import read_skorch

        return read_skorch(model, device=device, **options)
    if device is not None:
        raise ModelError(f"device={device!r} is for torch modules, not for a {type(model).__name__}")
    if kind_in_library(model) in _BOOSTERS:
        from inscape.models.trees.booster import BoosterModel

        return BoosterModel(model, **options)
    if hasattr(model, "predict") and hasattr(model, "fit"):
        return _estimator(model, **options)
    if not callable(model):
        raise ModelError(
            f"cannot read a model from {type(model).__name__}: give a torch module, a fitted scikit-learn "
            "classifier, a path to a model file, or a callable on arrays"
        )
    return FunctionModel(model, **options)


def _estimator(model: Any, *, output: Output | None, **options: Any) -> Model:
    """A fitted estimator as a classifier, or as the numbers that it returns."""
    from sklearn.base import is_regressor

    from inscape.models.sklearn_estimator import EstimatorOutputs, SklearnModel, is_multilabel

    if output is not None or is_regressor(model) or is_multilabel(model):
        return EstimatorOutputs(model, output=output, **options)
    return SklearnModel(model, **options)


def quantile_levels(model: Any, x: Any, n: int = 4) -> list[float]:
    """The levels that cut the one output of a regression into n classes of about as many data points each.

    Args:
        model: a regression that `wrap` takes, or one that is wrapped with any `levels`.
        x: data, (m, ...).
        n: how many classes; fewer where many points have the same output.

    >>> quantile_levels(lambda x: x, [[0.0], [1.0], [2.0], [3.0]], n=2)
    [1.5]
    """
    n = whole_number(n, "n", 2, ModelError)
    wrapped = model if isinstance(model, Model) else wrap(model, levels=[0.0])
    outputs = np.asarray(wrapped.outputs(as_points(x)), dtype=np.float64)
    if outputs.shape[1] != 1:
        raise ModelError(f"{wrapped.name} has {outputs.shape[1]} outputs: choose one of them by output=...")
    levels = np.unique(np.quantile(outputs[:, 0], np.arange(1, n) / n))
    if levels[0] == outputs.max():
        raise ModelError(
            f"{wrapped.name} gives {levels[0]:g} for all of these points: there are no quantiles"
        )
    return [float(level) for level in levels]
