"""Train many networks on the same data: plain MLPs in a compiled program, the rest in the plain loop."""

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from inscape.arguments import renamed
from inscape.arrays import Array, Floats, Points, Streamed
from inscape.errors import InscapeError
from inscape.models.base import gradients
from inscape.progress import Meter, meter
from inscape.seeding import RandomState, as_seed
from inscape.status import COMPLETE, DIVERGED
from inscape.training.checkpoint import Checkpoint, State, restored
from inscape.training.loop import StepMonitor, as_tensors, check_classes, train
from inscape.training.networks.shared_layers import Pixels
from inscape.training.recipe import LOSSES, History, Recipe, batch_sizes

RULES = ("sgd", "adam", "adamw")
"""The optimisers of the compiled program."""
STEPS_DRAWN_TOGETHER = 256
"""Steps on fresh points whose points are drawn at one time, at most."""


@renamed(seeds="random_states")
def train_many(
    modules: Sequence[nn.Module],
    x: Points,
    y: Array,
    recipes: Sequence[Recipe],
    *,
    random_states: Sequence[RandomState],
    monitors: Sequence[StepMonitor] | None = None,
    checkpoints: Sequence[Checkpoint | None] | None = None,
    progress: bool | Meter | None = None,
) -> list[History]:
    """Train each module in place by its own recipe and seed; the result of each is that of `train`.

    A plain MLP on the processor that is trained without augmentation by SGD, Adam or AdamW takes its steps in
    a compiled program, which is several times faster; every other module trains as in `train`. Sums are
    taken in another order there, so results agree up to rounding, which training amplifies.

    Args:
        modules: the networks, each its own object.
        x: points (n, ...).
        y: their classes, integers (n,); or targets, real numbers (n, c).
        recipes: one for each module.
        random_states: one for each module, as in `train`.
        monitors: one for each module, as in `train`; one that also has `due(step)`, as a `Monitor`, is asked
            first, which spares leaving the compiled program at the other steps.
        checkpoints: for each module a file from which its training goes on if it was killed, the `rows` of
            its monitor too; only the compiled program has them.
        progress: None for a bar after two seconds, False for none, or a function of
            (networks done, networks).

    >>> import numpy as np
    >>> from inscape.training.networks import mlp
    >>> x = np.random.default_rng(0).normal(size=(40, 2))
    >>> nets = [mlp(2, (8,), 2, random_state=i) for i in range(3)]
    >>> recipes = [Recipe(rate, 10, 5) for rate in (0.1, 0.2, 0.3)]
    >>> [h.n_steps for h in train_many(nets, x, x[:, 0] > 0, recipes, random_states=[0, 1, 2])]
    [20, 20, 20]
    """
    if not len(modules) == len(recipes) == len(random_states):
        raise InscapeError(
            f"{len(modules)} modules, {len(recipes)} recipes, {len(random_states)} random states: "
            "expected as many"
        )
    if monitors is not None and len(monitors) != len(modules):
        raise InscapeError(f"{len(modules)} modules, {len(monitors)} monitors: expected as many")
    if len({id(m) for m in modules}) < len(modules):
        raise InscapeError("a module is given twice: each is trained in place and needs its own")
    seeds = [as_seed(state) for state in random_states]
    watches = [None] * len(modules) if monitors is None else monitors
    kept = [None] * len(modules) if checkpoints is None else checkpoints
    histories: list[History] = []
    with gradients(), meter(progress, "networks") as show:
        for module, recipe, seed, monitor, checkpoint in zip(
            modules, recipes, seeds, watches, kept, strict=True
        ):
            if is_compilable(module, recipe):
                histories.append(_train_compiled(module, x, y, recipe, seed, monitor, checkpoint))
            else:
                histories.append(train(module, x, y, recipe, random_state=seed, monitor=monitor))
            show(len(histories), len(modules))
    return histories


Draw = Callable[[int], tuple[Array, Array]]
"""Draws points; with a checkpoint it also has `state()`, plain JSON, and `restore(state)`."""


@torch.no_grad()
def train_on_fresh(
    module: nn.Module,
    draw: Draw,
    recipe: Recipe,
    *,
    n_steps: int,
    monitor: StepMonitor | None = None,
    checkpoint: Checkpoint | None = None,
) -> float:
    """Train a plain MLP in place on points that are never seen twice; the mean loss of the last step.

    Args:
        module: a plain MLP, as `train_many` compiles them.
        draw: points and their classes or targets, as many as it is told.
        recipe: how; its epochs do not matter, and its learning rate stays what it is.
        n_steps: how many steps.
        monitor: as in `train_many`.
        checkpoint: a file from which training goes on if it was killed.
    """
    if not is_compilable(module, recipe) or recipe.schedule != "constant":
        raise InscapeError("fresh points need a plain MLP, and a constant recipe without augmentation")
    program = _Program(module, recipe, monitor)
    step, size, loss = 0, recipe.batch_size, math.nan
    if (saved := program.resume(checkpoint)) is not None:
        step, loss = saved["n_done"], saved["loss"]
        draw.restore(saved["draw"])  # type: ignore[attr-defined]
    else:
        program.show_monitor(step)
    while step < n_steps:
        count = program.steps_to_measure(step, min(n_steps - step, STEPS_DRAWN_TOGETHER))
        drawn = [as_tensors(*draw(size), program.dtype) for _ in range(count)]
        x, y = (torch.cat(draws) for draws in zip(*drawn, strict=True))
        rates = [recipe.learning_rate] * count
        loss = program.steps(program.flat(x), y, torch.arange(len(x)), [size] * count, rates)[-1]
        step += count
        program.show_monitor(step)
        if checkpoint is not None and checkpoint.is_due():
            drawn_so_far = draw.state()  # type: ignore[attr-defined]
            checkpoint.save(program.state() | {"loss": float(loss), "draw": drawn_so_far})
    program.write_back()
    module.eval()
    return float(loss) / size


@torch.no_grad()
def _train_compiled(
    module: nn.Module,
    x: Any,
    y: Array,
    recipe: Recipe,
    seed: int,
    monitor: StepMonitor | None,
    checkpoint: Checkpoint | None,
) -> History:
    program = _Program(module, recipe, monitor)
    held = np.asarray(x) if isinstance(x, Streamed) else x  # the compiled loop reads all of it at every step
    points, labels = as_tensors(held, y, program.dtype)
    flat, n = program.flat(points), len(points)
    sizes = batch_sizes(n, min(recipe.batch_size, n))
    ends = [0, *accumulate(sizes)]
    generator = torch.Generator().manual_seed(seed)
    losses: list[float] = []
    n_steps, per_epoch = recipe.epochs * len(sizes), len(sizes)
    if (saved := program.resume(checkpoint)) is not None:
        losses = saved["losses"].tolist()
        generator.set_state(torch.from_numpy(saved["generator"]))
    else:
        program.show_monitor(0)
    for first in range(per_epoch * len(losses), n_steps, per_epoch):
        order, total, i = torch.randperm(n, generator=generator), 0.0, 0
        while i < per_epoch:
            k = i + program.steps_to_measure(first + i, per_epoch - i)
            rates = [recipe.rate_at(first + j, n_steps, per_epoch) for j in range(i, k)]
            total += float(program.steps(flat, labels, order[ends[i] : ends[k]], sizes[i:k], rates).sum())
            program.show_monitor(first + k)
            i = k
        losses.append(total / n if math.isfinite(total) else math.nan)
        if not math.isfinite(total):
            break
        if checkpoint is not None and checkpoint.is_due():
            order_of = generator.get_state().numpy()
            checkpoint.save(program.state() | {"losses": np.array(losses), "generator": order_of})
    program.write_back()
    module.eval()
    status = COMPLETE if math.isfinite(losses[-1]) else DIVERGED
    return History(losses=tuple(losses), n_steps=per_epoch * len(losses), status=status, seed=seed)


def is_compilable(module: nn.Module, recipe: Recipe) -> bool:
    """Whether the compiled program knows the module, and all that the recipe asks for."""
    asks_more = recipe.mixup or recipe.crop or recipe.flip or recipe.stop_loss is not None
    return not asks_more and recipe.optimiser in RULES and _layers_of_mlp(module) is not None


def _layers_of_mlp(module: nn.Module) -> tuple[nn.Sequential, list[nn.Linear]] | None:
    """What a plain MLP does to its input first, and its linear layers; None if it is something else."""
    if not isinstance(module, nn.Sequential):
        return None
    modules = list(module)
    first = [p for p in modules if isinstance(p, Pixels | nn.Flatten)]
    rest = modules[len(first) :]
    linear = [p for p in rest[::2] if isinstance(p, nn.Linear) and p.bias is not None]
    is_plain = (
        any(isinstance(p, nn.Flatten) for p in first)
        and modules[: len(first)] == first
        and len(linear) == (len(rest) + 1) // 2
        and len(rest) % 2 == 1
        and all(isinstance(p, nn.ReLU) for p in rest[1::2])
        and all(a.out_features == b.in_features for a, b in pairwise(linear))
    )
    weights = [p for layer in linear for p in layer.parameters()]
    kinds = {(p.device.type, p.dtype, p.requires_grad, p.is_inference()) for p in weights}
    known = [{("cpu", kind, True, False)} for kind in (torch.float32, torch.float64)]
    return (nn.Sequential(*first), linear) if is_plain and kinds in known else None


class _Program:
    """A plain MLP in its compiled program, what the optimiser remembers of it, and who measures it."""

    def __init__(self, module: nn.Module, recipe: Recipe, monitor: StepMonitor | None) -> None:
        from inscape.training.descent_kernels import Optimiser

        layers = _layers_of_mlp(module)
        assert layers is not None
        self._module, self._recipe, self._monitor = module, recipe, monitor
        self._blas = _blas()
        self._before, self._layers = layers
        self.dtype = self._layers[0].weight.dtype
        flat = [v.detach().flatten() for p in self._layers for v in (p.weight.T, p.bias)]
        self._parameters = torch.cat(flat).numpy()
        self._widths = np.array([self._layers[0].in_features, *(p.out_features for p in self._layers)])
        self._optimiser = Optimiser(
            rule=RULES.index(recipe.optimiser),
            velocity=np.zeros_like(self._parameters),
            squares=np.zeros_like(self._parameters),
            decays=recipe.weight_decay * np.array([1.0, float(recipe.decay_biases)]),
            momentum=recipe.momentum,
        )
        self._n_done = 0

    def flat(self, x: Tensor) -> Tensor:
        """Points as the first layer sees them, (n, d)."""
        seen: Tensor = self._before(x)
        return seen.contiguous()

    def steps(
        self, x: Tensor, y: Tensor, order: Tensor, sizes: Sequence[int], rates: Sequence[float]
    ) -> Floats:
        """Take a step for each batch; the loss of each before its step, summed over its points.

        Args:
            x: flat points, (n, d).
            y: their classes, (n,), or targets, (n, c).
            order: the indices of the points, batch after batch.
            sizes: of the batches.
            rates: the learning rate of each step.
        """
        from inscape.training.descent_kernels import run_steps

        check_classes(y, int(self._widths[-1]))
        has_targets = y.is_floating_point()
        with self._blas.limit(limits=1, user_api="blas"):  # of such small products threads only wait
            losses: Floats = run_steps(
                self._parameters,
                self._optimiser,
                self._widths,
                x.numpy(),
                np.empty(0, np.int64) if has_targets else y.contiguous().numpy(),
                y.contiguous().numpy() if has_targets else x[:0].numpy(),
                order.numpy(),
                np.array(sizes),
                np.array(rates),
                self._n_done,
                0 if has_targets else 1 + LOSSES.index(self._recipe.loss),
            )
        self._n_done += len(sizes)
        return losses

    def steps_to_measure(self, step: int, most: int) -> int:
        """How many steps from here until the monitor measures next, or `most`."""
        return next((i for i in range(1, most) if self._is_due(step + i)), most)

    def show_monitor(self, step: int) -> None:
        """Show the module to the monitor, if it is due."""
        if self._monitor is not None and self._is_due(step):
            self.write_back()
            with gradients():
                self._monitor.step(self._module, step)

    def _is_due(self, step: int) -> bool:
        return self._monitor is not None and bool(getattr(self._monitor, "due", _always)(step))

    def state(self) -> State:
        """All that the next step depends on, and the rows of the monitor."""
        rows = getattr(self._monitor, "rows", None)
        return self._arrays() | {"n_done": self._n_done, "rows": rows}

    def resume(self, checkpoint: Checkpoint | None) -> State | None:
        """Go on from a checkpoint, if there is one: its state, or None."""
        state = None if checkpoint is None else checkpoint.load()
        if state is None:
            return None
        restored(self._arrays(), state)
        self._n_done = state["n_done"]
        if state["rows"] is not None:
            self._monitor.rows[:] = state["rows"]  # type: ignore[union-attr]
        return state

    def _arrays(self) -> dict[str, Array]:
        memory = {"velocity": self._optimiser.velocity, "squares": self._optimiser.squares}
        return {"parameters": self._parameters} | memory

    def write_back(self) -> None:
        """Put the parameters into the layers they came from."""
        rest = torch.from_numpy(self._parameters)
        for layer in self._layers:
            n, m = layer.weight.numel(), len(layer.bias)
            layer.weight.copy_(rest[:n].view(layer.weight.T.shape).T)
            layer.bias.copy_(rest[n : n + m])
            rest = rest[n + m :]


def _blas() -> Any:
    """What sets the threads of the library whose products the compiled program calls."""
    import scipy.linalg  # noqa: F401 - which brings that library
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _always(step: int) -> bool:
    return True
