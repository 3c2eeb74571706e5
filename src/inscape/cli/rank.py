"""`inscape rank`: several models in the order of their region count."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from inscape.cli import options
from inscape.cli.output import line_width, print_json, print_lines
from inscape.errors import DataError

Train = Annotated[
    str | None,
    typer.Option(
        metavar="DATA",
        help="Training data, as for --data, for the gap between both accuracies; of data that have two "
        "splits, the training split.",
    ),
]


@options.command
def rank(
    models: options.Models,
    *,
    source: options.DataOptions,
    train: Train = None,
    probing: options.ProbeOptions,
    seed: options.Seed = 0,
    weights: Annotated[
        list[Path] | None,
        typer.Option(
            help="Rank these states (.safetensors, .pt) of the one factory that MODEL names; repeat it."
        ),
    ] = None,
    loading: options.ModelOptions,
    jobs: options.Jobs = None,
    json: options.Json = False,
) -> None:
    """Order models by region count on common probes, beside their accuracy; and how sure that order is."""
    from inscape.measures import rank as rank_models

    loaded = source.read()
    wrapped = {
        name: loading.read(model, state, x=loaded.x)
        for name, (model, state) in options.candidates(models, weights or []).items()
    }
    loaded = loaded.fitting(*wrapped.values())
    result = rank_models(
        wrapped,
        loaded.x,
        **probing.settings(),
        y=loaded.y,
        train=None if train is None else _training_data(source, train, wrapped.values()),
        random_state=seed,
        progress=True,
        n_jobs=jobs,
    )
    if json:
        print_json(result.to_dict())
    else:
        title = f"fewest regions first, on {probing.probes} common probes of {loaded.name} (seed {seed})"
        print_lines(title, result.to_text(width=line_width()))


def _training_data(source: options.DataOptions, train: str, models: Iterable[Any]) -> tuple[Any, Any]:
    """Points and classes to train on, divided as the data are."""
    try:
        loaded = replace(source, data=train, split="train").read()
    except DataError:  # it has no splits
        loaded = replace(source, data=train, split=None).read()
    if loaded.y is None:
        raise DataError(f"--train {train} holds no classes: the gap needs them")
    fitting = loaded.fitting(*models)
    return fitting.x, fitting.y
