"""A torch module whose output is chosen and decided by a rule, as one module that torch differentiates.

The modules here stand around a network; to the names of its layers and parameters they add nothing.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from inscape.arrays import Shape
from inscape.models.deciding.chosen_output import Output, scores_among
from inscape.models.deciding.decision_rules import AffineRule, NeverTaken
from inscape.models.graph.trace import PROBABILITIES


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

    found: tuple[str, Tensor, Tensor] | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        given = args[0] if args else (kwargs or {}).get("input")
        if name in PROBABILITIES and isinstance(given, Tensor) and isinstance(out, Tensor):
            self.found = (name, given, out)
        return out


class RawScores(NamedTuple):
    """The scores (n, c) of a module without its final softmax or sigmoid, which that was, and with it."""

    raw: Tensor
    head: str | None
    outputs: Tensor


def scores_before_head(module: torch.nn.Module, x: Tensor) -> RawScores:
    """The scores of a module before and behind its final softmax, log-softmax or sigmoid, if it has one.

    >>> net = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Softmax(1))
    >>> scores_before_head(net, torch.tensor([[900.0, 0.0]]))[:2]
    (tensor([[900.,   0.]]), 'softmax')
    """
    with _LastHead() as last:
        out = scores_among(module(x))
    scores: Tensor = out.reshape(len(x), -1)
    if last.found is None:
        return RawScores(scores, None, scores)
    name, given, head = last.found
    if out.data_ptr() != head.data_ptr() or given.numel() != scores.numel():
        return RawScores(scores, None, scores)
    raw = given.reshape(scores.shape)
    with torch.no_grad():
        is_head = torch.allclose(PROBABILITIES[name](raw), scores, rtol=1e-3, atol=1e-6)
    return RawScores(raw, name, scores) if is_head else RawScores(scores, None, scores)
