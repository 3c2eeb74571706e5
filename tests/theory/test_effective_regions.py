"""The checks of effective regions: the width that gradient flow needs, and where it ends."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

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
        with_margin, many, labels_of(right, many), right, support=(-1, 1), kkt_tolerance=10
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


def test_theorem_23_end_to_end_where_its_sizes_are_met():
    teacher = ShallowNet([1.0, -1.0], [0.0, 0.0], [1.0, -1.0])  # x itself: positive margins, one change
    x = np.array([-0.6, -0.3, 0.4, 0.8])
    y = np.sign(x)
    k = inscape.univariate.theorem_sizes(2, 1.0, n=4, delta=0.9).width
    sizes = inscape.univariate.theorem_sizes(2, 1.0, n=4, delta=0.9, width=k)
    assert k == math.ceil(6144 * math.log(48 * 2 / 0.9))
    scale = {"sigma_hidden": sizes.sigma_hidden, "sigma_output": sizes.sigma_output}
    start = ShallowNet.random(k, init="gaussian", random_state=0, **scale)
    check = theory.el_theorem23(start, x, y, teacher, delta=0.9, max_steps=3, **scale)
    assert check.unmet == ()
    assert (check.lhs, check.rhs) == (1.0, 0.9)  # three steps are too few for any flow
    assert check.verdict == "undecided"  # one failure of one is within the interval
    ended = theory.el_theorem23(start, x, y, teacher, delta=0.9, **scale)
    assert (ended.unmet, ended.lhs) == ((), 0.0)
    assert ended.note == f"1 of 1 flows end with at most {32 * 2 + 67} regions"
    run = inscape.univariate.gradient_flow(start, x, y)
    limit = inscape.univariate.limit_regions(run.net, x, y)
    assert start.n_linear_regions() == k + 1
    assert (limit.n_regions, limit.is_clear) == (3, True)
    assert limit.knots.tolist() == [-0.3, 0.4]  # on the two points nearest to the change
    w, b, v = run.net.w, run.net.b, run.net.v
    bend = np.abs(v * w)
    apart = np.abs(-b[:, None] / w[:, None] - limit.knots)
    assert bend[apart.min(axis=1) > 1e-6].sum() < 1e-6 * bend.sum()  # nothing bends anywhere else
    assert all(bend[apart[:, i] < 1e-6].sum() > 0.4 * bend.sum() for i in range(2))


def test_theorem_23_counts_flows_that_end_with_few_regions():
    teacher = ShallowNet([1.0, -1.0], [0.0, 0.0], [1.0, -1.0])
    x = np.array([-0.6, -0.3, 0.4, 0.8])
    starts = [ShallowNet.random(30, init="gaussian", random_state=i) for i in range(3)]
    check = theory.el_theorem23(starts, x, np.sign(x), teacher, sigma_hidden=1.0, sigma_output=0.2)
    assert check.note == f"3 of 3 flows end with at most {32 * 2 + 67} regions"
    assert (check.lhs, check.verdict) == (0.0, "does not apply")
    flat = ShallowNet([1.0], [0.0], [1.0])  # zero on the left, where y N* > 0 is asked for
    refused = theory.el_theorem23(starts[0], x, np.sign(x), flat, sigma_hidden=1.0, sigma_output=0.2)
    assert "the teacher has a positive margin" in refused.unmet


def test_the_condition_of_polyak_and_lojasiewicz_by_autograd():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 12)
    y = np.where(x > 0.2, 1.0, -1.0)
    for seed in range(5):
        net = ShallowNet.random(40, init="gaussian", random_state=seed)
        check = theory.el_pl_condition(net, x, y)
        w, b, v = (torch.tensor(a, requires_grad=True) for a in (net.w, net.b, net.v))
        f = torch.relu(torch.tensor(x)[:, None] * w + b) @ v
        loss = torch.exp(-torch.tensor(y) * f).mean()
        gradient = torch.cat(torch.autograd.grad(loss, (w, b, v)))
        assert check.rhs == pytest.approx(float(gradient.norm().detach()))
        assert check.holds
        features = y[:, None] * np.maximum(np.outer(x, net.w) + net.b, 0)
        found = minimize(
            lambda u: u @ u / 2,
            np.zeros(40),
            jac=lambda u: u,
            constraints={
                "type": "ineq",
                "fun": lambda u, a=features: a @ u - 1,
                "jac": lambda u, a=features: a,
            },
            method="SLSQP",
        )
        assert float(loss.detach()) / check.lhs == pytest.approx(np.linalg.norm(found.x), rel=1e-4)
    dead = ShallowNet([-1.0], [-5.0], [1.0])
    assert theory.el_pl_condition(dead, x, y).unmet == ("the neurons can tell the labels apart",)


def test_three_breakpoints_in_every_interval():
    teacher = teacher_of([-0.5, 0.25])
    knots = np.array([-0.9, -0.8, -0.7, -0.4, 0.0, 0.1, 0.3, 0.5, 0.9])
    net = ShallowNet(np.ones(9), -knots, np.ones(9))
    check = theory.el_breakpoints(net, [-0.6, 0.0, 0.6], teacher)
    assert (check.lhs, check.rhs) == (3.0, 3.0)
    assert [text.split(" >=")[0] for text in check.unmet] == [
        "width k",
        "4 neurons are active at every point",
    ]
    more = ShallowNet(np.ones(13), np.concatenate([-knots, [2.0] * 4]), np.ones(13))
    narrow = theory.el_breakpoints(more, [-0.6, 0.0, 0.6], teacher)
    assert (narrow.rhs, len(narrow.unmet), narrow.verdict) == (3.0, 1, "does not apply")
    assert narrow.unmet == (f"width k >= {theorem_width(teacher)}",)
    few = ShallowNet(np.ones(12), np.concatenate([-knots[1:], [2.0] * 4]), np.ones(12))
    assert theory.el_breakpoints(few, [-0.6, 0.0, 0.6], teacher).rhs == 2.0
    wide = ShallowNet.random(theorem_width(teacher), init="gaussian", random_state=0)
    drawn = theory.el_breakpoints(wide, [-0.6, 0.0, 0.6], teacher)
    assert drawn.holds
    assert drawn.unmet == ()


def theorem_width(teacher):
    """6144 log(48 r / delta) / rho for delta = .1 and three points, rounded up."""
    rho = 0.5  # of the intervals between -1, -0.5, 0.25 and 1
    return math.ceil(6144 * math.log(48 * teacher.width / 0.1) / rho)
