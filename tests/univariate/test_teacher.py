"""Teachers, and the least error that a net of given width can have."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inscape.errors import UnivariateError
from inscape.univariate import (
    ShallowNet,
    alternating_teacher,
    label_changes,
    labels_of,
    least_error,
    population_error,
    random_teacher,
    region_bound,
    shortest_interval,
    teacher_of,
)
from inscape.univariate.teacher import SUPPORT, alive, stated_loss


@given(st.integers(1, 12), st.integers(0, 10**6))
def test_a_teacher_of_width_r_changes_sign_r_times(r, seed):
    teacher = random_teacher(r, radius=2.0, random_state=seed)
    assert teacher.width == r
    changes = teacher.sign_changes(-2, 2)
    assert len(changes) == r
    assert shortest_interval(teacher, -2, 2) >= 2 / (r + 1) * (1 - 1e-9)
    ends = np.concatenate([[-2], changes, [2]])
    labels = labels_of(teacher, (ends[1:] + ends[:-1]) / 2)
    assert labels.tolist() == [(-1.0) ** (i + 1) for i in range(r + 1)]


def test_the_shortest_interval_of_a_known_teacher():
    assert shortest_interval(teacher_of([-0.5, 0.2, 0.4]), -1, 1) == pytest.approx(0.2)
    assert (
        label_changes([0.3, -1, 0.9, -0.2], labels_of(teacher_of([-0.5, 0.2, 0.4]), [0.3, -1, 0.9, -0.2]))
        == 3
    )


@pytest.mark.parametrize("loss", ["zero-one", "exponential", "logistic"])
def test_the_population_error_is_the_limit_of_averages(loss):
    teacher = random_teacher(3, random_state=0)
    net = ShallowNet.random(10, random_state=1)
    x = np.linspace(-1, 1, 2_000_001)[1:] - 5e-7
    m = labels_of(teacher, x) * net(x)
    each = {
        "zero-one": lambda: labels_of(net, x) != labels_of(teacher, x),
        "exponential": lambda: np.exp(-m),
        "logistic": lambda: np.log1p(np.exp(-m)),
    }[loss]()
    assert population_error(net, teacher, -1, 1, loss=loss) == pytest.approx(each.mean(), abs=3e-6)
    density = population_error(net, teacher, -1, 1, loss=loss, density=lambda t: 0.5 + 0.5 * t)
    assert density == pytest.approx((each * (1 + x)).mean(), abs=5e-6)


def test_the_logistic_error_of_a_steep_line_is_exact():
    net, teacher = ShallowNet([1.0, -1.0], [0, 0], [100.0, -100.0]), teacher_of([0.0])
    # E log(1 + exp(-100 |x|)) over [-1, 1] = (pi^2 / 12 - Li_2 tail) / 100
    assert population_error(net, teacher, -1, 1, loss="logistic") == pytest.approx(np.pi**2 / 1200, rel=1e-12)
    wrong = ShallowNet([1.0, -1.0], [0, 0], [-100.0, 100.0])
    assert population_error(wrong, teacher, -1, 1, loss="logistic") == pytest.approx(
        50 + np.pi**2 / 1200, rel=1e-12
    )
    assert population_error(net, teacher, -1, 1, loss="exponential") == pytest.approx(0.01, rel=1e-9)


@given(st.integers(1, 12), st.integers(0, 10), st.integers(0, 10**6))
def test_no_net_beats_the_least_error_of_its_living_neurons(r, k, seed):
    teacher = alternating_teacher(r)
    rng = np.random.default_rng(seed)
    knots = rng.uniform(*SUPPORT, k + 1)
    net = ShallowNet(np.ones(k + 1), -knots, rng.normal(size=k + 1), float(rng.normal()) * 0)
    assert population_error(net, teacher, *SUPPORT) >= least_error(r, int(alive(net).sum())) - 1e-12


def test_the_least_error_is_attained():
    # r = 3, no knot inside and one sign change allowed: flip one of four intervals
    assert least_error(3, 0) == 0.25
    teacher = alternating_teacher(3)
    line = ShallowNet([1.0, -1.0], [0, 0], [1.0, -1.0], -teacher.sign_changes(*SUPPORT)[0])
    assert population_error(line, teacher, *SUPPORT) == pytest.approx(0.25)


def test_dead_neurons_are_those_with_both_weights_negative():
    net = ShallowNet([1, 1, -1, -1, 0], [1, -1, 1, -1, 0], [1, 1, 1, 1, 1])
    assert alive(net).tolist() == [True, True, True, False, False]
    many = ShallowNet.random(40_000, init="gaussian", random_state=0)
    assert alive(many).mean() == pytest.approx(0.75, abs=0.01)
    assert stated_loss(1.0) == 0.0625


def test_bounds_and_bad_input():
    assert [region_bound(r) for r in (0, 1, 10)] == [67, 99, 387]
    with pytest.raises(UnivariateError, match="ascending"):
        teacher_of([1.0, 0.0])
    with pytest.raises(UnivariateError, match="do not fit"):
        random_teacher(3, shortest=1.0)
    with pytest.raises(UnivariateError, match="no interval"):
        population_error(teacher_of([0.0]), teacher_of([0.0]), 1, 0)
    with pytest.raises(UnivariateError, match="unknown loss"):
        population_error(teacher_of([0.0]), teacher_of([0.0]), 0, 1, loss="hinge")
    with pytest.raises(UnivariateError, match="too small"):
        region_bound(-1)


@pytest.mark.parametrize("r", [1, 2, 3, 8])
def test_a_strict_teacher_is_zero_at_its_changes_alone(r):
    plain, strict = (random_teacher(r, strict=s, random_state=3) for s in (False, True))
    assert strict.width == r + 1
    assert strict.sign_changes(-1, 1) == pytest.approx(plain.sign_changes(-1, 1))
    x = np.random.default_rng(0).uniform(-1, 1, 500)
    assert (strict(x) != 0).all()
    assert np.array_equal(labels_of(strict, x), labels_of(plain, x))
    left = x[x < plain.sign_changes(-1, 1)[0]]
    assert (plain(left) == 0).all()
    assert (strict(left) < 0).all()


def test_the_logistic_loss_of_large_values_is_their_negative_part():
    """Of u from -a to a its mean goes to a / 4; squares of such values overflow."""
    for a in (1e8, 1e280):
        net = ShallowNet([a, -a], [0.0, 0.0], [1.0, -1.0])  # a x, against a teacher that is always positive
        teacher = ShallowNet([0.0], [1.0], [1.0])
        assert population_error(net, teacher, -1, 1, loss="logistic") == pytest.approx(a / 4)
