"""Many models: studies and what they show."""

import importlib
from typing import TYPE_CHECKING, Any

from inscape.studies.correlate import correlate
from inscape.studies.study import Finding, Study, Summary

if TYPE_CHECKING:
    from inscape.studies.running import StudyRun, run
    from inscape.studies.store import Store

__all__ = ["Finding", "Store", "Study", "StudyRun", "Summary", "correlate", "run"]
_LATER = {"Store": "store", "StudyRun": "running", "run": "running"}


def __getattr__(name: str) -> Any:
    """Load what needs databases and processes when it is asked for."""
    if name in _LATER:
        return getattr(importlib.import_module(f"inscape.studies.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
