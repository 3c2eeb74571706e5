"""How much of what a model says changes while it is trained: looks at it, on segments that stay."""

from typing import Any

import numpy as np

from inscape.arguments import whole_number
from inscape.compare.on_probes import disagreement_along, own_regions
from inscape.errors import MeasureError, unknown_name
from inscape.measures.result import mean_with_error
from inscape.models import Model
from inscape.partition.decision.method import Request
from inscape.probes import sample_probes

NAME = "churn"
N_PROBES = 20


class Churn:
    """The share of fixed segments on which a model's label is not that of the last look, nor of the first.

    Only the regions of those two looks are kept, no copy of the model.

    Args:
        x: the points between which the segments run, at least two.
        n_probes: how many segments.
        method: see `inscape.decision_regions`.
        random_state: of the segments.
    """

    def __init__(self, x: Any, *, n_probes: int = N_PROBES, method: str = "auto", random_state: int) -> None:
        n_probes = whole_number(n_probes, "n_probes", 1, MeasureError)
        self.settings = {"n_probes": n_probes, "method": method, "dim": 1}
        self._probes = sample_probes(x, n=n_probes, random_state=random_state)
        self._request = Request(method=method)
        self._first: list[Any] | None = None
        self._last: list[Any] | None = None

    def look(self, model: Model) -> dict[str, float | None]:
        """The columns of a look: "churn" against the last one and "churn_first", each with its error.

        They are None at the first look, where there is nothing to compare with.
        """
        choice = self._request.choose(model, self._probes)
        now = own_regions(model, self._probes, self._request, choice, lambda done, total: None)
        row: dict[str, float | None] = {}
        for name, before in ((NAME, self._last), (f"{NAME}_first", self._first)):
            row |= {name: None, f"{name}_error": None}
            if before is not None:
                differ = [disagreement_along(a, b) for a, b in zip(before, now, strict=True)]
                row[name], row[f"{name}_error"] = mean_with_error(np.array(differ))[:2]
        self._first, self._last = self._first or now, now
        return row


def churn_of(x: Any, settings: dict[str, Any], random_state: int) -> Churn:
    """The churn with given settings, which are checked."""
    known = ("n_probes", "method")
    for name in settings:
        if name not in known:
            raise MeasureError(unknown_name(f"setting of {NAME}", name, known))
    return Churn(x, **settings, random_state=random_state)
