"""`inscape demo`: the main job on embedded data."""

from pathlib import Path
from typing import Annotated

import typer

from inscape.cli import options
from inscape.cli.output import line_width, print_json, print_table
from inscape.text_table import paragraph


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for pictures, data and two networks.")
    ] = Path("inscape-demo"),
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A few seconds: 15 models, hardly trained. Too little for a lesson."),
    ] = False,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Train small models on the digits, and see where their region counts tell their gaps and where not."""
    import torch

    from inscape.studies.demo import FAMILIES, FULL, QUICK, run_demo

    torch.set_num_threads(1)  # these networks are so small that threads only wait for each other
    size = QUICK if quick else FULL
    result = run_demo(out, size=size, random_state=seed, progress=True)
    if json:
        print_json(result.to_dict())
        return
    print_table(
        "digits: 600 training and 1,197 test images; "
        f"exact regions on {size.n_probes} common segments of test images",
        result.rows(),
        {
            "model": ("model", ""),
            "region_count": ("regions", ".2f"),
            "std_error": ("+-", ".2f"),
            "train_accuracy": ("train acc.", ".1%"),
            "test_accuracy": ("test acc.", ".1%"),
            "gap": ("gap", ".1%"),
        },
    )
    typer.echo("Where the count tells the gap, and where not (r with its 95 % bootstrap interval):")
    for x in result.lessons:
        gaps = f"gaps {x.gaps[0]:.1%} to {x.gaps[1]:.1%} (each known to +-{x.sampling_error:.1%})"
        echo(f"  {FAMILIES[x.family]}: {gaps}, r = {x.correlation}: {x.words}.")
    r = result.correlations["all"]
    echo(f"  All {r.n} models together: r = {r}, which compares families, not models.")
    echo(result.learnt)
    echo(f"Pictures: {', '.join(str(p) for p in result.pictures)}")
    data, *nets = map(str, result.files)
    echo(f"Go on with your own questions: inscape rank {' '.join(nets)} --data {data} --train {data}")


def echo(text: str) -> None:
    """Print a paragraph in the width of the terminal."""
    typer.echo(paragraph(text, width=line_width()))
