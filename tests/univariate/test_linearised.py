"""Linearised dynamics at a minimum: against simulation, closed forms, and matrices written out."""

import json
from itertools import combinations

import numpy as np
import pytest

import inscape
from inscape import theory
from inscape.univariate import (
    LinearStability,
    ShallowNet,
    StrongStability,
    linear_stability,
    stability,
    strong_stability,
)
from inscape.univariate.stability.gram import features

X = np.array([-1.0, -0.2, 0.5, 1.1])
NET = ShallowNet([1.0, -0.7, 0.9], [0.4, 0.3, -0.6], [0.8, -1.1, 0.6], 0.1)
HAT, GRID = ShallowNet([1.0, 1.0], [0.0, -1.0], [1.0, -2.0]), np.array([-1.0, 0.0, 1.0, 2.0])


def written_out(net, x, eta, batch):
    """The spectral radius of the mean of (I - eta H_B) (x) (I - eta H_B) over all batches, in full."""
    phi = features(net, x)
    u, s, _ = np.linalg.svd(phi, full_matrices=False)
    points = u * s
    steps = []
    for rows in combinations(range(len(x)), batch):
        chosen = points[list(rows)]
        steps.append(np.eye(len(s)) - eta * chosen.T @ chosen / batch)
    whole = np.mean([np.kron(a, a) for a in steps], axis=0)
    return np.abs(np.linalg.eigvals(whole)).max()


@pytest.mark.parametrize("batch", [1, 2, 3, 4])
@pytest.mark.parametrize("eta", [0.05, 0.3, 0.7])
def test_the_second_moment_is_the_mean_over_all_batches(batch, eta):
    found = linear_stability(NET, X, NET(X), eta, batch_size=batch)
    assert found.square_rate == pytest.approx(written_out(NET, X, eta, batch), rel=1e-9)
    assert found.is_stable == (found.square_rate <= 1 + 1e-9)
    assert found.batch_size == batch


def test_the_full_batch_is_the_hessian():
    measured = stability(NET, X, NET(X), 0.3)
    found = linear_stability(NET, X, NET(X), 0.3)
    assert found.sharpness == pytest.approx(measured.sharpness, rel=1e-10)
    assert found.largest_step == pytest.approx(2 / measured.sharpness)
    assert found.square_rate == pytest.approx(found.mean_rate**2)
    for eta, stable in ((0.999 * found.largest_step, True), (1.001 * found.largest_step, False)):
        assert linear_stability(NET, X, NET(X), eta).is_stable is stable
        assert (theory.ms_lemma1(NET, X, NET(X), eta).verdict == "holds") is stable


@pytest.mark.parametrize("batch", [1, 2])
def test_sgd_needs_smaller_steps(batch):
    found = linear_stability(NET, X, NET(X), 0.1, batch_size=batch)
    assert 0 < found.largest_step < 2 / found.sharpness
    at_edge = linear_stability(NET, X, NET(X), found.largest_step, batch_size=batch)
    assert at_edge.square_rate == pytest.approx(1, abs=1e-4)


def test_one_neuron_in_closed_form():
    """f = c alone moves: phi = 1 for a net whose neuron is off, H = 1, stable up to eta = 2."""
    net = ShallowNet([1.0], [-5.0], [1.0], 0.7)
    x = np.array([0.0, 1.0])
    for eta in (0.5, 1.9, 2.1):
        found = linear_stability(net, x, net(x), eta, batch_size=1)
        assert found.square_rate == pytest.approx((1 - eta) ** 2)
        assert found.is_stable == (eta <= 2)


def test_simulated_sgd_agrees_with_the_rate():
    """The mean square of a thousand simulated linear runs grows as the rate says."""
    eta, rng = 0.35, np.random.default_rng(0)
    phi = features(NET, X)
    u, s, _ = np.linalg.svd(phi, full_matrices=False)
    points = u * s
    rate = linear_stability(NET, X, NET(X), eta, batch_size=1).square_rate
    d = rng.standard_normal((200_000, len(s)))
    squares = []
    for _ in range(8):
        chosen = points[rng.integers(len(X), size=len(d))]
        d = d - eta * chosen * (chosen * d).sum(axis=1, keepdims=True)
        squares.append((d**2).sum(axis=1).mean())
    assert squares[-1] / squares[-2] == pytest.approx(rate, rel=0.1)


def test_requests_that_are_not_possible():
    with pytest.raises(inscape.InscapeError, match="does not interpolate"):
        linear_stability(NET, X, NET(X) + 1, 0.1)
    with pytest.raises(inscape.InscapeError, match="use strong_stability"):
        linear_stability(HAT, GRID, HAT(GRID), 0.1)
    with pytest.raises(inscape.InscapeError, match="more than the 4 points"):
        linear_stability(NET, X, NET(X), 0.1, batch_size=5)


@pytest.mark.parametrize(("net", "x"), [(NET, X), (HAT, GRID)])
def test_results_are_plain(net, x):
    found = strong_stability(net, x, net(x), 0.2)
    again = StrongStability.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.to_dict() == found.to_dict()
    assert "modes" in repr(found)
    linear = linear_stability(NET, X, NET(X), 0.2)
    assert LinearStability.from_dict(json.loads(json.dumps(linear.to_dict()))).to_dict() == linear.to_dict()
    assert "stable" in repr(linear)


def test_strong_stability_at_knots_on_data():
    measured = stability(HAT, GRID, HAT(GRID), 0.1)
    found = strong_stability(HAT, GRID, HAT(GRID), 0.1)
    assert found.n_toggling == measured.n_knots_on_data == 2
    assert (found.n_modes, found.every_mode) == (4, True)
    assert found.upper == pytest.approx(measured.bracket[1])
    below, above = 2 / found.upper * 0.999, 2 / found.lower * 1.05
    assert strong_stability(HAT, GRID, HAT(GRID), below).is_strongly_stable is True
    beyond = strong_stability(HAT, GRID, HAT(GRID), above)
    assert beyond.is_strongly_stable is False
    assert beyond.growth > 1


def test_without_knots_on_data_there_is_one_mode():
    found = strong_stability(NET, X, NET(X), 0.1)
    assert found.n_modes == 1
    assert found.deviation == pytest.approx(0, abs=1e-12)
    edge = 2 / found.upper
    assert strong_stability(NET, X, NET(X), 0.99 * edge).is_strongly_stable is True
    assert strong_stability(NET, X, NET(X), 1.01 * edge).is_strongly_stable is False


@pytest.mark.parametrize("seed", range(12))
def test_lemmas_2_3_and_5_on_nets_with_knots_on_data(seed):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.normal(size=6))
    w = rng.normal(size=4)
    b = -w * np.concatenate([x[rng.permutation(6)[:2]], rng.normal(size=2)])  # two knots on points
    net = ShallowNet(w, b, rng.normal(size=4), rng.normal())
    y = net(x)
    top = stability(net, x, y, 1.0).bracket[1]
    for factor in (0.5, 0.99, 1.3, 3.0):
        eta = factor * 2 / top
        assert theory.ms_lemma2(net, x, y, eta).holds is not False
        assert theory.ms_lemma3(net, x, y, eta).holds is (True if factor < 1 else None)
    lemma5 = theory.ms_lemma5(net, x, y)
    assert lemma5.holds is True
    assert lemma5.lhs > 0
    assert theory.ms_lemma5(NET, X, NET(X)).verdict == "does not apply"


def test_lemma_2_asks_for_the_most_that_it_can():
    """One neuron of w = v = 1 with its knot on the point 0, and the two choices of lambda_m by hand."""
    net, x = ShallowNet([1.0], [0.0], [1.0]), np.array([0.0, 1.0])
    phi = {on: np.array([[0.0, float(on), 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]]) for on in (False, True)}
    h = {on: p.T @ p / 2 for on, p in phi.items()}
    values, vectors = np.linalg.eigh(h[True])  # the sharper
    q, top = vectors[:, -1], values[-1]
    quotient = q @ h[False] @ q
    choices = (
        (quotient, np.linalg.norm(h[False] @ q - quotient * q)),
        (top, np.linalg.norm(h[False] @ q - top * q)),
    )
    eta = 1.0
    least, delta = max(choices, key=lambda c: c[0] - c[1])
    check = theory.ms_lemma2(net, x, net(x), eta)
    assert (check.lhs, check.rhs) == pytest.approx((least, 2 / eta + delta))


def test_lemma_5_by_hand():
    """One neuron of w = v = 1 with its knot on the point 0: H_on - H_off is known entry by entry."""
    net, x = ShallowNet([1.0], [0.0], [1.0]), np.array([0.0, 1.0])
    phi = {on: np.array([[0.0, float(on), 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]]) for on in (False, True)}
    h = {on: p.T @ p / 2 for on, p in phi.items()}
    pairs = []
    for a in h:
        values, vectors = np.linalg.eigh(h[a])
        for b in h:
            left = np.linalg.norm(h[b] @ vectors[:, -1] - values[-1] * vectors[:, -1])
            right = np.sqrt(3) * (np.sqrt(values[-1]) + np.sqrt(np.linalg.eigvalsh(h[b])[-1])) * np.sqrt(0.5)
            pairs.append((right - left, left, right))
    check = theory.ms_lemma5(net, x, net(x))
    assert (check.lhs, check.rhs) == pytest.approx(min(pairs)[1:], abs=1e-12)
