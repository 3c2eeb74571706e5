"""All that evaluates a network on a device whose memory is not the processor's, from end to end."""

import copy

import numpy as np
import pytest
import torch
from elsewhere import NAME, elsewhere
from torch import nn

import inscape
from inscape.errors import ModelError
from inscape.partition.cost_table import cost_table

POINTS = np.random.default_rng(0).normal(size=(300, 1, 8, 8))


def network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = [nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(36, 5)).eval().requires_grad_(False)


@pytest.fixture
def machine(monkeypatch):
    with elsewhere(monkeypatch) as device:
        yield device


def test_labels_and_scores_are_those_of_the_processor(machine):
    module = network()
    here, there = inscape.wrap(module), inscape.wrap(module, device=NAME)
    assert there.device.type == NAME
    assert {t.device.type for t in module.state_dict().values()} == {"cpu"}  # a copy was moved
    n_weights = len(module.state_dict())
    assert len(machine.came) == n_weights
    np.testing.assert_array_equal(there.labels(POINTS), here.labels(POINTS))
    np.testing.assert_array_equal(there.scores(POINTS), here.scores(POINTS))
    assert sum(shape[0] for shape in machine.came[n_weights:]) >= 2 * len(POINTS)
    assert {shape[1:] for shape in machine.came[n_weights:]} == {(1, 8, 8)}  # only points go there
    assert {shape[1:] for shape in machine.left} == {(5,)}  # only scores come back
    assert there.fingerprint() == here.fingerprint()


@pytest.mark.parametrize("method", ["auto", "adaptive", "grid", "exact"])
@pytest.mark.parametrize("dim", [1, 2])
def test_regions_are_those_of_the_processor(machine, method, dim):
    """Exact geometry is float64 on the processor: the device would refuse it."""
    settings = {"method": method, "dim": dim, "n_probes": 3, "random_state": 0}
    module = network()
    here = inscape.region_count(module, 3 * POINTS, **settings)
    there = inscape.region_count(inscape.wrap(module, device=NAME), 3 * POINTS, **settings)
    np.testing.assert_array_equal(there.counts, here.counts)
    assert there.method == here.method
    assert there.mean > 1


def test_a_module_that_is_there_is_evaluated_there(machine):
    module = copy.deepcopy(network()).to(NAME)
    model = inscape.wrap(module)
    assert model.device.type == NAME
    assert model.module is module
    np.testing.assert_array_equal(model.labels(POINTS), inscape.wrap(network()).labels(POINTS))


def test_where_its_memory_runs_out_batches_are_halved_and_nothing_is_lost(machine):
    settings = {"method": "adaptive", "n_probes": 20, "random_state": 0}
    here = inscape.region_count(network(), POINTS, **settings)
    model = inscape.wrap(network(), device=NAME, batch_size=128)
    machine.most = 20 * 4 * 36  # the first layer at 20 points
    np.testing.assert_array_equal(model.labels(POINTS), inscape.wrap(network()).labels(POINTS))
    assert machine.n_refused == 3  # 128, 64 and 32
    assert model.runs_on.most_points == 16
    there = inscape.region_count(model, POINTS, **settings)
    np.testing.assert_array_equal(there.counts, here.counts)
    assert machine.n_refused == 3


def test_half_precision_there_gives_the_labels_of_full_precision(machine):
    model = inscape.wrap(network(), device=NAME, autocast=True)
    np.testing.assert_array_equal(model.labels(POINTS), inscape.wrap(network()).labels(POINTS))
    assert model.mixed.difference > 0  # it is another precision indeed
    model.labels(POINTS)
    assert model.mixed.n_full < model.mixed.n_points


def test_sharpness_is_computed_by_the_processor_where_there_is_no_float64(machine):
    from inscape.models.device import in_precision

    there = in_precision(copy.deepcopy(network()).to(NAME), torch.float64)
    assert {(p.device.type, p.dtype) for p in there.parameters()} == {("cpu", torch.float64)}
    half = in_precision(copy.deepcopy(network()).to(NAME), torch.float32)
    assert {p.device.type for p in half.parameters()} == {NAME}


def test_a_network_in_float64_is_refused_where_there_is_none(machine):
    with pytest.raises(
        ModelError, match=rf"float64, in which {NAME} computes nothing: convert it with .float"
    ):
        inscape.wrap(network().double(), device=NAME)


def test_costs_are_those_of_the_device(machine):
    table = cost_table(inscape.wrap(network(), device=NAME), POINTS, n_probes=5, random_state=0)
    assert table.device == NAME
    assert all(row["seconds"] > 0 for row in table.rows)
    assert (
        "8 x maia"
        in cost_table(
            inscape.wrap(network(), device=NAME), POINTS, method="grid", n_workers=8, random_state=0
        ).to_text()
    )


def test_what_was_sent_is_answered_before_the_next_call_may_write_over_it(monkeypatch):
    """Pinned memory is copied from later than it is filled: threads take turns until the answer is back."""
    from inscape.models import torch_module

    is_held = []

    class Answer(torch.Tensor):
        def cpu(self):
            seen.append(bool(is_held))
            return super().cpu()

    class Lock:
        def __enter__(self):
            is_held.append(True)

        def __exit__(self, *error):
            is_held.pop()

    class Asked(nn.Module):
        def forward(self, x):
            return x.flatten(1)[:, :3].as_subclass(Answer)

    seen = []
    monkeypatch.setattr(torch_module, "one_at_a_time", lambda module: Lock())
    inscape.wrap(Asked()).labels(POINTS)
    assert seen
    assert all(seen)
