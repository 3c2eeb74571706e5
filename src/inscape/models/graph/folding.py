"""Make a recorded graph shorter without changing what it computes."""

from collections.abc import Sequence

from inscape.models.graph.affine import Affine
from inscape.models.graph.network import Node


def needed(nodes: Sequence[Node], output: int) -> set[int]:
    """The numbers of the nodes that the output depends on, and of the input."""
    wanted = {0, output}
    for i in range(output, 0, -1):
        if i in wanted:
            wanted.update(nodes[i].inputs)
    return wanted


def pruned(nodes: Sequence[Node], output: int) -> tuple[list[Node], int]:
    """The nodes that the output depends on, and the input, renumbered; with the output's new number."""
    wanted = needed(nodes, output)
    number = {old: new for new, old in enumerate(sorted(wanted))}
    kept = [
        Node(nodes[i].op, tuple(number[j] for j in nodes[i].inputs), nodes[i].path) for i in sorted(wanted)
    ]
    return kept, number[output]


def folded(nodes: Sequence[Node], output: int) -> tuple[list[Node], int]:
    """Batch-norm in eval mode merged into the convolution or linear map before it, if only it reads that.

    (W x + b) s + m = (s W) x + (s b + m): one pass over the data instead of two.
    """
    nodes = list(nodes)
    readers = [0] * len(nodes)
    for node in nodes:
        for j in node.inputs:
            readers[j] += 1
    readers[output] += 1
    moved = list(range(len(nodes)))
    for i, node in enumerate(nodes):
        op, inputs = node.op, tuple(moved[j] for j in node.inputs)
        nodes[i] = Node(op, inputs, node.path)
        if not (isinstance(op, Affine) and op.name == "batch_norm"):
            continue
        before = nodes[inputs[0]].op
        if isinstance(before, Affine) and before.then is not None and readers[inputs[0]] == 1:
            factor, offset = op.constants
            nodes[i] = Node(before.then(factor, offset), nodes[inputs[0]].inputs, nodes[inputs[0]].path)
    return pruned(nodes, output)
