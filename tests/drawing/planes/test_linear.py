"""Pictures of linear regions on planes: each face and edge once, in the colour that says what it is."""

import itertools

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnnotationBbox
from torch import nn

import inscape
from inscape import Patch, Simplex
from inscape.drawing.axes import colour_bar_of
from inscape.drawing.palette import PATTERNS, TEN, pattern_colours
from inscape.drawing.planes import polygons
from inscape.errors import PartitionError

SQUARE = Patch([0.0, 0.0], np.eye(2))


def relu_net(*sizes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    layers = []
    for n_in, n_out in itertools.pairwise(sizes):
        linear = nn.Linear(n_in, n_out).double()
        linear.weight.data = torch.randn(n_out, n_in, generator=generator).double()
        linear.bias.data = 0.5 * torch.randn(n_out, generator=generator).double()
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


@pytest.fixture(scope="module")
def net():
    return relu_net(2, 6, 6, 3)


@pytest.fixture(scope="module")
def q(net):
    return inscape.linear_regions(net, SQUARE)


def n_polygons(collection):
    return sum(int((path.codes == 1).sum()) for path in collection.get_paths())


def layers(ax):
    """The collections from bottom to top, without the smooth copy of the filled faces."""
    return [c for c in sorted(ax.collections, key=lambda c: c.zorder) if c.zorder != 1.5]


def pixels(ax):
    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3] / 255


def colour_at(ax, image, xy):
    column, row = ax.transData.transform(xy)
    return image[len(image) - 1 - int(row), int(column)]


@pytest.mark.parametrize("colour", ["pattern", "layer", "slope", "value"])
def test_every_face_and_edge_is_drawn_once(q, colour):
    ax = q.plot(colour=q.areas if colour == "value" else colour)
    filled, edges = layers(ax)[:2]
    assert n_polygons(filled) == q.n_regions
    assert n_polygons(edges) == q.n_edges
    assert ax.get_title() == f"{q.n_regions} linear regions"
    assert ax.get_aspect() == 1.0
    assert (colour_bar_of(ax) is None) == (colour == "pattern")  # a colour bar where numbers are shown
    pixels(ax)


def test_edges_can_be_left_out(q):
    assert len(layers(q.plot(edges=False))) == 1


def test_edges_get_thinner():
    widths = [polygons.line_width(n) for n in (1, 50, 10**3, 10**4, 10**6)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == widths[1]
    assert widths[-1] > 0


def test_pixels_have_the_colour_of_their_pattern(q):
    ax = q.plot(edges=False)
    image = pixels(ax)
    for f in np.argsort(-q.areas)[:8]:
        expected = PATTERNS[pattern_colours(q.pattern_hashes[f : f + 1])[0]]
        assert np.allclose(colour_at(ax, image, q.centroids[f]), expected, atol=0.01)


def test_a_pattern_keeps_its_colour_when_zoomed(net, q):
    near = inscape.linear_regions(net, Patch([0.1, -0.2], 0.3 * np.eye(2)))
    faces = q.locate(near.probe.points(near.centroids))
    assert (pattern_colours(near.pattern_hashes) == pattern_colours(q.pattern_hashes[faces])).all()


def test_neighbours_differ_in_lightness(q):
    """Across an edge one unit changes, so that light and dark alternate like on a chessboard."""
    a, b = q.adjacency[(q.adjacency >= 0).all(axis=1)].T
    light = PATTERNS[pattern_colours(q.pattern_hashes)].mean(axis=1)
    assert (np.abs(light[a] - light[b]) > 0.1).all()


def test_layers_have_one_colour_each(q):
    ax = q.plot(colour="layer")
    known = np.unique(q.birth_layers)
    assert len(known) > 1
    filled = layers(ax)[0]
    drawn = dict.fromkeys(known.tolist(), 0)
    for path, layer in zip(filled.get_paths(), filled.get_array(), strict=True):
        drawn[int(layer)] += int((path.codes == 1).sum())
    assert drawn == {k: int((q.birth_layers == k).sum()) for k in known.tolist()}


def test_the_colour_bar_of_numbers(q):
    values = np.linspace(2.0, 5.0, q.n_regions)
    values[0] = np.nan
    ax = q.plot(colour=values)
    low, high = layers(ax)[0].get_clim()
    assert 2.0 <= low < high <= 5.0
    shown = layers(ax)[0].get_array()
    assert shown.mask.sum() == 1
    assert colour_bar_of(ax).get_ylabel() == "value"
    assert colour_bar_of(q.plot(colour="slope")).get_ylabel() == "slope norm"
    for constant in (np.ones(q.n_regions), np.full(q.n_regions, np.nan), np.zeros(q.n_regions, bool)):
        pixels(q.plot(colour=constant))


def test_wrong_colours_are_refused(q):
    with pytest.raises(PartitionError, match="must be 'pattern', 'layer', 'slope'"):
        q.plot(colour="red")
    with pytest.raises(PartitionError, match="one number per face"):
        q.plot(colour=np.zeros(q.n_regions + 1))


def test_a_budget_is_named_in_the_title(net):
    part = inscape.linear_regions(net, SQUARE, n_layers=1)
    few = inscape.linear_regions(net, SQUARE, max_regions=part.n_regions)
    assert few.plot().get_title() == f"{part.n_regions} linear regions of the first 1 layer"


@pytest.mark.parametrize("kind", ["linear", "decision"])
def test_spanning_points_are_marked_and_shown(kind, rng):
    points = rng.uniform(size=(3, 8, 8))
    flat = nn.Sequential(nn.Flatten(), relu_net(64, 5, 3))
    for probe in (Patch.through(points), Simplex(points)):
        if kind == "linear":
            ax = inscape.linear_regions(flat, probe).plot()
        else:
            ax = inscape.decision_regions(flat, probe, method="exact").plot()
        marks = np.asarray(ax.collections[-1].get_offsets())
        drawn = np.linalg.norm(marks[:, None] - marks[None], axis=2)
        assert np.allclose(drawn, np.linalg.norm((points[:, None] - points[None]).reshape(3, 3, -1), axis=2))
        assert sum(isinstance(a, AnnotationBbox) for a in ax.artists) == 3
        pixels(ax)


def test_decision_regions_over_linear_regions(net):
    p = inscape.decision_regions(net, SQUARE, method="exact")
    ax = p.plot()
    filled, faint, boundary = layers(ax)
    assert n_polygons(filled) == len(p.face_regions)
    assert n_polygons(boundary) == p.n_boundary_pieces
    assert ax.get_title() == f"{p.n_regions} decision regions"
    names = {t.get_text() for t in ax.get_legend().get_texts()}
    assert names == {str(label) for label in p.labels}
    assert faint.get_linewidth()[0] < boundary.get_linewidth()[0]
    image = pixels(ax)
    for text in ax.texts:  # each name stands in its own region, on its own colour
        region = p.locate([text.get_position()])[0]
        assert str(p.labels[region]) == text.get_text()
    for xy in [(-0.93, 0.91), (0.92, -0.88)]:
        label = p.labels[p.locate([xy])[0]]
        assert np.allclose(colour_at(ax, image, xy), to_rgb(TEN[label]), atol=0.35)
    assert len(ax.texts) >= 1


def test_a_ring_is_named_off_its_hole():
    """|x| + |y| < 1/2 is class 1: the name of class 0 must not stand in that hole."""
    net = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1)).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0, 0], [-1, 0], [0, 1], [0, -1]]))
        net[0].bias.zero_()
        net[2].weight.fill_(-1)
        net[2].bias.fill_(0.5)
    p = inscape.decision_regions(net, SQUARE, method="exact")
    places = {t.get_text(): np.abs(t.get_position()).sum() for t in p.plot().texts}
    assert places["1"] < 0.1
    assert places["0"] > 0.8


@pytest.mark.parametrize("n", [100, 30_000])
def test_large_pictures_are_rasterised(n):
    from inscape.drawing.planes.frame import Scene
    from inscape.drawing.planes.polygons import draw_faces

    k = int(n**0.5)
    side = np.linspace(0, 1, k + 1)
    xy = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    number = np.arange(len(xy)).reshape(k + 1, k + 1)
    corners = np.stack([number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]], axis=-1)
    along, across = np.stack([number[1:], number[:-1]], -1), np.stack([number[:, 1:], number[:, :-1]], -1)
    ends = np.concatenate([along.reshape(-1, 2), across.reshape(-1, 2)])
    ax = draw_faces(
        xy,
        corners.reshape(-1),
        4 * np.arange(k * k + 1),
        ends,
        values=np.arange(k * k).astype(np.uint64),
        kind="pattern",
        edges=True,
        scene=Scene(np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])),
        title="squares",
        ax=Figure().subplots(),
    )
    filled, edges = layers(ax)
    assert n_polygons(filled) == k * k
    assert n_polygons(edges) == len(ends)
    assert len(filled.get_paths()) <= 64 + k * k // 10_000
    assert bool(filled.get_rasterized()) == (n > polygons.RASTER_LIMIT)


def test_a_grid_on_a_polygon_ends_at_its_border():
    triangle = Patch([0.0, 0.0], np.eye(2), corners=[[-1, -1], [1, -1], [-1, 1]])
    p = inscape.decision_regions(lambda x: (x[:, 0] > 0).astype(int), triangle, resolution=20)
    ax = p.plot()
    image = pixels(ax)
    assert np.allclose(colour_at(ax, image, (-0.9, 0.7)), to_rgb(TEN[0]), atol=0.02)
    assert np.allclose(colour_at(ax, image, (-0.05, 0.03)), to_rgb(TEN[0]), atol=0.02)
    assert np.allclose(colour_at(ax, image, (0.5, -0.55)), to_rgb(TEN[1]), atol=0.02)
    assert np.allclose(colour_at(ax, image, (0.5, 0.5)), 1.0)


@pytest.mark.parametrize("layout", [None, "constrained"])
def test_a_colour_bar_is_as_high_as_its_picture_and_off_the_legend_and_the_neighbour(layout):
    x, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2
    net, flat = relu_net(2, 8, 2), Patch([0.0, 0.0], np.eye(2), ((-2.0, 2.0), (-0.7, 0.7)))
    figure = Figure(figsize=(9, 3.5), layout=layout)
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    inscape.density_map(net, flat, 8, sigma=0.1, random_state=0).plot(left, points=(x, y))
    inscape.linear_regions(net, flat).plot(right, colour="slope", points=(x, y))
    figure.canvas.draw()
    for ax in (left, right):
        bar, picture = colour_bar_of(ax), ax.get_window_extent()
        high = bar.get_window_extent().height / picture.height
        assert 0.89 < high < 1.01  # without its arrows, each a twentieth, for values beyond its ends
        assert bar.get_window_extent().x0 > picture.x1
        assert ax.get_legend().get_window_extent().x0 > bar.get_tightbbox().x1
    assert left.get_legend().get_window_extent().x1 <= right.get_window_extent().x0
    assert right.get_legend().get_window_extent().x1 <= figure.bbox.x1
