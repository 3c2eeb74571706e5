"""Class names, their colours and legends, which are the same in all pictures."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from networks import mlp
from sklearn.datasets import make_moons
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

import inscape
from inscape import Patch, Segment
from inscape.drawing.palette import TEN
from inscape.errors import PictureError

SQUARE = Patch([0.0, 0.0], np.eye(2))


def named(left, right):
    return lambda x: np.where(x[:, 0] > 0, right, left)


def legend(ax):
    """Name -> colour."""
    return {
        text.get_text(): patch.get_facecolor()[:3]
        for text, patch in zip(ax.get_legend().get_texts(), ax.get_legend().get_patches(), strict=True)
    }


def drawn(ax):
    FigureCanvasAgg(ax.figure).draw()
    return ax


@pytest.mark.parametrize("probe", [SQUARE, Segment([-1.0, 0.0], [1.0, 0.0])])
def test_a_name_has_one_colour_whatever_its_number(probe):
    """Functions number names as they are met: here dog is 1 for one of them, and 0 for the other."""
    a, b = inscape.wrap(named("cat", "dog")), inscape.wrap(named("dog", "cat"))
    b.labels([[-1.0, 0.0]])
    p, q = inscape.decision_regions(a, probe), inscape.decision_regions(b, probe)
    assert p.class_names != q.class_names
    assert legend(p.plot()) == legend(q.plot())


def test_numbers_have_the_colour_of_the_number():
    p = inscape.decision_regions(named(2, 7), SQUARE)
    q = inscape.decision_regions(named("2", "7"), SQUARE)
    assert legend(p.plot()) == legend(q.plot()) == {"2": to_rgb(TEN[2]), "7": to_rgb(TEN[7])}


def test_class_names():
    p = inscape.decision_regions(named(0, 1), SQUARE)
    for names in (["cat", "dog"], {0: "cat", 1: "dog"}, {"0": "cat", "1": "dog"}, ["cat", "dog", "fox"]):
        assert list(legend(p.plot(class_names=names))) == ["cat", "dog"]
    assert list(legend(p.plot(class_names={1: "dog"}))) == ["0", "dog"]
    q = inscape.decision_regions(named("dog", "cat"), SQUARE)
    assert list(legend(q.plot(class_names=["fox", "dog", "cat", "ant"]))) == ["cat", "dog"]  # not renamed
    assert legend(q.plot(class_names=["ant", "cat", "dog"]))["cat"] == to_rgb(TEN[1])  # of these three
    with pytest.raises(PictureError, match="has 1 names, and there is a class '1' with label 1"):
        p.plot(class_names=["cat"])
    with pytest.raises(PictureError, match="must be a list of names"):
        p.plot(class_names="cat")


def test_colours_that_are_given():
    p = inscape.decision_regions(named("cat", "dog"), SQUARE)
    red, lime = to_rgb("red"), to_rgb("lime")
    assert legend(p.plot(colours=["red", "lime"])) == {"cat": red, "dog": lime}
    for given in ({"dog": "lime", "fox": "red"}, {1: "lime"}):
        assert legend(p.plot(colours=given)) == {"cat": to_rgb(TEN[0]), "dog": lime}
    with pytest.raises(PictureError, match="no colour for"):
        p.plot(colours=["red", "no such colour"])


def test_title_and_legend():
    x = np.random.default_rng(0).uniform(-1, 1, size=(40, 2))
    for result in (
        inscape.decision_regions(named("cat", "dog"), SQUARE),
        inscape.decision_regions(named("cat", "dog"), SQUARE, method="grid"),
        inscape.decision_regions(named("cat", "dog"), Segment([-1.0, 0.0], [1.0, 0.0])),
        inscape.region_count(named(0, 1), x),
    ):
        assert result.plot().get_legend() is not None
        ax = result.plot(title="mine", legend=False)
        assert (ax.get_title(), ax.get_legend()) == ("mine", None)
        assert result.plot(title="").get_title() == ""


@pytest.mark.parametrize("probe", [SQUARE, Segment([-1.0, 0.0], [1.0, 0.0])])
def test_a_legend_stays_in_the_figure_and_off_the_neighbour(probe):
    p = inscape.decision_regions(named("a long name", "another long name"), probe)
    figure = Figure(figsize=(8, 3))  # one that does not lay itself out
    left, right = figure.subplots(1, 2)
    drawn(p.plot(left))
    drawn(p.plot(right))
    boxes = [ax.get_legend().get_window_extent() for ax in (left, right)]
    assert boxes[0].x1 <= right.get_window_extent().x0
    assert boxes[1].x1 <= figure.bbox.x1
    for ax in (left, right):
        assert not ax.get_legend().get_window_extent().overlaps(ax.get_window_extent())


@pytest.mark.parametrize("layout", [None, "constrained"])
@pytest.mark.parametrize("probe", [SQUARE, Segment([-1.0, 0.0], [1.0, 0.0])])
def test_a_legend_of_many_long_names_is_neither_too_wide_nor_too_high(probe, layout):
    """Names that are broken into lines made it leave the figure below."""

    def twelve(x):
        return np.clip(6 * (x[:, 0] + 1), 0, 11).astype(int)

    names = [f"{chr(97 + k)} rather long name" for k in range(12)]
    one = inscape.decision_regions(twelve, probe)
    two = inscape.compare(twelve, lambda x: twelve(x[:, ::-1] if probe is SQUARE else -x), probe)
    for result in (one, two):
        figure = Figure(figsize=(9, 4), layout=layout)
        both = figure.subplots(1, 2)
        for ax in both:
            result.plot(ax, class_names=names)
        own = result.plot(class_names=names)
        FigureCanvasAgg(figure).draw()
        FigureCanvasAgg(own.figure).draw()
        for ax in (*both, own):
            legend, whole = ax.get_legend().get_window_extent(), ax.figure.bbox
            assert 0 <= legend.y0 <= legend.y1 <= whole.y1
            assert ax.get_window_extent().x1 <= legend.x0
            assert legend.x1 <= whole.x1
            assert ax.get_window_extent().width > 0.15 * whole.width / (1 if ax is own else 2)
        assert both[0].get_legend().get_window_extent().x1 <= both[1].get_window_extent().x0


@pytest.mark.parametrize("width", [0.8, 0.9, 1.0, 1.1])
def test_a_legend_is_inside_the_figure_when_that_is_first_drawn(width):
    """Axes of equal scales are narrower than what they were given; their legend followed passes too late."""
    patch = Patch([0.0, 0.0], np.eye(2), ((0.0, width), (0.0, 1.0)))
    p = inscape.decision_regions(lambda x: np.clip(x[:, 0] * 6 / width, 0, 5).astype(int), patch)
    ax = p.plot(class_names=[f"rather a long name {k:02}" for k in range(18)])
    FigureCanvasAgg(ax.figure).draw()
    legend = ax.get_legend().get_window_extent()
    assert legend.x1 <= ax.figure.bbox.x1
    assert ax.get_window_extent().x1 <= legend.x0


def twenty_seven(x):
    """Stripes of equal width."""
    return np.clip(x[:, 0] * 27, 0, 26).astype(int)


def test_a_legend_has_as_many_classes_as_fit_beside_the_axes():
    """Up to twenty have colours that can be told apart; twelve were named, whatever the height."""
    p = inscape.decision_regions(twenty_seven, Patch([0.0, 0.0], np.eye(2), ((0, 1), (0, 1))))
    seen = {}
    for height in (5, 2.5, 1):
        ax = Figure(figsize=(6, height)).subplots()
        FigureCanvasAgg(p.plot(ax=ax).figure).draw()
        names = [text.get_text() for text in ax.get_legend().get_texts()]
        seen[height] = len(names)
        assert names[-1] == f"+ {27 - (len(names) - 1)} more"
        if height > 1:
            assert ax.get_legend().get_window_extent().y0 > 0  # inside the figure
    assert seen[5] == 20 > seen[2.5] > seen[1] == 8
    fewer = inscape.decision_regions(lambda x: twenty_seven(x) % 20, p.probe)
    assert len(fewer.plot().get_legend().get_texts()) == 20


def test_a_legend_of_long_names_is_broken_into_lines():
    """A comparison has names such as "a says upper moon, b says lower moon", wider than its Axes."""
    both = inscape.compare(named("upper moon", "lower moon"), named("lower moon", "upper moon"), SQUARE)
    figure = Figure(figsize=(9, 3))
    left, right = figure.subplots(1, 2)
    drawn(both.plot(left))
    drawn(both.plot(right))
    boxes = [ax.get_legend().get_window_extent() for ax in (left, right)]
    assert boxes[0].x1 <= right.get_window_extent().x0
    assert boxes[1].x1 <= figure.bbox.x1
    texts = [text.get_text() for text in left.get_legend().get_texts()]
    assert "a says upper moon, b says lower moon" in [" ".join(text.split()) for text in texts]


@pytest.mark.parametrize("size", [(4.4, 3.0), (7.0, 5.0)])
@pytest.mark.parametrize("resolution", [None, 200])
def test_names_cover_no_points_and_stay_in_their_region(size, resolution):
    x, y = make_moons(60, noise=0.2, random_state=0)
    model = SVC(gamma=2.0).fit(x, np.array(["upper moon", "lower moon"])[y])
    patch = Patch([0.0, 0.0], np.eye(2), ((-2.0, 3.0), (-1.5, 2.0)))
    p = inscape.decision_regions(model, patch, resolution=resolution)
    ax = drawn(p.plot(Figure(figsize=size, layout="constrained").subplots(), points=(x, y)))
    places = ax.transData.transform(x)
    names = [t for t in ax.texts if t.get_visible()]
    assert {name.get_text() for name in names} == {"upper moon", "lower moon"}
    for name in names:
        box = name.get_window_extent()
        inside = (places > (box.x0, box.y0)) & (places < (box.x1, box.y1))
        assert not inside.all(axis=1).any()
        corners = ax.transData.inverted().transform(box.corners())
        assert set(model.predict(corners)) == {name.get_text()}


def test_a_legend_of_a_body_is_inside_its_figure(rng):
    """Its layout needs more passes than that of a plane."""
    x, net = rng.normal(size=(40, 2)), inscape.training.mlp(2, (24,), 3, random_state=0).double()
    found = inscape.enumerate_regions(net, inscape.Box([-1.0, -1.0], [1.0, 1.5]))
    ax = found.plot(class_names=[f"rather a long name {k}" for k in range(3)], points=(x, np.arange(40) % 3))
    FigureCanvasAgg(ax.figure).draw()
    assert ax.get_legend().get_window_extent().x1 <= ax.figure.bbox.x1


def test_a_name_that_does_not_fit_is_left_to_the_legend():
    p = inscape.decision_regions(lambda x: (x[:, 0] > 0.97).astype(int), SQUARE, resolution=200)
    ax = drawn(p.plot(class_names=["wide", "narrow"]))
    assert [t.get_text() for t in ax.texts if t.get_visible()] == ["wide"]
    assert list(legend(ax)) == ["narrow", "wide"]


def test_points_have_the_colour_of_their_class():
    """By name or number; those beside the plane are drawn where they are nearest, smaller."""
    space = Patch(np.zeros(3), np.eye(3)[:2])
    p = inscape.decision_regions(lambda x: (x[:, 0] > 0).astype(int), space)
    x = np.array([[0.5, 0.5, 0.0], [0.5, -0.5, 0.0], [-0.5, 0.25, 7.0]])
    for y in ([1, 0, 2], ["cat", "dog", "fox"]):
        ax = p.plot(points=(x, np.array(y)), class_names={0: "dog", 1: "cat", 2: "fox"})
        beside, inside = ax.collections[-2:]
        assert inside.get_offsets().tolist() == [[0.5, 0.5], [0.5, -0.5]]
        assert beside.get_offsets().tolist() == [[-0.5, 0.25]]
        assert beside.get_sizes()[0] < inside.get_sizes()[0]
        one, other = inside.get_facecolors()[:, :3]
        assert np.allclose(one, 0.75 * np.array(to_rgb(TEN[0])))  # cat is first of the names
        assert np.allclose(other, 0.75 * np.array(to_rgb(TEN[1])))
        assert [t.get_text() for t in ax.get_legend().get_texts()] == ["cat", "dog", "fox"]
    with pytest.raises(inscape.InscapeError, match=r"points have shape \(2,\)"):
        p.plot(points=x[:, :2])


def test_linear_regions_have_the_class_names_of_the_model():
    """In every picture a class has the name and the colour that it has in that of decision regions."""
    x = np.random.default_rng(0).normal(size=(60, 2))
    y = np.array(["ant", "bee", "cat"])[(x[:, 0] > -0.5).astype(int) + (x[:, 0] > 0.5)]
    net = MLPClassifier((4,), solver="lbfgs", max_iter=300, random_state=0).fit(x, y)
    line = Segment([-2.0, 0.0], [2.0, 0.0])
    seen = legend(inscape.decision_regions(net, line).plot())
    assert set(seen) == {"ant", "bee", "cat"}
    assert legend(inscape.linear_regions(net, line).plot(points=(x, y))) == seen
    few = (x[y != "ant"], y[y != "ant"])  # of two, bee would be the first of the names
    for result in (
        inscape.linear_regions(net, SQUARE),
        inscape.density_map(net, SQUARE, 4, sigma=0.1, random_state=0),
        inscape.enumerate_regions(net, inscape.Box([-1, -1], 1)),
    ):
        handles = result.plot(points=few).get_legend().legend_handles
        dots = {handle.get_label(): handle.get_markerfacecolor() for handle in handles}
        assert list(dots) == ["bee", "cat"]
        assert all(np.allclose(dots[name], 0.75 * np.array(seen[name])) for name in dots)
        assert type(result).from_dict(result.to_dict()).class_names == ("ant", "bee", "cat")


def test_a_single_score_has_no_class_and_its_points_have():
    x, y = np.array([[-1.0, 0.0], [1.0, 0.0]]), np.array([0, 1])
    ax = inscape.linear_regions(mlp(2, 4, 1), Segment(*x)).plot(points=(x, y))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1"]
    assert len(ax.get_legend().get_patches()) == 0
