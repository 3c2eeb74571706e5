"""Decision regions against the model's own predictions, next to every boundary and between them."""

import numpy as np


def assert_along(model, regions, near):
    """The labels on a segment are the model's, at dense points and `near` both sides of every boundary."""
    low, high = regions.span
    t = np.linspace(low, high, 2001)
    t = np.concatenate([t, regions.boundaries - near, regions.boundaries + near])
    gaps = np.abs(t[:, None] - regions.boundaries).min(axis=1, initial=np.inf)
    t = t[(gaps >= 0.99 * near) & (t >= low) & (t <= high)]
    expected = regions.labels[np.searchsorted(regions.boundaries, t)]
    assert np.array_equal(model.labels(regions.probe.points(t)), expected)


def assert_on_plane(model, regions, near, n=2000):
    """The labels on a plane are the model's at random points that are not within `near` of a border."""
    corners = regions.domain.corners
    weights = np.random.default_rng(0).dirichlet(np.ones(len(corners)), n)
    at = weights @ corners
    far = np.ones(len(at), bool)
    for start, end in regions.boundary:
        edge = end - start
        along = np.clip((at - start) @ edge / (edge @ edge), 0, 1)
        far &= np.linalg.norm(at - start - along[:, None] * edge, axis=1) > near
    assert far.mean() > 0.99
    expected = model.labels(regions.domain.plane.points(at[far]).reshape(-1, *regions.probe.input_shape))
    assert np.array_equal(regions.labels[regions.locate(at[far])], expected)
