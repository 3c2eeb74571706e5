"""The checks of effective regions: the width that gradient flow needs, and where it ends."""

import math

import numpy as np
import pytest

import inscape
from inscape import theory
from inscape.univariate import ShallowNet, gradient_flow, labels_of, random_teacher, teacher_of
from inscape.univariate.teacher import alive, alternating_teacher, least_error

NET = ShallowNet([1.0, 1.0], [1.5, -0.5], [1.0, -2.0])


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
    stopped = gradient_flow(ShallowNet.random(3, init="gaussian", random_state=0), x, y, max_steps=1)
    assert stopped.margin < 0
    assert theory.el_theorem42(stopped, x, y).unmet == ("every margin is positive",)
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
