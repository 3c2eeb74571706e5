"""Families of small random networks, each of a kind on which rounding could be mistaken for structure."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import nn


@dataclass(frozen=True)
class Case:
    """A network and the ends of a segment."""

    net: nn.Sequential
    start: list[float]
    end: list[float]


def layers(widths, *, activation=nn.ReLU, hidden_bias=True, last_bias=True):
    """A network of linear layers with activations between."""
    parts = []
    for a, b in pairwise(widths[:-1]):
        parts += [nn.Linear(a, b, bias=hidden_bias), activation()]
    return nn.Sequential(*parts, nn.Linear(widths[-2], widths[-1], bias=last_bias))


def linears(net):
    """Its linear layers."""
    return [m for m in net if isinstance(m, nn.Linear)]


def outputs(rng):
    """How many scores: one in a fifth of the cases, else two or three."""
    return int(rng.choice([1, 2, 3, 3, 3]))


def biased(rng):
    return layers((2, 8, 4, outputs(rng)))


def last_layer_bias_free(rng):
    return layers((2, 8, 4, outputs(rng)), last_bias=False)


def bias_free(rng):
    return layers((2, 8, 4, outputs(rng)), hidden_bias=False, last_bias=False)


def dead_layers(rng):
    """Biases that switch most of a hidden layer off on most of the segment."""
    net = layers((2, 6, 6, 4, outputs(rng)), last_bias=bool(rng.integers(2)))
    linears(net)[1 + int(rng.integers(2))].bias.sub_(float(rng.uniform(0.2, 1.0)))
    return net


def duplicated_units(rng):
    """Units that occur twice, and go on with opposite weights or equal ones."""
    net = layers((2, 8, 8, outputs(rng)), last_bias=bool(rng.integers(2)))
    first, second, last = linears(net)
    first.weight[4:], first.bias[4:] = first.weight[:4].clone(), first.bias[:4].clone()
    second.weight[:, 4:] = -second.weight[:, :4] if rng.integers(2) else second.weight[:, :4]
    second.weight[4:], second.bias[4:] = second.weight[:4].clone(), second.bias[:4].clone()
    last.weight[:, 4:] = -last.weight[:, :4] if rng.integers(2) else last.weight[:, :4]
    return net


def integer_weights(rng):
    """Weights and biases of -2 to 2: knots and ties coincide all the time."""
    net = layers((2, 6, 4, outputs(rng)))
    for p in net.parameters():
        p.copy_(torch.from_numpy(rng.integers(-2, 3, size=p.shape)))
    return net


def tiny_and_huge_weights(rng):
    """Layers, and rows within them, of sizes between 1e-12 and 1e12."""
    net = layers((2, 8, 4, outputs(rng)), last_bias=bool(rng.integers(2)))
    for m in linears(net):
        m.weight.mul_(10.0 ** float(rng.uniform(-9, 9)))
        m.weight.mul_(torch.from_numpy(10.0 ** rng.uniform(-3, 3, size=(len(m.weight), 1))).float())
        if m.bias is not None:
            m.bias.mul_(10.0 ** float(rng.uniform(-9, 9)))
    return net


def deep(rng):
    """Twenty hidden layers, weights large enough that signals survive."""
    net = layers((2, *(5,) * 20, outputs(rng)), last_bias=bool(rng.integers(2)))
    for m in linears(net):
        m.weight.mul_(2.3)
    return net


def leaky(rng):
    slope = float(rng.choice([0.01, 0.1, 0.5]))
    bias = bool(rng.integers(2))
    return layers((2, 8, 4, outputs(rng)), activation=lambda: nn.LeakyReLU(slope), last_bias=bias)


def clip(rng):
    """Hardtanh and relu6, with inputs large enough to reach both bounds."""
    activation = nn.ReLU6 if rng.integers(2) else nn.Hardtanh
    net = layers((2, 8, 4, outputs(rng)), activation=activation, last_bias=bool(rng.integers(2)))
    linears(net)[0].weight.mul_(3.0)
    return net


def max_pool(rng):
    """Pools over pairs, on linear entries or on relus that are often all zero."""
    bias = bool(rng.integers(2))
    between = [nn.ReLU()] if rng.integers(2) else []
    pool = [nn.Unflatten(1, (1, 8)), nn.MaxPool1d(2), nn.Flatten()]
    return nn.Sequential(
        nn.Linear(2, 8),
        *between,
        *pool,
        nn.Linear(4, 8),
        *between,
        *pool,
        nn.Linear(4, outputs(rng), bias=bias),
    )


def tied_classes(rng):
    """Two classes with the same weights."""
    net = layers((2, 8, 4, 3), last_bias=bool(rng.integers(2)))
    last, (a, b) = linears(net)[-1], rng.permutation(3)[:2].tolist()
    last.weight[a] = last.weight[b]
    if last.bias is not None:
        last.bias[a] = last.bias[b]
    return net


FAMILIES = {
    f.__name__.replace("_", " "): f
    for f in (
        biased,
        last_layer_bias_free,
        bias_free,
        dead_layers,
        duplicated_units,
        integer_weights,
        tiny_and_huge_weights,
        deep,
        leaky,
        clip,
        max_pool,
        tied_classes,
    )
}


def case(family, number):
    """One network of a family and a segment, the same for the same number."""
    rng = np.random.default_rng([number, list(FAMILIES).index(family)])
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(int(rng.integers(2**31)))
        net = FAMILIES[family](rng)
    if family == "integer weights":
        start, step = rng.integers(-3, 4, size=2), rng.integers(1, 4, size=2) * rng.choice([-1, 1], size=2)
        return Case(net, start.astype(float).tolist(), (start + step).astype(float).tolist())
    start, end = rng.normal(size=(2, 2)) * 2
    return Case(net, start.tolist(), end.tolist())
