"""`inscape cost`: what counting and drawing the regions of a model would take."""

from inscape.cli import options
from inscape.cli.output import line_width, print_json, print_lines


@options.command
def cost(
    model: options.Model,
    *,
    source: options.DataOptions,
    method: options.Method = "auto",
    probes: options.Probes = 100,
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
    table = cost_table(wrapped, loaded.x, method=method, n_probes=probes, random_state=seed, progress=True)
    if json:
        print_json(table.to_dict())
    else:
        title = f"what {table.model} would cost on {loaded.name} (seed {seed}), from a small part of the work"
        print_lines(title, table.to_text(width=line_width()))
