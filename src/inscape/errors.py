"""Every error and warning that inscape raises, one line on what each means."""

import difflib
import inspect
import warnings
from collections.abc import Iterable
from contextvars import ContextVar
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

    reason: str

    def __init__(self, reason: str = "", *, remedy: str | None = None) -> None:
        super().__init__(reason if remedy is None else f"{reason}: {remedy}")
        self.reason = reason


class ModelError(InscapeError, ValueError):
    """The model cannot be read, cannot be called, or returned something that is not a classification.

    >>> import inscape
    >>> inscape.wrap(3.0)
    Traceback (most recent call last):
    inscape.errors.ModelError: ...
    """


class NonFiniteScoresError(ModelError):
    """The model returned NaN or infinite scores; `rows` are the offending rows of its input.

    >>> import inscape, numpy as np
    >>> inscape.wrap(lambda x: np.where(x < 0, np.nan, x)).scores(np.array([[1.0, 4.0], [-1.0, 0.0]]))
    Traceback (most recent call last):
    inscape.errors.NonFiniteScoresError: ...for 1 of the 2 points of a batch, first at row 1
    """

    def __init__(self, message: str, rows: list[int]) -> None:
        super().__init__(message)
        self.rows = rows


class ProbeError(InscapeError, ValueError):
    """A segment, simplex or patch cannot be built from what was given.

    >>> import inscape
    >>> inscape.Segment([0.0, 0.0], [1.0])
    Traceback (most recent call last):
    inscape.errors.ProbeError: ...
    """


class PartitionError(InscapeError, ValueError):
    """The regions cannot be computed with the method or the resolution asked for.

    >>> import inscape
    >>> inscape.decision_regions(lambda x: x, inscape.Segment([0.0], [1.0]), method="gird")
    Traceback (most recent call last):
    inscape.errors.PartitionError: unknown method 'gird': expected one of ...; did you mean 'grid'?
    """


class NonGenericError(PartitionError):
    """Lines meet so closely that float64 cannot order them: nothing is counted, rather than wrongly.

    >>> import inscape, torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)).double()
    >>> _ = net[0].bias.data.zero_()
    >>> inscape.linear_region(net, [0.0, 0.0])  # both units are at their kinks: four regions meet here
    Traceback (most recent call last):
    inscape.errors.NonGenericError: ...
    """


class OutOfRangeError(PartitionError):
    """Probes or weights are so large that the model's own arithmetic overflows: no method can count there.

    >>> import inscape, torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU(), torch.nn.Linear(2, 2)).double()
    >>> inscape.linear_regions(net, inscape.Segment([0.0], [1e308]))
    Traceback (most recent call last):
    inscape.errors.OutOfRangeError: the points of the segments reach 1e+308: ...
    """


class PictureError(InscapeError, ValueError):
    """A picture cannot be drawn or written as it was asked for.

    >>> import inscape
    >>> inscape.animate([], "film.gif")
    Traceback (most recent call last):
    inscape.errors.PictureError: there is nothing to draw: give results, or models and a probe
    """


class DataError(InscapeError, ValueError):
    """A data set is missing, unreadable, empty, or not of the shape that is needed.

    >>> import inscape
    >>> inscape.training.load_data("digitz")
    Traceback (most recent call last):
    inscape.errors.DataError: ...
    """


class UnivariateError(InscapeError, ValueError):
    """An argument of the univariate laboratory, such as a step size or a tolerance, makes no sense.

    >>> from inscape.univariate import ShallowNet, stability
    >>> stability(ShallowNet([1.0], [0.0], [1.0]), [0.0, 1.0], [0.0, 1.0], -0.1)
    Traceback (most recent call last):
    inscape.errors.UnivariateError: ...
    """


class StudyError(InscapeError, ValueError):
    """A study is not known, is not well formed, or its store cannot be read or written.

    >>> import inscape
    >>> inscape.studies.run("digitz", out="digits")
    Traceback (most recent call last):
    inscape.errors.StudyError: unknown study 'digitz': ...did you mean 'digits'?...
    """


class MeasureError(InscapeError, ValueError):
    """A measure cannot be computed with the settings asked for.

    >>> import inscape, torch
    >>> inscape.local_complexity(torch.nn.Linear(2, 2), [[0.0, 1.0]], sigma=-1.0)
    Traceback (most recent call last):
    inscape.errors.MeasureError: ...
    """


class NotApplicableError(MeasureError):
    """A measure is not defined for this model or these data; the message says why.

    >>> import inscape
    >>> inscape.sharpness(lambda x: x, [[0.0, 1.0]], [1])
    Traceback (most recent call last):
    inscape.errors.NotApplicableError: sharpness needs the parameters of a torch module, not ...
    """


class BudgetError(InscapeError, ValueError):
    """The work is foreseen to take longer than it may; the message has the estimate and what to do.

    >>> issubclass(BudgetError, InscapeError)
    True
    """


class JobsError(InscapeError, ValueError):
    """What was given is no number of threads.

    >>> import inscape
    >>> inscape.region_count(lambda x: x, [[0.0, 1.0], [1.0, 0.0]], n_jobs=0)
    Traceback (most recent call last):
    inscape.errors.JobsError: n_jobs=0 is no number of threads: ...
    """


class TheoryError(InscapeError, ValueError):
    """A statement of a paper cannot be checked with the arguments given.

    >>> import inscape
    >>> inscape.theory.el_example1(form="printed")
    Traceback (most recent call last):
    inscape.errors.TheoryError: ...
    """


class MissingExtraError(InscapeError, ImportError):
    """An optional dependency is not installed; the message says which extra brings it.

    >>> raise MissingExtraError("onnxruntime", "onnx", "an .onnx model")
    Traceback (most recent call last):
    inscape.errors.MissingExtraError: an .onnx model needs onnxruntime: pip install 'inscape[onnx]'
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'inscape[{extra}]'")


class InscapeWarning(UserWarning):
    """The result is correct but probably does not mean what one would read into it.

    Turn it into an error to find where it comes from:

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", InscapeWarning)
    ...     warn("this count is of labels that change at random")
    Traceback (most recent call last):
    inscape.errors.InscapeWarning: this count is of labels that change at random
    """


_PACKAGE = str(Path(__file__).parent)
"""Where the lines of this package are."""


postponed: ContextVar[list[tuple[str, type[Warning]]] | None] = ContextVar("postponed", default=None)
"""Takes the warnings of a thread of ours, which the thread that called gives in its stead."""


def warn(message: str, category: type[Warning] = InscapeWarning) -> None:
    """Warn at the caller's own line: the innermost one outside this package, however deep we are in it."""
    later = postponed.get()
    if later is not None:
        later.append((message, category))
        return
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
