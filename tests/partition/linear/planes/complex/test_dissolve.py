"""Faces of one label are joined across edges as a graph's connected components are."""

import numpy as np
import pytest
from networks import mlp
from relu_networks import square
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from inscape import linear_regions
from inscape.partition.linear.planes.complex.dissolve import joined_faces


@pytest.mark.parametrize("n_labels", [1, 2, 5, 10_000])
@pytest.mark.parametrize("is_partial", [False, True])
def test_joined_faces_are_the_connected_components_of_one_label(rng, n_labels, is_partial):
    planar = linear_regions(mlp(2, 12, 12, 3), square()).subdivision.planar
    labels = rng.integers(0, n_labels, planar.n_faces)
    through = rng.random(len(planar.ends)) < 0.5 if is_partial else None
    region, label = joined_faces(planar, labels, through)
    left, right = planar.sides().T
    linked = (left >= 0) & (right >= 0) & (labels[left] == labels[right])
    if through is not None:
        linked &= through
    links = coo_matrix((np.ones(linked.sum()), (left[linked], right[linked])), shape=(planar.n_faces,) * 2)
    n, expected = connected_components(links, directed=False)
    assert n == len(label)
    assert np.array_equal(region, expected)
    assert np.array_equal(label[region], labels)
