"""Tables: columns are found by their names, and named where they do not fit."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import inscape
from inscape import Patch
from inscape.errors import DataError, ProbeError
from inscape.probes import Probe
from inscape.training import load_data


@pytest.fixture
def table(rng):
    x = pd.DataFrame(rng.normal(size=(60, 3)) * [1, 10, 100], columns=["a", "b", "c"])
    return x, np.where(x["c"] + 10 * x["b"] > 0, "up", "down")


@pytest.fixture
def tree(table):
    return DecisionTreeClassifier(random_state=0).fit(*table)


def test_columns_in_another_order_change_nothing(table, tree):
    """scikit-learn would refuse such a table; taken as it stands, all numbers would be wrong."""
    x, y = table
    mixed = x[["c", "a", "b"]].assign(id=range(60))
    for other in (mixed, x):
        counted = inscape.region_count(tree, other, n_probes=20, random_state=0)
        assert (
            counted.counts.tolist()
            == inscape.region_count(tree, x.to_numpy(), n_probes=20, random_state=0).counts.tolist()
        )
        assert inscape.measure(tree, other, y, measures=["accuracy"])["accuracy"]["value"] == 1.0
        ranking = inscape.rank([tree, tree], other, y=y, train=(other, y), n_probes=5, random_state=0)
        assert set(ranking.accuracy.values()) == set(ranking.train_accuracy.values()) == {1.0}
        assert inscape.agreement(tree, tree, other, n_probes=5, random_state=0).at_points == 1.0
    assert inscape.explore(tree, mixed, y).exhibit.data.features == ("a", "b", "c")


def test_a_missing_column_is_named(table, tree):
    x, _ = table
    with pytest.raises(DataError, match="no column 'b', which DecisionTreeClassifier was fitted with"):
        inscape.region_count(tree, x[["a", "c"]])


def test_models_of_different_columns_have_no_common_input_space(table, tree):
    x, y = table
    other = LogisticRegression().fit(x[["b", "a", "c"]], y)
    with pytest.raises(DataError, match="were fitted to different columns"):
        inscape.rank({"tree": tree, "other": other}, x)


def test_columns_that_are_no_numbers_are_named(table, tree):
    x, _ = table
    words = x.assign(kind="red", shape="round")
    with pytest.raises(ProbeError, match="not numbers: 'kind', 'shape'; leave them out, or encode them"):
        Patch.through(words, rows=[0, 1, 2])
    with pytest.raises(ProbeError, match="not numbers: 'kind', 'shape'"):
        inscape.sample_probes(words)
    assert len(inscape.region_count(tree, words, n_probes=5, random_state=0).counts) == 5  # it needs neither


def test_a_plane_of_other_columns_is_refused(table, tree):
    x, _ = table
    mixed = x[["c", "a", "b"]]
    for patch in (Patch.through(mixed, rows=[0, 1, 2]), Patch.features(mixed, "a", "c")):
        again = Probe.from_dict(patch.to_dict())
        assert again.feature_names == ("c", "a", "b")
        for wanted in (inscape.decision_regions, lambda m, p: inscape.compare(m, m, p)):
            with pytest.raises(ProbeError, match="'c', 'a', 'b', and DecisionTreeClassifier was fitted to"):
                wanted(tree, again)
    assert inscape.decision_regions(tree, Patch.through(x, rows=[0, 1, 2])).is_exact


def test_columns_of_a_file_are_found_by_name(table, tree, tmp_path):
    x, y = table
    path = tmp_path / "table.csv"
    x[["c", "b", "a"]].assign(id=range(60), y=y).to_csv(path, index=False)
    data = load_data(path)
    assert data.feature_names == ("c", "b", "a", "id")
    fitting = data.fitting(inscape.wrap(tree))
    np.testing.assert_allclose(fitting.x, x.to_numpy())
    assert (tree.predict(pd.DataFrame(fitting.x, columns=x.columns)) == data.y).all()
    assert data.subset(10).feature_names == data.feature_names
