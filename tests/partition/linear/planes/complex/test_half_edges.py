"""The half-edges of a planar complex fit together: twins, origins, targets, areas."""

import numpy as np
import pytest
from networks import mlp
from relu_networks import square

from inscape import linear_regions
from inscape.partition.linear.planes.complex.half_edges import (
    direction_of,
    edge_of,
    half_edge,
    next_around,
    origin,
    outward,
    polygon_complex,
    target,
    twin,
)


@pytest.fixture(scope="module")
def planar():
    return linear_regions(mlp(2, 12, 12, 3), square()).subdivision.planar


def test_numbers_of_half_edges():
    h = np.arange(10)
    edge, direction = edge_of(h), direction_of(h)
    assert np.array_equal(half_edge(edge, direction), h)
    assert np.array_equal(twin(h), half_edge(edge, 1 - direction))
    assert [next_around(i, 3, 6) for i in (3, 4, 5)] == [4, 5, 3]


@pytest.mark.slow
def test_every_half_edge_ends_where_the_next_begins(planar):
    for first, last in zip(planar.start[:-1], planar.start[1:], strict=True):
        for i in range(first, last):
            h, after = planar.loop[i], planar.loop[next_around(i, first, last)]
            assert target(planar.ends, h) == origin(planar.ends, after)


def test_a_half_edge_and_its_twin_have_different_faces(planar):
    sides = planar.sides()
    h = planar.loop
    assert np.array_equal(sides[edge_of(h), direction_of(h)], planar.loop_faces)
    across = sides[edge_of(h), direction_of(twin(h))]
    assert (across != planar.loop_faces).all()
    assert np.array_equal(across < 0, planar.born[planar.loop_edges] < 0)


def test_areas_of_a_polygon_and_of_its_faces(planar):
    triangle = polygon_complex(np.array([[1.0, 1.0], [5.0, 1.0], [1.0, 4.0]]))
    assert triangle.areas().tolist() == [6.0]
    assert triangle.total_area() == 6.0
    assert planar.areas().sum() == pytest.approx(planar.total_area(), rel=1e-12)
    assert planar.total_area() == pytest.approx(4.0, rel=1e-12)


def test_outward_turns_edges_and_keeps_faces(planar):
    turned = outward(planar)
    far = np.hypot(*turned.xy.T)[turned.ends]
    assert (far[:, 0] <= far[:, 1]).all()
    assert (turned.ends != planar.ends).any()
    assert np.array_equal(turned.corners, planar.corners)
