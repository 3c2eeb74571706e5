"""ONNX files as models: labels and scores, files that change, and what is refused."""

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import inscape
from inscape.errors import ModelError


def save(path, nodes, inputs, outputs, initialisers=()):
    graph = helper.make_graph(
        nodes, "g", inputs, outputs, [numpy_helper.from_array(v, name) for name, v in initialisers]
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def linear(path, batch="n", weight=((1.0, -1.0), (0.5, 2.0), (0.0, 1.0))):
    w = np.array(weight, dtype=np.float32)
    return save(
        path,
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, w.shape[1]])],
        [("w", w)],
    ), w


@pytest.mark.parametrize("batch", ["n", 1, 4])
def test_scores_and_labels(tmp_path, rng, batch):
    path, w = linear(tmp_path / "m.onnx", batch)
    x = rng.normal(size=(10, 3))
    m = inscape.wrap(str(path))
    assert m.input_shape == (3,)
    assert np.allclose(m.scores(x), x @ w, atol=1e-6)
    assert (m.labels(x) == (x @ w).argmax(axis=1)).all()
    assert inscape.wrap(path).fingerprint() == m.fingerprint()


@pytest.mark.parametrize(
    "after",
    [
        [],
        [("Squeeze", ["one"], {})],
        [("Squeeze", ["one"], {}), ("Unsqueeze", ["one"], {})],
        [("Reshape", ["flat"], {}), ("Identity", [], {})],
        [("Flatten", [], {}), ("Cast", [], {"to": TensorProto.FLOAT})],
    ],
    ids=lambda after: "-".join(kind for kind, _, _ in after) or "none",
)
def test_one_score_behind_a_sigmoid_is_compared_with_one_half(after, tmp_path):
    chain = [("Sigmoid", [], {}), *after]
    names = ["x", *(f"h{i}" for i in range(len(after))), "y"]
    path = save(
        tmp_path / "m.onnx",
        [
            helper.make_node(kind, [names[i], *more], [names[i + 1]], **attributes)
            for i, (kind, more, attributes) in enumerate(chain)
        ],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [("one", np.array([1])), ("flat", np.array([-1]))],
    )
    m = inscape.wrap(path)
    assert m.structure == "piecewise-affine"
    assert m.labels([[-1.0], [2.0]]).tolist() == [0, 1]
    for how in ("exact", "grid"):
        found = inscape.decision_regions(m, inscape.Segment([-1.0], [2.0]), method=how)
        assert found.labels.tolist() == [0, 1]
        assert abs(found.boundaries[0] - 1 / 3) < 0.01


def test_label_output_beside_scores(tmp_path, rng):
    names = helper.make_node("ArgMax", ["s"], ["label"], axis=1, keepdims=0)
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("Identity", ["x"], ["s"]), names],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])],
        [
            helper.make_tensor_value_info("label", TensorProto.INT64, ["n"]),
            helper.make_tensor_value_info("s", TensorProto.FLOAT, ["n", 2]),
        ],
    )
    x = rng.normal(size=(6, 2))
    m = inscape.wrap(path)
    assert (m.labels(x) == x.argmax(axis=1)).all()
    assert np.allclose(m.scores(x), x, atol=1e-6)


def test_string_labels(tmp_path):
    nodes = [
        helper.make_node("ArgMax", ["x"], ["i"], axis=1, keepdims=0),
        helper.make_node("Gather", ["names", "i"], ["label"]),
    ]
    names = numpy_helper.from_array(np.array(["no", "yes"], dtype=object), "names")
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])],
        [helper.make_tensor_value_info("label", TensorProto.STRING, ["n"])],
        [names],
    )
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    m = inscape.wrap(path)
    assert np.array(["no", "yes"])[[0, 1, 0]].tolist() == [
        m.classes[i] for i in m.labels([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
    ]
    assert not m.has_scores


@pytest.mark.parametrize("rewritten", [False, True])
def test_a_file_that_changes_after_it_was_wrapped(rewritten, tmp_path):
    path, w = linear(tmp_path / "m.onnx")
    m = inscape.wrap(path)
    path.unlink()
    if rewritten:
        linear(path, weight=((5.0, 1.0), (1.0, 0.0), (0.0, 3.0)))
    assert m.structure == "piecewise-affine"
    assert np.allclose(m.graph((3,)).evaluate(torch.eye(3)).numpy(), w)


def test_weights_beside_a_file_are_found_from_another_folder(tmp_path, monkeypatch):
    path, w = linear(tmp_path / "m.onnx")
    onnx.save_model(onnx.load(path), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    monkeypatch.chdir(tmp_path)
    m = inscape.wrap("m.onnx")
    monkeypatch.chdir("/")
    assert np.allclose(m.graph((3,)).evaluate(torch.eye(3)).numpy(), w)


def test_two_inputs_are_refused(tmp_path):
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 2]) for n in ("a", "b", "y")]
    path = save(tmp_path / "m.onnx", [helper.make_node("Add", ["a", "b"], ["y"])], info[:2], info[2:])
    with pytest.raises(ModelError, match=r"takes 2 inputs \(a, b\)"):
        inscape.wrap(path)


def test_missing_runtime_names_the_extra(tmp_path, monkeypatch):
    path, _ = linear(tmp_path / "m.onnx")
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"pip install 'inscape\[onnx\]'"):
        inscape.wrap(path)


@pytest.mark.parametrize("place", ["../secret.bin", "{folder}/secret.bin", "link.bin", "x/../../secret.bin"])
def test_weights_outside_the_folder_of_the_file_are_not_read(tmp_path, place):
    w = np.arange(6, dtype=np.float32).reshape(3, 2)
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(w.tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    path, _ = linear(folder / "m.onnx")
    model = onnx.load(path)
    (stored,) = model.graph.initializer
    stored.ClearField("raw_data")
    stored.data_location = TensorProto.EXTERNAL
    stored.external_data.add(key="location", value=place.format(folder=tmp_path))
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match="not a readable ONNX model"):
        inscape.wrap(path)


def ranked(path):
    """The places of the two largest of three scores."""
    return save(
        path,
        [helper.make_node("TopK", ["x", "k"], ["v", "places"], axis=1)],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("places", TensorProto.INT64, ["n", 2])],
        [("k", np.array([2]))],
    )


@pytest.mark.parametrize("second", [1, lambda y: y[:, 1]], ids=["column", "function"])
def test_a_column_of_whole_numbers_is_a_label(tmp_path, rng, second):
    path, x = ranked(tmp_path / "m.onnx"), rng.normal(size=(20, 3))
    m = inscape.wrap(path, output=("places", second))
    assert (m.labels(x) == np.argsort(-x, axis=1)[:, 1]).all()
    with pytest.raises(ModelError, match=r"not labels \(n,\).*output=lambda y: y\[:, 0\]"):
        inscape.wrap(path).labels(x)


def test_a_rule_decides_by_whole_numbers(tmp_path, rng):
    path, x = ranked(tmp_path / "m.onnx"), rng.normal(size=(20, 3))
    places = np.argsort(-x, axis=1)[:, :2]
    m = inscape.wrap(path, output="places", decide="sign", threshold=0.5)
    assert (m.labels(x) == (places > 0.5) @ [2, 1]).all()
