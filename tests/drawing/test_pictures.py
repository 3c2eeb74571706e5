"""What `plot` of every result draws, on which Axes, and what is left behind in pyplot."""

import importlib
import inspect
import subprocess
import sys

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnnotationBbox
from sklearn.datasets import load_digits

import inscape
from inscape import Patch, Segment, Simplex
from inscape.drawing.measures import draw_curves
from inscape.errors import PartitionError
from inscape.pictures import Drawn, DrawnByClass
from inscape.univariate import ShallowNet


def many(x):
    """100 classes as vertical stripes of the first pixel."""
    return np.clip(x.reshape(len(x), -1)[:, 0] * 100, 0, 99).astype(int)


def three(x):
    return np.digitize(x.reshape(len(x), -1).sum(axis=1), [0.5, 1.5])


def scored(x):
    flat = x.reshape(len(x), -1)
    return np.stack([flat[:, 0], 1 - flat[:, 0], 0.4 + 0.3 * flat[:, 1]], axis=1)


def texts(ax):
    return [t.get_text() for t in ax.texts] + [t.get_text() for t in ax.get_legend().get_texts()]


def render(ax):
    FigureCanvasAgg(ax.figure).draw()  # the canvas that a figure has on its own draws nothing
    return ax


def test_the_lowest_panel_of_each_column_has_numbers_below():
    steps = np.array([1.0, 2.0, 3.0])
    figure = render(draw_curves(dict.fromkeys("abc", (steps, steps)), xlabel="step")).figure
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_xlabel() for ax in shown] == ["", "step", "step"]
    numbered = [any(label.get_visible() for label in ax.get_xticklabels()) for ax in shown]
    assert numbered == [False, True, True]


@pytest.mark.parametrize("probe", [Patch([0.0, 0.0], np.eye(2)), Simplex([[0.0, 0], [1, 0], [0.3, 1]])])
def test_planes(probe):
    p = inscape.decision_regions(three, probe)
    ax = render(p.plot())
    assert isinstance(ax, Axes)
    assert ax.get_title() == f"{p.n_regions} decision regions"
    assert ax.get_aspect() == 1.0
    assert set(texts(ax)) >= {str(label) for label in p.labels}


def test_a_given_axes_is_used():
    ax = Figure().subplots()
    assert inscape.decision_regions(three, Patch([0.0, 0.0], np.eye(2))).plot(ax) is ax
    assert inscape.decision_regions(three, Segment([0.0, 0.0], [1.0, 1.0])).plot(ax=ax) is ax


def test_where_pyplot_is_in_use_it_knows_a_picture():
    import matplotlib.pyplot as plt

    ax = inscape.decision_regions(three, Patch([0.0, 0.0], np.eye(2))).plot()
    assert plt.gcf() is ax.figure
    assert plt.gca() is ax


def test_pictures_in_files_and_pages_do_not_pile_up_in_pyplot(tmp_path):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    regions = inscape.decision_regions(three, Patch([0.0, 0.0], np.eye(2)))
    assert "<img" in regions._repr_html_()
    regions.save(tmp_path / "plane.png")
    assert plt.get_fignums() == before


def test_a_program_without_pyplot_draws_without_it():
    code = (
        "import sys, numpy as np, inscape\n"
        "regions = inscape.decision_regions(lambda x: (x[:, 0] > 0).astype(int), "
        "inscape.Patch([0., 0.], np.eye(2)))\n"
        "assert regions.plot().figure is not None\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("shape", [(8, 8), (1, 8, 8), (3, 8, 8), (8, 8, 3)])
def test_images_that_span_a_plane_are_shown(shape, rng):
    points = rng.uniform(size=(3, *shape))
    for probe in (Patch.through(points), Simplex(points)):
        ax = render(inscape.decision_regions(three, probe, resolution=12).plot())
        assert sum(isinstance(a, AnnotationBbox) for a in ax.artists) == 3
    ax = render(inscape.decision_regions(scored, Segment(points[0], points[1])).plot())
    assert sum(isinstance(a, AnnotationBbox) for a in ax.artists) == 2


@pytest.mark.parametrize("method", ["grid", "exact"])
def test_names_are_not_hidden_by_images(method):
    digits = load_digits()
    x = torch.tensor(digits.images / 16, dtype=torch.float32)
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(64, 16), torch.nn.ReLU(), torch.nn.Linear(16, 10)
    )
    torch.nn.init.normal_(net[1].weight, std=0.5)
    for first in range(0, 30, 3):
        three_images = x[first : first + 3].numpy()
        ax = render(inscape.decision_regions(net, Patch.through(three_images), method=method).plot())
        boxes = [a.get_window_extent() for a in ax.artists if isinstance(a, AnnotationBbox)]
        assert len(boxes) == 3
        for name in (t for t in ax.texts if t.get_visible()):
            assert not any(box.overlaps(name.get_window_extent()) for box in boxes)


def test_vectors_are_not_shown_as_images(rng):
    ax = inscape.decision_regions(three, Patch.through(rng.uniform(size=(3, 64))), resolution=12).plot()
    assert not ax.artists


def test_triangle_marks_are_true_to_scale(rng):
    vertices = rng.normal(size=(3, 5))
    ax = inscape.decision_regions(three, Simplex(vertices), resolution=6).plot()
    marks = np.asarray(ax.collections[-1].get_offsets())
    drawn = np.linalg.norm(marks[:, None] - marks[None], axis=2)
    assert np.allclose(drawn, np.linalg.norm(vertices[:, None] - vertices[None], axis=2))


def test_colours_stand_where_the_labels_are():
    """Left of x = 0 is class 0, right of it class 1, in the rendered pixels too."""
    from matplotlib.colors import to_rgb

    from inscape.drawing.palette import TEN

    p = inscape.decision_regions(lambda x: (x[:, 0] > 0).astype(int), Patch([0.0, 0.0], np.eye(2)))
    ax = p.plot()
    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3] / 255
    for x, label in ((-0.7, 0), (0.7, 1)):
        column, row = ax.transData.transform((x, 0.6))
        assert np.allclose(pixels[len(pixels) - 1 - int(row), int(column)], to_rgb(TEN[label]), atol=0.02)


def test_negative_labels_are_drawn():
    p = inscape.decision_regions(lambda x: np.where(x[:, 0] > 0, 1, -1), Patch([0.0, 0.0], np.eye(2)))
    ax = render(p.plot())
    assert {t.get_text() for t in ax.get_legend().get_texts()} == {"-1", "1"}
    assert len(np.unique(np.asarray(ax.collections[0].get_array()).reshape(-1, 4), axis=0)) == 2


@pytest.mark.parametrize("method", ["exact", "grid", "adaptive"])
def test_a_triangle_is_drawn_in_one_place(method, rng):
    """The colour of a place is that of the label there, by every method and of two models, too."""
    net = inscape.training.mlp(2, (8,), 3, random_state=1).double()
    triangle = Simplex([[0.9, 0.8], [-1.0, 0.3], [0.2, -1.0]])  # not in the order of its generators
    domain = inscape.decision_regions(net, triangle, method="exact").domain
    inside = rng.dirichlet([2, 2, 2], size=60)
    labels = inscape.wrap(net).labels(inside @ triangle.vertices)
    assert len(np.unique(labels)) > 1
    two = inscape.compare(net, net, triangle, method=method)
    for result in (inscape.decision_regions(net, triangle, method=method), two):
        ax = result.plot()
        (outline,) = [patch for patch in ax.patches if not patch.get_fill()]
        assert outline.get_xy()[:3] == pytest.approx(domain.corners)
        for drawn in (*ax.lines, *ax.collections[1:], *ax.texts):
            drawn.remove()
        canvas = FigureCanvasAgg(ax.figure)
        canvas.draw()
        places = ax.transData.transform(inside @ domain.corners).astype(int)
        seen = np.asarray(canvas.buffer_rgba())[::-1][places[:, 1], places[:, 0], :3].astype(int)
        colours = [np.median(seen[labels == label], axis=0) for label in np.unique(labels)]
        near = [[np.abs(one - colour).max() < 20 for colour in colours] for one in seen]
        assert len(np.unique(colours, axis=0)) == len(colours)
        assert np.mean(np.argmax(near, axis=1) == np.searchsorted(np.unique(labels), labels)) > 0.9


def test_a_hull_on_a_line_has_no_picture():
    p = inscape.decision_regions(three, Simplex([[0.0], [1.0], [2.0]]), resolution=5)
    with pytest.raises(PartitionError, match="on a line: their hull has no picture"):
        p.plot()


def test_long_names_are_shortened(rng):
    p = inscape.decision_regions(lambda x: np.where(x[:, 0] > 0, "x" * 60, "y"), Patch([0.0, 0.0], np.eye(2)))
    assert max(map(len, texts(p.plot()))) == 20


def test_a_hundred_classes_have_names_and_a_short_legend():
    ax = render(inscape.decision_regions(many, Patch([0.5, 0.5], np.eye(2) / 2), resolution=300).plot())
    legend = [t.get_text() for t in ax.get_legend().get_texts()]
    assert len(legend) == 20
    assert legend[-1].startswith("+ ")


def test_class_names_are_written(rng):
    from sklearn.linear_model import LogisticRegression

    x = rng.uniform(size=(60, 2))
    model = LogisticRegression().fit(x, np.where(x[:, 0] > 0.5, "cat", "dog"))
    ax = inscape.decision_regions(model, Patch([0.5, 0.5], np.eye(2) / 2)).plot()
    assert {"cat", "dog"} <= set(texts(ax))


@pytest.mark.parametrize("model", [scored, three, lambda x: x[:, :1] - 0.3])
def test_segments_with_and_without_scores(model):
    p = inscape.decision_regions(model, Segment([0.0, 0.0], [1.0, 1.0]))
    ax = render(p.plot())
    assert ax.get_xlim() == (0, 1)
    assert ax.get_title().startswith(f"{p.n_regions} decision region")


def test_top_two_scores_are_those_of_the_model():
    p = inscape.decision_regions(scored, Segment([0.0, 0.0], [1.0, 1.0]), resolution=50)
    scores = np.sort(scored(p.probe.points(p.samples)), axis=1)[:, ::-1]
    assert np.allclose(p.top.scores, scores[:, :2])
    assert (p.top.labels[:, 0] == scored(p.probe.points(p.samples)).argmax(axis=1)).all()


def test_an_exact_segment_shows_the_scores_too():
    from torch import nn

    net = nn.Linear(2, 3)
    net.weight.data.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5]]))
    p = inscape.decision_regions(net, Segment([-1.0, 0.0], [1.0, 1.0]), method="exact")
    assert {line.get_linestyle() for line in render(p.plot()).lines} >= {"-", ":"}  # winning and second
    net.weight.data += 1
    assert ":" not in {line.get_linestyle() for line in render(p.plot()).lines}  # no longer of these regions


def test_higher_dimensions_have_no_picture():
    p = inscape.decision_regions(three, Simplex(np.eye(4)), resolution=4)
    with pytest.raises(PartitionError, match="dimension 3 has no picture"):
        p.plot()


def test_counts_and_ranking(rng):
    x = rng.uniform(size=(50, 2))
    assert "mean" in render(inscape.region_count(three, x).plot()).get_legend().get_texts()[0].get_text()
    r = inscape.rank({"a": three, "b": scored}, x)
    ax = render(r.plot())
    assert [t.get_text() for t in ax.get_yticklabels()] == list(r.order)


def _with_subclasses(kind):
    return {kind}.union(*(_with_subclasses(k) for k in kind.__subclasses__()))


def test_every_picture_takes_what_pictures_take_or_says_that_it_makes_no_sense():
    for name in ("compare", "correlation", "measures", "theory.survey", "training.monitor", "univariate"):
        importlib.import_module(f"inscape.{name}")
    for kind in _with_subclasses(Drawn) | _with_subclasses(DrawnByClass) | {ShallowNet}:
        taken = inspect.signature(kind.plot).parameters
        assert {"ax", "title", "legend"} <= taken.keys(), kind
        points = {"x", "y"} if kind is ShallowNet else {"points"}
        missing = ({"class_names", "colours"} | points) - taken.keys()
        said = inspect.getdoc(kind.plot)
        assert all(f"`{name}`" in said for name in missing), (kind, missing)


def test_a_long_title_stays_inside_the_figure():
    words = "a title that says much more than fits over a picture of this size, " * 3
    count = inscape.region_count(three, np.random.default_rng(0).random((20, 2)), n_probes=5, random_state=0)
    for ax in (count.plot(title=words), inscape.decision_regions(three, Patch([0.5, 0.5], np.eye(2))).plot()):
        ax.title.set_text(words)
        box, figure = render(ax).title.get_window_extent(), ax.figure.bbox
        assert box.x0 >= 0
        assert box.x1 <= figure.x1
        assert box.y1 <= figure.y1


def test_names_that_differ_at_their_ends_differ_in_the_legend(rng):
    names = [f"an endless name of class {i}" for i in range(3)]
    p = inscape.decision_regions(three, Patch([0.0, 0.0], np.eye(2), bounds=((0, 1), (0, 1))), resolution=20)
    legend = p.plot(class_names=names).get_legend()
    shown = [text.get_text() for text in legend.get_texts()]
    assert len(set(shown)) == 3
    assert all(len(name) <= 20 and name[-1] == str(i) for i, name in enumerate(shown))


def test_a_long_title_stays_off_the_neighbouring_axes():
    axes = Figure((9, 3)).subplots(1, 3)
    p = inscape.decision_regions(three, Patch([0.0, 0.0], np.eye(2), bounds=((0, 1), (0, 1))), resolution=20)
    title = p.plot(axes[1], title="a: a forest of twenty trees, b: a perceptron; they differ on 36.6 %").title
    canvas = FigureCanvasAgg(axes[1].figure)
    canvas.draw()
    box = title.get_window_extent(canvas.get_renderer())
    assert title.get_text().count("\n") >= 1
    assert box.width <= axes[1].figure.bbox.width / 3
