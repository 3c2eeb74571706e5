"""Seeds are resolved once and recorded, and global random states left alone."""

import numpy as np
import pytest

from inscape.errors import InscapeError
from inscape.seeding import as_generator, as_seed


def test_an_integer_is_its_own_seed():
    assert as_seed(5) == 5
    assert as_seed(np.int64(5)) == 5


def test_none_draws_fresh_recordable_seeds():
    assert as_seed(None) != as_seed(None)


def test_a_generator_gives_reproducible_but_changing_seeds():
    rng = np.random.default_rng(1)
    first, second = as_seed(rng), as_seed(rng)
    assert first != second
    assert first == as_seed(np.random.default_rng(1))


def test_global_state_is_not_touched():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    as_generator(None).random(10)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


@pytest.mark.parametrize("bad", [-1, 1.5, "seed"])
def test_other_values_are_refused(bad):
    with pytest.raises(InscapeError, match="not a seed"):
        as_seed(bad)
