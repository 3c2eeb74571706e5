"""Many models: studies and what they show."""

import importlib
from typing import TYPE_CHECKING, Any

from inscape.studies.correlate import correlate
from inscape.studies.study import Chart, Finding, Study, Summary, cell

if TYPE_CHECKING:
    from inscape.studies.finished import StudyRun
    from inscape.studies.running import reopen, run
    from inscape.studies.store import Store

__all__ = ["Chart", "Finding", "Store", "Study", "StudyRun", "Summary", "cell", "correlate", "reopen", "run"]
_LATER = {"Store": "store", "StudyRun": "finished", "reopen": "running", "run": "running"}


def __getattr__(name: str) -> Any:
    """Load what needs databases and processes when it is asked for."""
    if name in _LATER:
        return getattr(importlib.import_module(f"inscape.studies.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
