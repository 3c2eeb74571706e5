"""Univariate nets: values, knots, changes of slope, canonical forms, and torch modules."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from inscape.errors import ModelError
from inscape.univariate import RegionTable, ShallowNet, theorem_sizes

numbers = st.floats(-10, 10).map(lambda v: round(v, 3))


@st.composite
def nets(draw, max_width=8):
    k = draw(st.integers(1, max_width))
    w, b, v = (draw(arrays(np.float64, k, elements=numbers)) for _ in range(3))
    return ShallowNet(w, b, v, draw(numbers))


def test_value_and_slope_of_a_hand_made_net():
    net = ShallowNet([1, -2, 0], [-1, 4, 3], [2, 0.5, 1], 0.25)
    x = np.array([0.0, 1.5, 3.0])
    assert net(x).tolist() == [0.25 + 3 + 2, 0.25 + 3 + 0.5 + 1, 0.25 + 3 + 4]
    assert net.derivative(x).tolist() == [-1.0, 1.0, 2.0]
    assert net.derivative(1.0) == 1.0  # at a knot the slope to its right
    assert net(x.reshape(3, 1)).shape == (3, 1)
    assert net(np.empty(0)).shape == (0,)


def test_coincident_knots_are_one_and_cancelling_jumps_vanish():
    w, b, v = [1, 2, -1, 1, 1], [-1, -2, 1, 0, 0], [1, 1, 0.5, 3, -3]
    net = ShallowNet(w, b, v)  # three neurons bend at 1 by 1 + 2 + 0.5, two at 0 that cancel
    assert net.knots.tolist() == [1.0]
    assert net.jumps.tolist() == [3.5]
    assert net.n_linear_regions() == 2
    assert ShallowNet([1, -1], [0, 0], [1, -1]).n_linear_regions() == 1  # relu(x) - relu(-x) = x
    assert ShallowNet([0.0], [1.0], [1.0]).n_linear_regions() == 1


def test_nearly_coincident_knots_and_nearly_cancelling_jumps_follow_the_tolerances():
    net = ShallowNet([1, 1, 1], [0, -1e-4, -1], [1, 1, 1e-4])
    assert net.n_linear_regions() == 4
    assert net.n_linear_regions(merge_tolerance=1e-3) == 3
    assert net.n_linear_regions(merge_tolerance=1e-3, jump_tolerance=1e-3) == 2
    table = net.region_table([1e-6, 1e-3], [1e-6, 1e-3])
    assert table.counts.tolist() == [[4, 3], [3, 2]]
    assert (table.effective, table.plateau) == (3, 0.5)
    assert table.to_dict()["effective"] == 3


def test_a_table_of_regions_has_its_old_names_and_reads_its_old_files():
    table = ShallowNet([1.0], [0.0], [1.0]).region_table([1e-6], [1e-6, 1e-3])
    with pytest.warns(DeprecationWarning, match="merge_tols is called merge_tolerances"):
        assert table.merge_tols is table.merge_tolerances
    with pytest.warns(DeprecationWarning, match="jump_tols is called jump_tolerances"):
        assert table.jump_tols is table.jump_tolerances
    written = table.to_dict()
    old = {name.replace("_tolerances", "_tols"): value for name, value in written.items()}
    assert old.keys() != written.keys()
    assert RegionTable.from_dict(old).to_dict() == written


def test_a_merged_knot_lies_at_the_weighted_mean():
    net = ShallowNet([1, 1], [0, -1e-10], [1, 3])
    assert net.knots == pytest.approx([0.75e-10], rel=1e-6)


@given(nets())
def test_the_knots_and_jumps_are_those_of_the_second_difference(net):
    t, jumps = net.knots, net.jumps
    grid = np.unique(np.concatenate([net.b / np.where(net.w == 0, np.inf, -net.w), [-50.0, 50.0]]))
    gaps = np.diff(grid)
    inside = (grid[1:] + grid[:-1]) / 2
    slopes = net.derivative(inside)
    for left, right, place, room in zip(
        slopes, slopes[1:], grid[1:], np.minimum(gaps[1:], gaps[:-1]), strict=False
    ):
        if room < 1e-6:
            continue  # merged with its neighbour
        near = np.abs(t - place) < 1e-7 * max(1, abs(place))
        assert jumps[near].sum() == pytest.approx(right - left, abs=1e-7)


@given(nets(), st.floats(0.1, 10))
def test_rescaling_and_the_canonical_form_keep_the_function(net, c):
    x = np.linspace(-5, 5, 31)
    scale = 1 + np.abs(net(x)).max() + np.abs(net.w * net.v).sum()
    assert net.rescaled(c)(x) == pytest.approx(net(x), abs=1e-12 * scale)
    canonical = net.canonical()
    assert canonical(x) == pytest.approx(net(x), abs=1e-9 * scale)
    assert set(np.abs(canonical.w)) == {1.0}


@given(nets(), st.randoms(use_true_random=False))
def test_the_canonical_form_forgets_order_and_splitting(net, random):
    order = list(range(net.width))
    random.shuffle(order)
    w, b, v = (np.concatenate([a[order], a[:1]]) for a in (net.w, net.b, net.v))
    v[order.index(0)] *= 0.5
    v[-1] *= 0.5
    a, z = net.canonical(), ShallowNet(w, b, v, net.c).canonical()
    assert a.width == z.width
    for one, other in ((a.w, z.w), (a.b, z.b), (a.v, z.v)):
        assert one == pytest.approx(other, abs=1e-9)


@given(nets())
def test_sign_changes_are_where_the_sign_changes(net):
    changes = net.sign_changes(-5.0, 5.0)
    assert ((changes > -5) & (changes < 5)).all()
    grid = np.linspace(-5, 5, 4001)
    scale = np.abs(net.v) @ (5 * np.abs(net.w) + np.abs(net.b)) + abs(net.c)
    clear = np.abs(net(grid)) > 1e-9 * scale + 1e-300
    x, positive = grid[clear], net(grid)[clear] > 0
    for a, z, p, q in zip(x, x[1:], positive, positive[1:], strict=False):
        between = int(((changes > a) & (changes < z)).sum())
        assert between % 2 == (p != q)


def test_sign_changes_on_the_line_and_with_zero_stretches():
    hat = ShallowNet([1, 1, 1], [1, 0, -1], [1, -2, 1])  # zero outside [-1, 1], and the sign of 0 is -1
    assert hat.sign_changes() == pytest.approx([-1, 1])
    line = ShallowNet([1.0, -1.0], [0.0, 0.0], [1.0, -1.0], -30.0)
    assert line.sign_changes() == pytest.approx([30.0])
    assert ShallowNet([1.0, -1.0], [0.0, 0.0], [1.0, 1.0]).sign_changes().size == 0  # |x|, but at 0 itself


def test_torch_modules_there_and_back():
    net = ShallowNet.random(7, random_state=0)
    module = net.to_module()
    x = np.linspace(-2, 2, 9)
    assert module(torch.tensor(x)[:, None])[:, 0].detach().numpy() == pytest.approx(net(x), abs=1e-14)
    back = ShallowNet.from_module(module)
    assert (back.w == net.w).all()
    assert back.c == net.c
    bare = torch.nn.Sequential(
        torch.nn.Linear(1, 3, bias=False), torch.nn.ReLU(), torch.nn.Linear(3, 1, bias=False)
    )
    assert ShallowNet.from_module(bare).b.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "module",
    [
        torch.nn.Linear(1, 1),
        torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1)),
    ],
)
def test_other_modules_are_refused(module):
    with pytest.raises(ModelError, match=r"expected Linear\(1, k\), ReLU, Linear\(k, 1\)"):
        ShallowNet.from_module(module)


def test_random_nets_have_the_stated_scales():
    small = ShallowNet.random(4000, init="small", sigma=1e-2, random_state=1)
    assert small.w.std() == pytest.approx(1e-2, rel=0.05)
    assert small.c == 0
    gaussian = ShallowNet.random(4000, init="gaussian", random_state=1)
    assert gaussian.v.std() == pytest.approx(np.sqrt(2 / 4000), rel=0.05)
    uniform = ShallowNet.random(4000, random_state=1)
    assert 0.99 < uniform.w.max() <= 1
    assert np.abs(uniform.v).max() <= 1 / np.sqrt(4000)
    theorem = ShallowNet.random(4000, init="theorem", n_changes=2, shortest=0.5, n=30, random_state=1)
    sizes = theorem_sizes(2, 0.5, n=30, width=4000)
    assert theorem.w.std() == pytest.approx(sizes.sigma_hidden, rel=0.05)
    assert theorem.v.std() == pytest.approx(sizes.sigma_output, rel=0.05)
    again = ShallowNet.random(4000, random_state=1)
    assert (again.w == uniform.w).all()


def test_theorem_sizes_are_the_formulas():
    sizes = theorem_sizes(3, 0.4, n=50, width=400, radius=2.0, density=0.3, delta=0.2, eps=0.05)
    assert sizes.width == int(np.ceil(6144 * 16 * np.log(48 * 3 / 0.2) / 0.4))
    hidden = 8400 * 2500 * 0.3 * 2**3.5 * np.sqrt(1200) / (0.2 * 0.4)
    assert sizes.sigma_hidden == pytest.approx(hidden)
    assert sizes.sigma_output == pytest.approx(1 / (4 * 400 * 2 * hidden * np.log(12 * 400 / 0.2)))
    assert sizes.sample_size == pytest.approx((3 * np.log(20) + np.log(10)) / 0.05)


def test_nets_read_back_and_never_change():
    net = ShallowNet.random(3, random_state=0)
    back = ShallowNet.from_dict(net.to_dict())
    assert (back.v == net.v).all()
    with pytest.raises(AttributeError, match="does not change"):
        net.c = 1.0
    with pytest.raises(ValueError, match="read-only"):
        net.w[0] = 1.0
    assert "width 3" in repr(net)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [], []), "width 0"),
        (([1, 2], [1], [1, 1]), "one entry per neuron: w has 2, b has 1, v has 2"),
        (([np.nan], [0], [0]), "w has NaN"),
        (([[1]], [0], [0]), r"w has shape \(1, 1\)"),
        ((["a"], [0], [0]), "w is not an array of numbers"),
        (([1], [0], [0], np.inf), "c=inf is not a finite number"),
    ],
)
def test_bad_parameters_are_refused(arguments, message):
    with pytest.raises(ModelError, match=message):
        ShallowNet(*arguments)


def test_bad_arguments_are_refused():
    net = ShallowNet([1.0], [0.0], [1.0])
    with pytest.raises(ModelError, match="must be positive"):
        net.rescaled(-1)
    with pytest.raises(ModelError, match="must not be negative"):
        net.n_linear_regions(merge_tolerance=-1)
    with pytest.raises(ModelError, match="no interval"):
        net.sign_changes(1, 0)
    with pytest.raises(ModelError, match="width=0 is too small"):
        ShallowNet.random(0)
    with pytest.raises(ModelError, match="did you mean 'gaussian'"):
        ShallowNet.random(3, init="gausian")
    with pytest.raises(ModelError, match="needs n_changes, shortest and n"):
        ShallowNet.random(3, init="theorem")
    with pytest.raises(ModelError, match="takes no sigma"):
        ShallowNet.random(3, sigma=2)
    with pytest.raises(ModelError, match="not a univariate net"):
        ShallowNet.from_dict({})


def test_tensors_that_require_gradients_are_read():
    w = torch.tensor([1.0, -1.0], requires_grad=True)
    net = ShallowNet(w, w, w)
    assert net(w).tolist() == net([1.0, -1.0]).tolist()
    for call in (net, net.derivative):
        with pytest.raises(ModelError, match="x is not an array of numbers: a"):
            call("a")


@pytest.mark.parametrize("scale", [1e-120, 1e145])
def test_signs_change_where_they_do_however_small_or_large_the_values(scale):
    net = ShallowNet([1.0, 1.0], [0.0, -1.0], [1.0, -3.0])  # x, then 3 - 2 x
    far = ShallowNet(scale * net.w, scale * net.b, scale * net.v)
    assert far.sign_changes(0.5, 2).tolist() == pytest.approx([1.5])
