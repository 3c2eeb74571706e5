"""Local complexity against closed forms, numerical integration and counted knots."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from networks import cnn, mlp, resnet18, seeded
from noisy import GraphModel, perturbed
from scipy import integrate, stats
from sklearn.tree import DecisionTreeClassifier
from torch import nn

import inscape
from inscape.errors import InscapeError, MeasureError, NotApplicableError
from inscape.measures import LocalComplexity
from inscape.measures.jacobian.forward import unit_layers
from inscape.measures.jacobian.passes import Draws, PassSettings, jacobian_pass
from inscape.measures.jacobian.tallies import ComplexityTally


def silent(done, total):
    pass


def narrow(seed, *sizes, shift=-0.3):
    """A small net whose layers are likely to be dead."""
    net = mlp(*sizes, seed=seed).double()
    with torch.no_grad():
        for layer in net[:-1]:
            if isinstance(layer, nn.Linear):
                layer.bias += shift
    return net


def noisy_copies(net, sigma, n, seed):
    """n copies of the piecewise-affine graph of a net, each with its own noise on all units."""
    graph = inscape.wrap(net).graph((net[0].in_features,)).cast(torch.float64)
    layers, draws = unit_layers(graph), Draws(sigma, n, "bias", seed)
    return [GraphModel(perturbed(graph, layers, draws.biases(k, layers, torch.float64))) for k in range(n)]


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 12), st.floats(0.05, 2.0))
def test_one_hidden_layer_is_a_closed_form(seed, d, h, sigma):
    net = mlp(d, h, 2, seed=seed % 1000).double()
    x = np.random.default_rng(seed).normal(size=(7, d))
    w, b = net[0].weight.detach().numpy(), net[0].bias.detach().numpy()
    expected = (np.linalg.norm(w, axis=1) * stats.norm.pdf(x @ w.T + b, scale=sigma)).sum(axis=1)
    r = inscape.local_complexity(net, x, sigma=sigma, n_noise=3, random_state=0)
    np.testing.assert_allclose(r.density, expected, rtol=1e-12)
    assert r.value == pytest.approx(expected.mean(), rel=1e-12)
    assert r.n_not_good == 0


def two_neurons(w1, w2, beta1, beta2):
    """relu(w2 relu(w1 x - beta1) - beta2), the second worked example of the paper."""
    net = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1), nn.ReLU()).double()
    with torch.no_grad():
        for layer, w, b in ((net[0], w1, beta1), (net[2], w2, beta2)):
            layer.weight.fill_(w)
            layer.bias.fill_(-b)
    return net


EXAMPLE = {"w1": 1.5, "w2": 4.0, "beta1": 0.4, "beta2": 0.8}
SIGMA = 0.5


def density_by_integration(x):
    """f(x) of the definition: unit 1 is seen if b_2 < z_2 = 0 at its kink, unit 2 if unit 1 is open."""
    p = EXAMPLE
    first = p["w1"] * stats.norm.pdf(p["w1"] * x, p["beta1"], SIGMA) * stats.norm.cdf(0, p["beta2"], SIGMA)

    def second(b1):
        z2 = p["w2"] * (p["w1"] * x - b1)
        return (
            p["w1"] * p["w2"] * stats.norm.pdf(z2, p["beta2"], SIGMA) * stats.norm.pdf(b1, p["beta1"], SIGMA)
        )

    return first + integrate.quad(second, p["beta1"] - 12 * SIGMA, p["w1"] * x, limit=200)[0]


@pytest.mark.slow
def test_the_two_neuron_example_by_numerical_integration():
    x = np.array([[-0.2], [0.2], [0.5], [1.0]])
    runs = np.array(
        [
            inscape.local_complexity(
                two_neurons(**EXAMPLE), x, sigma=SIGMA, n_noise=150, random_state=s
            ).density
            for s in range(10)
        ]
    )
    expected = [density_by_integration(v) for v in x[:, 0]]
    error = runs.std(axis=0, ddof=1) / math.sqrt(10)
    assert (np.abs(runs.mean(axis=0) - expected) < 5 * error).all()


@pytest.mark.slow
def test_with_the_indicator_at_an_independent_bias_theorem_2_would_miss_the_knots():
    """Every noisy copy of the example has one visible knot here; eq. 6 with independent b_1 says 1.38."""
    a, b, n = -1.0, 2.0, 200
    found = [
        inscape.linear_regions(m, inscape.Segment([a], [b])).n_linear - 1
        for m in noisy_copies(two_neurons(**EXAMPLE), SIGMA, n, seed=2)
    ]
    assert set(found) == {1}
    assert integrate.quad(density_by_integration, a, b)[0] == pytest.approx(1, abs=1e-3)
    rng, p, x = np.random.default_rng(0), EXAMPLE, np.linspace(a, b, 601)
    b1, b2 = (rng.normal(p[k], SIGMA, size=(5000, 1)) for k in ("beta1", "beta2"))
    is_good = (p["w2"] * np.maximum(p["w1"] * x - b1, 0) > b2).mean(axis=0)
    weight = p["w1"] * stats.norm.pdf(p["w1"] * x, p["beta1"], SIGMA)
    excess = integrate.trapezoid(weight * (is_good - stats.norm.cdf(0, p["beta2"], SIGMA)), x)
    assert excess == pytest.approx(0.38, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_in_one_dimension_it_is_the_mean_number_of_knots(seed):
    net, sigma, (a, b) = narrow(seed, 1, 4, 3, 3, 1), 0.4, (-2.0, 2.0)
    x = a + (b - a) * (np.arange(400) + 0.5) / 400
    r = inscape.local_complexity(net, x[:, None], sigma=sigma, n_noise=300, random_state=0)
    segment = inscape.Segment([a], [b])
    found = [inscape.linear_regions(m, segment) for m in noisy_copies(net, sigma, 400, seed=9)]
    visible, all_ = (np.array([getattr(q, k) - 1 for q in found]) for k in ("n_linear", "n_regions"))
    noise = np.hypot(r.std_error * (b - a), visible.std() / math.sqrt(len(visible)))
    assert abs(r.value * (b - a) - visible.mean()) < 4 * noise
    assert r.n_not_good > 0.5  # dead layers are likely: "good" matters
    assert all_.mean() - visible.mean() > 8 * noise


@pytest.mark.slow
def test_in_two_dimensions_it_is_the_mean_length_of_boundary():
    """By Crofton's formula: length = pi R E(crossings of a random line), R the radius around the patch."""
    net, sigma, n, rng = narrow(1, 2, 4, 3, 3, 1), 0.4, 250, np.random.default_rng(3)
    x = rng.uniform(-1, 1, size=(2000, 2))
    r = inscape.local_complexity(net, x, sigma=sigma, n_noise=60, random_state=0)
    lengths = []
    for model in noisy_copies(net, sigma, n, seed=5):
        chords = [c for c in (random_chord(rng) for _ in range(12)) if c is not None]
        crossings = sum(q.n_linear - 1 for q in inscape.linear_regions(model, chords)) if chords else 0
        lengths.append(math.pi * math.sqrt(2) * crossings / 12)
    mean, error = np.mean(lengths), np.std(lengths) / math.sqrt(n)
    assert abs(r.value * 4 - mean) < 4 * np.hypot(error, 4 * r.std_error)
    assert r.n_not_good > 0.5


def random_chord(rng):
    """A line of uniform direction and offset cut to the square [-1, 1]^2, or None if it misses it."""
    angle, offset = rng.uniform(0, math.pi), rng.uniform(-math.sqrt(2), math.sqrt(2))
    u, p = (
        np.array([math.cos(angle), math.sin(angle)]),
        offset * np.array([-math.sin(angle), math.cos(angle)]),
    )
    ends = np.sort((np.array([[-1.0], [1.0]]) - p) / u, axis=0)
    low, high = ends[0].max(), ends[1].min()
    return inscape.Segment(p + low * u, p + high * u) if low < high else None


def bottleneck():
    """A residual convolutional network with few units in the middle, so that paths close."""
    with seeded(3):
        return nn.Sequential(
            nn.Conv1d(1, 3, 3, padding=1),
            nn.ReLU(),
            Residual(),
            nn.Flatten(),
            nn.Linear(18, 2),
            nn.ReLU(),
            nn.Linear(2, 2),
        ).double()


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv1d(3, 2, 3, padding=1), nn.Conv1d(2, 3, 1)

    def forward(self, x):
        return torch.relu(x + self.b(torch.relu(self.a(x) - 0.3)) - 0.2)


@pytest.mark.slow
@pytest.mark.parametrize("every_unit", [64, 0])
def test_along_a_line_a_residual_convolution_has_that_many_knots(every_unit, monkeypatch):
    """Gradients projected to a line give the knots on it, whether all units or one are looked up."""
    monkeypatch.setattr("inscape.measures.jacobian.tallies.EVERY_UNIT_UP_TO", every_unit)
    graph = inscape.wrap(bottleneck(), input_shape=(1, 6)).graph((1, 6)).cast(torch.float64)
    layers, sigma = unit_layers(graph), 0.5
    assert [layer.size for layer in layers] == [18, 12, 18, 2]
    rng = np.random.default_rng(0)
    start, way = rng.normal(size=(1, 6)), rng.normal(size=(1, 6))
    length = np.linalg.norm(way)
    t = (np.arange(150) + 0.5) / 150
    x = torch.from_numpy(start + t[:, None, None] * way)
    tally = ComplexityTally(Draws(sigma, 60, "bias", 0), "theorem")
    settings = PassSettings(directions=torch.from_numpy(way / length)[None])
    jacobian_pass(graph, x, [tally], settings, silent)
    by_network = tally.terms.sum(axis=2).mean(axis=0) * length
    draws, segment = Draws(sigma, 250, "bias", 7), inscape.Segment(start, start + way)
    found = [
        inscape.linear_regions(
            GraphModel(perturbed(graph, layers, draws.biases(k, layers, torch.float64))), segment
        )
        for k in range(250)
    ]
    counts = np.array([q.n_linear - 1 for q in found])
    error = np.hypot(counts.std() / math.sqrt(250), by_network.std() / math.sqrt(60))
    assert abs(by_network.mean() - counts.mean()) < 4 * error
    assert np.mean([q.n_regions - 1 for q in found]) - counts.mean() > 5 * error
    assert tally.n_not_good > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cnn", "resnet"])
def test_random_directions_estimate_it_without_bias(name):
    net = {"cnn": lambda: cnn((2, 3, 3)), "resnet": lambda: resnet18(1)}[name]().double()
    x = np.random.default_rng(0).normal(size=(1, 3, 32, 32))
    settings = {"sigma": 0.3, "n_noise": 1, "form": "norms"}
    exact = inscape.local_complexity(net, x, **settings, n_directions=None, random_state=0)
    assert exact.method == "exact gradients"
    estimates = [
        inscape.local_complexity(net, x, **settings, n_directions=8, random_state=s).value for s in range(40)
    ]
    assert abs(np.mean(estimates) - exact.value) < 4 * np.std(estimates) / math.sqrt(40)
    assert np.std(estimates) < 0.2 * exact.value
    assert "8 random directions" in repr(inscape.local_complexity(net, x, **settings, n_directions=8))


def test_by_default_perceptrons_have_exact_gradients_and_images_random_directions():
    net, perceptron = cnn((1, 2, 1), 2), mlp(70, 8, 2)
    x = np.random.default_rng(0).normal(size=(3, 3, 32, 32))
    found = inscape.local_complexity(net, x, sigma=0.3, n_noise=2, random_state=0)
    assert found.method == "8 random directions per noisy network"
    assert found.settings["n_directions"] == 8
    found = inscape.local_complexity(perceptron, x[:, 0, :7, :10].reshape(3, 70), sigma=0.3, n_noise=2)
    assert (found.method, found.settings["n_directions"]) == ("exact gradients", None)


def test_a_large_map_of_a_small_network_looks_at_a_random_unit_in_its_kink(monkeypatch):
    """Of 64 units or fewer every one is, on few points: the same on average."""
    net, patch = mlp(2, 12, 12, 2), inscape.Patch([0.0, 0.0], np.eye(2))
    every = inscape.density_map(net, patch, 30, sigma=0.3, random_state=0)
    monkeypatch.setattr("inscape.measures.jacobian.tallies.EVERY_UNIT_UP_TO_EVALUATIONS", 0)
    one = inscape.density_map(net, patch, 30, sigma=0.3, random_state=0)
    differences = (one.density - every.density).ravel()
    assert abs(differences.mean()) <= 4 * differences.std() / math.sqrt(len(differences))
    assert abs(one.value / every.value - 1) < 0.01


@pytest.mark.slow
def test_standard_errors_cover_data_and_noise():
    net, sigma = mlp(3, 8, 8, 8, 2).double(), 0.3
    rng = np.random.default_rng(0)
    runs = [
        inscape.local_complexity(net, rng.normal(size=(20, 3)), sigma=sigma, n_noise=8, random_state=s)
        for s in range(60)
    ]
    spread, stated = np.std([r.value for r in runs]), np.sqrt(np.mean([r.std_error**2 for r in runs]))
    assert 0.7 < stated / spread < 1.4


def test_single_precision_and_blocks_agree(monkeypatch):
    net, x = mlp(40, 60, 60, 60, 3), np.random.default_rng(0).normal(size=(30, 40))
    a = inscape.local_complexity(net, x, sigma=0.2, n_noise=3, random_state=0)
    b = inscape.local_complexity(net, x, sigma=0.2, n_noise=3, precision="float32", random_state=0)
    assert b.value == pytest.approx(a.value, rel=1e-6)
    monkeypatch.setattr("inscape.measures.jacobian.forward.CACHE_BYTES", 1)
    monkeypatch.setattr("inscape.measures.jacobian.passes.POINTS_AT_ONCE", 7)
    c = inscape.local_complexity(net, x, sigma=0.2, n_noise=3, random_state=0)
    assert c.value == pytest.approx(a.value, rel=1e-13)


def test_layers_density_and_provenance():
    net, x = mlp(5, 7, 6, 2), np.random.default_rng(0).normal(size=(9, 5))
    r = inscape.local_complexity(net, x, sigma=0.2, n_noise=4, random_state=3)
    assert r.per_layer.shape == (2,)
    assert r.per_layer.sum() == pytest.approx(r.value)
    assert r.density.mean() == pytest.approx(r.value)
    assert r.n_units == 13
    assert r.provenance.seed == 3
    again = LocalComplexity.from_dict(json.loads(json.dumps(r.to_dict(), allow_nan=False)))
    np.testing.assert_array_equal(again.density, r.density)
    assert (again.value, again.layers, again.provenance) == (r.value, r.layers, r.provenance)
    assert inscape.local_complexity(net, x, sigma=0.2, n_noise=4, random_state=3).value == r.value
    assert r.plot().get_ylabel() == "density of kinks"


def test_eq_41_is_the_sum_of_gradient_norms():
    net, x = mlp(4, 6, 5, 2).double(), torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    r = inscape.local_complexity(net, x, sigma=1e-9, n_noise=2, form="norms", random_state=0)
    total = 0.0
    for i in range(3):
        for k in (1, 3):
            z = net[:k](x[i : i + 1])[0]
            total += sum(float(torch.autograd.grad(v, x, retain_graph=True)[0].norm()) for v in z)
    assert r.value == pytest.approx(total / 3, rel=1e-12)


def test_the_variant_of_the_published_code():
    """exp(-z^2 / (2 sigma^2)) of z before the bias, without normaliser and indicator."""
    net, x, sigma = mlp(3, 5, 2).double(), np.random.default_rng(0).normal(size=(6, 3)), 0.7
    w = net[0].weight.detach().numpy()
    expected = (np.linalg.norm(w, axis=1) * np.exp(-((x @ w.T) ** 2) / (2 * sigma**2))).sum(axis=1)
    r = inscape.local_complexity(net, x, sigma=sigma, n_noise=2, form="authors")
    np.testing.assert_allclose(r.density, expected, rtol=1e-12)
    with pytest.raises(NotApplicableError, match="units that follow a linear map or convolution"):
        inscape.local_complexity(resnet18(1), np.zeros((1, 3, 32, 32)), sigma=1, n_noise=1, form="authors")


@pytest.mark.slow
def test_noise_on_weights_too():
    """One hidden layer: the density is that of bias noise averaged over perturbed weights."""
    net, sigma, x = mlp(2, 3, 1, seed=4).double(), 0.8, np.array([[0.6, -1.4], [0.6, -1.4]])
    r = inscape.local_complexity(net, x, sigma=sigma, n_noise=1500, noise="bias+weights", random_state=0)
    rng = np.random.default_rng(1)
    w = net[0].weight.detach().numpy() + sigma * rng.standard_normal((20000, 3, 2))
    u = w @ x[0] + net[0].bias.detach().numpy()
    samples = (np.linalg.norm(w, axis=2) * stats.norm.pdf(u, scale=sigma)).sum(axis=1)
    error = np.hypot(r.std_error, samples.std() / math.sqrt(20000))
    assert abs(r.value - samples.mean()) < 4 * error
    plain = inscape.local_complexity(net, x, sigma=sigma, n_noise=2, random_state=0)
    assert abs(plain.value - samples.mean()) > 6 * error


def test_clips_have_two_kinks_and_leaky_units_are_always_open():
    net = nn.Sequential(nn.Linear(1, 1), nn.Hardtanh(-1.0, 2.0), nn.Linear(1, 1)).double()
    with torch.no_grad():
        net[0].weight.fill_(2.0)
        net[0].bias.fill_(0.5)
    r = inscape.local_complexity(net, [[0.2], [0.2]], sigma=0.6, n_noise=2)
    assert r.value == pytest.approx(
        2 * (stats.norm.pdf(0.9 - 2, scale=0.6) + stats.norm.pdf(0.9 + 1, scale=0.6))
    )
    leaky = nn.Sequential(
        nn.Linear(2, 3), nn.LeakyReLU(0.1), nn.Linear(3, 3), nn.LeakyReLU(0.1), nn.Linear(3, 1)
    )
    assert inscape.local_complexity(leaky, np.ones((2, 2)), sigma=1, n_noise=9).n_not_good == 0


def test_density_map_of_one_neuron():
    net = mlp(2, 1, 1, seed=2).double()
    patch = inscape.Patch([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], marks=[[0.0, 0.0]])
    m = inscape.density_map(net, patch, 5, sigma=0.3, n_noise=2, random_state=0)
    w, b = net[0].weight.detach().numpy()[0], net[0].bias.detach().numpy()[0]
    s, t = np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 5), indexing="ij")
    expected = np.linalg.norm(w) * stats.norm.pdf(s * w[0] + t * w[1] + b, scale=0.3)
    np.testing.assert_allclose(m.density, expected, rtol=1e-12)
    on_patch = inscape.density_map(net, patch, 5, sigma=0.3, n_noise=2, within="patch", random_state=0)
    np.testing.assert_allclose(on_patch.density, expected, rtol=1e-12)
    assert m.plot().get_title() == "density of kinks, sigma = 0.3"


def test_on_a_patch_of_a_larger_space_gradients_are_projected():
    net = mlp(5, 4, 1, seed=2).double()
    rng = np.random.default_rng(0)
    axes = rng.normal(size=(2, 5))
    patch = inscape.Patch(rng.normal(size=5), axes)
    m = inscape.density_map(net, patch, 3, sigma=0.8, n_noise=1, within="patch")
    q = np.linalg.qr(axes.T)[0]
    w, b = net[0].weight.detach().numpy(), net[0].bias.detach().numpy()
    u = patch.points([[0.0, 0.0]]) @ w.T + b
    assert m.density[1, 1] == pytest.approx(
        (np.linalg.norm(w @ q, axis=1) * stats.norm.pdf(u, scale=0.8)).sum()
    )


def test_a_network_without_units_and_max_pooling_are_reported():
    r = inscape.local_complexity(nn.Linear(3, 2), np.ones((2, 3)), sigma=1.0, n_noise=2)
    assert r.value == 0
    assert "no units" in r.status
    pooled = nn.Sequential(nn.Conv1d(1, 2, 3), nn.ReLU(), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(4, 2))
    wrapped = inscape.wrap(pooled, input_shape=(1, 6))
    assert (
        "1 max-pooling" in inscape.local_complexity(wrapped, np.ones((2, 1, 6)), sigma=1.0, n_noise=2).status
    )


def test_the_module_is_left_as_it_was():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(), nn.Linear(4, 2)).train()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    state = torch.get_rng_state()
    inscape.local_complexity(net, np.ones((4, 3)), sigma=0.1, n_noise=2)
    assert all(m.training for m in net.modules())
    assert all(torch.equal(before[k], v) for k, v in net.state_dict().items())
    assert torch.equal(state, torch.get_rng_state())


def test_bad_requests():
    net, x = mlp(2, 3, 1), np.ones((2, 2))
    with pytest.raises(InscapeError, match=r"sigma=0 must be a positive number"):
        inscape.local_complexity(net, x, sigma=0)
    with pytest.raises(InscapeError, match=r"unknown noise 'biass'.*did you mean 'bias'"):
        inscape.local_complexity(net, x, sigma=1, noise="biass")
    with pytest.raises(MeasureError, match=r"unknown form 'author'.*did you mean 'authors'"):
        inscape.local_complexity(net, x, sigma=1, form="author")
    with pytest.raises(MeasureError, match="exclude each other"):
        inscape.local_complexity(net, x, sigma=1, estimator="authors", with_density=False)
    with pytest.raises(MeasureError, match="n_noise=0 is too small"):
        inscape.local_complexity(net, x, sigma=1, n_noise=0)
    with pytest.raises(MeasureError, match="unknown precision 'half'"):
        inscape.local_complexity(net, x, sigma=1, precision="half")
    gelu = nn.Sequential(nn.Linear(2, 3), nn.GELU(), nn.Linear(3, 2))
    with pytest.raises(NotApplicableError, match=r"affine and piecewise-linear layers.*GELU"):
        inscape.local_complexity(gelu, x, sigma=1)
    tree = DecisionTreeClassifier().fit([[0.0, 0.0], [1.0, 1.0]], [0, 1])
    with pytest.raises(NotApplicableError, match="made of trees"):
        inscape.local_complexity(tree, x, sigma=1)
    with pytest.raises(MeasureError, match="not a local_complexity"):
        LocalComplexity.from_dict({"schema": 1})


def test_without_the_indicator_it_is_equation_40():
    """A unit without outgoing weights counts; elsewhere eq. 40 and the theorem agree."""
    net = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[3.0], [2.0]]))
        net[0].bias.zero_()
        net[2].weight.copy_(torch.tensor([[1.0, 0.0]]))
    density = 1 / (2 * np.pi) ** 0.5
    found = {
        form: inscape.local_complexity(net, [[0.0]], sigma=1.0, n_noise=2, form=form, random_state=0).value
        for form in ("theorem", "density", "norms")
    }
    assert found == pytest.approx({"theorem": 3 * density, "density": 5 * density, "norms": 5.0})
