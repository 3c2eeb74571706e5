"""Operations of ONNX files as nodes of a graph, one by one against onnxruntime."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_files import check, node, save

rng = np.random.default_rng(7)


def weights(*shape):
    return rng.standard_normal(shape)


def ints(*values):
    return np.array(values, np.int64)


IMAGE = (3, 6, 5)

# operation: (nodes, input shape, constants, options of `save`)
OPERATIONS = {
    "Gemm": ([("Gemm", "x w b", "y")], (4,), {"w": weights(4, 3), "b": weights(3)}, {}),
    "Gemm with factors": (
        [("Gemm", "x w b", "y", {"transB": 1, "alpha": 0.5, "beta": 2.0})],
        (4,),
        {"w": weights(3, 4), "b": weights(1, 3)},
        {},
    ),
    "Gemm without a bias": ([("Gemm", "x w", "y")], (4,), {"w": weights(4, 3)}, {}),
    "Gemm with a bias without effect": (
        [("Gemm", "x w b", "y", {"beta": 0.0})],
        (4,),
        {"w": weights(4, 3), "b": weights(3)},
        {},
    ),
    "Gemm of transposed columns": (
        [("Transpose", "x", "t"), ("Gemm", "t w b", "y", {"transA": 1})],
        (4,),
        {"w": weights(4, 3), "b": weights(3)},
        {},
    ),
    "Gemm with the constant on the left": (
        [
            ("Transpose", "x", "t"),
            ("Gemm", "w t", "u"),
            ("Transpose", "u", "y"),
        ],
        (4,),
        {"w": weights(3, 4)},
        {},
    ),
    "Gemm that adds a skip": (
        [("Relu", "x", "r"), ("Gemm", "r w x", "y", {"beta": 0.5})],
        (4,),
        {"w": weights(4, 4)},
        {},
    ),
    "MatMul and Add": (
        [("MatMul", "x w", "a"), ("Add", "b a", "y")],
        (4,),
        {"w": weights(4, 3), "b": weights(3)},
        {},
    ),
    "MatMul on three axes": (
        [("MatMul", "x w", "a"), ("Add", "a b", "y")],
        (5, 4),
        {"w": weights(4, 3), "b": weights(3)},
        {},
    ),
    "MatMul with a vector": ([("MatMul", "x w", "y")], (5, 4), {"w": weights(4)}, {}),
    "MatMul with a stack of matrices": ([("MatMul", "x w", "y")], (2, 5, 4), {"w": weights(2, 4, 3)}, {}),
    "MatMul with one matrix in a stack": ([("MatMul", "x w", "y")], (5, 4), {"w": weights(1, 4, 3)}, {}),
    "MatMul from the left": ([("MatMul", "w x", "y")], (4, 3), {"w": weights(2, 4)}, {}),
    "MatMul from the left on columns": ([("MatMul", "w x", "y")], (4, 1), {"w": weights(2, 4)}, {}),
    "MatMul of a vector from the left": ([("MatMul", "w x", "y")], (4, 3), {"w": weights(4)}, {}),
    "Sub and Div by constants": (
        [("Sub", "x m", "a"), ("Div", "a s", "y")],
        IMAGE,
        {"m": weights(3, 1, 1), "s": weights(1, 3, 1, 1)},
        {},
    ),
    "Sub from a constant": ([("Sub", "c x", "y")], (4,), {"c": weights(4)}, {}),
    "Mul by a constant": ([("Mul", "c x", "y")], (4,), {"c": weights(1)}, {}),
    "arithmetic that widens": ([("Mul", "x c", "y")], (1, 4), {"c": weights(3, 4)}, {}),
    "Add of a wider tensor": (
        [("ReduceMean", "x", "m", {"axes": [2, 3]}), ("Sub", "x m", "y")],
        IMAGE,
        {},
        {},
    ),
    "Neg, Identity, Dropout": (
        [("Neg", "x", "a"), ("Identity", "a", "b"), ("Dropout", "b", "y")],
        (4,),
        {},
        {},
    ),
    "Dropout with a mask": ([("Dropout", "x", "y mask", {"ratio": 0.5})], (4,), {}, {"opset": 10}),
    "Cast there and back": (
        [("Cast", "x", "a", {"to": TensorProto.DOUBLE}), ("Cast", "a", "y", {"to": TensorProto.FLOAT})],
        (4,),
        {},
        {},
    ),
    "Sum and Mean": (
        [("Relu", "x", "r"), ("Sum", "x c r", "a"), ("Mean", "a x r", "y")],
        (4,),
        {"c": weights(4)},
        {},
    ),
    "Constant": (
        [
            ("Constant", "", "c", {"value": numpy_helper.from_array(np.float32([1, 2, 3, 4]))}),
            ("Add", "x c", "y"),
        ],
        (4,),
        {},
        {},
    ),
    "Constant of a float": ([("Constant", "", "c", {"value_float": 2.5}), ("Mul", "x c", "y")], (4,), {}, {}),
    "ConstantOfShape": (
        [
            ("ConstantOfShape", "s", "c", {"value": numpy_helper.from_array(np.float32([2]))}),
            ("Add", "x c", "y"),
        ],
        (4,),
        {"s": ints(4)},
        {},
    ),
    "Squeeze by attribute": ([("Squeeze", "x", "y", {"axes": [1, -1]})], (1, 4, 1), {}, {"opset": 11}),
    "Squeeze by input": ([("Squeeze", "x a", "y")], (1, 4, 1), {"a": ints(1, 3)}, {}),
    "Squeeze of everything": (
        [("Squeeze", "x", "a"), ("MatMul", "a w", "y")],
        (1, 4, 1),
        {"w": weights(4, 3)},
        {},
    ),
    "Unsqueeze by attribute": (
        [("Unsqueeze", "x", "a", {"axes": [1, 3]}), ("Add", "a c", "y")],
        (4,),
        {"c": weights(1, 4, 1)},
        {"opset": 11},
    ),
    "Unsqueeze by input": (
        [("Unsqueeze", "x a", "u"), ("Add", "u c", "y")],
        (4,),
        {"a": ints(-1), "c": weights(4, 2)},
        {},
    ),
    "Flatten": ([("Flatten", "x", "a"), ("MatMul", "a w", "y")], IMAGE, {"w": weights(90, 3)}, {}),
    "Flatten at the last axis": (
        [("Flatten", "x", "a", {"axis": -1}), ("MatMul", "a w", "b"), ("Reshape", "b s", "y")],
        (3, 4),
        {"w": weights(4, 2), "s": ints(-1, 6)},
        {},
    ),
    "Reshape with 0 and -1": (
        [("Reshape", "x s", "a"), ("Add", "a c", "y")],
        IMAGE,
        {"s": ints(0, 3, -1), "c": weights(3, 1)},
        {},
    ),
    "Transpose": ([("Transpose", "x", "y", {"perm": [0, 2, 3, 1]})], IMAGE, {}, {}),
    "Transpose through the batch axis": (
        [("Transpose", "x", "t"), ("Add", "t c", "a"), ("Transpose", "a", "y")],
        (4,),
        {"c": weights(4, 1)},
        {},
    ),
    "Gather": ([("Gather", "x i", "y", {"axis": 2})], IMAGE, {"i": ints(4, -2, 0)}, {}),
    "Gather of one entry": ([("Gather", "x i", "y", {"axis": 1})], IMAGE, {"i": np.array(1)}, {}),
    "Gather of a table": (
        [("Gather", "x i", "y", {"axis": -1})],
        IMAGE,
        {"i": ints(0, 3, 1, 1).reshape(2, 2)},
        {},
    ),
    "Slice by attributes": (
        [("Slice", "x", "y", {"starts": [1, 0], "ends": [100, -1], "axes": [2, 3]})],
        IMAGE,
        {},
        {"opset": 9},
    ),
    "Slice backwards": (
        [("Slice", "x a b c d", "y")],
        IMAGE,
        {"a": ints(-1, 0), "b": ints(-1000, 5), "c": ints(3, 2), "d": ints(-2, 2)},
        {},
    ),
    "Slice of the leading axes": (
        [("Slice", "x a b", "y")],
        IMAGE,
        {"a": ints(0, 1), "b": ints(2**62, 3)},
        {},
    ),
    "Concat": ([("Relu", "x", "r"), ("Concat", "x r x", "y", {"axis": 1})], IMAGE, {}, {}),
    "Concat along the last axis": ([("Relu", "x", "r"), ("Concat", "x r", "y", {"axis": -1})], IMAGE, {}, {}),
    "Split into parts": (
        [("Split", "x", "a b", {"axis": 1, "split": [1, 3]}), ("Concat", "b a", "y", {"axis": 1})],
        (4,),
        {},
        {"opset": 11},
    ),
    "Split by input": (
        [("Split", "x s", "a b", {"axis": 1}), ("Concat", "b a", "y", {"axis": 1})],
        (4,),
        {"s": ints(3, 1)},
        {},
    ),
    "Split evenly": ([("Split", "x", "a b", {"axis": 1}), ("Sub", "a b", "y")], (4,), {}, {}),
    "Split unevenly": (
        [("Split", "x", "a b", {"axis": 1, "num_outputs": 2}), ("Concat", "b a", "y", {"axis": 1})],
        (5,),
        {},
        {"opset": 18},
    ),
    "Pad by attributes": (
        [("Pad", "x", "y", {"pads": [0, 0, 1, 2, 0, 0, 0, 1], "value": 0.5})],
        IMAGE,
        {},
        {"opset": 10},
    ),
    "Pad by inputs": (
        [("Pad", "x p v", "y")],
        IMAGE,
        {"p": ints(0, 1, 0, 2, 0, 0, 1, -1), "v": np.float32(-1.5)},
        {},
    ),
    "Pad of some axes": ([("Pad", "x p _ a", "y")], IMAGE, {"p": ints(1, 2), "a": ints(-1)}, {"opset": 18}),
    "Pad by reflection": (
        [("Pad", "x p", "y", {"mode": "reflect"})],
        IMAGE,
        {"p": ints(0, 0, 2, 1, 0, 0, 1, 0)},
        {},
    ),
    "Pad by the edge": (
        [("Pad", "x p", "y", {"mode": "edge"})],
        IMAGE,
        {"p": ints(0, 0, 2, 1, 0, 0, 1, 0)},
        {},
    ),
    "Expand": ([("Expand", "x s", "y")], (1, 4), {"s": ints(1, 3, 1)}, {}),
    "Tile": ([("Tile", "x s", "y")], (2, 3), {"s": ints(1, 2, 2)}, {}),
    "BatchNormalization": (
        [("BatchNormalization", "x g b m v", "y", {"epsilon": 0.01})],
        IMAGE,
        {"g": weights(3), "b": weights(3), "m": weights(3), "v": weights(3) ** 2},
        {},
    ),
    "BatchNormalization of a vector": (
        [("BatchNormalization", "x g b m v", "y")],
        (3,),
        {"g": weights(3), "b": weights(3), "m": weights(3), "v": weights(3) ** 2 + 0.1},
        {"opset": 9},
    ),
    "BatchNormalization after a product along another axis": (
        [("MatMul", "x w", "a"), ("BatchNormalization", "a g b m v", "y")],
        (3, 3),
        {"w": weights(3, 3), "g": weights(3), "b": weights(3), "m": weights(3), "v": weights(3) ** 2 + 0.1},
        {},
    ),
    "GlobalAveragePool": ([("GlobalAveragePool", "x", "y")], IMAGE, {}, {}),
    "GlobalMaxPool": ([("GlobalMaxPool", "x", "y")], IMAGE, {}, {}),
    "ReduceMean by attribute": ([("ReduceMean", "x", "y", {"axes": [-1, 2], "keepdims": 0})], IMAGE, {}, {}),
    "ReduceMean by input": ([("ReduceMean", "x a", "y")], IMAGE, {"a": ints(1, 3)}, {"opset": 18}),
    "ReduceSum by attribute": ([("ReduceSum", "x", "y", {"axes": [1]})], IMAGE, {}, {"opset": 11}),
    "ReduceSum by input": ([("ReduceSum", "x a", "y", {"keepdims": 0})], IMAGE, {"a": ints(2)}, {}),
    "ReduceSum over nothing": ([("ReduceSum", "x", "y", {"noop_with_empty_axes": 1})], (4,), {}, {}),
    "ReduceMax": ([("ReduceMax", "x", "y", {"axes": [2, 3]})], IMAGE, {}, {}),
    "ReduceMin": ([("ReduceMin", "x", "y", {"axes": [1], "keepdims": 0})], IMAGE, {}, {}),
    "Relu": ([("Relu", "x", "y")], (4,), {}, {}),
    "LeakyRelu": ([("LeakyRelu", "x", "a"), ("LeakyRelu", "a", "y", {"alpha": 0.3})], (4,), {}, {}),
    "PRelu": ([("PRelu", "x s", "y")], IMAGE, {"s": weights(3, 1, 1)}, {}),
    "PRelu with one slope": ([("PRelu", "x s", "y")], IMAGE, {"s": weights(1)}, {}),
    "Clip by attributes": ([("Clip", "x", "y", {"min": -0.5, "max": 0.4})], (4,), {}, {"opset": 9}),
    "Clip by one attribute": ([("Clip", "x", "y", {"min": 0.0})], (4,), {}, {"opset": 7}),
    "Clip by inputs": ([("Clip", "x a b", "y")], (4,), {"a": np.float32(-0.2), "b": np.float32(0.3)}, {}),
    "Clip above": ([("Clip", "x _ b", "y")], (4,), {"b": np.float32(0.3)}, {}),
    "Abs": ([("Abs", "x", "y")], (4,), {}, {}),
    "Max and Min with a number": (
        [("Max", "x a", "m"), ("Min", "b m", "y")],
        (4,),
        {"a": weights(1), "b": np.float32(1.1)},
        {},
    ),
    "Max and Min with constants": (
        [("Max", "c x", "a"), ("Min", "a d", "y")],
        (4,),
        {"c": weights(4), "d": weights(4) + 1},
        {},
    ),
    "Max and Min of three": (
        [("Neg", "x", "n"), ("Mul", "x h", "a"), ("Max", "x n h", "b"), ("Min", "b a x", "y")],
        (4,),
        {"h": weights(4)},
        {},
    ),
    "HardSigmoid": (
        [("HardSigmoid", "x", "a"), ("HardSigmoid", "a", "y", {"alpha": 2.0, "beta": -0.6})],
        (4,),
        {},
        {},
    ),
    "Resize to the nearest": (
        [
            (
                "Resize",
                "x _ s",
                "y",
                {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
            )
        ],
        IMAGE,
        {"s": np.float32([1, 1, 2, 3])},
        {},
    ),
    "Resize to the nearest, half pixels": (
        [("Resize", "x _ _ s", "y", {"axes": [2, 3]})],
        IMAGE,
        {"s": ints(9, 4)},
        {"opset": 18},
    ),
    "Resize linearly": (
        [("Resize", "x _ s", "y", {"mode": "linear"})],
        IMAGE,
        {"s": np.float32([1, 1, 2, 1.5])},
        {},
    ),
    "Resize linearly between corners": (
        [
            (
                "Resize",
                "x _ _ s",
                "y",
                {"mode": "linear", "axes": [-2, -1], "coordinate_transformation_mode": "align_corners"},
            )
        ],
        IMAGE,
        {"s": ints(9, 4)},
        {"opset": 18},
    ),
    "Upsample": (
        [("Upsample", "x s", "y", {"mode": "nearest"})],
        IMAGE,
        {"s": np.float32([1, 1, 2, 2])},
        {"opset": 9},
    ),
    "ConvTranspose": (
        [
            (
                "ConvTranspose",
                "x w b",
                "y",
                {"strides": [2, 2], "pads": [1, 0, 0, 1], "output_padding": [1, 0]},
            )
        ],
        IMAGE,
        {"w": weights(3, 2, 3, 2), "b": weights(2)},
        {},
    ),
    "ConvTranspose to a given shape": (
        [("ConvTranspose", "x w", "y", {"strides": [2, 2], "output_shape": [12, 11]})],
        IMAGE,
        {"w": weights(3, 2, 3, 3)},
        {},
    ),
    "ConvTranspose to a larger shape": (
        [("ConvTranspose", "x w", "y", {"strides": [3, 2], "output_shape": [19, 12]})],
        IMAGE,
        {"w": weights(3, 2, 3, 3)},
        {},
    ),
    "ConvTranspose to the same shape": (
        [("ConvTranspose", "x w", "y", {"strides": [2, 2], "auto_pad": "SAME_UPPER"})],
        IMAGE,
        {"w": weights(3, 2, 3, 3)},
        {},
    ),
    "Conv in one dimension": (
        [("Conv", "x w b", "y", {"pads": [2, 1], "strides": [2], "group": 2})],
        (4, 9),
        {"w": weights(6, 2, 3), "b": weights(6)},
        {},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_carried(name, tmp_path):
    nodes, shape, constants, options = OPERATIONS[name]
    path = save(tmp_path / "m.onnx", nodes, shape, constants, **options)
    check(path, shape)
    check(path, shape, batch=1)


def test_a_constant_joined_to_values(tmp_path):
    # the constant has a batch axis of its own, so that the file takes one point
    nodes = [("Concat", "c x c", "y", {"axis": 1})]
    path = save(tmp_path / "m.onnx", nodes, (2, 3), {"c": weights(1, 1, 3)}, batch=1)
    check(path, (2, 3), batch=1)


def test_a_product_and_its_bias_are_one_node(tmp_path):
    nodes = [("MatMul", "x w", "a"), ("Add", "a b", "c"), ("Relu", "c", "d"), ("Gemm", "d v b", "y")]
    constants = {"w": weights(4, 4), "b": weights(4), "v": weights(4, 4)}
    graph = check(save(tmp_path / "m.onnx", nodes, (4,), constants), (4,))
    assert [n.op.name for n in graph.nodes[1:]] == ["linear", "relu", "linear"]


def test_a_product_that_is_also_read_without_its_bias(tmp_path):
    nodes = [("MatMul", "x w", "a"), ("Add", "a b", "c"), ("Relu", "c", "d"), ("Add", "a d", "y")]
    check(save(tmp_path / "m.onnx", nodes, (5, 4), {"w": weights(4, 4), "b": weights(1, 1, 4)}), (5, 4))


def test_arithmetic_by_channel_goes_into_the_convolution(tmp_path):
    nodes = [("Conv", "x w", "a"), ("Mul", "a s", "b"), ("Sub", "b m", "c"), ("Div", "c two", "y")]
    constants = {
        "w": weights(4, 3, 2, 2),
        "s": weights(1, 4, 1, 1),
        "m": weights(4, 1, 1),
        "two": np.float32(2),
    }
    graph = check(save(tmp_path / "m.onnx", nodes, IMAGE, constants), IMAGE)
    assert [n.op.name for n in graph.nodes[1:]] == ["conv"]


def test_a_branch_that_a_constant_chooses(tmp_path):
    branches = {
        f"{name}_branch": helper.make_graph(
            [node(kind, "a", f"{name}_out")],
            name,
            [],
            [helper.make_tensor_value_info(f"{name}_out", 1, None)],
        )
        for name, kind in (("then", "Relu"), ("else", "Neg"))
    }
    nodes = [
        ("Neg", "x", "a"),
        ("Shape", "x", "s"),
        ("Gather", "s one", "width"),
        ("Equal", "width four", "is_four"),
        ("If", "is_four", "y", branches),
    ]
    for width in (4, 5):
        path = save(tmp_path / f"{width}.onnx", nodes, (width,), {"one": np.array(1), "four": np.array(4)})
        graph = check(path, (width,))
        assert ("relu" in [n.op.name for n in graph.nodes[1:]]) == (width == 4)
