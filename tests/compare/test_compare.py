"""Two models on one probe: networks and their twins, random pairs, rational arithmetic, other models."""

import contextlib
import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
import torch
from matplotlib.collections import PathCollection
from networks import mlp
from rational import decision_on, exact_pieces, layers_of
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from torch import nn
from twins import line_net, permuted, relabelled, scaled

import inscape
from inscape.compare import Comparison, compare, differences
from inscape.errors import ModelError, PartitionError, ProbeError
from inscape.probes.plane import domain_of

rng = np.random.default_rng(0)
X = 2 * rng.normal(size=(3, 6))
SEGMENT = inscape.Segment(X[0], X[1], (-1.0, 2.0))
PATCH = inscape.Patch.through(X, margin=0.5)
TRIANGLE = inscape.Simplex(X)
PROBES = pytest.mark.parametrize("probe", [SEGMENT, PATCH, TRIANGLE], ids=["segment", "patch", "triangle"])


def net(seed):
    """A network whose scores are 0 on average, so that all four classes occur."""
    found = mlp(6, 24, 24, 4, seed=seed)
    with torch.no_grad():
        x = 2 * torch.randn(500, 6, generator=torch.Generator().manual_seed(0))
        found[-1].bias -= found(x).mean(dim=0)
    return found


def spread(probe, n=20_000):
    """Points all over a probe."""
    if probe.dim == 1:
        return probe.points(np.linspace(*probe.span, n))
    corners = domain_of(probe).corners
    low, high = corners.min(axis=0), corners.max(axis=0)
    xy = low + (high - low) * np.random.default_rng(1).uniform(size=(3 * n, 2))
    after = np.roll(corners, -1, axis=0) - corners
    ways = xy[:, None] - corners
    inside = (after[:, 0] * ways[..., 1] - after[:, 1] * ways[..., 0] >= 0).all(axis=1)
    return domain_of(probe).plane.points(xy[inside][:n]).reshape(-1, *probe.input_shape)


@PROBES
def test_a_largest_difference_that_takes_too_long_is_a_lower_bound(probe, monkeypatch):
    exact = compare(net(0), net(1), probe).max_difference
    monkeypatch.setattr(differences, "BUDGET", 1e-9)
    sampled = compare(net(0), net(1), probe).max_difference
    assert exact.is_exact
    assert not sampled.is_exact
    assert 0.9 * exact.value < sampled.value <= exact.value * (1 + 1e-6)
    assert sampled.label == exact.label


@pytest.mark.parametrize("probe", [SEGMENT, PATCH], ids=["segment", "patch"])
def test_a_largest_difference_shows_how_far_it_is(probe, monkeypatch):
    seen = []

    @contextlib.contextmanager
    def meter(progress, description):
        yield lambda done, total: seen.append((description, done / total))

    monkeypatch.setattr(differences, "meter", meter)
    compare(net(0), net(1), probe).max_difference  # noqa: B018
    assert seen[-1] == ("largest difference", 1.0)


@PROBES
def test_a_network_agrees_with_itself_and_with_a_permuted_copy(probe):
    a = net(0)
    for twin, largest in ((a, 0.0), (permuted(a), 1e-12)):
        d = compare(a, twin, probe)
        assert d.disagreement == 0.0
        assert d.is_exact
        assert d.status == "complete"
        assert d.iou == 1.0
        assert d.agreement == 1.0
        assert d.n_regions == inscape.decision_regions(a, probe).n_regions
        assert "the same label everywhere" in d.certificate
        assert "agree everywhere" in repr(d)
        assert d.max_difference.value <= largest
        assert d.max_difference.is_exact
        assert d.is_equivalent(1e-9)


@PROBES
def test_scaled_scores_have_the_same_labels_and_a_known_largest_difference(probe):
    """The difference of 4 s and s is 3 |s|, which is largest at a vertex: where the largest score is."""
    a = net(1)
    d = compare(a, scaled(a, 4.0), probe)
    assert d.disagreement == 0.0
    found = d.max_difference
    sampled = 3 * np.abs(inscape.wrap(a).scores(spread(probe))).max()
    assert sampled <= found.value * (1 + 1e-6)
    assert found.value == pytest.approx(sampled, rel=0.02)
    at = inscape.wrap(a).scores(found.point[None])[0, found.label]
    assert found.value == pytest.approx(3 * abs(at), rel=1e-6)
    assert not d.is_equivalent(found.value * 0.99)
    assert d.is_equivalent(found.value * 1.01)


def test_one_bias_moved_on_a_line():
    """Roots of 2 relu(x) - relu(x - 1) - b: b / 2 up to 2, then b - 1; the scores differ by the bias."""
    probe = inscape.Segment([0.0], [4.0])
    d = compare(line_net(-1.0), line_net(-2.5), probe)
    assert d.regions.boundaries * 4 == pytest.approx([0.5, 1.5])
    assert d.labels.tolist() == [[0, 0], [1, 0], [1, 1]]
    assert d.disagreement == pytest.approx(1.0 / 4)
    assert d.iou == pytest.approx((0.5 / 1.5 + 2.5 / 3.5) / 2)
    assert d.max_difference.value == pytest.approx(1.5, rel=1e-12)
    assert d.max_difference.label == 1


@PROBES
@pytest.mark.parametrize("seeds", [(0, 1), (2, 3), (4, 0)])
def test_random_pairs_against_dense_sampling(probe, seeds):
    a, b = (inscape.wrap(net(s)) for s in seeds)
    d = compare(a, b, probe)
    x = spread(probe)
    la, lb = a.labels(x), b.labels(x)
    assert d.disagreement == pytest.approx((la != lb).mean(), abs=0.015)
    ratios = [((la == k) & (lb == k)).sum() / ((la == k) | (lb == k)).sum() for k in np.union1d(la, lb)]
    if set(np.union1d(la, lb)) == set(d.class_overlap):
        assert d.iou == pytest.approx(np.mean(ratios), abs=0.03)
    gap = np.abs(a.scores(x) - b.scores(x))
    assert gap.max() <= d.max_difference.value * (1 + 1e-6)
    assert d.max_difference.value == pytest.approx(gap.max(), rel=0.05)
    met = np.unique(np.stack([la, lb], axis=1), axis=0)
    assert {tuple(p) for p in met.tolist()} <= {tuple(p) for p in d.pairs.tolist()}
    assert d.shares.sum() == pytest.approx(1.0)


@PROBES
def test_the_shares_of_each_model_are_those_of_its_own_regions(probe):
    a, b = net(0), net(1)
    d = compare(a, b, probe)
    for k, model in enumerate((a, b)):
        own = inscape.decision_regions(model, probe)
        sizes = own.areas if probe.dim == 2 else np.diff([probe.span[0], *own.boundaries, probe.span[1]])
        expected = np.bincount(own.labels, weights=sizes / sizes.sum(), minlength=4)
        assert np.bincount(d.labels[:, k], weights=d.shares, minlength=4) == pytest.approx(
            expected, abs=1e-12
        )


def test_a_segment_through_a_plane_meets_the_same_pairs():
    """Exact 2D sliced by a segment is exact 1D."""
    a, b = net(0), net(1)
    square = inscape.Patch(X[0], np.stack([X[1] - X[0], X[2] - X[0]]), ((0, 1), (0, 1)))
    plane = compare(a, b, square)
    line = compare(a, b, inscape.Segment(X[0], X[2] + X[1] - X[0]))
    middles = np.diff([0, *line.regions.boundaries, 1]) / 2 + [0, *line.regions.boundaries]
    found = plane.regions.locate(np.stack([middles, middles], axis=1))
    assert plane.labels[found].tolist() == line.labels.tolist()


@pytest.mark.parametrize("seed", range(6))
def test_small_networks_in_rational_arithmetic(seed):
    draw = np.random.default_rng(seed)
    nets = [mlp(3, 5, 4, 3, seed=10 * seed + k).double() for k in (0, 1)]
    start, end = draw.normal(size=(2, 3)) * 3
    pieces = [exact_pieces(layers_of(n), start, end) for n in nets]
    first, second = (decision_on(p) for p in pieces)
    d = compare(*nets, inscape.Segment(start, end))
    edges = sorted({Fraction(0), Fraction(1), *first.boundaries, *second.boundaries})
    length, shares = Fraction(0), {}
    for low, high in itertools.pairwise(edges):
        i, j = (r.labels[sum(t <= low for t in r.boundaries)] for r in (first, second))
        shares[i, j] = shares.get((i, j), 0) + high - low
        length += (high - low) * (i != j)
    assert d.disagreement == pytest.approx(float(length), abs=1e-12)
    ours = {}
    for pair, share in zip(d.labels.tolist(), d.shares, strict=True):
        ours[tuple(pair)] = ours.get(tuple(pair), 0) + share
    assert ours == pytest.approx({k: float(v) for k, v in shares.items()}, abs=1e-12)
    places = sorted({p.low for own in pieces for p in own} | {Fraction(1)})
    largest = max(
        abs(f(t) - g(t))
        for t in places
        for f, g in zip(_lines(pieces[0], t), _lines(pieces[1], t), strict=True)
    )
    assert d.max_difference.value == pytest.approx(float(largest), rel=1e-10)


def _lines(pieces, t):
    return next(p.lines for p in pieces if p.low <= t <= p.high)


def test_the_largest_difference_at_a_crossing_of_both_networks():
    """A kink of the one crosses one of the other, and there they differ most.

    The first network is 1 - |x|, the second |y|: their difference 1 - |x| - |y| is largest at the origin,
    which is a vertex of neither network alone.
    """

    def tent(column, sign, offset):
        module = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)).double()
        with torch.no_grad():
            module[0].weight.zero_()
            module[0].weight[:, column] = torch.tensor([1.0, -1.0], dtype=torch.float64)
            module[0].bias.zero_()
            module[2].weight.fill_(sign)
            module[2].bias.fill_(offset)
        return module.eval()

    patch = inscape.Patch([0.0, 0.0], np.eye(2), ((-0.3, 0.4), (-0.4, 0.35)))
    d = compare(tent(0, -1.0, 1.0), tent(1, 1.0, 0.0), patch)
    assert d.max_difference.value == pytest.approx(1.0)
    assert d.max_difference.coordinates == pytest.approx((0.0, 0.0), abs=1e-12)


def test_classes_are_matched_by_name_whatever_their_order():
    x = rng.normal(size=(200, 6))
    y = np.array(["cat", "dog", "owl"])[inscape.wrap(net(0)).labels(x) % 3]
    other = np.array(["owl", "cat", "dog"])
    a = DecisionTreeClassifier(max_depth=4, random_state=0).fit(x, y)
    b = RandomForestClassifier(5, max_depth=4, random_state=0).fit(x, y)
    assert compare(a, b, SEGMENT).matched_by == "name"

    def named(x):
        return other[[list(other).index(k) for k in a.predict(x)]]

    d = compare(a, named, SEGMENT)
    assert d.matched_by == "name"
    assert d.disagreement < 1e-4
    assert not d.is_exact
    assert "nothing is certain" in d.certificate


def test_permuted_label_sets_are_matched_by_place():
    a = net(0)
    d = compare(a, relabelled(a, [1, 2, 3, 0]), PATCH)
    assert d.matched_by == "place"
    assert d.disagreement == pytest.approx(1.0)
    assert d.iou == 0.0
    moved = (d.labels[:, 0] - d.labels[:, 1]) % 4
    assert (moved == 1).all()


def test_unequal_sets_of_classes_are_refused_and_listed():
    x = rng.normal(size=(60, 6))
    a = LogisticRegression().fit(x, np.array(["cat", "dog"])[(x[:, 0] > 0).astype(int)])
    b = LogisticRegression().fit(x, np.array(["cat", "fox"])[(x[:, 0] > 0).astype(int)])
    with pytest.raises(ModelError, match=r"\(a\) has 'cat', 'dog', .* \(b\) has 'cat', 'fox'"):
        compare(a, b, SEGMENT)
    with pytest.raises(ModelError, match=r"has 4 classes, Sequential \(b\) has 3 classes"):
        compare(net(0), mlp(6, 5, 3), SEGMENT)


@pytest.mark.parametrize("probe", [SEGMENT, PATCH], ids=["segment", "patch"])
def test_trees_with_trees_and_with_networks_are_exact(probe):
    x = 2 * np.random.default_rng(3).normal(size=(400, 6))
    y = inscape.wrap(net(0)).labels(x)
    forests = [RandomForestClassifier(10, max_depth=6, random_state=s).fit(x, y) for s in (0, 1)]
    for a, b in ((forests[0], forests[1]), (forests[0], net(0)), (net(0), forests[1])):
        d = compare(a, b, probe)
        assert d.is_exact
        assert d.method == "exact"
        points = spread(probe)
        differ = inscape.wrap(a).labels(points) != inscape.wrap(b).labels(points)
        assert d.disagreement == pytest.approx(differ.mean(), abs=0.015)
    assert compare(forests[0], forests[0], probe).disagreement == 0.0


@pytest.mark.parametrize("probe", [SEGMENT, PATCH], ids=["segment", "patch"])
def test_black_boxes_are_searched_adaptively_and_say_what_may_be_missed(probe):
    smooth = nn.Sequential(*[nn.GELU() if isinstance(m, nn.ReLU) else m for m in net(0)]).eval()
    d = compare(smooth, net(1), probe)
    assert d.method == "adaptive"
    assert not d.is_exact
    assert d.regions.missed is not None
    assert d.regions.missed_basis
    x = spread(probe)
    differ = inscape.wrap(smooth).labels(x) != inscape.wrap(net(1)).labels(x)
    assert d.disagreement == pytest.approx(differ.mean(), abs=0.02)
    assert not d.max_difference.is_exact
    assert ">=" in repr(d.max_difference)
    with pytest.raises(PartitionError, match="no bound for others"):
        d.is_equivalent(1e9)


def test_the_grid_is_that_of_the_literature():
    d = compare(net(0), net(1), PATCH, method="grid", resolution=50)
    assert d.method == "grid"
    assert not d.is_exact
    s, t = (np.linspace(*b, 50) for b in PATCH.bounds)
    x = PATCH.points(np.stack(np.meshgrid(s, t), axis=-1).reshape(-1, 2))
    differ = inscape.wrap(net(0)).labels(x) != inscape.wrap(net(1)).labels(x)
    assert d.disagreement == pytest.approx(differ.mean(), abs=1e-3)


def test_scores_on_different_scales_are_named_and_softmax_is_offered():
    a = net(0)
    b = nn.Sequential(*net(0), nn.Softmax(dim=1)).eval()
    d = compare(a, b, SEGMENT)
    assert d.disagreement == 0.0
    assert (
        d.note
        == "Sequential (a) gives scores and Sequential (b) probabilities, which are on different scales"
    )
    with pytest.raises(PartitionError, match="scores='softmax'"):
        _ = d.max_difference
    soft = compare(a, b, SEGMENT, scores="softmax").max_difference
    assert soft.value == pytest.approx(0.0, abs=1e-12)
    assert soft.of == "probabilities"
    assert not soft.is_exact
    both = compare(b, nn.Sequential(*net(1), nn.Softmax(dim=1)).eval(), SEGMENT)
    assert both.max_difference.of == "what goes into softmax"
    assert both.max_difference.value == pytest.approx(compare(a, net(1), SEGMENT).max_difference.value)


@PROBES
def test_results_are_written_and_read(probe, tmp_path):
    d = compare(net(0), net(1), probe)
    d.max_difference  # noqa: B018
    written = json.loads(json.dumps(d.to_dict(polygons=True), allow_nan=False))
    again = Comparison.from_dict(written)
    assert again.to_dict() == d.to_dict()
    assert again.disagreement == d.disagreement
    assert again.max_difference.value == d.max_difference.value
    assert repr(again) == repr(d)
    table = d.to_frame()
    assert table["share"].sum() == pytest.approx(1.0)
    assert len(table) == d.n_regions
    assert table.loc[~table["agree"], "share"].sum() == pytest.approx(d.disagreement)
    for ending in ("json", "csv", "png", *(["geojson"] if probe.dim == 2 else [])):
        assert d.save(tmp_path / f"d.{ending}").stat().st_size > 100
    if probe.dim == 2:
        features = json.loads((tmp_path / "d.geojson").read_text())["features"]
        regions = [f["properties"] for f in features if f["properties"]["kind"] == "region"]
        same = ["region", "label_a", "label_b", "class_a", "class_b", "agree", "share", "area"]
        assert [{k: row[k] for k in same} for row in regions] == table[same].to_dict("records")
        assert not {"label", "class_name"} & set(regions[0])
    fresh = compare(net(0), net(1), probe)
    assert fresh.to_dict()["max_difference"] is None
    with pytest.raises(PartitionError, match="compute it again"):
        _ = Comparison.from_dict(fresh.to_dict()).max_difference
    assert "<img" in d._repr_html_()
    assert "<img" in again._repr_html_()


def test_a_list_of_probes_gives_a_list():
    probes = [SEGMENT, PATCH, TRIANGLE, inscape.Segment(X[0], X[2])]
    every = compare(net(0), net(1), probes)
    for probe, d in zip(probes, every, strict=True):
        alone = compare(net(0), net(1), probe)
        assert d.probe is probe
        assert d.disagreement == alone.disagreement
        assert d.n_regions == alone.n_regions


def test_what_cannot_be_compared():
    with pytest.raises(ProbeError, match="not in 3 dimensions"):
        compare(net(0), net(1), inscape.Simplex(np.eye(6)[:4]))
    with pytest.raises(ProbeError, match="expected a Segment"):
        compare(net(0), net(1), "segment")
    with pytest.raises(PartitionError, match=r"unknown scores 'sofmax'.*did you mean 'softmax'"):
        compare(net(0), net(1), SEGMENT, scores="sofmax")


def test_the_legend_says_who_says_what():
    ax = compare(net(0), net(1), PATCH).plot()
    texts = [t.get_text() for t in ax.get_legend().get_texts()]
    assert any(t.startswith("a says ") and ", b says " in t for t in texts)
    same = compare(net(0), net(0), PATCH).plot()
    assert all(t.get_text().startswith("both say") for t in same.get_legend().get_texts())
    for d in (compare(net(0), net(1), PATCH, method="adaptive"), compare(net(0), net(1), SEGMENT)):
        assert d.plot(title="").get_legend() is not None


@pytest.mark.parametrize("probe", [SEGMENT, PATCH])
def test_data_points_are_drawn_and_named(probe):
    """Also those of a class that both models nowhere predict."""
    d, labels = compare(net(0), net(1), probe), np.full(len(X), 7)
    ax = d.plot(points=(X, labels))
    assert ax.get_legend().get_texts()[-1].get_text() == "7"
    shown = [c for c in ax.collections if isinstance(c, PathCollection) and len(c.get_offsets()) > 1]
    assert sum(len(c.get_offsets()) for c in shown) > 0
    assert not [t for t in d.plot(points=X).get_legend().get_texts() if t.get_text() == "7"]
