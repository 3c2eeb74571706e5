"""Gradients of all units, by every route, against brute-force differentiation in float64."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from networks import mlp
from torch import nn
from zoo import MAKERS, make, shape_of

import inscape
from inscape.measures.jacobian.forward import PrefixedNetwork, unit_layers
from inscape.measures.jacobian.passes import POINTS_AT_ONCE, Consumer, Draws, PassSettings, jacobian_pass
from inscape.measures.jacobian.reverse import jacobian


class Keep(Consumer):
    """Keeps every block."""

    def __init__(self, draws, *, spectra=False):
        self.draws, self.wants_spectra, self.wants_good, self.blocks = draws, spectra, True, []

    def begin(self, layers, n_points):
        self.layers = layers

    def see(self, block):
        self.blocks.append(block)


def blocks_of(model, x, draws, *, spectra=False, **settings):
    graph = inscape.wrap(model, input_shape=tuple(x.shape[1:])).graph(tuple(x.shape[1:]))
    keep = Keep(draws, spectra=spectra)
    jacobian_pass(graph, x, [keep], PassSettings(**settings), lambda done, total: None)
    return graph.cast(torch.float64), keep.blocks


def brute(graph, x, noise):
    """What every unit reads and the scores at one point, with noise."""
    values, read = {0: x}, []
    units = {layer.node: k for k, layer in enumerate(unit_layers(graph))}
    for i, node in enumerate(graph.nodes[1:], start=1):
        inputs = [values[j] for j in node.inputs]
        if i in units:
            read.append(inputs[0].reshape(1, -1))
            inputs = [inputs[0] - noise[units[i]]] if noise is not None else inputs
        values[i] = node.op(*inputs)
    return read, values[graph.output].reshape(1, -1)


def check(graph, block, x, *, row=0, units=4):
    """Compare one row of a block with differentiation unit by unit."""
    point = x[block.points[row : row + 1]].clone().requires_grad_()
    noise = None if block.perturbation is None else [n[row : row + 1] for n in block.perturbation]
    read, scores = brute(graph, point, noise)
    rng = np.random.default_rng(0)
    for k, values in enumerate(read):
        chosen = rng.choice(values.shape[1], size=min(units, values.shape[1]), replace=False)
        expected = jacobian(values[:, chosen], point)[0].norm(dim=1)
        torch.testing.assert_close(block.norms[k][row, chosen], expected, rtol=1e-10, atol=1e-13)
    full = jacobian(scores, point)[0]
    gram = block.output[row] @ block.output[row].T
    torch.testing.assert_close(gram, full @ full.T, rtol=1e-9, atol=1e-13)
    return read, point


@pytest.mark.parametrize("name", list(MAKERS))
def test_the_zoo(name):
    x = torch.randn(2, *shape_of(name), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    graph, blocks = blocks_of(make(name).double(), x[:1], Draws(0.2, 1, "bias", 3), memory=2**24)
    for block in blocks:
        check(graph, block, x)


@pytest.mark.slow
@given(
    st.lists(st.integers(1, 9), min_size=2, max_size=5),
    st.integers(0, 99),
    st.sampled_from([0, 32]),
    st.sampled_from([2, 5]),
)
def test_perceptrons_of_all_shapes_and_slopes(sizes, seed, few, n_noise):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("inscape.measures.jacobian.forward.CHOOSE_UNITS_ABOVE_COORDINATES", few)
        net = mlp(*sizes, 3, seed=seed).double()
        bends = [nn.ReLU(), nn.LeakyReLU(0.2), nn.Hardtanh(), nn.ReLU6()]
        for i in range(1, len(net), 2):
            net[i] = bends[(seed + i) % len(bends)]
        if seed % 3 == 0:
            net = nn.Sequential(*net, nn.ReLU())
        x = torch.randn(3, sizes[0], generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        for spectra in (False, True):
            graph, blocks = blocks_of(net, x, Draws(0.3, n_noise, "bias", seed), spectra=spectra)
            assert sorted((p, d) for b in blocks for p, d in zip(b.points, b.draws, strict=True)) == [
                (p, d) for p in range(3) for d in range(n_noise)
            ]
            for block in blocks:
                row = seed % len(block.points)
                read, point = check(graph, block, x, row=row)
                if spectra:
                    for found, values in zip(block.spectra, read, strict=True):
                        expected = torch.linalg.svdvals(jacobian(values, point)[0])
                        k = min(found.shape[1], len(expected))
                        torch.testing.assert_close(found[row, :k], expected[:k], rtol=1e-9, atol=1e-12)
                        assert (expected[k:] < 1e-12).all()


def test_a_singular_first_layer_falls_back_from_cholesky():
    net = mlp(80, 40, 40, 2).double()
    with torch.no_grad():
        net[0].weight[20:] = net[0].weight[:20]  # equal rows: Gram matrices of active units are singular
        net[0].bias[20:] = net[0].bias[:20]
    x = torch.randn(4, 80, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    graph, blocks = blocks_of(net, x[:1], Draws())
    for block in blocks:
        check(graph, block, x, units=40)
    graph, blocks = blocks_of(net, x, Draws(0.1, 6, "bias", 0))
    for block in blocks:
        check(graph, block, x, row=7, units=40)


def test_good_follows_the_definition_in_a_fully_connected_net():
    net = mlp(2, 3, 2, 2, 1, seed=1).double()
    x = torch.randn(200, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    _, blocks = blocks_of(net, x, Draws(0.6, 3, "bias", 0))
    seen = set()
    for block in blocks:
        alive = [(block.state.slopes[layer.node] != 0).any(dim=1) for layer in block.network.layers]
        for k, good in enumerate(block.good):
            expected = torch.ones(len(good), dtype=torch.bool)
            for later in alive[k + 1 :]:
                expected &= later
            assert (good == expected[:, None]).all()
            seen |= set(good.flatten().tolist())
    assert seen == {True, False}


class Skip(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.inner, self.out = nn.Conv1d(1, 2, 3), nn.Conv1d(2, 2, 3, padding=1), nn.Linear(4, 1)

    def forward(self, x):
        h = torch.relu(self.first(x))
        h = h + torch.relu(self.inner(h))
        return self.out(torch.relu(nn.functional.max_pool1d(h - 0.2, 2)).flatten(1))


def test_good_follows_paths_through_convolutions_pools_and_skips():
    """A unit is good if and only if moving its output moves the scores (paths that cancel aside)."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        net = Skip().double()
    x = torch.randn(30, 1, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    graph, blocks = blocks_of(net, x, Draws(0.4, 2, "bias", 0))
    layers, seen = unit_layers(graph), set()
    for block in blocks:
        for row, point in enumerate(x[block.points]):
            values, outs = {0: point[None]}, []
            units = {layer.node: k for k, layer in enumerate(layers)}
            for i, node in enumerate(graph.nodes[1:], start=1):
                inputs = [values[j] for j in node.inputs]
                if i in units:
                    inputs = [inputs[0] - block.perturbation[units[i]][row : row + 1]]
                values[i] = node.op(*inputs)
                if i in units:
                    outs.append(values[i].requires_grad_() if values[i].is_leaf else values[i])
            grads = torch.autograd.grad(values[graph.output].sum(), outs)
            for good, grad in zip(block.good, grads, strict=True):
                assert (good[row] == (grad.flatten() != 0)).all()
                seen |= set(good[row].tolist())
    assert seen == {True, False}


def test_one_reads_the_seeds_of_equal_draws_from_one_pass():
    """Consumers with equal draws see the same blocks."""
    net, x = mlp(3, 4, 4, 2).double(), torch.randn(5, 3, dtype=torch.float64)
    graph = inscape.wrap(net).graph((3,))
    a, b, c = Keep(Draws(0.1, 2, "bias", 0)), Keep(Draws(0.1, 2, "bias", 0)), Keep(Draws())
    jacobian_pass(graph, x, [a, b, c], PassSettings(), lambda done, total: None)
    assert [id(v) for v in a.blocks] == [id(v) for v in b.blocks]
    assert len(a.blocks) == 2
    assert len(c.blocks) == 1


def test_the_first_layer_is_evaluated_a_block_of_points_at_a_time(monkeypatch):
    """On a map of 40,000 photographs the first convolution would have filled 20 GB."""
    sizes = []
    start = PrefixedNetwork.start
    monkeypatch.setattr(PrefixedNetwork, "start", lambda self, x: sizes.append(len(x)) or start(self, x))
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 2)).double()
    patch = inscape.Patch(np.zeros((1, 6, 6)), np.eye(2, 36).reshape(2, 1, 6, 6))
    inscape.density_map(net, patch, 20, sigma=0.1, n_noise=2, random_state=0)
    assert max(sizes) <= POINTS_AT_ONCE
    assert sum(sizes) == 2 * 400
