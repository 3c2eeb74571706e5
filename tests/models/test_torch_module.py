"""A torch module is left as it was found, whatever is evaluated of it."""

import random

import numpy as np
import pytest
import torch
from torch import nn

import inscape
from inscape.errors import ModelError, PartitionError
from inscape.models import torch_module


class Nasty(nn.Module):
    """Draws random numbers, counts its calls and has batch-norm, dropout and mixed modes."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(3, 2)
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("cache", None)
        self.fail = False

    def forward(self, x):
        self.calls += 1
        self.cache = x.mean(0)
        torch.rand(3)
        torch.set_default_dtype(torch.float64)
        self.register_buffer("late", torch.ones(1))
        np.random.random(3)  # noqa: NPY002
        random.random()
        if self.fail:
            raise RuntimeError("boom")
        return self.head(self.drop(self.norm(x)))


@pytest.fixture
def module():
    torch.manual_seed(0)
    m = Nasty()
    m.train()
    m.norm.eval()
    m.head.weight.requires_grad_(False)
    m.head.bias.data.zero_()
    m.head.bias.grad = torch.ones(2)
    return m


@pytest.fixture(autouse=True)
def default_dtype():
    """The nasty module changes it, also when a test calls it directly."""
    yield
    torch.set_default_dtype(torch.float32)


def observable(module):
    return {
        "modes": [m.training for m in module.modules()],
        "requires_grad": [p.requires_grad for p in module.parameters()],
        "grads": [None if p.grad is None else p.grad.tolist() for p in module.parameters()],
        "state": {k: v.tolist() for k, v in module.state_dict().items()},
        "buffers": {k: None if v is None else v.tolist() for k, v in module._buffers.items()},
        "hooks": [(len(m._forward_hooks), len(m._forward_pre_hooks)) for m in module.modules()],
        "torch": torch.get_rng_state().tolist(),
        "numpy": np.random.get_state()[1].tolist(),  # noqa: NPY002
        "numpy position": np.random.get_state()[2],  # noqa: NPY002
        "python": random.getstate(),
        "dtype": torch.get_default_dtype(),
        "grad mode": torch.is_grad_enabled(),
        "threads": torch.get_num_threads(),
    }


@pytest.mark.parametrize("aspect", list(observable(nn.Linear(1, 1))))
@pytest.mark.parametrize("fail", [False, True])
def test_a_module_is_left_as_it_was_found(module, aspect, fail, rng):
    module.register_forward_hook(lambda *_: None)
    module.fail = fail
    before = observable(module)[aspect]
    x = rng.normal(size=(20, 3))
    if fail:
        with pytest.raises(ModelError, match="boom"):
            inscape.region_count(module, x, n_probes=20, resolution=10, random_state=0)
    else:
        inscape.region_count(module, x, n_probes=20, resolution=10, random_state=0)
        inscape.wrap(module).scores(x)
    assert observable(module)[aspect] == before


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("norm", [nn.utils.weight_norm, nn.utils.spectral_norm])
def test_weights_made_by_hooks_keep_their_gradients(norm, rng):
    net = norm(nn.Linear(3, 2))
    net(torch.zeros(1, 3))
    before = net.weight
    inscape.wrap(net).labels(rng.normal(size=(5, 3)))
    assert net.weight is before
    assert net.weight.requires_grad


def test_layers_that_make_no_function_of_a_point():
    with pytest.raises(ModelError, match="lazy layer 0 has no value yet"):
        inscape.wrap(nn.Sequential(nn.LazyLinear(3)))
    with pytest.raises(ModelError, match="1 is a batch-norm without running statistics"):
        inscape.wrap(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3, track_running_stats=False)))
    inscape.wrap(nn.Sequential(nn.InstanceNorm1d(3)))  # of one point alone


@pytest.mark.filterwarnings("ignore")
def test_frozen_torchscript(rng):
    net = nn.Linear(2, 3).eval()
    x = rng.normal(size=(4, 2))
    frozen = torch.jit.freeze(torch.jit.script(net))
    assert (inscape.wrap(frozen).labels(x) == inscape.wrap(net).labels(x)).all()


def test_buffers_keep_their_identity(module, rng):
    buffer = module.calls
    inscape.wrap(module).labels(rng.normal(size=(5, 3)))
    assert module.calls is buffer


def test_evaluation_is_in_eval_mode(module, rng):
    x = rng.normal(size=(50, 3))
    m = inscape.wrap(module)
    assert (m.scores(x) == m.scores(x)).all()
    module.eval()
    expected = module(torch.from_numpy(x).float()).detach().numpy()
    assert np.allclose(m.scores(x), expected, atol=1e-6)


def test_what_a_module_caches_can_be_trained_with():
    class Caching(nn.Linear):
        def forward(self, x):
            if not hasattr(self, "cached"):
                self.cached = torch.ones(2)
            return super().forward(x) * self.cached

    net = Caching(2, 2)
    inscape.wrap(net).labels(np.ones((3, 2)))
    net(torch.ones(3, 2)).sum().backward()  # fails if the cache is an inference tensor


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_precision_follows_the_module(dtype, rng):
    net = nn.Linear(2, 3).to(dtype)
    m = inscape.wrap(net)
    assert m.dtype == (np.float64 if dtype == torch.float64 else np.float32)
    assert m.scores(rng.normal(size=(4, 2))).dtype == m.dtype


@pytest.mark.parametrize("squeeze", [False, True])
def test_one_output_is_a_sign(squeeze):
    net = nn.Sequential(nn.Linear(1, 1, bias=False), *([nn.Flatten(0)] if squeeze else []))
    net[0].weight.data.fill_(1.0)
    m = inscape.wrap(net)
    assert m.labels([[-1.0], [0.0], [1.0]]).tolist() == [0, 0, 1]
    assert m.scores([[-1.0], [0.0], [1.0]]).shape == (3, 1)


def test_one_output_behind_a_sigmoid_is_compared_with_one_half():
    for act in (nn.ReLU(), nn.GELU()):
        torch.manual_seed(0)
        body = nn.Sequential(nn.Linear(1, 8), act, nn.Linear(8, 1))
        x = np.linspace(-3, 3, 101)[:, None]
        body[2].bias.data -= np.median(inscape.wrap(body).scores(x))
        m = inscape.wrap(nn.Sequential(body, nn.Sigmoid()))
        assert (m.labels(x) == inscape.wrap(body).labels(x)).all()
        assert ((m.scores(x)[:, 0] > 0) == m.labels(x)).all()
    net = nn.Sequential(nn.Linear(1, 1), nn.Sigmoid())
    segment = inscape.Segment([-9.0], [9.0])
    exact, grid = (inscape.decision_regions(net, segment, method=how) for how in ("exact", "grid"))
    assert exact.labels.tolist() == grid.labels.tolist()


def test_integer_output_is_labels():
    class Argmax(nn.Module):
        def forward(self, x):
            return x.argmax(1)

    assert inscape.wrap(Argmax()).labels([[0.0, 1.0], [1.0, 0.0]]).tolist() == [1, 0]


def test_logits_of_a_structured_output():
    class Output:
        def __init__(self, logits):
            self.logits = logits

    class Net(nn.Module):
        def forward(self, x):
            return Output(x)

    assert inscape.wrap(Net()).labels([[0.0, 1.0]]).tolist() == [1]


def test_images_and_input_shape(rng):
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(4 * 36, 5))
    images = rng.normal(size=(6, 1, 8, 8))
    m = inscape.wrap(net, input_shape=(1, 8, 8))
    assert (m.labels(images) == m.labels(images.reshape(6, 64))).all()
    with pytest.raises(ModelError, match=r"expects points of shape \(1, 8, 8\), got \(63,\)"):
        m.labels(np.zeros((2, 63)))
    with pytest.raises(ModelError, match=r"batch of shape \(2, 3, 8, 8\).*takes 1 channels.*input_shape"):
        inscape.wrap(net).labels(np.zeros((2, 3, 8, 8)))


def test_device(rng):
    net = nn.Linear(2, 2)
    x = rng.normal(size=(3, 2))
    assert (inscape.wrap(net, device="cpu").labels(x) == inscape.wrap(net).labels(x)).all()
    with pytest.raises(ModelError, match="device='no-such-device' cannot be used"):
        inscape.wrap(net, device="no-such-device")


def test_another_device_runs_a_copy(monkeypatch):
    net = nn.Linear(2, 2)
    with pytest.raises(ModelError, match="device='meta' computes nothing"):
        inscape.wrap(net, device="meta")
    monkeypatch.setattr(torch_module, "as_device", torch.device)  # the only other device everywhere
    m = inscape.wrap(net, device="meta")
    assert m.module is not net
    assert net.weight.device.type == "cpu"


def test_a_module_without_values_says_how_to_load_them():
    with torch.device("meta"):
        net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    x = np.arange(8.0).reshape(4, 2)
    for call in (
        inscape.wrap,
        lambda n: inscape.region_count(n, x),
        lambda n: inscape.sharpness(n, x, [0] * 4),
    ):
        with pytest.raises(ModelError, match=r"weight of 0 is on the meta device.*to_empty.*load_state_dict"):
            call(net)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_network_of_few_bits_is_counted_adaptively_and_says_why(dtype):
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 3)).to(dtype)
    x = np.random.default_rng(0).normal(size=(30, 2)) * 2
    name = str(dtype).removeprefix("torch.")
    for dim in (1, 2):
        found = inscape.region_count(net, x, n_probes=10, dim=dim, random_state=0)
        assert found.method == "adaptive"
        assert found.reason == (
            f"Sequential cannot be counted exactly since its parameters are {name}, whose rounding turns its "
            "linear pieces into steps"
        )
        with pytest.raises(PartitionError, match=rf"{name}.*convert it to float32 .*\.float\(\)"):
            inscape.region_count(net, x, n_probes=10, dim=dim, method="exact")
    with pytest.raises(PartitionError, match=rf"{name}.*convert it to float32 .*\.float\(\)"):
        inscape.linear_regions(net, inscape.Segment(x[0], x[1]))
    counts = inscape.region_count(net, x, n_probes=10, random_state=0).counts
    truth = inscape.region_count(net.float(), x, n_probes=10, random_state=0)
    assert truth.method == "exact"
    assert np.mean(counts == truth.counts) >= 0.8  # rounding makes slivers of its own at a boundary


def test_nan_scores_are_located_on_the_probe():
    class Hole(nn.Module):
        def forward(self, x):
            return torch.cat([x, torch.where(x > 0.5, torch.nan, 0.0)], dim=1)

    probes = [inscape.Segment([0.0], [0.4]), inscape.Segment([0.0], [1.0])]
    with pytest.raises(ModelError, match=r"NaN or infinite scores.*probe 1 at t=0\.6"):
        inscape.decision_regions(Hole(), probes, resolution=6)


def test_a_tuple_output_is_explained():
    class Pair(nn.Module):
        def forward(self, x):
            return x, x

    with pytest.raises(ModelError, match="returned a tuple"):
        inscape.wrap(Pair()).labels([[1.0]])


def test_fingerprint_follows_the_weights():
    net = nn.Linear(2, 2)
    m = inscape.wrap(net)
    before = m.fingerprint()
    assert before == m.fingerprint()
    net.weight.data += 1
    assert m.fingerprint() != before
