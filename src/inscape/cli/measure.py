"""`inscape measure`: the measures of one model."""

from inscape.cli import options
from inscape.cli.output import line_width, print_json, print_lines


@options.command
def measure(
    model: options.Model,
    *,
    source: options.DataOptions,
    measures: options.Measures = None,
    probing: options.ProbeOptions,
    seed: options.Seed = 0,
    weights: options.Weights = None,
    loading: options.ModelOptions,
    json: options.Json = False,
) -> None:
    """Measure one model: by default its region count and, if the data have classes, its accuracy."""
    from inscape.measures import measure as measure_model

    loaded = source.read()
    wrapped = loading.read(model, weights, x=loaded.x)
    names = measures or ["region_count", *([] if loaded.y is None else ["accuracy"])]
    wanted = {name: probing.settings() if name == "region_count" else {} for name in names}
    table = measure_model(wrapped, loaded.x, loaded.y, measures=wanted, random_state=seed, progress=True)
    if json:
        print_json(table.to_dict())
    else:
        print_lines(f"{table.model} on {loaded.name} (seed {seed})", table.to_text(width=line_width()))
