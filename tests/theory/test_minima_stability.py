"""The checks of minima stability."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inscape import theory
from inscape.univariate import ShallowNet, stability

NET, X = ShallowNet([1.0, 1.0], [1.5, -0.5], [1.0, -2.0]), np.array([-1.0, 0.0, 1.0])


def random_minimum(seed, on_data):
    """A net that interpolates its own values, with knots on data points or not, and a step size."""
    rng = np.random.default_rng(seed)
    k, n = int(rng.integers(1, 8)), int(rng.integers(2, 8))
    net, x = ShallowNet.random(k, init="gaussian", random_state=seed), rng.normal(size=n)
    if on_data:
        net = ShallowNet(net.w, -net.w * rng.choice(x, k), net.v)
    return net, x, net(x)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_lemma_4_and_theorem_1_hold_on_random_minima(seed):
    net, x, y = random_minimum(seed, on_data=False)
    assert theory.ms_lemma4(net, x, y).holds is True
    size = 2 / stability(net, x, y, 1.0).sharpness
    check = theory.ms_theorem1(net, x, y, size)
    assert check.holds is True
    assert theory.ms_theorem1(net, x, y, 1.1 * size).verdict == "does not apply"


@pytest.mark.slow
@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_theorem_2_corrected_holds_on_random_minima(seed):
    net, x, y = random_minimum(seed, on_data=True)
    size = 2 / stability(net, x, y, 1.0).bracket[1]
    check = theory.ms_theorem2(net, x, y, size)
    assert check.holds is True
    assert check.assumptions["strongly stable"] is True
    assert theory.ms_theorem1(net, x, y, size).verdict == "does not apply"


def test_equation_35_does_not_follow_from_34_and_lemma_2():
    # C = q = 1, eta = 2: lambda satisfies lambda <= 2/eta + delta with delta of eq. 34, but not eq. 35
    a = math.sqrt(3.0)
    lam = 1 + 2 * a**2 + 2 * a * math.sqrt(a**2 + 1)
    assert lam <= 1 + 2 * math.sqrt(3) * math.sqrt(lam) * (1 + 1e-12)
    assert lam > 1 + 3 + math.sqrt(3 * (3 + 1)) + 6


def test_both_sides_of_the_stability_checks():
    found = stability(NET, X, NET(X), 0.25)
    one, two = (theory.ms_theorem2(NET, X, NET(X), 0.25, form=form) for form in ("stated", "corrected"))
    assert (one.lhs, one.rhs) == (found.roughness, 3.5 + found.delta_stated)
    assert two.rhs == pytest.approx(3.5 + 2 * found.delta_stated)
    check = theory.ms_theorem1(NET, X, NET(X), 0.25)
    # knots at -1.5 (outside) and 0.5, where g = 0.0786 (see `weight`) and the slope jumps by 2
    assert check.lhs == pytest.approx(2 * 0.5 / 3 * math.sqrt(1 / 9 + 1 / 9) / 1, rel=1e-3)
    assert check.rhs == 3.5
    lemma = theory.ms_lemma4(NET, X, NET(X))
    assert (lemma.lhs, lemma.rhs) == (1 + 2 * check.lhs, found.flattest)


def test_lemma_1_tries_whether_descent_stays():
    sharp = stability(NET, X, NET(X), 1.0).sharpness
    assert theory.ms_lemma1(NET, X, NET(X), 1.98 / sharp).holds
    beyond = theory.ms_lemma1(NET, X, NET(X), 2.02 / sharp)
    assert beyond.unmet == ("gradient descent stays near the minimum",)


def test_rescaling_leaves_the_function_side_of_stability():
    scaled = NET.rescaled([2.0, 0.3])
    a, b = theory.ms_theorem1(NET, X, NET(X), 0.1), theory.ms_theorem1(scaled, X, NET(X), 0.1)
    assert a.lhs == pytest.approx(b.lhs)
    first, second = theory.ms_lemma4(NET, X, NET(X)), theory.ms_lemma4(scaled, X, NET(X))
    assert (first.lhs, first.rhs) == (pytest.approx(second.lhs), pytest.approx(second.rhs))
    swapped = ShallowNet(NET.w[::-1], NET.b[::-1], NET.v[::-1])
    assert theory.ms_lemma1(swapped, X, NET(X), 0.25).lhs == pytest.approx(6.7355, abs=1e-3)
    assert theory.ms_lemma1(scaled, X, NET(X), 0.01).lhs != pytest.approx(6.7355, abs=1e-3)


def test_nets_that_do_not_interpolate_do_not_apply():
    for check in (
        theory.ms_lemma1(NET, X, [0.0, 0.0, 0.0], 0.1),
        theory.ms_lemma4(NET, X, [0.0, 0.0, 0.0]),
        theory.ms_theorem1(NET, X, [0.0, 0.0, 0.0], 0.1),
        theory.ms_theorem2(NET, X, [0.0, 0.0, 0.0], 0.1),
    ):
        assert check.unmet[0] == "the net interpolates"
    on_data = ShallowNet([1.0], [0.0], [1.0])
    assert theory.ms_lemma1(on_data, X, on_data(X), 0.1).unmet == ("no knot on a data point",)


def test_torch_modules_of_one_input_are_read():
    assert theory.ms_lemma4(NET.to_module(), X, NET(X)).rhs == theory.ms_lemma4(NET, X, NET(X)).rhs
