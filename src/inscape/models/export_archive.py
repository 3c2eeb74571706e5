"""The harmless parts of a .pt2 file, written anew: tensors, and a graph of torch's own operations.

`torch.export.load` runs code that a file carries, in more ways than one: it unpickles sample inputs, weights
and constants, loads machine code, evaluates the text of sizes through sympy and that of guards through
Python, writes names of inputs into a Python function, looks targets up from `torch` (through which all of
Python is reached) and imports modules that the structure of the input names. So a file that is not trusted
is taken apart here. What is known to be data goes into a new archive, which torch then reads; anything else
is an error. A new archive, since two readers of one zip file may see different parts.
"""

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inscape.errors import ModelError
from inscape.files import check_sizes

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
    """What goes into the new archive for a part; None for what a model does without."""
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
