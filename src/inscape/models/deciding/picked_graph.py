"""What a function picks of a network's output, as part of its graph."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from inscape.arrays import Shape
from inscape.models.deciding.chosen_output import Step, follow
from inscape.models.from_torch import trace
from inscape.models.from_torch.tracing import MOVES
from inscape.models.graph.network import Foreign, Graph
from inscape.models.graph.trace import INCREASING, Trace


def picked(found: Trace, steps: tuple[Step, ...], shape: Shape) -> Trace:
    """The trace of a network with steps behind it that pick among its outputs of `shape`.

    The steps are traced as torch records them. A sigmoid that the network ends in may stay the end of it all
    if the steps only move entries.
    """
    try:
        behind = trace(_Steps(steps).eval(), shape)
    except Exception as error:  # whatever the user's function raises on a few rows of noise
        line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        return Trace(None, (Foreign(f"a function that picks the output and fails on noise ({line})", ""),))
    moves_only = behind.graph is not None and all(n.op.name in MOVES for n in behind.graph.nodes[1:])
    ending = found.ending if moves_only else behind.ending
    if found.graph is None or behind.graph is None:
        return Trace(None, (*found.foreign, *behind.foreign), ending)
    head = found.graph.head
    if head is not None and not (moves_only and head in INCREASING):
        return Trace(None, (Foreign(f"{head} before the function that picks the output", ""),), ending)
    joined: Graph = behind.graph.after(found.graph)
    if head is not None:
        joined.head = head
    return replace(found, graph=joined, foreign=(), ending=ending)


class _Steps(torch.nn.Module):
    """The steps as a module, which torch records."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        super().__init__()
        self.steps = steps
        self.modules_among = torch.nn.ModuleList([s for s in steps if isinstance(s, torch.nn.Module)])

    def forward(self, outputs: Tensor) -> Any:
        return follow(self.steps, outputs, "the model")
