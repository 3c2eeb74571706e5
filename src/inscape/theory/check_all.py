"""All statements for one model: those that apply, and why the others do not."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from inscape.arguments import as_array, positive_number, whole_number
from inscape.arrays import Array
from inscape.budget import BUDGET
from inscape.errors import BudgetError, DataError, InscapeError, ModelError, NotApplicableError, TheoryError
from inscape.measures.measurement import measuring
from inscape.models import Model, wrap
from inscape.models.class_names import as_labels
from inscape.pictures import Shown
from inscape.progress import Meter, meter
from inscape.seeding import RandomState, as_seed
from inscape.serialising import SCHEMA, check_schema, plain_fields, restored_fields
from inscape.text_table import Columns
from inscape.theory import effective_regions, local_complexity, minima_stability, region_counts
from inscape.theory.check import FORMS, Check, inapplicable
from inscape.theory.layers import as_module, as_shallow
from inscape.theory.local_complexity.moments import Moments, MomentSettings, moments
from inscape.univariate import ShallowNet

if TYPE_CHECKING:
    import pandas as pd

COLUMNS: Columns = {
    "name": ("statement", ""),
    "form": ("form", ""),
    "lhs": ("left", ".4g"),
    "rhs": ("right", ".4g"),
    "ratio": ("ratio", ".3g"),
    "verdict": ("verdict", ""),
}
"""The table for readers."""
MOMENTS_WEIGH = 1000
"""How many times the work of a statement the moments are taken to be: they take most of the time."""


@dataclass(frozen=True, eq=False)
class CheckTable(Shown):
    """The checks of one model, one per statement and form.

    Attributes:
        model: what the model is called.
        checks: one for each statement and form.
    """

    model: str
    checks: tuple[Check, ...]

    def to_frame(self) -> "pd.DataFrame":
        """A pandas table."""
        import pandas as pd

        return pd.DataFrame([check.to_dict() for check in self.checks])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back."""
        return {"schema": SCHEMA} | plain_fields(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The table that `to_dict` wrote."""
        check_schema(data, what="table of checks", error=TheoryError)
        table: Self = restored_fields(cls, data, what="table of checks", error=TheoryError)
        return table

    def _shown_frame(self) -> "pd.DataFrame":
        """The statements that apply."""
        import pandas as pd

        applied = [check.to_dict() for check in self.checks if check.verdict != "does not apply"]
        columns = {key: heading for key, (heading, _) in COLUMNS.items()} | {"note": "note"}
        return pd.DataFrame([{heading: row[key] for key, heading in columns.items()} for row in applied])

    def __iter__(self) -> Iterator[Check]:
        return iter(self.checks)

    def __len__(self) -> int:
        return len(self.checks)

    def __repr__(self) -> str:
        verdicts = [check.verdict for check in self.checks]
        phrases = [f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts)]
        return f"<{len(verdicts)} checks of {self.model}: {', '.join(phrases)}>"


def check_all(
    model: Any,
    x: Any,
    y: Any = None,
    *,
    start: Any = None,
    x_test: Any = None,
    y_test: Any = None,
    step_size: float | None = None,
    sigma: float = 0.1,
    eta: float | None = None,
    eps: float = 0.1,
    n_noise: int = 32,
    max_points: int = 200,
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
    budget: float | None = BUDGET,
) -> CheckTable:
    """Every statement on one model; one that does not apply is there with the reason.

    Args:
        model: anything that `inscape.wrap` takes, or a `ShallowNet`.
        x: the data that it was trained on, (n, ...).
        y: classes, or for the statements on stability the values that it fits.
        start: the model before training, for Proposition 17.
        x_test: other data, for the generalisation bound of Theorem 5.
        y_test: their classes.
        step_size: of the gradient descent that trained it, for the statements on stability.
        sigma: the noise on the biases, for local complexity.
        eta: see `moments`.
        eps: see `moments`.
        n_noise: see `moments`.
        max_points: the statements are checked at this many random points at most.
        random_state: a seed, a generator, or None.
        progress: None for a bar after two seconds, False for none; a function gets (work done, work in all).
        budget: seconds that the noisy networks of local complexity may be foreseen to take, else a
            `BudgetError` says how long they would; None for no limit.

    >>> net = ShallowNet([1.0, 1.0], [1.5, -0.5], [1.0, -2.0])
    >>> table = check_all(net, [[-1.0], [0.0], [1.0]], net([-1, 0, 1]), step_size=0.25, random_state=0)
    >>> [c.verdict for c in table if c.name == "ms_theorem1"]
    ['holds']
    """
    seed = as_seed(random_state)
    for name, value in {"sigma": sigma, "eta": eta, "eps": eps, "step_size": step_size}.items():
        if value is not None:
            positive_number(value, name, TheoryError)
    points, values = _chosen(x, y, max_points, seed)
    wrapped = wrap(as_module(model))
    shared: MomentSettings = {
        "sigma": sigma,
        "eta": eta,
        "eps": eps,
        "n_noise": n_noise,
        "random_state": seed,
    }
    checks: list[Check] = []
    with meter(progress, "statements") as show, measuring(wrapped):
        wrapped.labels(points)  # what the model cannot take is an error, not a statement that does not apply
        total = MOMENTS_WEIGH + len(STATEMENTS)
        noisy = _moments_or_reason(wrapped, points, shared, lambda done: show(done, total), budget)
        case = _Case(wrapped, points, values, start, (x_test, y_test), step_size, sigma, noisy, seed)
        for i, (name, (forms, function)) in enumerate(STATEMENTS.items()):
            show(MOMENTS_WEIGH + i, total)
            checks += [_tried(name, form, function, case) for form in forms]
        show(total, total)
    return CheckTable(wrapped.name, tuple(checks))


def _moments_or_reason(
    model: Model, x: Array, settings: MomentSettings, tell: Callable[[int], None], budget: float | None
) -> Moments | InscapeError:
    """The ingredients of local complexity, or why there are none; `tell` hears how far they are."""
    watched: MomentSettings = {
        "progress": lambda done, total: tell(MOMENTS_WEIGH * done // total),
        "budget": budget,
    }
    try:
        return moments(model, x, **(settings | watched))
    except BudgetError:
        raise
    except InscapeError as error:
        return error


@dataclass(frozen=True, eq=False)
class _Case:
    """One model with its data."""

    model: Model
    x: Array
    y: Array | None
    start: Any
    test: tuple[Any, Any]
    step_size: float | None
    sigma: float
    moments: Moments | InscapeError
    seed: int

    def shallow(self) -> ShallowNet:
        """The univariate net, or an error."""
        try:
            return as_shallow(self.model)
        except ModelError as error:
            raise NotApplicableError("about networks of one input, one hidden layer and one score") from error

    def places(self) -> tuple[Array, Array]:
        """Data of one input with values, or an error."""
        if self.y is None:
            raise NotApplicableError("needs y, the values that the network fits")
        if self.y.dtype.kind not in "iubf":
            raise NotApplicableError("needs y of numbers, the values that the network fits, not class names")
        return self.x.reshape(len(self.x), -1), np.asarray(self.y, dtype=np.float64)

    def signs(self) -> Array:
        """Two classes as -1 and +1."""
        kinds = np.unique([] if self.y is None else self.y)
        if len(kinds) != 2:
            raise NotApplicableError("needs y with two classes")
        return np.where(self.y == kinds[1], 1.0, -1.0)

    def pairs(self) -> tuple[Array, Array]:
        """Random segments between data points."""
        order = np.random.default_rng(self.seed).permutation(len(self.x))
        half = len(order) // 2
        flat = self.x.reshape(len(self.x), -1)
        if half == 0:
            raise NotApplicableError("needs two points")
        return flat[order[:half]], flat[order[half : 2 * half]]

    def eta(self) -> float:
        """The step size, or an error."""
        if self.step_size is None:
            raise NotApplicableError("needs the step size of gradient descent")
        return self.step_size


def _of_moments(function: Callable[..., Check]) -> Callable[[_Case, str], Check]:
    """A statement on local complexity."""

    def run(case: _Case, form: str) -> Check:
        m = case.moments
        if isinstance(m, InscapeError):
            raise m
        return function(m, form=form)

    return run


def _elsewhere(reason: str) -> Callable[[_Case, str], Check]:
    """A statement that is not about one trained model."""

    def run(case: _Case, form: str) -> Check:
        raise NotApplicableError(reason)

    return run


def _theorem5(case: _Case, form: str) -> Check:
    x_test, y_test = case.test
    return region_counts.rc_theorem5(
        case.model, case.x, case.y, x_test=x_test, y_test=y_test, form=form, random_state=case.seed
    )


def _pl_condition(case: _Case, form: str) -> Check:
    places, _ = case.places()
    return effective_regions.el_pl_condition(case.shallow(), places, case.signs())


def _theorem42(case: _Case, form: str) -> Check:
    places, _ = case.places()
    return effective_regions.el_theorem42(case.shallow(), places, case.signs())


def _proposition17(case: _Case, form: str) -> Check:
    if case.start is None:
        raise NotApplicableError("needs the model before training")
    return local_complexity.lc_proposition17(case.start, case.model, case.x, sigma=case.sigma, form=form)


STATEMENTS: dict[str, tuple[tuple[str, ...], Callable[[_Case, str], Check]]] = {
    "rc_theorem5": (FORMS, _theorem5),
    "rc_lemma7": (("stated",), lambda case, form: region_counts.rc_lemma7(case.model, *case.pairs())),
    "rc_lemma8": (("stated",), lambda case, form: region_counts.rc_lemma8(case.model, case.x)),
    "rc_theorem6": (
        ("stated",),
        lambda case, form: region_counts.rc_theorem6(
            case.model, case.x, step_size=case.step_size, random_state=case.seed
        ),
    ),
    "el_theorem42": (("stated",), _theorem42),
    "el_theorem23": (("stated",), _elsewhere("about starts of gradient flow: call theory.el_theorem23")),
    "el_breakpoints": (("stated",), _elsewhere("needs the teacher: call theory.el_breakpoints")),
    "el_pl_condition": (("stated",), _pl_condition),
    "el_theorem31": (("stated",), _elsewhere("about starts of gradient flow: call theory.el_theorem31")),
    "el_theorem32": (("stated",), _elsewhere("about many narrow networks: call theory.el_theorem32")),
    "el_corollary51": (("stated",), _elsewhere("needs the teacher: call theory.el_corollary51")),
    "el_example1": (("stated",), _elsewhere("about one network of its own: call theory.el_example1")),
    "lc_gradient_bound": (FORMS, _of_moments(local_complexity.lc_gradient_bound)),
    "lc_corollary3_upper": (("stated",), _of_moments(local_complexity.lc_corollary3_upper)),
    "lc_corollary3_lower": (FORMS, _of_moments(local_complexity.lc_corollary3_lower)),
    "lc_theorem5_upper": (FORMS, _of_moments(local_complexity.lc_theorem5_upper)),
    "lc_theorem5_lower": (FORMS, _of_moments(local_complexity.lc_theorem5_lower)),
    "lc_corollary14": (FORMS, _of_moments(local_complexity.lc_corollary14)),
    "lc_proposition6": (("stated",), lambda case, form: local_complexity.lc_proposition6(case.model, case.x)),
    "lc_theorem7": (FORMS, _of_moments(local_complexity.lc_theorem7)),
    "lc_proposition8": (FORMS, _of_moments(local_complexity.lc_proposition8)),
    "lc_proposition9": (
        FORMS,
        _elsewhere("about global optima and a reference: call theory.lc_proposition9"),
    ),
    "lc_theorem18": (
        ("stated",),
        _elsewhere("about global optima and a reference: call theory.lc_theorem18"),
    ),
    "lc_good_at_start": (
        ("stated",),
        _elsewhere("about networks before training: call theory.lc_good_at_start"),
    ),
    "lc_corollary10": (
        ("stated",),
        _elsewhere("about runs of several weight decays: call theory.lc_corollary10"),
    ),
    "lc_proposition17": (FORMS, _proposition17),
    "ms_lemma1": (
        ("stated",),
        lambda case, form: minima_stability.ms_lemma1(case.shallow(), *case.places(), case.eta()),
    ),
    "ms_lemma2": (
        ("stated",),
        lambda case, form: minima_stability.ms_lemma2(case.shallow(), *case.places(), case.eta()),
    ),
    "ms_lemma3": (
        ("stated",),
        lambda case, form: minima_stability.ms_lemma3(case.shallow(), *case.places(), case.eta()),
    ),
    "ms_lemma5": (("stated",), lambda case, form: minima_stability.ms_lemma5(case.shallow(), *case.places())),
    "ms_lemma4": (("stated",), lambda case, form: minima_stability.ms_lemma4(case.shallow(), *case.places())),
    "ms_theorem1": (
        ("stated",),
        lambda case, form: minima_stability.ms_theorem1(case.shallow(), *case.places(), case.eta()),
    ),
    "ms_theorem2": (
        FORMS,
        lambda case, form: minima_stability.ms_theorem2(
            case.shallow(), *case.places(), case.eta(), form=form
        ),
    ),
}
"""Statement -> the forms that it has, and its check of a case."""


def _tried(name: str, form: str, function: Callable[[_Case, str], Check], case: _Case) -> Check:
    """The check, or the reason why there is none."""
    try:
        return function(case, form)
    except InscapeError as error:
        return inapplicable(name, str(error), form)


def _chosen(x: Any, y: Any, max_points: int, seed: int) -> tuple[Array, Array | None]:
    """At most `max_points` of the points, with their values."""
    limit = whole_number(max_points, "max_points", 2, TheoryError)
    points = as_array(x, "x", DataError)
    if points.ndim == 0 or points.size == 0:
        raise DataError(f"x of shape {points.shape} holds no points: give an array (n, ...)")
    points = points.reshape(-1, 1) if points.ndim == 1 else points
    values = None if y is None else as_labels(y, DataError)
    if values is not None and len(values) != len(points):
        raise DataError(f"y has {len(values)} entries for {len(points)} points")
    if len(points) > limit:
        rows = np.sort(np.random.default_rng(seed).permutation(len(points))[:limit])
        return points[rows], None if values is None else values[rows]
    return points, values
