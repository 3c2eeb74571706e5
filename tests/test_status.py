"""Statuses read as sentences: what happened, and what can be done about it."""

import pytest

from inscape import status
from inscape.status import HEADINGS, Status

SHORT_OF_THE_GOAL = [
    "NOT_CONVERGED",
    "BUDGET",
    "STATIONARY",
    "DIVERGED",
    "STEP_LIMIT",
    "OUT_OF_RANGE",
    "NOT_DETERMINISTIC",
]


@pytest.mark.parametrize("name", SHORT_OF_THE_GOAL)
def test_what_ended_short_of_its_goal_says_what_to_do(name):
    what, _, action = getattr(status, name).detail.replace("; ", ": ").partition(": ")
    assert what
    assert action.split()[0] in ("raise", "start", "take", "allow", "ask", "switch")


def test_every_status_that_others_share_was_looked_at():
    shared = {name for name, value in vars(status).items() if isinstance(value, Status)}
    assert shared == {*SHORT_OF_THE_GOAL, "COMPLETE", "CONVERGED", "LOSS_REACHED"}


def test_training_is_compared_by_its_heading_alone():
    assert status.DIVERGED == HEADINGS["diverged"] == "diverged"
    assert status.STEP_LIMIT == "step limit"
