"""Random probes: every set of points as likely as it should be, and the same for the same seed."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import chisquare
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import inscape
from inscape import Segment, Simplex, sample_probes
from inscape.errors import ProbeError
from inscape.probes.sampling import draw_probes


@pytest.fixture
def x(rng):
    return rng.normal(size=(40, 3))


@pytest.fixture
def y():
    return np.arange(40) % 4


def rows_of(probes, x):
    """The data rows that span each probe."""
    lookup = {tuple(p): i for i, p in enumerate(x)}
    return [[lookup[tuple(a.ravel())] for a in p.anchors] for p in probes]


def test_a_direction_is_half_as_long_as_data_points_are_apart():
    corners = 3.0 * np.eye(4)[[0, 1, 2, 3, 0, 1]]  # any two different ones are 3 sqrt(2) apart
    (probe,) = sample_probes(corners, n=1, how="direction", random_state=0)
    assert np.linalg.norm(probe.end - probe.start) == pytest.approx(1.5 * 2**0.5)
    counted = inscape.region_count(
        lambda x: x[:, 0] > x[:, 1], corners, n_probes=3, how="direction", random_state=0
    )
    assert counted.settings["length"] == pytest.approx(1.5 * 2**0.5)


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_hulls_of_different_data_points(x, dim):
    probes = sample_probes(x, dim=dim, n=50, random_state=0)
    assert len(probes) == 50
    assert all(isinstance(p, Segment if dim == 1 else Simplex) and p.dim == dim for p in probes)
    assert all(len(set(rows)) == dim + 1 for rows in rows_of(probes, x))


def test_same_seed_same_probes(x):
    a, b, c = (sample_probes(x, random_state=s) for s in (3, 3, 4))
    assert rows_of(a, x) == rows_of(b, x) != rows_of(c, x)


@pytest.mark.parametrize("size", [3, 30_000])  # many at a time, and two
@pytest.mark.parametrize("options", [{}, {"span": (-1.0, 2.0)}, {"dim": 2}, {"how": "direction"}])
def test_probes_that_are_drawn_together_are_those_that_are_drawn_one_by_one(rng, size, options):
    x = rng.normal(size=(7, size)).astype(np.float32)
    settings = {"dim": 1, "how": "pairs", "span": (0.0, 1.0), "length": None} | options
    drawn = draw_probes(x, n=9, y=None, classes="any", random_state=0, **settings)
    together, alone = list(drawn), [drawn[i] for i in range(9)]
    assert [type(p) for p in together] == [type(p) for p in alone]
    for a, b in zip(together, alone, strict=True):
        assert a.anchors.tobytes() == b.anchors.tobytes()
        assert a.generators.tobytes() == b.generators.tobytes()
        assert a.to_dict() == b.to_dict()
        if isinstance(a, Segment):
            assert a.start.dtype == np.float64
            assert not a.start.flags.writeable
            assert not a.end.flags.writeable


def test_a_point_that_is_no_number_is_named_by_whom_it_reaches(x):
    x[3] = np.nan
    with pytest.raises(ProbeError, match="NaN or infinite"):
        list(
            draw_probes(
                x,
                dim=1,
                n=99,
                how="pairs",
                span=(0.0, 1.0),
                length=None,
                y=None,
                classes="any",
                random_state=0,
            )
        )


def test_every_set_of_points_is_equally_likely():
    x = np.arange(5.0)[:, None]
    drawn = Counter(tuple(sorted(r)) for r in rows_of(sample_probes(x, dim=2, n=5000, random_state=0), x))
    assert len(drawn) == 10
    assert chisquare(list(drawn.values())).pvalue > 1e-3


def test_all_points_of_a_small_set():
    x = np.eye(4)
    assert all(sorted(r) == [0, 1, 2, 3] for r in rows_of(sample_probes(x, dim=3, n=20, random_state=0), x))


@pytest.mark.parametrize("dim", [1, 2])
def test_points_of_the_same_class(x, y, dim):
    probes = sample_probes(x, y=y, classes="same", dim=dim, n=200, random_state=0)
    rows = np.array(rows_of(probes, x))
    assert (y[rows] == y[rows[:, :1]]).all()
    assert all(len(set(r)) == dim + 1 for r in rows.tolist())
    assert set(y[rows[:, 0]]) == {0, 1, 2, 3}


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_points_of_different_classes(x, y, dim):
    rows = np.array(rows_of(sample_probes(x, y=y, classes="different", dim=dim, n=200, random_state=0), x))
    assert all(len(set(r)) == dim + 1 for r in y[rows].tolist())
    assert len(set(rows.ravel().tolist())) == 40


def test_different_classes_are_drawn_in_proportion():
    x, y = np.arange(10.0)[:, None], np.array([0] * 6 + [1] * 3 + [2])
    rows = np.array(rows_of(sample_probes(x, y=y, classes="different", n=6000, random_state=0), x))
    counts = Counter(rows[y[rows[:, 0]] == 0, 1].tolist())
    assert set(counts) == {6, 7, 8, 9}
    assert chisquare(list(counts.values())).pvalue > 1e-3


def test_a_class_too_small_for_its_own_hull_is_left_out(x):
    y = np.zeros(40)
    y[0] = 1
    rows = rows_of(sample_probes(x, y=y, classes="same", n=100, random_state=0), x)
    assert all(0 not in r for r in rows)


@pytest.mark.parametrize("dim", [1, 3])
def test_directions_have_the_asked_length(x, dim):
    for p in sample_probes(x, dim=dim, n=10, how="direction", length=0.3, random_state=0):
        assert np.allclose(np.linalg.norm(p.anchors[1:] - p.anchors[0], axis=1), 0.3)


def test_span_is_kept(x):
    assert sample_probes(x, n=2, span=(-1, 2), random_state=0)[0].span == (-1, 2)


class Squares(Dataset):
    """A map-style data set that remembers what it was asked for."""

    def __init__(self):
        self.asked = set()

    def __len__(self):
        return 1000

    def __getitem__(self, i):
        self.asked.add(i)
        return torch.full((1, 2, 2), float(i)), i % 3


class Stream(IterableDataset):
    def __iter__(self):
        return ((torch.tensor([float(i)]), i % 2) for i in range(9))


def test_sources_give_the_same_probes(x, y):
    tensors = torch.from_numpy(x)
    dataset = TensorDataset(tensors, torch.from_numpy(y))
    sources = [x, tensors, x.tolist(), dataset, DataLoader(dataset, batch_size=7), (x, y)]
    expected = rows_of(sample_probes(x, y=y, classes="same", random_state=0), x)
    for source in sources[3:]:
        assert rows_of(sample_probes(source, classes="same", random_state=0), x) == expected
    for source in sources:
        assert rows_of(sample_probes(source, random_state=1), x) == rows_of(
            sample_probes(x, random_state=1), x
        )


def test_a_data_set_is_asked_only_for_what_is_drawn():
    data = Squares()
    probes = sample_probes(data, n=5, random_state=0)
    assert probes[0].input_shape == (1, 2, 2)
    assert len(data.asked) <= 11


def test_an_iterable_data_set():
    assert sample_probes(Stream(), n=3, classes="different", random_state=0)[0].input_shape == (1,)


def test_loaders_leave_the_random_state_and_repeat(x, y):
    loader = DataLoader(TensorDataset(torch.from_numpy(x)), batch_size=8, shuffle=True)
    before = torch.get_rng_state()
    a = rows_of(sample_probes(loader, random_state=0), x)
    assert torch.equal(before, torch.get_rng_state())
    torch.rand(1)
    assert rows_of(sample_probes(loader, random_state=0), x) == a


def test_other_kinds_of_data(x, y):
    pairs = list(zip(x, y, strict=True))
    assert rows_of(sample_probes(pairs, classes="same", random_state=0), x)
    assert rows_of(sample_probes(pd.DataFrame(x), random_state=0), x)
    assert sample_probes(torch.from_numpy(x).bfloat16(), random_state=0)[0].input_shape == (3,)
    single = DataLoader(TensorDataset(torch.from_numpy(x)), batch_size=None)
    assert rows_of(sample_probes(single, random_state=0), x)


def test_directions_repeat_and_differ(x):
    a, b = (sample_probes(x, n=3, how="direction", length=1.0, random_state=2) for _ in range(2))
    assert all((p.end == q.end).all() for p, q in zip(a, b, strict=True))
    assert not np.allclose(a[0].end - a[0].start, a[1].end - a[1].start)


def test_integer_pixels_become_floats():
    x = np.arange(32, dtype=np.uint8).reshape(2, 4, 4)
    assert sample_probes(x, n=1, random_state=0)[0].start.dtype == np.float64


def test_identical_points_are_drawn_again():
    x = np.zeros((10, 2))
    x[3] = 1
    for a, b in (p.anchors for p in sample_probes(x, n=30, random_state=0)):
        assert (a != b).any()


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (np.zeros((9, 2)), {}, "only identical points"),
        (np.empty((0, 2)), {}, "data are empty"),
        ([], {}, "shape|empty"),
        ("digits", {}, "is text: load the data first"),
        ([{"x": 1.0}, {"x": 2.0}], {}, "must be numbers"),
        ([(np.ones(2), 0), (np.ones(3), 1)], {"n": 50}, "differ in shape"),
        (TensorDataset(torch.eye(3)), {"classes": "same"}, "needs the class of each point"),
        (np.ones((1, 2)), {}, "dimension 1 needs 2 points, the data have 1"),
        (np.eye(3), {"dim": 3}, "dimension 3 needs 4 points, the data have 3"),
        (np.ones(5), {}, r"shape \(5,\)"),
        (np.array([["a"], ["b"]]), {}, "must be numbers"),
        (
            np.array([[1.0], [np.nan], [np.inf]]),
            {},
            "2 of 3 points hold NaN or infinite values, the first at row 1",
        ),
        (np.eye(3), {"how": "pair"}, "unknown how 'pair'.*did you mean 'pairs'"),
        (np.eye(3), {"classes": "sam"}, "unknown classes 'sam'.*did you mean 'same'"),
        (np.eye(3), {"classes": "same"}, "needs the class of each point"),
        (np.eye(3), {"classes": "same", "y": [0, 1, 2]}, "no class has 2 points"),
        (np.eye(3), {"classes": "different", "y": [0, 0, 0]}, "have 1 classes"),
        (np.eye(3), {"y": [0, 1]}, "2 labels for 3 points"),
        (np.eye(3), {"y": [[0], [1], [2]]}, "one label per point"),
        (np.eye(3), {"dim": 0}, "dim=0 is too small"),
        (np.eye(3), {"n": 0}, "n=0 is too small"),
        (np.eye(3), {"dim": 2, "span": (-1, 2)}, "needs dim=1"),
        (np.eye(3), {"how": "direction", "length": 0.0}, "needs a positive length"),
        (np.ones((3, 2)), {"how": "direction"}, "give the length of a direction"),
        (np.eye(3), {"length": 1.0}, "belongs to how='direction'"),
        (np.ones((3, 2)), {"how": "direction", "length": 1e-300}, "same point"),
        (np.eye(3), {"how": "direction", "length": 1.0, "classes": "same"}, "a direction has no class"),
    ],
)
def test_bad_requests(data, options, message):
    with pytest.raises(ProbeError, match=message):
        sample_probes(data, random_state=0, **options)
