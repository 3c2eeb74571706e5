"""ONNX operations that pick, choose and recur: values as onnxruntime has them, pieces as bisection."""

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from onnx_files import check, export, node, run, save
from predictions import assert_along, assert_samples

import inscape
from inscape import Segment, decision_regions, linear_regions
from tests.oracles.bisection import bends_on

rng = np.random.default_rng(11)


def weights(*shape):
    return rng.standard_normal(shape)


def ints(*values):
    return np.array(values, np.int64)


def rnn(direction, *, layout=0, start=False):
    """A sequence (4, n, 2), or (n, 4, 2) with layout 1, through an RNN of 3 units: all states, flat."""
    dirs = 2 if direction == "bidirectional" else 1
    attributes = {"hidden_size": 3, "direction": direction, "activations": ["Relu"] * dirs, "layout": layout}
    nodes = [
        *([] if layout else [("Transpose", "x", "s", {"perm": [1, 0, 2]})]),
        ("RNN", f"{'x' if layout else 's'} w r b _{' h' if start else ''}", "states last", attributes),
        ("Transpose", "states", "t", {"perm": [0, 1, 2, 3] if layout else [2, 0, 1, 3]}),
        ("Flatten", "t", "f"),
        ("Transpose", "last", "u", {"perm": [0, 1, 2] if layout else [1, 0, 2]}),
        ("Flatten", "u", "g"),
        ("Concat", "f g", "y", {"axis": 1}),
    ]
    constants = {"w": weights(dirs, 3, 2), "r": weights(dirs, 3, 3), "b": weights(dirs, 6)}
    if start:
        constants["h"] = weights(dirs, 1, 3)
    return nodes, (4, 2), constants, {"batch": 1} if start else {}


# operation: (nodes, input shape, constants, options of `save`)
OPERATIONS = {
    "Where": ([("Greater", "x c", "g"), ("Where", "g x c", "y")], (4,), {"c": weights(4)}, {}),
    "Where below": ([("LessOrEqual", "x c", "g"), ("Where", "g c x", "y")], (4,), {"c": weights(4)}, {}),
    "Where of numbers": (
        [("Mul", "x half", "h"), ("GreaterOrEqual", "x zero", "g"), ("Where", "g x h", "y")],
        (3, 4),
        {"half": np.float32(0.5), "zero": np.float32(0)},
        {},
    ),
    "Where behind a layer": (
        [
            ("MatMul", "x w", "m"),
            ("Add", "m b", "h"),
            ("Mul", "h tenth", "l"),
            ("Greater", "h zero", "g"),
            ("Where", "g h l", "y"),
        ],
        (4,),
        {"w": weights(4, 5), "b": weights(5), "tenth": np.float32(0.1), "zero": np.float32(0)},
        {},
    ),
    "Where above constants behind a layer": (
        [("MatMul", "x w", "h"), ("Less", "h c", "g"), ("Where", "g c h", "y")],
        (4,),
        {"w": weights(4, 5), "c": weights(5)},
        {},
    ),
    "Where behind a convolution": (
        [
            ("Conv", "x w b", "h"),
            ("Mul", "h tenth", "l"),
            ("Greater", "h zero", "g"),
            ("Where", "g h l", "y"),
        ],
        (2, 4, 4),
        {"w": weights(3, 2, 2, 2), "b": weights(3), "tenth": np.float32(0.1), "zero": np.float32(0)},
        {},
    ),
    "Where of two": ([("Neg", "x", "n"), ("Less", "x n", "g"), ("Where", "g x n", "y")], (4,), {}, {}),
    "Where by a constant": (
        [("Relu", "x", "r"), ("Where", "m r c", "a"), ("Where", "k a x", "y")],
        (4,),
        {"m": np.array([True, False, True, True]), "c": weights(4), "k": np.array([[True], [False], [True]])},
        {"batch": 1},
    ),
    "a product with a comparison": (
        [("Greater", "x zero", "g"), ("Cast", "g", "f", {"to": TensorProto.FLOAT}), ("Mul", "f x", "y")],
        (4,),
        {"zero": np.float32(0)},
        {},
    ),
    "a hat": (
        [
            ("Greater", "x low", "a"),
            ("Less", "x high", "b"),
            ("And", "a b", "g"),
            ("Abs", "x", "m"),
            ("Sub", "high m", "h"),
            ("Where", "g h zero", "y"),
        ],
        (4,),
        {"low": np.float32(-1), "high": np.float32(1), "zero": np.float32(0)},
        {},
    ),
    "the opposite of a hat": (
        [
            ("Less", "x low", "a"),
            ("Less", "x high", "b"),
            ("Not", "b", "c"),
            ("Or", "a c", "g"),
            ("Abs", "x", "m"),
            ("Sub", "high m", "h"),
            ("Where", "g zero h", "y"),
        ],
        (4,),
        {"low": np.float32(-1), "high": np.float32(1), "zero": np.float32(0)},
        {},
    ),
    "Shrink": ([("Shrink", "x", "y", {"lambd": 0.3, "bias": 0.3})], (4,), {}, {}),
    "ThresholdedRelu at zero": ([("ThresholdedRelu", "x", "y", {"alpha": 0.0})], (4,), {}, {}),
    "DepthToSpace": ([("DepthToSpace", "x", "y", {"blocksize": 2})], (8, 2, 3), {}, {}),
    "DepthToSpace by columns": (
        [("DepthToSpace", "x", "y", {"blocksize": 2, "mode": "CRD"})],
        (8, 2, 3),
        {},
        {},
    ),
    "SpaceToDepth": ([("SpaceToDepth", "x", "y", {"blocksize": 2})], (2, 4, 6), {}, {}),
    "GatherElements": (
        [("GatherElements", "x i", "y", {"axis": 2})],
        (2, 4),
        {"i": ints(3, 0, -1, 1, 1, 2).reshape(1, 2, 3)},
        {"batch": 1},
    ),
    "GatherND": (
        [("GatherND", "x i", "y")],
        (2, 4),
        {"i": ints(0, 1, 0, 0, 0, 3).reshape(2, 3)},
        {"batch": 1},
    ),
    "GatherND by point": (
        [("GatherND", "x i", "y", {"batch_dims": 1})],
        (2, 4),
        {"i": ints(1, 3).reshape(1, 2)},
        {"batch": 1},
    ),
    "ScatterND": (
        [("Relu", "x", "r"), ("Slice", "r zero one two", "s"), ("ScatterND", "x i s", "y")],
        (4,),
        {"zero": ints(0), "one": ints(1), "two": ints(1), "i": ints(0, 2).reshape(1, 1, 2)},
        {"batch": 1},
    ),
    "ScatterElements into a constant": (
        [("ScatterElements", "c i x", "y", {"axis": 1})],
        (2,),
        {"c": weights(1, 4), "i": ints(3, 0).reshape(1, 2)},
        {"batch": 1},
    ),
    "CumSum": ([("CumSum", "x a", "y")], (3, 4), {"a": np.array(2)}, {}),
    "CumSum backwards": (
        [("CumSum", "x a", "y", {"reverse": 1, "exclusive": 1})],
        (3, 4),
        {"a": np.array(-2)},
        {},
    ),
    "Trilu": ([("Trilu", "x", "y")], (3, 4), {}, {}),
    "Trilu below": ([("Trilu", "x k", "y", {"upper": 0})], (3, 4), {"k": np.array(-1)}, {}),
    "Einsum": ([("Einsum", "x w", "y", {"equation": "ni,ij->nj"})], (4,), {"w": weights(4, 3)}, {}),
    "Einsum with points last": (
        [("Einsum", "w x", "e", {"equation": "ji, ni -> jn"}), ("Transpose", "e", "y")],
        (4,),
        {"w": weights(3, 4)},
        {},
    ),
    "Einsum on more axes": (
        [("Einsum", "x w v", "y", {"equation": "...ab,bc,a->...c"})],
        (3, 4),
        {"w": weights(4, 2), "v": weights(3)},
        {},
    ),
    "Einsum without an arrow": (
        [("Einsum", "x w", "y", {"equation": "ai,ij"})],
        (4,),
        {"w": weights(4, 3)},
        {},
    ),
    "TopK": ([("TopK", "x k", "y i", {"axis": 1})], (5,), {"k": ints(3)}, {}),
    "TopK of the smallest": ([("TopK", "x k", "y i", {"largest": 0})], (2, 5), {"k": ints(2)}, {}),
    "TopK of one": ([("TopK", "x k", "t i"), ("Sub", "x t", "y")], (5,), {"k": ints(1)}, {}),
    "TopK by attribute": ([("TopK", "x", "y i", {"k": 2})], (5,), {}, {"opset": 9}),
    "RNN forward": rnn("forward"),
    "RNN backward": rnn("reverse"),
    "RNN in both directions": rnn("bidirectional"),
    "RNN with a first state": rnn("bidirectional", start=True),
    "ReduceL1": ([("ReduceL1", "x", "y", {"axes": [1]})], (4,), {}, {}),
    "Pow one": ([("Pow", "x one", "y")], (4,), {"one": np.float32(1)}, {}),
    "MaxPool in three dimensions": (
        [("MaxPool", "x", "y", {"kernel_shape": [2, 2, 2]})],
        (2, 3, 3, 3),
        {},
        {},
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_carried(name, tmp_path):
    nodes, shape, constants, options = OPERATIONS[name]
    path = save(tmp_path / "m.onnx", nodes, shape, constants, **options)
    check(path, shape, batch=1)
    if not options.get("batch"):
        check(path, shape, batch=5)


@pytest.mark.parametrize("name", [n for n in OPERATIONS if OPERATIONS[n][3].get("opset", 17) >= 13])
def test_exact_pieces_are_where_the_scores_bend(name, tmp_path):
    nodes, shape, constants, options = OPERATIONS[name]
    path = save(tmp_path / "m.onnx", nodes, shape, constants, **options)
    graph = inscape.wrap(path).graph(shape)
    segment = Segment(*(2 * np.random.default_rng(5).standard_normal((2, *shape))))
    found = linear_regions(path, segment)
    expected = bends_on(lambda x: graph.evaluate(torch.from_numpy(x)).numpy(), segment)
    assert found.n_linear == len(expected) + 1


@pytest.mark.parametrize("size", [1, 3])
def test_one_input_without_a_batch_axis(size, tmp_path):
    """As the small files and the nn4sys networks of VNN-COMP 2021: weights on the left of a vector."""
    w, b, v, c = weights(4, size), weights(4), weights(1, 4), weights(1)
    nodes = [
        ("MatMul", "w x", "a"),
        ("Add", "a b", "h"),
        ("Relu", "h", "r"),
        ("MatMul", "v r", "d"),
        ("Add", "d c", "y"),
    ]
    path = save(tmp_path / "m.onnx", nodes, (size,), {"w": w, "b": b, "v": v, "c": c}, batch=None, opset=14)
    model = inscape.wrap(path)
    assert model.structure == "piecewise-affine"
    x = rng.standard_normal((5, size))
    expected = np.maximum(x @ w.T + b, 0) @ v.T + c
    assert np.allclose(model.graph((size,)).evaluate(torch.from_numpy(x)).numpy(), expected, atol=1e-5)
    segment = Segment([-9.0] * size, [9.0] * size)
    kinks = -b / w.sum(axis=1) if size == 3 else -b / w[:, 0]
    assert linear_regions(model, segment).n_regions == 1 + (np.abs(kinks) < 9).sum()


def test_a_network_of_one_weight(tmp_path):
    """VNN-COMP's test_nano: one input, one relu, no batch axis."""
    nodes = [("MatMul", "x w", "h"), ("Relu", "h", "y")]
    path = save(tmp_path / "m.onnx", nodes, (1,), {"w": np.array([[2.0]])}, batch=None, opset=14)
    found = linear_regions(path, Segment([-1.0], [3.0]))
    assert found.knots.tolist() == [0.25]
    assert decision_regions(path, Segment([-1.0], [3.0]), method="exact").labels.tolist() == [0, 1]


PERCEPTRON = {"w": weights(6, 8), "b": weights(8), "v": weights(8, 3), "c": weights(3)}
LAYERS = [("Gemm", "x w b", "h"), ("Relu", "h", "r"), ("Gemm", "r v c", "s")]


@pytest.mark.parametrize(
    ("ending", "sign"),
    [
        ([("ArgMin", "s", "label", {"axis": 1, "keepdims": 0})], -1),
        ([("Softmax", "s", "p"), ("ArgMin", "p", "label", {"axis": 1, "keepdims": 0})], -1),
        ([("TopK", "s one", "best i"), ("Squeeze", "i axis", "label")], 1),
        ([("TopK", "s one", "least i", {"largest": 0}), ("Squeeze", "i axis", "label")], -1),
        ([("Tanh", "s", "p"), ("TopK", "p one", "best i"), ("Squeeze", "i axis", "label")], 1),
    ],
)
def test_labels_by_argmin_and_topk(ending, sign, tmp_path):
    small = {**PERCEPTRON, "v": 0.1 * PERCEPTRON["v"], "c": 0.1 * PERCEPTRON["c"]}  # no tanh rounds to one
    constants = {**small, "one": ints(1), "axis": ints(1)}
    path = save(tmp_path / "m.onnx", [*LAYERS, *ending], (6,), constants, outputs=(), label="label")
    model = inscape.wrap(path)
    assert model.structure == "piecewise-affine"
    segment = Segment(*(4 * rng.standard_normal((2, 6))))
    found = decision_regions(model, segment, method="exact")
    turned = {**small, "v": sign * small["v"], "c": sign * small["c"]}
    plain = decision_regions(
        save(tmp_path / "p.onnx", LAYERS, (6,), turned, outputs=("s",)), segment, method="exact"
    )
    assert found.labels.tolist() == plain.labels.tolist()
    assert np.allclose(found.boundaries, plain.boundaries, rtol=0, atol=1e-12)
    t = np.linspace(0, 1, 301)
    away = np.abs(t[:, None] - found.boundaries).min(axis=1, initial=1.0) > 1e-6
    labels = found.labels[np.searchsorted(found.boundaries, t)]
    assert (labels == model.labels(segment.points(t)))[away].all()


ENDINGS = {
    "a column of a softmax": ([("Softmax", "s", "p"), ("Slice", "p lo hi axis", "y")], 2, None),
    "both probabilities": (
        [("Sigmoid", "s", "p"), ("Sub", "unit p", "q"), ("Concat", "q p", "y", {"axis": 1})],
        1,
        None,
    ),
    "more digits": ([("Sigmoid", "s", "p"), ("Cast", "p", "y", {"to": TensorProto.DOUBLE})], 1, None),
    "over a threshold": ([("Greater", "s bar", "y")], 1, TensorProto.BOOL),
    "not over a threshold": ([("Greater", "s bar", "g"), ("Not", "g", "y")], 1, TensorProto.BOOL),
    "a probability over a threshold": (
        [("Sigmoid", "s", "p"), ("Less", "p bar", "g"), ("Cast", "g", "y", {"to": TensorProto.INT64})],
        1,
        TensorProto.INT64,
    ),
}


def line_across(n_scores=1):
    """A segment along which the first score of the perceptron, or its lead, changes its sign."""
    draws = np.random.default_rng(0).standard_normal((100, 6))
    hidden = np.maximum(draws @ PERCEPTRON["w"] + PERCEPTRON["b"], 0)
    scores = hidden @ PERCEPTRON["v"] + PERCEPTRON["c"]
    score = scores[:, 0] if n_scores == 1 else scores[:, 0] - scores[:, 1]
    return Segment(draws[score.argmin()], draws[score.argmax()], span=(-1, 2))


@pytest.mark.parametrize("name", ENDINGS)
def test_what_a_file_ends_in(name, tmp_path):
    ending, n_scores, kind = ENDINGS[name]
    constants = {
        **PERCEPTRON,
        "v": 0.2 * PERCEPTRON["v"][:, :n_scores],
        "c": 0.2 * PERCEPTRON["c"][:n_scores],
        "lo": ints(1),
        "hi": ints(2),
        "axis": ints(1),
        "unit": np.float32(1),
        "bar": np.float32(0.45),
    }
    path = save(tmp_path / "m.onnx", [*LAYERS, *ending], (6,), constants, outputs=("y",))
    stored = onnx.load(path)
    output = stored.graph.output[0].type.tensor_type
    output.elem_type = kind or (TensorProto.DOUBLE if name == "more digits" else TensorProto.FLOAT)
    onnx.save(stored, path)

    def predict(x):
        out = run(path, x.astype(np.float32))
        if kind is None:
            return out.argmax(axis=1) if out.shape[1] == 2 else (out[:, 0] > 0.5).astype(np.int64)
        return out.reshape(len(out)).astype(np.int64)

    model = inscape.wrap(path)
    assert model.structure == "piecewise-affine"
    found = decision_regions(model, line_across(n_scores))
    assert found.is_exact
    assert found.n_regions > 1
    assert_along(predict, found, 1e-5)


def test_a_tanh_that_rounds_to_one_is_not_looked_through(tmp_path):
    """In float32 every score beyond 9 is a one behind a tanh, and the first of them wins."""
    constants = {**PERCEPTRON, "v": 100 * PERCEPTRON["v"]}
    path = save(tmp_path / "m.onnx", [*LAYERS, ("Tanh", "s", "y")], (6,), constants, outputs=("y",))
    segment = line_across()
    with pytest.raises(inscape.InscapeError, match="rounds its two largest outputs to one number"):
        decision_regions(path, segment, method="exact")
    with pytest.warns(UserWarning, match="method='adaptive' instead of exact"):
        found = decision_regions(path, segment)
    assert not found.is_exact
    assert_samples(lambda x: run(path, x.astype(np.float32)).argmax(axis=1), found)


@pytest.mark.slow
def test_an_exported_recurrence(tmp_path):
    """nn.RNN with relu through both of torch's exporters has the pieces of the module."""
    torch.manual_seed(0)

    class Last(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = torch.nn.RNN(2, 6, nonlinearity="relu", batch_first=True)
            self.out = torch.nn.Linear(6, 3)

        def forward(self, x):
            return self.out(self.rnn(x)[0][:, -1])

    net = Last().eval()
    segment = Segment(*(3 * rng.standard_normal((2, 5, 2))))
    expected = linear_regions(net, segment)
    assert expected.n_regions > 8
    for dynamo in (False, True):
        found = linear_regions(export(net, (5, 2), tmp_path / f"{dynamo}.onnx", dynamo=dynamo), segment)
        assert found.n_regions == expected.n_regions
        assert np.allclose(found.knots, expected.knots, rtol=0, atol=1e-6)


def test_a_file_of_a_newer_operator_set(tmp_path):
    """Opset 23 with an input that is read twice."""
    graph = helper.make_graph(
        [node("Relu", "x", "r"), node("Sub", "r x", "y")],
        "g",
        [helper.make_tensor_value_info("x", 1, ["n", 4])],
        [helper.make_tensor_value_info("y", 1, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    onnx.save(model, tmp_path / "m.onnx")
    check(tmp_path / "m.onnx", (4,))


def test_a_point_that_is_the_whole_batch_of_a_file(tmp_path):
    """As the parallel pensieve networks of VNN-COMP have it: an input [3, 4] is one point."""
    constants = {"w": np.eye(12)[:, :2], "s": np.array([1, 12])}
    nodes = [("Reshape", "x s", "f"), ("MatMul", "f w", "y")]
    path = save(tmp_path / "m.onnx", nodes, (4,), constants, batch=3)
    points = np.random.default_rng(0).standard_normal((5, 3, 4))
    with pytest.raises(
        inscape.InscapeError, match=r"got \(3, 4\): if one point is all .* input_shape=\(3, 4\)"
    ):
        inscape.wrap(path).labels(points)
    cured = inscape.wrap(path, input_shape=(3, 4))
    assert (cured.labels(points) == points.reshape(5, -1)[:, :2].argmax(axis=1)).all()
