"""A perceptron in training, and all that the local-complexity paper plots of it, at logarithmic steps."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.errors import InscapeWarning
from inscape.studies.study import Configuration

if TYPE_CHECKING:
    from torch import nn

    from inscape.models import Model
    from inscape.training.data.splits import Split

Columns = dict[str, list[float]]
FIRST = 10
"""The first step after step 0 that is looked at."""


def log_steps(n_steps: int, n_times: int) -> tuple[int, ...]:
    """Step 0 and about `n_times` - 1 others at equal ratios, the last among them.

    >>> log_steps(1000, 6)
    (0, 10, 32, 100, 316, 1000)
    """
    first = min(FIRST, n_steps)
    rest = np.geomspace(first, n_steps, n_times - 1).round().astype(int)
    return (0, *sorted(set(rest.tolist())))


def image_split(c: Configuration) -> "Split":
    """The images of a replicate, flat; "data", "n_train" and "n_test" say which and how many."""
    from inscape.training.data.splits import Split, split_data

    split = split_data(c["data"], n_train=c["n_train"], n_test=c["n_test"], random_state=c["replicate_seed"])
    x_train, x_test = (x.reshape(len(x), -1) for x in (split.x_train, split.x_test))
    return Split(x_train, split.y_train, x_test, split.y_test)


@dataclass(frozen=True, kw_only=True, eq=False)
class Look:
    """Local complexity, not-good units, total variation and local rank, layer by layer, as columns.

    Attributes:
        x: the points, (n, d).
        sigma: the standard deviation of the noise on biases.
        n_noise: how many noisy networks.
        rank_eps: the smallest singular values that count, for a local rank each.
        rank_points: at how many of the points the local rank is taken.
        also: what else is looked at.
    """

    x: npt.NDArray[Any]
    sigma: float
    n_noise: int
    rank_eps: Sequence[float] = ()
    rank_points: int = 30
    also: Sequence[Callable[["Model"], Mapping[str, float]]] = ()

    def __call__(self, model: "Model") -> dict[str, float]:
        """The columns of one model; LC and TV are of the same noisy networks, LR of the network itself."""
        from inscape.measures.local_rank import local_rank
        from inscape.measures.measure import jacobian_measures
        from inscape.measures.points import as_source

        noise: dict[str, Any] = {"sigma": self.sigma, "n_noise": self.n_noise}
        wanted = {"local_complexity": noise | {"precision": "float32"}, "total_variation": noise}
        found: Any = jacobian_measures(model, as_source(self.x), wanted, 0, None)
        lc, tv = found["local_complexity"], found["total_variation"]
        row = {"lc": lc.value, "tv": tv.value, "not_good": lc.n_not_good} | _layers("lc", lc.per_layer)
        for eps in self.rank_eps:
            rank = local_rank(model, self.x[: self.rank_points], eps=eps)
            row |= _layers(f"lr_{eps:g}", rank.per_layer)
        for further in self.also:
            row |= further(model)
        return row


def _layers(name: str, values: Iterable[float]) -> dict[str, float]:
    return {f"{name}_{k}": float(v) for k, v in enumerate(values, start=1)}


def watch(
    module: "nn.Module",
    train: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    test: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    c: Configuration,
    look: Look,
    measures: Mapping[str, Mapping[str, Any]],
) -> Columns:
    """Train as the configuration says; "step", the measures on test points and the look, each as a list.

    The keys of the configuration: "n_steps", "n_times", "batch_size", "learning_rate", "optimiser",
    "weight_decay", and "seed".
    """
    from inscape.training.many import train_many
    from inscape.training.monitor import Monitor
    from inscape.training.recipe import Recipe, batch_sizes

    x, y = train
    per_epoch = len(batch_sizes(len(x), min(c["batch_size"], len(x))))
    epochs = max(1, c["n_steps"] // per_epoch)
    steps = set(log_steps(epochs * per_epoch, c["n_times"]))
    due = steps.__contains__
    monitor = Monitor(*test, measures=measures, every=due, n_points=None, also=look)
    recipe = Recipe(
        c["learning_rate"],
        c["batch_size"],
        epochs,
        optimiser=c["optimiser"],
        weight_decay=c["weight_decay"],
        schedule="constant",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InscapeWarning)  # a network of one class is a finding here
        train_many([module], x, y, [recipe], seeds=[c["seed"]], monitors=[monitor])
    names = [n for n in monitor.rows[0] if n != "seconds" and not n.endswith("_error")]
    return {name: [row[name] for row in monitor.rows] for name in names}
