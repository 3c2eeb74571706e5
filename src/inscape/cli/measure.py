"""`inscape measure`: the measures of one model."""

from inscape.cli import options
from inscape.cli.output import print_json, print_table

COLUMNS = {
    "measure": ("measure", ""),
    "value": ("value", ".4f"),
    "std_error": ("+-", ".4f"),
    "low": ("95 % low", ".4f"),
    "high": ("high", ".4f"),
    "n": ("n", "d"),
    "method": ("method", ""),
    "status": ("status", ""),
    "note": ("note", ""),
}


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
    wrapped = loading.read(model, weights)
    names = measures or ["region_count", *([] if loaded.y is None else ["accuracy"])]
    wanted = {name: probing.settings() if name == "region_count" else {} for name in names}
    table = measure_model(wrapped, loaded.x, loaded.y, measures=wanted, random_state=seed, progress=True)
    if json:
        print_json(table.to_dict())
    else:
        print_table(f"{table.model} on {loaded.name} (seed {seed})", table.rows, COLUMNS)
