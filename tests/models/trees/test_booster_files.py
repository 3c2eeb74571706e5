"""Files of boosted trees, and regions of boosted trees on data of few bits."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from boosted import cat, lgbm, xgb
from estimators import THREE, X
from predictions import assert_along
from sklearn.datasets import load_digits

import inscape
from inscape.errors import ModelError
from inscape.partition.decision.exact.trees import tree_segments

LIBRARIES = {
    "a.json": "xgboost",
    "a.ubj": "xgboost",
    "a.txt": "lightgbm",
    "b.json": "catboost",
    "a.cbm": "catboost",
}


def written(path):
    """A fitted estimator whose model is in the file."""
    library = LIBRARIES[path.name]
    pytest.importorskip(library)
    estimator = {"xgboost": xgb, "lightgbm": lgbm, "catboost": cat}[library]().fit(X, THREE)
    if library == "lightgbm":
        estimator.booster_.save_model(path)
    elif library == "catboost":
        estimator.save_model(str(path), format=path.suffix[1:])
    else:
        estimator.save_model(path)
    return estimator


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_file_is_the_model_that_was_saved(tmp_path, name):
    estimator = written(tmp_path / name)
    model = inscape.wrap(tmp_path / name)
    assert (model.name, model.structure) == (name, "trees")
    assert np.array_equal(model.labels(X), inscape.wrap(estimator).labels(X))
    found = inscape.decision_regions(model, inscape.Segment(X[0], X[1]), method="exact")
    assert_along(model, found, 1e-6)


@pytest.mark.parametrize("name", LIBRARIES)
def test_half_a_file_is_refused(tmp_path, name):
    path = tmp_path / name
    written(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ModelError, match=r"is not readable JSON|is not a readable model|is no whole model"):
        inscape.wrap(path)


def test_a_text_whose_trees_are_none_is_refused(tmp_path):
    path = tmp_path / "a.txt"
    written(path)
    for old, new, reason in [
        ("left_child=", "left_child=7", "a child that is no node of it"),
        ("split_feature=", "split_feature=9", "a feature that there is not"),
        ("num_leaves=", "num_leaves=1", "not as many leaves as it says"),
    ]:
        (tmp_path / "forged.txt").write_text(path.read_text().replace(old, new, 1))
        with pytest.raises(ModelError, match=f"lightgbm: tree 0 .*{reason}"):
            inscape.wrap(tmp_path / "forged.txt")


def test_a_text_that_crashes_lightgbm_is_refused(tmp_path):
    """Its header says how long each tree is; where that is not so the library ends the process."""
    path = tmp_path / "a.txt"
    written(path)
    path.write_text(path.read_text().replace("is_linear=0", "linear=0", 1))
    with pytest.raises(
        ModelError, match=r"a\.txt is damaged: lightgbm crashes when it is opened or predicts"
    ):
        inscape.wrap(path)


def test_other_json_is_no_model(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(ModelError, match="no model of XGBoost or CatBoost"):
        inscape.wrap(tmp_path / "a.json")


# data of few bits: every crossing is a fraction, and many points of a segment lie on splits


def crossings(trees, start, end):
    """Where whole-numbered features cross thresholds between t = 0 and 1, ends included, as fractions.

    Thresholds are halves: LightGBM's are the next numbers above them, or 1e-35 for zero.
    """
    found, inner = {Fraction(0), Fraction(1)}, trees.feature >= 0
    for f, halves in set(zip(trees.feature[inner], np.rint(2 * trees.threshold[inner]), strict=True)):
        way = int(end[f]) - int(start[f])
        if way:
            found.add((Fraction(int(halves), 2) - int(start[f])) / way)
    return sorted(t for t in found if 0 <= t <= 1)


@pytest.fixture(scope="module", params=[xgb, lgbm, cat], ids=["xgboost", "lightgbm", "catboost"])
def on_pixels(request):
    """A model of digits, regions on segments between them, and where these cross thresholds."""
    pytest.importorskip({"xgb": "xgboost", "lgbm": "lightgbm", "cat": "catboost"}[request.param.__name__])
    x, y = load_digits(return_X_y=True)
    model = inscape.wrap(request.param().fit(x[:300], y[:300]))
    found = tree_segments(model, inscape.sample_probes(x[:300], n=60, random_state=0))
    return model, [(r, crossings(model.trees, r.probe.start, r.probe.end)) for r in found]


def test_regions_of_pixels_are_those_between_crossings_in_rational_arithmetic(on_pixels):
    model, found = on_pixels
    for r, t in found:
        middles = np.array([float((a + b) / 2) for a, b in pairwise(t)])  # far from any rounding
        labels = model.labels(r.probe.points(middles))
        changes = np.flatnonzero(np.diff(labels)) + 1
        assert r.labels.tolist() == labels[[0, *changes]].tolist()
        assert np.allclose(r.boundaries, [float(t[i]) for i in changes], rtol=0, atol=1e-6)


def test_only_points_on_a_split_are_labelled_unlike_their_region(on_pixels):
    """On dyadic t all pixels are float32 numbers, so that `predict` sees the very point."""
    model, found = on_pixels
    t, n_on_splits = np.arange(257) / 256, 0
    for r, crossed in found:
        labels = model.labels(r.probe.points(t))
        expected = r.labels[np.searchsorted(r.boundaries, t)]
        alone = {float(c) for c in crossed if c.denominator <= 256}
        assert all(value in alone for value in t[labels != expected])
        n_on_splits += int((labels != expected).sum())
    if "Cat" not in model.name:  # it splits between pixel values, where all pixels stay on the left
        assert n_on_splits > 0


def test_an_end_that_is_labelled_unlike_its_region_is_counted(on_pixels):
    """XGBoost splits at pixel values and LightGBM at zero, so that images themselves lie on splits."""
    model, found = on_pixels
    n_lone = 0
    for r, _ in found:
        ends = model.labels(r.probe.points(np.array([0.0, 1.0])))
        alone = int((ends != r.labels[[0, -1]]).sum())
        assert r.trees.n_lone <= alone <= r.trees.n_lone + r.trees.n_narrow
        assert ("on a split, with another label at that single point" in r.status) == (r.trees.n_lone > 0)
        n_lone += alone
    assert (n_lone > 0) == ("Cat" not in model.name)
    if "LGBM" in model.name:  # zero is a single number; around the others float32 leaves a sliver
        assert sum(r.trees.n_lone for r, _ in found) > 0


def test_slivers_between_splits_of_pixels_are_no_regions(on_pixels):
    """Slivers are what `narrow` adds, and what `predict` sees there."""
    model, found = on_pixels
    fine = tree_segments(model, [r.probe for r, _ in found], narrow=True)
    for (r, _), f in zip(found, fine, strict=True):
        assert r.n_regions <= f.n_regions <= r.n_regions + 2 * f.trees.n_narrow
        ends = np.concatenate([[0.0], f.boundaries, [1.0]])
        wide = np.diff(ends) > 1e-9
        middles = (ends[:-1] + ends[1:])[wide] / 2
        assert np.array_equal(model.labels(r.probe.points(middles)), f.labels[wide])
    assert sum(f.trees.n_narrow for f in fine) > 0
