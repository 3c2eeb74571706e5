"""The row of a trained model: accuracies, the gap and measures of it, whatever kind of model it is."""

from collections.abc import Hashable
from typing import Any

from inscape.studies.cells import canonical
from inscape.studies.study import Configuration, Row

DATA_KEYS = ("data", "n_train", "n_test", "split_seed")
MEASURE_KEYS = ("measures", "n_probes", "probe_seed")
_OWN_KEYS = (*DATA_KEYS, *MEASURE_KEYS, "seed", "replicate")


def cell(configuration: Configuration) -> Row:
    """Train the model that a configuration describes, and measure it.

    The keys of a configuration: "data", "n_train", "n_test", "split_seed" (the same points for all cells that
    agree in these); "model" and its settings (see `inscape.training.fitting.fit_many`); "measures", names or
    name -> settings as for `inscape.measure`, taken on the test points, by default the region count on
    "n_probes" segments; "probe_seed" draws them, so that all cells are measured on the same ones.
    """
    return batch([configuration])[0]


def together(configuration: Configuration) -> Hashable:
    """Networks whose programs can be one: small ones on the same data; any other cell is alone."""
    if configuration["model"] != "mlp":
        return canonical(configuration)
    varied = ("learning_rate", "weight_decay", "replicate")
    return canonical({k: v for k, v in configuration.items() if k not in varied})


def batch(configurations: list[Configuration]) -> list[Row]:
    """The rows of configurations that agree in their data."""
    from inscape.training.fitting import fit_many
    from inscape.training.splits import split_data

    first = configurations[0]
    split = split_data(
        first.get("data", "digits"),
        n_train=first.get("n_train"),
        n_test=first.get("n_test"),
        random_state=first.get("split_seed", 0),
    )
    settings = [{k: v for k, v in c.items() if k not in _OWN_KEYS} for c in configurations]
    fitted = fit_many(settings, split, seeds=[c["seed"] for c in configurations])
    return [_row(f, split, c) for f, c in zip(fitted, configurations, strict=True)]


def _row(fitted: Any, split: Any, configuration: Configuration) -> dict[str, Any]:
    from inscape.measures import measure
    from inscape.measures.accuracy import correct

    train = float(correct(fitted.model, *split.train).mean())
    test = float(correct(fitted.model, *split.test).mean())
    row: dict[str, Any] = {"train_accuracy": train, "test_accuracy": test, "gap": train - test}
    wanted = configuration.get("measures", {"region_count": {"n_probes": configuration.get("n_probes", 100)}})
    seed = configuration.get("probe_seed", 0)
    table = measure(fitted.model, split.x_test, split.y_test, measures=wanted, random_state=seed)
    for line in table.rows:
        name = line["measure"]
        row |= {name: line["value"], f"{name}_error": line["std_error"], f"{name}_status": line["status"]}
    history = fitted.history
    row["train_loss"] = None if history is None else history.loss
    row["epochs_run"] = None if history is None else len(history.losses)
    row["training_status"] = "complete" if history is None else history.status
    row["n_parameters"] = fitted.n_parameters
    return row
