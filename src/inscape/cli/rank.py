"""`inscape rank`: several models in the order of their region count."""

from pathlib import Path
from typing import Annotated

import typer

from inscape.cli import options
from inscape.cli.output import print_json, print_table
from inscape.errors import ModelError

COLUMNS = {
    "rank": ("", "d"),
    "model": ("model", ""),
    "region_count": ("regions", ".3f"),
    "std_error": ("+-", ".3f"),
    "missed": ("missed", ".3f"),
    "p_before_next": ("P(before next)", ".1%"),
    "method": ("method", ""),
    "status": ("status", ""),
}


@options.command
def rank(
    models: options.Models,
    *,
    source: options.DataOptions,
    probing: options.ProbeOptions,
    seed: options.Seed = 0,
    weights: Annotated[
        list[Path] | None,
        typer.Option(
            help="Rank these states (.safetensors, .pt) of the one factory that MODEL names; repeat it."
        ),
    ] = None,
    loading: options.ModelOptions,
    json: options.Json = False,
) -> None:
    """Order models by region count on common probes, with the probability that each order is right."""
    from inscape.measures import rank as rank_models

    loaded = source.read()
    wrapped = {
        name: loading.read(model, state)
        for name, (model, state) in _candidates(models, weights or []).items()
    }
    result = rank_models(
        wrapped,
        loaded.x,
        **probing.settings(),
        y=loaded.y,
        random_state=seed,
        progress=True,
    )
    if json:
        print_json(result.to_dict())
    else:
        title = f"fewest regions first, on {probing.probes} common probes of {loaded.name} (seed {seed})"
        print_table(title, result.rows(), COLUMNS)


def _candidates(models: list[str], weights: list[Path]) -> dict[str, tuple[str, Path | None]]:
    """Name -> model and weights; the names are file names where these tell the candidates apart."""
    if weights and len(models) > 1:
        raise ModelError("--weights ranks several states of one factory: give one MODEL with it")
    typed = [str(w) for w in weights] or models
    if len(set(typed)) < len(typed):
        raise ModelError("a model is named twice: each can be ranked once")
    short = [Path(t).name for t in typed]
    names = short if len(set(short)) == len(short) else typed
    states: list[Path | None] = [*weights] or [None] * len(models)
    factories = models * len(weights) if weights else models
    return dict(zip(names, zip(factories, states, strict=True), strict=True))
