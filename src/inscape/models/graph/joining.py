"""Two networks side by side as one graph, what they share being there once.

It imports torch, so that `compare` loads it when two networks meet.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from inscape.errors import PartitionError
from inscape.models.graph.affine import concat
from inscape.models.graph.network import INPUT, Graph, Node


def side_by_side(first: Graph, second: Graph) -> Graph:
    """The graph of one input whose output are those of both graphs, (c_1 + c_2,).

    Nodes of the second that do what nodes of the first do, to the same, are these: networks with the same
    first layers have them once. What is affine in the input comes first, so that later the input itself is
    needed no more; then the first graph, then the second.

    >>> from inscape.models.graph.affine import linear
    >>> from inscape.models.graph.piecewise import Leaky
    >>> a = Graph([INPUT, Node(linear(torch.eye(2)), (0,)), Node(Leaky(), (1,))], output=2, input_shape=(2,))
    >>> b = Graph([*a.nodes, Node(linear(torch.ones(1, 2)), (2,))], output=3, input_shape=(2,))
    >>> both = side_by_side(a, b)
    >>> len(both.nodes), both.evaluate(torch.tensor([[3.0, -1.0]])).tolist()
    (5, [[3.0, 0.0, 3.0]])
    """
    if first.input_shape != second.input_shape:
        raise PartitionError(
            f"the networks take points of shapes {first.input_shape} and {second.input_shape}: they cannot "
            "stand side by side"
        )
    own, other = first.nodes[: first.output + 1], second.nodes[: second.output + 1]
    same = _shared(own, other)
    nodes, number = [INPUT], {("a", 0): 0, ("b", 0): 0}

    def add(which: str, i: int, node: Node) -> None:
        if which == "b" and i in same:
            number["b", i] = number["a", same[i]]
        elif (which, i) not in number:
            nodes.append(Node(node.op, tuple(number[which, j] for j in node.inputs), node.path))
            number[which, i] = len(nodes) - 1

    for which, every in (("a", own), ("b", other)):
        early = _affine_in_input(every)
        for i in early:
            add(which, i, every[i])
    for which, every in (("a", own), ("b", other)):
        for i, node in enumerate(every):
            add(which, i, node)
    nodes.append(Node(concat(0), (number["a", first.output], number["b", second.output])))
    return Graph(nodes, output=len(nodes) - 1, input_shape=first.input_shape)


def _affine_in_input(nodes: tuple[Node, ...]) -> list[int]:
    """The nodes that no piecewise-linear one comes before."""
    early = {0}
    for i, node in enumerate(nodes[1:], start=1):
        if node.is_affine and all(j in early for j in node.inputs):
            early.add(i)
    return sorted(early)


def _shared(own: tuple[Node, ...], other: tuple[Node, ...]) -> dict[int, int]:
    """The nodes of the other graph that are nodes of our own, and which."""
    same = {0: 0}
    for i, node in enumerate(other[1:], start=1):
        if not all(j in same for j in node.inputs):
            continue
        inputs = tuple(same[j] for j in node.inputs)
        for k, known in enumerate(own[1:], start=1):
            if known.inputs == inputs and is_same(known.op, node.op):
                same[i] = k
                break
    return same


def is_same(a: Any, b: Any) -> bool:
    """Whether two operations, or what they are made of, are equal in every number: functions by their code.

    >>> from inscape.models.graph.affine import reshape
    >>> is_same(reshape((2, 3)), reshape((2, 3))), is_same(reshape((2, 3)), reshape((3, 2)))
    (True, False)
    """
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(is_same, a, b))
    if hasattr(a, "__dataclass_fields__"):
        names = [f.name for f in fields(a) if f.name != "then"]
        return all(is_same(getattr(a, name), getattr(b, name)) for name in names)
    if callable(a):
        return _is_same_function(a, b)
    return bool(a == b)


def _is_same_function(a: Callable[..., Any], b: Callable[..., Any]) -> bool:
    code, others = getattr(a, "__code__", None), getattr(b, "__code__", None)
    if code is None or code is not others:
        return False
    captured, theirs = ([c.cell_contents for c in getattr(f, "__closure__", None) or ()] for f in (a, b))
    return is_same(captured, theirs) and is_same(a.__defaults__, b.__defaults__)
