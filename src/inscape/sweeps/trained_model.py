"""The row of a trained model: accuracies, the gap and measures of it, whatever kind of model it is."""

from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from inscape.arguments import whole_number
from inscape.errors import (
    BudgetError,
    DataError,
    InscapeError,
    MeasureError,
    NotApplicableError,
    StudyError,
    unknown_name,
)
from inscape.sweeps.study import Configuration, Row
from inscape.sweeps.study import cell as declared
from inscape.sweeps.tasks import canonical, read_json

OUTCOMES = (
    "train_accuracy",
    "test_accuracy",
    "gap",
    "train_loss",
    "epochs_run",
    "training_status",
    "n_parameters",
)
"""The columns of any trained model."""
DATA_KEYS = ("data", "n_train", "n_test", "split_seed", "image_size")
MEASURE_KEYS = ("measures", "n_probes", "probe_seed")
SEEDS = ("seed", "replicate", "replicate_seed")
"""What the study gives to a configuration."""
OWN_KEYS = (*DATA_KEYS, *MEASURE_KEYS, *SEEDS)
_LEAST_OF_KEY = {"n_train": 1, "n_test": 1, "split_seed": 0, "image_size": 1, "n_probes": 1, "probe_seed": 0}
"""Keys whose values are whole numbers -> the least of them."""
_REPEATED = ("n_probes", "n_noise", "n_directions", "n_points", "steps", "resolution")
"""Settings of measures of which a few will do to see that they are possible."""


@declared
def cell(configuration: Configuration) -> Row:
    """Train the model that a configuration describes, and measure it.

    The keys of a configuration: "data", "n_train", "n_test", "split_seed" (the same points for all that
    agree in these); "model" and its settings (see `inscape.training.fitting.fit_many`); "measures", names or
    name -> settings as for `inscape.measure`, taken on the test points, by default the region count on
    "n_probes" segments; "probe_seed" draws them, so that all models are measured on the same ones.
    """
    return batch([configuration])[0]


def check(configuration: Configuration) -> None:
    """Raise an error for a configuration that cannot become a row, as far as that can be told before."""
    from inscape.measures.measure import FUNCTIONS, checked_settings
    from inscape.training.data.datasets import EMBEDDED, NAMES
    from inscape.training.fitting import CLASSICAL_SETTINGS, check_settings

    settings = settings_of(configuration)
    check_settings(settings, also=(*DATA_KEYS, *MEASURE_KEYS))
    if settings["model"] in CLASSICAL_SETTINGS:
        _check_fit(canonical(settings))
    data = configuration.get("data", "digits")
    if data not in NAMES and not Path(str(data)).exists():
        raise DataError(unknown_name("data set", data, NAMES) + "; nor is it a file or a folder")
    for key, least in _LEAST_OF_KEY.items():
        if configuration.get(key) is not None:
            whole_number(configuration[key], key, least, StudyError)
    if data in EMBEDDED:  # these are at hand: there may be fewer points
        _check_split(canonical({key: configuration[key] for key in DATA_KEYS if key in configuration}))
    if "measures" in configuration:
        wanted = checked_settings(_requested(configuration["measures"]))
        if not wanted:
            raise StudyError(
                f"measures = {configuration['measures']!r} names none: leave it out, or name one"
            )
        given = {name: settings for name, settings in wanted.items() if settings and name in FUNCTIONS}
        if given:
            _check_measures(canonical(given))


def _requested(measures: Any) -> Any:
    """The measures of a configuration; an error for what names none."""
    if not isinstance(measures, str | list | tuple | Mapping):
        raise StudyError(f"measures = {measures!r} must be a name, a list of names, or a table of settings")
    return measures


@cache
def _check_fit(settings: str) -> None:
    """Raise an error for settings that scikit-learn refuses; once for all configurations."""
    from inscape.training.fitting import classical

    model = read_json(settings)
    few = {k: 1 if k == "n_estimators" else v for k, v in model.items() if k not in ("model", "grown_depth")}
    x = np.random.default_rng(0).normal(size=(40, 2))
    try:
        classical(model["model"], few, random_state=0).fit(x, np.arange(40) % 2)
    except (TypeError, ValueError) as error:
        raise StudyError(f"{model['model']}: {str(error).splitlines()[0]}") from error


@cache
def _check_measures(measures: str) -> None:
    """Raise an error for settings with which no network can be measured; once for all configurations."""
    from inscape.measures.measure import table_of
    from inscape.training.networks import mlp

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 8)), np.arange(40) % 3
    net = mlp(8, (4,), 3, random_state=0)
    for name, settings in read_json(measures).items():
        few = {k: min(v, 3) if k in _REPEATED and isinstance(v, int) else v for k, v in settings.items()}
        try:
            table_of(net, x, y, measures={name: few}, random_state=0, progress=False)
        except (NotApplicableError, BudgetError):
            pass
        except InscapeError as error:
            raise MeasureError(f"{name}: {error}") from error
        except (TypeError, ValueError) as error:
            raise MeasureError(f"{name} cannot be measured with {settings}: {error}") from error


@cache
def _check_split(data: str) -> None:
    """Raise an error if there are no such training and test points; once for all configurations of these."""
    split_of(read_json(data))


def columns(configuration: Configuration) -> set[str]:
    """The names that the row of a configuration has for what came out."""
    measures = _requested(configuration.get("measures", "region_count"))
    names = [measures] if isinstance(measures, str) else list(measures)
    return {*OUTCOMES, *(f"{name}{more}" for name in names for more in ("", "_error", "_status"))}


def together(configuration: Configuration) -> Hashable:
    """Small networks on the same data, which one program trains; trees pruned from one; else alone."""
    varied: tuple[str, ...] = ()
    if configuration["model"] == "mlp":
        varied = ("learning_rate", "weight_decay", "replicate")
    elif "grown_depth" in configuration:
        varied = ("max_depth",)
    return canonical({k: v for k, v in configuration.items() if k not in varied})


def batch(configurations: list[Configuration]) -> list[Row]:
    """The rows of configurations that agree in their data."""
    from inscape.training.fitting import fit_many

    split = split_of(configurations[0])
    settings = [settings_of(c) for c in configurations]
    fitted = fit_many(settings, split, random_states=[seed_of(c) for c in configurations])
    return [_row(f, split, c) for f, c in zip(fitted, configurations, strict=True)]


def seed_of(configuration: Configuration) -> int:
    """The seed of a model's training; trees that are pruned from one have it in common."""
    key = "replicate_seed" if "grown_depth" in configuration else "seed"
    return int(configuration[key])


def split_of(configuration: Configuration) -> Any:
    """The training and test points that a configuration names.

    A process keeps those that were asked for last: most configurations of a study want the same.
    """
    from inscape.training.data.datasets import split_data

    source = configuration.get("data", "digits")
    wanted = canonical([_version(source), *(configuration.get(key) for key in DATA_KEYS)])
    split = _READ_LAST.get(wanted)
    if split is None:
        _READ_LAST.clear()  # before others are read: both may not fit
        split = _READ_LAST[wanted] = split_data(
            source,
            n_train=configuration.get("n_train"),
            n_test=configuration.get("n_test"),
            random_state=configuration.get("split_seed", 0),
            image_size=configuration.get("image_size"),
        )
    return split


_READ_LAST: dict[str, Any] = {}
"""The points that were read last, by what names them."""


def _version(source: str) -> int | None:
    """When a file was changed last; None for a data set that has a name only."""
    try:
        return Path(source).stat().st_mtime_ns
    except OSError:
        return None


def settings_of(configuration: Configuration, *, without: Sequence[str] = ()) -> dict[str, Any]:
    """What a configuration says of the model and its training: all but our own keys and those `without`."""
    return {k: v for k, v in configuration.items() if k not in (*OWN_KEYS, *without)}


def outcome(fitted: Any, split: Any) -> dict[str, Any]:
    """The columns of any trained model: its accuracies and their gap, and how training went."""
    from inscape.measures.accuracy import correct

    train = float(correct(fitted.model, *split.train).mean())
    test = float(correct(fitted.model, *split.test).mean())
    history = fitted.history
    values = (
        train,
        test,
        train - test,
        None if history is None else history.loss,
        None if history is None else len(history.losses),
        "complete" if history is None else history.status,
        fitted.n_parameters,
    )
    return dict(zip(OUTCOMES, values, strict=True))


def _row(fitted: Any, split: Any, configuration: Configuration) -> dict[str, Any]:
    from inscape.measures import measure

    row = outcome(fitted, split)
    wanted = configuration.get("measures", {"region_count": {"n_probes": configuration.get("n_probes", 100)}})
    seed = configuration.get("probe_seed", 0)
    table = measure(fitted.model, split.x_test, split.y_test, measures=wanted, random_state=seed, budget=None)
    for line in table.rows:
        name = line["measure"]
        row |= {name: line["value"], f"{name}_error": line["std_error"], f"{name}_status": line["status"]}
    return row
