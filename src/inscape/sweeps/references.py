"""Code that a study names as package.module:name."""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from inscape.errors import StudyError

Announce = Callable[[str], None]
"""Is told of code before it runs."""


_moved = {"inscape.studies.trained": "inscape.sweeps.trained_model"}
"""Modules of earlier versions -> where what they held is now."""


def register_moved(modules: Mapping[str, str]) -> None:
    """Have references to modules of earlier versions found: old module -> new one."""
    _moved.update(modules)


def current(reference: str) -> str:
    """A reference as it is written today, whatever version of inscape wrote it.

    >>> current("inscape.studies.trained:cell"), current("math:pi")
    ('inscape.sweeps.trained_model:cell', 'math:pi')
    """
    module, colon, name = reference.partition(":")
    return f"{_moved.get(module, module)}{colon}{name}"


def silent(line: str) -> None:
    """Tell nobody: in a program the user has named the code."""


def find_object(reference: str, announce: Announce = silent) -> Any:
    """What "package.module:name" stands for; `announce` is told what runs, and from where, if it is not ours.

    >>> find_object("math:pi")
    3.141592653589793
    """
    module, _, name = current(reference).partition(":")
    if not module or not name:
        raise StudyError(f"{reference!r} names no code: expected package.module:name")
    package = module.partition(".")[0]
    try:
        spec = importlib.util.find_spec(package)
        if spec is not None and package != "inscape":
            announce(f"running code of {reference}, found in {_origin(spec)}")
        return getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # the code may raise anything
        raise StudyError(
            f"cannot find {reference!r}, expected package.module:name: {_reason(error)} "
            "(a module in a folder of yours is found if that is on the path, or named with --trust)"
        ) from error


def _origin(spec: Any) -> str:
    """Where a package comes from: its file, its folders, or the interpreter."""
    return spec.origin or ", ".join(spec.submodule_search_locations or ()) or "the interpreter"


def _reason(error: BaseException) -> str:
    if isinstance(error, ImportError | AttributeError | ValueError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def function_name(function: Any) -> str:
    """Where a function is from, the same whether its file is run or imported.

    >>> function_name(find_object)
    'inscape.sweeps.references:find_object'
    """
    function = getattr(function, "func", function)  # of a partial
    named = function if hasattr(function, "__qualname__") else type(function)
    module = named.__module__
    if module == "__main__":
        main = sys.modules["__main__"]
        spec = getattr(main, "__spec__", None)
        module = spec.name if spec else Path(getattr(main, "__file__", None) or module).stem
    return f"{module}:{named.__qualname__}"
