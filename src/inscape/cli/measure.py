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


def measure(
    model: options.Model,
    data: options.Data,
    measures: options.Measures = None,
    dim: options.Dim = 1,
    probes: options.Probes = 100,
    method: options.Method = "auto",
    resolution: options.Resolution = None,
    how: options.How = "pairs",
    length: options.Length = None,
    span: options.Span = (0.0, 1.0),
    classes: options.Classes = "any",
    connectivity: options.Connectivity = "face",
    seed: options.Seed = 0,
    split: options.Split = None,
    divide: options.Divide = 1.0,
    weights: options.Weights = None,
    trust_pickle: options.TrustPickle = False,
    input_shape: options.InputShape = None,
    layout: options.Layout = None,
    mean: options.Mean = None,
    std: options.Std = None,
    scale: options.Scale = None,
    batch_size: options.BatchSize = None,
    device: options.Device = None,
    json: options.Json = False,
) -> None:
    """Measure one model: by default its region count and, if the data have classes, its accuracy."""
    from inscape.measures import measure as measure_model

    loaded = options.read_data(data, split, divide)
    wrapped = options.read_model(
        model,
        weights=weights,
        trust_pickle=trust_pickle,
        input_shape=input_shape,
        batch_size=batch_size,
        device=device,
        preparation=options.read_preparation(layout, mean, std, scale),
    )
    settings = {
        "dim": dim,
        "n_probes": probes,
        "method": method,
        "resolution": resolution,
        "how": how,
        "length": length,
        "span": span,
        "classes": classes,
        "connectivity": connectivity,
    }
    names = measures or ["region_count", *([] if loaded.y is None else ["accuracy"])]
    wanted = {name: settings if name == "region_count" else {} for name in names}
    table = measure_model(wrapped, loaded.x, loaded.y, measures=wanted, random_state=seed, progress=True)
    if json:
        print_json(table.to_dict())
    else:
        print_table(f"{table.model} on {loaded.name} (seed {seed})", table.rows, COLUMNS)
