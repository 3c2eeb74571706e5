"""Keys and seeds of configurations depend on their content alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inscape.errors import StudyError
from inscape.sweeps.tasks import as_tasks

PLAIN = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)


@given(
    st.dictionaries(st.text().filter(lambda k: k not in ("seed", "replicate", "replicate_seed")), PLAIN),
    st.integers(0, 2**63),
)
def test_hash_and_seed_depend_on_content_alone(configuration, seed):
    turned = dict(reversed(configuration.items()))
    (a,), (b,) = as_tasks([configuration], seed), as_tasks([turned], seed)
    assert a.key == b.key
    assert 0 <= a.seed < 2**32


def test_replicates_share_the_hash_and_seeds_differ():
    cells = as_tasks([{"a": a, "replicate": i} for a in (1, 2) for i in range(50)], 0)
    assert len({c.hash for c in cells}) == 2
    assert len({c.seed for c in cells}) == 100
    assert cells[0].seeded == {"a": 1, "replicate": 0, "seed": cells[0].seed, "replicate_seed": 0}
    other = as_tasks([{"a": 1, "replicate": 0}], 1)
    assert other[0].hash == cells[0].hash
    assert other[0].seed != cells[0].seed


def test_a_replicate_has_one_seed_in_all_configurations_and_another_for_another_study_seed():
    seeds = {
        seed: [
            c.replicate_seed
            for c in as_tasks([{"a": a, "replicate": i} for i in range(20) for a in (1, 2)], seed)
        ]
        for seed in range(20)
    }
    assert all(s[::2] == s[1::2] for s in seeds.values())
    assert len({value for s in seeds.values() for value in s}) == 400
    assert seeds[0][::2] == list(range(20))


def test_a_cell_does_not_depend_on_the_rest_of_the_grid():
    grid = [{"a": a} for a in range(10)]
    assert as_tasks(grid, 7)[4] == as_tasks(grid[4:5], 7)[0]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ([{"a": 1}, {"a": 1}], "two configurations of the grid are the same"),
        ([{"a": 1}, {"a": 1, "replicate": 0}], "two configurations of the grid are the same"),
        ([{"seed": 1}], 'use "replicate" to repeat'),
        ([{"replicate_seed": 1}], 'use "replicate" to repeat'),
        ([{"replicate": "first"}], "replicate='first' is not a whole number"),
        ([{"a": object()}], "is not plain JSON"),
        ([{"a": float("nan")}], "is not plain JSON"),
    ],
)
def test_grids_that_cannot_be(grid, message):
    with pytest.raises(StudyError, match=message):
        as_tasks(grid, 0)
