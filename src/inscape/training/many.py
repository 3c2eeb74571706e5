"""Train many networks on the same data: what can be stacked as one program, the rest one by one."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt
import torch
from torch import nn

from inscape.errors import InscapeError
from inscape.models.gradients import gradients
from inscape.progress import Meter, meter
from inscape.seeding import as_seed
from inscape.training.history import History
from inscape.training.loop import StepMonitor, as_tensors, check_classes, train
from inscape.training.networks.shared_layers import Pixels
from inscape.training.recipe import Recipe
from inscape.training.stacked import can_stack, mlp_parts, train_stacked


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
        progress: True for a bar on stderr, or a function of (networks done, networks).

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
