"""What is foreseen of exact regions, beside the exact regions themselves."""

import numpy as np
import pytest
import zoo
from networks import cnn

from inscape import Segment, decision_regions, linear_regions, wrap
from inscape.partition.linear import exact_cost


def segment_in(shape, length, seed=0):
    rng = np.random.default_rng(seed)
    start = rng.normal(size=shape)
    return Segment(start, start + length * rng.normal(size=shape))


@pytest.mark.parametrize(
    ("name", "length"), [("cnn", 0.02), ("vgg", 0.02), ("mobilenet_v2", 0.05), ("resnet18", 0.05)]
)
def test_units_that_differ_between_the_ends_are_the_knots_of_a_short_stretch(name, length):
    """Relu, maxima over windows and clips with two kinks; a unit that turns back hides two knots."""
    shape = zoo.shape_of(name)
    model = wrap(zoo.make(name), input_shape=shape)
    found = [
        (
            exact_cost.n_changes(model.graph(shape), segment),
            linear_regions(model, segment).n_regions - 1,
        )
        for segment in (segment_in(shape, length, seed) for seed in range(8))
    ]
    changes, knots = np.sum(found, axis=0)
    assert knots > 50
    assert 0.95 * knots <= changes <= knots


def test_the_knots_of_a_large_network_are_foreseen_by_evaluations_alone(monkeypatch):
    shape = (3, 32, 32)
    model = wrap(cnn((8, 8, 8)), input_shape=shape)
    assert model.graph(shape).n_units >= exact_cost.COMPARED_FROM_UNITS
    segments = [segment_in(shape, 1.0, seed) for seed in range(3)]
    true = np.mean([q.n_regions for q in linear_regions(model, segments)])
    monkeypatch.setattr(exact_cost, "walk", None)
    assert exact_cost.segment_cost(model, segments).n_regions == pytest.approx(true, rel=0.2)
    assert exact_cost.segment_cost(model, segments) == exact_cost.segment_cost(model, segments)


def test_a_large_network_that_is_not_what_was_recorded_is_not_counted_exactly(monkeypatch):
    """Its forecast takes the graph as it is; the choice does not."""
    import torch
    from torch import nn

    class Branching(nn.Module):
        def __init__(self):
            super().__init__()
            self.module = cnn((8, 8, 8))

        def forward(self, x):
            scores = self.module(x)
            return scores if x.detach().numpy()[0, 0, 0, 0] < 100.0 else 2 * scores + 1

    model = wrap(Branching(), input_shape=(3, 32, 32))
    far = np.zeros((3, 32, 32))
    far[0, 0, 0] = 200.0
    step = np.zeros((3, 32, 32))
    step[1] = 1e-3 * torch.rand(32, 32, generator=torch.Generator().manual_seed(0)).numpy()
    regions = decision_regions(model, Segment(far, far + step))
    assert regions.method == "adaptive"
    assert "is not what was recorded of it" in regions.reason
