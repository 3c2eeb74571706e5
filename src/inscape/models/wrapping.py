"""`wrap`: one door for every kind of model."""

import sys
from pathlib import Path
from typing import Any

from inscape.arrays import Shape
from inscape.errors import ModelError
from inscape.models.base import Model
from inscape.models.function import FunctionModel


def wrap(
    model: Any,
    *,
    input_shape: Shape | None = None,
    device: Any = None,
    batch_size: int | None = None,
) -> Model:
    """The model as inscape sees it: `.labels(x)`, `.scores(x)` and `.structure`.

    Args:
        model: a `torch.nn.Module`, a fitted scikit-learn classifier or pipeline, a path to an .onnx,
            .skops or .pt2 file, a callable from points (n, ...) to labels (n,) or scores (n, c), or a
            model that is wrapped already.
        input_shape: the shape of one point; points of another shape but equal size are reshaped.
        device: for torch modules, where to run; a copy is moved if that is not where the module is.
        batch_size: the most points in one call; chosen from the size of a point if None.

    >>> m = wrap(lambda x: (x[:, 0] > 0).astype(int))
    >>> m.labels([[-1.0], [2.0]]).tolist(), m.structure
    ([0, 1], 'black-box')
    """
    if isinstance(model, Model):
        if (input_shape, device, batch_size) != (None, None, None):
            raise ModelError(
                f"{model.name} is wrapped already: give input_shape, device and batch_size there"
            )
        return model
    if isinstance(model, type):
        raise ModelError(
            f"cannot read a model from the class {model.__name__}, not an instance: call it first"
        )
    options: dict[str, Any] = {"input_shape": input_shape, "batch_size": batch_size}
    if isinstance(model, str | Path):
        from inscape.models.loading import load

        return load(model, device=device, **options)
    torch = sys.modules.get("torch")  # an object can only be a module if torch is loaded
    if torch is not None and isinstance(model, torch.nn.Module):
        from inscape.models.torch_module import TorchModel

        return TorchModel(model, device=device, **options)
    if device is not None:
        raise ModelError(f"device={device!r} is for torch modules, not for a {type(model).__name__}")
    if hasattr(model, "predict") and hasattr(model, "fit"):
        from inscape.models.sklearn_classifier import SklearnModel

        return SklearnModel(model, **options)
    if not callable(model):
        raise ModelError(
            f"cannot read a model from {type(model).__name__}: give a torch module, a fitted scikit-learn "
            "classifier, a path to a model file, or a callable on arrays"
        )
    return FunctionModel(model, **options)
