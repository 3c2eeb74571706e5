"""Statuses are data, and read as sentences: what happened, and what can be done about it."""

import ast
from pathlib import Path

import pytest
from syntax import forget, nodes_of

import inscape
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


def statuses():
    """What each class of the package that has a status says of its type."""
    root = Path(inscape.__file__).parent
    for path in root.rglob("*.py"):
        for node in nodes_of(path):
            for part in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(part, ast.AnnAssign) and getattr(part.target, "id", "") == "status":
                    yield f"{path.relative_to(root)}: {node.name}", ast.unparse(part.annotation)
                elif isinstance(part, ast.FunctionDef) and part.name == "status":
                    yield f"{path.relative_to(root)}: {node.name}", ast.unparse(part.returns)
    forget()


def test_no_result_has_a_text_for_its_status():
    kinds = dict(statuses())
    assert len(kinds) > 12
    assert {name: kind for name, kind in kinds.items() if kind not in ("Status", "Status | None")} == {}
