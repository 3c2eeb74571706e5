"""Memory that runs out, points on their way to a device, and labels from half precision."""

import numpy as np
import pytest
import torch
from torch import nn

import inscape
from inscape.errors import ModelError
from inscape.models import device as devices
from inscape.models.device import Device, MixedPrecision, margins_of


def net(n_in=6, n_out=4, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(n_in, 32), nn.ReLU(), nn.Linear(32, n_out)).eval()


class Small(nn.Module):
    """A network on a device with memory for `most` points."""

    def __init__(self, module, most):
        super().__init__()
        self.module, self.most, self.lengths = module, most, []

    def forward(self, x):
        self.lengths.append(len(x))
        if len(x) > self.most:
            raise torch.OutOfMemoryError(f"tried to allocate {len(x)} points\nmore lines")
        return self.module(x)


POINTS = np.random.default_rng(0).normal(size=(1000, 6))


@pytest.mark.parametrize("most", [1, 5, 64, 300])
def test_a_batch_that_does_not_fit_is_halved(most):
    plain = inscape.wrap(net())
    small = Small(net(), most)
    model = inscape.wrap(small, batch_size=256)
    np.testing.assert_array_equal(model.labels(POINTS), plain.labels(POINTS))
    np.testing.assert_allclose(model.scores(POINTS), plain.scores(POINTS), rtol=1e-5, atol=1e-6)
    assert model.runs_on.most_points == (None if most >= 256 else 2 ** int(np.log2(most)))
    tried = [n for n in small.lengths if n > most]
    assert len(tried) == len(set(tried))  # what was too long is not tried again
    small.lengths.clear()
    model.labels(POINTS)
    assert max(small.lengths) <= most


def test_counts_are_those_with_enough_memory():
    settings = {"n_probes": 20, "method": "adaptive", "random_state": 0}
    plain = inscape.region_count(net(), 5 * POINTS, **settings)
    scarce = inscape.region_count(Small(net(), 17), 5 * POINTS, **settings)
    assert plain.mean > 1
    np.testing.assert_array_equal(plain.counts, scarce.counts)


def test_one_point_that_does_not_fit_is_an_error():
    with pytest.raises(ModelError, match=r"does not fit into the memory of cpu with one point: tried to all"):
        inscape.wrap(Small(net(), 0)).labels(POINTS[:8])


def test_other_errors_are_not_taken_for_a_lack_of_memory():
    with pytest.raises(ModelError, match="failed on a batch of shape"):
        inscape.wrap(net()).labels(POINTS[:, :5])


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("MPS backend out of memory"), RuntimeError("CUDA error: out of memory")],
)
def test_every_library_says_it_in_its_own_words(error):
    tried = []

    def evaluate(x):
        tried.append(len(x))
        if len(x) > 4:
            raise error
        return len(x)

    assert Device(torch.device("cpu")).in_memory(evaluate, np.zeros((10, 1)), "net") == [2, 2, 1, 2, 2, 1]
    assert tried == [10, 5, 2, 2, 1, 2, 2, 1]


class Accelerator(Device):
    """A device of which transfers are recorded; its tensors are the processor's."""

    def __init__(self, free=2**20):
        super().__init__(torch.device("cuda"))
        self.free, self.sent, self.released = free, [], 0

    def free_memory(self):
        return self.free

    def send(self, x, dtype):
        self.sent.append(x.shape)
        return torch.from_numpy(x).to(dtype)

    def release(self):
        self.released += 1


def test_batches_are_sized_by_free_memory():
    bytes_of_a_point = 4 * 6
    free = 64 * bytes_of_a_point / devices.SHARE_OF_FREE_MEMORY
    model = inscape.wrap(net())
    model.runs_on = Accelerator(int(free))
    model.batch_bytes = model.runs_on.batch_bytes()
    expected = inscape.wrap(net()).labels(POINTS)
    np.testing.assert_array_equal(model.labels(POINTS), expected)
    assert {shape[0] for shape in model.runs_on.sent} <= {16, 32, 8, 64, 1000 % 64}  # first a few, compared
    assert max(shape[0] for shape in model.runs_on.sent) == 64


def test_memory_is_given_back_before_the_next_try():
    model = inscape.wrap(Small(net(), 100), batch_size=400)
    model.runs_on = Accelerator()
    model.labels(POINTS)
    assert model.runs_on.released == 2
    assert max(shape[0] for shape in model.runs_on.sent) == 400


def test_a_device_that_does_not_say_what_is_free():
    device = Device(torch.device("meta"))
    assert device.free_memory() is None
    assert device.batch_bytes() == devices.UNKNOWN_MEMORY * devices.SHARE_OF_FREE_MEMORY


def test_pinned_memory_is_used_again(monkeypatch):
    made = []
    empty = torch.empty

    def pinned(*shape, pin_memory=False, **options):
        made.append(pin_memory)
        return empty(*shape, **options)

    monkeypatch.setattr(torch, "empty", pinned)
    device = Device(torch.device("cuda"))
    rng = np.random.default_rng(0)
    for n in (8, 8, 3, 20, 7):
        x = rng.normal(size=(n, 2, 3)).astype(np.float32)
        np.testing.assert_array_equal(device.staged(torch.from_numpy(x)).numpy(), x)
    assert made == [True, True]  # for 8, and for 20


def test_measures_go_on_with_smaller_batches():
    x, y = POINTS[:100], np.arange(100) % 4
    scarce = Small(net(), 13)
    plain = inscape.sharpness(net(), x, y, random_state=0)
    np.testing.assert_allclose(inscape.sharpness(scarce, x, y, random_state=0).value, plain.value, rtol=1e-6)
    y = inscape.wrap(net()).labels(x)
    attack = {"eps": 0.3, "steps": 3, "step_size": 0.1, "random_state": 0}
    expected = inscape.adversarial_accuracy(net(), x, y, **attack)
    assert 0 < expected.value < 1
    np.testing.assert_array_equal(
        inscape.adversarial_accuracy(scarce, x, y, **attack).robust, expected.robust
    )


# half precision


def noisy(net, size, seed=0):
    """The scores with errors of at most `size`, as of half precision."""
    rng = np.random.default_rng(seed)
    return lambda x: net(x) + rng.uniform(-size, size, size=(len(x), 3))


@pytest.mark.parametrize("size", [1e-4, 1e-2, 0.3])
def test_labels_are_those_of_full_precision(size):
    weights = np.random.default_rng(1).normal(size=(5, 3))
    full = lambda x: x @ weights  # noqa: E731
    mixed, rng = MixedPrecision(), np.random.default_rng(2)
    for _ in range(20):
        x = rng.normal(size=(2000, 5))
        told = mixed.scores(x, noisy(full, size), full)
        np.testing.assert_array_equal(told.argmax(axis=1), full(x).argmax(axis=1))
    assert 0.9 * size < mixed.difference <= size
    if size == 1e-4:
        assert mixed.n_full < 0.12 * mixed.n_points + 2000


def test_a_larger_difference_than_was_known_is_looked_for_in_the_whole_batch():
    full = lambda x: np.tile([0.1, 0.0], (len(x), 1))  # noqa: E731
    half = lambda x: np.tile([0.0, 0.05], (len(x), 1))  # noqa: E731
    mixed = MixedPrecision()
    mixed.difference = 1e-6  # of earlier batches, by which every margin of this one is wide enough
    assert (mixed.scores(np.zeros((160, 1)), half, full).argmax(axis=1) == 0).all()
    assert mixed.difference == pytest.approx(0.1)


def test_the_margin_of_one_score_is_its_distance_to_zero():
    np.testing.assert_array_equal(margins_of(np.array([[-2.0], [0.5]])), [2.0, 0.5])
    np.testing.assert_array_equal(margins_of(np.array([[1.0, 5.0, 2.0], [3.0, 3.0, 1.0]])), [3.0, 0.0])


@pytest.mark.parametrize("n_out", [1, 4])
def test_autocast_of_torch_gives_the_labels_of_float32(n_out):
    module = net(n_out=n_out)
    plain, quick = inscape.wrap(module), inscape.wrap(module, autocast=True)
    x = np.random.default_rng(3).normal(size=(20_000, 6))
    np.testing.assert_array_equal(quick.labels(x), plain.labels(x))
    difference = np.abs(quick.scores(x) - plain.scores(x)).max()
    assert 0 < difference < 0.1  # it is another precision indeed
    assert quick.mixed.n_full < 0.5 * quick.mixed.n_points


def test_regions_are_counted_with_autocast():
    module = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 4))
    settings = {"n_probes": 20, "method": "adaptive", "random_state": 0}
    plain = inscape.region_count(module, POINTS, **settings)
    quick = inscape.region_count(inscape.wrap(module, autocast=True), POINTS, **settings)
    np.testing.assert_array_equal(plain.counts, quick.counts)


def test_autocast_is_for_torch_modules():
    with pytest.raises(ModelError, match=r"autocast=True is for torch modules, and .* is none"):
        inscape.wrap(lambda x: x, autocast=True)


def test_labels_have_no_half_precision():
    class Labels(nn.Module):
        def forward(self, x):
            return (x[:, 0] > 0).long()

    with pytest.raises(ModelError, match="returns labels, no scores that half precision"):
        inscape.wrap(Labels(), autocast=True).labels(POINTS)
