"""`rank`: the order of models, and the probability that it is right."""

import json

import numpy as np
import pytest
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import inscape
from inscape.errors import DataError, ModelError, ProbeError
from inscape.measures.measurement import probability_less
from inscape.measures.rank import MEANING, Ranking


@pytest.fixture
def x(rng):
    return rng.uniform(size=(100, 2))


def waves(k):
    return lambda x: (np.sin(2 * np.pi * k * x[:, 0]) > 0).astype(int)


def test_order_and_certainty(x):
    r = inscape.rank({"many": waves(8), "few": waves(1), "some": waves(3)}, x, random_state=0)
    assert r.order == ("few", "some", "many")
    assert all(p > 0.999 for p in r.probabilities)


def test_models_share_their_probes(x):
    r = inscape.rank({"a": waves(2), "b": waves(2)}, x, random_state=0)
    assert r.results["a"].counts.tolist() == r.results["b"].counts.tolist()
    assert r.probabilities == (0.5,)
    alone = inscape.region_count(waves(2), x, random_state=0)
    assert alone.counts.tolist() == r.results["a"].counts.tolist()


def test_each_model_is_counted_by_its_best_method_unless_one_is_named(x):
    tree = DecisionTreeClassifier(random_state=0).fit(x, np.arange(100) % 2)
    both = {"tree": tree, "waves": waves(3)}
    r = inscape.rank(both, x, random_state=0)
    assert {row["model"]: row["method"] for row in r.rows()} == {"tree": "exact", "waves": "adaptive"}
    exact = inscape.region_count(tree, x, method="exact", random_state=0)
    assert r.results["tree"].counts.tolist() == exact.counts.tolist()
    assert {row["model"]: row["missed"] is None for row in r.rows()} == {"tree": True, "waves": False}
    for method in ("adaptive", "grid"):
        named = inscape.rank(both, x, method=method, random_state=0)
        assert {result.method for result in named.results.values()} == {method}


def test_what_an_inexact_count_missed_is_part_of_the_order_and_of_its_probability(rng):
    """A forest and the same forest as a black box have equal counts in truth: neither is surely first."""
    x = rng.normal(size=(300, 5))
    forest = RandomForestClassifier(20, random_state=0).fit(x, rng.integers(3, size=300))
    models = {"exact": forest, "black box": lambda x: forest.predict_proba(x)}
    r = inscape.rank(models, x, n_probes=160, random_state=0)
    exact, black_box = r.results["exact"], r.results["black box"]
    assert exact.mean > black_box.mean
    assert black_box.mean + black_box.missed_interval[1] > exact.mean
    assert black_box.interval[1] > exact.mean
    blind = probability_less(black_box.counts, exact.counts)
    assert blind > 0.99  # without the estimate of what was missed the wrong order would be certain
    assert r.probabilities[0] < 0.98


def test_a_known_shift_and_its_error_enter_the_probability(rng):
    a, b = rng.poisson(3, 50), rng.poisson(3.4, 50)
    d = b - a + 0.7
    t = d.mean() / np.hypot(stats.sem(d), 0.2)
    assert np.isclose(probability_less(a, b, shift=0.7, shift_error=0.2), stats.t.cdf(t, 49))
    assert probability_less(a, a, shift=0.3, shift_error=0.1) > 0.99
    assert probability_less(a, a, shift=-0.3, shift_error=0.1) < 0.01


def test_probability_is_the_one_sided_paired_t_test(rng):
    a, b = rng.poisson(3, 50), rng.poisson(3.4, 50)
    expected = 1 - stats.ttest_rel(b, a, alternative="greater").pvalue
    assert np.isclose(probability_less(a, b), expected)
    assert np.isclose(probability_less(a, b) + probability_less(b, a), 1)


def test_probability_is_calibrated(rng):
    """Of pairs declared right with probability p, about p are; here half of all pairs are ordered wrongly."""
    said = np.array([probability_less(*rng.poisson(4, (2, 40))) for _ in range(2000)])
    assert stats.kstest(said, "uniform").pvalue > 1e-3


def test_few_probes_are_never_certain():
    assert probability_less(np.array([1, 2]), np.array([2, 3])) == 1 - 1 / 8
    assert probability_less(np.array([2, 3]), np.array([1, 2])) == 1 / 8
    assert probability_less(np.zeros(60, dtype=int), np.ones(60, dtype=int)) == pytest.approx(1)


def test_a_warning_calls_the_model_by_its_name_in_the_ranking(x):
    with pytest.warns(inscape.InscapeWarning, match="flat predicts class 0"):
        inscape.rank({"flat": lambda x: np.zeros(len(x), dtype=int), "waves": waves(2)}, x)


def test_table_and_json(x):
    r = inscape.rank({"a": waves(2), "b": waves(5)}, x, n_probes=10, random_state=0)
    frame = r.to_frame()
    assert frame["model"].tolist() == ["a", "b"]
    assert frame["p_before_next"].isna().tolist() == [False, True]
    data = json.loads(json.dumps(r.to_dict(), allow_nan=False))
    assert data["order"] == ["a", "b"]
    assert repr(r) == "<ranking by region count: a 1.9 +- 0.35 (97%) < b 3.4 +- 0.76>"


def test_status_is_a_short_code_and_the_rest_a_note(x):
    r = inscape.rank({"a": waves(2), "b": waves(5)}, x, n_probes=10, random_state=0)
    assert {row["status"] for row in r.rows()} == {"not_shown"}
    assert {row["note"] for row in r.rows()} == {r.results["a"].status.detail}
    lines = str(r).splitlines()
    assert lines[0].split()[-1] == "status"
    assert lines[2].split()[-1] == "not_shown"
    assert lines[5].startswith("a, b: ")
    assert "accuracy" not in lines[0]
    assert str(r).endswith(f"{MEANING.split()[-1]}")


def test_accuracy_and_gap_stand_beside_the_count(x):
    y, train_y = waves(1)(x), waves(3)(x[:50])
    models = {"one": waves(1), "three": waves(3)}
    r = inscape.rank(models, x, y=y, train=(x[:50], train_y), n_probes=10, random_state=0)
    agree = float((waves(3)(x) == y).mean())
    fit = float((waves(1)(x[:50]) == train_y).mean())
    assert r.accuracy == {"one": 1.0, "three": agree}
    assert r.train_accuracy == {"one": fit, "three": 1.0}
    assert r.gap == {"one": fit - 1.0, "three": 1.0 - agree}
    assert "says little about its gap" in r.notes["one"]
    assert "three" not in r.notes
    frame = r.to_frame().set_index("model")
    assert frame["gap"].to_dict() == r.gap
    assert "accuracy" in str(r).splitlines()[0]
    again = Ranking.from_dict(json.loads(json.dumps(r.to_dict())))
    assert str(again) == str(r)


def test_data_may_carry_their_classes(x):
    pairs = list(zip(x, waves(1)(x).tolist(), strict=True))
    r = inscape.rank({1: waves(1), 3: waves(3)}, pairs, train=pairs[:60], n_probes=5, random_state=0)
    assert r.accuracy["1"] == r.train_accuracy["1"] == 1.0
    assert r.gap["3"] != 0
    with pytest.raises(DataError, match="train holds no classes"):
        inscape.rank([waves(1), waves(3)], x, train=x)


def test_classes_of_another_kind_leave_the_accuracy_out(x):
    y = np.where(waves(2)(x) > 0, "up", "down")
    r = inscape.rank([waves(2), waves(8)], x, y=y, n_probes=5, random_state=0)
    assert r.accuracy == {}
    assert all("accuracy not known" in note for note in r.notes.values())


def test_a_list_is_named_by_type_and_where_shared_by_index(x):
    tree = DecisionTreeClassifier(random_state=0).fit(x, np.arange(100) % 2)
    forest = RandomForestClassifier(5, random_state=0).fit(x, np.arange(100) % 2)
    r = inscape.rank([tree, forest, tree], x, n_probes=3, random_state=0)
    names = ["DecisionTreeClassifier [0]", "RandomForestClassifier", "DecisionTreeClassifier [2]"]
    assert sorted(r.order) == sorted(names)


def test_pipelines_in_a_list_are_named_by_what_predicts(x):
    y = np.arange(100) % 2
    last = [DecisionTreeClassifier(random_state=0), RandomForestClassifier(5, random_state=0)]
    tree, forest = (make_pipeline(StandardScaler(), step).fit(x, y) for step in last)
    r = inscape.rank([tree, forest], x, n_probes=3, random_state=0)
    assert sorted(r.order) == ["DecisionTreeClassifier", "RandomForestClassifier"]
    twice = inscape.rank([tree, forest, tree], x, n_probes=3, random_state=0)
    names = ["DecisionTreeClassifier [0]", "DecisionTreeClassifier [2]", "RandomForestClassifier"]
    assert sorted(twice.order) == names


def test_a_wrong_keyword_is_an_error_of_rank(x):
    with pytest.raises(TypeError, match=r"rank\(\) got an unexpected keyword argument 'n_probe'"):
        inscape.rank([waves(2), waves(8)], x, n_probe=5)


def test_progress_counts_models(x):
    seen = []
    models = {"a": waves(2), "b": waves(5)}
    inscape.rank(models, x, n_probes=3, random_state=0, progress=lambda *s: seen.append(s))
    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_bad_requests(x):
    with pytest.raises(ModelError, match="at least two models"):
        inscape.rank({"a": waves(1)}, x)
    with pytest.raises(ModelError, match="needs at least two models, got 1"):
        inscape.rank([waves(1)], x)
    with pytest.raises(ModelError, match="a list of models, got function"):
        inscape.rank(waves(1), x)
    with pytest.raises(ModelError, match="same name"):
        inscape.rank({1: waves(1), "1": waves(2)}, x)
    with pytest.raises(ProbeError, match="n_probes=1 is too small"):
        inscape.rank({"a": waves(1), "b": waves(2)}, x, n_probes=1)
