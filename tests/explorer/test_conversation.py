"""What a page is told: compared with the library's own answers."""

import copy
import threading

import numpy as np
import pytest
import torch
from explored import images, moons, network

import inscape
from inscape import Patch, Segment, decision_regions, linear_regions
from inscape.explorer.conversation import Conversation
from inscape.explorer.messages import unpacked
from inscape.explorer.worker import Worker


class Page:
    """A page without a browser: it asks and waits for the last reply."""

    def __init__(self, explorer):
        self.worker, self.replies, self.arrived = Worker(), [], threading.Condition()
        self.conversation = Conversation(explorer.exhibit, self.worker, self.take)

    def take(self, message):
        with self.arrived:
            self.replies.append(unpacked(message))
            self.arrived.notify()

    def ask(self, **request):
        self.replies.clear()
        self.conversation.receive(request)
        with self.arrived:
            assert self.arrived.wait_for(lambda: any(is_last(h) for h, _ in self.replies), 240)
            return next(r for r in self.replies if is_last(r[0]))


def is_last(header):
    return header["reply"] != "progress" and header.get("is_last") is not False


@pytest.fixture(scope="module")
def shown():
    x, y = images()
    return inscape.explore({"a": network(0), "b": network(1)}, x, y, class_names=["p", "q", "<i>r"])


@pytest.fixture
def page(shown):
    page = Page(shown)
    yield page
    page.worker.close()


def spanned(rows):
    points = [[[row, 1.0]] for row in rows]
    return {"frame": points, "corners": points}


def patch_of(shown, rows, window):
    home = Patch.through(shown.exhibit.data.x[rows])
    return Patch(home.origin, home.axes, ((window[0], window[1]), (window[2], window[3])))


def test_a_page_is_told_what_is_on_show(page):
    header, _ = page.ask(ask="hello")
    assert [m["name"] for m in header["models"]] == ["a", "b"]
    assert [c["name"] for c in header["classes"]] == ["p", "q", "<i>r"]
    assert [c["colour"] for c in header["classes"]] == ["#ffa90e", "#bd1f01", "#3f90da"]  # by name, "<" first
    assert header["data"]["kind"] == "image"
    assert header["data"]["picture"] == [6, 6]


def test_a_plane_is_that_of_decision_regions(page, shown):
    window = [-1.5, 2.0, -1.0, 1.75]
    header, arrays = page.ask(ask="plane", model=1, plane=spanned([3, 7, 9]), window=window, wanted=["layer"])
    regions = decision_regions(network(1), patch_of(shown, [3, 7, 9], window))
    assert header["n_regions"] == regions.n_regions
    assert header["is_exact"]
    planar = regions.subdivision.planar
    assert header["n_faces"] == planar.n_faces == len(arrays["start"]) - 1
    middle, half = np.array([0.25, 0.375]), np.array([1.75, 1.375])
    np.testing.assert_allclose(middle + half * arrays["vertices"], planar.xy, atol=1e-6)
    np.testing.assert_array_equal(arrays["region_labels"][arrays["face_regions"]], regions.subdivision.labels)
    np.testing.assert_allclose(arrays["region_areas"], regions.areas, rtol=1e-5)
    boundary = arrays["edge_kinds"] >= 128
    assert boundary.sum() == regions.n_boundary_pieces
    np.testing.assert_array_equal(arrays["face_layers"], regions.subdivision.birth)
    shares = [header["label_areas"][str(k)] for k in np.unique(regions.labels)]
    assert sum(shares) == pytest.approx(1)


def test_slopes_and_patterns_are_those_of_linear_regions(page, shown):
    window = [-1.0, 1.0, -1.0, 1.0]
    _, arrays = page.ask(
        ask="plane", plane=spanned([3, 7, 9]), window=window, wanted=["slope", "scores", "pattern"]
    )
    patch = patch_of(shown, [3, 7, 9], window)
    linear = linear_regions(network(0), patch)
    corners = np.split(arrays["corners"], arrays["start"][1:-1])
    middles = np.stack([arrays["vertices"][c].mean(axis=0) for c in corners]).astype(np.float64)
    faces = linear.locate(middles)
    metric = np.linalg.inv(linear.domain.metric)
    expected = np.sqrt(np.einsum("fci,ij,fcj->f", linear.slopes, metric, linear.slopes))[faces]
    large = np.array([polygon_area(arrays["vertices"][c]) for c in corners]) > 1e-6
    np.testing.assert_allclose(arrays["face_slopes"][large], expected[large], rtol=1e-3)
    colours = (linear.pattern_hashes & np.uint64(63)).astype(int)[faces]
    np.testing.assert_array_equal(arrays["face_patterns"], colours)
    points = torch.from_numpy(patch.points(arrays["vertices"].astype(np.float64)))
    with torch.no_grad():
        np.testing.assert_allclose(arrays["vertex_scores"], network(0)(points).numpy(), atol=1e-5)


def polygon_area(ring):
    x, y = ring.astype(np.float64).T
    return abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2


def test_a_place_has_the_scores_of_the_model_and_the_nearest_boundary(page, shown):
    plane, window = spanned([3, 7, 9]), [-2.0, 3.0, -2.0, 3.0]
    page.ask(ask="plane", plane=plane, window=window)
    regions = decision_regions(network(0), patch_of(shown, [3, 7, 9], window))
    assert regions.n_regions > 1
    at = [0.4, 0.3]
    header, arrays = page.ask(ask="readout", plane=plane, at=at, gradient=True)
    point = patch_of(shown, [3, 7, 9], window).points([at])
    x = torch.from_numpy(point).requires_grad_()
    scores = network(0)(x)
    np.testing.assert_allclose(header["scores"], scores[0].detach(), rtol=1e-9)
    assert header["label"] == int(scores.argmax())
    two = scores[0].detach().sort(descending=True).values
    assert header["margin"] == pytest.approx(float(two[0] - two[1]))
    scores.max().backward()
    np.testing.assert_allclose(arrays["gradient"], x.grad[0], atol=1e-6)
    np.testing.assert_allclose(arrays["input"], point[0], atol=1e-6)
    assert header["area"] == pytest.approx(regions.areas[regions.locate([at])[0]])
    t = np.linspace(0, 1, 2001)[:, None, None]
    samples = (1 - t) * regions.boundary[:, 0] + t * regions.boundary[:, 1]
    assert header["boundary"]["distance"] == pytest.approx(
        np.hypot(*(samples.reshape(-1, 2) - at).T).min(), abs=1e-3
    )


def test_the_unit_across_the_nearest_edge_changes_its_sign_there(page, shown):
    plane, window = spanned([3, 7, 9]), [-2.0, 3.0, -2.0, 3.0]
    page.ask(ask="plane", plane=plane, window=window)
    patch, net = patch_of(shown, [3, 7, 9], window), network(0)
    n_units = 0
    for at in np.random.default_rng(0).uniform(-1.5, 2.5, (12, 2)).tolist():
        edge = page.ask(ask="readout", plane=plane, at=at)[0]["edge"]
        if edge["kind"] != "units":
            continue
        n_units += 1
        middle = np.mean(edge["ends"], axis=0)
        before = net[1] if edge["layer"] == 1 else net[:4]
        hidden = torch.from_numpy(patch.points([middle]).reshape(1, -1))
        value = before(hidden)[0, edge["units"][0]]
        assert abs(float(value.detach())) < 1e-9
    assert n_units > 3


def test_the_profile_is_that_of_the_segment(page, shown):
    plane = spanned([3, 7, 9])
    header, arrays = page.ask(ask="profile", plane=plane, **{"from": [-1.0, -1.0], "to": [2.0, 1.5]})
    patch = patch_of(shown, [3, 7, 9], [-2, 3, -2, 3])
    segment = Segment(*patch.points([[-1.0, -1.0], [2.0, 1.5]]))
    regions, linear = decision_regions(network(0), segment), linear_regions(network(0), segment)
    assert header["boundaries"] == pytest.approx(regions.boundaries.tolist())
    assert header["n_pieces"] == linear.n_regions
    np.testing.assert_allclose(arrays["knots"], linear.knots, atol=1e-6)
    t = np.linspace(0.01, 0.99, 30)
    with torch.no_grad():
        scores = network(0)(torch.from_numpy(segment.points(t))).numpy()
    for k in range(3):
        np.testing.assert_allclose(np.interp(t, arrays["t"], arrays["scores"][:, k]), scores[:, k], atol=1e-5)


def test_points_lie_where_they_are_nearest(page, shown):
    header, arrays = page.ask(ask="points", plane=spanned([3, 7, 9]))
    x = shown.exhibit.data.x.reshape(60, -1)
    assert sorted(arrays["rows"][:3].tolist()) == [3, 7, 9]
    np.testing.assert_allclose(
        header["corners"], Patch.through(shown.exhibit.data.x[[3, 7, 9]]).marks, atol=1e-9
    )
    origin, axes = arrays["origin"].reshape(-1), arrays["axes"].reshape(2, -1)
    there = origin + arrays["places"] @ axes
    away = np.linalg.norm(x[arrays["rows"]] - there, axis=1)
    np.testing.assert_allclose(away, arrays["distances"], atol=1e-5)
    np.testing.assert_allclose((x[arrays["rows"]] - there) @ axes.T, 0, atol=1e-5)


def test_tables_are_measured_as_if_their_features_had_one_unit(rng):
    """Two pages: a network on features of other sizes, and the same one on standardised features."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).double()
    z = rng.normal(size=(20, 3))
    z /= z.std(axis=0)
    sizes = np.array([1.0, 1000.0, 0.01])
    wide = copy.deepcopy(net)
    with torch.no_grad():
        wide[0].weight /= torch.from_numpy(sizes)
    seen = []
    for model, points, scale in ((net, z, None), (wide, z * sizes, "auto")):
        page = Page(inscape.explore(model, points, scale=scale, rows=(0, 1, 2)))
        plane = spanned([0, 1, 2])
        window = [-3.0, 3.0, -3.0, 3.0]
        regions = page.ask(ask="plane", plane=plane, window=window, wanted=["slope"])[1]
        place = page.ask(ask="readout", plane=plane, at=[0.2, 0.1])[0]
        profile = page.ask(ask="profile", plane=plane, **{"from": [0.0, 0.0], "to": [1.0, 0.5]})[0]
        points = page.ask(ask="points", plane=plane)[1]
        page.worker.close()
        sums = [regions["face_slopes"].sum(), regions["region_areas"].sum(), points["distances"].sum()]
        seen.append(
            [
                place["area"],
                place["boundary"]["distance"],
                place["edge"]["distance"],
                profile["length"],
                *sums,
            ]
        )
    np.testing.assert_allclose(*seen, rtol=1e-4)
    assert seen[0][1] > 0


def test_rows_are_filtered_and_sorted(page, shown):
    x, y = images()
    labels = inscape.wrap(network(0)).labels(x)
    _, arrays = page.ask(ask="rows", by="wrong")
    np.testing.assert_array_equal(arrays["rows"], np.flatnonzero(labels != y)[:60])
    _, arrays = page.ask(ask="rows", by="margin", **{"class": 1})
    assert set(y[arrays["rows"]]) == {1}
    assert (np.diff(arrays["margins"]) >= 0).all()
    _, arrays = page.ask(ask="rows", by="plane", plane=spanned([3, 7, 9]))
    assert sorted(arrays["rows"][:3].tolist()) == [3, 7, 9]
    assert arrays["thumbnails"].shape == (60, 6, 6)


def test_a_corner_that_was_dragged_leaves_the_plane_where_it_is(page):
    plane = spanned([3, 7, 9])
    before, _ = page.ask(ask="plane", plane=plane, window=[-1, 1, -1, 1])
    moved = {**plane, "corners": [[[3, 0.5], [7, 0.5]], *plane["corners"][1:]]}
    after, _ = page.ask(ask="plane", plane=moved, window=[-1, 1, -1, 1])
    assert after["n_regions"] == before["n_regions"]
    middle = (np.array(before["corners"][0]) + before["corners"][1]) / 2
    np.testing.assert_allclose(after["corners"], [middle, *before["corners"][1:]], atol=1e-9)


def test_the_count_goes_on_where_it_was_and_ends_with_the_library_s(page, shown):
    while not (header := page.ask(ask="count")[0])["is_done"]:
        low, high = header["rows"][0]["interval"]
    assert (low, high) != tuple(header["rows"][0]["interval"])
    probes = inscape.sample_probes(shown.exhibit.data.x, dim=1, n=400, random_state=0)
    for row, model in zip(header["rows"], (network(0), network(1)), strict=True):
        result = inscape.region_count(model, probes=list(probes))
        assert row["mean"] == pytest.approx(result.mean)
        assert row["interval"] == pytest.approx(list(result.interval))


@pytest.mark.parametrize(
    "request_",
    [
        {"ask": "plane", "plane": None},
        {"ask": "plane", "plane": {"frame": [1, 2, 3]}},
        {"ask": "plane", "plane": spanned([1, 2, 60])},
        {"ask": "plane", "plane": spanned([1, 1, 2])},
        {"ask": "plane", "plane": {"frame": [[[0, 2.0]], [[1, 1.0]], [[2, 1.0]]]}},
        {"ask": "plane", "plane": spanned([0, 1, 2]), "window": [1, 0, 0, 1]},
        {"ask": "plane", "plane": spanned([0, 1, 2]), "window": ["a", 0, 0, 1]},
        {"ask": "plane", "model": 7, "plane": spanned([0, 1, 2])},
        {"ask": "plane", "model": "0", "plane": spanned([0, 1, 2])},
        {"ask": "readout", "plane": spanned([0, 1, 2]), "at": [1]},
        {"ask": "profile", "plane": spanned([0, 1, 2]), "from": [0, 0], "to": [0, 0]},
        {"ask": "__init__"},
        {"ask": None},
        ["ask"],
        None,
    ],
)
def test_a_request_that_makes_no_sense_is_answered_by_an_error(page, request_):
    page.replies.clear()
    page.conversation.receive(request_)
    with page.arrived:
        assert page.arrived.wait_for(lambda: page.replies, 240)
    assert page.replies[0][0]["reply"] == "error"
    assert page.ask(ask="hello")[0]["reply"] == "hello"


@pytest.mark.parametrize("answer", ["raises", "nan"])
def test_a_model_that_fails_is_told_and_the_rest_goes_on(answer):
    def model(x):
        if (x[:, 0] > 0.2).any():
            if answer == "raises":
                raise RuntimeError("the cat <b>ate</b> it")
            return np.full((len(x), 2), np.nan)
        return np.c_[x[:, 0], 1 - x[:, 0]]

    x, y = moons()
    page = Page(inscape.explore(model, x, y))
    header, _ = page.ask(ask="plane", window=[0.0, 1.0, 0.0, 1.0])
    assert header["reply"] == "error"
    assert ("ate" if answer == "raises" else "NaN") in header["message"]
    assert page.ask(ask="plane", window=[-1.0, 0.1, 0.0, 1.0])[0]["reply"] == "plane"
    page.worker.close()


def test_trees_and_black_boxes_are_shown_by_what_decision_regions_gives():
    from sklearn.ensemble import RandomForestClassifier

    x, y = moons()
    forest = RandomForestClassifier(5, random_state=0).fit(x, y)
    models = {"forest": forest, "circle": lambda x: np.c_[x[:, 0] ** 2 + x[:, 1] ** 2, np.ones(len(x))]}
    page = Page(inscape.explore(models, x, y))
    window = [-1.0, 2.0, -1.0, 1.0]
    patch = Patch([0.0, 0.0], np.eye(2), ((-1, 2), (-1, 1)))
    header, arrays = page.ask(ask="plane", model=0, window=window, wanted=["pattern", "margin"])
    assert header["n_regions"] == decision_regions(forest, patch).n_regions
    assert header["is_exact"]
    assert "face_patterns" not in arrays
    header, arrays = page.ask(ask="plane", model=1, window=window)
    assert (header["shape"], header["method"]) == ("image", "adaptive")
    rows, columns = arrays["image"].shape
    s = -1 + 3 * (np.arange(columns) + 0.5) / columns
    t = -1 + 2 * (np.arange(rows) + 0.5) / rows
    inside = s[None] ** 2 + t[:, None] ** 2 < 1
    assert (arrays["region_labels"][arrays["image"]] == inside).mean() > 0.995
    at = [0.2, 0.1]
    header, _ = page.ask(ask="readout", model=1, at=at, gradient=True)
    assert header["gradient_by"] == "differences"
    assert header["boundary"]["distance"] == pytest.approx(1 - np.hypot(*at), abs=0.02)
    page.worker.close()
