"""Train many networks on the same data: what can be stacked as one program, the rest one by one.

Stacked are MLPs of one shape, as one batched program with a backward pass by hand. The parameters of all R
runs are one array (R, p), the weights of all layers first and then the biases, of which each layer sees its
part as (R, n_in, n_out) and (R, 1, n_out); so are the gradients, and one fused call moves them all. A step of
all runs together is two or three batched products per layer, into memory that is taken once.
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
from inscape.models.base import gradients
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
        self._layers, self._momentum, self._loss = layers, recipes[0].momentum, recipes[0].loss
        runs = [
            torch.cat([p.weight.T.flatten() for p in run] + [p.bias for p in run]).detach() for run in layers
        ]
        self._all = torch.stack(runs)
        self._slopes = torch.zeros_like(self._all)
        self._weights, self._biases = self._parts(self._all)
        self._weight_slopes, self._bias_slopes = self._parts(self._slopes)
        self._rates = self._all.new_tensor([r.learning_rate for r in recipes])[:, None]
        n_weights = sum(w[0].numel() for w in self._weights)
        self._decaying = slice(None) if recipes[0].decay_biases else slice(n_weights)
        decays = [r.weight_decay for r in recipes]
        self._decays = self._all.new_tensor(decays)[:, None] if any(decays) else None
        self._scratch: dict[int, list[Tensor]] = {}
        self._adam: torch.optim.Adam | None = None
        if recipes[0].optimiser != "sgd":
            self._all.grad = self._slopes
            self._decoupled = recipes[0].optimiser == "adamw"
            self._adam = torch.optim.Adam([self._all], lr=recipes[0].learning_rate, fused=True)

    def _parts(self, flat: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """What each layer sees of (R, p): its weights (R, n_in, n_out) and biases (R, 1, n_out)."""
        shapes = [(p.in_features, p.out_features) for p in self._layers[0]]
        sizes = [n * m for n, m in shapes] + [m for _, m in shapes]
        parts = torch.split(flat, sizes, dim=1)
        weights = [part.view(len(part), *shape) for part, shape in zip(parts, shapes, strict=False)]
        return weights, [part[:, None] for part in parts[len(shapes) :]]

    def step(self, x: Tensor, y: Tensor, factor: float) -> Tensor:
        """Move every run by factor times its learning rate, and return its summed loss before, (R,).

        Args:
            x: the batch of each run, (R, b, n_in).
            y: its classes, (R, b), or targets, (R, b, c).
            factor: where the schedule is.
        """
        inputs = [x]
        for weights, bias, out in zip(self._weights, self._biases, self._memory(x.shape[1]), strict=True):
            torch.baddbmm(bias, inputs[-1], weights, out=out)
            inputs.append(out)
            if len(inputs) <= len(self._weights):
                out.clamp_(min=0)
        losses, slope = _loss_and_slope(inputs.pop(), y, self._loss)
        slope.div_(x.shape[1])
        for i in range(len(self._weights) - 1, -1, -1):
            weight_slope, bias_slope = self._weight_slopes[i], self._bias_slopes[i]
            if self._adam is None:
                weight_slope.baddbmm_(inputs[i].transpose(1, 2), slope, beta=self._momentum)
                bias_slope.mul_(self._momentum).add_(slope.sum(1, keepdim=True))
            else:
                torch.bmm(inputs[i].transpose(1, 2), slope, out=weight_slope)
                torch.sum(slope, 1, keepdim=True, out=bias_slope)
            if i > 0:
                back = torch.bmm(slope, self._weights[i].transpose(1, 2))
                slope = torch.ops.aten.threshold_backward(back, inputs[i], 0)
        self._move(factor)
        return losses

    def _memory(self, n: int) -> list[Tensor]:
        """Where the outputs of all layers go, for batches of n points."""
        if n not in self._scratch:
            self._scratch[n] = [w.new_empty(len(w), n, w.shape[2]) for w in self._weights]
        return self._scratch[n]

    def _move(self, factor: float) -> None:
        """Update all parameters by their slopes; with SGD these are velocities."""
        part = self._decaying
        if self._adam is None:
            if self._decays is not None:
                self._slopes[:, part].addcmul_(self._all[:, part], self._decays)
            self._all.addcmul_(self._slopes, self._rates, value=-factor)
            return
        rate = factor * float(self._rates[0])
        self._adam.param_groups[0]["lr"] = rate
        if self._decays is not None:
            if self._decoupled:
                self._all[:, part].mul_(1 - rate * self._decays)
            else:
                self._slopes[:, part].addcmul_(self._all[:, part], self._decays)
        self._adam.step()

    def write_back(self) -> None:
        """Put the parameters into the layers they came from."""
        for r, run in enumerate(self._layers):
            for weights, bias, layer in zip(self._weights, self._biases, run, strict=True):
                layer.weight.copy_(weights[r].T)
                layer.bias.copy_(bias[r, 0])


def _loss_and_slope(scores: Tensor, y: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    """The summed loss of each run, (R,), and its gradient by the scores, (R, b, c)."""
    if y.is_floating_point():
        error, c = scores - y, y.shape[2]
        return error.square().sum((1, 2)) / c, error.mul_(2 / c)
    if kind == "cross-entropy":
        return _cross_entropy(scores, y)
    shares = scores.softmax(2)
    losses, slope = _cross_entropy(shares, y)
    return losses, shares * (slope - (shares * slope).sum(2, keepdim=True))


def _cross_entropy(scores: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The summed loss of each run, (R,), and its gradient by the scores, (R, b, c)."""
    logs = torch.log_softmax(scores, 2)
    index = y.unsqueeze(2)
    losses = -logs.gather(2, index).sum((1, 2))
    slope = logs.exp_()
    slope.scatter_add_(2, index, slope.new_full((1, 1, 1), -1).expand_as(index))
    return losses, slope


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
            total += stack.step(x[rows], y[rows], factor)
            step += 1
            if observe is not None:
                observe(step, stack.write_back)
        losses.append((total / n).tolist())
        show(epoch + 1, common.epochs)
    stack.write_back()
    return [_history([epoch[r] for epoch in losses], per_epoch, seed) for r, seed in enumerate(seeds)]


Draw = Callable[[int], tuple[npt.NDArray[Any], npt.NDArray[Any]]]


@torch.no_grad()
def train_on_fresh(
    module: nn.Module, draw: Draw, recipe: Recipe, *, n_steps: int, monitor: StepMonitor | None = None
) -> float:
    """Train a plain MLP in place on points that are never seen twice; the mean loss of the last step.

    Args:
        module: a plain MLP, as `train_many` stacks them.
        draw: points and their classes or targets, as many as it is told.
        recipe: how; its epochs do not matter, and its learning rate stays what it is.
        n_steps: how many steps.
        monitor: as in `train_many`.
    """
    parts = mlp_parts(module)
    if parts is None or not can_stack(recipe) or recipe.schedule != "constant":
        raise InscapeError("fresh points need a plain MLP, and a constant recipe without augmentation")
    first, layers = parts
    before, like = nn.Sequential(*first), layers[0].weight
    stack = Stack([layers], [recipe])
    watch = None if monitor is None else _Watch([module], [monitor])
    losses = like.new_zeros(1)
    for step in range(n_steps + 1):
        if watch is not None:
            watch(step, stack.write_back)
        if step < n_steps:
            x, y = as_tensors(*draw(recipe.batch_size), like.dtype)
            losses = stack.step(before(x)[None], y[None], 1.0)
    stack.write_back()
    module.eval()
    return float(losses[0]) / recipe.batch_size


def _history(losses: list[float], per_epoch: int, seed: int) -> History:
    lost = next((i for i, loss in enumerate(losses) if not math.isfinite(loss)), None)
    kept = losses if lost is None else [*losses[:lost], math.nan]
    status = COMPLETE if lost is None else DIVERGED
    return History(losses=tuple(kept), n_steps=per_epoch * len(kept), status=status, seed=seed)
