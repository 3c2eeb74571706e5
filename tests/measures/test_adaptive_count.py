"""The region count by the adaptive method."""

import json
import tracemalloc

import numpy as np
import pytest
import torch
from torch import nn

import inscape
from inscape.measures.region_count import Counter, RegionCount
from inscape.probes.sampling import draw_probes


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 30), nn.Tanh(), nn.Linear(30, 4)).double()
    for p in net.parameters():
        p.data.normal_(std=1.5)
    return net


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).uniform(-2, 2, size=(200, 2))


@pytest.mark.parametrize("dim", [1, 2])
def test_counts_are_those_of_decision_regions(net, x, dim):
    r = inscape.region_count(net, x, dim=dim, n_probes=20, random_state=3)
    probes = inscape.sample_probes(x, dim=dim, n=20, random_state=3)
    found = inscape.decision_regions(net, probes, method="adaptive")
    assert r.method == "adaptive"
    assert r.counts.tolist() == [p.n_regions for p in found]
    assert r.n_evaluations == sum(p.n_evaluations for p in found)
    assert np.isclose(r.missed, np.mean([p.missed for p in found]))
    assert r.settings["connectivity"] is None
    assert not r.is_exact


def test_it_agrees_with_a_grid_of_two_thousand_points_at_a_fiftieth_of_its_cost(net, x):
    ours = inscape.region_count(net, x, method="adaptive", random_state=0)
    grid = inscape.region_count(net, x, method="grid", resolution=2000, random_state=0)
    assert ours.counts.tolist() == grid.counts.tolist()
    assert ours.n_evaluations < grid.n_evaluations / 50
    assert ours.status == "converged"
    assert ours.coarse_mean is None


def test_json_round_trip(net, x):
    r = inscape.region_count(net, x, n_probes=7, random_state=0)
    again = RegionCount.from_dict(json.loads(json.dumps(r.to_dict())))
    assert again.to_dict() == r.to_dict()
    assert again.missed_basis == r.missed_basis


def test_rank_and_measure_take_it(net, x):
    other = nn.Sequential(nn.Linear(2, 4)).double()
    ranking = inscape.rank({"net": net, "line": other}, x, method="adaptive", n_probes=30, random_state=0)
    assert ranking.order[0] == "line"
    assert {r.method for r in ranking.results.values()} == {"adaptive"}
    both = inscape.rank({"net": net, "line": other}, x, n_probes=30, random_state=0)
    assert both.results["net"].method == "adaptive"  # tanh has no exact count
    assert both.results["line"].method == "exact"
    table = inscape.measure(net, x, measures={"region_count": {"method": "adaptive"}}, random_state=0)
    assert table.rows[0]["method"] == "adaptive"


def test_a_finest_step_is_kept(net, x):
    r = inscape.region_count(net, x, method="adaptive", resolution=64, n_probes=5, random_state=0)
    assert r.settings["resolution"] == 64
    assert r.n_evaluations <= 5 * 65 + 30


def test_memory_is_that_of_a_block(monkeypatch, net):
    """Lazy probes are looked at a block at a time."""
    from inscape.partition.decision.adaptive import segments

    monkeypatch.setattr(segments, "MOST_NUMBERS_IN_BLOCK", 2**14)
    x = np.random.default_rng(0).uniform(size=(50, 2))
    peaks = []
    for n in (100, 100, 3000):
        probes = draw_probes(
            x, dim=1, n=n, how="pairs", span=(0, 1), length=None, y=None, classes="any", random_state=0
        )
        tracemalloc.start()
        Counter(probes=probes, method="adaptive").count(inscape.wrap(net))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < peaks[1] + 500_000


def test_progress_counts_probes(net, x):
    seen = []
    inscape.region_count(
        net, x, n_probes=9, random_state=0, progress=lambda done, total: seen.append((done, total))
    )
    assert seen[0] == (0, 9)
    assert seen[-1] == (9, 9)
