"""`inscape rank`: several models in the order of their region count."""

from pathlib import Path

from inscape.cli import options
from inscape.cli.output import print_json, print_table
from inscape.errors import ModelError


def rank(
    models: options.Models,
    data: options.Data,
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
    trust_pickle: options.TrustPickle = False,
    input_shape: options.InputShape = None,
    batch_size: options.BatchSize = None,
    device: options.Device = None,
    json: options.Json = False,
) -> None:
    """Order models by region count on common probes, with the probability that each order is right."""
    from inscape.measures import rank as rank_models

    if len(set(models)) < len(models):
        raise ModelError("a model is named twice: each can be ranked once")
    loaded = options.read_data(data, split, divide)
    wrapped = {
        name: options.read_model(
            model,
            weights=None,
            trust_pickle=trust_pickle,
            input_shape=input_shape,
            batch_size=batch_size,
            device=device,
        )
        for name, model in zip(_names(models), models, strict=True)
    }
    result = rank_models(
        wrapped,
        loaded.x,
        dim=dim,
        n_probes=probes,
        method=method,
        resolution=resolution,
        how=how,
        length=length,
        span=span,
        y=loaded.y,
        classes=classes,
        connectivity=connectivity,
        random_state=seed,
        progress=True,
    )
    if json:
        print_json(result.to_dict())
        return
    print_table(
        f"fewest regions first, on {probes} common probes of {loaded.name} (seed {seed})",
        result.rows(),
        {
            "rank": ("", "d"),
            "model": ("model", ""),
            "region_count": ("regions", ".3f"),
            "std_error": ("+-", ".3f"),
            "p_before_next": ("P(before next)", ".1%"),
            "status": ("status", ""),
        },
    )


def _names(models: list[str]) -> list[str]:
    """File names where these tell the models apart, else what was typed."""
    short = [Path(m).name for m in models]
    return short if len(set(short)) == len(short) else models
