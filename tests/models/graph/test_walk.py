"""The walk over a graph: forwards, on from the middle, and back; by counts that are known."""

import operator

import pytest
import torch

from inscape.models.graph import INPUT, Graph, Node
from inscape.models.graph.affine import add, linear
from inscape.models.graph.network import evaluate_node
from inscape.models.graph.piecewise import Leaky


@pytest.fixture(scope="module")
def graph():
    """A skip connection: 3 units of one layer, back to 2 numbers, plus those before; then one number."""
    torch.manual_seed(0)
    weights = [torch.randn(*shape, dtype=torch.float64) for shape in ((2, 2), (3, 2), (2, 3), (1, 2))]
    nodes = [
        INPUT,
        Node(linear(weights[0]), (0,)),
        Node(linear(weights[1]), (1,)),
        Node(Leaky(), (2,)),
        Node(linear(weights[2]), (3,)),
        Node(add(), (4, 1)),
        Node(linear(weights[3]), (5,)),
    ]
    return Graph(nodes, output=6, input_shape=(2,))


@pytest.fixture(scope="module")
def x():
    return torch.linspace(-1, 1, 10, dtype=torch.float64).reshape(5, 2)


def test_a_walk_goes_on_from_the_middle_with_what_is_read_later(graph, x):
    live = {0: x}
    node = graph.go_on(live, 1, evaluate_node, last=graph.output, before=graph.bends)
    assert node == 3
    assert set(live) == {1, 2}
    live[3] = graph.nodes[3].op(live.pop(2))
    assert graph.go_on(live, 4, evaluate_node, last=graph.output, before=graph.bends) == 7
    assert set(live) == {6}
    assert torch.equal(live[6], graph.evaluate(x))


def test_a_walk_starts_behind_a_node_on_which_alone_the_rest_depends(graph, x):
    y = graph.evaluate(x, until=3)
    assert torch.equal(graph.walk(y, evaluate_node, first=3, until=4), graph.evaluate(x, until=4))


def test_the_most_numbers_alive_are_the_units_what_they_read_and_the_skip(graph):
    assert graph.most_alive == 3 + 3 + 2


def test_a_walk_back_joins_what_the_readers_of_a_node_say(graph):
    n_paths = {}

    def visit(i, node, value):
        n_paths[i] = value
        return [value] * len(node.inputs)

    graph.walk_back(1, visit, operator.add)
    assert n_paths == {6: 1, 5: 1, 4: 1, 3: 1, 2: 1, 1: 2}


def test_a_node_that_nobody_reads_has_no_value_on_the_way_back(graph):
    nodes = [*graph.nodes[:2], Node(Leaky(), (1,)), Node(linear(torch.ones(1, 2)), (1,))]
    seen = {}

    def visit(i, node, value):
        seen[i] = value
        return [1] * len(node.inputs)

    Graph(nodes, output=3, input_shape=(2,)).walk_back(1, visit, operator.add)
    assert seen == {3: 1, 2: None, 1: 2}
