"""A model whose prediction of a point depends on the rest of its batch is found out."""

import numpy as np
import pytest
import torch
from onnx_files import save
from torch import nn

import inscape
from inscape.errors import InscapeWarning, ModelError
from inscape.measures.accuracy import correct

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
WEIGHTS = [RNG.normal(size=(3, 16)), RNG.normal(size=(16, 3))]
SLOWLY = "predicts a point by the rest of its batch.*one by one"


def quantised(h):
    """Eight bits between the extremes of what is given, as dynamic quantisation does with a batch."""
    step = np.abs(h).max() / 127
    return np.round(h / step) * step


def dynamic(x):
    h = x.reshape(len(x), -1)
    for w in WEIGHTS:
        h = np.tanh(quantised(h) @ w)
    return h


def alone(x):
    return np.concatenate([dynamic(p[None]) for p in x])


class Dynamic(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("precision", torch.ones((), dtype=torch.float64))

    def forward(self, x):
        return torch.from_numpy(dynamic(x.numpy()))


def centred(x):
    return (x - x.mean(axis=0)) @ WEIGHTS[0]


def row_by_row(x):
    return np.tanh(x @ WEIGHTS[0]) @ WEIGHTS[1]


@pytest.mark.parametrize("method", ["adaptive", "grid"])
@pytest.mark.parametrize("model", [dynamic, Dynamic()], ids=["function", "module"])
def test_points_are_evaluated_one_by_one_where_the_batch_matters(model, method):
    options = {"n_probes": 4, "method": method, "random_state": 0}
    expected = inscape.region_count(alone, X, **options)
    with pytest.warns(InscapeWarning, match=SLOWLY):
        found = inscape.region_count(model, X, **options)
    assert found.counts.tolist() == expected.counts.tolist()
    assert found.provenance.one_by_one
    assert not expected.provenance.one_by_one
    with pytest.warns(InscapeWarning, match=SLOWLY):
        region = inscape.decision_regions(model, inscape.Segment(X[0], X[1]), method=method)
    assert region.provenance.one_by_one
    assert region.provenance.to_dict()["one_by_one"]


def test_labels_scores_accuracy_and_measures_are_those_of_single_points():
    y = alone(X).argmax(axis=1)
    for wanted in ("labels", "scores"):
        with pytest.warns(InscapeWarning, match=SLOWLY):
            found = getattr(inscape.wrap(dynamic), wanted)(X)
        assert np.array_equal(found, y if wanted == "labels" else alone(X))
    with pytest.warns(InscapeWarning, match=SLOWLY):
        assert correct(inscape.wrap(dynamic), X, y).all()
    with pytest.warns(InscapeWarning, match=SLOWLY):
        assert inscape.measure(dynamic, X, y, measures=["accuracy"])["accuracy"]["value"] == 1


def test_labels_alone_are_compared_too():
    def labels(x):
        return (np.round(x / np.abs(x).max() * 3) @ WEIGHTS[0][:, :4]).argmax(axis=1)

    expected = [int(labels(p[None])[0]) for p in X]
    with pytest.warns(InscapeWarning, match=SLOWLY):
        assert inscape.wrap(labels).labels(X).tolist() == expected


def test_centring_a_batch_is_no_function_of_a_point():
    with pytest.warns(InscapeWarning, match=SLOWLY):
        assert inscape.wrap(centred).labels(X).max() == 0  # alone, a point is its own mean


def test_batch_norm_in_training_mode_inside_a_function_is_refused():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)).train()

    def predict(x):
        with torch.no_grad():
            return net(torch.from_numpy(x).float()).numpy()

    for method in ("adaptive", "grid"):
        with pytest.raises(ModelError, match=r"predict predicts a point by the rest.*put it into eval mode"):
            inscape.region_count(predict, X, method=method)
    net.eval()
    assert inscape.region_count(predict, X, n_probes=50, random_state=0).mean > 1


@pytest.mark.parametrize("method", ["adaptive", "grid"])
def test_a_random_model_is_said_to_be_so_by_every_method(method):
    rng = np.random.default_rng(0)

    def noisy(x):
        return row_by_row(x) + rng.normal(size=(len(x), 3))

    with pytest.warns(InscapeWarning, match="noisy is not deterministic") as caught:
        found = inscape.region_count(noisy, X, n_probes=3, method=method)
    assert found.status.startswith("not deterministic")
    assert not found.provenance.one_by_one
    assert len(caught) == 1


def test_rounding_that_depends_on_the_length_of_a_batch_is_no_dependence():
    def jittered(x):
        return row_by_row(x).astype(np.float32) * np.float32(1 + 1e-5 * len(x) / 1024)

    model = inscape.wrap(jittered)
    model.labels(X)
    assert not model.one_by_one
    ties = inscape.wrap(lambda x: np.tile([1.0, 1 + 1e-15 * (len(x) > 8)], (len(x), 1)))
    ties.labels(X)
    assert not ties.one_by_one
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        torch.manual_seed(0)
        net = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(3, 3), nn.Tanh())]).to(dtype)
        inscape.wrap(net).labels(X)


def test_batches_are_compared_once_at_few_points():
    seen = []

    def counted(x):
        seen.append(len(x))
        return row_by_row(x)

    model = inscape.wrap(counted)
    for _ in range(3):
        model.labels(X)
    model.labels(X[:2])
    assert sorted(seen) == [2, 8, 8, 16, 60, 60, 60]


def test_a_function_that_takes_no_single_point_is_not_blamed():
    def squeezed(x):
        return np.squeeze(row_by_row(x))

    model = inscape.wrap(squeezed)
    assert model.labels(X).tolist() == row_by_row(X).argmax(axis=1).tolist()
    assert model.labels(X[:3]).tolist() == row_by_row(X[:3]).argmax(axis=1).tolist()


def test_names_are_numbered_as_in_the_whole_batch():
    x = np.zeros((200, 1))
    x[1] = 1.0  # which is not among the points that are compared
    model = inscape.wrap(lambda x: np.where(x[:, 0] == 1, "a", "b"))
    model.labels(x)
    assert model.classes == ("a", "b")


@pytest.mark.parametrize("dim", [1, 2])
def test_scores_in_half_precision_are_counted_adaptively(dim, tmp_path):
    rng = np.random.default_rng(3)
    w, v = rng.standard_normal((6, 8)).astype(np.float16), rng.standard_normal((8, 3)).astype(np.float16)
    x = rng.standard_normal((20, 6))
    nodes = [("MatMul", "x w", "h"), ("Relu", "h", "r"), ("MatMul", "r v", "y")]
    path = save(tmp_path / "m.onnx", nodes, (6,), {"w": w, "v": v}, dtype="float16")
    for model in (path, lambda p: np.maximum(p.astype(np.float16) @ w, 0) @ v):
        found = inscape.region_count(model, x, n_probes=10, dim=dim, random_state=0)
        assert found.method == "adaptive"
        grid = inscape.region_count(model, x, n_probes=10, dim=dim, method="grid", random_state=0)
        assert found.mean >= grid.mean > 1  # rounding makes slivers that a grid steps over
        assert "random" not in found.reason
    with pytest.raises(
        inscape.InscapeError, match=r"since its parameters are float16.*convert it to float32"
    ):
        inscape.region_count(path, x, n_probes=4, method="exact", random_state=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_network_of_half_precision_is_not_called_random(dtype, recwarn):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3)).to(dtype)
    model = inscape.wrap(net)
    x = 3 * np.random.default_rng(0).standard_normal((40, 6))
    found = inscape.region_count(model, x, n_probes=10, random_state=0)
    assert (found.method, model.is_random, model.one_by_one) == ("adaptive", False, False)
    assert str(dtype).removeprefix("torch.") in found.reason
    assert not any("deterministic" in str(w.message) or "batch" in str(w.message) for w in recwarn)
