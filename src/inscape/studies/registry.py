"""The studies that inscape knows by name: one file each in this folder."""

import importlib

from inscape.errors import StudyError, unknown_name
from inscape.studies.study import Study

MODULES: dict[str, str] = {}
"""Name of a study -> the module that defines it as STUDY."""


def find(name: str) -> Study:
    """The study of that name."""
    if name not in MODULES:
        raise StudyError(unknown_name("study", name, sorted(MODULES)))
    study = importlib.import_module(MODULES[name]).STUDY
    assert isinstance(study, Study)
    return study
