"""How a computation ended, as data: a kind that code compares, and a detail for the reader."""

from typing import Any, Literal, Self, get_args

Kind = Literal[
    "complete",
    "converged",
    "not_converged",
    "not_shown",
    "non_generic",
    "ties",
    "budget",
    "not_deterministic",
    "loss_reached",
    "stationary",
    "diverged",
    "step_limit",
    "out_of_range",
    "other",
]

HEADINGS: dict[Kind, str] = {
    "complete": "complete",
    "converged": "converged",
    "not_converged": "not converged in resolution",
    "not_shown": "convergence not shown",
    "non_generic": "special position",
    "ties": "ties",
    "budget": "budget reached",
    "not_deterministic": "not deterministic",
    "loss_reached": "loss reached",
    "stationary": "stationary",
    "diverged": "diverged",
    "step_limit": "step limit",
    "out_of_range": "out of range",
    "other": "other",
}
"""What the text of a status begins with."""


class Status(str):
    """How a computation ended.

    A status *is* its text, a string: `result.status == "complete"` reads well and is what people write, and
    texts go into tables, JSON and pictures as they are. But nothing is ever read back out of that text: code
    asks for `kind` and `detail`.

    Args:
        kind: one of the kinds above.
        detail: what else there is to know, "" for nothing.
        text: the whole text, if it is not the heading of the kind followed by the detail.

    Attributes:
        kind: one of "complete", "converged", "not_converged", "not_shown" (counts agree, or no place asks for
            a refinement, but steps may hide regions all the same), "non_generic", "ties", "budget",
            "not_deterministic", "other"; of training, descent and flow also "loss_reached", "stationary",
            "diverged", "step_limit", "out_of_range".
        detail: what else there is to know, and what can be done about it, in plain words; "" for nothing.

    >>> s = Status("not_converged", "the budget of evaluations was reached")
    >>> s, s.kind
    ('not converged in resolution: the budget of evaluations was reached', 'not_converged')
    >>> COMPLETE == "complete", COMPLETE.kind
    (True, 'complete')
    """

    __slots__ = ("detail", "kind")
    kind: Kind
    detail: str

    def __new__(cls, kind: Kind, detail: str = "", *, text: str | None = None) -> Self:
        """The status of a kind."""
        if text is None:
            joint = "; " if kind == "complete" else ": "
            text = f"{HEADINGS[kind]}{joint}{detail}" if detail else HEADINGS[kind]
        status = super().__new__(cls, text)
        status.kind, status.detail = kind, detail
        return status

    @property
    def heading(self) -> str:
        """The kind in words, without the detail."""
        return HEADINGS[self.kind] if self.kind != "other" else str(self)

    def __getnewargs_ex__(self) -> tuple[tuple[Kind, str], dict[str, str]]:
        """For copies and pickles."""
        return (self.kind, self.detail), {"text": str(self)}

    def __getstate__(self) -> None:
        """Nothing but the arguments."""
        return

    @classmethod
    def read(cls, text: str, kind: Any = None, detail: Any = None) -> Self:
        """The status of a text, with its kind and detail where these were written beside it."""
        if kind not in get_args(Kind):
            kind = next((k for k, heading in HEADINGS.items() if heading == text), "other")
        return cls(kind, detail or "", text=text)


def not_shown(reason: str) -> Status:
    """The status of counts with which all agrees, though steps may hide regions."""
    return Status("not_shown", f"{reason}; raise resolution and compare the counts")


COMPLETE = Status("complete")
CONVERGED = Status("converged")
NOT_CONVERGED = Status(
    "not_converged", "narrow regions may be missed; raise resolution, or use another method"
)
BUDGET = Status(
    "budget",
    "later layers cut the regions further; raise max_regions, or look at a smaller probe",
    text=HEADINGS["budget"],
)
LOSS_REACHED = Status("loss_reached")


def _ended(kind: Kind, detail: str) -> Status:
    """How training, descent or flow ended short of its goal; the text is the heading alone, for tables."""
    return Status(kind, detail, text=HEADINGS[kind])


STATIONARY = _ended(
    "stationary",
    "it came to rest before its goal, at a minimum that does not fit every point: start elsewhere",
)
DIVERGED = _ended("diverged", "the loss grew without end or is no number: take a smaller step")
STEP_LIMIT = _ended("step_limit", "it was still on its way after the last step: allow more steps")
OUT_OF_RANGE = _ended(
    "out_of_range", "numbers outgrew float64 before its goal: ask for a larger tolerance, or start elsewhere"
)
NOT_DETERMINISTIC = Status(
    "not_deterministic",
    "the same points were predicted differently a second time; switch its randomness off, or fix its seed",
)
