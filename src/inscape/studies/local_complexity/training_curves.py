"""Curves over training: measures of a perceptron at logarithmic steps, and means over many runs."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from inscape.arrays import Array, Floats, Points
from inscape.errors import InscapeWarning
from inscape.measures.measurement import mean_with_error
from inscape.reports.findings import Chart, judge
from inscape.sweeps.study import Configuration

if TYPE_CHECKING:
    import pandas as pd
    from torch import nn

    from inscape.models import Model
    from inscape.training.checkpoint import Checkpoint
    from inscape.training.data.datasets import Split
    from inscape.training.many import Draw

Curves = dict[str, list[float]]
FIRST_STEP_LOOKED_AT = 10
"""The first step after step 0 at which networks are measured."""
RANK_POINTS = 30
"""At how many points the local rank is taken, where nothing else is said: it needs a whole Jacobian each."""


def log_steps(n_steps: int, n_times: int) -> tuple[int, ...]:
    """Step 0 and about `n_times` - 1 others at equal ratios, the last among them.

    >>> log_steps(1000, 6)
    (0, 10, 32, 100, 316, 1000)
    """
    first = min(FIRST_STEP_LOOKED_AT, n_steps)
    rest = np.geomspace(first, n_steps, n_times - 1).round().astype(int)
    return (0, *sorted(set(rest.tolist())))


def image_split(c: Configuration, scale: tuple[float, float] = (0.0, 1.0)) -> "Split":
    """The images of a replicate, flat; "data", "n_train" and "n_test" say which and how many.

    Pixels p of 0..1 become (p - mean) / deviation, if `scale` gives these two.
    """
    from inscape.training.data.datasets import Split, split_data

    split = split_data(c["data"], n_train=c["n_train"], n_test=c["n_test"], random_state=c["replicate_seed"])
    mean, deviation = scale
    images = map(np.asarray, (split.x_train, split.x_test))
    x_train, x_test = ((x.reshape(len(x), -1) - mean) / deviation for x in images)
    return Split(x_train, split.y_train, x_test, split.y_test)


@dataclass(frozen=True)
class RankThreshold:
    """From which singular value on a direction counts for the local rank."""

    eps: float
    relative: bool = False

    @property
    def name(self) -> str:
        """In columns, as in `lr_0.1_2`, the rank of layer 2."""
        return f"lr_{self.label}"

    @property
    def label(self) -> str:
        """In tables and pictures."""
        return f"{'relative_' * self.relative}{self.eps:g}"


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkMeasurement:
    """Local complexity, not-good units, total variation and local rank, layer by layer, as columns.

    Attributes:
        x: the points, (n, d).
        sigma: the standard deviation of the noise on biases.
        n_noise: how many noisy networks.
        variations: of what total variation is taken, besides the scores: "tv_probabilities" and so on.
        thresholds: of the local rank, one each.
        rank_points: at how many of the points the local rank is taken.
        also: what else is measured.
    """

    x: Array
    sigma: float
    n_noise: int
    variations: Sequence[str] = ()
    thresholds: Sequence[RankThreshold] = ()
    rank_points: int = RANK_POINTS
    also: Sequence[Callable[["Model"], Mapping[str, float]]] = ()

    def __call__(self, model: "Model") -> dict[str, float]:
        """The columns of one model; LC and TV are of the same noisy networks, LR of the network itself."""
        from inscape.measures.jacobian.passes import measured
        from inscape.measures.local_complexity import complexity_request
        from inscape.measures.local_rank import rank_request
        from inscape.measures.total_variation import variation_request

        draws: dict[str, Any] = {"sigma": self.sigma, "n_noise": self.n_noise, "seed": 0}
        requests = [complexity_request(noise="bias", form="theorem", precision="float32", **draws)]
        requests += [variation_request(of=of, **draws) for of in ("scores", *self.variations)]
        lc, tv, *others = (cast("Any", r) for r in measured(model, self.x, requests, _silent))
        row = {"lc": lc.value, "tv": tv.value, "not_good": lc.n_not_good} | _layers("lc", lc.per_layer)
        row |= {f"tv_{of}": other.value for of, other in zip(self.variations, others, strict=True)}
        if self.thresholds:
            alone: dict[str, Any] = {"sigma": None, "n_noise": 1, "seed": 0}
            asked = [rank_request(eps=t.eps, relative=t.relative, **alone) for t in self.thresholds]
            results = measured(model, self.x[: self.rank_points], asked, _silent)
            for threshold, rank in zip(self.thresholds, results, strict=True):
                row |= _layers(threshold.name, cast("Any", rank).per_layer)
        for further in self.also:
            row |= further(model)
        return row


def _silent(done: float, total: float) -> None:
    """Show no progress."""


def _layers(name: str, values: Iterable[float]) -> dict[str, float]:
    return {f"{name}_{k}": float(v) for k, v in enumerate(values, start=1)}


def watch(
    module: "nn.Module",
    train: "tuple[Points, Array] | Draw",
    test: tuple[Points, Array],
    c: Configuration,
    measured: NetworkMeasurement,
    measures: Mapping[str, Mapping[str, Any]],
    checkpoint: "Checkpoint | None" = None,
) -> Curves:
    """Train as the configuration says; "step", the measures on test points and `measured`, as lists.

    The keys of the configuration: "n_steps", "n_times", "batch_size", "learning_rate", "optimiser",
    "weight_decay", "decay_biases", "seed", and for classes "loss". What draws points is asked for fresh ones
    at every step. A run that was killed goes on from its checkpoint, if it is given one: then what
    `measured` itself remembers of earlier steps is gone.
    """
    from inscape.training.many import train_many, train_on_fresh
    from inscape.training.monitor import Monitor
    from inscape.training.recipe import Recipe, batch_sizes

    n_steps, epochs = c["n_steps"], 1
    if not callable(train):
        per_epoch = len(batch_sizes(len(train[0]), min(c["batch_size"], len(train[0]))))
        epochs = max(1, n_steps // per_epoch)
        n_steps = epochs * per_epoch
    due = set(log_steps(n_steps, c["n_times"])).__contains__
    monitor = Monitor(*test, measures=measures, every=due, n_points=None, also=measured)
    recipe = Recipe(
        c["learning_rate"],
        c["batch_size"],
        epochs,
        optimiser=c["optimiser"],
        weight_decay=c["weight_decay"],
        decay_biases=c["decay_biases"],
        loss=c.get("loss", "cross-entropy"),
        schedule="constant",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InscapeWarning)  # a network of one class is a finding here
        if callable(train):
            train_on_fresh(module, train, recipe, n_steps=n_steps, monitor=monitor, checkpoint=checkpoint)
        else:
            states, kept = [c["seed"]], [checkpoint]
            train_many([module], *train, [recipe], random_states=states, monitors=[monitor], checkpoints=kept)
    return {name: [row[name] for row in monitor.rows] for name in ("step", *monitor.names())}


def mean_of(values: npt.ArrayLike) -> tuple[float, tuple[float, float] | None]:
    """The mean and its 95 % interval of Student's t; None for fewer than two values.

    >>> mean_of([1.0])
    (1.0, None)
    """
    mean, _, interval = mean_with_error(np.asarray(values, dtype=np.float64))
    return mean, None if np.isnan(interval[0]) else interval


def changed(changes: npt.ArrayLike, least: float, *, long_enough: bool) -> bool | None:
    """Whether runs of one setting changed by `least` or more, as claimed; None if they cannot say.

    Held if each of them did. Not held, by the rule of all studies, only if the interval of their mean is
    below `least` and they are long enough: one run has no interval, and in a shorter one the change may
    still come.

    >>> changed([3.0, 2.0], 1.0, long_enough=False), changed([-3.0, -2.9], 1.0, long_enough=True)
    (True, False)
    """
    values = np.asarray(changes, dtype=np.float64)
    if (values >= least).all():
        return True
    _, interval = mean_of(values)
    if interval is None or not long_enough:
        return None
    return False if judge(interval, strong=least).holds is False else None


def longest(runs: "pd.DataFrame") -> "pd.DataFrame":
    """The runs that were measured at the same steps as the longest: only those have a mean at each step."""
    steps = max(runs["step"], key=lambda steps: (steps[-1], len(steps)))
    return runs[[list(s) == list(steps) for s in runs["step"]]]


def band(runs: "pd.DataFrame", column: str) -> tuple[Floats, Floats, Floats, Floats]:
    """Steps, the mean over the longest runs at each, and the ends of its interval (NaN for one run)."""
    alike = longest(runs)
    steps, table = alike["step"].iloc[0], np.array(alike[column].tolist(), dtype=np.float64)
    means = [mean_of(column) for column in table.T]
    low, high = (np.array([np.nan if i is None else i[k] for _, i in means]) for k in (0, 1))
    return np.asarray(steps, dtype=np.float64), table.mean(axis=0), low, high


def mean_frame(
    frame: "pd.DataFrame", keys: Sequence[str], with_interval: Sequence[str], others: Sequence[str] = ()
) -> "pd.DataFrame":
    """For each group of runs and step: how many runs, the mean of each column, and the ends of intervals.

    Of runs of several lengths in a group these are the longest.
    """
    import pandas as pd

    lines = []
    for key, group in frame.groupby(list(keys), sort=False):
        runs = longest(group)
        steps = runs["step"].iloc[0]
        known = [c for c in (*with_interval, *others) if c in runs and isinstance(runs[c].iloc[0], list)]
        bands = {c: band(runs, c) for c in known}
        for i, step in enumerate(steps):
            line = dict(zip(keys, key, strict=True)) | {"step": step, "runs": len(runs)}
            for name, (_, mean, low, high) in bands.items():
                line[name] = mean[i]
                if name in with_interval:
                    line |= {f"{name}_low": low[i], f"{name}_high": high[i]}
            lines.append(line)
    return pd.DataFrame(lines)


def curve_chart(
    curves: "pd.DataFrame",
    y: str,
    *,
    title: str,
    ylabel: str,
    colour: str | None = None,
    interval: tuple[str, str] | None = None,
    hover: Sequence[str] = (),
) -> Chart:
    """Means over runs with their intervals, by default those of `mean_frame`, against step + 1."""
    low, high = interval or (f"{y}_low", f"{y}_high")
    return Chart(
        title=title,
        data=curves.assign(step=curves["step"] + 1),
        x="step",
        y=y,
        kind="lines",
        colour=colour,
        low=low,
        high=high,
        hover=hover,
        log_x=True,
        xlabel="step + 1",
        ylabel=ylabel,
        caption="The mean over the runs, with its 95 % interval where there are several.",
    )


def coefficients(frame: "pd.DataFrame", x: str, y: str, start: str, *, changes: bool = False) -> list[float]:
    """Spearman's coefficient of two columns within each run, from the run's index `start` on.

    Of their changes from one measurement to the next, if so asked: two columns that only drift, each at its
    own time, have a high coefficient, but their changes do not.
    """
    from scipy.stats import spearmanr

    values = []
    for _, run in frame.iterrows():
        a, b = (np.diff(run[name][run[start] :], n=int(changes)) for name in (x, y))
        if len(a) > 2 and np.ptp(a) > 0 and np.ptp(b) > 0:
            values.append(float(spearmanr(a, b).statistic))
    return values
