"""Adversarial accuracy: the fraction of the points that stays right under attack.

What high and low mean: a high value says that no small change that this attack found flips a right
prediction. When it does not hold: an attack gives an upper bound, a stronger one (more steps, other losses)
may find more; gradients that vanish or are masked stop the attack, not the adversary (see `loss`); and
values compare only at equal norm, eps, steps and input scale.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from inscape.arguments import positive_number, whole_number
from inscape.arrays import Array, Bools, Ints
from inscape.budget import BUDGET, as_budget, within_budget
from inscape.errors import DataError, MeasureError, NotApplicableError, PartitionError, unknown_name
from inscape.measures.accuracy import check_columns, class_columns, correct
from inscape.measures.measurement import Measurement, labelled_points, measuring, wilson
from inscape.models import Model, wrap
from inscape.pictures import Drawn
from inscape.progress import Meter, meter
from inscape.provenance import Provenance
from inscape.seeding import RandomState, as_seed

if TYPE_CHECKING:
    from inscape.models.device import Device

NORMS = ("linf", "l2")
LOSSES = ("margin", "softmax-cross-entropy")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AdversarialAccuracy(Measurement, Drawn):
    """The fraction of points that are right before and during an attack.

    Attributes:
        clean: the accuracy without attack.
        robust: whether each point stayed right, (n,).
    """

    measure: ClassVar[str] = "adversarial_accuracy"

    clean: float
    robust: Bools

    def _draw(self, ax: Any) -> Any:
        """Accuracy with and without attack."""
        from inscape.drawing.measures import draw_layers

        both = np.array([self.clean, self.value])
        title = f"{self.provenance.model}, {self.settings['norm']} eps = {self.settings['eps']:g}"
        ax = draw_layers(both, ["clean", "attacked"], ylabel="accuracy", title=title, ax=ax)
        ax.set_xlabel("")
        ax.set_ylim(0, 1)
        return ax


def adversarial_accuracy(
    model: Any,
    x: Any,
    y: npt.ArrayLike | None = None,
    *,
    eps: float,
    steps: int,
    step_size: float,
    norm: str = "linf",
    loss: str = "margin",
    box: tuple[float, float] | None = None,
    random_start: bool = True,
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
    budget: float | None = BUDGET,
) -> AdversarialAccuracy:
    """The accuracy under projected gradient ascent of the loss within eps of each point (Madry et al. 2018).

    x <- P(x + step_size s), where s is the sign of the gradient of the cross-entropy ("linf") or that
    gradient over its norm ("l2"), and P projects to the ball of radius eps around the point and to the box. A
    point counts as right if it is at the start and at every iterate. eps = 0 gives the clean accuracy. The
    loss is that of the scores before a final softmax or sigmoid, whose gradients vanish where it saturates.
    The network is in eval mode throughout.

    Args:
        model: a torch module, or another piecewise-affine network.
        x: the points, as for `inscape.sample_probes`.
        y: their classes, if x does not carry them.
        eps: the radius of the ball.
        steps: how many gradient steps.
        step_size: the length of each, in the norm.
        norm: "linf" or "l2".
        loss: what the attack climbs: "margin", the logarithm of the sum of exp of the other scores minus the
            own score, whose gradient has the direction of the cross-entropy's but never vanishes; or
            "softmax-cross-entropy", the cross-entropy of probabilities taken for scores, whose gradient
            vanishes where the network is sure. It is there to show what that hides: an attack that stands
            still looks like robustness.
        box: the lowest and highest value that an input may have, such as (0, 1); None for no bounds.
        random_start: whether to start at a random point of the ball instead of its centre.
        random_state: a seed, a generator, or None; the seed is recorded.
        progress: None for a bar after two seconds, False for none; a function gets
            (points done, points in all).
        budget: seconds that it may take as its first second foresees it, else a `BudgetError` says how long
            it would; None for no limit.

    >>> import torch
    >>> net = torch.nn.Linear(1, 1)
    >>> with torch.no_grad():
    ...     _ = net.weight.fill_(1.0), net.bias.fill_(0.0)
    >>> attack = {"eps": 1.0, "steps": 5, "step_size": 0.5, "random_state": 0}
    >>> adversarial_accuracy(net, [[0.5], [2.0]], [1, 1], **attack).value
    0.5
    """
    if norm not in NORMS:
        raise MeasureError(unknown_name("norm", norm, NORMS))
    if loss not in LOSSES:
        raise MeasureError(unknown_name("loss", loss, LOSSES))
    eps = positive_number(eps, "eps", MeasureError, zero=True)
    step_size = positive_number(step_size, "step_size", MeasureError)
    box = None if box is None else _checked_box(box)
    steps = whole_number(steps, "steps", 1, MeasureError)
    wrapped, seed, limit = wrap(model), as_seed(random_state), as_budget(budget)
    points, truth = labelled_points(wrapped, x, y, "adversarial accuracy")
    _check_inside(points, box)
    columns = class_columns(wrapped, truth)
    with meter(progress, "attacked points") as show, measuring(wrapped):
        scores = _scores(wrapped, points.shape[1:])
        attack = _Attack(scores, _memory_of(wrapped), eps, steps, step_size, norm, loss, box, random_start)
        right = correct(wrapped, points, truth)
        check_columns(columns, wrapped.scores(points[:1]).shape[1], wrapped.name)
        robust = right.copy()
        if eps > 0:
            targets = np.flatnonzero(right)
            work = f"an attack of {steps:,} steps on {len(targets):,} points"
            watch = within_budget(show, limit, work, "give fewer points or steps")
            robust[targets] = _survivors(wrapped, attack, points, columns, targets, seed, watch)
        n, value = len(robust), float(robust.mean())
        return AdversarialAccuracy(
            value=value,
            std_error=float(np.sqrt(value * (1 - value) / n)),
            interval=wilson(int(robust.sum()), n),
            n=n,
            method="projected gradient",
            settings={
                "eps": eps,
                "steps": steps,
                "step_size": step_size,
                "norm": norm,
                "loss": loss,
                "box": None if box is None else list(box),
                "random_start": random_start,
            },
            provenance=Provenance.of(wrapped, seed),
            clean=float(right.mean()),
            robust=robust,
        )


def _survivors(
    model: Model, attack: "_Attack", points: Array, columns: Ints, targets: Ints, seed: int, show: Meter
) -> Bools:
    """Which of the targeted points stay right under the attack, batch by batch."""
    size = model.batch_length(points[0].size)
    robust, draws = np.ones(len(targets), dtype=bool), _RandomStarts(seed)
    with model.session():
        for i in range(0, len(targets), size):
            chosen = targets[i : i + size]
            x, y = points[chosen].astype(model.dtype), columns[chosen]
            robust[i : i + size] = attack.survivors(x, y, draws, partial(_shown_from, i, len(targets), show))
            show(i + len(chosen), len(targets))
    return robust


def _shown_from(first: int, total: int, show: Meter, done: int) -> None:
    show(first + done, total)


def _check_inside(points: Array, box: tuple[float, float] | None) -> None:
    if box is not None and (points.min() < box[0] or points.max() > box[1]):
        raise DataError(
            f"points reach from {points.min():g} to {points.max():g}, outside of "
            f"box=({box[0]:g}, {box[1]:g}): give the box of the inputs"
        )


def _checked_box(box: Any) -> tuple[float, float]:
    try:
        low, high = (float(bound) for bound in box)
    except (TypeError, ValueError):
        low = high = np.nan
    if isinstance(box, str) or not low < high:
        raise MeasureError(f"box={box!r} must be the lowest and highest input, such as (0, 1), or None")
    return low, high


def _scores(model: Model, input_shape: tuple[int, ...]) -> Callable[[Any], Any]:
    """From a batch that requires gradients to scores (n, c), without a final softmax or sigmoid."""
    import torch

    module = getattr(model, "module", None)
    if isinstance(module, torch.nn.Module):
        from inscape.models.module_wrappers import scores_before_head
        from inscape.models.torch_module import eval_copy, one_at_a_time

        device, dtype = model.device, model.torch_dtype  # type: ignore[attr-defined]
        if any(p.is_inference() for p in module.parameters()):
            module = eval_copy(module)  # what was made in inference mode has no gradients

        def scores(x: Any) -> Any:
            with one_at_a_time(module):
                return scores_before_head(module, x.to(device, dtype)).raw

        return scores

    try:
        graph = model.graph(input_shape)
    except PartitionError as error:
        raise NotApplicableError(
            f"adversarial accuracy needs gradients, and {model.name} is a {model.structure} model without any"
        ) from error
    return lambda x: graph.differentiable(x).reshape(len(x), -1)


def _memory_of(model: Model) -> "Device":
    """Where the model runs."""
    import torch

    from inscape.models.device import Device

    return Device(getattr(model, "device", torch.device("cpu")))


class _RandomStarts:
    """The random numbers of point after point, the same whatever the length of batches."""

    def __init__(self, seed: int) -> None:
        self.steps, self.radii = (np.random.default_rng([seed, k]) for k in (0, 1))


@dataclass(frozen=True, eq=False)
class _Attack:
    """Projected gradient ascent with fixed settings."""

    scores: Callable[[Any], Any]
    runs_on: "Device"
    eps: float
    steps: int
    step_size: float
    norm: str
    loss: str
    box: tuple[float, float] | None
    random_start: bool

    def survivors(self, x: Array, columns: Ints, draws: _RandomStarts, show: Callable[[int], None]) -> Bools:
        """Which points of a batch are right at every iterate, (n,); `show` gets how many are done."""
        import torch

        centre, y = torch.from_numpy(x), torch.from_numpy(columns)
        at = (
            self._project(centre + self._start(centre, draws), centre)
            if self.random_start
            else centre.clone()
        )
        alive = self.runs_on.in_memory(
            lambda chosen: self._climb(
                at[chosen],
                centre[chosen],
                y[chosen],
                lambda step: show(int(chosen[0]) + len(chosen) * step // (self.steps + 1)),
            ),
            np.arange(len(x)),
            "the attack",
        )
        return np.concatenate(alive)

    def _climb(self, at: Any, centre: Any, y: Any, show: Callable[[int], None]) -> Bools:
        """Which points are right at every iterate from `at` on; `show` gets the number of the step."""
        import torch

        alive = torch.ones(len(y), dtype=torch.bool)
        for step in range(self.steps + 1):
            show(step)
            at.requires_grad_(step < self.steps)
            with torch.set_grad_enabled(step < self.steps):
                scores = self.scores(at)
            seen = scores.detach().cpu()
            label = (seen[:, 0] > 0).long() if seen.shape[1] == 1 else seen.argmax(dim=1)
            alive &= label == y
            if step == self.steps or not bool(alive.any()):
                break
            (gradient,) = torch.autograd.grad(_loss(scores, y.to(scores.device), self.loss), at)
            at = self._project(at.detach() + self._step(gradient), centre)
        return alive.numpy()

    def _start(self, like: Any, draws: _RandomStarts) -> Any:
        import torch

        shape = tuple(like.shape)
        if self.norm == "linf":
            offset = draws.steps.uniform(-self.eps, self.eps, size=shape)
        else:
            d = int(np.prod(shape[1:]))
            offset = draws.steps.standard_normal(shape)
            length = np.linalg.norm(offset.reshape(len(offset), -1), axis=1)
            radius = self.eps * draws.radii.random(len(offset)) ** (1 / d)
            offset = offset * (radius / length).reshape(-1, *(1,) * (len(shape) - 1))
        return torch.from_numpy(offset).to(like.dtype)

    def _step(self, gradient: Any) -> Any:
        if self.norm == "linf":
            return self.step_size * gradient.sign()
        length = gradient.flatten(1).norm(dim=1).clamp(min=1e-30)
        return gradient * (self.step_size / length).reshape(-1, *(1,) * (gradient.ndim - 1))

    def _project(self, at: Any, centre: Any) -> Any:
        import torch

        step = at - centre
        if self.norm == "linf":
            step = step.clamp(-self.eps, self.eps)
        else:
            length = step.flatten(1).norm(dim=1).clamp(min=1e-30)
            factor = torch.clamp(self.eps / length, max=1.0)
            step = step * factor.reshape(-1, *(1,) * (step.ndim - 1))
        moved = centre + step
        return moved if self.box is None else moved.clamp(*self.box)


def _loss(scores: Any, y: Any, kind: str) -> Any:
    """The sum of t = log sum_{j != y} exp(f_j) - f_y over points, or of the cross-entropy of probabilities.

    Cross-entropy is softplus(t), so its gradient has the same direction at every point, but that of t does
    not vanish where the network is sure.
    """
    import torch

    if kind == "softmax-cross-entropy":
        both = scores if scores.shape[1] > 1 else torch.cat([torch.zeros_like(scores), scores], dim=1)
        return torch.nn.functional.cross_entropy(both.softmax(dim=1), y, reduction="sum")
    if scores.shape[1] == 1:
        return (-scores[:, 0] * (2 * y - 1).to(scores.dtype)).sum()
    own = scores.gather(1, y[:, None])[:, 0]
    is_own = torch.nn.functional.one_hot(y, scores.shape[1]).bool()
    return (scores.masked_fill(is_own, -torch.inf).logsumexp(dim=1) - own).sum()
