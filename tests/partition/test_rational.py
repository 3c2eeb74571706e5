"""Exact counts of networks against rational arithmetic, and inputs near the ends of floats."""

from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn

import inscape
from inscape import Segment
from tests.oracles.comparison import judged
from tests.oracles.families import FAMILIES, case
from tests.oracles.rational import decision_on, exact_pieces, layers_of

N_NETS = 25
MAY_BE_REFUSED = {"duplicated units": 2}
MAY_BE_FLAGGED = {"tiny and huge weights": 2}
"""Where scores that differ in truth may be equal up to rounding: these families only, and rarely."""


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_exact_counts_agree_with_rational_arithmetic(family):
    verdicts = [judged(case(family, k)) for k in range(N_NETS)]
    decision, linear = Counter(v.decision for v in verdicts), Counter(v.linear for v in verdicts)
    assert (decision["wrong"], linear["wrong"]) == (0, 0)
    assert decision["refused"] <= MAY_BE_REFUSED.get(family, 0)
    uncertain = sum(v.decision in ("tied", "flagged") and v.is_decidable for v in verdicts)
    assert decision["flagged"] <= uncertain <= MAY_BE_FLAGGED.get(family, 0)
    assert max((o for v in verdicts for o in v.offsets), default=0.0) <= 1


def without_last_bias(seed, *, hidden_bias=True, n_out=3):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(2, 8, bias=hidden_bias),
        nn.ReLU(),
        nn.Linear(8, 4, bias=hidden_bias),
        nn.ReLU(),
        nn.Linear(4, n_out, bias=False),
    )


def truth(net, start, end):
    return decision_on(exact_pieces(layers_of(net), start, end))


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("n_out", [1, 3])
@pytest.mark.parametrize("hidden_bias", [True, False])
def test_scores_that_are_all_equal_are_ties(hidden_bias, n_out, precision):
    rng = np.random.default_rng(5)
    n_tied = 0
    for seed in range(12):
        net = without_last_bias(seed, hidden_bias=hidden_bias, n_out=n_out)
        ends = rng.normal(size=(5, 2, 2)) * 2
        results = inscape.decision_regions(
            net, [Segment(*e) for e in ends], method="exact", precision=precision
        )
        for (start, end), found in zip(ends.tolist(), results, strict=True):
            expected = truth(net, start, end)
            n_tied += expected.is_tied
            assert found.labels.tolist() == expected.labels
            assert found.status == ("ties on an interval" if expected.is_tied else "complete")
    assert n_tied >= 3


@pytest.mark.filterwarnings("ignore:.*predicts class 0 everywhere")
@pytest.mark.parametrize(("seed", "hidden_bias"), [(47, False), (73, True)])
def test_the_default_region_count_sees_through_rounding(seed, hidden_bias):
    net = without_last_bias(seed, hidden_bias=hidden_bias)
    x = np.random.default_rng(0).normal(size=(200, 2))
    found = inscape.region_count(net, x, n_probes=60, random_state=0)
    probes = inscape.sample_probes(x, n=60, random_state=0)
    expected = [len(truth(net, p.start.tolist(), p.end.tolist()).labels) for p in probes]
    assert found.is_exact
    assert found.counts.tolist() == expected


@pytest.mark.parametrize("scale", [1e20, 1e30])
def test_biases_that_large_inputs_drown_do_not_decide_silently(scale):
    n_wrong = n_flagged = 0
    for seed in range(30):
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3))
        start, end = (np.random.default_rng(seed).normal(size=(2, 2)) * scale).tolist()
        found = inscape.decision_regions(net, Segment(start, end), method="exact")
        n_flagged += found.status != "complete"
        n_wrong += found.status == "complete" and found.labels.tolist() != truth(net, start, end).labels
    assert n_wrong == 0
    assert n_flagged < 15


@pytest.mark.parametrize("method", ["exact", "auto"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_inputs_that_overflow_are_refused(dtype, method):
    net = without_last_bias(0).to(dtype)
    size = float(torch.finfo(dtype).max) * 0.7
    far = Segment([size, size], [-size, -size])
    with pytest.raises(inscape.InscapeError, match=r"reach .*e\+3\d+: float(32|64) arithmetic carries"):
        inscape.decision_regions(net, far, method=method)
    with pytest.raises(inscape.InscapeError, match="choose probes or weights of a smaller scale"):
        inscape.linear_regions(net, far)


def test_values_that_overflow_inside_are_refused():
    net = without_last_bias(0).double()
    with torch.no_grad():
        for p in net.parameters():
            p.mul_(1e90)
    with pytest.raises(inscape.InscapeError, match=r"the (scores|inputs of relu) reach"):
        inscape.linear_regions(net, Segment([1e60, 2e60], [-3e60, 1e60]))


def test_of_lines_that_overtake_together_the_first_leads():
    c = case("integer weights", 16361)
    found = inscape.decision_regions(c.net, Segment(c.start, c.end), method="exact")
    assert (found.labels.tolist(), found.status) == ([0, 1, 2], "ties on an interval")
    assert truth(c.net, c.start, c.end).labels == [0, 1, 2]
