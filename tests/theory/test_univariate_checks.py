"""Minima stability and the limit of gradient flow."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import inscape
from inscape import theory
from inscape.univariate import ShallowNet, gradient_flow, labels_of, random_teacher, stability, teacher_of
from inscape.univariate.width import alive, alternating_teacher, least_error

NET, X = ShallowNet([1.0, 1.0], [1.5, -0.5], [1.0, -2.0]), np.array([-1.0, 0.0, 1.0])


def random_minimum(seed, on_data):
    """A net that interpolates its own values, with knots on data points or not, and a step size."""
    rng = np.random.default_rng(seed)
    k, n = int(rng.integers(1, 8)), int(rng.integers(2, 8))
    net, x = ShallowNet.random(k, init="gaussian", random_state=seed), rng.normal(size=n)
    if on_data:
        net = ShallowNet(net.w, -net.w * rng.choice(x, k), net.v)
    return net, x, net(x)


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_lemma_4_and_theorem_1_hold_on_random_minima(seed):
    net, x, y = random_minimum(seed, on_data=False)
    assert theory.ms_lemma4(net, x, y).holds is True
    size = 2 / stability(net, x, y, 1.0).sharpness
    check = theory.ms_theorem1(net, x, y, size)
    assert check.holds is True
    assert theory.ms_theorem1(net, x, y, 1.1 * size).verdict == "does not apply"


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


# the limit of the flow ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def flow():
    teacher = random_teacher(2, random_state=1)
    x = np.random.default_rng(1).uniform(-1, 1, 12)
    y = labels_of(teacher, x)
    return (
        teacher,
        x,
        y,
        gradient_flow(ShallowNet.random(60, init="gaussian", random_state=1), x, y, max_steps=1500),
    )


def test_theorem_42_at_the_limit_of_a_flow(flow):
    _, x, y, run = flow
    check = theory.el_theorem42(run, x, y)
    assert check.verdict == "holds"
    assert check.rhs == 32 * inscape.univariate.label_changes(x, y) + 67
    assert 3 <= check.lhs <= 12
    start = ShallowNet.random(60, init="gaussian", random_state=1)
    assert theory.el_theorem42(start, x, labels_of(start, x)).verdict == "does not apply"
    order = np.random.default_rng(0).permutation(60)
    limit = run.limit
    same = ShallowNet(limit.w[order], limit.b[order], limit.v[order])
    assert theory.el_theorem42(same, x, y).lhs == check.lhs


def test_theorem_42_at_a_kkt_point_that_is_known():
    point = ShallowNet([0.0], [1.0], [1.0])
    check = theory.el_theorem42(point, [-4, 4], [1, 1])
    assert (check.lhs, check.rhs, check.verdict) == (1.0, 67.0, "holds")
    with_bias = ShallowNet([0.0], [1.0], [1.0], 0.5)
    assert theory.el_theorem42(with_bias, [-4, 4], [1, 1]).unmet == ("no output bias",)


def test_corollary_51(flow):
    teacher, x, y, run = flow
    check = theory.el_corollary51(run, x, y, teacher, support=(-1, 1))
    assert check.verdict == "vacuous"  # 12 points
    ways = math.log2(2 * 2**23)  # all labellings of 24 points
    assert check.rhs == pytest.approx(2 / 12 * (ways + math.log2(20)))
    right = teacher_of([0.0])
    many = np.concatenate([[-0.5, 0.5], np.random.default_rng(0).uniform(-1, 1, 9_998)])
    with_margin = ShallowNet([1.0, -1.0], [0.0, 0.0], [1.0, -1.0])
    exact = theory.el_corollary51(
        with_margin, many, labels_of(right, many), right, support=(-1, 1), kkt_tol=10
    )
    assert exact.lhs == 0.0
    assert exact.rhs < 1


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_example_1(loss):
    check = theory.el_example1(loss)
    assert (check.lhs, check.rhs, check.holds) == (1.0, pytest.approx(2.0), True)


def test_theorem_31_needs_its_sizes():
    x, y = np.array([-0.6, -0.3, 0.4, 0.8]), np.array([-1, -1, 1, 1])
    start = ShallowNet.random(40, init="gaussian", random_state=0)
    check = theory.el_theorem31(start, x, y, shortest=1.0, sigma_hidden=1.0, sigma_output=0.2)
    assert check.verdict == "does not apply"
    assert check.unmet[0] == f"width k >= {math.ceil(6144 * math.log(24 / 0.1))}"
    assert "1 of 1 starts reach" in check.note


def test_theorem_31_where_its_sizes_are_met():
    x, y = np.array([-0.6, -0.3, 0.4, 0.8]), np.array([-1, -1, 1, 1])
    sizes = inscape.univariate.theorem_sizes(1, 1.0, n=4, delta=0.8)
    k = sizes.width
    assert k == math.ceil(6144 * math.log(24 / 0.4))
    sizes = inscape.univariate.theorem_sizes(1, 1.0, n=4, delta=0.8, width=k)
    scale = {"sigma_hidden": sizes.sigma_hidden, "sigma_output": sizes.sigma_output}
    start = ShallowNet.random(k, init="gaussian", random_state=0, **scale)
    check = theory.el_theorem31([start], x, y, shortest=1.0, delta=0.4, max_steps=20, **scale)
    assert check.unmet == ()
    assert (check.lhs, check.rhs, check.holds) == (0.0, 0.4, True)


def test_theorem_32_of_nets_that_cannot_alternate():
    nets = [ShallowNet.random(20, init="gaussian", random_state=i) for i in range(30)]
    check = theory.el_theorem32(nets, 20)
    assert check.lhs == 0.25
    assert check.rhs == 1.0
    assert check.holds
    for net in nets:  # the construction: so many intervals are wrong, whatever the weights alive become
        error = inscape.univariate.population_error(net, alternating_teacher(20), 0, 2)
        assert error >= least_error(20, int(alive(net).sum())) - 1e-12
    assert theory.el_theorem32(nets, 30).unmet == ("width k >= r",)
    assert theory.el_theorem32(nets[0], 20).interval[0] < 0
    perfect = alternating_teacher(20)
    big = ShallowNet(perfect.w, perfect.b, 1e6 * perfect.v)
    assert theory.el_theorem32([big] * 40, 20).verdict == "violated"
    with pytest.raises(inscape.InscapeError, match="one width"):
        theory.el_theorem32([nets[0], NET], 20)
