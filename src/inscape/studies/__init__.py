"""Many models: studies and what they show."""

from inscape.studies.correlate import correlate
from inscape.studies.running import StudyRun, run
from inscape.studies.store import Store
from inscape.studies.study import Finding, Study, Summary

__all__ = ["Finding", "Store", "Study", "StudyRun", "Summary", "correlate", "run"]
