"""Every error and warning that inscape raises, one line on what each means."""

import difflib
import inspect
import warnings
from collections.abc import Iterable
from pathlib import Path


class InscapeError(Exception):
    """Root of every error that inscape raises on purpose.

    Args:
        reason: what is wrong.
        remedy: what to do about it, which the message ends with.

    Attributes:
        reason: what is wrong, without the remedy.

    >>> error = InscapeError("the box is full", remedy="take a larger one")
    >>> str(error), error.reason
    ('the box is full: take a larger one', 'the box is full')
    """

    def __init__(self, reason: str = "", *, remedy: str | None = None) -> None:
        super().__init__(reason if remedy is None else f"{reason}: {remedy}")
        self.reason = reason


class ModelError(InscapeError, ValueError):
    """The model cannot be read, cannot be called, or returned something that is not a classification."""


class NonFiniteScoresError(ModelError):
    """The model returned NaN or infinite scores; `rows` are the offending rows of its input."""

    def __init__(self, message: str, rows: list[int]) -> None:
        super().__init__(message)
        self.rows = rows


class ProbeError(InscapeError, ValueError):
    """A segment, simplex or patch cannot be built from what was given."""


class PartitionError(InscapeError, ValueError):
    """The regions cannot be computed with the method or the resolution asked for."""


class NonGenericError(PartitionError):
    """Lines meet so closely that float64 cannot order them: nothing is counted, rather than wrongly."""


class OutOfRangeError(PartitionError):
    """Probes or weights are so large that the model's own arithmetic overflows: no method can count there."""


class PictureError(InscapeError, ValueError):
    """A picture cannot be drawn or written as it was asked for."""


class DataError(InscapeError, ValueError):
    """A data set is missing, unreadable, empty, or not of the shape that is needed."""


class UnivariateError(InscapeError, ValueError):
    """An argument of the univariate laboratory, such as a step size or a tolerance, makes no sense."""


class StudyError(InscapeError, ValueError):
    """A study is not known, is not well formed, or its store cannot be read or written."""


class MeasureError(InscapeError, ValueError):
    """A measure cannot be computed with the settings asked for."""


class NotApplicableError(MeasureError):
    """A measure is not defined for this model or these data; the message says why."""


class BudgetError(InscapeError, ValueError):
    """The work is foreseen to take longer than it may; the message has the estimate and what to do."""


class TheoryError(InscapeError, ValueError):
    """A statement of a paper cannot be checked with the arguments given."""


class MissingExtraError(InscapeError, ImportError):
    """An optional dependency is not installed; the message says which extra brings it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'inscape[{extra}]'")


class InscapeWarning(UserWarning):
    """The result is correct but probably does not mean what one would read into it."""


_PACKAGE = str(Path(__file__).parent)
"""Where the lines of this package are."""


def warn(message: str, category: type[Warning] = InscapeWarning) -> None:
    """Warn at the caller's own line: the innermost one outside this package, however deep we are in it."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)


def unknown_name(what: str, given: object, known: Iterable[str]) -> str:
    """The message for a name that is not in a fixed list, with the nearest known one suggested.

    >>> unknown_name("method", "gird", ["grid", "exact"])
    "unknown method 'gird': expected one of 'grid', 'exact'; did you mean 'grid'?"
    """
    names = list(known)
    near = difflib.get_close_matches(str(given), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"unknown {what} {given!r}: expected one of {', '.join(map(repr, names))}{hint}"
