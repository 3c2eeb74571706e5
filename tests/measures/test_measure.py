"""`measure`: a row for each measure on every kind of model, or the reason why there is no number."""

import json
from functools import partial

import numpy as np
import pytest
import torch
from networks import mlp
from scipy import stats
from sklearn.tree import DecisionTreeClassifier
from torch import nn
from torch.utils.data import TensorDataset

import inscape
from inscape.errors import DataError, InscapeError, NotApplicableError
from inscape.measures.accuracy import correct
from inscape.measures.jacobian import passes
from inscape.measures.measure import MEASURES
from inscape.measures.measurement import crossed_mean, wilson


@pytest.fixture
def x(rng):
    return rng.uniform(size=(60, 2))


def halves(x):
    return (x[:, 0] > 0.5).astype(int)


def test_default_measures(x):
    assert [r["measure"] for r in inscape.measure(halves, x).rows] == ["region_count"]
    table = inscape.measure(halves, x, halves(x), random_state=0)
    assert [r["measure"] for r in table.rows] == ["region_count", "accuracy"]
    assert table["accuracy"]["value"] == 1.0
    assert table["region_count"]["value"] == inscape.region_count(halves, x, random_state=0).mean


def test_tidy_frame_and_json(x):
    table = inscape.measure(halves, x, halves(x), random_state=0)
    frame = table.to_frame()
    assert list(frame.columns)[:6] == ["measure", "value", "std_error", "low", "high", "n"]
    assert len(frame) == 2
    json.dumps(table.to_dict(), allow_nan=False)
    assert "region_count 1." in repr(table)


def test_settings_of_a_measure(x):
    table = inscape.measure(halves, x, measures={"region_count": {"dim": 2, "n_probes": 9}}, random_state=4)
    row = table["region_count"]
    assert row["n"] == 9
    assert row["settings"]["dim"] == 2
    assert row["settings"]["seed"] == 4


def test_a_measure_that_does_not_apply_is_a_row_with_the_reason(x):
    row = inscape.measure(halves, x, measures=["accuracy"])["accuracy"]
    assert row["value"] is None
    assert "needs y" in row["note"]


def test_off_data_classes_are_noted():
    x = np.array([[0.0], [1.0]])
    row = inscape.measure(lambda x: np.digitize(x[:, 0], [0.4, 0.6]), x)["region_count"]
    assert (
        row["note"].split("; ")[-1]
        == "classes 1 are predicted on the probes but at none of their data points"
    )


def test_data_sets_carry_their_classes(x):
    data = TensorDataset(torch.from_numpy(x), torch.from_numpy(halves(x)))
    assert inscape.measure(halves, data)["accuracy"]["value"] == 1.0


def test_accuracy_compares_names(x):
    names = np.where(halves(x) == 1, "right", "left")
    model = inscape.wrap(DecisionTreeClassifier().fit(x, names))
    assert correct(model, x, names).all()
    numbers = inscape.wrap(DecisionTreeClassifier().fit(x, halves(x) * 4 + 3))
    assert correct(numbers, x, halves(x) * 4 + 3).all()
    assert correct(numbers, x, (halves(x) * 4 + 3).astype(float)).all()


def test_one_measure_by_name(x):
    assert [r["measure"] for r in inscape.measure(halves, x, measures="region_count").rows] == [
        "region_count"
    ]


def test_the_interval_of_an_accuracy_stays_within_0_and_1(x):
    row = inscape.measure(halves, x, halves(x), measures=["accuracy"])["accuracy"]
    assert 0.9 < row["low"] < 1
    assert row["high"] == pytest.approx(1.0)
    low, high = wilson(3, 40)
    expected = stats.binomtest(3, 40).proportion_ci(method="wilson")
    assert (low, high) == pytest.approx((expected.low, expected.high))


JACOBIAN = {
    "local_complexity": {"sigma": 0.3, "n_noise": 4},
    "local_rank": {"eps": 0.2},
    "total_variation": {"of": "predicted"},
}


def counted_passes(monkeypatch):
    calls = []
    original = passes.jacobian_pass

    def counting(graph, x, consumers, *args):
        calls.append(len(consumers))
        return original(graph, x, consumers, *args)

    monkeypatch.setattr(passes, "jacobian_pass", counting)
    return calls


def test_one_pass_over_jacobians_serves_three_measures(x, monkeypatch):
    calls = counted_passes(monkeypatch)
    net = mlp(2, 6, 6, 3)
    table = inscape.measure(net, x, measures=JACOBIAN, random_state=5)
    assert calls == [3]
    assert table["local_complexity"]["value"] == pytest.approx(
        inscape.local_complexity(net, x, sigma=0.3, n_noise=4, random_state=5).value, rel=1e-12
    )
    assert table["local_rank"]["value"] == inscape.local_rank(net, x, eps=0.2).value
    assert table["total_variation"]["value"] == pytest.approx(
        inscape.total_variation(net, x, of="predicted").value, rel=1e-12
    )
    assert "by layer" in table["local_rank"]["note"]
    assert len({row["seconds"] for row in table.rows}) == 1  # each has its share of the one pass


def test_single_precision_does_not_spoil_the_rank(x, monkeypatch):
    calls = counted_passes(monkeypatch)
    rough = JACOBIAN | {"local_complexity": {"sigma": 0.3, "n_noise": 4, "precision": "float32"}}
    table = inscape.measure(mlp(2, 6, 6, 3), x, measures=rough, random_state=5)
    assert calls == [1, 2]
    assert table["local_complexity"]["settings"]["precision"] == "float32"


@pytest.mark.filterwarnings("ignore:.*no better than chance:inscape.errors.InscapeWarning")
def test_every_measure_of_a_network(x):
    net = mlp(2, 6, 3)
    settings = {name: {} for name in MEASURES} | {"agreement": {"others": [net]}}
    settings |= {"parameter_distance": {"initial_state": net.state_dict()}}
    table = inscape.measure(net, x, halves(x), measures=settings, random_state=0)
    assert [row["measure"] for row in table.rows] == list(MEASURES)
    assert all(row["value"] is not None for row in table.rows)
    assert all(row["status"] == "complete" or row["measure"] == "region_count" for row in table.rows)
    json.dumps(table.to_dict(), allow_nan=False)
    assert table["adversarial_accuracy"]["settings"]["eps"] == 0.03


def test_what_does_not_apply_is_a_row_with_the_reason(x):
    table = inscape.measure(halves, x, halves(x), measures=list(MEASURES), random_state=0)
    reasons = {r["measure"]: r["note"] for r in table.rows if r["status"] == "not applicable"}
    assert set(reasons) == set(MEASURES) - {"region_count", "accuracy"}
    assert "affine and piecewise-linear" in reasons["local_complexity"]
    assert "derivatives" in reasons["total_variation"]
    assert "torch module" in reasons["sharpness"]
    smooth = nn.Sequential(nn.Linear(2, 3), nn.GELU(), nn.Linear(3, 2))
    rows = inscape.measure(smooth, x, measures=JACOBIAN, random_state=0)
    assert rows["local_complexity"]["value"] is None
    assert rows["local_rank"]["value"] is not None
    assert rows["total_variation"]["value"] is not None
    assert "needs y" in inscape.measure(smooth, x, measures="sharpness")["sharpness"]["note"]


def test_bad_requests(x):
    with pytest.raises(InscapeError, match=r"unknown setting of region_count 'dims'.*did you mean 'dim'"):
        inscape.measure(halves, x, measures={"region_count": {"dims": 2}})
    with pytest.raises(InscapeError, match=r"measures=\[\] names none"):
        inscape.measure(halves, x, measures=[])
    with pytest.raises(KeyError, match="foo"):
        inscape.measure(halves, x)["foo"]
    tree = inscape.wrap(DecisionTreeClassifier().fit(x, halves(x)))
    with pytest.raises(
        DataError,
        match=r"y holds 'cat', 'dog', which are no classes of DecisionTreeClassifier: it knows 0, 1",
    ):
        correct(tree, x, np.where(halves(x) == 1, "cat", "dog"))
    with pytest.raises(InscapeError, match=r"unknown measure 'region_cuont'.*did you mean 'region_count'"):
        inscape.measure(halves, x, measures=["region_cuont"])
    with pytest.raises(DataError, match="has no class names"):
        correct(inscape.wrap(halves), x, np.full(60, "a"))
    with pytest.raises(DataError, match=r"y has shape \(2,\) for 60 points"):
        correct(inscape.wrap(halves), x, [0, 1])


def test_the_error_of_a_mean_over_rows_and_columns():
    """Against the spread of many simulated tables."""
    rng = np.random.default_rng(0)
    tables = [
        rng.normal(size=(6, 1)) + 2 * rng.normal(size=(1, 5)) + 3 * rng.normal(size=(6, 5))
        for _ in range(2000)
    ]
    means, errors, intervals = zip(*map(crossed_mean, tables), strict=True)
    assert np.mean(np.square(errors)) == pytest.approx(1 / 6 + 4 / 5 + 9 / 30, rel=0.1)
    assert np.std(means) == pytest.approx(np.sqrt(1 / 6 + 4 / 5 + 9 / 30), rel=0.05)
    assert np.mean([low < 0 < high for low, high in intervals]) > 0.93
    assert np.isnan(crossed_mean(np.ones((1, 5)))[1])


def test_targets_of_several_columns_reach_the_sharpness():
    torch.manual_seed(0)
    net, x, targets = torch.nn.Linear(3, 2), torch.randn(20, 3), torch.randn(20, 2)
    table = inscape.measure(net, x, targets, measures={"sharpness": {"loss": "mse"}, "margin": {}})
    assert table["sharpness"]["value"] == pytest.approx(inscape.sharpness(net, x, targets, loss="mse").value)
    assert "needs y" in table["margin"]["note"]


def test_labels_in_a_column_are_labels():
    torch.manual_seed(0)
    net, x, y = torch.nn.Linear(3, 2), torch.randn(20, 3), torch.randint(2, (20,))
    attack = {"eps": 0.1, "steps": 2, "step_size": 0.1, "random_state": 0}
    for function, settings in (
        (inscape.margin, {}),
        (inscape.sharpness, {}),
        (inscape.adversarial_accuracy, attack),
    ):
        flat, column = (function(net, x, labels, **settings).value for labels in (y, y[:, None]))
        assert flat == column
        assert function(net, x, y[:, None].tolist(), **settings).value == flat
    shapes = []
    inscape.sharpness(net, x, y[:, None], loss=lambda s, t: shapes.append(t.shape) or s.square().mean())
    assert shapes == [(20, 1)]


@pytest.mark.parametrize("bad", [True, "a", None, [0.1, 0.2], float("nan"), 0, -1.0])
def test_numbers_of_a_wrong_kind_are_refused(bad):
    net, x, y = mlp(3, 4, 2), torch.randn(5, 3), [0, 1, 0, 1, 0]
    attack = {"eps": 0.1, "steps": 1, "step_size": 0.1}
    calls = [
        lambda: inscape.local_complexity(net, x, sigma=bad),
        lambda: inscape.local_rank(net, x, eps=bad),
        lambda: inscape.hull_crossings(net, x, radius=bad, n_directions=1),
        lambda: inscape.adversarial_accuracy(net, x, y, **attack | {"step_size": bad}),
        lambda: inscape.sharpness(net, x, y, tolerance=bad),
    ]
    if bad is not None:
        calls.append(lambda: inscape.total_variation(net, x, sigma=bad))
        calls.append(lambda: inscape.adversarial_accuracy(net, x, y, **attack, box=bad))
    if bad != 0:
        calls.append(lambda: inscape.adversarial_accuracy(net, x, y, **attack | {"eps": bad}))
    for call in calls:
        with pytest.raises(InscapeError):
            call()


def test_scalars_of_numpy_and_torch_are_numbers():
    net, x = mlp(3, 4, 2), torch.randn(5, 3)
    for sigma in (np.float32(0.5), torch.tensor(0.5), np.array(0.5)):
        assert inscape.local_complexity(net, x, sigma=sigma, n_noise=1).settings["sigma"] == 0.5


def test_weights_that_are_not_finite_are_named():
    net, x, y = mlp(3, 4, 2), torch.randn(5, 3), [0, 1, 0, 1, 0]
    net[0].weight.data[0, 0] = torch.nan
    for call in (
        lambda: inscape.local_rank(net, x, eps=0.1),
        lambda: inscape.total_variation(net, x),
        lambda: inscape.total_variation(net, x, sigma=0.1),
        lambda: inscape.local_complexity(net, x, sigma=0.1),
        lambda: inscape.sharpness(net, x, y),
    ):
        with pytest.raises(InscapeError, match=r"weights of Sequential are not finite: 0\.weight"):
            call()
    names = ["local_rank", "total_variation", "local_complexity"]
    assert all("not finite" in row["note"] for row in inscape.measure(net, x, measures=names).rows)


def test_targets_that_do_not_fit_are_refused():
    net, x = mlp(3, 4, 2), torch.randn(5, 3)
    nan = np.zeros((5, 2))
    nan[0, 0] = np.nan
    for y in (np.zeros((5, 3)), np.zeros((4, 2)), nan, [0, 1, 2, 0, 1], [0, -1, 0, 1, 0], np.zeros(5)):
        with pytest.raises(InscapeError):
            inscape.sharpness(net, x, y, loss="mse")


def test_an_initial_state_of_arrays():
    net = mlp(3, 4, 2)
    state = {name: value.numpy() + 1 for name, value in net.state_dict().items()}
    assert inscape.parameter_distance(net, state).value == pytest.approx(np.sqrt(26), rel=1e-6)


def spread(model, x, *, power: float = 1.0):
    """One number per point."""
    return np.abs(x[:, 0]) ** power


def test_a_function_of_ones_own_is_a_measure(x):
    table = inscape.measure(halves, x, measures=["region_count", spread], random_state=0)
    row = table["spread"]
    values = np.abs(x[:, 0])
    assert [r["measure"] for r in table.rows] == ["region_count", "spread"]
    assert row["value"] == pytest.approx(values.mean())
    assert row["std_error"] == pytest.approx(stats.sem(values))
    assert (row["n"], row["status"], row["settings"]) == (60, "complete", {"power": 1.0, "seed": None})
    json.dumps(table.to_dict(), allow_nan=False)
    assert "settings of spread: power 1\n" in str(table) + "\n"


def test_own_measures_get_what_they_ask_for_by_name(x):
    given = {}

    def curious(model, x, y, *, random_state, progress=None):
        given.update(model=model, x=x, y=y, seed=random_state)
        return 1

    def needy(model, x):
        raise NotApplicableError("needs more")

    row = inscape.measure(halves, x, halves(x), measures=[curious, needy], random_state=3)["curious"]
    assert given["model"].labels(x).tolist() == given["y"].tolist()
    assert (given["x"].shape, given["seed"], row["value"], row["std_error"]) == ((60, 2), 3, 1.0, None)
    without = inscape.measure(halves, x, measures=[curious, needy])
    assert {r["measure"]: r["note"] for r in without.rows} == {
        "curious": "needs y, the true classes",
        "needy": "needs more",
    }


def test_own_measures_by_name_and_their_errors(x):
    named = {"twice": partial(spread, power=2), "once": lambda model, x: torch.tensor(2.5)}
    table = inscape.measure(halves, x, measures=named)
    assert table["twice"]["value"] == pytest.approx((x[:, 0] ** 2).mean())
    assert table["twice"]["settings"]["power"] == 2
    assert table["once"]["value"] == 2.5
    ours = inscape.measure(halves, x, halves(x), measures=[inscape.region_count, inscape.margin])
    assert [r["measure"] for r in ours.rows] == ["region_count", "margin"]
    with pytest.raises(InscapeError, match="has no name: name it"):
        inscape.measure(halves, x, measures=[lambda model, x: 1])
    with pytest.raises(InscapeError, match="two measures are called spread"):
        inscape.measure(halves, x, measures=[spread, spread])
    with pytest.raises(InscapeError, match="margin is a measure of inscape"):
        inscape.measure(halves, x, measures={"margin": spread})
    with pytest.raises(InscapeError, match="measure word returned str: expected a number, one per point"):
        inscape.measure(halves, x, measures={"word": lambda model, x: "many"})


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda model, x: None, "measure mine returned NoneType: expected a number"),
        (
            lambda model, x: x[:7, 0],
            "measure mine returned 7 numbers for 60 points: expected a number, one per",
        ),
        (lambda model, x: 1 / 0, "measure mine raised ZeroDivisionError: division by zero"),
        (
            lambda model: 1.0,
            r"measure mine raised TypeError: .* takes 1 positional argument but 2 were given",
        ),
        (lambda model, x, *, k: k, "mine needs the setting k: .*functools.partial"),
        (max, "max> does not say what it takes: expected a function of a model and points"),
    ],
)
def test_what_a_function_of_ones_own_does_wrong_is_said_by_its_name(x, function, message):
    with pytest.raises(InscapeError, match=message):
        inscape.measure(halves, x, measures={"mine": function})


def test_a_function_of_ones_own_may_collect_arguments(x):
    table = inscape.measure(
        halves, x, measures={"mine": lambda model, *points, **more: len(points) + len(more)}
    )
    assert (table["mine"]["value"], table["mine"]["settings"]) == (1.0, {"seed": None})


def test_an_own_measure_without_a_finite_value_has_none_and_says_so(x):
    holes = {
        "few": lambda model, x: np.where(x[:, 0] < np.median(x[:, 0]), np.nan, 1),
        "no": lambda m, x: np.inf,
    }
    rows = inscape.measure(halves, x, measures=holes).rows
    assert [(row["value"], row["status"]) for row in rows] == [(None, "not applicable")] * 2
    assert [row["note"] for row in rows] == [
        "few is not a finite number at 30 of 60 points",
        "no is not a finite number",
    ]


def test_an_own_measure_that_returns_a_result_is_read_back_as_it_was(x):
    counted = {"counted": lambda model, x: inscape.region_count(model, x, n_probes=5, random_state=0)}
    table = inscape.measure(halves, x, measures=counted)
    assert type(table).from_dict(json.loads(json.dumps(table.to_dict()))).rows == table.rows


@pytest.fixture
def plug_in(tmp_path, monkeypatch):
    """An installed package that has measures."""
    (tmp_path / "plugged.py").write_text(
        "def breadth(model, x, *, k):\n    return k * float(x.max())\nvalue = 3\n", encoding="utf-8"
    )
    info = tmp_path / "plugged-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n", encoding="utf-8")
    points = "[inscape.measures]\nbreadth = plugged:breadth\nlost = plugged:nowhere\nvalue = plugged:value\n"
    (info / "entry_points.txt").write_text(points, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("plug_in")
def test_another_package_adds_a_measure_by_an_entry_point(x):
    table = inscape.measure(halves, x, measures={"breadth": {"k": 2}})
    assert table["breadth"]["value"] == 2 * x.max()
    assert table["breadth"]["settings"]["k"] == 2
    with pytest.raises(InscapeError, match=r"breadth needs the setting k: .*{'breadth': {'k': \.\.\.}}"):
        inscape.measure(halves, x, measures=["breadth"])
    with pytest.raises(InscapeError, match="unknown setting of breadth 'n'"):
        inscape.measure(halves, x, measures={"breadth": {"n": 2}})
    with pytest.raises(InscapeError, match="did you mean 'breadth'"):
        inscape.measure(halves, x, measures=["breath"])
    with pytest.raises(InscapeError, match="lost cannot be loaded from plugged:nowhere: AttributeError"):
        inscape.measure(halves, x, measures=["lost"])
    with pytest.raises(InscapeError, match="is 3: expected a function"):
        inscape.measure(halves, x, measures=["value"])
