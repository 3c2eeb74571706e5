"""Margins, norms and the distance to the start against closed forms."""

import copy
import itertools
import json

import numpy as np
import pytest
import torch
from networks import mlp, resnet18
from sklearn.linear_model import LogisticRegression
from torch import nn

import inscape
from inscape.errors import DataError, MeasureError, NotApplicableError, PictureError
from inscape.measures import Margin, Norm, ParameterDistance


def test_output_margin_is_the_gap_to_the_best_other_class():
    net, x = mlp(3, 8, 4).double(), np.random.default_rng(0).normal(size=(20, 3))
    y = np.random.default_rng(1).integers(4, size=20)
    f = net(torch.from_numpy(x)).detach().numpy()
    expected = [f[i, y[i]] - max(f[i, j] for j in range(4) if j != y[i]) for i in range(20)]
    r = inscape.margin(net, x, y)
    np.testing.assert_allclose(r.margins, expected, rtol=1e-12)
    accuracy = inscape.measure(net, x, y, measures="accuracy")["accuracy"]["value"]
    assert (r.margins > 0).mean() == accuracy
    assert r.value == pytest.approx(np.mean(expected))


def test_one_score_is_binary():
    r = inscape.margin(lambda x: x, [[2.0], [-3.0]], [1, 1])
    assert r.margins.tolist() == [2.0, -3.0]
    assert inscape.margin(lambda x: x, [[2.0], [-3.0]], [0, 0]).margins.tolist() == [-2.0, 3.0]


def test_over_the_gradient_it_is_the_distance_of_a_linear_model():
    net, x = nn.Linear(3, 4).double(), np.random.default_rng(0).normal(size=(10, 3))
    w, b, y = net.weight.detach().numpy(), net.bias.detach().numpy(), np.arange(10) % 4
    r = inscape.margin(net, x, y, normalise="gradient")
    for i in range(10):
        others = [j for j in range(4) if j != y[i]]
        gaps = [((w[y[i]] - w[j]) @ x[i] + b[y[i]] - b[j]) / np.linalg.norm(w[y[i]] - w[j]) for j in others]
        assert r.margins[i] == pytest.approx(min(gaps), rel=1e-10)
    scaled = copy.deepcopy(net)
    with torch.no_grad():
        scaled.weight *= 7
        scaled.bias *= 7
    assert inscape.margin(scaled, x, y, normalise="gradient").value == pytest.approx(r.value)
    assert inscape.margin(scaled, x, y).value == pytest.approx(7 * inscape.margin(net, x, y).value)


def test_over_spectral_norms_scaling_does_not_count():
    net, x, y = mlp(3, 6, 3).double(), np.random.default_rng(0).normal(size=(10, 3)), np.arange(10) % 3
    with torch.no_grad():
        for layer in net:
            if isinstance(layer, nn.Linear):
                layer.bias.zero_()
    before = inscape.margin(net, x, y, normalise="spectral").value
    with torch.no_grad():
        net[0].weight *= 5
        net[2].weight *= 3
    assert inscape.margin(net, x, y, normalise="spectral").value == pytest.approx(before)


def test_classes_with_names():
    x = np.array([[0.0], [1.0], [2.0]])
    model = LogisticRegression().fit(x, ["a", "b", "c"])
    r = inscape.margin(model, x, ["c", "b", "a"])
    scores = model.decision_function(x)
    assert r.margins[0] == pytest.approx(scores[0, 2] - max(scores[0, :2]))
    with pytest.raises(DataError, match="y holds 'd', which is no class of LogisticRegression"):
        inscape.margin(model, x, ["a", "b", "d"])


def test_parameter_distance():
    net = resnet18(1)
    before = copy.deepcopy(net.state_dict())
    assert inscape.parameter_distance(net, before).value == 0
    with torch.no_grad():
        for p in net.parameters():
            p += 0.5
    net[1].running_mean += 9.0  # no parameter
    r = inscape.parameter_distance(net, before)
    assert r.value == pytest.approx(0.5 * np.sqrt(r.n), rel=1e-6)
    norm = np.sqrt(sum(float((before[k].double() ** 2).sum()) for k, _ in net.named_parameters()))
    assert r.relative == pytest.approx(r.value / norm)
    assert np.linalg.norm(r.per_layer) == pytest.approx(r.value)
    assert ParameterDistance.from_dict(json.loads(json.dumps(r.to_dict()))).layers == r.layers
    assert inscape.parameter_distance(net, net).value == 0
    with pytest.raises(MeasureError, match=r"0.weight is missing in initial_state"):
        inscape.parameter_distance(net, {})
    with pytest.raises(MeasureError, match=r"weight has shape \(3, 3\).*expected shape \(2, 3\)"):
        inscape.parameter_distance(nn.Linear(3, 2), nn.Linear(3, 3))
    with pytest.raises(NotApplicableError, match="needs a torch module"):
        inscape.parameter_distance(lambda x: x, {})
    with pytest.raises(MeasureError, match="initial_state is a int"):
        inscape.parameter_distance(net, 3)


def test_spectral_norm_of_a_convolution_is_that_of_its_matrix():
    conv = nn.Conv2d(2, 3, 3, stride=2, padding=1).double()
    matrix = conv(torch.eye(2 * 36, dtype=torch.float64).reshape(-1, 2, 6, 6)) - conv.bias[:, None, None]
    expected = torch.linalg.matrix_norm(matrix.flatten(1), 2).item()
    net = nn.Sequential(conv, nn.ReLU(), nn.Flatten(), nn.Linear(27, 2)).double()
    model = inscape.wrap(net, input_shape=(2, 6, 6))
    r = inscape.spectral_norm(model, np.zeros((1, 2, 6, 6)))
    assert r.per_layer[0] == pytest.approx(expected, rel=1e-8)
    assert r.value == pytest.approx(expected * torch.linalg.matrix_norm(net[3].weight, 2).item(), rel=1e-8)


@pytest.mark.parametrize("p", [1, 2])
def test_path_norm_is_a_sum_over_paths(p):
    net = mlp(3, 4, 2, 3, seed=2).double()
    ws = [layer.weight.detach().numpy() for layer in net if isinstance(layer, nn.Linear)]
    total = sum(
        abs(ws[0][b, a] * ws[1][c, b] * ws[2][d, c]) ** p
        for a, b, c, d in itertools.product(range(3), range(4), range(2), range(3))
    )
    before = inscape.path_norm(net, np.zeros((1, 3)), p=p).value
    assert before == pytest.approx(total ** (1 / p), rel=1e-12)
    with torch.no_grad():
        net[0].weight[1] *= 6
        net[0].bias[1] *= 6
        net[2].weight[:, 1] /= 6
    assert inscape.path_norm(net, np.zeros((1, 3)), p=p).value == pytest.approx(before)


def test_path_norm_of_a_residual_convolution_with_pooling():
    """Against the same sum over the dense matrices of its layers."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Conv1d(1, 2, 3, padding=1), nn.Conv1d(2, 2, 1), nn.Linear(2, 2)

        def forward(self, x):
            h = torch.relu(self.a(x))
            h = h + torch.relu(self.b(h))
            return self.c(h.mean(dim=2))

    net = Net().double()

    def matrix(layer, n, shape):
        eye = torch.eye(n, dtype=torch.float64).reshape(n, *shape)
        out = layer(eye) - layer(torch.zeros_like(eye[:1]))
        return out.flatten(1).T.detach().numpy()

    for p in (1, 2):
        a, b = abs(matrix(net.a, 4, (1, 4))) ** p, abs(matrix(net.b, 8, (2, 4))) ** p
        mean = np.kron(np.eye(2), np.full((1, 4), 0.25**p))
        total = (abs(net.c.weight.detach().numpy()) ** p @ mean @ (np.eye(8) + b) @ a).sum()
        model = inscape.wrap(net, input_shape=(1, 4))
        r = inscape.path_norm(model, np.zeros((1, 1, 4)), p=p)
        assert r.value == pytest.approx(total ** (1 / p), rel=1e-10)


def test_what_p_2_does_not_cover_is_refused():
    net = nn.Sequential(
        nn.Conv1d(1, 2, 3), nn.ReLU(), nn.AvgPool1d(2, stride=1), nn.Flatten(), nn.Linear(6, 2)
    )
    model, x = inscape.wrap(net, input_shape=(1, 6)), np.zeros((1, 1, 6))
    with pytest.raises(NotApplicableError, match=r"p=2 is not known for avg_pool.*use p=1"):
        inscape.path_norm(model, x)
    assert inscape.path_norm(model, x, p=1).value > 0


def test_results_and_bad_requests():
    net, x = mlp(2, 3, 2), np.ones((4, 2))
    r = inscape.margin(net, x, [0, 1, 0, 1])
    assert Margin.from_dict(r.to_dict()).margins.tolist() == r.margins.tolist()
    assert r.plot().get_xlabel() == "margin"
    n = inscape.spectral_norm(net, x)
    assert Norm.from_dict(n.to_dict()).layers == n.layers
    assert n.plot().get_ylabel() == "spectral norm"
    path = inscape.path_norm(net, x)
    assert (repr(n)[:16], repr(path)[:11]) == ("<spectral norm =", "<path norm ")
    with pytest.raises(PictureError, match="one number for all layers"):
        path.plot()
    assert "one number for all layers" in path._repr_html_()
    with pytest.raises(MeasureError, match=r"unknown normalise 'grad'"):
        inscape.margin(net, x, [0, 1, 0, 1], normalise="grad")
    with pytest.raises(MeasureError, match="p=3 is not possible"):
        inscape.path_norm(net, x, p=3)
    with pytest.raises(NotApplicableError, match="margin needs y"):
        inscape.margin(net, x)
