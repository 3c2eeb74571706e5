"""Exact decision regions of trees along segments, against `predict` beside every boundary."""

import itertools
from dataclasses import FrozenInstanceError, fields, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rational_trees import nodes_of, segment_labels
from sklearn.datasets import load_digits
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from trees_by_kind import ESTIMATORS, data, fitted

from inscape.errors import PartitionError
from inscape.models import wrap
from inscape.models.trees import Rule
from inscape.models.trees.ensemble import Tree, Vote, assemble
from inscape.models.trees.views import View
from inscape.partition.decision import DecisionSegment
from inscape.partition.decision.exact.trees import regions_along, tree_segments
from inscape.probes import Segment, Simplex, sample_probes

kinds = pytest.mark.parametrize("kind", ESTIMATORS)


def middles(segment, regions):
    ends = np.concatenate([segment.span[:1], regions.boundaries, segment.span[1:]])
    return segment.points((ends[1:] + ends[:-1]) / 2)


def grid_count(model, segment, n, offset=0.5):
    """Regions that n equidistant points see; the offset keeps them off rational crossings."""
    low, high = segment.span
    labels = model.labels(segment.points(low + (np.arange(n) + offset) / n * (high - low)))
    return 1 + int((np.diff(labels) != 0).sum())


def contains_in_order(labels, sub):
    """Whether `sub` can be had from `labels` by leaving some out."""
    remaining = iter(labels)
    return all(any(label == other for other in remaining) for label in sub)


# closed forms


def test_one_tree_is_cut_at_its_thresholds():
    x = np.arange(8.0)[:, None]
    tree = DecisionTreeClassifier().fit(x, [0, 1, 0, 2, 2, 1, 0, 0])
    [r] = tree_segments(tree, [Segment([0.0], [1.0], span=(-1.0, 9.0))], cast=False)
    assert r.boundaries.tolist() == [0.5, 1.5, 2.5, 4.5, 5.5]
    assert r.labels.tolist() == [0, 1, 0, 2, 1, 0]
    assert r.status == "complete"
    [backwards] = tree_segments(tree, [Segment([8.0], [-8.0], span=(0.0, 1.0))], cast=False)
    assert backwards.boundaries.tolist() == [(8 - c) / 16 for c in (5.5, 4.5, 2.5, 1.5, 0.5)]


def test_the_cast_moves_a_threshold_by_half_a_float32_spacing():
    tree = DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1])
    [r] = tree_segments(tree, [Segment([0.0], [1.0])])
    assert r.boundaries.tolist() == [0.5 + 2.0**-25]
    assert tree.predict([[0.5 + 2.0**-25], [np.nextafter(0.5 + 2.0**-25, 1)]]).tolist() == [0, 1]


def test_a_checkerboard_along_its_diagonal_has_one_label():
    x = np.array(list(itertools.product(range(6), repeat=2)), dtype=float)
    tree = DecisionTreeClassifier().fit(x, x.sum(axis=1) % 2)
    diagonal, row = Segment([0.0, 0.0], [5.0, 5.0]), Segment([0.0, 0.0], [5.0, 0.0])
    counts = [r.n_regions for r in tree_segments(tree, [diagonal, row], cast=False)]
    assert counts == [1, 6]


def test_regions_are_counted_only_inside_the_span():
    tree = DecisionTreeClassifier().fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    counts = [
        r.n_regions
        for r in tree_segments(tree, [Segment([0.0], [1.0], span=s) for s in ((0, 2), (0, 1), (0.6, 1))])
    ]
    assert counts == [3, 2, 1]


def test_a_single_class_is_one_region():
    forest = RandomForestClassifier(3).fit([[0.0], [1.0]], ["a", "a"])
    [r] = tree_segments(forest, [Segment([0.0], [1.0])])
    assert (r.n_regions, r.labels.tolist(), r.trees.n_tied) == (1, [0], 0)


# second routes


@kinds
@pytest.mark.parametrize("n_classes", [2, 4])
def test_labels_in_the_middle_of_every_region_are_those_of_predict(kind, n_classes):
    model, x = fitted(kind, n_classes=n_classes)
    segments = sample_probes(x, n=20, span=(-0.5, 1.5), random_state=0)
    for segment, r in zip(segments, tree_segments(model, segments), strict=True):
        assert np.array_equal(model.labels(middles(segment, r)), r.labels)
        assert (np.diff(r.labels) != 0).all()
        assert (np.diff(r.boundaries) > 0).all()


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(ESTIMATORS)), st.integers(2, 4), st.integers(0, 2**16))
def test_a_fine_grid_never_sees_what_exact_misses(kind, n_classes, seed):
    model, x = fitted(kind, n_classes=n_classes, seed=seed)
    [segment] = sample_probes(x, n=1, span=(-0.2, 1.2), random_state=seed)
    [r] = tree_segments(model, [segment])
    t = np.linspace(*segment.span, 5000)
    seen = model.labels(segment.points(t))
    assert contains_in_order(r.labels, seen[np.concatenate([[True], np.diff(seen) != 0])])
    assert r.n_regions - grid_count(model, segment, 5000) >= 0
    assert np.array_equal(r.labels[np.searchsorted(r.boundaries, t)], seen)


@kinds
def test_next_to_every_boundary_the_label_changes(kind):
    model, x = fitted(kind)
    segments = sample_probes(x, n=10, span=(-1, 2), random_state=1)
    step = 1e-12
    for segment, r in zip(segments, tree_segments(model, segments), strict=True):
        if r.n_regions == 1:
            continue
        assert np.array_equal(model.labels(segment.points(r.boundaries - step)), r.labels[:-1])
        assert np.array_equal(model.labels(segment.points(r.boundaries + step)), r.labels[1:])


def test_pixels_whose_splits_are_crossed_together():
    x, y = load_digits(return_X_y=True)  # whole numbers: many crossings fall on the same t
    model = wrap(RandomForestClassifier(20, random_state=0).fit(x[:600], y[:600]))
    segments = sample_probes(x[:600], n=40, random_state=0)
    results = tree_segments(model, segments)
    for segment, r in zip(segments, results, strict=True):
        assert np.array_equal(model.labels(middles(segment, r)), r.labels)
        assert r.n_regions >= grid_count(model, segment, 2000)
    assert sum(r.trees.n_tied for r in results) > 0
    assert sum(r.trees.n_narrow for r in results) > 0


def test_only_reached_nodes_are_visited():
    model, x = fitted("forest")
    [r] = tree_segments(model, [Segment(x[0], x[0] + 1e-6)])
    depth = max(tree.get_depth() for tree in model.estimator.estimators_)
    assert r.trees.n_nodes <= 10 * (depth + 2)


# ties


def test_an_even_forest_breaks_ties_as_predict_does():
    x = np.linspace(0, 1, 12)[:, None]
    y = np.tile(["b", "a"], 6)
    model = wrap(RandomForestClassifier(2, random_state=3).fit(x, y))
    segment = Segment([-0.5], [1.5])
    [r] = tree_segments(model, [segment])
    assert r.trees.n_tied > 0
    assert f"the top classes tie on {r.trees.n_tied} of {r.n_pieces} pieces" in r.status
    assert np.array_equal(model.labels(middles(segment, r)), r.labels)


@pytest.mark.parametrize("n_trees", [3, 7, 10, 49])
def test_scores_that_differ_only_by_rounding_are_summed_in_scikit_learns_order(n_trees):
    x = np.repeat(np.arange(12.0), 3)[:, None]
    y = np.tile([0, 1, 2, 2, 1, 0], 6)  # leaves of fractions 1/3: sums that tie up to rounding
    model = wrap(RandomForestClassifier(n_trees, max_depth=3, bootstrap=True, random_state=n_trees).fit(x, y))
    segment = Segment([-1.0], [12.0])
    [r] = tree_segments(model, [segment])
    t = np.linspace(0, 1, 4001)
    assert np.array_equal(r.labels[np.searchsorted(r.boundaries, t)], model.labels(segment.points(t)))


@pytest.mark.parametrize(
    ("estimator", "label"),
    [
        (GradientBoostingClassifier(n_estimators=2, init="zero", min_samples_leaf=2), 1),
        (HistGradientBoostingClassifier(max_iter=2), 0),
    ],
)
def test_a_score_of_zero_is_decided_as_predict_does(estimator, label):
    estimator.fit([[0.0], [0.0], [0.0], [0.0]], [0, 1, 1, 0])  # nothing to learn: the score is zero
    model = wrap(estimator)
    assert model.labels([[0.0]]).tolist() == [label]
    [r] = tree_segments(model, [Segment([0.0], [1.0])])
    assert r.labels.tolist() == [label]
    assert r.trees.n_tied == 1


def hand_made(trees, n_features, n_classes):
    """A forest from (feature, threshold, left value, right value) or from the value of a lone leaf."""
    built = []
    for tree in trees:
        if len(tree) == 4:
            feature, threshold, left, right = tree
            links = np.array([1, -1, -1]), np.array([2, -1, -1])
            value = np.array([left, left, right], dtype=float)
            built.append(
                Tree(np.array([feature, -2, -2]), np.array([threshold, -2.0, -2.0]), *links, value, 0)
            )
        else:
            leaf = np.array([-1])
            built.append(Tree(leaf, np.zeros(1), leaf, leaf, np.array([tree], dtype=float), 0))
    vote = Vote(np.zeros(n_classes), float(len(trees)), Rule.ARGMAX)
    return assemble(built, vote, View(), n_features=n_features)


def test_sums_that_the_division_makes_equal_tie():
    u = 2.0**-52
    forest = hand_made([(0.5 + u, 0.5 + 2 * u, 0.0), (0.5, 0.5, 0.0), (0.5, 0.5, 0.0)], 1, 3)
    assert 1.5 + u < 1.5 + 2 * u
    assert (1.5 + u) / 3 == (1.5 + 2 * u) / 3
    [r] = regions_along(forest, [Segment([0.0], [1.0])], forest.last_left)
    assert (r["labels"].tolist(), r["trees"].n_tied) == ([0], 1)


def test_crossings_that_differ_only_by_rounding_are_one():
    forest = hand_made([(0, 0.1, (1, 0), (0, 1)), (1, 1.0, (1, 0), (0, 1))], 2, 2)
    assert 0.1 / 0.3 != 1.0 / 3.0
    [r] = regions_along(forest, [Segment([0.0, 0.0], [0.3, 3.0])], forest.last_left)
    assert (r["labels"].tolist(), r["n_pieces"]) == ([0, 1], 2)


@pytest.mark.parametrize(("level", "label"), [(0.5, 0), (np.nextafter(0.5, 1), 1)])
def test_a_coordinate_that_stays_on_a_cut_is_on_the_left(level, label):
    forest = hand_made([(0, 0.5, (1, 0), (0, 1))], 2, 2)
    [r] = regions_along(forest, [Segment([level, 0.0], [level, 1.0])], forest.last_left)
    assert r["labels"].tolist() == [label]


# narrow regions


def test_a_region_narrower_than_the_cast_is_counted_only_if_asked_for():
    x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    tree = DecisionTreeClassifier(random_state=0).fit(x, [0, 1, 2, 3])  # both thresholds are 0.5
    segment = Segment([0.0, 1.0], [1.0, 0.0])  # both crossed at t = 0.5, in opposite directions
    [default] = tree_segments(tree, [segment])
    [cast], [stored] = (tree_segments(tree, [segment], cast=c, narrow=True) for c in (True, False))
    assert default.labels.tolist() == stored.labels.tolist() == [1, 2]
    assert default.boundaries == pytest.approx([0.5], abs=1e-9)
    assert default.trees.n_narrow == 1
    assert "1 region is narrower than float32 numbers can tell, and not" in default.status
    assert stored.status == "complete"
    assert cast.labels.tolist() == [1, 0, 2]
    assert tree.predict(middles(segment, cast)).tolist() == [1, 0, 2]
    assert cast.boundaries[1] - cast.boundaries[0] < 1e-7
    assert cast.trees.n_narrow == 1
    assert "1 region is narrower than float32 numbers can tell" in cast.status


def test_thresholds_that_the_cast_joins_leave_no_region_between():
    eps = 2.0**-30
    x = np.array([[0.0], [1.0]])
    trees = [DecisionTreeClassifier().fit(x + shift, [0, 1]) for shift in (0.0, eps)]
    forest = RandomForestClassifier(2, bootstrap=False).fit(x, [0, 1])
    forest.estimators_ = trees
    segment = Segment([0.0], [1.0])
    [cast], [stored] = (tree_segments(forest, [segment], cast=c) for c in (True, False))
    assert trees[1].tree_.threshold[0] != trees[0].tree_.threshold[0]
    assert (cast.n_pieces, stored.n_pieces) == (2, 3)


def test_a_region_too_narrow_for_float64_points_is_named():
    x = np.repeat([[0.0], [1.0]], 5, axis=0)
    model = HistGradientBoostingClassifier(max_iter=1, min_samples_leaf=1).fit(x, [0] * 5 + [1] * 5)
    short = Segment([np.nextafter(0.5, 0)], [1.0])  # the cut, 0.5, is the next number
    [r], [default] = (tree_segments(model, [short], narrow=narrow) for narrow in (True, False))
    assert r.labels.tolist() == [0, 1]
    assert default.labels.tolist() == [1]
    assert r.trees.n_narrow == 1
    assert "narrower than float64 numbers can tell" in r.status


@pytest.mark.parametrize(
    ("start", "end", "n_lone"), [(0.5, 1.0, 1), (1.0, 0.5, 1), (0.5, 0.0, 0), (0.0, 0.5, 0)]
)
def test_an_end_on_a_split_is_no_region_but_is_named(start, end, n_lone):
    x = np.repeat([[0.0], [1.0]], 5, axis=0)
    model = wrap(HistGradientBoostingClassifier(max_iter=1, min_samples_leaf=1).fit(x, [0] * 5 + [1] * 5))
    [r] = tree_segments(model, [Segment([start], [end])])
    assert model.labels([[0.5]]).tolist() == [0]
    assert (r.n_regions, r.trees.n_lone) == (1, n_lone)
    assert ("1 end lies on a split" in r.status) == bool(n_lone)


@pytest.mark.parametrize("scale", [1, 16, 255])
def test_counts_on_whole_numbers_are_those_of_rational_arithmetic(scale):
    """Pixels of few bits: many splits are crossed at one t, but for the rounding of x and of thresholds."""
    x, y = load_digits(return_X_y=True)
    forest = RandomForestClassifier(20, random_state=0).fit(x[:600] / scale, y[:600])
    trees = nodes_of(forest, lambda c: Fraction(round(2 * scale * c), 2 * scale))
    pairs = np.random.default_rng(scale).choice(600, (40, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    results = tree_segments(forest, [Segment(*(x[pair] / scale)) for pair in pairs])
    for pair, r in zip(pairs, results, strict=True):
        ends = ([Fraction(int(v), scale) for v in x[i]] for i in pair)
        assert r.labels.tolist() == segment_labels(trees, *ends)
    seen = tree_segments(forest, [r.probe for r in results], narrow=True)
    assert sum(r.n_regions for r in seen) > sum(r.n_regions for r in results)
    assert [r.trees for r in seen] == [r.trees for r in results]


def test_steps_of_a_coarse_feature_are_no_rounding():
    start = 1.7e9  # seconds: float32 has one number in 128
    x = np.stack([start + 128 * np.arange(64.0), np.arange(64.0) % 7], axis=1)
    model = wrap(DecisionTreeClassifier(random_state=0).fit(x, np.arange(64) // 2 % 2))
    segment = Segment([start, 0.0], [start + 128 * 63, 7.0])
    [r] = tree_segments(model, [segment])
    assert r.n_regions == grid_count(model, segment, 20000)
    assert r.trees.n_narrow == 0


def test_narrow_regions_next_to_each_other_leave_one_boundary():
    at = [0.5, 0.5 + 1e-9, 0.5 + 2e-9]  # three classes in turn around one half, in steps below the blur
    trees = [(0, c, (0, 0, 0), v) for c, v in zip(at, np.eye(3)[[1, 2, 1]] * [[1], [2], [4]], strict=True)]
    forest = hand_made([(1, 0, 0), *trees], 1, 3)
    forest = replace(forest, blur=np.full_like(forest.blur, 1e-8))
    [seen] = regions_along(forest, [Segment([0.0], [1.0])], forest.last_left, narrow=True)
    [r] = regions_along(forest, [Segment([0.0], [1.0])], forest.last_left)
    assert seen["labels"].tolist() == [0, 2, 1]
    assert (r["labels"].tolist(), r["trees"].n_narrow) == ([0, 1], 1)
    assert r["boundaries"] == pytest.approx([0.5 + 1.5e-9], abs=1e-12)


# invariances


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(sorted(ESTIMATORS)), st.integers(0, 2**16), st.floats(0.05, 0.95))
def test_reversing_and_splitting_a_segment(kind, seed, at):
    model, x = fitted(kind)
    rng = np.random.default_rng(seed)
    a, b = x[rng.choice(len(x), 2, replace=False)]
    whole, first, second, reverse = tree_segments(
        model, [Segment(a, b), Segment(a, b, span=(0, at)), Segment(a, b, span=(at, 1)), Segment(b, a)]
    )
    assert np.array_equal(np.concatenate([first.boundaries, second.boundaries]), whole.boundaries)
    assert first.n_regions + second.n_regions - 1 == whole.n_regions
    assert first.n_pieces + second.n_pieces - 1 == whole.n_pieces
    assert np.array_equal(reverse.labels[::-1], whole.labels)
    assert np.allclose(1 - reverse.boundaries[::-1], whole.boundaries, rtol=0, atol=1e-13)


def test_the_order_of_the_trees_does_not_matter():
    model, x = fitted("forest")
    segments = sample_probes(x, n=5, random_state=2)
    before = tree_segments(model, segments)
    model.estimator.estimators_ = model.estimator.estimators_[::-1]
    for one, other in zip(before, tree_segments(model, segments), strict=True):
        assert np.array_equal(one.boundaries, other.boundaries)
        assert np.array_equal(one.labels, other.labels)


def test_points_of_any_shape():
    model, x = fitted("forest")
    flat, shaped = (
        tree_segments(model, [Segment(x[0].reshape(shape), x[1].reshape(shape))])[0]
        for shape in ((5,), (1, 5, 1))
    )
    assert np.array_equal(flat.boundaries, shaped.boundaries)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=60), st.booleans())
def test_times_are_put_in_order_crowded_or_not(times, crowded):
    from inscape.partition.decision.exact.trees.line_walk import put_in_order

    t = np.array(times) * (1e-9 if crowded else 1.0)
    order, count = np.empty(len(t) + 1, dtype=np.int32), np.empty(len(t) + 1, dtype=np.int32)
    put_in_order(t, (0.0, 1.0), order, count)
    assert sorted(order[: len(t)]) == list(range(len(t)))
    assert (np.diff(t[order[: len(t)]]) >= 0).all()


def test_many_crowded_times_out_of_order_are_put_in_order():
    from inscape.partition.decision.exact.trees.line_walk import put_in_order

    t = np.append(np.linspace(2e-9, 1e-9, 300), [1.0, 1.5e-9])
    order, count = np.empty(len(t) + 1, dtype=np.int32), np.empty(len(t) + 1, dtype=np.int32)
    put_in_order(t, (0.0, 1.0), order, count)
    assert np.array_equal(t[order[: len(t)]], np.sort(t))
    assert sorted(order[: len(t)]) == list(range(len(t)))


def test_crossings_that_crowd_in_a_long_span():
    model, x = fitted("forest")
    short, long = tree_segments(model, [Segment(x[0], x[1]), Segment(x[0], x[1], span=(-1e6, 1e6))])
    inside = (long.boundaries > 0) & (long.boundaries < 1)
    assert np.array_equal(long.boundaries[inside], short.boundaries)


# at the door


def test_progress_counts_segments():
    model, x = fitted("tree")
    seen = []
    tree_segments(model, sample_probes(x, n=70, random_state=0), progress=lambda *report: seen.append(report))
    assert seen == [(32, 70), (64, 70), (70, 70)]


def test_results_have_every_field_that_the_constructor_sets_and_are_frozen():
    model, x = fitted("forest")
    for r in tree_segments(model, sample_probes(x, n=20, random_state=0)):
        constructed = DecisionSegment(**{f.name: getattr(r, f.name) for f in fields(DecisionSegment)})
        assert vars(constructed).keys() == vars(r).keys()
        assert constructed.to_dict() == r.to_dict()
        with pytest.raises(FrozenInstanceError):
            r.labels = r.labels[:1]


def test_no_segments_give_no_results():
    assert tree_segments(fitted("tree")[0], []) == []


def test_other_models_are_refused_with_a_reason():
    x, y = data()
    segments = [Segment(x[0], x[1])]
    with pytest.raises(
        PartitionError, match=r"LogisticRegression has no exact regions of trees.*use method='grid'"
    ):
        tree_segments(LogisticRegression().fit(x, y), segments)
    with pytest.raises(PartitionError, match="its structure is 'black-box': use method='grid'"):
        tree_segments(lambda points: points[:, 0] > 0, segments)


def test_probes_that_do_not_fit_are_refused():
    model, x = fitted("tree")
    with pytest.raises(
        PartitionError, match=r"segment 1 has points of shape \(2,\) = 2 numbers, .* take 5 features"
    ):
        tree_segments(model, [Segment(x[0], x[1]), Segment([0.0, 0.0], [1.0, 1.0])])
    with pytest.raises(PartitionError, match="probe 0 is a Simplex: exact regions of trees need a Segment"):
        tree_segments(model, [Simplex(x[:3])])
    with pytest.raises(PartitionError, match=r"segment 0 leaves the range \+-3.4e\+38 .*: shorten its span"):
        tree_segments(model, [Segment(x[0], x[1], span=(0, 1e39))])
    with pytest.raises(PartitionError, match=r"segment 0 leaves the range \+-4.49e\+307"):
        tree_segments(fitted("histogram")[0], [Segment(x[0], x[1], span=(0, 1.7e308))])
