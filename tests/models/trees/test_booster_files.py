"""Files of boosted trees, and regions of boosted trees on data of few bits."""

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


def test_other_json_is_no_model(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(ModelError, match="no model of XGBoost or CatBoost"):
        inscape.wrap(tmp_path / "a.json")


@pytest.mark.parametrize("make", [xgb, lgbm, cat])
def test_slivers_between_splits_of_pixels_are_no_regions(make):
    """Points drawn at random see the regions of the default count; slivers are what `narrow` adds."""
    pytest.importorskip({"xgb": "xgboost", "lgbm": "lightgbm", "cat": "catboost"}[make.__name__])
    x, y = load_digits(return_X_y=True)
    model = inscape.wrap(make().fit(x[:300], y[:300]))
    probes = inscape.sample_probes(x[:300], n=20, random_state=0)
    wide, all_of_them = tree_segments(model, probes), tree_segments(model, probes, narrow=True)
    for found, fine in zip(wide, all_of_them, strict=True):
        assert found.n_regions <= fine.n_regions <= found.n_regions + 2 * fine.trees.n_narrow
        widths = np.diff(np.concatenate([[0.0], found.boundaries, [1.0]]))
        assert widths.min() > 1e-7
        t = np.random.default_rng(0).uniform(size=2000)
        t = t[np.abs(t[:, None] - found.boundaries).min(axis=1, initial=1.0) > 1e-6]
        expected = found.labels[np.searchsorted(found.boundaries, t)]
        assert np.array_equal(model.labels(found.probe.points(t)), expected)
    assert sum(fine.trees.n_narrow for fine in all_of_them) > 0
