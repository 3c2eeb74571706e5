"""Single precision finds the pieces that double precision finds; fused products change nothing."""

import numpy as np
import pytest
import torch
import zoo
from networks import cnn, mlp
from torch.overrides import TorchFunctionMode

from inscape import Segment, wrap
from inscape.models.graph import Graph
from inscape.partition.decision.exact.networks import exact_segments
from inscape.partition.linear import linear_regions
from inscape.partition.linear.exact_cost import segment_cost


def segments_in(shape, n, *, seed=0, length=1.0):
    rng = np.random.default_rng(seed)
    starts = rng.normal(size=(n, *shape))
    return [Segment(s, s + length * rng.normal(size=shape)) for s in starts]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("net", "shape", "length"),
    [
        (mlp(20, 60, 60, 60, 5), (20,), 3.0),
        (cnn((4, 8, 8)), (3, 32, 32), 0.3),
        (zoo.make("vgg"), (3, 16, 16), 0.3),
        (zoo.make("resnet18"), (3, 16, 16), 0.3),
        (zoo.make("mobilenet_v2"), (3, 16, 16), 0.3),
    ],
    ids=["mlp", "cnn", "vgg", "resnet18", "mobilenet_v2"],
)
def test_single_precision_counts_as_double(net, shape, length):
    model, segments = wrap(net, input_shape=shape), segments_in(shape, 3, length=length)
    double, single = (linear_regions(model, segments, precision=p) for p in ("float64", "float32"))
    for a, b in zip(double, single, strict=True):
        assert (a.precision, b.precision) == ("float64", "float32")
        assert a.n_regions == b.n_regions
        assert np.abs(a.knots - b.knots).max() < 1e-3
        assert np.median(np.abs(a.knots - b.knots)) < 1e-6
    regions = [exact_segments(model, segments, precision=p) for p in ("float64", "float32")]
    for a, b in zip(*regions, strict=True):
        assert a.labels.tolist() == b.labels.tolist()
        assert b.provenance.dtype == "float32"


def test_linear_pieces_of_a_single_precision_walk_are_judged_in_double():
    net, segments = mlp(4, 12, 12, 3), segments_in((4,), 3, length=3.0)
    double, single = (linear_regions(net, segments, precision=p) for p in ("float64", "float32"))
    assert [q.n_linear for q in double] == [q.n_linear for q in single]


def test_a_knot_that_units_share_stays_one_in_single_precision():
    net = mlp(3, 10, 10, 2)
    net[0].weight.data[1], net[0].bias.data[1] = 0.7 * net[0].weight.data[0], 0.7 * net[0].bias.data[0]
    segment = segments_in((3,), 1, length=4.0)[0]
    counts = {linear_regions(net, segment, precision=p).n_regions for p in ("float64", "float32")}
    assert len(counts) == 1


@pytest.mark.parametrize("name", ["cnn", "mobilenet_v2", "resnet18", "mlp"])
def test_fused_products_change_nothing(name, monkeypatch):
    net, shape = zoo.make(name), zoo.shape_of(name)
    segment = segments_in(shape, 1, length=0.2 if len(shape) > 1 else 3.0)[0]
    model = wrap(net, input_shape=shape)
    fused = linear_regions(model, segment)
    monkeypatch.setattr(Graph, "fusions", property(lambda graph: {}))
    plain = linear_regions(model, segment)
    assert fused.n_regions == plain.n_regions > 3
    assert np.allclose(fused.knots, plain.knots, rtol=0, atol=1e-9)


class LargestTensor(TorchFunctionMode):
    """Watches what torch returns: the bytes of the largest tensor."""

    n_bytes = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **kwargs or {})
        if isinstance(result, torch.Tensor):
            self.n_bytes = max(self.n_bytes, result.nbytes)
        return result


def test_chunks_stay_within_the_budget():
    model = wrap(cnn((4, 4, 4)), input_shape=(3, 32, 32))
    segments, counts, largest = segments_in((3, 32, 32), 1, length=0.3), [], []
    for memory in (2**22, 2**30):
        with LargestTensor() as watch:
            counts.append(linear_regions(model, segments, memory=memory)[0].n_regions)
        largest.append(watch.n_bytes)
    assert largest[0] <= 2**22 / 4 < largest[1]
    assert counts[0] == counts[1] > 100


def test_the_cost_is_foreseen():
    net, segments = mlp(20, 60, 60, 60, 5), segments_in((20,), 12, length=3.0)
    model = wrap(net)
    estimate = segment_cost(model, segments)
    true = np.mean([q.n_regions for q in linear_regions(model, segments)])
    assert true / 3 < estimate.n_regions < 3 * true
    assert estimate == segment_cost(model, segments)
