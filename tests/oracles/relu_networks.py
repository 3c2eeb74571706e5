"""Relu networks made from given weights, and the planes that tests look at."""

import numpy as np
import torch
from torch import nn

from inscape import Patch


def network(*layers):
    """A relu network in float64 from pairs (weight, bias)."""
    modules = []
    for weight, bias in layers:
        weight = np.atleast_2d(np.asarray(weight, float))
        linear = nn.Linear(weight.shape[1], weight.shape[0]).double()
        linear.weight.data = torch.from_numpy(weight.copy())
        linear.bias.data = torch.from_numpy(np.array(bias, dtype=float).reshape(len(weight)))
        modules += [linear, nn.ReLU()]
    return nn.Sequential(*modules[:-1])


def square(half=1.0):
    """The square from -half to half in the plane."""
    return Patch([0.0, 0.0], np.eye(2), ((-half, half), (-half, half)))


def random_patch(shape, seed, size=2.0):
    """A patch of a random plane of an input space, of this size in every coordinate."""
    rng = np.random.default_rng(seed)
    return Patch(rng.normal(size=shape), size * rng.normal(size=(2, *shape)))
