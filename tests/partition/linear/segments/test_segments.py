"""Linear pieces: closed forms, trusted counts, degenerate cases, arguments and results."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import zoo
from activity import check_pieces
from networks import mlp
from torch import nn

from inscape import Patch, Segment, wrap
from inscape.errors import ModelError, PartitionError, ProbeError
from inscape.partition.linear import linear_regions

DATA = Path(__file__).parents[3] / "data"
BENCH = Path(os.environ["INSCAPE_BENCH"]) if "INSCAPE_BENCH" in os.environ else None


def network(*layers):
    """A relu network from (weight, bias) pairs."""
    modules = []
    for weight, bias in layers:
        linear = nn.Linear(*reversed(np.shape(weight))).double()
        linear.weight.data, linear.bias.data = (torch.tensor(v, dtype=torch.float64) for v in (weight, bias))
        modules += [linear, nn.ReLU()]
    return nn.Sequential(*modules[:-1])


def random_segments(shape, n, *, seed=0, span=(0.0, 1.0)):
    rng = np.random.default_rng(seed)
    return [Segment(rng.normal(size=shape), rng.normal(size=shape), span=span) for _ in range(n)]


# closed forms


def test_h_generic_neurons_on_a_line_give_h_plus_one_pieces():
    knots = np.sort(np.random.default_rng(0).uniform(0.05, 0.95, 40))
    net = network((np.ones((40, 1)), -knots), (np.arange(1.0, 41.0)[None], [0.0]))
    q = linear_regions(net, Segment([0.0], [1.0]))
    assert q.n_regions == q.n_linear == 41
    assert np.allclose(q.knots, knots, rtol=0, atol=1e-15)
    assert q.is_exact
    assert q.status == "complete"


@pytest.mark.parametrize("k", [1, 2, 5, 10])
def test_k_tent_maps_give_two_to_the_k_pieces(k):
    tent = [([[2.0], [4.0]], [0.0, -2.0])]
    inner = [([[2.0, -2.0], [4.0, -4.0]], [0.0, -2.0])] * (k - 1)
    net = network(*tent, *inner, ([[1.0, -1.0]], [0.0]))
    q = linear_regions(net, Segment([0.0], [1.0]))
    assert q.n_linear == 2**k
    assert np.array_equal(q.knots[np.isin(q.knots * 2**k % 1, 0)], np.arange(1, 2**k) / 2**k)
    assert np.allclose(np.abs(q.slopes), 2.0**k)


def test_slopes_are_those_of_the_net():
    net = network(([[1.0], [1.0]], [0.0, -0.5]), ([[1.0, 3.0], [-1.0, 0.0]], [0.0, 1.0]))
    q = linear_regions(net, Segment([-1.0], [1.0]))
    assert np.allclose(q.knots, [0.5, 0.75])
    assert np.allclose(q.slopes, [[0, 0], [2, -2], [8, -2]])


# trusted counts: networks of our own, counted once and confirmed by activities at the pieces' ends


@pytest.mark.parametrize(
    ("sizes", "counts"),
    [
        ((2, 32, 32, 1), [22, 51, 20, 5]),
        ((2, 64, 64, 64, 1), [65, 107, 67, 27]),
        ((50, 40, 40, 40, 40, 10), [82, 72, 72, 66]),
    ],
)
def test_counts_of_seeded_nets_are_confirmed_piece_by_piece(sizes, counts):
    net = mlp(*sizes).double()
    segments = random_segments(sizes[:1], 4)
    results = linear_regions(net, segments)
    assert [q.n_regions for q in results] == counts
    for segment, q in zip(segments, results, strict=True):
        check_pieces(wrap(net).graph(sizes[:1]), segment, q.knots)


# activation pieces on the first twelve segments, agreed between a float64 reference and independent tools
GOLDEN = {
    "mlp_2_32x2_1": [25, 35, 28, 22, 9, 33, 39, 6, 22, 7, 11, 42],
    "mlp_2_64x3_1": [81, 115, 61, 100, 27, 130, 111, 13, 75, 31, 32, 141],
    "mlp_2_128x3_10": [142, 189, 118, 159, 44, 224, 187, 18, 137, 70, 63, 236],
    "mlp_784_200x4_10": [149, 128, 137, 128, 147, 165, 169, 158, 158, 161, 154, 156],
}


@pytest.mark.parametrize("name", GOLDEN)
def test_counts_that_other_tools_agree_on(name):
    folder = DATA if (DATA / f"{name}.npz").exists() else BENCH
    if folder is None:
        pytest.skip("the larger networks are not shipped: INSCAPE_BENCH names their folder")
    arrays = np.load(folder / f"{name}.npz")
    net = network(*((arrays[f"W{i}"], arrays[f"b{i}"]) for i in range(len(arrays) // 2)))
    geometry = "geom_784" if "784" in name else "geom_2d"
    ends = np.load(folder / f"{geometry}.npz")["segments"]
    segments = [Segment(a, b) for a, b in ends[: len(GOLDEN[name])]]
    assert [q.n_regions for q in linear_regions(net, segments)] == GOLDEN[name]


# one batch, bounded memory


@pytest.mark.slow
def test_a_batch_equals_its_segments_and_memory_changes_nothing():
    net = zoo.make("vgg")
    segments = random_segments((3, 16, 16), 3, span=(-0.5, 1.5))
    together = linear_regions(net, segments)
    small = linear_regions(net, segments, memory=2**20)
    for segment, a, b in zip(segments, together, small, strict=True):
        alone = linear_regions(net, segment)
        assert np.allclose(a.knots, alone.knots, rtol=0, atol=1e-12)
        assert np.allclose(a.knots, b.knots, rtol=0, atol=1e-12)
        assert a.n_linear == alone.n_linear == b.n_linear


# degenerate cases


def test_a_knot_shared_by_several_neurons_is_one_knot():
    weight = np.array([[1.0], [3.0], [-0.7], [1.0]])
    net = network((weight, -weight[:, 0] * [0.3, 0.3, 0.3, 0.6]), (np.ones((1, 4)), [0.0]))
    q = linear_regions(net, Segment([0.0], [1.0]))
    assert np.allclose(q.knots, [0.3, 0.6])


def test_a_later_neuron_that_bends_at_an_earlier_knot_adds_none():
    net = network(([[1.0], [-1.0]], [-0.3, 0.3]), ([[0.7, -0.7]], [0.0]), ([[1.0]], [0.0]))
    q = linear_regions(net, Segment([0.0], [1.0]))  # the second layer sees 0.7 (x - 0.3)
    assert np.allclose(q.knots, [0.3])


def test_a_neuron_that_is_zero_on_an_interval():
    # u = relu(x - 1/3) - relu(x - 1/3) in two roundings: zero but for noise where x > 1/3
    net = network(
        ([[1.0], [3.0], [-1.0]], [-1 / 3, -1.0, 0.8]),
        ([[3.0, -1.0, 0.0], [0.0, 0.0, 1.0]], [0.0, -0.1]),
        ([[1.0, 1.0]], [0.0]),
    )
    q = linear_regions(net, Segment([0.0], [1.0]))
    assert np.allclose(q.knots, [1 / 3, 0.7, 0.8])
    assert "special position" in q.status
    assert q.n_on_kink > 0


def test_a_segment_that_runs_along_a_kink():
    net = network(([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]], [0.0, 0.0, 0.0]), ([[1.0, 2.0, 3.0]], [0.0]))
    q = linear_regions(net, Segment([0.0, -1.0], [0.0, 2.0]))
    assert np.allclose(q.knots, [1 / 3])
    assert "special position" in q.status


def test_a_neuron_without_influence_makes_a_knot_but_no_change_of_slope():
    net = network((np.ones((3, 1)), [-0.2, -0.4, -0.6]), ([[1.0, 0.0, 1.0]], [0.0]))
    q = linear_regions(net, Segment([0.0], [1.0]))
    assert (q.n_regions, q.n_linear) == (4, 3)


def test_dead_units_and_tiny_weights_are_counted():
    net = network((np.array([[1.0], [1e-20], [1.0]]), [-0.2, -0.4e-20, 5.0]), ([[1.0, 1.0, 0.0]], [0.0]))
    assert np.allclose(linear_regions(net, Segment([0.0], [1.0])).knots, [0.2, 0.4])


def test_a_zero_length_segment_cannot_be_built():
    with pytest.raises(ProbeError, match="the same point"):
        Segment([1.0], [1.0])


def test_a_constant_network_is_one_piece():
    net = network((np.zeros((3, 2)), [1.0, 0.0, -1.0]), (np.zeros((2, 3)), [0.0, 0.0]))
    q = linear_regions(net, Segment([0.0, 0.0], [1.0, 1.0]))
    assert (q.n_regions, q.n_linear, q.knots.size) == (1, 1, 0)


def test_an_affine_network_is_one_piece():
    q = linear_regions(nn.Linear(3, 2), Segment(np.zeros(3), np.ones(3)))
    assert (q.n_regions, q.n_linear) == (1, 1)


def test_all_zero_windows_of_a_pool_make_no_knots():
    net = nn.Sequential(nn.ReLU(), nn.MaxPool1d(2))
    x = np.array([[-1.0, -1.0, -1.0, 1.0]])
    y = np.array([[-2.0, -3.0, 3.0, 0.0]])
    q = linear_regions(net, Segment(x, y))
    # relus change at 1/4 and at the end; the second window changes winner where 4t - 1 = 1 - t
    assert np.allclose(q.knots, [0.25, 0.4])


# trained networks


def test_a_trained_network_is_exact_on_real_data(digits):
    x, y = digits.x[:300].reshape(300, -1), digits.y[:300]
    net = fitted(mlp(64, 24, 24, 10), x, y)
    segments = [Segment(x[i], x[i + 1]) for i in range(0, 12, 2)]
    model = wrap(net)
    for segment, q in zip(segments, linear_regions(model, segments), strict=True):
        check_pieces(model.graph((64,)), segment, q.knots)
        assert q.n_linear <= q.n_regions


def fitted(net, x, y, steps=150):
    x, y = torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02, weight_decay=1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    return net


# results and arguments


def test_the_result_is_plain_to_read_and_to_draw():
    net = mlp(3, 8, 4)
    q = linear_regions(net, Segment(np.zeros(3), np.ones(3), span=(-1, 2)))
    d = json.loads(json.dumps(q.to_dict()))
    assert d["n_regions"] == q.n_regions == len(d["knots"]) + 1
    assert d["precision"] == "float64"
    assert repr(q).startswith(f"<{q.n_regions} linear pieces on Segment")
    ax = q.plot()
    assert ax.get_xlim() == (-1, 2)
    assert len(ax.lines) == 4
    t = np.array([-1.0, *q.knots, 2.0])
    scores = wrap(net.double()).scores(q.probe.points(t))
    drawn = np.stack([line.get_ydata() for line in ax.lines], axis=1)
    assert np.allclose(drawn, scores, atol=1e-9)


def test_progress_runs_to_the_end():
    seen = []
    linear_regions(
        mlp(3, 8, 4), random_segments((3,), 5), progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (5000, 5000)
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"precision": "float16"}, PartitionError, "unknown precision 'float16'"),
        ({"memory": 0}, PartitionError, "memory=0 is too small.*in bytes"),
        ({"tolerance": -1}, PartitionError, "tolerance=-1 must be a number of at least 0"),
        ({"memory": "a"}, PartitionError, "memory='a' is not a whole number"),
        ({"tolerance": "a"}, PartitionError, "tolerance='a' must be a number of at least 0"),
        ({"probe": []}, ProbeError, "got an empty list"),
        ({"probe": [Segment([0.0], [1.0]), Segment([[0.0]], [[1.0]])]}, ProbeError, "must share a shape"),
        ({"probe": ["x"]}, ProbeError, "got a str"),
        (
            {"model": wrap(mlp(3, 8, 4), input_shape=(3,)), "probe": Segment([0.0], [1.0])},
            ModelError,
            "expects points of shape",
        ),
        ({"model": mlp(3, 8, 4), "probe": Segment([0.0], [1.0])}, ModelError, "failed on a batch"),
        ({"model": nn.Sequential(nn.Linear(1, 3), nn.GELU())}, PartitionError, 'GELU in 1.*method="grid"'),
        ({"model": lambda x: x}, PartitionError, "black-box model"),
    ],
)
def test_a_wrong_argument_is_explained(arguments, error, message):
    defaults = {"model": mlp(1, 4, 2), "probe": Segment([0.0], [1.0])}
    with pytest.raises(error, match=message):
        linear_regions(**{**defaults, **arguments})


@pytest.mark.parametrize("slope", [1.0, 0.5])
def test_a_leaky_relu_without_a_bend_cuts_nothing(slope):
    net = nn.Sequential(nn.Linear(2, 3), nn.LeakyReLU(slope), nn.Linear(3, 1)).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])), net[0].bias.zero_()
    segment = linear_regions(net, Segment([-1.0, -2.0], [2.0, 1.0]))
    plane = linear_regions(net, Patch([0.0, 0.0], np.eye(2)))
    assert (segment.n_regions, plane.n_regions) == ((1, 1) if slope == 1.0 else (4, 6))
    assert plane.patterns.shape == (plane.n_regions, 3)


WALKING = """
import resource, numpy as np, torch, inscape
from torch import nn
torch.manual_seed(0)
layers = [nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4096, 10)]
net = nn.Sequential(*layers)
x = np.random.default_rng(0).normal(size=(30, 3, 32, 32)).astype(np.float32)
probes = inscape.sample_probes(x, n=10, random_state=0)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
inscape.decision_regions(net.eval(), probes, method="exact", budget=None, n_jobs={n_jobs})
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in kilobytes on Linux only")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_walk_through_convolutions_takes_little_more_memory_than_its_tensors(n_jobs):
    """These hold a quarter of a gigabyte; what the allocator kept of them was up to ten."""
    code = WALKING.format(n_jobs=n_jobs)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 1.5
