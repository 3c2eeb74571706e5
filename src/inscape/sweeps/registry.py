"""The studies that are known by name; and those of the user."""

from collections.abc import Mapping
from pathlib import Path

from inscape.errors import StudyError, unknown_name
from inscape.sweeps.references import Announce, find_object, silent
from inscape.sweeps.study import Study
from inscape.sweeps.toml_file import read_study

_known: dict[str, str] = {}


def register(studies: Mapping[str, str]) -> None:
    """Have studies known by name: name -> where each is, as package.module:STUDY."""
    _known.update(studies)


def registered() -> tuple[str, ...]:
    """The names of all studies that are known by name."""
    return tuple(_known)


def is_registered(name: str) -> bool:
    """Whether a study is known by this name."""
    return name in _known


def find(name: str, announce: Announce = silent) -> Study:
    """The study of that name, of a .toml file, or of package.module:STUDY.

    `announce` is told which code runs, before it does: to import it is to run it.
    """
    if not isinstance(name, str):
        raise StudyError(f"expected a Study or the name of one, got {name!r}")
    if name in _known:
        study = find_object(_known[name], announce)
    elif name.endswith(".toml"):
        study = read_study(Path(name), announce)
    elif ":" in name:
        study = find_object(name, announce)
    else:
        raise StudyError(
            unknown_name("study", name, sorted(_known)) + " (or a .toml file, or package.module:STUDY)"
        )
    if not isinstance(study, Study):
        raise StudyError(f"{name} is no inscape.studies.Study but {type(study).__name__}")
    return study
