"""Images whose channels come first or last."""

import numpy as np
import pytest
import torch
from onnx_files import save
from sklearn.tree import DecisionTreeClassifier
from torch import nn

import inscape
from inscape.errors import ModelError


def brightest_channel():
    """A network whose label is the channel with the highest mean, of images that are not negative."""
    conv = nn.Conv2d(3, 3, 1)
    conv.weight.data, conv.bias.data = torch.eye(3)[:, :, None, None], torch.zeros(3)
    return nn.Sequential(conv, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def random_network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 5, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(60, 4)
    )


@pytest.fixture
def images(rng):
    """Images (n, 3, 8, 6) and their brightest channel."""
    y = rng.integers(3, size=60)
    x = rng.uniform(size=(60, 3, 8, 6))
    x[np.arange(60), y] += 0.3
    return x, y


def channel_last(x):
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


def channel_last_file(path):
    """A file that takes (n, 8, 6, 3) and labels by the brightest channel."""
    nodes = [
        ("Transpose", "x", "t", {"perm": [0, 3, 1, 2]}),
        ("Conv", "t w", "c"),
        ("Relu", "c", "r"),
        ("GlobalAveragePool", "r", "p"),
        ("Flatten", "p", "y"),
    ]
    return save(path, nodes, (8, 6, 3), {"w": np.eye(3)[:, :, None, None]})


@pytest.mark.parametrize("input_shape", [None, (3, 8, 6)], ids=["failed forward", "known shape"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda m, x: m.labels(x),
        lambda m, x: inscape.region_count(m, x, n_probes=3, random_state=0),
        lambda m, x: inscape.region_count(m, x, n_probes=3, method="grid", random_state=0),
        lambda m, x: inscape.linear_regions(m, inscape.Segment(x[0], x[1])),
        lambda m, x: inscape.decision_regions(m, inscape.Patch.through(x[:3])),
        lambda m, x: inscape.total_variation(m, x),
    ],
    ids=["labels", "region_count", "grid", "linear_regions", "plane", "total_variation"],
)
def test_channel_last_images_are_refused_with_both_shapes_and_the_cure(ask, input_shape, images):
    x = channel_last(images[0])
    model = inscape.wrap(brightest_channel(), input_shape=input_shape)
    with pytest.raises(ModelError) as raised:
        ask(model, x)
    message = str(raised.value)
    assert "8, 6, 3)" in message
    assert "(3, 8, 6)" in message
    assert 'layout="HWC"' in message
    assert "pass input_shape" not in message


def test_channel_last_images_of_another_size_are_called_channel_last(rng):
    with pytest.raises(ModelError, match="takes 3 channels, the last axis here") as raised:
        inscape.wrap(random_network()).labels(rng.uniform(size=(2, 10, 9, 3)))
    assert "pass input_shape" not in str(raised.value)


def test_layout_gives_the_accuracy_and_the_regions_of_transposed_data(images):
    x, y = images
    m = inscape.wrap(brightest_channel(), layout="HWC")
    assert (m.labels(channel_last(x)) == y).all()
    assert (m.scores(channel_last(x)) == inscape.wrap(brightest_channel()).scores(x)).all()
    net = random_network()
    settings = {"n_probes": 15, "random_state": 0}
    turned = inscape.region_count(inscape.wrap(net, layout="HWC"), 9 * channel_last(x), **settings)
    plain = inscape.region_count(net, 9 * x, **settings)
    assert turned.method == plain.method == "exact"
    assert turned.counts.tolist() == plain.counts.tolist()
    assert turned.counts.max() > 1


def test_linear_regions_do_not_depend_on_the_layout(images):
    x, net = images[0], random_network()
    m = inscape.wrap(net, layout="HWC", input_shape=(8, 6, 3))
    segments = [inscape.Segment(*p) for p in (channel_last(x[:2]), x[:2])]
    turned, plain = (inscape.linear_regions(k, s) for k, s in zip((m, net), segments, strict=True))
    assert turned.n_regions == plain.n_regions > 5
    assert np.allclose(turned.knots, plain.knots, atol=1e-12)
    patches = [inscape.Patch.through(p, margin=0) for p in (channel_last(x[:3]), x[:3])]
    turned, plain = (inscape.linear_regions(k, p) for k, p in zip((m, net), patches, strict=True))
    assert turned.n_regions == plain.n_regions


def test_flat_points_are_reshaped_to_the_layout_of_the_data(images):
    x, y = images
    m = inscape.wrap(brightest_channel(), layout="HWC", input_shape=(8, 6, 3))
    assert (m.labels(channel_last(x).reshape(60, -1)) == y).all()
    with pytest.raises(ModelError, match=r"three axes, got shape \(144,\).*sizes of H, W, C"):
        inscape.wrap(brightest_channel(), layout="HWC").labels(channel_last(x).reshape(60, -1))


def test_a_channel_last_file(tmp_path, images):
    x, y = images
    path = channel_last_file(tmp_path / "m.onnx")
    m = inscape.wrap(path)
    assert (m.labels(channel_last(x)) == y).all()
    for ask in (m.labels, lambda x: inscape.region_count(m, x, random_state=0)):
        with pytest.raises(ModelError, match=r'shape \(8, 6, 3\), got \(3, 8, 6\).*layout="CHW"'):
            ask(x)
    turned = inscape.wrap(path, layout="CHW")
    assert turned.input_shape == (3, 8, 6)
    assert turned.structure == "piecewise-affine"
    assert (turned.labels(x) == y).all()
    settings = {"n_probes": 15, "random_state": 0}
    found = inscape.region_count(turned, x, **settings)
    assert found.method == "exact"
    assert found.counts.tolist() == inscape.region_count(m, channel_last(x), **settings).counts.tolist()


def test_a_file_of_open_size_is_asked_which_layout_it_takes(tmp_path, images):
    x, y = images
    nodes = [("Conv", "x w", "c"), ("GlobalAveragePool", "c", "p"), ("Flatten", "p", "y")]
    path = save(tmp_path / "m.onnx", nodes, (3, "h", "w"), {"w": np.eye(3)[:, :, None, None]})
    with pytest.raises(ModelError, match=r'takes? points of shape \(3, 8, 6\).*layout="HWC"'):
        inscape.wrap(path).labels(channel_last(x))
    assert (inscape.wrap(path, layout="HWC").labels(channel_last(x)) == y).all()


def test_a_layout_that_the_data_do_not_need_is_refused(images):
    x, _ = images
    with pytest.raises(ModelError, match="layout='HWC' has transposed the points: leave it out"):
        inscape.wrap(brightest_channel(), layout="HWC").labels(x)
    for shape, data in (((8, 6, 3), x), ((3, 8, 6), channel_last(x))):
        with pytest.raises(ModelError, match=r"an input_shape is that of the data; leave layout out if"):
            inscape.wrap(brightest_channel(), layout="HWC", input_shape=shape).labels(data)


def test_other_permutations_are_refused_and_plain_reshapes_are_not(rng):
    def sums(x):
        assert x.shape[1:] == (4, 6)
        return x.sum(axis=2)

    m = inscape.wrap(sums, input_shape=(4, 6))
    with pytest.raises(ModelError, match=r"shape \(4, 6\), got \(6, 4\).*transpose the data first"):
        m.labels(rng.uniform(size=(5, 6, 4)))
    x = rng.uniform(size=(5, 4, 6))
    for same in (x.reshape(5, 24), x[:, None], x[..., None]):
        assert (m.scores(same) == x.sum(axis=2)).all()


def test_one_channel_needs_no_layout(rng):
    x = rng.uniform(size=(5, 1, 8, 8))
    m = inscape.wrap(nn.Sequential(nn.Conv2d(1, 2, 8), nn.Flatten()), input_shape=(1, 8, 8))
    assert (m.scores(x) == m.scores(channel_last(x))).all()


def test_cubes_are_turned_only_when_told(rng):
    x = rng.uniform(size=(40, 3, 3, 3))
    net = brightest_channel()
    means = x.mean(axis=(2, 3)).argmax(axis=1)
    assert (inscape.wrap(net, input_shape=(3, 3, 3)).labels(x) == means).all()
    assert (inscape.wrap(net, input_shape=(3, 3, 3), layout="HWC").labels(channel_last(x)) == means).all()
    assert (inscape.wrap(net).labels(channel_last(x)) != means).any()


def test_layout_of_functions_and_of_networks_that_flatten(images):
    x, y = images
    m = inscape.wrap(lambda x: x.mean(axis=(2, 3)), layout="HWC")
    assert (m.labels(channel_last(x)) == y).all()
    torch.manual_seed(0)
    flat = nn.Sequential(nn.Flatten(), nn.Linear(144, 3))
    assert (inscape.wrap(flat, layout="HWC").scores(channel_last(x)) == inscape.wrap(flat).scores(x)).all()


def test_layout_is_for_images(images):
    x, y = images
    tree = DecisionTreeClassifier().fit(x.reshape(60, -1), y)
    with pytest.raises(ModelError, match=r"for models that take images; DecisionTreeClassifier takes rows"):
        inscape.wrap(tree, layout="HWC")
    with pytest.raises(ModelError, match=r"unknown layout 'NHWC'.*did you mean 'HWC'"):
        inscape.wrap(brightest_channel(), layout="NHWC")
    with pytest.raises(ModelError, match=r"wrapped already.*layout, preprocess, .* there"):
        inscape.wrap(inscape.wrap(brightest_channel()), layout="HWC")
