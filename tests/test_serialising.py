"""Every result that is written as plain JSON can be read back, by the types of its fields."""

import importlib
import inspect
import json
import math
import pickle
import pkgutil
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import torch
from finished_study import finished
from torch import nn

import inscape
from inscape.arrays import Floats, Ints
from inscape.correlation.coefficients import Correlation
from inscape.correlation.correlate import Correlations
from inscape.errors import InscapeError, PartitionError, ProbeError, StudyError, UnivariateError
from inscape.measures import RegionCount
from inscape.measures.measure import MeasureTable
from inscape.measures.measurement import Measurement
from inscape.measures.rank import Ranking
from inscape.partition.cost_table import cost_table
from inscape.partition.decision import DecisionMesh, DecisionRegions
from inscape.partition.linear import LinearPlane, LinearSegment
from inscape.partition.region_files import Exported
from inscape.probes import Body, Patch, Probe, Segment, Simplex
from inscape.provenance import Provenance
from inscape.reports.study_run import StudyRun
from inscape.serialising import OfKind, Written, plain_fields, restored_fields
from inscape.status import COMPLETE, DIVERGED, Status
from inscape.studies.demo import Demo, DemoModel
from inscape.theory import representation_cost, vertex_density
from inscape.theory.check import Check, compare
from inscape.theory.check_all import CheckTable
from inscape.theory.survey import Survey
from inscape.training.recipe import History, Recipe
from inscape.univariate import (
    Descent,
    Flow,
    ShallowNet,
    gradient_descent,
    gradient_flow,
    kkt_residual,
    limit_regions,
    linear_stability,
    stability,
    strong_stability,
)


def written(result):
    return json.loads(json.dumps(result.to_dict(), allow_nan=False))


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 5), nn.ReLU(), nn.Linear(5, 3)).double()


def half():
    """The sign of the first coordinate."""
    model = nn.Linear(2, 1).double()
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0, 0.0]])), model.bias.zero_()
    return model


def disc(x):
    return (np.square(x).sum(axis=1) < 0.5).astype(int)


SEGMENT, TRIANGLE = Segment([-2.0, -1.0], [2.0, 1.5], span=(-0.5, 1)), Simplex([[-2, -1], [2, 0], [0, 3]])
SQUARE = Patch([0.0, 0.0], np.eye(2), ((-2, 2), (-1, 1)), marks=[[0.5, 0.25]])
KITE = Patch([0.0, 0.0], np.eye(2), corners=[[0, -1], [2, 0], [0, 1], [-1, 0]])


@pytest.mark.parametrize("probe", [SEGMENT, TRIANGLE, SQUARE, KITE], ids=repr)
def test_probes_come_back(probe):
    again = Probe.from_dict(written(probe))
    assert type(again) is type(probe)
    assert repr(again) == repr(probe)
    assert np.array_equal(again.generators, probe.generators)
    assert np.array_equal(again.anchors, probe.anchors)
    with pytest.raises(ProbeError, match=r"not a .* of schema 1"):
        (Segment if isinstance(probe, Patch) else Patch).from_dict(written(probe))


@pytest.mark.parametrize(
    ("model", "probe", "settings", "on"),
    [
        (net, SEGMENT, {"method": "exact"}, "segment"),
        (net, Simplex([[-2, -1], [2, 0]]), {"method": "exact", "precision": "float32"}, "segment"),
        (net, SEGMENT, {"method": "adaptive"}, "segment"),
        (lambda: disc, SEGMENT, {"method": "grid"}, "segment"),
        (net, TRIANGLE, {"method": "exact"}, "plane"),
        (net, SQUARE, {"method": "adaptive"}, "mesh"),
        (lambda: disc, KITE, {"method": "grid"}, "grid"),
    ],
)
def test_decision_regions_come_back(model, probe, settings, on):
    regions = inscape.decision_regions(model(), probe, **settings)
    data = written(regions)
    again = DecisionRegions.from_dict(data)
    assert (type(again), again.on) == (type(regions), on)
    assert again.to_dict() == type(regions).from_dict(data).to_dict() == regions.to_dict()
    assert repr(again) == repr(regions)
    assert again.labels.dtype == regions.labels.dtype
    assert (again.status.kind, again.status.detail) == (regions.status.kind, regions.status.detail)


def test_exact_regions_of_trees_come_back():
    from sklearn.tree import DecisionTreeClassifier

    x = np.random.default_rng(0).normal(size=(80, 2))
    regions = inscape.decision_regions(DecisionTreeClassifier(random_state=0).fit(x, disc(x)), SEGMENT)
    again = DecisionRegions.from_dict(written(regions))
    assert again.trees == regions.trees is not None
    assert again.to_dict() == regions.to_dict()


def test_what_was_left_out_says_so():
    plane = inscape.decision_regions(net(), SQUARE, method="exact")
    again = DecisionRegions.from_dict(written(plane))
    assert np.array_equal(again.areas, plane.areas)
    assert again.boundary_length == plane.boundary_length
    for use in (lambda: again.polygons, lambda: again.locate([[0, 0]])):
        with pytest.raises(PartitionError, match=r"left out .* written: write it by save, or with to_dict\("):
            use()
    with pytest.raises(PartitionError, match="not decision regions on a mesh"):
        DecisionMesh.from_dict(written(plane))
    pieces = LinearSegment.from_dict(written(inscape.linear_regions(net(), SEGMENT)))
    with pytest.raises(PartitionError, match="scores was left out"):
        _ = pieces.n_linear


@pytest.mark.parametrize(("probe", "kind"), [(SEGMENT, LinearSegment), (TRIANGLE, LinearPlane)])
def test_linear_regions_come_back(probe, kind):
    regions = inscape.linear_regions(net(), probe)
    again = kind.from_dict(written(regions))
    assert again.to_dict() == regions.to_dict()
    assert repr(again) == repr(regions)
    assert again.n_regions == regions.n_regions > 2


def subclasses(cls):
    return {c for s in cls.__subclasses__() for c in (s, *subclasses(s))}


def measurements():
    x = np.random.default_rng(0).normal(size=(12, 2))
    y = disc(x)
    model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2)).double()
    start = {k: v + 1 for k, v in model.state_dict().items()}
    return [
        inscape.local_complexity(model, x, sigma=0.1, n_noise=2, random_state=0),
        inscape.density_map(model, SQUARE, resolution=3, sigma=0.1),
        inscape.local_rank(model, x, eps=0.1),
        inscape.total_variation(model, x),
        inscape.hull_crossings(model, x, radius=0.1, n_directions=2, random_state=0),
        inscape.sharpness(model, x, y, random_state=0),
        inscape.margin(model, x, y),
        inscape.confidence(model, x),
        inscape.prediction_entropy(model, x),
        inscape.nuclear_norm(model, x),
        inscape.measures.agreement(model, x, others=[model]),
        inscape.parameter_distance(model, start),
        inscape.adversarial_accuracy(model, x, y, eps=0.1, steps=1, step_size=0.1, random_state=0),
        inscape.path_norm(model, x),
        inscape.region_count(half(), np.array([[-1.0, 0.0], [1.0, 0.5]]), n_probes=2, random_state=0),
        inscape.agreement(model, half(), x, n_probes=2, random_state=0),
    ]


def test_every_measurement_comes_back():
    results = measurements()
    assert {type(r) for r in results} == subclasses(Measurement)
    for result in results:
        again = type(result).from_dict(written(result))
        assert again.to_dict() == result.to_dict(), type(result)
        for name in type(result).__dataclass_fields__:
            assert isinstance(getattr(result, name), type(getattr(again, name))), (type(result), name)


def test_counts_rankings_and_provenance_come_back():
    x = np.array([[-1.0, 0.0], [1.0, 0.5]])
    ranking = inscape.rank({"a": half(), "b": disc}, x, n_probes=3, random_state=0)
    again = Ranking.from_dict(written(ranking))
    assert again.to_dict() == ranking.to_dict()
    assert isinstance(again.results["a"], RegionCount)
    count = inscape.region_count(half(), x, n_probes=1, random_state=0)
    assert math.isnan(RegionCount.from_dict(written(count)).std_error)
    assert RegionCount.from_dict(written(count)).settings == count.settings
    provenance = count.provenance
    assert Provenance.from_dict(json.loads(json.dumps(provenance.to_dict()))) == provenance


@pytest.mark.parametrize(
    ("lhs", "rhs", "settings"),
    [
        (1.0, 2.0, {"trivial": 1.5, "interval": (0.5, math.nan)}),
        (1.0, math.inf, {}),
        (math.inf, 1.0, {}),
        (math.nan, 1.0, {"assumptions": {"n > 0": False, "trust": None}}),
    ],
)
def test_checks_come_back(lhs, rhs, settings):
    check = compare("a", lhs, rhs, **settings)
    again = Check.from_dict(written(check))
    assert again.to_dict() == check.to_dict()
    assert (again.verdict, again.trivial, again.unmet) == (check.verdict, check.trivial, check.unmet)


def classes_that_write():
    """Every class of the package that has `to_dict`, by its name in the package."""
    classes = set()
    for module in pkgutil.walk_packages(inscape.__path__, "inscape."):
        if not module.name.endswith("__main__"):
            found = vars(importlib.import_module(module.name)).values()
            classes |= {c for c in found if inspect.isclass(c) and hasattr(c, "to_dict")}
    return {c for c in classes if c.__module__.startswith("inscape.")}


def univariate_results():
    x, y = np.array([-1.0, 0.0, 1.0]), np.array([1.0, -1.0, 1.0])
    start = ShallowNet.random(6, init="gaussian", random_state=0)
    settled = ShallowNet([1.0, 1.0], [1.5, -0.5], [1.0, -2.0])
    return [
        start,
        gradient_descent(start, x, y, 0.1, 50),
        gradient_descent(start, x, y, 1e3, 50),
        gradient_flow(start, x, y, max_steps=5),
        kkt_residual(ShallowNet([1.0, -1.0], [1.0, 1.0], [1.0, 1.0]), x[[0, 2]], y[[0, 2]]),
        stability(settled, x, settled(x), 0.25),
        linear_stability(settled, x, settled(x), 0.25),
        strong_stability(settled, x, settled(x), 0.25),
        settled.region_table(),
        limit_regions(ShallowNet([1.0], [1.0], [1.0]), [1.0], [1.0]),
    ]


def runs():
    """Configurations of two models, three seeds each."""
    rng = np.random.default_rng(0)
    rows = [
        {"model": model, "learning_rate": rate, "batch_size": size, "seed": seed}
        for model in ("mlp", "lenet")
        for rate in (0.1, 1e-7)
        for size in (16, 1000000)
        for seed in range(3)
    ]
    counts, gaps = rng.normal(size=(2, len(rows)))
    return pd.DataFrame(rows).assign(region_count=counts, gap=gaps, train_accuracy=1.0)


def demonstration():
    x = np.array([[-1.0, 0.0], [1.0, 0.5]])
    counts = [inscape.region_count(model, x, n_probes=5, random_state=0) for model in (half(), disc)]
    models = tuple(DemoModel(c.provenance.model, "network", None, 1.0, 0.75, c) for c in counts)
    nothing = Correlation(math.nan, (math.nan, math.nan), 1)
    return Demo(
        models, {"all": Correlation(0.5, (0.25, 0.75), 2), "tree": nothing}, (Path("out/scatter.png"),), 3
    )


def study_results(out):
    run = finished(out)
    pictured = finished(out, summary=replace(run.summary, figures={"a.png": "A caption"}))
    correlations = inscape.correlate(runs(), n_resamples=20)
    return [run, pictured, correlations, correlations.pearson, demonstration()]


def table_results():
    x = np.random.default_rng(0).normal(size=(12, 2))
    measures = {"region_count": {"n_probes": 3}, "accuracy": {}, "sharpness": {}}
    table = inscape.measure(disc, x, disc(x), measures=measures, random_state=0)
    checks = [compare("a", 0.0, 2.0), compare("b", math.nan, 1.0), compare("c", 1.0, math.inf)]
    columns = ("name", "form", "lhs", "rhs", "ratio", "verdict", "note")
    rows = tuple(
        {"statement": check.name, "width": 8} | {key: getattr(check, key) for key in columns}
        for check in checks
    )
    recipe = Recipe(0.1, 10, 2, stop_loss=0.5, milestones=[0.25])
    losses = (0.5, math.inf)
    return [
        table,
        CheckTable("a net", tuple(checks)),
        cost_table(disc, x, method="grid", random_state=0),
        representation_cost(ShallowNet([10.0], [0.0], [0.1]), [[0.0]]),
        vertex_density(net(), x, sigma=0.1, n_noise=2, random_state=0),
        Survey(rows=rows, settings={"widths": (8,), "seed": 0}),
        recipe,
        History(losses=losses, n_steps=4, status=DIVERGED, seed=1, checkpoints=("epoch-0001.safetensors",)),
    ]


def region_results():
    segment, square = inscape.decision_regions(net(), SEGMENT), inscape.decision_regions(net(), SQUARE)
    x = np.array([[-1.0, 0.0], [1.0, 0.5]])
    ranking = inscape.rank({"a": half(), "b": disc}, x, n_probes=3, random_state=0)
    two = inscape.compare(net(), net(), SQUARE)
    return [
        *(two.max_difference, two, inscape.compare([net(), net()], SEGMENT)),
        *(SEGMENT, TRIANGLE, SQUARE, segment, square, ranking, ranking.results["a"], segment.provenance),
        inscape.decision_regions(disc, KITE, method="grid"),
        inscape.decision_regions(net(), SQUARE, method="adaptive"),
        inscape.linear_regions(net(), SEGMENT),
        inscape.linear_regions(net(), SQUARE),
        inscape.linear_region(net(), [0.1, 0.2]),
        inscape.boundary_distance(net(), [0.1, 0.2]),
        inscape.enumerate_regions(net(), inscape.Box([-1 / 3, -1], 1)),
        inscape.enumerate_regions(net(), inscape.Ball([1 / 3, 0], 1 / 3)),
        *(inscape.Box([-1, -1], 1), inscape.Ball([0, 0], 1)),
        compare("a", 1.0, 2.0),
    ]


ASKED = {"Segment", "Simplex", "Patch", "Box", "Ball", "Provenance", "Recipe", "ShallowNet"}
"""What is no answer."""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """One of every class that writes, at least."""
    out = tmp_path_factory.mktemp("study")
    return [
        *(*region_results(), *measurements(), *table_results()),
        *(*univariate_results(), *study_results(out)),
    ]


def test_every_result_is_shown_in_a_notebook_and_as_one_short_line(results):
    for result in results:
        if type(result).__name__ not in ASKED:
            for shown in (result, type(result).from_dict(written(result))):
                assert "<code>" in shown._repr_html_(), type(result)
                assert not re.search(r"\d\.\d{6}|\n", repr(shown)), repr(shown)
                assert len(repr(shown)) < 300, repr(shown)


def test_every_class_that_writes_reads_back(results):
    for result in results:
        again = type(result).from_dict(written(result))
        assert type(again) is type(result)
        assert written(again) == written(result), type(result)
    bases = {Body, Probe, OfKind, DecisionRegions, Exported, Measurement, Written}
    assert {type(r) for r in results} == classes_that_write() - bases


def test_what_a_study_left_out_says_so(tmp_path):
    run, _, correlations, _, demo = study_results(tmp_path)
    again = StudyRun.from_dict(written(run))
    assert repr(again) == repr(run)
    assert (again.out, again.store) == (run.out, run.store)
    for use in (lambda: again.frame["gap"], lambda: list(again.claims), lambda: again.summary.tables.items()):
        with pytest.raises(StudyError, match=r"(frame|claims|tables) was left out"):
            use()
    assert str(Correlations.from_dict(written(correlations))) == str(correlations)
    strata = Correlations.from_dict(written(correlations)).models["mlp"].strata
    assert {k: list(v) for k, v in strata.items()} == {
        k: list(v) for k, v in correlations.models["mlp"].strata.items()
    }
    with pytest.raises(StudyError, match="points was left out"):
        Correlations.from_dict(written(correlations)).plot()
    first = Demo.from_dict(written(demo)).models[0]
    assert first.count.mean == demo.models[0].count.mean
    with pytest.raises(StudyError, match="counts was left out"):
        first.count.probes_needed(0.1)


def test_what_a_run_left_out_says_so():
    _, run, lost, flow, *_ = univariate_results()
    again = Descent.from_dict(written(run))
    assert np.array_equal(again.history.loss, run.history.loss)
    assert np.array_equal(again.net.w, run.net.w)
    assert (Descent.from_dict(written(lost)).status.kind, lost.status) == ("diverged", "diverged")
    with pytest.raises(UnivariateError, match="parameters was left out"):
        again.history.net(0)
    again = Flow.from_dict(written(flow))
    assert (again.status.kind, again.on_kink.dtype) == ("step_limit", flow.on_kink.dtype)
    assert again.direction_change == flow.direction_change == math.inf
    assert np.array_equal(again.history.direction_change, flow.history.direction_change)
    with pytest.raises(UnivariateError, match="active was left out"):
        again.active.sum()


def test_an_infinite_ratio_of_a_survey_comes_back():
    survey = next(r for r in table_results() if isinstance(r, Survey))
    again = Survey.from_dict(written(survey))
    assert [row["ratio"] for row in again.rows[::2]] == [math.inf, math.inf]
    assert math.isnan(again.rows[1]["lhs"])
    pd.testing.assert_frame_equal(again.table(), survey.table())


@pytest.mark.parametrize(
    "kind", [MeasureTable, CheckTable, Survey, StudyRun, Demo, Correlations, Descent, Flow, Recipe, History]
)
@pytest.mark.parametrize("data", [{}, {"schema": 1}, {"schema": 2}])
def test_what_is_not_whole_is_refused(kind, data):
    with pytest.raises(InscapeError, match=r"not a (whole )?\w+"):
        kind.from_dict(data)


class Pair(NamedTuple):
    first: int
    second: float


@dataclass(frozen=True, eq=False)
class Everything:
    floats: Floats
    ints: Ints | None
    pair: Pair
    nested: dict[str, tuple[float, ...]]
    status: Status
    floatless: str = "float64 in name only"


def test_types_decide_not_names():
    record = Everything(
        floats=np.array([1.0, math.nan]),
        ints=np.arange(3),
        pair=Pair(1, math.nan),
        nested={"a": (math.nan, 2.0)},
        status=Status("ties", "on a face", text="complete; on a face"),
    )
    data = json.loads(json.dumps(plain_fields(record), allow_nan=False))
    again = restored_fields(Everything, data, what="record", error=InscapeError)
    assert (again.floats.dtype, again.ints.dtype) == (np.float64, np.int64)
    assert np.isnan(again.floats[1])
    assert isinstance(again.pair, Pair)
    assert math.isnan(again.pair.second)
    assert math.isnan(again.nested["a"][0])
    assert (again.status, again.status.kind) == ("complete; on a face", "ties")
    assert again.floatless == "float64 in name only"
    del data["floats"]
    with pytest.raises(InscapeError, match="not a whole record: floats missing"):
        restored_fields(Everything, data, what="record", error=InscapeError)


def test_a_status_is_its_text_and_its_data():
    status = Status("not_converged", "why")
    assert status == "not converged in resolution: why"
    for again in (pickle.loads(pickle.dumps(status)), Status.read(str(status), "not_converged", "why")):
        assert (again, again.kind, again.detail) == (status, "not_converged", "why")
    assert Status.read("complete").kind == COMPLETE.kind == "complete"
    assert Status.read("written long ago").kind == "other"


def test_errors_carry_their_reason():
    with pytest.raises(PartitionError, match="it cannot be counted exactly") as caught:
        inscape.linear_regions(nn.Sequential(nn.Linear(2, 2), nn.Sigmoid(), nn.Linear(2, 2)), SEGMENT)
    assert "cannot be counted" not in caught.value.reason
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("inscape.partition", "PlaneRegions", "LinearPlane"),
        ("inscape.partition", "SegmentPieces", "LinearSegment"),
        ("inscape.partition.linear", "PlaneRegions", "LinearPlane"),
        ("inscape.partition.linear.planes", "PlaneRegions", "LinearPlane"),
        ("inscape.partition.decision", "SegmentRegions", "DecisionSegment"),
        ("inscape.partition.decision", "PlaneDecision", "DecisionPlane"),
        ("inscape.partition.decision", "GridRegions", "DecisionGrid"),
        ("inscape.partition.decision", "CellRegions", "DecisionMesh"),
    ],
)
def test_old_names_still_work_and_say_so(module, old, new):
    import importlib

    with pytest.warns(DeprecationWarning, match=f"{old} is called {new} today"):
        found = getattr(importlib.import_module(module), old)
    assert found.__name__ == new
