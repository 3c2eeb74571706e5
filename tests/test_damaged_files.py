"""Damaged files of every format: a result or an error of ours, never anything else."""

import numpy as np
import onnx
import pytest
import skops.io
import torch
from onnx import TensorProto, helper, numpy_helper
from safetensors.torch import save_file
from sklearn.ensemble import RandomForestClassifier
from torch import nn

from inscape.errors import InscapeError
from inscape.models.loading import load
from inscape.training import load_data

N_MUTATIONS = 50
FEW = {"xgboost.ubj": 5, "lightgbm.txt": 5}
"""Mutations of files each of which is tried in a process of its own."""
X = np.random.default_rng(0).normal(size=(12, 3))
Y = (X[:, 0] > 0).astype(int)


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()


def write_npz(path):
    np.savez(path, x=X, y=Y)


def write_npz_compressed(path):
    np.savez_compressed(path, x=X, y=Y)


def write_npy(path):
    np.save(path, X)


def write_csv(path):
    lines = [f"{a:.3f},{b:.3f},{c:.3f},{k}" for (a, b, c), k in zip(X, Y, strict=True)]
    path.write_text("\n".join(["a,b,c,label", *lines]))


def write_onnx(path):
    w = numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(3, 2), "w")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], [w])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write_safetensors(path):
    save_file(net().state_dict(), path)


def write_skops(path):
    skops.io.dump(RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, Y), path)


def write_pt2(path):
    torch.export.save(torch.export.export(net(), (torch.zeros(2, 3),)), path)


def write_xgboost(path):
    xgboost = pytest.importorskip("xgboost")
    xgboost.XGBClassifier(n_estimators=3, max_depth=2).fit(X, Y).save_model(path)


def write_lightgbm(path):
    lightgbm = pytest.importorskip("lightgbm")
    settings = {"n_estimators": 3, "num_leaves": 4, "min_child_samples": 1, "verbose": -1}
    lightgbm.LGBMClassifier(**settings).fit(X, Y).booster_.save_model(path)


def write_catboost(path):
    catboost = pytest.importorskip("catboost")
    settings = {"iterations": 3, "depth": 2, "verbose": 0, "allow_writing_files": False}
    model = catboost.CatBoostClassifier(**settings).fit(X, Y)
    model.save_model(str(path), format=path.suffix[1:])


def read_data(path):
    load_data(path)


def read_model(path):
    model = load(path)
    model.labels(X)
    assert model.structure


def read_weights(path):
    load("test_damaged_files:net", weights=path).labels(X)


FORMATS = {
    "a.npz": (write_npz, read_data),
    "compressed.npz": (write_npz_compressed, read_data),
    "a.npy": (write_npy, read_data),
    "a.csv": (write_csv, read_data),
    "a.onnx": (write_onnx, read_model),
    "a.safetensors": (write_safetensors, read_weights),
    "a.skops": (write_skops, read_model),
    "a.pt2": (write_pt2, read_model),
    "xgboost.json": (write_xgboost, read_model),
    "xgboost.ubj": (write_xgboost, read_model),
    "lightgbm.txt": (write_lightgbm, read_model),
    "catboost.json": (write_catboost, read_model),
    "catboost.cbm": (write_catboost, read_model),
}


def damaged(content, rng):
    """The bytes with a few flipped, a stretch cut out, zeroed, repeated or shuffled, or the end missing."""
    data = bytearray(content)
    i, j = sorted(rng.integers(len(data), size=2))
    j = min(j, i + 40)
    kind = rng.integers(6)
    if kind == 0:
        for k in rng.integers(len(data), size=rng.integers(1, 6)):
            data[k] ^= 1 << rng.integers(8)
    elif kind == 1:
        del data[i:j]
    elif kind == 2:
        data[i:j] = bytes(j - i)
    elif kind == 3:
        data[i:i] = data[i:j]
    elif kind == 4:
        data[i:j] = rng.permutation(np.array(list(data[i:j]), np.uint8)).tobytes()
    else:
        del data[i:]
    return bytes(data)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FORMATS)
def test_damage_is_told_in_one_line(tmp_path, name):
    write, read = FORMATS[name]
    path = tmp_path / name
    write(path)
    content = path.read_bytes()
    read(path)
    rng = np.random.default_rng(1)
    told, n = 0, FEW.get(name, N_MUTATIONS)
    for i in range(n):
        mutated = damaged(content, rng)
        path.write_bytes(mutated)
        try:
            read(path)
        except InscapeError:
            told += 1
        except Exception as error:
            raise AssertionError(f"mutation {i} of {name} raised {error!r}") from error
    assert told >= n // 5
