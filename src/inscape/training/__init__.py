"""Data sets, networks and one training loop."""

import importlib
from typing import TYPE_CHECKING, Any

from inscape.training.data import DataSet, load_data
from inscape.training.recipe import History, Recipe

if TYPE_CHECKING:
    from inscape.training.loop import train
    from inscape.training.many import train_many
    from inscape.training.networks import build, mlp

__all__ = ["DataSet", "History", "Recipe", "build", "load_data", "mlp", "train", "train_many"]
_WITH_TORCH = {"build": "networks", "mlp": "networks", "train": "loop", "train_many": "many"}


def __getattr__(name: str) -> Any:
    """Load what needs torch when it is asked for."""
    if name in _WITH_TORCH:
        return getattr(importlib.import_module(f"inscape.training.{_WITH_TORCH[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
