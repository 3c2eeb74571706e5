"""The oracle in rational arithmetic against closed forms."""

from fractions import Fraction

import numpy as np
import pytest
from relu_networks import network
from torch import nn

from tests.oracles.rational import (
    Clip,
    Leaky,
    Line,
    MaxPool,
    Piece,
    decision_on,
    envelope_corners,
    exact_pieces,
    knots_of,
    layers_of,
    lead_at,
    linear_pieces,
    values_at,
)

F = Fraction


def tent(k):
    """The tent map 2 relu(x) - 4 relu(x - 1/2), k times."""
    first, again = ([[1.0], [1.0]], [0.0, -0.5]), ([[2.0, -4.0]] * 2, [0.0, -0.5])
    return layers_of(network(first, *[again] * (k - 1), ([[2.0, -4.0]], [0.0])))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_composed_tents_have_two_to_the_k_pieces(k):
    pieces = exact_pieces(tent(k), [0.0], [1.0])
    assert knots_of(pieces) == [F(j, 2**k) for j in range(1, 2**k)]
    assert linear_pieces(pieces) == 2**k
    assert {abs(p.lines[0].b) for p in pieces} == {F(2**k)}


def test_one_hidden_layer_of_h_units_has_h_plus_one_pieces_on_a_line():
    rng = np.random.default_rng(0)
    net = network((rng.normal(size=(9, 1)), rng.normal(size=9)), (rng.normal(size=(1, 9)), [0.0]))
    pieces = exact_pieces(layers_of(net), [-100.0], [100.0])
    assert len(pieces) == linear_pieces(pieces) == 10


def test_pieces_of_equal_slope_are_merged():
    net = network(([[1.0], [1.0]], [-0.5, -0.5]), ([[1.0, -1.0]], [0.0]))
    pieces = exact_pieces(layers_of(net), [0.0], [1.0])
    assert (len(pieces), linear_pieces(pieces)) == (2, 1)


def test_the_lines_of_the_pieces_are_the_values_of_the_network():
    net = nn.Sequential(nn.Linear(2, 6), nn.Hardtanh(), nn.Linear(6, 4), nn.LeakyReLU(0.1), nn.Linear(4, 2))
    layers, start, end = layers_of(net), [-3.0, 1.0], [2.5, -4.0]
    for piece in exact_pieces(layers, start, end):
        t = piece.inside
        x = [(1 - t) * F(a) + t * F(b) for a, b in zip(start, end, strict=True)]
        assert values_at(layers, x) == [line(t) for line in piece.lines]


def test_layers_bend_where_they_should():
    piece = Piece(F(-1), F(1), (Line(F(0), F(2)), Line(F(1, 4), F(-1))))
    assert Leaky().cuts(piece) == [0, F(1, 4)]
    assert Clip(F(-1), F(1)).cuts(piece) == [F(-1, 2), F(1, 2), F(-3, 4)]
    assert MaxPool(2).cuts(piece) == [F(1, 12)]


def test_a_crossing_below_the_envelope_is_no_corner():
    lines = Line(F(0), F(1)), Line(F(0), F(-1)), Line(F(5))
    assert envelope_corners(lines, F(-1), F(1)) == []
    assert envelope_corners(lines[:2], F(-1), F(1)) == [0]


def test_labels_are_the_first_largest_score():
    piece = Piece(F(0), F(1), (Line(F(0), F(1)), Line(F(1, 4)), Line(F(0), F(1))))
    found = decision_on([piece])
    assert (found.labels, found.boundaries, found.is_tied) == ([1, 0], [F(1, 4)], True)


def test_a_single_score_competes_with_zero():
    found = decision_on([Piece(F(0), F(1), (Line(F(-1), F(3)),))])
    assert (found.labels, found.boundaries, found.is_tied) == ([0, 1], [F(1, 3)], False)
    assert decision_on([Piece(F(0), F(1), (Line(F(0)),))]).labels == [0]


def test_the_lead_is_exact():
    layers = layers_of(network(([[3.0], [1.0]], [0.0, 0.0])))
    assert lead_at(layers, [0.0], [1.0], 0.1, 0, 1) == 2 * F(0.1)
