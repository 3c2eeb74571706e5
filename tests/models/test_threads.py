"""Several threads measure at once: counts are those of one thread, and modules are as they were found."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import nn

import inscape
from inscape.models.torch_module import untouched

X = np.random.default_rng(0).normal(size=(40, 3))
N_THREADS = 8


class Noisy(nn.Module):
    """Counts its calls, keeps what it computes, draws random numbers, and is another function in training."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.drop = nn.Linear(3, 12), nn.BatchNorm1d(12), nn.Dropout(0.5)
        self.last = nn.Linear(12, 3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        torch.rand(2)
        np.random.random(2)  # noqa: NPY002
        self.kept = self.drop(self.norm(self.first(x)))
        return self.last(torch.tanh(self.kept))


def network(seed=0):
    torch.manual_seed(seed)
    net = Noisy().train()
    net.first.weight.data *= 4
    net.last.bias.data.zero_()
    net.drop.eval()
    return net


def observable(net):
    return (
        [m.training for m in net.modules()],
        {k: v.tolist() for k, v in net.state_dict().items()},
        torch.get_rng_state().tolist(),
        np.random.get_state()[1].tolist(),  # noqa: NPY002
        random.getstate(),
    )


def all_at_once(*functions):
    barrier = threading.Barrier(len(functions))

    def run(function):
        barrier.wait(timeout=60)
        return function()

    with ThreadPoolExecutor(len(functions)) as pool:
        return [f.result(timeout=120) for f in [pool.submit(run, function) for function in functions]]


def counts(net, **options):
    return inscape.region_count(net, X, n_probes=6, random_state=0, **options).counts.tolist()


def test_eight_threads_count_one_module_in_training_mode():
    net = network()
    expected = {how: counts(net, method=how) for how in ("adaptive", "grid")}
    before = observable(net)
    for _ in range(2):
        found = all_at_once(*[lambda how=how: counts(net, method=how) for how in expected] * (N_THREADS // 2))
        assert found == [*expected.values()] * (N_THREADS // 2)
        assert observable(net) == before


def test_eight_threads_count_one_wrapped_piecewise_affine_module_exactly():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(3, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(), nn.Linear(12, 3)
    ).train()
    expected = counts(net, method="exact")
    model = inscape.wrap(net)
    modes = [m.training for m in net.modules()]
    assert all_at_once(*[lambda: counts(model, method="exact")] * N_THREADS) == [expected] * N_THREADS
    assert [m.training for m in net.modules()] == modes
    with torch.no_grad():
        net[4].weight.zero_()
        net[4].bias.copy_(torch.tensor([1.0, 0.0, 0.0]))
    assert model.labels(X).max() == 0
    assert model.graph((3,)).evaluate(torch.zeros(1, 3)).tolist() == [[1.0, 0.0, 0.0]]


def test_two_modules_nested_in_opposite_order_do_not_wait_for_each_other():
    a, b = network(0), network(1)
    inside = threading.Barrier(2)

    def measure(outer, inner):
        with untouched(outer):
            inside.wait(timeout=60)
            return counts(inner, method="grid")

    alone = counts(a, method="grid"), counts(b, method="grid")
    before = observable(a), observable(b)
    assert all_at_once(lambda: measure(a, b), lambda: measure(b, a)) == [alone[1], alone[0]]
    assert (observable(a), observable(b)) == before


def test_a_shared_layer_stays_in_eval_mode_until_the_last_session_ends():
    layer = nn.BatchNorm1d(3).train()
    a, b = nn.Sequential(layer), nn.Sequential(layer, nn.ReLU())
    first, second = untouched(a), untouched(b)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not layer.training
    assert a.training
    second.__exit__(None, None, None)
    assert layer.training
