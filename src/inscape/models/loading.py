"""Models from files and import paths, without running code that a file carries.

`torch.export.load` runs code that a .pt2 file carries, in more ways than one: it unpickles sample inputs,
weights and constants, loads machine code, evaluates the text of sizes by sympy and that of guards by Python,
writes names of inputs into a Python function, looks targets up from `torch` (through which all of
Python is reached) and imports modules that the structure of the input names. So a file that is not trusted is
taken apart first: tensors, and a graph of torch's own operations, go into a new archive, which torch then
reads; anything else is an error. A new archive, since two readers of one zip file may see different members.
"""

import importlib
import io
import json
import logging
import os
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inscape.arrays import Shape
from inscape.errors import MissingExtraError, ModelError
from inscape.files import check_sizes
from inscape.models.base import Model
from inscape.models.onnx_file import OnnxModel, read_model_file
from inscape.models.outputs import Output
from inscape.models.trees.booster import FILES, load_booster
from inscape.models.wrapping import read
from inscape.seeding import random_state_kept

PICKLES = (".pkl", ".pickle", ".joblib", ".pt", ".pth")
TRUSTED = [
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    "sklearn.gaussian_process.kernels.ConstantKernel",
    "sklearn.gaussian_process.kernels.Product",
    "sklearn.gaussian_process.kernels.RBF",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
]
"""Parts of scikit-learn's classifiers that skops does not trust by itself. Loading them runs no code of the
file; a forged tree can make a wrong prediction or crash, no more. A whole package is never trusted: some of
its functions run what they are given."""
KINDS = (
    ".onnx, .onnx.gz, .skops, .pt2, .json, .ubj, .txt and .cbm of boosted trees, or package.module:factory"
)


def load(
    model: str | Path,
    *,
    weights: str | Path | None = None,
    trust_pickle: bool = False,
    input_shape: Shape | None = None,
    device: Any = None,
    batch_size: int | None = None,
    output: Output | None = None,
) -> Model:
    """The model that a path or an import path names, wrapped.

    Args:
        model: a file (.onnx, .onnx.gz, .skops, .pt2; .json or .ubj of XGBoost, .txt of LightGBM, .cbm or
            .json of CatBoost) or `package.module:factory`, where the factory takes no argument and returns
            anything that `wrap` takes.
        weights: a state for the factory's torch module: .safetensors, or .pt/.pth read with
            `weights_only=True`.
        trust_pickle: also read pickles (.pkl, .joblib, .pt, .pth), and a .pt2 file as it is. A pickle can run
            any code.
        input_shape: as for `wrap`.
        device: as for `wrap`.
        batch_size: as for `wrap`.
        output: as for `wrap`.
    """
    name = os.fspath(model)
    suffix = Path(name).suffix.lower() if not name.lower().endswith(".onnx.gz") else ".onnx"
    options: dict[str, Any] = {"input_shape": input_shape, "batch_size": batch_size, "output": output}
    is_import_path = (
        ":" in name and not Path(name).exists() and not suffix.startswith((".onnx", ".skops", ".pt", *FILES))
    )
    if is_import_path:
        return read(_from_factory(name, weights), device=device, **options)
    if weights is not None:
        raise ModelError(f"weights go with package.module:factory, not with the file {name}")
    if suffix == ".onnx":
        if device is not None:
            raise ModelError(f"device={device!r} is for torch modules, not for {name}")
        return OnnxModel(name, **options)
    if suffix == ".skops":
        return read(_from_skops(Path(name)), device=device, **options)
    if suffix == ".pt2":
        return _from_export(Path(name), trust=trust_pickle, device=device, **options)
    if suffix in FILES:
        booster = read(load_booster(Path(name)), device=device, **options)
        booster.name = Path(name).name
        return booster
    if suffix in PICKLES:
        return read(_from_pickle(Path(name), trust=trust_pickle), device=device, **options)
    raise ModelError(f"cannot tell what kind of model {name!r} is: expected {KINDS}")


def _from_factory(name: str, weights: str | Path | None) -> Any:
    module_name, _, attribute = name.partition(":")
    with random_state_kept(), _working_folder_first():
        try:
            module = importlib.import_module(module_name)
        except (Exception, SystemExit) as error:
            raise ModelError(f"cannot import {module_name!r} from {name!r}: {error!r}") from error
        factory = getattr(module, attribute, None)
        if not callable(factory):
            raise ModelError(f"the module {module_name!r} has no function {attribute!r}")
        try:
            model = factory()
        except (Exception, SystemExit) as error:
            raise ModelError(f"{name}() raised {error!r}") from error
    if weights is not None:
        _load_weights(model, Path(weights))
    return model


@contextmanager
def _working_folder_first() -> Iterator[None]:
    """Let modules of the working folder be imported, as `python` itself does."""
    before = list(sys.path)
    sys.path.insert(0, os.getcwd())
    try:
        yield
    finally:
        sys.path[:] = before


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
        with zipfile.ZipFile(path) as archive:
            check_sizes(archive, path, ModelError)
        foreign = [name for name in io.get_untrusted_types(file=path) if name not in TRUSTED]
        if foreign:
            raise ModelError(
                f"{path} holds types that are not known to be safe ({', '.join(foreign)}): "
                "rebuild the model in Python and pass it to inscape.wrap"
            )
        return io.load(path, trusted=TRUSTED)
    except ModelError:
        raise
    except Exception as error:  # a damaged archive surfaces as KeyError, ValueError, BadZipFile, ...
        raise ModelError(f"{path} is not a readable .skops file: {type(error).__name__}: {error}") from error


def _from_export(
    path: Path,
    *,
    trust: bool,
    device: Any,
    input_shape: Shape | None,
    batch_size: int | None,
    output: Output | None,
) -> Model:
    from inscape.models.torch_module import TorchModel

    content = read_model_file(path)
    if not zipfile.is_zipfile(path):
        raise ModelError(f"{path} is not a readable .pt2 file: it is truncated or of another kind")
    logging.disable(logging.ERROR)  # torch logs a traceback of its own before it raises
    try:
        module, shapes = _exported(content, path, trust=trust)
    except ModelError:
        raise
    except Exception as error:
        line = next(iter(str(error).splitlines()), type(error).__name__)
        raise ModelError(f"{path} is not a readable .pt2 file: {line}") from error
    finally:
        logging.disable(logging.NOTSET)
    if len(shapes) != 1 or not shapes[0]:
        raise ModelError(f"{path} takes inputs of shapes {shapes}: inscape needs exactly one, (batch, ...)")
    batch, *shape = shapes[0]
    if input_shape is None and all(isinstance(n, int) for n in shape):
        input_shape = tuple(shape)
    model = TorchModel(
        module,
        input_shape=input_shape,
        device=device,
        batch_size=batch_size,
        fixed_batch=batch if isinstance(batch, int) else None,
        output=output,
    )
    model.name = path.name
    return model


def _exported(content: bytes, path: Path, *, trust: bool) -> tuple[Any, list[tuple[Any, ...]]]:
    """The module in a .pt2 file, and the shape of each of its inputs; a free axis is no int."""
    import torch

    program = torch.export.load(io.BytesIO(content) if trust else harmless(content, path))
    inputs = program.graph_signature.user_inputs
    nodes = [n for n in program.graph.nodes if n.op == "placeholder" and n.name in inputs]
    return program.module(), [tuple(n.meta["val"].shape) for n in nodes]


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


_SIGNS = ("archive_format", "archive_version", ".data/version", "byteorder", "version")
_SIGN = re.compile(rb"[a-z0-9.]{1,12}\n?")
_PROGRAM = re.compile(r"models/model\.json|serialized_exported_program\.json")
_CONFIG = re.compile(r"data/(weights|constants)/model_(weights|constants)_config\.json")
_RAW = re.compile(r"data/(weights/weight|constants/tensor)_\d+", re.ASCII)
_PICKLED = re.compile(
    r"data/(sample_inputs|weights|constants)/model\.pt|serialized_(state_dict|constants|example_inputs)\.pt"
)

_NAME = re.compile(r"-Infinity|(?!(.*\.)?__\w*__(\.|$))[\w.+]*", re.ASCII)
_TARGET = re.compile(
    r"torch\.ops\.aten\.(?!from_file)\w+\.\w+|torch\.sym_(int|float|max|min|not)|_operator\."
    r"(add|sub|mul|floordiv|truediv|mod|neg|eq|ne|lt|le|gt|ge|and_|or_|getitem)",
    re.ASCII,
)
_SIZE = re.compile(
    r"(?:Symbol\('[a-z]{1,2}\d{1,9}'|(?:integer|positive|nonnegative)=True|evaluate=False|"
    r"(?:Integer|Add|Mul|Max|Min|FloorDiv|CeilDiv|Mod|PythonMod|ModularIndexing|Eq|Ne|Le|Lt|Ge|Gt)\(|"
    r"[a-z]{1,2}\d{1,9}|\d{1,18}|\*(?!\*)|[-+()<>/,= ])*+",
    re.ASCII,
)
_LONGEST_SIZE = 2000
_CONTAINERS = (None, "builtins.tuple", "builtins.list", "builtins.dict")
_DROPPED: dict[str, type] = {"metadata": dict, "guards_code": list}
"""What says where an operation came from, and what is asserted of inputs: no number depends on them."""


def harmless(content: bytes, path: Path) -> io.BytesIO:
    """A .pt2 archive with the data of another, or an error if that holds anything that could run code."""
    clean = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(clean, "w") as written:
        check_sizes(archive, path, ModelError)
        for full in dict.fromkeys(archive.namelist()):
            root, _, name = full.partition("/")
            kept = _kept(name or root, archive, full, path)
            if kept is not None:
                written.writestr(f"model/{name}" if name else root, kept)
    clean.seek(0)
    return clean


def _kept(name: str, archive: zipfile.ZipFile, full: str, path: Path) -> bytes | None:
    """What goes into the new archive for a member; None for what a model does without."""
    if name in _SIGNS:
        sign = archive.read(full)
        return sign if _SIGN.fullmatch(sign) else None
    if _RAW.fullmatch(name):
        return archive.read(full)
    if _PICKLED.fullmatch(name):
        return _only_tensors(archive.read(full), name, path)
    if _CONFIG.fullmatch(name):
        return _plain_json(archive.read(full), _check_payload, path)
    if _PROGRAM.fullmatch(name):
        return _plain_json(archive.read(full), None, path)
    return None


def _only_tensors(data: bytes, name: str, path: Path) -> bytes:
    """A pickle of tensors in plain containers, unpickled without running anything and pickled again."""
    import torch

    if not data:
        return data
    try:
        value = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:  # UnpicklingError, RuntimeError, ... by what is wrong
        raise _refusal(f"a pickle that holds more than tensors, {name}", path) from error
    clean = io.BytesIO()
    torch.save(value, clean)
    return clean.getvalue()


def _plain_json(data: bytes, check: Callable[[Any, Path], None] | None, path: Path) -> bytes:
    """JSON in which every text is a name, a size or an operation of torch."""
    tree = _plain(json.loads(data), path)
    if check is not None:
        check(tree, path)
    return json.dumps(tree).encode()


def _check_payload(tree: Any, path: Path) -> None:
    for name, entry in tree["config"].items():
        if entry["use_pickle"] or not re.fullmatch(r"(weight|tensor)_\d+", entry["path_name"], re.ASCII):
            raise _refusal(f"a pickled tensor or object, {name}", path)


def _plain(value: Any, path: Path) -> Any:
    if isinstance(value, dict):
        return {_text(key, _NAME, path): _plain_entry(key, item, path) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, path) for item in value]
    return _text(value, _NAME, path) if isinstance(value, str) else value


def _plain_entry(key: str, value: Any, path: Path) -> Any:
    if key in _DROPPED:
        return _DROPPED[key]()
    if key == "target":
        return _text(value, _TARGET, path)
    if key == "expr_str":
        return _text(value, _SIZE, path)
    if key in ("in_spec", "out_spec"):
        _check_structure(json.loads(value)[1], path)
        return value
    if key == "custom_obj_values" and value:
        raise _refusal(f"objects, {', '.join(map(str, value))}", path)
    return _plain(value, path)


def _check_structure(spec: Any, path: Path) -> None:
    """An input or output is a tensor, or tuples, lists and dicts of such, whose keys are names."""
    kind, context = spec["type"], spec["context"]
    keys = None if context is None else json.loads(context)
    if kind not in _CONTAINERS or not (keys is None or isinstance(keys, list)):
        raise _refusal(f"an input or output of type {kind}", path)
    for key in keys or ():
        _text(key, _NAME, path)
    for child in spec["children_spec"]:
        _check_structure(child, path)


def _text(value: Any, pattern: re.Pattern[str], path: Path) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_SIZE or not pattern.fullmatch(value):
        what = {_NAME: "the name", _TARGET: "the operation", _SIZE: "the size"}[pattern]
        raise _refusal(f"{what} {' '.join(repr(value)[:80].split())}", path)
    return value


def _refusal(what: str, path: Path) -> ModelError:
    return ModelError(
        f"{path} holds {what}, which could run code when torch loads it: save the model as .onnx, or say "
        "--trust-pickle (trust_pickle=True) if you made the file yourself"
    )
