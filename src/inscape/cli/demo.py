"""`inscape demo`: the main job on embedded data."""

from pathlib import Path
from typing import Annotated

import typer

from inscape.cli import options
from inscape.cli.output import print_json, print_table


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the pictures.")] = Path("inscape-demo"),
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Train small models on the digits, count their regions, and compare with their generalisation gaps."""
    import torch

    from inscape.studies.demo import MEANING, run_demo

    torch.set_num_threads(1)  # these networks are so small that threads only wait for each other
    result = run_demo(out, random_state=seed, progress=True)
    if json:
        print_json(result.to_dict())
        return
    print_table(
        "digits: 600 training and 1,197 test images; regions on 200 common segments between test images",
        result.rows(),
        {
            "model": ("model", ""),
            "region_count": ("regions", ".2f"),
            "std_error": ("+-", ".2f"),
            "train_accuracy": ("train acc.", ".1%"),
            "test_accuracy": ("test acc.", ".1%"),
            "gap": ("gap", ".1%"),
            "status": ("resolution", ""),
        },
    )
    typer.echo("Correlation of region count and gap (Pearson, 95 % bootstrap interval):")
    for family, c in result.correlations.items():
        typer.echo(
            f"  {family:22s} r = {c.value:+.2f}  [{c.interval[0]:+.2f}, {c.interval[1]:+.2f}]  {c.n} models"
        )
    typer.echo(MEANING)
    typer.echo(f"Pictures: {', '.join(str(p) for p in result.pictures)}")
