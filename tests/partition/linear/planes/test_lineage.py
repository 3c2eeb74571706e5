"""Pattern numbers that are worked out when they are first read are those that are carried along."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from inscape.partition.linear.planes.walk import Lineage


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.sampled_from(["cut", "of"]), max_size=6), st.integers(0, 2))
def test_pattern_numbers_are_those_that_are_carried_along(seed, steps, n_known):
    rng = np.random.default_rng(seed)
    n = 5
    numbers = tuple(rng.integers(0, 99, n) for _ in range(n_known))
    lineage = Lineage(numbers)
    for step in steps:
        faces = rng.integers(0, n, rng.integers(1, 9))
        n, numbers = len(faces), tuple(k[faces] for k in numbers)
        if step == "cut":
            first = int(rng.integers(0, 50))
            lineage, numbers = lineage.cut(faces, first), (*numbers, first + np.arange(n))
        else:
            lineage = lineage.of(faces)
        assert len(lineage) == len(numbers) == len(lineage.pattern_numbers)
        assert all(np.array_equal(a, b) for a, b in zip(lineage.pattern_numbers, numbers, strict=True))
