"""Networks inside other people's wrappers: skorch, outputs that are no tensors, declared input shapes."""

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from predictions import assert_along
from torch import nn

from inscape import InscapeError, Segment, decision_regions, wrap
from inscape.errors import InscapeWarning

LINE = Segment([-3.0, 2.0, 1.0, -1.0], [2.0, -3.0, 1.5, 2.0])


def perceptron(n_outputs=2, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, n_outputs))


class Shares(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = perceptron()

    def forward(self, x):
        return self.net(x).softmax(-1)


@pytest.fixture(scope="module")
def data():
    x = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    return x, (x[:, 0] * x[:, 1] > 0).astype(np.int64)


def skorch_nets():
    skorch = pytest.importorskip("skorch")
    common = {"max_epochs": 20, "lr": 0.3, "verbose": 0}
    return {
        "scores": skorch.NeuralNetClassifier(perceptron, criterion=nn.CrossEntropyLoss, **common),
        "shares": skorch.NeuralNetClassifier(Shares, **common),
        "binary": skorch.NeuralNetBinaryClassifier(lambda: perceptron(1), threshold=0.3, **common),
    }


@pytest.mark.parametrize("kind", ["scores", "shares", "binary"])
def test_skorch_nets_are_exact_and_predict_as_they_do(data, kind):
    """They were given float64, which their modules refuse."""
    x, y = data
    net = skorch_nets()[kind].fit(x, y.astype(np.float32) if kind == "binary" else y)
    model = wrap(net)
    assert model.structure == "piecewise-affine"
    assert np.array_equal(model.labels(x), net.predict(x))
    for i in range(6):
        found = decision_regions(net, Segment(x[i], x[i + 1]))
        assert found.is_exact
        assert_along(model, found, near=1e-4)


def test_skorch_nets_that_are_fitted_again_are_seen_so(data):
    x, y = data
    net = skorch_nets()["scores"].fit(x, y)
    model = wrap(net)
    assert np.array_equal(model.labels(x), net.predict(x))
    net.fit(x, 1 - y)
    assert np.array_equal(model.labels(x), net.predict(x))


def test_a_pipeline_that_ends_in_skorch_is_counted(data):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = data
    pipe = make_pipeline(StandardScaler(), skorch_nets()["scores"]).fit(x, y)
    assert np.array_equal(wrap(pipe).labels(x), pipe.predict(x))
    assert decision_regions(pipe, Segment(x[0], x[1])).n_regions >= 1


def test_a_skorch_net_without_fit_is_refused():
    with pytest.raises(InscapeError, match="is not fitted: call fit first"):
        wrap(skorch_nets()["scores"])


@dataclass
class ModelOutput(OrderedDict):
    """As Hugging Face has it: a dictionary whose entries are attributes, too."""

    loss: object = None
    logits: object = None

    def __post_init__(self):
        self.update({k: v for k, v in vars(self).items() if v is not None})


class Returning(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.net, self.kind = perceptron(), kind

    def forward(self, x):
        z = self.net(x)
        return {
            "dict": lambda: {"features": x, "logits": z},
            "tuple": lambda: (x, z),
            "hugging": lambda: ModelOutput(logits=z),
            "alone": lambda: (z,),
        }[self.kind]()


@pytest.mark.parametrize(
    ("kind", "output"),
    [
        ("dict", None),
        ("dict", "logits"),
        ("tuple", 1),
        ("hugging", None),
        ("hugging", "logits"),
        ("alone", None),
    ],
)
def test_outputs_that_are_no_tensors_are_read_and_stay_exact(kind, output):
    module = Returning(kind)
    model = wrap(module, output=output)
    assert model.structure == "piecewise-affine"
    found = decision_regions(model, LINE)
    assert found.is_exact
    plain = decision_regions(module.net, LINE, method="exact")
    assert found.labels.tolist() == plain.labels.tolist()
    assert np.allclose(found.boundaries, plain.boundaries)


def test_of_a_tuple_of_several_tensors_one_must_be_chosen():
    with pytest.raises(InscapeError, match="choose the tensor of scores"):
        wrap(Returning("tuple")).labels(np.zeros((1, 4)))


class Declared(nn.Module):
    """A module that says what it takes, as Keras models do, with weights the other way round."""

    input_shape = (None, 4)

    def __init__(self):
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(4, 3))

    def forward(self, x):
        return torch.relu(x) @ self.kernel


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.last = nn.RNN(4, 8, batch_first=True, nonlinearity="relu"), nn.Linear(8, 2)

    def forward(self, x):
        return self.last(self.rnn(x)[0][:, -1])


def convolutional(conv, pool, size):
    return nn.Sequential(conv(1, 2, 3), nn.ReLU(), pool(2), nn.Flatten(), nn.Linear(size, 2))


BEFORE_ANY_CALL = {
    "declared": (Declared(), (4,)),
    "recurrent": (Recurrent(), (4, 4)),
    "images of 9": (convolutional(nn.Conv2d, nn.MaxPool2d, 2 * 9), (1, 8, 8)),
    "sequences of 8": (convolutional(nn.Conv1d, nn.MaxPool1d, 2 * 3), (1, 8)),
    "volumes of 6": (convolutional(nn.Conv3d, nn.MaxPool3d, 2 * 8), (1, 6, 6, 6)),
}


@pytest.mark.parametrize("name", BEFORE_ANY_CALL)
def test_the_structure_is_what_exact_does_before_and_after_a_call(name):
    module, shape = BEFORE_ANY_CALL[name]
    model = wrap(module)
    assert model.structure == "piecewise-affine"
    x = np.random.default_rng(0).normal(size=(2, *shape))
    found = decision_regions(model, Segment(*x))
    assert found.is_exact
    assert model.structure == "piecewise-affine"
    assert_along(model, found, near=1e-4)


def test_a_shape_of_which_there_is_a_graph_is_not_guessed():
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model = wrap(module)
    assert model.known_shape() == (1, 32, 32)
    model.graph((1, 9, 9))
    assert model.known_shape() == (1, 9, 9)
    with torch.no_grad():
        module[0].weight.mul_(2)
    assert model.known_shape() == (1, 32, 32)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_the_structure_of_a_scripted_module_is_known_before_any_call():
    assert wrap(torch.jit.script(perceptron())).structure == "piecewise-affine"


ENDINGS = {"exp": torch.exp, "softplus": F.softplus, "log_sigmoid": F.logsigmoid}


class Ending(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.net, self.function = perceptron(1), function

    def forward(self, x):
        return self.function(self.net(x))


@pytest.mark.parametrize("name", ENDINGS)
def test_one_score_behind_a_function_of_one_sign_has_one_label_and_a_warning_says_so(name):
    with pytest.warns(InscapeWarning, match=f"ends in {name}, whose values are all .* 0"):
        found = decision_regions(Ending(ENDINGS[name]), LINE)
    assert found.labels.tolist() == [0 if name == "log_sigmoid" else 1]


@pytest.mark.parametrize("name", ["tanh", "sigmoid", *ENDINGS])
def test_a_threshold_goes_before_an_increasing_ending(name):
    function = ENDINGS.get(name) or getattr(torch, name)
    module = Ending(function)
    with torch.no_grad():
        middle = float(function(module.net(torch.tensor(LINE.points(np.array([0.5])), dtype=torch.float32))))
    model = wrap(module, threshold=middle)
    found = decision_regions(model, LINE, method="exact")
    assert len(found.boundaries)
    assert np.isclose(found.boundaries, 0.5, atol=1e-5).any()
    assert_along(model, found, near=1e-4)


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(4, 2)

    def forward(self, x, mask):
        return self.last(x * mask)


class Masked(nn.Module):
    """What the message advises."""

    def __init__(self):
        super().__init__()
        self.inner = Two()

    def forward(self, x):
        return self.inner(x, torch.ones(4))


def test_a_module_of_two_arguments_gets_advice_that_works():
    with pytest.raises(InscapeError, match="its forward needs mask too: wrap a small module"):
        decision_regions(Two(), LINE)
    assert decision_regions(Masked(), LINE).is_exact


class Tokens(nn.Module):
    def __init__(self, *, casts):
        super().__init__()
        self.table, self.behind, self.casts = nn.Embedding(10, 3), nn.Linear(12, 2), casts

    def forward(self, x):
        return self.behind(self.table(x.long() if self.casts else x).flatten(1))


def test_whole_numbered_inputs_get_advice_that_works():
    module = Tokens(casts=False)
    with pytest.raises(InscapeError, match=r"Embedding 'table' .* wrap a module of the layers behind it"):
        decision_regions(module, LINE)
    tokens = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
    embedded = module.table(tokens).detach().flatten(1).numpy()
    assert decision_regions(module.behind, Segment(*embedded)).is_exact


def test_tokens_that_are_cast_inside_are_said_to_jump_and_not_to_be_out_of_range():
    with pytest.raises(InscapeError, match=r"a conversion to int64 .* which jumps"):
        decision_regions(Tokens(casts=True), Segment(np.zeros(4), np.full(4, 9.0)), method="exact")


class Residue(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        z = self.last(x)
        return (z + 1e6) - 1e6 - z


def test_scores_that_are_mere_rounding_are_said_to_be_so():
    with pytest.raises(InscapeError, match="which rounding makes of much larger numbers"):
        decision_regions(Residue(), LINE, method="exact")
