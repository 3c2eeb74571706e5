"""The graph of a torch module evaluates like the module, or says which operation it does not hold."""

import copy
import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import zoo
from networks import Between
from torch import nn

from inscape import wrap
from inscape.errors import PartitionError
from inscape.models.from_torch import trace


def relative_error(a, b):
    return float((a - b).abs().max() / b.abs().max())


@pytest.mark.parametrize("name", zoo.MAKERS)
def test_the_graph_evaluates_like_the_module(name):
    net, shape = zoo.make(name), zoo.shape_of(name)
    graph = wrap(net, input_shape=shape).graph(shape)
    double = copy.deepcopy(net).double()
    for n in (1, 4):
        x = torch.randn(n, *shape, generator=torch.Generator().manual_seed(n))
        with torch.no_grad():
            assert relative_error(graph.evaluate(x), net(x)) < 1e-5
            assert relative_error(graph.evaluate(x.double()), double(x.double())) < 1e-10


@pytest.mark.parametrize("name", ["resnet18", "vgg", "mobilenet_v2"])
def test_batch_norm_is_folded_away(name):
    graph = wrap(zoo.make(name)).graph(zoo.shape_of(name))
    assert not any(node.op is not None and node.op.name == "batch_norm" for node in graph.nodes)


FUNCTIONS = {
    "relu": F.relu,
    "in-place relu": lambda x: F.relu_(x + 0),
    "leaky relu": lambda x: F.leaky_relu(x, 0.2),
    "prelu": nn.PReLU(4, init=0.3),
    "relu6": lambda x: F.relu6(4 * x),
    "hardtanh": F.hardtanh,
    "clamp": lambda x: x.clamp(-0.3, 0.4),
    "clamp below": lambda x: x.clamp(min=0.1),
    "clamp above": lambda x: x.clamp_max(0.1),
    "clamp by tensors": lambda x: x.clamp(torch.tensor([-0.1, 0.0, 0.1, -1.0]), torch.ones(4)),
    "abs": torch.abs,
    "maximum": lambda x: torch.maximum(x, 1 - 2 * x),
    "minimum": lambda x: torch.minimum(x, 0.5 * x),
    "maximum with a constant": lambda x: torch.maximum(torch.tensor([0.1, 0.2, 0.3, 0.4]), x),
    "torch.max of two": lambda x: torch.max(x, -x),
    "max over an axis": lambda x: x - x.max(dim=1, keepdim=True).values,
    "amin": lambda x: x.amin(1, keepdim=True) + x,
    "hard-sigmoid": lambda x: F.hardsigmoid(5 * x),
    "softshrink": lambda x: F.softshrink(x, 0.2),
    "threshold at its value": lambda x: F.threshold(x, 0.1, 0.1),
    "rrelu in eval mode": lambda x: F.rrelu(x, training=False),
    "constants": lambda x: 2 - (3 * x - torch.arange(4.0)) / torch.tensor([1.0, 2.0, 4.0, 8.0]),
    "negation": lambda x: -x,
    "addition in place": lambda x: x.add_(1).mul_(2),
    "sub with alpha": lambda x: torch.sub(x, x.flip(1), alpha=0.5),
    "concat and slice": lambda x: torch.cat([x[:, 2:], x[:, :2]], dim=1),
    "concat with a constant": lambda x: torch.cat([x[:, :2], torch.zeros_like(x[:, :2])], dim=1),
    "split": lambda x: torch.stack((*x.split([1, 3], dim=1)[1].unbind(1), x[:, 0]), dim=1),
    "channel shuffle": lambda x: x.view(len(x), 2, 2).transpose(1, 2).reshape(len(x), -1),
    "linear on three axes": lambda x: F.relu(F.linear(x.view(-1, 2, 2), torch.eye(2) + 1)).flatten(1),
    "matrix product": lambda x: x @ torch.arange(16.0).view(4, 4),
    "squeeze": lambda x: x[:, None].squeeze(),
    "pad and pool": lambda x: F.avg_pool1d(F.pad(x[:, None], (1, 1)), 3, 1).squeeze(1),
    "max-pool in one dimension": lambda x: F.max_pool1d(x[:, None], 3, 1, 1).flatten(1),
    "adaptive pooling": lambda x: F.adaptive_avg_pool1d(x[:, None], 2).expand(-1, 2, -1).flatten(1),
    "adaptive max-pooling": lambda x: F.adaptive_max_pool1d(x[:, None], 2).repeat(1, 2, 1).flatten(1),
    "integer index": lambda x: x[:, [3, 2, 0, 1]],
    "dropout": nn.Dropout(),
    "batch-norm": nn.BatchNorm1d(4),
    "weight norm": nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_operation_is_carried(name):
    net = Between(FUNCTIONS[name]).eval()
    found = trace(net, (4,))
    assert found.graph is not None, found.foreign
    x = torch.randn(50, 4)
    with torch.no_grad():
        assert relative_error(found.graph.evaluate(x), net(x)) < 1e-5
        assert relative_error(found.graph.evaluate(x[:1]), net(x[:1])) < 1e-5


FOREIGN = {
    "inner softmax": (nn.Softmax(dim=1), "is not piecewise affine because of Softmax in function"),
    "inner sigmoid": (lambda x: x * x.sigmoid(), "sigmoid in the model itself"),
    "product": (lambda x: x * x.flip(1), "a product of two values that depend on the input"),
    "branch on data": (lambda x: x if x.sum() > 0 else -x, "not supported yet: a branch on the data"),
    "batch statistics": (
        lambda x: x - x.mean(0),
        "mean over the batch axis.*, where the points of a batch meet",
    ),
    "all axes": (lambda x: x - x.mean(), "mean over the batch axis"),
    "rolled points": (lambda x: x.roll(1, dims=0), "roll over the batch axis"),
    "products of points": (lambda x: (x @ x.t()) @ x, "a matrix product of two values"),
    "sums of points": (lambda x: torch.ones(3, 3) @ x, "a matrix product over the batch axis"),
    "rows mixed": (lambda x: x.t().reshape(-1, 4), "a reshape that mixes the batch axis with others"),
    "outside torch": (lambda x: torch.from_numpy(2 * x.detach().numpy()), "torch does not compute"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_operation_is_named(name):
    function, message = FOREIGN[name]
    model = wrap(Between(function))
    assert model.structure == "black-box"
    with pytest.raises(PartitionError, match=message) as error:
        model.graph((4,))
    assert 'method="grid"' in str(error.value)


def test_a_foreign_operation_that_the_output_does_not_need_is_no_obstacle():
    def forward(x):
        F.gelu(x)
        return F.relu(x)

    assert wrap(Between(forward)).structure == "piecewise-affine"


@pytest.mark.parametrize(
    ("head", "function"),
    [
        ("softmax", nn.Softmax(dim=1)),
        ("log_softmax", nn.LogSoftmax(dim=-1)),
        ("sigmoid", nn.Sigmoid()),
        ("softmax", nn.Sequential(nn.Softmax(dim=1), nn.Flatten())),
        ("tanh", nn.Tanh()),
        ("softplus", nn.Softplus()),
        ("elu", nn.ELU()),
        ("log_sigmoid", nn.LogSigmoid()),
    ],
)
def test_a_final_head_is_set_aside(head, function):
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), function)
    graph = wrap(net).graph((4,))
    assert graph.head == head
    x = torch.randn(9, 4)
    assert torch.allclose(graph.evaluate(x), net[:3](x))


def test_a_softmax_over_the_rows_is_no_head():
    net = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=0))
    with pytest.raises(PartitionError, match="Softmax over another axis than the last in 1"):
        wrap(net).graph((4,))


@pytest.mark.parametrize(
    ("n", "ending", "message"),
    [
        (1, [nn.Softmax(dim=1)], "Softmax of one score, which is constant in 1"),
        (1, [nn.LogSoftmax(dim=1)], "LogSoftmax of one score, which is constant in 1"),
        (3, [nn.Unflatten(1, (3, 1)), nn.Softmax(dim=-1), nn.Flatten()], "Softmax over a part of the scores"),
        (6, [nn.Unflatten(1, (2, 3)), nn.Softmax(dim=-1), nn.Flatten()], "Softmax over a part of the scores"),
    ],
)
def test_a_softmax_that_may_change_the_label_is_no_head(n, ending, message):
    model = wrap(nn.Sequential(nn.Linear(4, n), *ending), input_shape=(4,))
    assert model.structure == "black-box"
    with pytest.raises(PartitionError, match=message):
        model.graph((4,))


def test_the_module_is_left_as_it_was():
    net = zoo.make("resnet18")
    net.train()
    net[1].eval()
    modes = [m.training for m in net.modules()]
    state = {k: v.clone() for k, v in net.state_dict().items()}
    calls = []
    net[0].register_forward_hook(lambda *_: calls.append(1))
    seeds = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    assert wrap(net, input_shape=(3, 16, 16)).structure == "piecewise-affine"
    assert [m.training for m in net.modules()] == modes
    assert all(torch.equal(v, state[k]) for k, v in net.state_dict().items())
    assert all(p.requires_grad and p.grad is None for p in net.parameters())
    assert torch.equal(torch.get_rng_state(), seeds[0])
    assert (np.random.get_state()[1] == seeds[1]).all()  # noqa: NPY002
    assert random.getstate() == seeds[2]
    assert len(net[0]._forward_hooks) == 1


def test_the_graph_follows_the_weights():
    net = Between(F.relu)
    model = wrap(net)
    x = torch.randn(5, 4)
    before = model.graph((4,))
    assert model.graph((4,)) is before
    old = before.evaluate(x)
    net.first.weight.data[0, 0] += 1  # moves no version counter
    assert torch.allclose(model.graph((4,)).evaluate(x), net(x), atol=1e-6)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(x).sum().backward()
    optimizer.step()
    assert torch.allclose(model.graph((4,)).evaluate(x), net(x), atol=1e-6)
    net.last = nn.Linear(4, 3)
    assert torch.allclose(model.graph((4,)).evaluate(x), net(x), atol=1e-6)
    assert torch.equal(before.evaluate(x), old)


def test_structure_without_an_input_shape():
    assert wrap(zoo.make("cnn")).structure == "piecewise-affine"
    assert wrap(lambda x: x).structure == "black-box"


def test_a_model_that_is_no_network_has_no_graph():
    with pytest.raises(PartitionError, match="is a black-box model, not a piecewise-affine network"):
        wrap(lambda x: x).graph((2,))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_weights_of_any_precision_are_read(dtype):
    net = zoo.make("mlp").to(dtype)
    graph = wrap(net).graph((12,))
    x = torch.randn(5, 12)
    with torch.no_grad():
        assert torch.allclose(graph.evaluate(x), net.float()(x), atol=1e-5)


def test_reading_a_convolution_compiles_nothing(monkeypatch):
    """A few points are left to torch: a loop would be compiled for them, or loaded, whatever is counted."""
    from inscape.models.graph import affine

    convolve, called = affine.convolve, []
    monkeypatch.setattr(affine, "convolve", lambda *given: called.append(given) or convolve(*given))
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 32 * 32, 2))
    model = wrap(net.eval(), input_shape=(3, 32, 32))
    assert model.structure == "piecewise-affine"
    assert not called
    graph = model.graph((3, 32, 32)).cast(torch.float64)
    graph.evaluate(torch.zeros(2, 3, 32, 32, dtype=torch.float64))
    assert called  # what is counted exactly is left to the loop
