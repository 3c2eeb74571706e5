"""`inscape cost`: what counting and drawing the regions of a model would take."""

from typing import Annotated

import typer

from inscape.cli import options
from inscape.cli.output import line_width, print_json, print_lines


@options.command
def cost(
    model: options.Model,
    *,
    source: options.DataOptions,
    method: options.Method = "auto",
    probes: options.Probes = 100,
    models: Annotated[int, typer.Option(min=1, help="Plan for this many models like this one.")] = 1,
    gpus: Annotated[
        int, typer.Option(min=1, help="Share them among this many devices like the one measured (--device).")
    ] = 1,
    seed: options.Seed = 0,
    weights: options.Weights = None,
    loading: options.ModelOptions,
    json: options.Json = False,
) -> None:
    """Foresee evaluations, linear pieces, memory and time of each method, on segments and a plane."""
    from inscape.partition.cost_table import cost_table

    loaded = source.read()
    wrapped = loading.read(model, weights, x=loaded.x)
    loaded = loaded.fitting(wrapped)
    table = cost_table(
        wrapped,
        loaded.x,
        method=method,
        n_probes=probes,
        n_models=models,
        n_workers=gpus,
        random_state=seed,
        progress=True,
    )
    if json:
        print_json(table.to_dict())
    else:
        title = (
            f"what {table.model} would cost on {loaded.name} (seed {seed}), from a small share of the work"
        )
        print_lines(title, table.to_text(width=line_width()))
        if gpus > 1 and table.device == "cpu":
            print_lines(
                "", "measured on this machine's processor: --device cuda measures a GPU, and plans for it"
            )
