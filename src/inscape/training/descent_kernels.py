"""The steps of a plain MLP as one compiled program: forward, backward and the optimiser, without autograd.

The parameters are one flat array, layer after layer, weights (n_in, n_out) before biases; so is what the
optimiser remembers of each. A layer is moved as soon as its slopes are known, while they are in the cache.
"""

# mypy: allow-untyped-decorators

import math
from typing import Any, NamedTuple

import numpy as np

from inscape.arrays import Array, Floats, Ints
from inscape.compiled import compiled, copy, unbounded

SQUARES, CROSS_ENTROPY, SOFTMAX_CROSS_ENTROPY = range(3)
SGD, ADAM, ADAMW = range(3)
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
"""Of Adam: how much of both averages is kept, and what is added to the root of the second."""


class Optimiser(NamedTuple):
    """The rule by which parameters are moved, and what it remembers of each.

    Attributes:
        rule: `SGD`, `ADAM` or `ADAMW`.
        velocity: of SGD, or the first average of Adam, (p,).
        squares: the second average of Adam, (p,).
        decays: of weights and of biases.
        momentum: of SGD.
    """

    rule: int
    velocity: Array
    squares: Array
    decays: Floats
    momentum: float


@compiled(error_model="numpy", work=unbounded)
def run_steps(
    parameters: Array,
    optimiser: Optimiser,
    widths: Ints,
    points: Array,
    classes: Ints,
    targets: Array,
    order: Ints,
    sizes: Ints,
    rates: Floats,
    n_done: int,
    loss: int,
) -> Floats:
    """Take a step for each batch, in place; the loss of each before its step, summed over its points.

    Args:
        parameters: of all layers, (p,).
        optimiser: how they are moved.
        widths: of the input and of every layer.
        points: all of them, (n, d).
        classes: theirs, (n,), or nothing.
        targets: theirs, (n, c), or nothing.
        order: the indices of the points, batch after batch.
        sizes: of the batches, (k,).
        rates: the learning rate of each step, (k,).
        n_done: steps that were taken before.
        loss: `SQUARES`, `CROSS_ENTROPY` or `SOFTMAX_CROSS_ENTROPY`.
    """
    most, widest = sizes.max(), widths.max()
    kept = np.empty(most * widths.sum(), parameters.dtype)
    scratch = np.empty((2, most * widest), parameters.dtype)
    largest = 0
    for layer in range(len(widths) - 1):
        largest = max(largest, widths[layer] * widths[layer + 1])
    gradient = np.empty(largest, parameters.dtype)
    bias_gradient = np.empty(widest, parameters.dtype)
    losses = np.empty(len(sizes))
    start = 0
    for k in range(len(sizes)):
        # (1) forward with the batch, all outputs kept
        n = sizes[k]
        batch = order[start : start + n]
        start += n
        scores = _forward(parameters, widths, points, batch, kept)
        # (2) the loss and its slopes by the scores
        slope = scratch[0, : n * widths[-1]].reshape(n, widths[-1])
        if loss == SQUARES:
            losses[k] = _squares(scores, targets, batch, slope)
        else:
            losses[k] = _cross_entropies(scores, classes, batch, slope, loss == SOFTMAX_CROSS_ENTROPY)
        # (3) backward, moving each layer
        step = n_done + k + 1
        _backward(
            parameters, widths, kept, slope, scratch, gradient, bias_gradient, optimiser, rates[k], step
        )
    return losses


@compiled(error_model="numpy")
def _backward(
    parameters: Array,
    widths: Ints,
    kept: Array,
    slope: Array,
    scratch: Array,
    gradient: Array,
    bias_gradient: Array,
    optimiser: Optimiser,
    rate: float,
    step: int,
) -> None:
    """Move every layer, the last one first, by the slopes of the loss by the scores, (n, c): `scratch[0]`."""
    n, spare = len(slope), 1
    offset, low = n * widths[:-1].sum(), len(parameters)
    for layer in range(len(widths) - 2, -1, -1):
        # (1) the gradient of the layer, from its inputs and the slopes by its outputs
        n_in, n_out = widths[layer], widths[layer + 1]
        low -= n_in * n_out + n_out
        offset -= n * n_in
        middle, high = low + n_in * n_out, low + n_in * n_out + n_out
        before = kept[offset : offset + n * n_in].reshape(n, n_in)
        np.dot(before.T, slope, gradient[: n_in * n_out].reshape(n_in, n_out))
        _column_sums(slope, bias_gradient)
        # (2) the slopes by its inputs, for the layer before
        if layer > 0:
            further = scratch[spare, : n * n_in].reshape(n, n_in)
            np.dot(slope, parameters[low:middle].reshape(n_in, n_out).T, further)
            _where_on(further, before)
            slope, spare = further, 1 - spare
        # (3) the layer moves
        _move_between(parameters, low, middle, gradient, optimiser, optimiser.decays[0], rate, step)
        _move_between(parameters, middle, high, bias_gradient, optimiser, optimiser.decays[1], rate, step)


@compiled(error_model="numpy")
def _move_between(
    parameters: Array,
    low: int,
    high: int,
    gradient: Array,
    optimiser: Optimiser,
    decay: float,
    rate: float,
    step: int,
) -> None:
    """Move the parameters low..high by the optimiser's rule."""
    p, v = parameters[low:high], optimiser.velocity[low:high]
    if optimiser.rule == SGD:
        _move(p, v, gradient, rate, decay, optimiser.momentum)
    else:
        s = optimiser.squares[low:high]
        _move_adam(p, v, s, gradient, rate, decay, step, optimiser.rule == ADAMW)


@compiled(error_model="numpy")
def _forward(parameters: Array, widths: Ints, points: Array, batch: Ints, kept: Array) -> Any:
    """The scores of a batch; its points, and behind them the outputs of every layer, are kept."""
    # (1) gather the batch
    n = len(batch)
    offset, low = n * widths[0], 0
    layer_inputs = kept[:offset].reshape(n, widths[0])
    for i in range(n):
        copy(points[batch[i]], layer_inputs[i])
    # (2) layer by layer
    for layer in range(len(widths) - 1):
        n_in, n_out = widths[layer], widths[layer + 1]
        weights = parameters[low : low + n_in * n_out].reshape(n_in, n_out)
        bias = parameters[low + n_in * n_out : low + n_in * n_out + n_out]
        out = kept[offset : offset + n * n_out].reshape(n, n_out)
        np.dot(layer_inputs, weights, out)
        _add_bias(out, bias, layer < len(widths) - 2)
        low, offset, layer_inputs = low + n_in * n_out + n_out, offset + n * n_out, out
    return layer_inputs


@compiled(error_model="numpy")
def _add_bias(out: Array, bias: Array, is_hidden: bool) -> None:
    zero = out.dtype.type(0)
    for i in range(len(out)):
        row = out[i]
        if is_hidden:
            for j in range(len(row)):
                value = row[j] + bias[j]
                row[j] = zero if value < zero else value  # what is not a number stays so, as in torch
        else:
            for j in range(len(row)):
                row[j] += bias[j]


@compiled(error_model="numpy")
def _column_sums(slope: Array, total: Array) -> None:
    n = slope.shape[1]
    copy(slope[0], total)
    for i in range(1, len(slope)):
        row = slope[i]
        for j in range(n):
            total[j] += row[j]


@compiled(error_model="numpy")
def _where_on(slope: Array, before: Array) -> None:
    zero = slope.dtype.type(0)
    for i in range(len(slope)):
        row, here = slope[i], before[i]
        for j in range(len(row)):
            row[j] = row[j] if here[j] > zero else zero


@compiled(error_model="numpy")
def _squares(scores: Array, targets: Array, batch: Ints, slope: Array) -> Any:
    n, c = scores.shape
    total = 0.0
    for i in range(n):
        for j in range(c):
            error = scores[i, j] - targets[batch[i], j]
            total += error * error
            slope[i, j] = 2 * error / (c * n)
    return total / c


@compiled(error_model="numpy")
def _cross_entropies(scores: Array, classes: Ints, batch: Ints, slope: Array, of_probabilities: bool) -> Any:
    n, c = scores.shape
    total = 0.0
    shares = np.empty(c, scores.dtype)
    for i in range(n):
        row, here, k = scores[i], slope[i], classes[batch[i]]
        if of_probabilities:
            _softmax(row, shares)
            row = shares
        total += _softmax(row, here) - row[k]
        here[k] -= 1
        if of_probabilities:
            mean = shares[0] * here[0]
            for j in range(1, c):
                mean += shares[j] * here[j]
            for j in range(c):
                here[j] = shares[j] * (here[j] - mean)
        for j in range(c):
            here[j] /= n
    return total


@compiled(error_model="numpy")
def _softmax(row: Array, shares: Array) -> Any:
    """Fill the shares; the logarithm of the sum of exponentials."""
    top = row[0]
    for j in range(1, len(row)):
        top = max(top, row[j])
    total = row.dtype.type(0)
    for j in range(len(row)):
        shares[j] = math.exp(row[j] - top)
        total += shares[j]
    for j in range(len(row)):
        shares[j] /= total
    return top + math.log(total)


@compiled(error_model="numpy")
def _move(p: Array, v: Array, g: Array, rate: float, decay: float, momentum: float) -> None:
    kind = p.dtype.type
    size, shrink, keep = kind(rate), kind(decay), kind(momentum)
    for i in range(len(p)):
        v[i] = keep * v[i] + (g[i] + shrink * p[i])
        p[i] -= size * v[i]


@compiled(error_model="numpy")
def _move_adam(
    p: Array, v: Array, s: Array, g: Array, rate: float, decay: float, step: int, is_decoupled: bool
) -> None:
    kind = p.dtype.type
    size = kind(rate / (1 - BETA_1**step))
    root = kind(math.sqrt(1 - BETA_2**step))
    first, second, tiny = kind(BETA_1), kind(BETA_2), kind(EPSILON)
    other, another = kind(1 - BETA_1), kind(1 - BETA_2)
    shrink = kind(1 - rate * decay) if is_decoupled else kind(1)
    coupled = kind(0) if is_decoupled else kind(decay)
    for i in range(len(p)):
        slope = g[i] + coupled * p[i]
        v[i] = first * v[i] + other * slope
        s[i] = second * s[i] + another * slope * slope
        p[i] = shrink * p[i] - size * v[i] / (math.sqrt(s[i]) / root + tiny)
