"""Code that a study names as package.module:name."""

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

from inscape.errors import StudyError

Announce = Callable[[str], None]
"""Is told of code before it runs."""


def silent(line: str) -> None:
    """Tell nobody: in a program the user has named the code."""


def find_object(reference: str, announce: Announce = silent) -> Any:
    """What "package.module:name" stands for; `announce` is told what runs, and from where, if it is not ours.

    >>> find_object("math:pi")
    3.141592653589793
    """
    module, _, name = reference.partition(":")
    package = module.partition(".")[0]
    try:
        spec = importlib.util.find_spec(package)
        if spec is not None and package != "inscape":
            announce(f"running code of {reference}, found in {_place(spec)}")
        return getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # the code may raise anything
        raise StudyError(
            f"cannot find {reference!r}, expected package.module:name: {_reason(error)} "
            "(a module in a folder of yours is found if that is on the path, or named with --trust)"
        ) from error


def _place(spec: Any) -> str:
    """Where a package comes from: its file, its folders, or the interpreter."""
    return spec.origin or ", ".join(spec.submodule_search_locations or ()) or "the interpreter"


def _reason(error: BaseException) -> str:
    if isinstance(error, ImportError | AttributeError | ValueError):
        return str(error)
    return f"{type(error).__name__}: {error}"
