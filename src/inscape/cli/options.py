"""Options that several commands share, each described once."""

import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from inscape.errors import DataError, ModelError

if TYPE_CHECKING:
    from inscape.models.preprocessing import Preparation

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
InputShape = Annotated[
    str | None, typer.Option(metavar="N,N,...", help="Shape of one point of the data, e.g. 1,28,28.")
]
Layout = Annotated[
    str | None,
    typer.Option(
        help="HWC if the data are channel-last and the model is not, CHW for the reverse; transposes images."
    ),
]
_PER_CHANNEL = "One number, or one per channel: 0.4914,0.4822,0.4465."
Mean = Annotated[
    str | None,
    typer.Option(metavar="N[,N,...]", help=f"The model takes (scale x - mean) / std. {_PER_CHANNEL}"),
]
Std = Annotated[str | None, typer.Option(metavar="N[,N,...]", help=f"See --mean. {_PER_CHANNEL}")]
Scale = Annotated[
    str | None,
    typer.Option(
        metavar="N[,N,...]",
        help="See --mean; 1/255 for pixels. Data and pictures stay as they are, unlike with --divide.",
    ),
]
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


def read_preparation(
    layout: str | None, mean: str | None, std: str | None, scale: str | None
) -> "Preparation":
    """What --layout, --mean, --std and --scale say of the way from the data into the model."""
    from inscape.models.preprocessing import Preparation

    texts = {"mean": mean, "std": std, "scale": scale}
    numbers = {name: _numbers(text, name) for name, text in texts.items() if text is not None}
    return Preparation.of(layout if layout is None else layout.upper(), numbers or None)


def _numbers(text: str, name: str) -> float | list[float]:
    """The number, or the numbers between commas; fractions as in 1/255."""
    try:
        numbers = [_fraction(part) for part in text.split(",")]
    except (ValueError, ZeroDivisionError) as error:
        raise ModelError(
            f"--{name} {text!r} is not a number: write one, as in 0.5 or 1/255, or one per channel with "
            "commas between them"
        ) from error
    return numbers[0] if len(numbers) == 1 else numbers


def _fraction(text: str) -> float:
    over, _, under = text.partition("/")
    return float(over) / float(under or 1)


def read_model(
    model: str,
    *,
    weights: Path | None,
    trust_pickle: bool,
    input_shape: str | None,
    batch_size: int | None,
    device: str | None,
    preparation: "Preparation",
) -> Any:
    """The wrapped model that a MODEL argument stands for.

    What a factory prints while it is loaded goes to stderr: stdout is for results.
    """
    from inscape.models.loading import load
    from inscape.models.prepared import prepared

    try:
        shape = None if input_shape is None else tuple(int(n) for n in input_shape.split(","))
    except ValueError as error:
        raise ModelError(
            f"--input-shape {input_shape!r} is not a shape: write numbers, as in 1,28,28"
        ) from error
    with redirect_stdout(sys.stderr):
        return prepared(
            lambda inside: load(
                model,
                weights=weights,
                trust_pickle=trust_pickle,
                input_shape=inside,
                device=device,
                batch_size=batch_size,
            ),
            preparation,
            shape,
        )
