"""Train many networks on the same data: what can be stacked as one program, the rest one by one.

Stacked are MLPs of one shape, as one batched program with a backward pass by hand. Layer l of all R runs is
one array (R, n_in + 1, n_out), whose last row is the bias, since every layer's input carries a column of
ones. A step of all runs together is then two or three batched products per layer; with SGD the one that gives
the gradient adds it to the velocity of the momentum at once.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor, nn

from inscape.errors import InscapeError
from inscape.models.gradients import gradients
from inscape.progress import Meter, meter
from inscape.seeding import as_seed
from inscape.status import COMPLETE, DIVERGED
from inscape.training.loop import StepMonitor, as_tensors, check_classes, train
from inscape.training.networks.shared_layers import Pixels
from inscape.training.recipe import History, Recipe, batch_sizes


def train_many(
    modules: Sequence[nn.Module],
    x: npt.NDArray[Any],
    y: npt.NDArray[Any],
    recipes: Sequence[Recipe],
    *,
    seeds: Sequence[int],
    monitors: Sequence[StepMonitor] | None = None,
    progress: bool | Meter | None = None,
) -> list[History]:
    """Train each module in place by its own recipe and seed; the result of each is that of `train`.

    Plain MLPs of one shape whose recipes agree in all but the learning rate, the batch size and the weight
    decay train together (without augmentation, by SGD, Adam or AdamW; with the last two only those of one
    learning rate), those of one batch size as one batched program, which is several times faster on a CPU;
    every other module trains alone. Sums are taken in another order than in `train`, so results agree up
    to rounding, which training amplifies.

    Args:
        modules: the networks, each its own object.
        x: points (n, ...).
        y: their classes, integers (n,); or targets, real numbers (n, c).
        recipes: one for each module.
        seeds: one for each module, as in `train`.
        monitors: one for each module, as in `train`; one that also has `due(step)`, as a `Monitor`, is asked
            first, which spares writing back the weights of a stacked program at the other steps.
        progress: None for a bar after two seconds, False for none, or a function of
            (networks done, networks).

    >>> import numpy as np
    >>> from inscape.training.networks import mlp
    >>> x = np.random.default_rng(0).normal(size=(40, 2))
    >>> nets = [mlp(2, (8,), 2, random_state=i) for i in range(3)]
    >>> recipes = [Recipe(rate, 10, 5) for rate in (0.1, 0.2, 0.3)]
    >>> [h.n_steps for h in train_many(nets, x, x[:, 0] > 0, recipes, seeds=[0, 1, 2])]
    [20, 20, 20]
    """
    if not len(modules) == len(recipes) == len(seeds):
        raise InscapeError(
            f"{len(modules)} modules, {len(recipes)} recipes, {len(seeds)} seeds: expected as many"
        )
    if monitors is not None and len(monitors) != len(modules):
        raise InscapeError(f"{len(modules)} modules, {len(monitors)} monitors: expected as many")
    if len({id(m) for m in modules}) < len(modules):
        raise InscapeError("a module is given twice: each is trained in place and needs its own")
    seeds = [as_seed(seed) for seed in seeds]
    results: dict[int, History] = {}
    with gradients(), meter(progress, "networks") as show:
        for group in groups(modules, recipes):
            i = group[0]
            if not _is_stackable(modules[i], recipes[i]):
                monitor = None if monitors is None else monitors[i]
                results[i] = train(modules[i], x, y, recipes[i], random_state=seeds[i], monitor=monitor)
            else:
                chosen = [modules[i] for i in group]
                watch = None if monitors is None else _Watch(chosen, [monitors[i] for i in group])
                histories = _together(
                    chosen, x, y, [recipes[i] for i in group], [seeds[i] for i in group], watch
                )
                results |= zip(group, histories, strict=True)
            show(len(results), len(modules))
    return [results[i] for i in range(len(modules))]


class _Watch:
    """The monitors of modules that train together; the weights are written back when one is due."""

    def __init__(self, modules: list[nn.Module], monitors: list[StepMonitor]) -> None:
        self._pairs = list(zip(modules, monitors, strict=True))

    def __call__(self, step: int, write_back: Callable[[], None]) -> None:
        due = [(net, monitor) for net, monitor in self._pairs if getattr(monitor, "due", _always)(step)]
        if due:
            write_back()
        with gradients():
            for module, monitor in due:
                monitor.step(module, step)


def _always(step: int) -> bool:
    return True


def _is_stackable(module: nn.Module, recipe: Recipe) -> bool:
    return mlp_parts(module) is not None and can_stack(recipe)


def groups(modules: Sequence[nn.Module], recipes: Sequence[Recipe]) -> list[list[int]]:
    """Which modules train together: their positions, in groups."""
    groups: dict[Any, list[int]] = {}
    for i, (module, recipe) in enumerate(zip(modules, recipes, strict=True)):
        key: Any = i
        parts = mlp_parts(module)
        if parts is not None and can_stack(recipe):
            first, linear = parts
            shape = tuple((layer.in_features, layer.out_features) for layer in linear)
            place = (linear[0].weight.dtype, str(linear[0].weight.device))
            before = tuple((p.mean.tolist(), p.std.tolist()) for p in first if isinstance(p, Pixels))
            rate = 0.0 if recipe.optimiser == "sgd" else recipe.learning_rate
            key = (shape, place, str(before), replace(recipe, learning_rate=rate, weight_decay=0.0))
        groups.setdefault(key, []).append(i)
    return list(groups.values())


def _together(
    modules: list[nn.Module],
    x: npt.NDArray[Any],
    y: npt.NDArray[Any],
    recipes: list[Recipe],
    seeds: list[int],
    watch: _Watch | None,
) -> list[History]:
    parts = [found for module in modules if (found := mlp_parts(module)) is not None]
    first, layers = parts[0][0], [linear for _, linear in parts]
    weight = layers[0][0].weight
    points, labels = as_tensors(x, y, weight.dtype)
    check_classes(labels, layers[0][-1].out_features)
    with torch.no_grad():
        flat = nn.Sequential(*first)(points.to(weight.device))
    histories = train_stacked(
        layers, flat, labels.to(weight.device), recipes, seeds, lambda done, total: None, watch
    )
    for module in modules:
        module.eval()
    return histories


Observe = Callable[[int, Callable[[], None]], None]


def mlp_parts(module: nn.Module) -> tuple[list[nn.Module], list[nn.Linear]] | None:
    """What a plain MLP does to its input first, and its linear layers; None if it is something else."""
    if not isinstance(module, nn.Sequential):
        return None
    parts = list(module)
    first: list[nn.Module] = [p for p in parts if isinstance(p, Pixels | nn.Flatten)]
    rest = parts[len(first) :]
    linear = [p for p in rest[::2] if isinstance(p, nn.Linear) and p.bias is not None]
    is_plain = (
        any(isinstance(p, nn.Flatten) for p in first)
        and parts[: len(first)] == first
        and len(linear) == (len(rest) + 1) // 2
        and len(rest) % 2 == 1
        and all(isinstance(p, nn.ReLU) for p in rest[1::2])
        and all(a.out_features == b.in_features for a, b in pairwise(linear))
    )
    return (first, linear) if is_plain else None


def can_stack(recipe: Recipe) -> bool:
    """Whether the batched program knows all that the recipe asks for."""
    return (
        recipe.optimiser in ("sgd", "adam", "adamw")
        and not (recipe.mixup or recipe.crop or recipe.flip)
        and (recipe.stop_loss is None)
    )


class Stack:
    """The parameters of R MLPs of the same shape, and one step of all of them."""

    def __init__(self, layers: Sequence[Sequence[nn.Linear]], recipes: Sequence[Recipe]) -> None:
        """Take the linear layers of each run, and how it is trained; with Adam all learning rates agree."""
        self._layers, self._momentum = layers, recipes[0].momentum
        self._weights = [
            torch.stack([torch.cat([part.weight.T, part.bias[None]]) for part in same]).contiguous()
            for same in zip(*layers, strict=True)
        ]
        self._velocities = [torch.zeros_like(w) for w in self._weights]
        like = self._weights[0]
        self._rates = like.new_tensor([r.learning_rate for r in recipes])[:, None, None]
        decays = [r.weight_decay for r in recipes]
        self._decays = like.new_tensor(decays)[:, None, None] if any(decays) else None
        self._adam: _Adam | None = None
        if recipes[0].optimiser != "sgd":
            self._adam = _Adam(self._weights, self._velocities, self._decays, recipes[0])

    def step(self, x: Tensor, y: Tensor, factor: float) -> Tensor:
        """Move every run by factor times its learning rate, and return its summed loss before, (R,).

        Args:
            x: the batch of each run with a column of ones, (R, b, n_in + 1).
            y: its classes, (R, b), or targets, (R, b, c).
            factor: where the schedule is.
        """
        inputs, sums = [x], []
        for weights in self._weights[:-1]:
            sums.append(torch.bmm(inputs[-1], weights))
            inputs.append(_rectified(sums[-1]))
        scores = torch.bmm(inputs[-1], self._weights[-1])
        losses, slope = (_squares if y.is_floating_point() else _cross_entropy)(scores, y)
        slope.div_(x.shape[1])
        for i in range(len(self._weights) - 1, -1, -1):
            weights, velocity = self._weights[i], self._velocities[i]
            if self._adam is None:
                velocity.baddbmm_(inputs[i].transpose(1, 2), slope, beta=self._momentum)
            else:
                torch.bmm(inputs[i].transpose(1, 2), slope, out=velocity)
            if i > 0:
                back = torch.bmm(slope, weights[:, :-1].transpose(1, 2))
                slope = torch.ops.aten.threshold_backward(back, sums[i - 1], 0)
            if self._adam is None:
                if self._decays is not None:
                    velocity.addcmul_(weights, self._decays)
                weights.addcmul_(velocity, self._rates, value=-factor)
        if self._adam is not None:
            self._adam.step(factor)
        return losses

    def write_back(self) -> None:
        """Put the parameters into the layers they came from."""
        for r, run in enumerate(self._layers):
            for weights, layer in zip(self._weights, run, strict=True):
                layer.weight.copy_(weights[r, :-1].T)
                layer.bias.copy_(weights[r, -1])


def _cross_entropy(scores: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The summed loss of each run, (R,), and its gradient by the scores, (R, b, c)."""
    logs = torch.log_softmax(scores, 2)
    index = y.unsqueeze(2)
    losses = -logs.gather(2, index).sum((1, 2))
    slope = logs.exp_()
    slope.scatter_add_(2, index, slope.new_full((1, 1, 1), -1).expand_as(index))
    return losses, slope


def _squares(scores: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The same for the square of the error, its mean over the targets of a point."""
    error, c = scores - y, y.shape[2]
    return error.square().sum((1, 2)) / c, error.mul_(2 / c)


class _Adam:
    """One step of Adam or AdamW on stacked weights, each run with its own weight decay."""

    def __init__(
        self, weights: list[Tensor], gradients: list[Tensor], decays: Tensor | None, recipe: Recipe
    ) -> None:
        self._weights, self._gradients, self._decays = weights, gradients, decays
        self._rate, self._decoupled = recipe.learning_rate, recipe.optimiser == "adamw"
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient
        self._optimiser = torch.optim.Adam(weights, lr=recipe.learning_rate, fused=True)

    def step(self, factor: float) -> None:
        """Move by the gradients, with factor times the learning rate."""
        rate = factor * self._rate
        self._optimiser.param_groups[0]["lr"] = rate
        if self._decays is not None:
            for weight, gradient in zip(self._weights, self._gradients, strict=True):
                if self._decoupled:
                    weight.mul_(1 - rate * self._decays)
                else:
                    gradient.addcmul_(weight, self._decays)
        self._optimiser.step()


def _rectified(sums: Tensor) -> Tensor:
    """ReLU, with a column of ones behind."""
    r, b, n = sums.shape
    out = sums.new_empty(r, b, n + 1)
    torch.clamp_min(sums, 0, out=out[:, :, :n])
    out[:, :, n] = 1
    return out


@torch.no_grad()
def train_stacked(
    layers: Sequence[Sequence[nn.Linear]],
    x: Tensor,
    y: Tensor,
    recipes: Sequence[Recipe],
    seeds: Sequence[int],
    show: Meter,
    observe: Observe | None = None,
) -> list[History]:
    """Train MLPs that share everything but seed, learning rate and weight decay, on flat points x (n, d).

    `observe` is called with the number of steps taken and what writes the weights back.
    """
    common, n = recipes[0], len(x)
    sizes = batch_sizes(n, min(common.batch_size, n))
    per_epoch = len(sizes)
    stack = Stack(layers, recipes)
    points = torch.cat([x, x.new_ones(n, 1)], 1)
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    unit = replace(common, learning_rate=1.0)
    losses: list[list[float]] = []
    step = 0
    if observe is not None:
        observe(step, stack.write_back)
    for epoch in range(common.epochs):
        order = torch.stack([torch.randperm(n, generator=g) for g in generators]).to(x.device)
        total = x.new_zeros(len(layers))
        for rows in order.split(sizes, 1):  # type: ignore[no-untyped-call]
            factor = unit.rate_at(step, common.epochs * per_epoch, per_epoch)
            total += stack.step(points[rows], y[rows], factor)
            step += 1
            if observe is not None:
                observe(step, stack.write_back)
        losses.append((total / n).tolist())
        show(epoch + 1, common.epochs)
    stack.write_back()
    return [_history([epoch[r] for epoch in losses], per_epoch, seed) for r, seed in enumerate(seeds)]


def _history(losses: list[float], per_epoch: int, seed: int) -> History:
    lost = next((i for i, loss in enumerate(losses) if not math.isfinite(loss)), None)
    kept = losses if lost is None else [*losses[:lost], math.nan]
    status = COMPLETE if lost is None else DIVERGED
    return History(losses=tuple(kept), n_steps=per_epoch * len(kept), status=status, seed=seed)
