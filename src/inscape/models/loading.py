"""Models from files and import paths, without running code that a file carries."""

import importlib
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

from inscape.errors import MissingExtraError, ModelError
from inscape.models.base import Model, Shape
from inscape.models.onnx_file import OnnxModel, read_model_file
from inscape.models.wrapping import wrap

PICKLES = (".pkl", ".pickle", ".joblib", ".pt", ".pth")
KINDS = ".onnx, .skops, .pt2, or package.module:factory"


def load(
    model: str | Path,
    *,
    weights: str | Path | None = None,
    trust_pickle: bool = False,
    input_shape: Shape | None = None,
    device: Any = None,
    batch_size: int | None = None,
) -> Model:
    """The model that a path or an import path names, wrapped.

    Args:
        model: a file (.onnx, .skops, .pt2) or `package.module:factory`, where the factory takes no
            argument and returns anything that `wrap` takes.
        weights: a state for the factory's torch module: .safetensors, or .pt/.pth read with
            `weights_only=True`.
        trust_pickle: also read pickles (.pkl, .joblib, .pt, .pth). A pickle can run any code.
        input_shape: as for `wrap`.
        device: as for `wrap`.
        batch_size: as for `wrap`.
    """
    name = os.fspath(model)
    suffix = Path(name).suffix.lower()
    options: dict[str, Any] = {"input_shape": input_shape, "batch_size": batch_size}
    is_import_path = (
        ":" in name and not Path(name).exists() and not suffix.startswith((".onnx", ".skops", ".pt"))
    )
    if is_import_path:
        return wrap(_from_factory(name, weights), device=device, **options)
    if weights is not None:
        raise ModelError(f"weights go with package.module:factory, not with the file {name}")
    if suffix == ".onnx":
        return OnnxModel(name, **options)
    if suffix == ".skops":
        return wrap(_from_skops(Path(name)), **options)
    if suffix == ".pt2":
        return _from_export(Path(name), device=device, **options)
    if suffix in PICKLES:
        return wrap(_from_pickle(Path(name), trust=trust_pickle), device=device, **options)
    raise ModelError(f"cannot tell what kind of model {name!r} is: expected {KINDS}")


def _from_factory(name: str, weights: str | Path | None) -> Any:
    module_name, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        factory = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, ValueError) as error:
        raise ModelError(f"cannot import {module_name!r} from {name!r}: {error}") from error
    except AttributeError as error:
        raise ModelError(f"the module {module_name!r} has no {attribute!r}") from error
    if not callable(factory):
        raise ModelError(f"{name} is a {type(factory).__name__}, not a function that makes a model")
    try:
        model = factory()
    except Exception as error:
        raise ModelError(f"{name}() raised {type(error).__name__}: {error}") from error
    if weights is not None:
        _load_weights(model, Path(weights))
    return model


def _load_weights(model: Any, path: Path) -> None:
    import torch

    if not isinstance(model, torch.nn.Module):
        raise ModelError(f"weights go into a torch module, but the factory returned a {type(model).__name__}")
    read_model_file(path)
    try:
        if path.suffix == ".safetensors":
            state = _read_safetensors(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except MissingExtraError:
        raise
    except Exception as error:  # each reader has its own classes for a damaged file
        line = str(error).splitlines()[0]
        raise ModelError(f"{path} is not a readable file of weights: {line}") from error
    try:
        model.load_state_dict(state)
    except (RuntimeError, TypeError, AttributeError) as error:
        line = " ".join(str(error).split())
        raise ModelError(f"the weights in {path} do not fit {type(model).__name__}: {line}") from error


def _read_safetensors(path: Path) -> Any:
    try:
        from safetensors.torch import load_file
    except ImportError as error:
        raise MissingExtraError("safetensors", "safetensors", "a .safetensors file") from error
    return load_file(path)


def _from_skops(path: Path) -> Any:
    try:
        from skops import io
    except ImportError as error:
        raise MissingExtraError("skops", "skops", "a .skops model") from error
    read_model_file(path)
    if not zipfile.is_zipfile(path):
        raise ModelError(f"{path} is not a readable .skops file: it is truncated or of another kind")
    try:
        unusual = io.get_untrusted_types(file=path)
        foreign = [name for name in unusual if not name.startswith("sklearn.")]
        if foreign:
            raise ModelError(
                f"{path} holds types that are not scikit-learn's own ({', '.join(foreign)}): "
                "rebuild the model in Python and pass it to inscape.wrap"
            )
        return io.load(path, trusted=unusual)
    except ModelError:
        raise
    except Exception as error:  # a damaged archive surfaces as KeyError, ValueError, BadZipFile, ...
        raise ModelError(f"{path} is not a readable .skops file: {type(error).__name__}: {error}") from error


def _from_export(path: Path, *, device: Any, input_shape: Shape | None, batch_size: int | None) -> Model:
    import torch

    from inscape.models.torch_module import TorchModel

    read_model_file(path)
    try:
        program = torch.export.load(path)
    except Exception as error:
        line = next(iter(str(error).splitlines()), type(error).__name__)
        raise ModelError(f"{path} is not a readable .pt2 file: {line}") from error
    inputs = program.graph_signature.user_inputs
    nodes = [n for n in program.graph.nodes if n.op == "placeholder" and n.name in inputs]
    if len(nodes) != 1:
        raise ModelError(f"{path} takes {len(nodes)} inputs: inscape needs exactly one")
    batch, *shape = nodes[0].meta["val"].shape
    if input_shape is None and all(isinstance(n, int) for n in shape):
        input_shape = tuple(shape)
    model = TorchModel(
        program.module(),
        input_shape=input_shape,
        device=device,
        batch_size=batch_size,
        fixed_batch=batch if isinstance(batch, int) else None,
    )
    model.name = path.name
    return model


def _from_pickle(path: Path, *, trust: bool) -> Any:
    read_model_file(path)
    if not trust:
        raise ModelError(
            f"{path} is a pickle, and loading one can run any code in it. Save the model as {KINDS}, "
            "or say --trust-pickle (trust_pickle=True) if you made the file yourself"
        )
    try:
        if path.suffix.lower() in (".pt", ".pth"):
            import torch

            model = torch.load(path, map_location="cpu", weights_only=False)
        else:
            import joblib

            model = joblib.load(path)
    except Exception as error:
        raise ModelError(f"{path} cannot be unpickled: {type(error).__name__}: {error}") from error
    if isinstance(model, dict):
        raise ModelError(
            f"{path} holds weights, not a model: give package.module:factory with --weights {path}"
        )
    return model
