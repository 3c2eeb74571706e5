"""Torch modules around a network: its input prepared, its output chosen and decided by a rule.

Each is one module that torch differentiates and records; to the names of the network's layers and parameters
they add nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from inscape.arrays import LAYOUTS, Shape
from inscape.models.decision_rules import AffineRule, NeverTaken
from inscape.models.from_torch import trace
from inscape.models.graph.network import Foreign, Graph
from inscape.models.graph.trace import INCREASING, PROBABILITIES, Trace
from inscape.models.outputs import Output, OutputStep, follow, scores_among
from inscape.models.preparation import Preparation


class OutputModule(torch.nn.Module):
    """Asks a network and picks an output.

    Args:
        network: the module; it is not copied.
        output: the way to the tensor of scores.
    """

    def __init__(self, network: torch.nn.Module, output: Output) -> None:
        super().__init__()
        self.network = network
        self.output = output
        # a module among the steps goes into eval mode and to another device as the network does
        self.steps = torch.nn.ModuleList([s for s in output.steps if isinstance(s, torch.nn.Module)])

    def forward(self, x: Tensor) -> Any:
        """The output that was chosen."""
        return self.output.pick(self.network(x), type(self.network).__name__)

    def named_modules(self, *args: Any, **options: Any) -> Iterator[tuple[str, torch.nn.Module]]:
        """Those of the network by their own names, and those that pick the output."""
        yield from self.network.named_modules(*args, **options)
        for i, step in enumerate(self.steps):
            yield from ((f"output.{i}.{name}".rstrip("."), m) for name, m in step.named_modules())


class DecidedModule(torch.nn.Module):
    """Asks a network and makes scores of its outputs, of which the largest wins.

    Where the network ends in a softmax or sigmoid with which the rule commutes, the scores are those before
    it, whose derivatives do not vanish where probabilities saturate.

    Args:
        network: the module; it is not copied.
        rule: from the number of outputs and the shape of a point to the rule.
    """

    def __init__(self, network: torch.nn.Module, rule: Callable[[int, Shape], AffineRule]) -> None:
        super().__init__()
        self.network = network
        self.rule = rule

    def forward(self, x: Tensor) -> Tensor:
        """The scores (n, c) of data points (n, ...)."""
        raw, head, outputs = scores_before_head(self.network, x)
        rule = self.rule(outputs.shape[1], tuple(x.shape[1:]))
        try:
            before = None if head is None else rule.before(head)
        except NeverTaken:
            before = None
        if before is not None:
            rule, outputs = before, raw
        matrix, offset = (torch.from_numpy(c).to(outputs) for c in rule.coefficients(outputs.shape[1]))
        return outputs @ matrix.T + offset

    def named_modules(self, *args: Any, **options: Any) -> Iterator[tuple[str, torch.nn.Module]]:
        """Those of the network by their own names."""
        yield from self.network.named_modules(*args, **options)


class _LastHead(TorchFunctionMode):
    """Remembers the last softmax, log-softmax or sigmoid that was called: its name, input and output."""

    call: tuple[str, Tensor, Tensor] | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        given = args[0] if args else (kwargs or {}).get("input")
        if name in PROBABILITIES and isinstance(given, Tensor) and isinstance(out, Tensor):
            self.call = (name, given, out)
        return out


class RawScores(NamedTuple):
    """The scores (n, c) of a module without its final softmax or sigmoid, which that was, and with it."""

    raw: Tensor
    """Without it, (n, c)."""
    head: str | None
    """What it was; None if there was none."""
    outputs: Tensor
    """With it, (n, c)."""


def scores_before_head(module: torch.nn.Module, x: Tensor) -> RawScores:
    """The scores of a module before and behind its final softmax, log-softmax or sigmoid, if it has one.

    >>> net = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Softmax(1))
    >>> scores_before_head(net, torch.tensor([[900.0, 0.0]]))[:2]
    (tensor([[900.,   0.]]), 'softmax')
    """
    with _LastHead() as last:
        out = scores_among(module(x))
    scores: Tensor = out.reshape(len(x), -1)
    if last.call is None:
        return RawScores(scores, None, scores)
    name, given, head = last.call
    if out.data_ptr() != head.data_ptr() or given.numel() != scores.numel():
        return RawScores(scores, None, scores)
    raw = given.reshape(scores.shape)
    with torch.no_grad():
        is_head = torch.allclose(PROBABILITIES[name](raw), scores, rtol=1e-3, atol=1e-6)
    return RawScores(raw, name, scores) if is_head else RawScores(scores, None, scores)


class InPrecision(torch.nn.Module):
    """A module that prepares points; one without numbers of its own computes in the precision of the model.

    Args:
        function: the module; it is not copied.
        dtype: of the model that it prepares points for.
    """

    def __init__(self, function: Any, dtype: np.dtype[Any]) -> None:
        super().__init__()
        self.function = function
        if not [*function.parameters(), *function.buffers()]:
            kind = torch.float64 if dtype == np.float64 else torch.float32
            self.register_buffer("precision", torch.zeros(1, dtype=kind))

    def forward(self, x: Tensor) -> Any:
        """The points that the model is given."""
        return self.function(x)


class PreparedModule(torch.nn.Module):
    """Transposes and normalises points, then asks the network, whose parameters it has, by their names.

    Args:
        network: the module that predicts; it is not copied.
        preparation: what happens to points first.
        function: the module that stands in the preparation, or None for a normalisation.
    """

    def __init__(
        self, network: torch.nn.Module, preparation: Preparation, function: torch.nn.Module | None
    ) -> None:
        super().__init__()
        self.network = network
        self.preparation = preparation
        self.function = function

    def forward(self, x: Tensor) -> Any:
        """What the network makes of data points (n, ...)."""
        layout = self.preparation.layout
        if layout is not None:
            self.preparation.turned(tuple(x.shape[1:]))
            x = x.permute(0, *(a + 1 for a in LAYOUTS[layout])).contiguous()  # vmap takes no other
        if self.function is not None:
            return self.network(self.function(x))
        factor, offset = (
            torch.from_numpy(c).to(x) for c in self.preparation.coefficients(tuple(x.shape[1:]))
        )
        return self.network(x * factor + offset)

    def named_parameters(self, *args: Any, **options: Any) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """The parameters of the network alone: what prepares the points is not trained."""
        return self.network.named_parameters(*args, **options)


def picked(inner: Trace, steps: tuple[OutputStep, ...], shape: Shape) -> Trace:
    """The trace of a network with steps behind it that pick among its outputs of `shape`.

    The steps are traced as torch records them. A sigmoid that the network ends in may stay the end of it all
    if the steps only move entries.
    """
    try:
        behind = trace(_FollowedSteps(steps).eval(), shape)
    except Exception as error:  # whatever the user's function raises at a few random points
        line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        return Trace(
            None, (Foreign(f"a function that picks the output and fails at random points ({line})", ""),)
        )
    moves_only = behind.graph is not None and all(n.op.only_moves for n in behind.graph.nodes[1:])
    ending = inner.ending if moves_only else behind.ending
    if inner.graph is None or behind.graph is None:
        return Trace(None, (*inner.foreign, *behind.foreign), ending)
    head = inner.graph.head
    if head is not None and not (moves_only and head in INCREASING):
        return Trace(None, (Foreign(f"{head} before the function that picks the output", ""),), ending)
    joined: Graph = behind.graph.after(inner.graph)
    if head is not None:
        joined.head = head
    return replace(inner, graph=joined, foreign=(), ending=ending)


class _FollowedSteps(torch.nn.Module):
    """The steps as a module, which torch records."""

    def __init__(self, steps: tuple[OutputStep, ...]) -> None:
        super().__init__()
        self.steps = steps
        self.modules_among = torch.nn.ModuleList([s for s in steps if isinstance(s, torch.nn.Module)])

    def forward(self, outputs: Tensor) -> Any:
        return follow(self.steps, outputs, "the model")
