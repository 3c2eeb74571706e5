"""Options that several commands share, each described once."""

import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from inscape.errors import DataError, ModelError

MODEL_HELP = ".onnx, .skops or .pt2 file, or package.module:factory."
DATA_HELP = (
    ".npz, .npy or .csv file, a folder of images, or digits, iris, wine, breast_cancer, mnist, "
    "fashion_mnist, cifar10, cifar100."
)

Model = Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP)]
Models = Annotated[list[str], typer.Argument(metavar="MODEL...", help=MODEL_HELP)]
Data = Annotated[str, typer.Option("--data", metavar="DATA", help=DATA_HELP)]
Split = Annotated[str | None, typer.Option(help="train or test, where there are both. [default: test]")]
Divide = Annotated[float, typer.Option(help="Divide the data by this, e.g. 255 for pixels.")]
Weights = Annotated[
    Path | None,
    typer.Option(help="State for the factory's torch module: .safetensors, or .pt (weights only)."),
]
TrustPickle = Annotated[
    bool,
    typer.Option("--trust-pickle", help="Also load pickles (.pkl, .joblib, .pt). A pickle can run any code."),
]
InputShape = Annotated[str | None, typer.Option(metavar="N,N,...", help="Shape of one point, e.g. 1,28,28.")]
BatchSize = Annotated[
    int | None, typer.Option(min=1, help="Most points per call of the model. [default: automatic]")
]
Device = Annotated[str | None, typer.Option(help="Where to run a torch module, e.g. cuda.")]
Dim = Annotated[int, typer.Option(min=1, help="Dimension of the probes: 1 segments, 2 triangles, ...")]
Measures = Annotated[
    list[str] | None,
    typer.Option("--measure", help="What to measure, once per name: sharpness, local_complexity, ..."),
]
Probes = Annotated[int, typer.Option(min=1, help="How many random probes.")]
Method = Annotated[str, typer.Option(help="How to count: auto, exact, adaptive, grid.")]
Resolution = Annotated[
    int | None,
    typer.Option(help="Grid points per axis. [default: 200 in 1D, 30 in 2D, 4096 points in all above]"),
]
How = Annotated[
    str, typer.Option(help="pairs: hulls of data points; direction: a point and a random direction.")
]
Length = Annotated[float | None, typer.Option(help="Length of the random direction.")]
Span = Annotated[tuple[float, float], typer.Option(help="Stretch of the line; 0 and 1 are the data points.")]
Classes = Annotated[str, typer.Option(help="Draw points of any, same or different classes.")]
Connectivity = Annotated[str, typer.Option(help="face (4 neighbours in 2D) or full (8).")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def read_data(data: str, split: str | None, divide: float) -> Any:
    """The data set, divided by `divide`."""
    from inscape.training import load_data

    if divide == 0 or not np.isfinite(divide):
        raise DataError(f"--divide {divide} is not possible: give a non-zero number")
    loaded = load_data(data, split=split, progress=True)
    return loaded if divide == 1 else replace(loaded, x=loaded.x / divide)


def read_model(
    model: str,
    *,
    weights: Path | None,
    trust_pickle: bool,
    input_shape: str | None,
    batch_size: int | None,
    device: str | None,
) -> Any:
    """The wrapped model that a MODEL argument stands for.

    What a factory prints while it is loaded goes to stderr: stdout is for results.
    """
    from inscape.models.loading import load

    try:
        shape = None if input_shape is None else tuple(int(n) for n in input_shape.split(","))
    except ValueError as error:
        raise ModelError(
            f"--input-shape {input_shape!r} is not a shape: write numbers, as in 1,28,28"
        ) from error
    with redirect_stdout(sys.stderr):
        return load(
            model,
            weights=weights,
            trust_pickle=trust_pickle,
            input_shape=shape,
            device=device,
            batch_size=batch_size,
        )
