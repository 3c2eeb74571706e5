"""The compiled program of plain MLPs against the plain loop in CPU time: many small networks, and one."""

import copy
import time
from functools import partial
from itertools import product

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import nn

from benchmarks import timing
from benchmarks.timing import report
from inscape.arrays import Floats
from inscape.training import load_data
from inscape.training.loop import train
from inscape.training.many import train_many
from inscape.training.networks import mlp
from inscape.training.recipe import Recipe

best_times = partial(timing.best_times, clock=time.process_time)
N_TRAIN = 600
N_ROWS, STEPS = 1024, 320
EPOCHS = 3
N_STACKED = 6
RATES, SIZES, DECAYS = (0.1, 0.03, 0.01), (16, 32, 64), (1e-4, 1e-5, 0.0)


def networks() -> tuple[list[nn.Module], list[Recipe]]:
    """27 MLPs of 64-128-128-10 and how each is trained."""
    recipes = [Recipe(r, b, EPOCHS, weight_decay=w) for r, b, w in product(RATES, SIZES, DECAYS)]
    return [mlp(64, (128, 128), 10, random_state=i) for i in range(len(recipes))], recipes


def main() -> None:
    """Print the ratio of the times and how far the results are apart."""
    torch.set_num_threads(1)
    threadpool_limits(1, user_api="blas")  # one thread for all that is compared
    data = load_data("digits")
    assert data.y is not None
    x, y = data.x[:N_TRAIN], data.y[:N_TRAIN]
    nets, recipes = networks()
    seeds = list(range(len(nets)))

    def one_by_one(nets: list[nn.Module]) -> None:
        for net, recipe, seed in zip(nets, recipes, seeds, strict=True):
            train(net, x, y, recipe, random_state=seed)

    def together(nets: list[nn.Module]) -> None:
        train_many(nets, x, y, recipes, random_states=seeds)

    one, many = best_times(
        partial(one_by_one, copy.deepcopy(nets)), partial(together, copy.deepcopy(nets)), repeats=3
    )
    print(f"27 MLPs of 64-128-128-10, {EPOCHS} epochs of {N_TRAIN} digits: {one:.2f} s and {many:.2f} s")
    report("the plain loop, over the compiled program", one / many, "at least 4")
    a, b = ([net.double() for net in copy.deepcopy(nets)] for _ in range(2))
    one_by_one(a)
    together(b)
    apart = max(
        float((p - q).detach().abs().max())
        for m, n in zip(a, b, strict=True)
        for p, q in zip(m.parameters(), n.parameters(), strict=True)
    )
    report("largest difference of a weight in float64, in units of 1e-8", apart / 1e-8, "at most 1", "")
    _one_network()


def _one_network() -> None:
    """A step of the network that the papers train longest, 784-200-200-200-200-10 in batches of 64."""
    rng = np.random.default_rng(0)
    x, y = rng.random((N_ROWS, 784), dtype=np.float32), rng.integers(10, size=N_ROWS)
    recipe = Recipe(1e-4, 64, STEPS * 64 // N_ROWS, optimiser="adamw", weight_decay=0.01, schedule="constant")

    def net() -> nn.Module:
        return mlp(784, (200,) * 4, 10, random_state=0)

    plain, compiled, products = (
        1e3 * seconds / STEPS
        for seconds in best_times(
            lambda: train(net(), x, y, recipe, random_state=0),
            lambda: train_many([net()], x, y, [recipe], random_states=[0]),
            partial(
                _products,
                [p.weight.detach().numpy().T.copy() for p in net().modules() if isinstance(p, nn.Linear)],
            ),
            repeats=3,
        )
    )
    print(
        f"4x200 on 784 inputs, a step: {plain:.2f} ms and {compiled:.2f} ms; its products: {products:.2f} ms"
    )
    report("autograd and the optimiser of torch, over the compiled program", plain / compiled, "at least 2")
    report("the compiled program, over its matrix products alone", compiled / products, "at most 1.6")
    one, stacked = best_times(partial(_layer_products, 1), partial(_layer_products, N_STACKED), repeats=5)
    share = stacked / (N_STACKED * one)
    report(
        f"the products of {N_STACKED} networks as one stack, over one by one", share, "no bar: why we do not"
    )


def _layer_products(n: int) -> None:
    """The product of a layer of 200 with a batch of 64, of n networks in one call; as many calls as steps."""
    a, b = torch.ones(n, 64, 200), torch.ones(n, 200, 200)
    out = torch.empty(n, 64, 200)
    for _ in range(STEPS):
        torch.bmm(a, b, out=out)


def _products(weights: list[Floats]) -> None:
    """The matrix products of as many steps, which no program can do without."""
    sides = [np.ones((64, w.shape[0]), np.float32) for w in weights] + [np.ones((64, 10), np.float32)]
    slopes, backs = [np.empty_like(w) for w in weights], [np.empty_like(s) for s in sides]
    for _ in range(STEPS):
        for i, w in enumerate(weights):
            np.dot(sides[i], w, out=backs[i + 1])
            np.dot(sides[i].T, sides[i + 1], out=slopes[i])
            if i > 0:
                np.dot(sides[i + 1], w.T, out=backs[i])
