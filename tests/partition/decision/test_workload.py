"""Work that would not end is refused before it begins, long work is announced."""

import numpy as np
import pytest

import inscape
from inscape import budget
from inscape.errors import InscapeWarning, PartitionError, ProbeError
from inscape.partition.decision.adaptive import check_cells
from inscape.probes import sampling


def sign(x):
    return (x[:, 0] > 0).astype(int)


@pytest.fixture
def x(rng):
    return rng.normal(size=(30, 9))


def must_not_be_asked(x):
    raise AssertionError("the model was asked")


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"resolution": 10**8}, PartitionError, r"grid of 10\^8 points per probe.*lower the resolution"),
        ({"n_probes": 10**9}, ProbeError, r"1,000,000,000 random probes are over the limit of 10,000,000"),
        (
            {"n_probes": 10**6, "resolution": 10**6},
            PartitionError,
            r"1,000,000 points each are 1,000,000,000,000 evalu.*lower the resolution",
        ),
        (
            {"n_probes": 10**5, "dim": 8},
            PartitionError,
            r"cells in 8 dimensions take about 12 s per probe, 14 days in all: lower the dimension",
        ),
    ],
)
def test_what_would_not_end_is_refused_before_the_model_is_asked(x, settings, error, message):
    with pytest.raises(error, match=message):
        inscape.region_count(must_not_be_asked, x, random_state=0, **settings)


def test_what_takes_long_is_announced(x, monkeypatch):
    monkeypatch.setattr(budget, "ANNOUNCED_ABOVE_EVALUATIONS", 1000)
    with pytest.warns(InscapeWarning, match=r"11 probes of about 100 points each are 1,100 evaluations"):
        inscape.region_count(sign, x, n_probes=11, resolution=100, random_state=0)
    with pytest.warns(InscapeWarning, match="lower the number of probes if that is too long"):
        inscape.region_count(sign, x, n_probes=40, random_state=0)
    with pytest.warns(InscapeWarning, match=r"5 probes of about 210 points"):
        inscape.decision_regions(
            sign,
            inscape.sample_probes(x, dim=2, n=5, random_state=0),
            resolution=20,
        )


def test_cells_in_seven_dimensions_are_announced(x):
    with pytest.warns(InscapeWarning, match=r"in 7 dimensions take about 4 s per probe, 32 s in all.*'grid'"):
        check_cells(8, 7)
    check_cells(10**6, 2)
    check_cells(2, 7)


@pytest.mark.parametrize("n", [10**12, 10**7 + 1])
def test_more_probes_than_can_be_drawn_are_refused(x, n):
    with pytest.raises(ProbeError, match=f"{n:,} random probes are over the limit of 10,000,000"):
        inscape.sample_probes(x, n=n, random_state=0)


def test_a_list_of_probes_that_does_not_fit_into_memory_is_refused(monkeypatch):
    images = np.random.default_rng(0).normal(size=(5, 1000))
    monkeypatch.setattr(sampling, "machine_memory", lambda: 2**20)
    assert len(inscape.sample_probes(images, n=20, random_state=0)) == 20
    with pytest.raises(ProbeError, match=r"a list of 100 probes takes 1\.62 MiB, more than half"):
        inscape.sample_probes(images, n=100, random_state=0)


@pytest.mark.parametrize("shape", [(-4,), (0,), (3, -1), ()])
def test_shapes_that_are_none(shape):
    with pytest.raises(inscape.InscapeError, match=r"input_shape=.* is not a shape.*such as \(1, 28, 28\)"):
        inscape.wrap(sign, input_shape=shape)
