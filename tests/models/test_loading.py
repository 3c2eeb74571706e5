"""Models from files and factories, and files that are refused."""

import json
import sys
import zipfile

import joblib
import numpy as np
import pytest
import skops.io
import torch
from safetensors.torch import save_file
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier
from torch import nn

import inscape
from inscape.errors import ModelError
from inscape.models.loading import load


@pytest.fixture
def x(rng):
    return rng.normal(size=(30, 3)).astype(np.float32)


@pytest.fixture
def tree(x):
    return DecisionTreeClassifier(random_state=0).fit(x, (x[:, 0] > 0).astype(int))


@pytest.fixture
def factory(tmp_path, monkeypatch):
    """An importable module with factories, as a user has it in the working folder."""
    (tmp_path / "user_models.py").write_text(
        "from torch import nn\n"
        "def net():\n    return nn.Linear(3, 2)\n"
        "def rule():\n    return lambda x: (x[:, 0] > 0).astype(int)\n"
        "def broken():\n    raise OSError('no licence')\n"
        "def leave():\n    raise SystemExit(5)\n"
        "number = 3\n"
    )
    (tmp_path / "broken_module.py").write_text("def net(:\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "user_models", raising=False)
    return "user_models"


class OwnClassifier(ClassifierMixin, BaseEstimator):
    def fit(self, x, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, x):
        return np.zeros(len(x), dtype=int)


def test_skops(tmp_path, tree, x):
    path = tmp_path / "tree.skops"
    skops.io.dump(tree, path)
    assert (inscape.wrap(path).labels(x) == tree.predict(x)).all()


def test_skops_with_unknown_types_is_refused(tmp_path, x):
    path = tmp_path / "own.skops"
    skops.io.dump(OwnClassifier().fit(x, np.arange(30) % 2), path)
    with pytest.raises(ModelError, match=r"not known to be safe \(.*OwnClassifier"):
        load(path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dynamic", [False, True])
def test_pt2_with_fixed_and_free_batch(tmp_path, x, dynamic):
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4)).eval()
    path = tmp_path / "net.pt2"
    shapes = {"dynamic_shapes": ({0: torch.export.Dim("n", min=1)},)} if dynamic else {}
    torch.export.save(torch.export.export(net, (torch.from_numpy(x[:7]),), **shapes), path)
    m = load(path)
    assert m.fixed_batch == (None if dynamic else 7)
    assert m.input_shape == (3,)
    expected = net(torch.from_numpy(x)).detach().numpy()
    assert np.allclose(m.scores(x), expected, atol=1e-6)
    assert inscape.region_count(m, x, n_probes=3, resolution=11, random_state=0).n_evaluations == 33


@pytest.mark.parametrize("kind", ["safetensors", "pt"])
def test_factory_with_weights(tmp_path, factory, x, kind):
    net = nn.Linear(3, 2)
    path = tmp_path / f"weights.{kind}"
    save_file(net.state_dict(), path) if kind == "safetensors" else torch.save(net.state_dict(), path)
    m = load(f"{factory}:net", weights=path)
    assert np.allclose(m.scores(x), net(torch.from_numpy(x)).detach().numpy(), atol=1e-6)


def test_a_factory_leaves_path_and_random_state(factory):
    path, state = list(sys.path), torch.get_rng_state()
    load(f"{factory}:net")
    assert sys.path == path
    assert torch.equal(torch.get_rng_state(), state)


def test_a_skops_file_cannot_call_functions_of_scikit_learn(tmp_path, tree):
    """skops takes constructor names from the file, and some functions in sklearn run what they are given."""
    path = tmp_path / "forged.skops"
    skops.io.dump(tree, path)
    with zipfile.ZipFile(path) as archive:
        schema = json.loads(archive.read("schema.json"))
    marker = tmp_path / "ran"
    schema["content"]["content"]["criterion"] = {
        "__class__": "assert_run_python_script_without_output",
        "__module__": "sklearn.utils._testing",
        "__loader__": "LossNode",
        "content": {},
        "__reduce__": {
            "args": {
                "__class__": "str",
                "__module__": "builtins",
                "__loader__": "JsonNode",
                "content": json.dumps(f"open({str(marker)!r}, 'w')"),
                "is_json": True,
                "__id__": 1,
            }
        },
        "__id__": 2,
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", json.dumps(schema))
    with pytest.raises(ModelError, match=r"not known to be safe|not a readable"):
        load(path)
    assert not marker.exists()


def test_factory_of_a_function(factory, x):
    assert load(f"{factory}:rule").labels(x).tolist() == (x[:, 0] > 0).astype(int).tolist()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module:net", "cannot import 'no_such_module'"),
        ("user_models:nothing", "has no function 'nothing'"),
        ("user_models:number", "has no function 'number'"),
        ("user_models:broken", r"raised OSError\('no licence'\)"),
        ("user_models:leave", r"raised SystemExit\(5\)"),
        ("broken_module:net", "cannot import 'broken_module'.*SyntaxError"),
        ("model.xyz", "cannot tell what kind of model"),
        ("model", "cannot tell what kind of model"),
        ("missing.skops", "cannot be read: No such file"),
        ("missing.onnx", "cannot be read: No such file"),
        ("missing.pt2", "cannot be read: No such file"),
        ("missing.pkl", "cannot be read: No such file"),
    ],
)
def test_names_that_lead_nowhere(factory, name, message):
    with pytest.raises(ModelError, match=message):
        load(name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ending", ["skops", "onnx", "pt2"])
@pytest.mark.parametrize("content", [b"", b"something else entirely", b"PK\x03\x04truncated"])
def test_files_of_another_kind(tmp_path, ending, content):
    path = tmp_path / f"model.{ending}"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="is empty" if not content else "not a readable"):
        load(path)


def test_truncated_skops(tmp_path, tree):
    path = tmp_path / "tree.skops"
    skops.io.dump(tree, path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ModelError, match=r"not a readable .skops"):
        load(path)


def test_weights_that_do_not_fit(tmp_path, factory):
    save_file({"weight": torch.zeros(2, 5), "bias": torch.zeros(2)}, tmp_path / "w.safetensors")
    with pytest.raises(ModelError, match=r"do not fit Linear.*size mismatch"):
        load(f"{factory}:net", weights=tmp_path / "w.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(b"nonsense")
    with pytest.raises(ModelError, match="not a readable file of weights"):
        load(f"{factory}:net", weights=tmp_path / "bad.safetensors")
    with pytest.raises(ModelError, match="factory returned a function"):
        load(f"{factory}:rule", weights=tmp_path / "w.safetensors")
    with pytest.raises(ModelError, match="weights go with"):
        load("model.onnx", weights=tmp_path / "w.safetensors")


@pytest.mark.parametrize("ending", ["pkl", "joblib"])
def test_pickles_need_trust(tmp_path, tree, x, ending):
    path = tmp_path / f"tree.{ending}"
    joblib.dump(tree, path)
    with pytest.raises(ModelError, match=r"can run any code.*--trust-pickle"):
        load(path)
    assert (load(path, trust_pickle=True).labels(x) == tree.predict(x)).all()


def test_a_pickle_is_not_opened_without_trust(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "exploded"), "w"))

    path = tmp_path / "bomb.pkl"
    joblib.dump(Bomb(), path)
    with pytest.raises(ModelError, match="can run any code"):
        load(path)
    assert not (tmp_path / "exploded").exists()


def test_pickled_weights_are_explained(tmp_path):
    path = tmp_path / "state.pt"
    torch.save(nn.Linear(2, 2).state_dict(), path)
    with pytest.raises(ModelError, match="holds weights, not a model"):
        load(path, trust_pickle=True)
    path.write_bytes(b"nonsense")
    with pytest.raises(ModelError, match="cannot be unpickled"):
        load(path, trust_pickle=True)
