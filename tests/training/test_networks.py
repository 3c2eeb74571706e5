"""Networks of ours: sizes, initial weights, and which are piecewise affine."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import inscape
from inscape.errors import ModelError
from inscape.training.loop import train
from inscape.training.networks import NETWORKS, build, mlp
from inscape.training.recipe import Recipe

PAGE = Path(__file__).parents[2] / "docs" / "training.md"
# for 3x32x32 and ten classes at width 1; docs/training.md has the same table
COUNTS = {
    "mlp": 411_146,
    "cnn": 94_762,
    "resnet18": 11_173_962,
    "resnet34": 21_282_122,
    "vgg19": 20_040_522,
    "mobilenet_v1": 3_217_226,
    "mobilenet_v2": 2_296_922,
    "senet18": 11_260_354,
    "shufflenet_v2": 1_263_854,
    "efficientnet_b0": 3_598_598,
    "regnet_x_200mf": 2_321_946,
    "simple_dla": 15_142_970,
}
BLACK_BOXES = ("senet18", "efficientnet_b0")


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_parameters_at_width_one(name):
    net = build(name, (3, 32, 32), 10, random_state=0)
    assert sum(p.numel() for p in net.parameters()) == COUNTS[name]


def test_the_documented_table_is_true():
    rows = re.findall(r"^\| `(\w+)`[^|]*\| ([\d,]+) \| (yes|no)", PAGE.read_text(), re.M)
    assert {name: int(count.replace(",", "")) for name, count, _ in rows} == COUNTS
    assert tuple(name for name, _, exact in rows if exact == "no") == BLACK_BOXES


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 7, 5), (2, 33, 17), (8, 8), (1, 1)])
def test_any_size_and_channels(name, shape):
    net = build(name, shape, 7, width=0.0625, normalise=(0.5, 0.25), random_state=0).eval()
    assert net(torch.rand(2, *shape)).shape == (2, 7)


EPOCHS = {"efficientnet_b0": 15, "mobilenet_v1": 15}
"""Of networks that learn slowly: after 6 epochs, as for the others, the rounding of the processor decided."""


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_it_trains_on_digits(name, digits):
    net = build(name, (8, 8), 10, width=0.125, random_state=0)
    x, y = digits.x[:200], digits.y[:200]
    history = train(net, x, y, Recipe(0.05, 20, EPOCHS.get(name, 6), schedule="constant"), random_state=0)
    assert history.loss < 0.8 * history.losses[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_piecewise_affine(name, digits):
    """Batch-norm has statistics of its own, so that a mistake in folding it would show."""
    net = build(name, (8, 8), 10, width=0.0625, normalise=(0.3, 0.4), random_state=0)
    train(net, digits.x[:20], digits.y[:20], Recipe(0.01, 10, 1), random_state=0)
    model = inscape.wrap(net.double(), input_shape=(8, 8))
    assert model.structure == ("black-box" if name in BLACK_BOXES else "piecewise-affine")
    if name not in BLACK_BOXES:
        segment = inscape.Segment(digits.x[0], digits.x[1])
        pieces = inscape.decision_regions(model, segment, method="exact")
        t = np.linspace(0, 1, 301)
        seen = 1 + np.count_nonzero(np.diff(model.labels(segment.points(t))))
        assert pieces.n_regions >= seen


def test_the_same_seed_gives_the_same_network_and_keeps_the_global_state():
    state = torch.get_rng_state()
    a, b, c = (build("resnet18", (3, 8, 8), 10, width=0.1, random_state=s) for s in (0, 0, 1))
    assert torch.equal(state, torch.get_rng_state())
    flat = [torch.cat([p.flatten() for p in net.parameters()]) for net in (a, b, c)]
    assert torch.equal(flat[0], flat[1])
    assert not torch.equal(flat[0], flat[2])


def test_he_initialisation_and_its_scale():
    for scale in (1.0, 3.0):
        net = mlp(1000, (500,), 10, random_state=0, scale=scale)
        assert np.isclose(net[1].weight.std().item(), scale * np.sqrt(2 / 1000), rtol=0.01)
        assert net[1].bias.abs().max() == 0
    conv = build("vgg19", (3, 8, 8), 10, random_state=0, scale=2.0)[1][0]
    assert np.isclose(conv.weight.std().item(), 2 * np.sqrt(2 / (64 * 9)), rtol=0.02)


def test_normalisation_belongs_to_the_network(rng):
    x = torch.from_numpy(rng.random((4, 3, 8, 8))).float()
    mean, std = (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)
    plain = build("cnn", (3, 8, 8), 10, random_state=0).eval()
    net = build("cnn", (3, 8, 8), 10, random_state=0, normalise=(mean, std)).eval()
    by_hand = (x - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]
    assert torch.allclose(net(x), plain(by_hand), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "shape", "more", "message"),
    [
        ("resnet81", (3, 8, 8), {}, "unknown network 'resnet81'.*did you mean 'resnet18'"),
        ("cnn", (64,), {}, r"cnn needs images.*not \(64,\)"),
        ("cnn", (3, 8, 8), {"width": 0.0}, "width=0.0 is not possible"),
        ("cnn", (3, 8, 8), {"normalise": ((0, 0), (1, 1))}, "normalise has 2 channels"),
        ("mlp", (8, 8), {"normalise": (0, 0)}, "positive std"),
    ],
)
def test_networks_that_cannot_be_built(name, shape, more, message):
    with pytest.raises(ModelError, match=message):
        build(name, shape, 10, random_state=0, **more)


@pytest.mark.parametrize("hidden", [5, "ab"])
def test_hidden_must_be_a_list(hidden):
    with pytest.raises(ModelError, match="must be a list of whole numbers, as hidden="):
        build("mlp", (4,), 2, hidden=hidden, random_state=0)


@pytest.mark.parametrize("name", ["mlp", "resnet18", "vgg19"])
def test_the_initialisation_of_torch_is_what_its_layers_have(name):
    """As wide as a fresh layer's weights and biases, and sqrt(6) times narrower than He's."""
    torchs, he = (build(name, (3, 32, 32), 10, width=0.25, init=i, random_state=0) for i in ("torch", "he"))
    layers = zip(torchs.modules(), he.modules(), strict=True)
    widest = [(a, b) for a, b in layers if isinstance(a, nn.Conv2d | nn.Linear) and a.weight.numel() > 2000]
    assert widest
    for ours, other in widest:
        bound = ours.weight[0].numel() ** -0.5
        assert ours.weight.abs().max().item() == pytest.approx(bound, rel=0.01)
        assert (other.weight.std() / ours.weight.std()).item() == pytest.approx(6**0.5, rel=0.1)
        assert ours.bias is None or 0 < ours.bias.abs().max() <= bound


def test_an_unknown_initialisation_is_named():
    with pytest.raises(ModelError, match="init"):
        build("cnn", (1, 8, 8), 2, init="xavier", random_state=0)


PUBLISHED_AT_224 = {
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "mobilenet_v1": 4_231_976,
    "shufflenet_v2": 2_278_604,
}
"""Parameters for a thousand classes, as the papers' reference implementations have them."""


@pytest.mark.parametrize("name", PUBLISHED_AT_224)
def test_parameters_for_images_of_224_pixels(name):
    net = build(name, (3, 224, 224), 1000, random_state=0)
    assert sum(p.numel() for p in net.parameters()) == PUBLISHED_AT_224[name]


@pytest.mark.parametrize("name", [n for n in NETWORKS if n not in ("mlp", "cnn")])
@pytest.mark.parametrize(("side", "left"), [(224, 7), (160, 5)])
def test_large_images_become_a_thirty_second_of_their_side(name, side, left):
    net = build(name, (3, side, side), 5, width=1 / 16, random_state=0).eval()
    seen = []
    net[-1].register_forward_hook(lambda module, inputs, output: seen.append(inputs[0].shape[-2:]))
    with torch.no_grad():
        assert net(torch.zeros(1, 3, side, side)).shape == (1, 5)
    assert seen == [(left, left)]


def test_small_images_keep_the_networks_they_had():
    shapes = [p.shape for p in build("resnet18", (3, 32, 32), 10, width=1 / 8, random_state=0).parameters()]
    assert shapes == [
        p.shape for p in build("resnet18", (3, 96, 96), 10, width=1 / 8, random_state=0).parameters()
    ]
    large = build("resnet18", (3, 128, 128), 10, width=1 / 8, random_state=0)
    assert next(large.parameters()).shape[-2:] == (7, 7)
