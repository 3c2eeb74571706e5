"""What stands in the way of an exact count is called what a person calls it, and truly."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from inscape import region_count, wrap
from inscape.errors import PartitionError


class RMSNorm(nn.Module):
    """As people write it by hand."""

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Apply(nn.Module):
    """A function as a layer."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class LastState(nn.Module):
    """The last state of a recurrent layer."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0][:, -1]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x):
        return self.heads(x, x, x, need_weights=False)[0].mean(1)


def on_vectors(layer):
    return nn.Sequential(nn.Linear(4, 4), layer, nn.Linear(4, 3)), (4,)


def on_images(layer):
    return nn.Sequential(nn.Conv2d(1, 4, 3), layer, nn.Flatten(), nn.Linear(64, 3)), (1, 6, 6)


def on_sequences(layer):
    return nn.Sequential(LastState(layer), nn.Linear(4, 3)), (5, 4)


NEVER = "is not piecewise affine because of "
MESSAGES = {
    "LSTM": (on_sequences(nn.LSTM(4, 4, batch_first=True)), f"{NEVER}LSTM in 0.layer:"),
    "GRU": (on_sequences(nn.GRU(4, 4, 2, batch_first=True)), f"{NEVER}GRU in 0.layer:"),
    "RNN": (on_sequences(nn.RNN(4, 4, batch_first=True)), f"{NEVER}RNN with tanh in 0.layer:"),
    "attention": (
        (nn.Sequential(Attention(), nn.Linear(4, 3)), (5, 4)),
        f"{NEVER}MultiheadAttention in 0.heads:",
    ),
    "transformer": (
        (nn.Sequential(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), nn.Flatten()), (5, 4)),
        f"{NEVER}TransformerEncoderLayer in 0:",
    ),
    "instance norm": (on_images(nn.InstanceNorm2d(4)), f"{NEVER}InstanceNorm2d in 1:"),
    "group norm": (on_images(nn.GroupNorm(2, 4)), f"{NEVER}GroupNorm in 1:"),
    "layer norm": (on_vectors(nn.LayerNorm(4)), f"{NEVER}LayerNorm in 1:"),
    "layer norm as a function": (
        on_vectors(Apply(lambda x: F.layer_norm(x, (4,)))),
        f"{NEVER}layer_norm in 1 \\(Apply\\):",
    ),
    "rms norm": (on_vectors(nn.RMSNorm(4)), f"{NEVER}RMSNorm in 1:"),
    "rms norm by hand": (on_vectors(RMSNorm()), f"{NEVER}pow in 1 \\(RMSNorm\\)"),
    "gelu": (on_vectors(nn.GELU()), f"{NEVER}GELU in 1:"),
    "gelu as a function": (on_vectors(Apply(F.gelu)), f"{NEVER}gelu in 1 \\(Apply\\):"),
    "hard-swish": (on_vectors(nn.Hardswish()), f"{NEVER}Hardswish in 1:"),
    "softsign": (on_vectors(nn.Softsign()), f"{NEVER}Softsign \\(a division by a value that depends"),
    "tanh": (on_vectors(nn.Tanh()), f"{NEVER}Tanh in 1:"),
    "one positive score": (
        (nn.Sequential(nn.Linear(4, 1), nn.Softplus()), (4,)),
        "ends in softplus, whose values never reach 0, with which they are compared",
    ),
    "distances": (on_vectors(Apply(lambda x: torch.cdist(x, torch.eye(4)))), f"{NEVER}cdist in 1"),
    "half precision inside": (
        on_vectors(Apply(lambda x: x.bfloat16().float())),
        f"{NEVER}a conversion to bfloat16, whose rounding makes steps in 1",
    ),
    "dropout in training mode": (
        on_vectors(Apply(lambda x: F.dropout(x, 0.5, training=True))),
        "because of dropout in training mode in 1 \\(Apply\\), which is random",
    ),
    "noise": (
        on_vectors(Apply(lambda x: x + torch.randn_like(x))),
        "because of random numbers \\(randn_like\\) in 1 \\(Apply\\), which is random",
    ),
    "rounding": (on_vectors(Apply(torch.round)), "because of round in 1 \\(Apply\\), which jumps"),
    "a sign": (on_vectors(Apply(torch.sign)), "because of sign in 1 \\(Apply\\), which jumps"),
    "integers": (on_vectors(Apply(lambda x: x.long().float())), "because of a conversion to int64 in 1"),
    "hard shrink": (on_vectors(nn.Hardshrink()), "because of Hardshrink in 1, which jumps"),
    "a threshold": (
        on_vectors(nn.Threshold(0.1, 0.3)),
        "because of Threshold with another value below it in 1, which jumps",
    ),
    "a jump": (
        on_vectors(Apply(lambda x: torch.where(x > 0, x, x + 1))),
        "because of where \\(its two sides do not meet\\) in 1 \\(Apply\\), which jumps",
    ),
    "a jump by a bend": (
        on_vectors(Apply(lambda x: torch.where(x > 0.5, x.abs(), 0.0))),
        "because of where \\(its two sides do not meet\\) in 1 \\(Apply\\), which jumps",
    ),
    "a product that jumps": (
        on_vectors(Apply(lambda x: x * (x > 0.5))),
        "because of a product with a comparison \\(its two sides do not meet\\) in 1",
    ),
    "a comparison": (
        on_vectors(Apply(lambda x: (x > 0).float())),
        "because of gt in 1 \\(Apply\\), which jumps",
    ),
    "a choice that cannot be decided": (
        on_vectors(Apply(lambda x: torch.where(x > 0, x.flip(1), x))),
        "not supported yet: where \\(its two sides are not seen to meet\\) in 1 \\(Apply\\)",
    ),
    "points that meet": (
        on_vectors(Apply(lambda x: x - x.mean(0))),
        "because of mean over the batch axis in 1 \\(Apply\\), where the points of a batch meet",
    ),
    "what is not read": (
        (
            nn.Sequential(nn.Upsample(scale_factor=1.5, mode="bicubic"), nn.Flatten(), nn.Linear(81, 3)),
            (1, 6, 6),
        ),
        "not supported yet: Upsample \\(upsample_bicubic2d\\) in 0",
    ),
    "a long sort": (
        (nn.Sequential(nn.Linear(4, 300), Apply(lambda x: x.sort(1).values)), (4,)),
        "not supported yet: a sort of 300 entries, of more than 256 in 1",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_what_stands_in_the_way_is_named(name):
    (net, shape), message = MESSAGES[name]
    model = wrap(net, input_shape=shape)
    assert model.structure == "black-box"
    with pytest.raises(PartitionError, match=message) as error:
        model.graph(shape)
    assert 'use method="adaptive"' in str(error.value)


def test_what_was_named_is_said_once():
    """Every operation inside an LSTM is foreign, and so is what follows it; two layers are two."""
    net = nn.Sequential(LastState(nn.LSTM(4, 4, 2, batch_first=True)), nn.GELU(), nn.Linear(4, 3))
    with pytest.raises(PartitionError, match=r"LSTM in 0.layer \(and 1 more\):"):
        wrap(net, input_shape=(5, 4)).graph((5, 4))


def test_a_jump_is_counted_adaptively_with_that_reason():
    torch.manual_seed(0)
    net, _ = on_vectors(nn.Hardshrink())
    x = 5 * np.random.default_rng(0).standard_normal((10, 4))
    found = region_count(net, x, n_probes=9, random_state=0)
    assert found.method == "adaptive"
    assert found.reason == "Sequential cannot be counted exactly because of Hardshrink in 1, which jumps"
