"""Small ONNX files, written node by node."""

import warnings

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper

import inscape

TYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16}


def save(
    path,
    nodes,
    shape,
    constants=None,
    *,
    batch="n",
    opset=17,
    ir=8,
    dtype="float32",
    outputs=("y",),
    label=None,
    listed=False,
):
    """A file with input x (batch, *shape), no batch axis if `batch` is None.

    Nodes are ("Gemm", "x w b", "y", {attributes}) or finished protos; `listed` puts the constants among the
    inputs, as old files have them.
    """
    full = list(shape) if batch is None else [batch, *shape]
    protos = [n if not isinstance(n, tuple) else node(*n) for n in nodes]
    tensors = [
        numpy_helper.from_array(
            np.asarray(v).astype(dtype) if np.asarray(v).dtype.kind == "f" else np.asarray(v), k
        )
        for k, v in (constants or {}).items()
    ]
    inputs = [helper.make_tensor_value_info("x", TYPES[dtype], full)]
    if listed:
        inputs += [helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in tensors]
    out = [helper.make_tensor_value_info(o, TYPES[dtype], None) for o in outputs]
    if label is not None:
        out.append(helper.make_tensor_value_info(label, TensorProto.INT64, None))
    graph = helper.make_graph(protos, "g", inputs, out, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)
    onnx.save(model, path)
    return path


def node(kind, inputs, outputs, attributes=None, name=None):
    names = [n if n != "_" else "" for n in inputs.split()]
    return helper.make_node(
        kind, names, outputs.split(), name=name or f"{kind.lower()}_{outputs.split()[0]}", **attributes or {}
    )


def run(path, x, output=None):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None if output is None else [output], {session.get_inputs()[0].name: x})[0]


def check(path, shape, *, batch=4, dtype="float32", tolerance=1e-5, scale=1.0, seed=0):
    """The graph of a file, after comparing it with onnxruntime on a batch."""
    model = inscape.wrap(path)
    graph = model.graph(tuple(shape))
    assert model.structure == "piecewise-affine"
    x = (scale * np.random.default_rng(seed).standard_normal((batch, *shape))).astype(dtype)
    expected = run(path, x).reshape(batch, -1).astype(np.float64)
    for precision in (torch.float32, torch.float64):
        found = graph.evaluate(torch.from_numpy(x).to(precision)).double().numpy()
        assert found.shape == expected.shape
        assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()
    return graph


def export(module, shape, path, *, dynamo=False, fold=True):
    """A torch module as an ONNX file, by torch's exporter; `fold` puts batch-norm into the convolutions."""
    x = torch.randn(2, *shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if dynamo:
            torch.onnx.export(
                module,
                (x,),
                path,
                dynamo=True,
                dynamic_shapes=({0: "n"},),
                external_data=False,
                verbose=False,
            )
        else:
            torch.onnx.export(
                module,
                (x,),
                path,
                dynamo=False,
                input_names=["x"],
                dynamic_axes={"x": {0: "n"}},
                training=torch.onnx.TrainingMode.EVAL if fold else torch.onnx.TrainingMode.PRESERVE,
            )
    return path
