"""Trees in ONNX files: every version of the operators against onnxruntime."""

import numpy as np
import onnx_estimators
import pytest
from estimators import BOTH, THREE, X
from predictions import assert_along, assert_on_plane, own_labels

import inscape
from inscape import Patch, Segment
from inscape.errors import PartitionError

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]
rng = np.random.default_rng(0)


def saved(path, nodes, outputs, *, version=1, kind=TensorProto.FLOAT, initializers=(), d=5):
    x = helper.make_tensor_value_info("x", kind, ["n", d])
    graph = helper.make_graph(nodes, "g", [x], outputs, list(initializers))
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid("ai.onnx.ml", version)]
    path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())
    return path


def scores(name="y", columns=3):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", columns])


def stumps(mode, n=7, n_targets=3):
    """Trees of two levels, their thresholds among the data: what a regressor of version 1 to 4 takes."""
    names = ["treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids"]
    nodes, targets = {k: [] for k in names}, {k: [] for k in ["treeids", "nodeids", "ids", "weights"]}
    for t in range(n):
        f, g, h = rng.integers(5, size=3)
        for i, (feature, child) in enumerate([(f, 1), (g, 3), (h, 5)]):
            value = float(np.float32(np.quantile(X[:, feature], rng.uniform(0.2, 0.8))))
            for key, v in zip(nodes, [t, i, feature, value, mode, child, child + 1], strict=True):
                nodes[key].append(v)
        for i in range(3, 7):
            for key, v in zip(nodes, [t, i, 0, 0.0, "LEAF", 0, 0], strict=True):
                nodes[key].append(v)
            for key, v in zip(targets, [t, i, rng.integers(n_targets), rng.normal()], strict=True):
                targets[key].append(v)
    return {f"nodes_{k}": v for k, v in nodes.items()}, targets


def regressor(path, mode, aggregate="SUM", n_targets=3):
    nodes, targets = stumps(mode, n_targets=n_targets)
    given = nodes | {f"target_{k}": v for k, v in targets.items()}
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        n_targets=n_targets,
        aggregate_function=aggregate,
        **given,
    )
    return saved(path, [node], [scores(columns=n_targets)])


def assert_exact(path):
    model = inscape.wrap(path)
    assert model.structure == "trees"
    counts = []
    for i in range(6):
        line = inscape.decision_regions(model, Segment(X[i], X[i + 6], span=(-0.5, 1.5)), method="exact")
        assert_along(model, line, 1e-6)
        counts.append(line.n_regions)
    plane = inscape.decision_regions(model, Patch.through(X[[0, 5, 17]]), method="exact")
    assert_on_plane(model, plane, 1e-6)
    return max(*counts, plane.n_regions)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE"])
def test_every_comparison_of_a_regressor(tmp_path, mode, aggregate):
    assert assert_exact(regressor(tmp_path / "a.onnx", mode, aggregate)) > 1


def test_one_score_is_compared_with_zero(tmp_path):
    assert assert_exact(regressor(tmp_path / "a.onnx", "BRANCH_LEQ", n_targets=1)) > 1


def version_5(path, mode, kind=TensorProto.FLOAT):
    """Three trees of one split each, and one that is a chain, as version 5 writes them."""
    dtype = np.float32 if kind == TensorProto.FLOAT else np.float64
    splits = np.array([np.median(X[:, f]) for f in (0, 1, 2, 3, 4)], dtype=dtype)
    node = helper.make_node(
        "TreeEnsemble",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        n_targets=2,
        aggregate_function=1,
        post_transform=0,
        tree_roots=[0, 1, 2, 3],
        nodes_featureids=[0, 1, 2, 3, 4],
        nodes_splits=numpy_helper.from_array(splits),
        nodes_modes=numpy_helper.from_array(np.full(5, mode, dtype=np.uint8)),
        nodes_truenodeids=[0, 2, 4, 6, 7],
        nodes_trueleafs=[1, 1, 1, 1, 1],
        nodes_falsenodeids=[1, 3, 5, 4, 8],
        nodes_falseleafs=[1, 1, 1, 0, 1],
        leaf_targetids=[0, 1, 1, 0, 0, 1, 1, 0, 1],
        leaf_weights=numpy_helper.from_array(rng.uniform(0.5, 2, 9).astype(dtype)),
    )
    y = helper.make_tensor_value_info("y", kind, ["n", 2])
    return saved(path, [node], [y], version=5, kind=kind)


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_version_5(tmp_path, mode, kind):
    assert assert_exact(version_5(tmp_path / "a.onnx", mode, kind)) > 1


def test_scaling_in_float32_moves_no_cut(tmp_path):
    nodes, targets = stumps("BRANCH_LEQ")
    offset, scale = X.mean(axis=0) + 1000, 1 / X.std(axis=0)
    nodes["nodes_values"] = [
        float(np.float32((v - offset[f]) * scale[f]))
        for v, f in zip(nodes["nodes_values"], nodes["nodes_featureids"], strict=True)
    ]
    given = nodes | {f"target_{k}": v for k, v in targets.items()}
    ml = {"domain": "ai.onnx.ml"}
    scaler = helper.make_node("Scaler", ["x"], ["z"], offset=offset.tolist(), scale=scale.tolist(), **ml)
    node = helper.make_node("TreeEnsembleRegressor", ["z"], ["y"], n_targets=3, **ml, **given)
    model = inscape.wrap(saved(tmp_path / "a.onnx", [scaler, node], [scores()]))
    trees, n = model.trees, 2000
    inner = rng.choice(np.flatnonzero(trees.feature >= 0), n)
    points = X[rng.integers(len(X), size=n)].copy()
    points[np.arange(n), trees.feature[inner]] = np.where(
        rng.random(n) < 0.5, trees.last_left[inner], np.nextafter(trees.last_left[inner], np.inf)
    )
    found = trees.labels(points)
    assert np.array_equal(found[found >= 0], model.labels(points)[found >= 0])


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda p: regressor(p, "BRANCH_EQ"), "compare by BRANCH_EQ, which has no side"),
        (lambda p: regressor(p, "BRANCH_LEQ", "MAX"), "their least or greatest value counts"),
        (lambda p: between(p, "Exp"), "Exp stands before its trees"),
        (lambda p: between(p, "Abs", behind=True), "Abs stands behind its trees"),
    ],
)
def test_what_is_not_read_is_refused_by_name(tmp_path, make, reason):
    model = inscape.wrap(make(tmp_path / "a.onnx"))
    assert model.structure == "black-box"
    with pytest.raises(PartitionError, match=f"cannot be counted exactly because .*{reason}"):
        inscape.decision_regions(model, Segment(X[0], X[1]), method="exact")


def between(path, kind, *, behind=False):
    nodes, targets = stumps("BRANCH_LEQ")
    given = nodes | {f"target_{k}": v for k, v in targets.items()}
    names = [["x", "h"], ["h", "y"]]
    tree, other = (names[0], names[1]) if behind else (names[1], names[0])
    nodes = [
        helper.make_node(
            "TreeEnsembleRegressor", tree[:1], tree[1:], domain="ai.onnx.ml", n_targets=3, **given
        ),
        helper.make_node(kind, other[:1], other[1:]),
    ]
    return saved(path, nodes if behind else nodes[::-1], [scores()])


def test_labels_are_those_of_the_original_estimator():
    pytest.importorskip("skl2onnx")
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, THREE)
    model = inscape.wrap(onnx_estimators.converted("again", forest))
    x = X.astype(np.float32).astype(np.float64)
    assert (model.labels(x) == forest.predict(x)).mean() > 0.98
    assert (
        model.trees.labels(x)[model.trees.labels(x) >= 0] == model.labels(x)[model.trees.labels(x) >= 0]
    ).all()


@pytest.mark.parametrize("name", onnx_estimators.CASES)
def test_files_of_converters(name):
    case = onnx_estimators.CASES[name]
    path = case.build()
    model, predict = inscape.wrap(path), own_labels(path)
    line = inscape.decision_regions(model, Segment(X[0], X[1], span=(-0.5, 1.5)))
    assert line.method == case.segments
    if (case.segments, case.planes) == BOTH:
        near = 1e-6 if model.structure == "trees" else 1e-4
        assert_along(predict, line, near)
        assert_on_plane(predict, inscape.decision_regions(model, Patch.through(X[[0, 5, 17]])), near)
