"""A model behind a normalisation is the model with a normalising layer."""

import copy
import json

import numpy as np
import pytest
import torch
from onnx_files import export
from sklearn.linear_model import LogisticRegression
from torch import nn

import inscape
from inscape.errors import ModelError, PartitionError
from inscape.measures import RegionCount
from inscape.measures.total_variation import TotalVariation

NUMBERS = {"mean": (0.4, 0.5, 0.6), "std": (0.2, 0.3, 0.25), "scale": 1 / 255}


class Normalise(nn.Module):
    """(scale x - mean) / std on images of three channels, as a user writes it."""

    def forward(self, x):
        mean, std = (torch.tensor(NUMBERS[k], dtype=x.dtype).reshape(3, 1, 1) for k in ("mean", "std"))
        return (x * NUMBERS["scale"] - mean) / std


def network():
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(48, 4)
    return nn.Sequential(*layers).double()


@pytest.fixture
def images(rng):
    """Images (n, 3, 8, 6) of pixels 0 to 255."""
    return rng.integers(256, size=(60, 3, 8, 6)).astype(float)


@pytest.fixture
def pair():
    """The same function twice: normalised by `preprocess`, and by a layer of its own."""
    return inscape.wrap(network(), preprocess=NUMBERS), nn.Sequential(Normalise(), network())


def test_predictions_equal_those_of_a_normalising_layer(pair, images):
    m, reference = pair
    with torch.no_grad():
        expected = reference(torch.from_numpy(images)).numpy()
    assert np.allclose(m.scores(images), expected, rtol=1e-12, atol=1e-12)
    assert len(set(m.labels(images).tolist())) > 1


def test_exact_regions_equal_those_of_a_normalising_layer(pair, images):
    chosen = images[np.unique(pair[0].labels(images), return_index=True)[1]]
    segment, patch = inscape.Segment(*chosen[:2]), inscape.Patch.through(chosen[:3], margin=0)
    for found, expected in [
        [inscape.decision_regions(m, segment, method="exact") for m in pair],
        [inscape.decision_regions(m, patch, method="exact") for m in pair],
        [inscape.linear_regions(m, segment) for m in pair],
        [inscape.linear_regions(m, patch) for m in pair],
    ]:
        assert found.n_regions == expected.n_regions > 1
    knots = [inscape.linear_regions(m, segment).knots for m in pair]
    assert np.allclose(*knots, atol=1e-10)
    counts = [inscape.region_count(m, images, n_probes=10, random_state=0).counts.tolist() for m in pair]
    assert counts[0] == counts[1]


def test_measures_are_in_the_coordinates_of_the_data(pair, images):
    images = images[:20]
    y = pair[0].labels(images)
    for measure in (
        lambda m: inscape.total_variation(m, images),
        lambda m: inscape.local_complexity(m, images, sigma=0.1, random_state=0),
        lambda m: inscape.local_rank(m, images, eps=1e-3),
        lambda m: inscape.margin(m, images, y),
        lambda m: inscape.sharpness(m, images, y),
        lambda m: inscape.adversarial_accuracy(
            m, images, y, eps=20.0, steps=4, step_size=8.0, random_state=0
        ),
    ):
        found, expected = (measure(m).value for m in pair)
        assert found == pytest.approx(expected, rel=1e-6)


def test_scaling_the_data_scales_local_complexity(images):
    net, x = network(), images[:20]
    found = inscape.local_complexity(
        inscape.wrap(net, preprocess={"scale": 0.5}), x, sigma=1.0, random_state=0
    )
    expected = inscape.local_complexity(net, 0.5 * x, sigma=1.0, random_state=0)
    assert found.value == pytest.approx(0.5 * expected.value, rel=1e-9)
    assert found.value > 0


def test_smooth_networks_too(images):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(144, 5), nn.GELU(), nn.Linear(5, 3)).double()
    m = inscape.wrap(net, preprocess=NUMBERS)
    reference = nn.Sequential(Normalise(), net)
    assert m.structure == "black-box"
    found, expected = (inscape.total_variation(k, images).value for k in (m, reference))
    assert found == pytest.approx(expected, rel=1e-9)


def test_parameters_keep_their_names_and_nothing_is_left_on_the_module(images):
    net = network()
    m = inscape.wrap(net, preprocess=NUMBERS)
    before = copy.deepcopy(net.state_dict())
    net[0].weight.data += 1.0
    found = inscape.parameter_distance(m, before)
    assert found.layers == tuple(name for name, _ in net.named_parameters())
    assert found.value == pytest.approx(np.sqrt(net[0].weight.numel()))
    net.train()
    m.labels(images)
    assert net.training
    assert all(layer.training for layer in net)


def test_layout_and_normalisation_together(pair, images):
    last = np.ascontiguousarray(np.moveaxis(images, 1, -1))
    m = inscape.wrap(network(), layout="HWC", preprocess=NUMBERS)
    assert np.allclose(m.scores(last), pair[0].scores(images), rtol=1e-12)
    found, expected = (
        inscape.linear_regions(k, inscape.Segment(*x[:2])).knots for k, x in ((m, last), (pair[0], images))
    )
    assert np.allclose(found, expected, atol=1e-10)
    values = [inscape.total_variation(k, x).value for k, x in ((m, last), (pair[0], images))]
    assert values[0] == pytest.approx(values[1], rel=1e-9)


def test_channels_are_first_or_last(rng):
    seen = []

    def keep(x):
        seen.append(x)
        return x.reshape(len(x), -1)

    m = inscape.wrap(keep, preprocess={"mean": (1.0, 2.0, 3.0)})
    for shape, channels in (((3, 8, 6), (3, 1, 1)), ((8, 6, 3), (3,)), ((3,), (3,)), ((3, 4, 3), (3, 1, 1))):
        x = rng.uniform(size=(2, *shape))
        m.labels(x)
        assert np.allclose(seen[-1], x - np.array([1.0, 2.0, 3.0]).reshape(channels))
    x = rng.uniform(size=(2, 3, 4, 3))
    inscape.wrap(keep, layout="HWC", preprocess={"mean": (1.0, 2.0, 3.0)}).labels(x)
    assert np.allclose(seen[-1], np.moveaxis(x - [1.0, 2.0, 3.0], -1, 1))
    with pytest.raises(
        ModelError, match=r"mean has 3 numbers, but points of shape \(8, 6\) have no 3 channels"
    ):
        m.labels(rng.uniform(size=(2, 8, 6)))


def test_files_and_estimators(tmp_path, pair, images):
    path = export(network().float(), (3, 8, 6), tmp_path / "m.onnx")
    m = inscape.wrap(path, input_shape=(3, 8, 6), preprocess=NUMBERS)
    assert m.structure == "piecewise-affine"
    assert np.allclose(m.scores(images), pair[0].scores(images), rtol=1e-4, atol=1e-5)
    segment = inscape.Segment(*images[:2])
    found, expected = (inscape.linear_regions(k, segment).n_regions for k in (m, pair[0]))
    assert found == expected
    x = images.reshape(60, -1)
    estimator = LogisticRegression().fit(x / 255, x[:, 0] > 127)
    scaled = inscape.wrap(estimator, preprocess={"scale": 1 / 255})
    assert (scaled.labels(images) == estimator.predict(x / 255)).all()
    assert scaled.classes == ("False", "True")


def test_a_function_makes_a_black_box_that_predicts_the_same(pair, images):
    mean, std = (np.array(NUMBERS[k]).reshape(3, 1, 1) for k in ("mean", "std"))
    m = inscape.wrap(network(), preprocess=lambda x: (x / 255 - mean) / std)
    assert m.structure == "black-box"
    assert np.allclose(m.scores(images), pair[0].scores(images), rtol=1e-9)
    with pytest.raises(
        PartitionError, match=r"prepared by the function <lambda>.*numbers or as a torch module"
    ):
        inscape.decision_regions(m, inscape.Segment(*images[:2]), method="exact")
    assert inscape.region_count(m, images, n_probes=3, random_state=0).method == "adaptive"
    with pytest.raises(ModelError, match=r"<lambda>.*returned shape \(60,\) for \(60, 3, 8, 6\)"):
        inscape.wrap(network(), preprocess=lambda x: x[:, 0, 0, 0]).labels(images)


def test_a_torch_module_that_prepares_points_stays_exact(pair, images):
    m = inscape.wrap(network(), input_shape=(3, 8, 6), preprocess=Normalise())
    assert m.structure == "piecewise-affine"
    assert np.allclose(m.scores(images), pair[0].scores(images), rtol=1e-9)
    segment = inscape.Segment(*images[:2])
    knots = [inscape.linear_regions(k, segment).knots for k in (m, pair[0])]
    assert np.allclose(*knots, atol=1e-10)
    values = [inscape.total_variation(k, images).value for k in (m, pair[0])]
    assert values[0] == pytest.approx(values[1], rel=1e-9)
    smaller = inscape.wrap(network(), preprocess=nn.AvgPool2d(2))
    large = np.repeat(np.repeat(images, 2, axis=2), 2, axis=3)
    assert np.allclose(smaller.scores(large), inscape.wrap(network()).scores(images), rtol=1e-6)
    assert inscape.linear_regions(smaller, inscape.Segment(*large[:2])).n_regions > 1
    smooth = inscape.wrap(network(), input_shape=(3, 8, 6), preprocess=nn.Tanh())
    assert smooth.structure == "black-box"


def test_provenance_records_it_and_reads_back(pair, images):
    found = inscape.region_count(pair[0], images, n_probes=3, random_state=0)
    expected = {"mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.25], "scale": 1 / 255}
    assert found.provenance.preprocess == expected
    assert found.provenance.layout is None
    again = RegionCount.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.provenance == found.provenance
    last = inscape.wrap(network(), layout="HWC", preprocess=np.tanh)
    varied = inscape.region_count(last, np.moveaxis(images, 1, -1), n_probes=3, random_state=0)
    assert varied.provenance.layout == "HWC"
    assert varied.provenance.preprocess["function"] == "tanh"
    plain = inscape.total_variation(network(), images)
    assert TotalVariation.from_dict(json.loads(json.dumps(plain.to_dict()))).provenance.preprocess is None
    table = inscape.measure(pair[0], images, measures={"region_count": {"n_probes": 2}}, random_state=0)
    assert json.loads(json.dumps(table.to_dict()))["provenance"]["preprocess"] == expected


def test_fingerprints_tell_preparations_apart():
    net = network()
    models = [
        inscape.wrap(net),
        inscape.wrap(net, preprocess={"scale": 0.5}),
        inscape.wrap(net, preprocess={"scale": 0.25}),
        inscape.wrap(net, layout="HWC"),
        inscape.wrap(net, preprocess=np.tanh),
    ]
    assert len({m.fingerprint() for m in models}) == 5
    assert models[1].fingerprint() == inscape.wrap(net, preprocess={"scale": 0.5}).fingerprint()


def test_pictures_show_the_data_as_given(pair, images):
    plane = inscape.decision_regions(pair[0], inscape.Patch.through(images[:3]), method="grid", resolution=5)
    shown = plane.probe.anchors
    assert any(np.allclose(a, images[0]) for a in shown)


@pytest.mark.parametrize(
    ("preprocess", "message"),
    [
        ({"men": 1.0}, "unknown entry of preprocess 'men'.*did you mean 'mean'"),
        ({"std": 0.0}, "std=0.0 holds 0"),
        ({"std": (1.0, 0.0)}, "holds 0"),
        ({"mean": "0.5"}, "mean='0.5' must be a number, or one per channel"),
        ({"mean": float("nan")}, "must be a number"),
        ({"mean": [[1.0, 2.0], [3.0, 4.0]]}, "must be a number"),
        ({"scale": None}, "scale=None must be a number"),
        (3, "preprocess=3 is not understood"),
        (nn.Tanh, "is not understood"),
    ],
)
def test_what_is_no_preparation(preprocess, message):
    with pytest.raises(ModelError, match=message):
        inscape.wrap(network(), preprocess=preprocess)
