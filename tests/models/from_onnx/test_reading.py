"""Whole ONNX files as graphs: scores are those of the file, counts those of the module it came from."""

import copy
import re
import subprocess
import sys
from itertools import pairwise

import numpy as np
import onnx
import onnx_files
import pytest
import torch
import zoo
from onnx import TensorProto, helper, numpy_helper
from onnx_files import check, node, run, save
from predictions import assert_on_plane

import inscape
from inscape import Segment
from inscape.errors import InscapeError, MissingExtraError, PartitionError
from inscape.partition.decision.exact.networks import exact_segments
from inscape.partition.linear import linear_regions

rng = np.random.default_rng(3)
PERCEPTRON = {
    "w": rng.standard_normal((6, 8)),
    "b": rng.standard_normal(8),
    "v": rng.standard_normal((8, 3)),
    "c": rng.standard_normal(3),
}
LAYERS = [("Gemm", "x w b", "h"), ("Relu", "h", "r"), ("Gemm", "r v c", "y")]


def ints(*values):
    return np.array(values, np.int64)


def perceptron(x):
    return np.maximum(x @ PERCEPTRON["w"] + PERCEPTRON["b"], 0) @ PERCEPTRON["v"] + PERCEPTRON["c"]


# exports of torch


@pytest.mark.slow
@pytest.mark.parametrize("name", zoo.MAKERS)
def test_an_exported_network(name, tmp_path):
    net, shape = zoo.make(name), zoo.shape_of(name)
    check(onnx_files.export(net, shape, tmp_path / "folded.onnx"), shape)
    graph = check(onnx_files.export(net, shape, tmp_path / "plain.onnx", fold=False), shape)
    x = torch.randn(3, *shape, generator=torch.Generator().manual_seed(5))
    for module, points, tolerance in ((net, x, 1e-5), (copy.deepcopy(net).double(), x.double(), 1e-10)):
        with torch.no_grad():
            expected = module(points)
        assert (graph.evaluate(points) - expected).abs().max() < tolerance * expected.abs().max()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cnn", "shufflenet_v2", "unet"])
def test_a_network_exported_by_dynamo(name, tmp_path):
    pytest.importorskip("onnxscript", reason="torch's newer exporter needs onnxscript (extra `test`)")
    shape = zoo.shape_of(name)
    check(onnx_files.export(zoo.make(name), shape, tmp_path / "m.onnx", dynamo=True), shape)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlp", "vgg", "resnet18", "mobilenet_v2", "shufflenet_v2", "unet"])
def test_exact_counts_equal_those_of_the_module(name, tmp_path):
    net, shape = zoo.make(name), zoo.shape_of(name)
    path = onnx_files.export(net, shape, tmp_path / "m.onnx", fold=False)
    ends = np.random.default_rng(1).standard_normal((2, 2, *shape))
    # a stretch of the images' segments, since a whole one of the deeper nets has thousands of pieces
    segments = [Segment(a, b, span=(0.0, 1.0 if name == "mlp" else 0.2)) for a, b in ends]
    model, wrapped = inscape.wrap(path), inscape.wrap(net, input_shape=shape)
    for one, other in zip(linear_regions(wrapped, segments), linear_regions(model, segments), strict=True):
        assert one.n_regions == other.n_regions > 5
        assert one.n_linear == other.n_linear
        assert np.allclose(one.knots, other.knots, rtol=0, atol=1e-10)
    for one, other in zip(exact_segments(wrapped, segments), exact_segments(model, segments), strict=True):
        assert one.labels.tolist() == other.labels.tolist()
        assert np.allclose(one.boundaries, other.boundaries, rtol=0, atol=1e-10)


# files from the wild


@pytest.mark.parametrize(("ir", "opset"), [(3, 7), (3, 8), (4, 9), (6, 11), (8, 13), (10, 21)])
def test_old_and_new_versions(ir, opset, tmp_path):
    check(save(tmp_path / "m.onnx", LAYERS, (6,), PERCEPTRON, ir=ir, opset=opset, listed=ir == 3), (6,))


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-5), ("float16", 5e-3)])
def test_other_precisions(dtype, tolerance, tmp_path):
    path = save(tmp_path / "m.onnx", LAYERS, (6,), PERCEPTRON, dtype=dtype)
    graph = check(path, (6,), dtype=dtype, tolerance=tolerance)
    if dtype == "float64":
        x = rng.standard_normal((5, 6))
        assert np.allclose(graph.evaluate(torch.from_numpy(x)).numpy(), perceptron(x), rtol=1e-12, atol=1e-12)


def test_batch_one_is_baked_into_a_reshape(tmp_path):
    nodes = [("Reshape", "x s", "f"), ("Gemm", "f w b", "h"), ("Relu", "h", "r"), ("Gemm", "r v c", "y")]
    constants = {**PERCEPTRON, "s": ints(1, 6)}
    fixed = save(tmp_path / "fixed.onnx", nodes, (1, 2, 3), constants, batch=1)
    check(fixed, (1, 2, 3), batch=1)
    # the same in a file that claims to take any number of points: it is evaluated one by one
    claimed = inscape.wrap(save(tmp_path / "claimed.onnx", nodes, (1, 2, 3), constants), batch_size=2)
    x = rng.standard_normal((5, 1, 2, 3))
    assert np.allclose(claimed.scores(x), perceptron(x.reshape(5, 6)), atol=1e-5)
    assert claimed.structure == "piecewise-affine"


def test_a_file_that_joins_its_points_into_one_row(tmp_path):
    nodes = [*LAYERS[:2], ("Gemm", "r v c", "z"), ("Reshape", "z s", "y")]
    model = inscape.wrap(save(tmp_path / "m.onnx", nodes, (6,), {**PERCEPTRON, "s": ints(1, -1)}))
    x = rng.standard_normal((5, 6))
    assert np.allclose(model.scores(x), perceptron(x), atol=1e-5)
    assert model.structure == "piecewise-affine"


@pytest.mark.parametrize("batch", [2, 5])
def test_another_fixed_batch(batch, tmp_path):
    nodes = [("Reshape", "x s", "f"), ("Gemm", "f w b", "h"), ("Relu", "h", "r"), ("Gemm", "r v c", "y")]
    path = save(tmp_path / "m.onnx", nodes, (2, 3), {**PERCEPTRON, "s": ints(batch, -1)}, batch=batch)
    graph = check(path, (2, 3), batch=batch)
    assert graph.evaluate(torch.randn(7, 2, 3)).shape == (7, 3)


def test_leading_axes_of_size_one(tmp_path):
    """As the files of the ACAS Xu benchmark: input (1, 1, 1, 6), normalised, flattened, products and sums."""
    nodes = [
        ("Sub", "x mean", "n"),
        ("Flatten", "n", "f"),
        ("MatMul", "f w", "a"),
        ("Add", "a b", "h"),
        ("Relu", "h", "r"),
        ("MatMul", "r v", "d"),
        ("Add", "d c", "y"),
    ]
    constants = {**PERCEPTRON, "mean": rng.standard_normal((1, 1, 1, 6))}
    for batch in (1, "n"):
        path = save(
            tmp_path / f"{batch}.onnx", nodes, (1, 1, 6), constants, batch=batch, ir=4, opset=9, listed=True
        )
        check(path, (1, 1, 6), batch=1)
        # points of another shape but of the same size are taken too
        model = inscape.wrap(path)
        assert linear_regions(model, Segment(np.zeros(6), np.ones(6))).n_regions >= 1


@pytest.mark.parametrize("seed", range(3))
def test_auto_is_exact_on_planes_of_networks_shaped_like_those_of_acas_xu(seed, tmp_path):
    """5-50x6-5, one row of inputs at a time, and the lowest score wins."""
    draw, sizes = np.random.default_rng(seed), (5, *[50] * 6, 5)
    constants, nodes, last = {}, [("Flatten", "x", "h0")], len(sizes) - 2
    for k, (n, m) in enumerate(pairwise(sizes)):
        constants |= {f"w{k}": draw.normal(size=(n, m)) * np.sqrt(2 / n), f"b{k}": 0.3 * draw.normal(size=m)}
        nodes.append(("Gemm", f"h{k} w{k} b{k}", f"a{k}" if k < last else "y"))
        nodes += [("Relu", f"a{k}", f"h{k + 1}")] * (k < last)
    path = save(tmp_path / "acas.onnx", nodes, (1, 1, 5), constants, batch=1)
    model = inscape.wrap(path, decide="argmin")
    axes = np.eye(5)[:2].reshape(2, 1, 1, 5)
    plane = inscape.Patch(np.zeros((1, 1, 5)), axes, ((-1, 1), (-1, 1)))
    regions = inscape.decision_regions(model, plane)
    assert (regions.method, regions.is_exact) == ("exact", True)

    def lowest(x):
        return np.array([int(np.argmin(run(path, point[None]))) for point in x.astype(np.float32)])

    assert_on_plane(lowest, regions, 1e-4, n=500)


def test_columns_in_and_out(tmp_path):
    """Weights on the left of a column of inputs, and scores in a column: the batch is one."""
    nodes = [
        ("MatMul", "w x", "a"),
        ("Add", "a b", "h"),
        ("Relu", "h", "r"),
        ("MatMul", "v r", "d"),
        ("Add", "d c", "e"),
        ("Squeeze", "e", "y", {"axes": [0]}),
    ]
    constants = {"w": PERCEPTRON["w"].T, "v": PERCEPTRON["v"].T}
    constants |= {k: PERCEPTRON[k][:, None] for k in "bc"}
    path = save(tmp_path / "m.onnx", nodes, (6, 1), constants, batch=1, opset=11)
    check(path, (6, 1), batch=1)
    x = rng.standard_normal((4, 6))
    assert np.allclose(inscape.wrap(path).scores(x), perceptron(x), atol=1e-5)


@pytest.mark.parametrize(("shape", "given"), [((6,), None), ((1, 6), (1, 6)), ((3, 2), (3, 2))])
def test_an_input_without_a_batch_axis(shape, given, tmp_path):
    nodes = [("Reshape", "x s", "f"), ("MatMul", "f w", "a"), ("Add", "a b", "h"), ("Relu", "h", "r")]
    nodes += [("MatMul", "r v", "d"), ("Add", "d c", "y")]
    path = save(tmp_path / "m.onnx", nodes, shape, {**PERCEPTRON, "s": ints(6)}, batch=None)
    model = inscape.wrap(path, input_shape=given)
    x = rng.standard_normal((4, *shape))
    assert np.allclose(model.scores(x), perceptron(x.reshape(4, 6)), atol=1e-5)
    assert model.structure == "piecewise-affine"
    assert np.allclose(model.graph(shape).evaluate(torch.from_numpy(x)).numpy(), model.scores(x), atol=1e-5)


def test_a_chain_of_shapes(tmp_path):
    """The view(x.size(0), -1) of older exporters, and a sum of two sizes that is a constant."""
    nodes = [
        ("Shape", "x", "s"),
        ("Gather", "s zero", "n"),
        ("Unsqueeze", "n first", "n1"),
        ("Slice", "s one three", "rest"),
        ("ReduceProd", "rest", "size", {"keepdims": 1}),
        ("Concat", "n1 size", "target", {"axis": 0}),
        ("Reshape", "x target", "f"),
        ("Gemm", "f w b", "h"),
        ("Cast", "size", "number", {"to": TensorProto.FLOAT}),
        ("Div", "h number", "y"),
    ]
    constants = {**PERCEPTRON, "zero": np.array(0), "first": ints(0), "one": ints(1), "three": ints(3)}
    check(save(tmp_path / "m.onnx", nodes, (2, 3), constants), (2, 3))


def test_an_open_size_is_fixed_by_the_points(tmp_path):
    constants = {"w": rng.standard_normal((4, 1, 3, 3)), "v": rng.standard_normal((4, 3))}
    nodes = [("Conv", "x w", "a"), ("Relu", "a", "r"), ("GlobalAveragePool", "r", "g"), ("Flatten", "g", "f")]
    path = save(tmp_path / "m.onnx", [*nodes, ("MatMul", "f v", "y")], (1, "h", "w"), constants)
    assert inscape.wrap(path).structure == "black-box"
    assert inscape.wrap(path, input_shape=(1, 5, 7)).structure == "piecewise-affine"
    a, b = rng.standard_normal((2, 1, 5, 7))
    assert linear_regions(path, Segment(a, b)).n_regions > 1


def test_functions_of_the_file_are_inlined(tmp_path):
    function = helper.make_function(
        "local",
        "Half",
        ["a"],
        ["b"],
        [node("Relu", "a", "r"), node("Neg", "r", "b")],
        [helper.make_opsetid("", 17)],
    )
    graph = helper.make_graph(
        [helper.make_node("Half", ["x"], ["y"], domain="local")],
        "g",
        [helper.make_tensor_value_info("x", 1, ["n", 4])],
        [helper.make_tensor_value_info("y", 1, ["n", 4])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=[function]), path)
    check(path, (4,))


def test_weights_in_a_second_file(tmp_path):
    path = save(tmp_path / "m.onnx", LAYERS, (6,), PERCEPTRON)
    onnx.save_model(
        onnx.load(path), path, save_as_external_data=True, location="weights.bin", size_threshold=0
    )
    assert (tmp_path / "weights.bin").exists()
    check(path, (6,))


# what ends a file


@pytest.mark.parametrize(
    ("ending", "head", "opset"),
    [
        ([("Softmax", "y", "z")], "softmax", 17),
        ([("Softmax", "y", "z", {"axis": 1})], "softmax", 11),
        ([("LogSoftmax", "y", "z", {"axis": -1})], "log_softmax", 17),
        ([("Sigmoid", "y", "z")], "sigmoid", 17),
        ([("Tanh", "y", "z")], "tanh", 17),
        ([("Softplus", "y", "z")], "softplus", 17),
        ([("Exp", "y", "z")], "exp", 11),
        ([("Elu", "y", "z")], "elu", 17),
        ([("Selu", "y", "z")], "selu", 17),
        ([("Softmax", "y", "s"), ("Identity", "s", "t"), ("Flatten", "t", "z")], "softmax", 17),
    ],
)
def test_a_final_head_is_set_aside(ending, head, opset, tmp_path):
    small = PERCEPTRON | {k: PERCEPTRON[k] / 16 for k in "vc"}  # so that no head rounds to one
    path = save(tmp_path / "m.onnx", [*LAYERS, *ending], (6,), small, outputs=["z"], opset=opset)
    model = inscape.wrap(path)
    graph = model.graph((6,))
    assert graph.head == head
    x = rng.standard_normal((5, 6))
    assert np.allclose(graph.evaluate(torch.from_numpy(x)).numpy(), perceptron(x) / 16, atol=1e-5)
    segment = Segment(*rng.standard_normal((2, 6)) * 4)
    (found,) = exact_segments(model, [segment])
    bare = inscape.wrap(save(tmp_path / "bare.onnx", LAYERS, (6,), small))
    assert found.boundaries.tolist() == exact_segments(bare, [segment])[0].boundaries.tolist()


@pytest.mark.parametrize("with_scores", [False, True])
def test_labels_in_the_file(with_scores, tmp_path):
    ending = [
        ("Softmax", "y", "p"),
        ("ArgMax", "p", "a", {"axis": 1, "keepdims": 1}),
        ("Squeeze", "a one", "label"),
    ]
    path = save(
        tmp_path / "m.onnx",
        [*LAYERS, *ending],
        (6,),
        {**PERCEPTRON, "one": ints(1)},
        outputs=["p"] if with_scores else [],
        label="label",
    )
    model = inscape.wrap(path)
    assert model.structure == "piecewise-affine"
    assert model.graph((6,)).head == ("softmax" if with_scores else "argmax")
    (found,) = exact_segments(model, [segment := Segment(*rng.standard_normal((2, 6)) * 4)])
    t = np.linspace(0, 1, 1001)
    away = np.abs(t[:, None] - found.boundaries).min(axis=1, initial=1.0) > 1e-6
    expected = model.labels(segment.points(t))
    assert (found.labels[np.searchsorted(found.boundaries, t)] == expected)[away].all()


def test_labels_of_the_smallest_score(tmp_path):
    nodes = [*LAYERS, ("Neg", "y", "n"), ("ArgMax", "n", "label", {"axis": 1, "keepdims": 0})]
    model = inscape.wrap(save(tmp_path / "m.onnx", nodes, (6,), PERCEPTRON, label="label"))
    x = rng.standard_normal((20, 6)).astype(np.float32)
    labels, scores = run(model.path, x, "label"), run(model.path, x, "y")
    assert (model.labels(x) == labels).all()
    assert (model.scores(x) == -scores).all()
    assert (model.graph((6,)).evaluate(torch.from_numpy(x)).argmax(1).numpy() == labels).all()


# foreign operations

MATRIX = {"m": rng.standard_normal((6, 6))}
FOREIGN = {
    "Erf": (
        [("Erf", "x", "e"), ("MatMul", "e m", "y")],
        "is not piecewise affine because of Erf in erf_e:",
        {},
    ),
    "Gelu": ([("Gelu", "x", "y")], "Gelu in gelu_y", {"opset": 20}),
    "HardSwish": ([("HardSwish", "x", "y")], "HardSwish in hardswish_y", {}),
    "hard-swish by hand": (
        [("HardSigmoid", "x", "gate"), ("Mul", "x gate", "y")],
        "Mul of two values that depend on the input in mul_y",
        {},
    ),
    "a sigmoid gate": ([("Sigmoid", "x", "gate"), ("Mul", "x gate", "y")], "Sigmoid in sigmoid_gate", {}),
    "an inner softmax": ([("Softmax", "x", "p"), ("MatMul", "p m", "y")], "Softmax in softmax_p", {}),
    "attention": (
        [("Transpose", "x", "t"), ("MatMul", "t x", "q"), ("MatMul", "x q", "y")],
        "MatMul of two values that depend on the input in matmul_q",
        {},
    ),
    "a division": ([("Abs", "x", "a"), ("Div", "x a", "y")], "Div by a value that depends on the input", {}),
    "a constant divided": ([("Div", "m x", "y")], "Div by a value that depends on the input", {}),
    "Tanh": (
        [("Tanh", "x", "t"), ("Relu", "t", "y")],
        "is not piecewise affine because of Tanh in tanh_t:",
        {},
    ),
    "one positive score": (
        [("ReduceSum", "x one", "a"), ("Exp", "a", "y")],
        "m.onnx ends in exp, whose values never reach 0, with which they are compared",
        {},
    ),
    "LSTM": (
        [("Reshape", "x sequence", "t"), ("LSTM", "t lw lr", "y", {"hidden_size": 1})],
        "is not piecewise affine because of LSTM in lstm_y:",
        {},
    ),
    "RNN with tanh": (
        [("Reshape", "x sequence", "t"), ("RNN", "t rw rr", "y", {"hidden_size": 1})],
        "is not piecewise affine because of RNN with Tanh in rnn_y:",
        {},
    ),
    "a half inside": (
        [("Cast", "x", "h", {"to": TensorProto.FLOAT16}), ("Cast", "h", "y", {"to": TensorProto.FLOAT})],
        "is not piecewise affine because of Cast to float16, whose rounding makes steps, in cast_h:",
        {},
    ),
    "hard shrinkage": ([("Shrink", "x", "y", {"lambd": 0.5})], "because of Shrink with another bias", {}),
    "a thresholded relu": (
        [("ThresholdedRelu", "x", "y", {"alpha": 0.5})],
        "cannot be counted exactly because of ThresholdedRelu in thresholdedrelu_y, which jumps:",
        {},
    ),
    "a sign": ([("Sign", "x", "y")], "cannot be counted exactly because of Sign in sign_y, which jumps:", {}),
    "a choice that jumps": (
        [("Greater", "x half", "g"), ("Where", "g x c", "y")],
        "because of Where (its two sides do not meet) in where_y, which jumps:",
        {},
    ),
    "a comparison": (
        [("Greater", "x c", "g"), ("Cast", "g", "f", {"to": TensorProto.FLOAT}), ("MatMul", "f m", "y")],
        "cannot be counted exactly because of Greater in greater_g, which jumps:",
        {},
    ),
    "what is not read": (
        [("Reshape", "x image", "i"), ("GridSample", "i grid", "g"), ("Flatten", "g", "y")],
        "cannot be counted exactly; not supported yet: GridSample in gridsample_g:",
        {},
    ),
    "a softmax over a part": (
        [("Reshape", "x s", "a"), ("Softmax", "a", "y")],
        "Softmax over a part of the scores",
        {},
    ),
    "a softmax of one score": (
        [("ReduceSum", "x one", "a"), ("Softmax", "a", "y")],
        "Softmax of one score, which is constant in softmax_y",
        {},
    ),
    "a log-softmax of one score": (
        [("ReduceSum", "x one", "a"), ("LogSoftmax", "a", "y")],
        "LogSoftmax of one score, which is constant in logsoftmax_y",
        {},
    ),
    "rounding": (
        [("Cast", "x", "i", {"to": TensorProto.INT64}), ("Cast", "i", "y", {"to": TensorProto.FLOAT})],
        "cannot be counted exactly because of Cast to int64 in cast_i, which jumps:",
        {},
    ),
    "batch statistics": (
        [("ReduceMean", "x", "a", {"axes": [0]}), ("Sub", "x a", "y")],
        "because of ReduceMean over the batch axis in reducemean_a, where the points of a batch meet",
        {},
    ),
    "all axes": ([("ReduceMean", "x", "a"), ("Sub", "x a", "y")], "ReduceMean over the batch axis", {}),
    "points that meet": (
        [("Slice", "x zero one zero", "first"), ("Sub", "x first", "y")],
        "a result that is not that of each point alone",
        {},
    ),
    "random numbers": (
        [("RandomNormal", "", "r", {"shape": [6]}), ("Add", "x r", "y")],
        "cannot be counted exactly because of RandomNormal in randomnormal_r, which is random:",
        {},
    ),
    "a branch on the data": (
        [("ReduceSum", "x one", "a"), ("Greater", "a c", "is_positive"), ("Where", "is_positive x c", "y")],
        "not supported yet: Where (its two sides are not seen to meet) in where_y",
        {},
    ),
    "cubic resampling": (
        [
            ("Reshape", "x image", "i"),
            ("Resize", "i _ scales", "r", {"mode": "cubic"}),
            ("Flatten", "r", "y"),
        ],
        "Resize of mode 'cubic' in resize_r",
        {},
    ),
    "a gather by the data": (
        [("ArgMax", "x", "a", {"axis": 1, "keepdims": 0}), ("Gather", "m a", "y")],
        "Gather of a constant by a value that depends on the input in gather_y",
        {},
    ),
}
CONSTANTS = {
    **MATRIX,
    "s": ints(-1, 2, 3),
    "image": ints(-1, 1, 2, 3),
    "scales": np.float32([1, 1, 2, 2]),
    "zero": ints(0),
    "one": ints(1),
    "c": np.float32(0),
    "half": np.float32(0.5),
    "sequence": ints(6, -1, 1),
    "lw": rng.standard_normal((1, 4, 1)),
    "lr": rng.standard_normal((1, 4, 1)),
    "rw": rng.standard_normal((1, 1, 1)),
    "rr": rng.standard_normal((1, 1, 1)),
    "grid": rng.standard_normal((1, 2, 2, 2)),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_operation_is_named(name, tmp_path):
    nodes, message, options = FOREIGN[name]
    model = inscape.wrap(save(tmp_path / "m.onnx", nodes, (6,), CONSTANTS, **options))
    assert model.structure == "black-box"
    with pytest.raises(PartitionError, match=re.escape(message)) as error:
        linear_regions(model, Segment(np.zeros(6), np.ones(6)))
    assert str(error.value).startswith("m.onnx ")
    assert 'method="grid"' in str(error.value)


def test_all_foreign_operations_are_counted(tmp_path):
    nodes = [("Gelu", "x", "a"), ("Relu", "a", "b"), ("Mish", "b", "c"), ("Round", "c", "y")]
    model = inscape.wrap(save(tmp_path / "m.onnx", nodes, (6,), opset=20))
    with pytest.raises(PartitionError, match=r"Gelu in gelu_a \(and 2 more\)"):
        model.graph((6,))


def test_a_node_without_a_name(tmp_path):
    path = save(tmp_path / "m.onnx", [helper.make_node("Sin", ["x"], ["y"])], (6,))
    with pytest.raises(PartitionError, match="Sin in the node that computes 'y'"):
        inscape.wrap(path).graph((6,))


def test_a_foreign_operation_that_the_output_does_not_need_is_no_obstacle(tmp_path):
    nodes = [("Tanh", "x", "unused"), *LAYERS]
    path = save(tmp_path / "m.onnx", nodes, (6,), PERCEPTRON, outputs=["y", "unused"])
    assert inscape.wrap(path, output="y").structure == "piecewise-affine"


def test_an_operation_of_another_domain_is_foreign(tmp_path):
    gelu = helper.make_node("Gelu", ["x"], ["y"], name="fused", domain="com.microsoft")
    graph = helper.make_graph(
        [gelu],
        "g",
        [helper.make_tensor_value_info("x", 1, ["n", 4])],
        [helper.make_tensor_value_info("y", 1, None)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "m.onnx")
    with pytest.raises(PartitionError, match="Gelu in fused"):
        inscape.wrap(tmp_path / "m.onnx").graph((4,))


def test_an_output_that_is_constant(tmp_path):
    value = numpy_helper.from_array(np.float32([[1, 2, 3]]))
    path = save(tmp_path / "m.onnx", [("Constant", "", "y", {"value": value}), ("Relu", "x", "r")], (3,))
    with pytest.raises(PartitionError, match="an output 'y' that does not depend on the input"):
        inscape.wrap(path).graph((3,))


# without the onnx package


def test_without_onnx_a_file_is_a_black_box(tmp_path, monkeypatch):
    path = save(tmp_path / "m.onnx", LAYERS, (6,), PERCEPTRON)
    monkeypatch.setitem(sys.modules, "onnx", None)
    model = inscape.wrap(path)
    assert model.structure == "black-box"
    assert np.allclose(model.scores(np.zeros((1, 6))), perceptron(np.zeros((1, 6))), atol=1e-5)
    with pytest.raises(MissingExtraError, match=r"needs onnx: pip install 'inscape\[onnx\]'") as error:
        model.graph((6,))
    assert isinstance(error.value, InscapeError)


def test_inscape_does_not_import_onnx():
    code = "import sys, inscape, inscape.models.loading; sys.exit('onnx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_graph_is_read_once(tmp_path):
    model = inscape.wrap(save(tmp_path / "m.onnx", LAYERS, (6,), PERCEPTRON))
    assert model.graph((6,)) is model.graph((6,))
