"""A .pt2 file from a stranger runs no code: each door that torch.export.load leaves open, with a marker."""

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
import torch
from torch import nn

import inscape
from inscape import files
from inscape.errors import ModelError
from inscape.models.loading import load

pytestmark = pytest.mark.filterwarnings("ignore")


class Marker:
    """What a pickle can do: here, make a folder."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 4)).eval()


@pytest.fixture(scope="module")
def content(net):
    """The bytes of an ordinary .pt2 file with a free batch axis."""
    shapes = ({0: torch.export.Dim("n", min=1)},)
    buffer = io.BytesIO()
    torch.export.save(torch.export.export(net, (torch.zeros(7, 3),), dynamic_shapes=shapes), buffer)
    return buffer.getvalue()


def changed(content, path, change):
    """The file with `change(members)` done to its members, a dict from names without the root folder."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        root = archive.namelist()[0].partition("/")[0]
        members = {n.partition("/")[2]: archive.read(n) for n in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"{root}/{name}", data)
    return path


def saved(value):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def edit(members, name, change):
    tree = json.loads(members[name])
    change(tree)
    members[name] = json.dumps(tree).encode()


MODEL, SAMPLES = "models/model.json", "data/sample_inputs/model.pt"
WEIGHTS, CONSTANTS = "data/weights/model_weights_config.json", "data/constants/model_constants_config.json"


def evil_sample(members, marker):
    members[SAMPLES] = saved(Marker(marker))


def evil_weight(members, marker):
    edit(members, WEIGHTS, lambda t: t["config"]["0.weight"].update(use_pickle=True))
    members["data/weights/weight_0"] = saved(Marker(marker))


def evil_legacy_weights(members, marker):
    members["data/weights/model.pt"] = saved(Marker(marker))


def evil_opaque_constant(members, marker):
    entry = {"path_name": "opaque_obj_0", "is_param": False, "use_pickle": True, "tensor_meta": None}
    edit(members, CONSTANTS, lambda t: t["config"].update(c=entry))
    members["data/constants/opaque_obj_0"] = pickle.dumps(Marker(marker))


def evil_symbol(members, marker):
    """Sympy evaluates the text of a size as Python."""
    size = {"expr_str": f"open({str(marker)!r}, 'w').close()", "hint": {"as_int": 7}}
    values = ("graph_module", "graph", "tensor_values", "input")

    def change(tree):
        for key in values:
            tree = tree[key]
        tree["sizes"][0] = {"as_expr": size}

    edit(members, MODEL, change)


def evil_guard(members, marker):
    """Guards are compiled as Python."""
    guard = f"open({str(marker)!r}, 'w').close() is None"
    edit(members, MODEL, lambda t: t.update(guards_code=[guard]))


def evil_name(members, marker):
    """The name of an input is written into a Python function, where a default value is evaluated."""
    name = f"input=open({str(marker)!r},'w').close()"
    text = members[MODEL].decode().replace('"input"', json.dumps(name))
    members[MODEL] = text.encode()


def evil_target(members, marker):
    """A node's target is looked up from `torch`, through which all of Python can be reached."""
    node = {
        "target": "torch.serialization.os.mkdir",
        "inputs": [{"name": "path", "arg": {"as_string": str(marker)}, "kind": 1}],
        "outputs": [],
        "metadata": {},
        "is_hop_single_tensor_return": None,
    }
    edit(members, MODEL, lambda t: t["graph_module"]["graph"]["nodes"].insert(0, node))


def evil_tree(members, marker):
    """The structure of the input may name a module to import."""
    (marker.parent / "module_of_tree.py").write_text(f"open({str(marker)!r}, 'w').close()")
    context = {
        "default_factory_module": "module_of_tree",
        "default_factory_name": "x",
        "dict_context": [],
    }
    spec = [1, {"type": "collections.defaultdict", "context": json.dumps(context), "children_spec": []}]
    edit(
        members,
        MODEL,
        lambda t: t["graph_module"]["module_call_graph"][0]["signature"].update(in_spec=json.dumps(spec)),
    )


EVIL = [
    evil_sample,
    evil_weight,
    evil_legacy_weights,
    evil_opaque_constant,
    evil_symbol,
    evil_name,
    evil_target,
    evil_tree,
]


@pytest.mark.parametrize("change", EVIL, ids=lambda f: f.__name__)
def test_a_forged_file_runs_nothing(tmp_path, monkeypatch, content, change):
    monkeypatch.syspath_prepend(tmp_path)
    marker = tmp_path / "ran"
    path = changed(content, tmp_path / "evil.pt2", lambda members: change(members, marker))
    with pytest.raises(ModelError, match=r"evil\.pt2.*--trust-pickle") as raised:
        load(path).labels(np.zeros((2, 3)))
    assert not marker.exists()
    assert len(str(raised.value).splitlines()) == 1


def test_guards_are_left_out(tmp_path, content):
    marker = tmp_path / "ran"
    path = changed(content, tmp_path / "evil.pt2", lambda members: evil_guard(members, marker))
    assert load(path).labels(np.zeros((2, 3))).shape == (2,)
    assert not marker.exists()


def test_compiled_programs_are_left_out(tmp_path, content):
    """A library of machine code under data/aotinductor would be loaded into the process."""
    path = changed(content, tmp_path / "m.pt2", lambda m: m.update({"data/aotinductor/m/m.so": b"\x7fELF"}))
    assert load(path).labels(np.zeros((2, 3))).shape == (2,)


@pytest.mark.parametrize("trust_pickle", [False, True])
def test_an_ordinary_file_is_exact(tmp_path, rng, net, content, trust_pickle):
    path = tmp_path / "m.pt2"
    path.write_bytes(content)
    x = rng.normal(size=(20, 3))
    with torch.no_grad():
        expected = net(torch.from_numpy(x).float()).numpy()
    m = load(path, trust_pickle=trust_pickle)
    assert np.array_equal(m.scores(x), expected)
    found = inscape.region_count(m, x, n_probes=5, random_state=0)
    assert found.is_exact
    assert found.counts.tolist() == inscape.region_count(net, x, n_probes=5, random_state=0).counts.tolist()


def test_trust_reads_what_is_refused_without(tmp_path, content):
    marker = tmp_path / "ran"
    path = changed(content, tmp_path / "m.pt2", lambda members: evil_sample(members, marker))
    with pytest.raises(ModelError, match="not a readable"):
        load(path, trust_pickle=True)
    assert marker.exists()


@pytest.mark.parametrize("kind", ["convolution", "constant", "computed batch"])
def test_ordinary_files_of_several_kinds(tmp_path, rng, kind):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(12, 3)
            self.scale = torch.tensor([1.0, 2.0, 3.0])

        def forward(self, x):
            return self.inner(x.reshape(x.shape[0], -1)) * self.scale

    nets = {
        "convolution": nn.Sequential(
            nn.Conv2d(1, 2, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 3)
        ),
        "constant": Scaled(),
        "computed batch": nn.Sequential(nn.Flatten(), nn.Unflatten(1, (3, 4)), nn.ReLU(), Scaled()),
    }
    net = nets[kind].eval()
    shapes = ({0: torch.export.Dim("n", min=1, max=64)},)
    path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(net, (torch.zeros(5, 1, 3, 4),), dynamic_shapes=shapes), path)
    x = rng.normal(size=(9, 1, 3, 4))
    with torch.no_grad():
        assert np.array_equal(load(path).scores(x), net(torch.from_numpy(x).float()).numpy())


@pytest.mark.parametrize("evil", [False, True])
def test_files_of_earlier_versions_of_torch(tmp_path, net, rng, evil):
    """There the parts lie at the top, and weights, constants and sample inputs are pickles."""
    from torch._export.serde.serialize import serialize

    parts = serialize(torch.export.export(net, (torch.zeros(7, 3),)))
    names = {
        "serialized_exported_program.json": parts.exported_program,
        "serialized_state_dict.pt": parts.state_dict,
        "serialized_constants.pt": parts.constants,
        "serialized_example_inputs.pt": saved(Marker(tmp_path / "ran")) if evil else parts.example_inputs,
        "version": "8.20",
    }
    path = tmp_path / "old.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in names.items():
            archive.writestr(name, part)
    if evil:
        with pytest.raises(ModelError, match=r"a pickle that holds more than tensors.*--trust-pickle"):
            load(path)
        assert not (tmp_path / "ran").exists()
    else:
        x = rng.normal(size=(9, 3))
        with torch.no_grad():
            expected = net(torch.from_numpy(x).float()).numpy()
        assert np.allclose(load(path).scores(x), expected, atol=1e-6)


def test_an_archive_that_unpacks_to_absurd_sizes_is_refused(tmp_path, monkeypatch, content):
    monkeypatch.setattr(files, "ALWAYS_UNPACKED", 2**16)
    path = tmp_path / "bomb.pt2"
    path.write_bytes(content)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model/data/weights/weight_99", bytes(2**20))
    with pytest.raises(ModelError, match=r"weight_99 in .* unpacks from .* to 1 MiB"):
        load(path)
