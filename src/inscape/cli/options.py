"""Options that several commands share, each described once, in groups that are taken apart once."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from inscape.arrays import Streamed
from inscape.errors import DataError, InscapeError, ModelError, StudyError
from inscape.progress import meter

if TYPE_CHECKING:
    from inscape.models.preparation import Preparation


MODEL_HELP = (
    ".onnx, .skops or .pt2 file; .json, .ubj, .txt or .cbm of boosted trees; or package.module:factory."
)
DATA_HELP = (
    ".npz, .npy or .csv file, a folder of images, or digits, iris, wine, breast_cancer, mnist, "
    "fashion_mnist, cifar10, cifar100."
)

Model = Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP)]
Models = Annotated[list[str], typer.Argument(metavar="MODEL...", help=MODEL_HELP)]
Data = Annotated[str, typer.Option("--data", metavar="DATA", help=DATA_HELP)]
Split = Annotated[str | None, typer.Option(help="train or test, where there are both.", show_default="test")]
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
PixelScale = Annotated[
    str | None,
    typer.Option(
        metavar="N[,N,...]",
        help="See --mean; 1/255 for pixels. Data and pictures stay as they are, unlike with --divide.",
    ),
]
BatchSize = Annotated[
    int | None, typer.Option(min=1, help="Most points per call of the model.", show_default="automatic")
]
Device = Annotated[str | None, typer.Option(help="Where to run a torch module, e.g. cuda.")]
Autocast = Annotated[
    bool,
    typer.Option("--autocast", help="Half precision on the device, full precision near boundaries."),
]
Dim = Annotated[int, typer.Option(min=1, help="Dimension of the probes: 1 segments, 2 triangles, ...")]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        help="What to measure, once per name: sharpness, local_complexity, ..., or of an installed package.",
    ),
]
Probes = Annotated[int, typer.Option(min=1, help="How many random probes.")]
Method = Annotated[str, typer.Option(help="How to count: auto, exact, adaptive, grid.")]
Resolution = Annotated[
    int | None,
    typer.Option(help="Grid points per axis.", show_default="200 in 1D, 30 in 2D, 4096 points in all above"),
]
How = Annotated[
    str, typer.Option(help="pairs: hulls of data points; direction: a point and a random direction.")
]
Length = Annotated[
    float | None,
    typer.Option(
        help="Length of the random direction.", show_default="half the median distance of two points"
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|NUMBER[,...]",
        help="Which of several outputs decides; 0,2 is the third column of the first.",
    ),
]
Decide = Annotated[
    str | None,
    typer.Option(
        help="What outputs stand for: argmax (the largest wins), argmin, threshold, or sign (the pattern)."
    ),
]
Threshold = Annotated[
    str | None,
    typer.Option(
        metavar="N[,N,...]", help="For threshold and sign.", show_default="1/2 of a sigmoid, else 0"
    ),
]
Levels = Annotated[
    str | None,
    typer.Option(
        metavar="K|N,N,...",
        help="For a regression: K classes by quantiles of its output on the data, or levels as 0.1,0.5.",
    ),
]
Span = Annotated[tuple[float, float], typer.Option(help="Stretch of the line; 0 and 1 are the data points.")]
Classes = Annotated[str, typer.Option(help="Draw points of any, same or different classes.")]
Finest = Annotated[
    int | None, typer.Option(help="Grid points per axis; with --method adaptive, its finest step.")
]
ThreeRows = Annotated[
    tuple[int, int, int] | None,
    typer.Option(
        metavar="I J K", help="Rows of three data points that span a plane.", show_default="3 classes"
    ),
]
Connectivity = Annotated[str, typer.Option(help="face (4 neighbours in 2D) or full (8).")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Budget = Annotated[
    float, typer.Option(help="Most seconds that the work may be foreseen to take; inf for no limit.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", help="Threads: 1 for one, -1 for every core, -2 for all but one.", show_default="every core"
    ),
]
Title = Annotated[
    str | None, typer.Option(help="Title of the picture.", show_default="model and what there is to see")
]
Names = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", help="Class names by label.", show_default="the model's or the data's"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def listed(names: str) -> list[str]:
    """Names that were given with commas between them."""
    return [name.strip() for name in names.split(",")]


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Which data a command reads."""

    data: Data
    split: Split = None
    divide: Divide = 1.0

    def read(self) -> Any:
        """The data set, divided by --divide."""
        from inscape.training import load_data

        if self.divide == 0 or not np.isfinite(self.divide):
            raise DataError(f"--divide {self.divide} is not possible: give a non-zero number")
        loaded = load_data(self.data, split=self.split, progress=True)
        if self.divide == 1:
            return loaded
        if isinstance(loaded.x, Streamed):
            raise DataError(
                f"--divide {self.divide:g} needs all points in memory, and {self.data} has too many images: "
                f"have the model take them so, by --scale 1/{self.divide:g}"
            )
        return replace(loaded, x=loaded.x / self.divide)


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """How a command loads a model and brings the data into it."""

    trust_pickle: TrustPickle = False
    input_shape: InputShape = None
    layout: Layout = None
    mean: Mean = None
    std: Std = None
    scale: PixelScale = None
    output: Output = None
    decide: Decide = None
    threshold: Threshold = None
    levels: Levels = None
    batch_size: BatchSize = None
    device: Device = None
    autocast: Autocast = False

    def read(self, model: str, weights: Path | None = None, *, x: Any) -> Any:
        """The wrapped model that a MODEL argument stands for; `x` are data that quantiles are taken of.

        What a factory prints while it is loaded goes to stderr: stdout is for results.
        """
        from inscape.models.decision_rules import rule_of

        threshold = None if self.threshold is None else _numbers(self.threshold, "threshold")
        with redirect_stdout(sys.stderr), meter(None, f"reading {Path(model).name}"):
            if self.levels is not None and self.levels.isdecimal():
                from inscape.models.wrapping import quantile_levels

                plain = self._read(model, weights, rule_of("levels", None, [0.0]))
                levels: Any = quantile_levels(plain, x, int(self.levels))
            else:
                levels = None if self.levels is None else np.atleast_1d(_numbers(self.levels, "levels"))
            return self._read(model, weights, rule_of(self.decide, threshold, levels))

    def _read(self, model: str, weights: Path | None, rule: Any) -> Any:
        from inscape.models.enclosing import prepared
        from inscape.models.loading import load
        from inscape.models.outputs import Output as ChosenOutput

        steps = [int(s) if s.lstrip("-").isdecimal() else s for s in (self.output or "").split(",")]
        output = None if self.output is None else steps[0] if len(steps) == 1 else tuple(steps)
        preparation, shape = self._preparation(), self._shape()
        inner = load(
            model,
            weights=weights,
            trust_pickle=self.trust_pickle,
            input_shape=preparation.inside(shape),
            device=self.device,
            batch_size=self.batch_size,
            output=ChosenOutput.of(output),
        )
        if self.autocast:
            inner.use_autocast()
        return prepared(inner.decided_by(rule), preparation, shape)

    def _preparation(self) -> "Preparation":
        """What --layout, --mean, --std and --scale say of the way from the data into the model."""
        from inscape.models.preparation import Preparation

        texts = {"mean": self.mean, "std": self.std, "scale": self.scale}
        numbers = {name: _numbers(text, name) for name, text in texts.items() if text is not None}
        return Preparation.of(self.layout if self.layout is None else self.layout.upper(), numbers or None)

    def _shape(self) -> tuple[int, ...] | None:
        text = self.input_shape
        try:
            return None if text is None else tuple(int(n) for n in text.split(","))
        except ValueError as error:
            raise ModelError(
                f"--input-shape {text!r} is not a shape: write numbers, as in 1,28,28"
            ) from error


@dataclass(frozen=True, kw_only=True)
class ChosenProbeOptions:
    """The plane or the segment through data points on which a command looks."""

    points: ThreeRows = None
    segment: Annotated[
        tuple[int, int] | None,
        typer.Option(metavar="I J", help="Rows of two data points, for the segment between them instead."),
    ] = None
    margin: Annotated[
        float, typer.Option(min=0.0, help="How far to look beyond the points, of their extent.")
    ] = 0.25

    def check(self) -> None:
        """Raise an error for options that do not go together."""
        if self.points is not None and self.segment is not None:
            raise InscapeError("give --points for a plane or --segment for a line, not both")

    @property
    def are_given(self) -> bool:
        """Whether a plane or a segment was chosen."""
        return self.points is not None or self.segment is not None

    def probe(self, data: Any) -> Any:
        """The segment between two data points, or the plane through three; that of two features, around all.

        In a table, whose features have units of their own, the plane is measured in standard deviations.
        """
        from inscape.probes import Patch, Segment

        if self.segment is not None:
            a, b = _at_rows(data.x, self.segment)
            return Segment(a, b, (-self.margin, 1 + self.margin))
        if self.points is None and data.x.shape[1:] == (2,):
            return Patch.around(data.table(), margin=self.margin)
        rows = self.points or _of_three_classes(data.y)
        corners = _at_rows(data.x, rows)
        if data.feature_names is None:
            return Patch.through(corners, margin=self.margin)
        return Patch.through(data.table(), rows=rows, scale="std", margin=self.margin)


def points_on(probe: Any, data: Any) -> Any:
    """The data that lie on a probe and are drawn there: all of two features on their plane, else None."""
    if probe.dim != 2 or data.x.shape[1:] != (2,):
        return None
    return data.x if data.y is None else (data.x, data.y)


def _at_rows(x: Any, rows: tuple[int, ...]) -> Any:
    outside = [i for i in rows if not 0 <= i < len(x)]
    if outside:
        raise DataError(f"there is no row {outside[0]}: the data have rows 0 to {len(x) - 1}")
    return x[list(rows)]


def _of_three_classes(y: Any) -> tuple[int, ...]:
    """The first point of each of the first three classes, or simply the first three points."""
    if y is None:
        return (0, 1, 2)
    first = np.sort(np.unique(y, return_index=True)[1])
    return tuple(int(i) for i in first[:3]) if len(first) >= 3 else (0, 1, 2)


@dataclass(frozen=True, kw_only=True)
class ProbeOptions:
    """On which random probes regions are counted, and how."""

    dim: Dim = 1
    probes: Probes = 100
    method: Method = "auto"
    resolution: Resolution = None
    how: How = "pairs"
    length: Length = None
    span: Span = (0.0, 1.0)
    classes: Classes = "any"
    connectivity: Connectivity = "face"

    def settings(self) -> dict[str, Any]:
        """What `inscape.region_count` takes."""
        return {
            "dim": self.dim,
            "n_probes": self.probes,
            "method": self.method,
            "resolution": self.resolution,
            "how": self.how,
            "length": self.length,
            "span": self.span,
            "classes": self.classes,
            "connectivity": self.connectivity,
        }


def candidates(models: list[str], weights: list[Path]) -> dict[str, tuple[str, Path | None]]:
    """Name -> model and weights; the names are file names where these tell the candidates apart."""
    if weights and len(models) > 1:
        raise ModelError("--weights names several states of one factory: give one MODEL with it")
    typed = [str(w) for w in weights] or models
    if len(set(typed)) < len(typed):
        raise ModelError("a model is named twice: give each once")
    short = [Path(t).name for t in typed]
    names = short if len(set(short)) == len(short) else typed
    states: list[Path | None] = [*weights] or [None] * len(models)
    factories = models * len(weights) if weights else models
    return dict(zip(names, zip(factories, states, strict=True), strict=True))


def command(function: Callable[..., None]) -> Callable[..., None]:
    """The function as a command: each parameter that is a group of options becomes these options."""
    given = signature(function).parameters.values()
    groups: dict[str, Any] = {p.name: p.annotation for p in given if is_dataclass(p.annotation)}

    @wraps(function)
    def flat(**values: Any) -> None:
        whole = {
            name: group(**{f.name: values.pop(f.name) for f in fields(group)})
            for name, group in groups.items()
        }
        function(**values, **whole)

    spread = [q for p in given for q in _spread(p, groups)]
    flat.__dict__["__signature__"] = Signature([q.replace(kind=Parameter.KEYWORD_ONLY) for q in spread])
    flat.__annotations__ = {q.name: q.annotation for q in spread}
    return flat


def _spread(parameter: Parameter, groups: dict[str, Any]) -> Iterable[Parameter]:
    """The options of a group, or the parameter itself."""
    if parameter.name not in groups:
        return [parameter]
    return signature(groups[parameter.name]).parameters.values()


def _numbers(text: str, name: str) -> float | list[float]:
    """The number, or the numbers between commas; fractions as in 1/255."""
    try:
        numbers = [_fraction(word) for word in text.split(",")]
    except (ValueError, ZeroDivisionError) as error:
        raise ModelError(
            f"--{name} {text!r} is not a number: write one, as in 0.5 or 1/255, or one per channel with "
            "commas between them"
        ) from error
    return numbers[0] if len(numbers) == 1 else numbers


def _fraction(text: str) -> float:
    over, _, under = text.partition("/")
    return float(over) / float(under or 1)


Trust = Annotated[
    list[Path] | None,
    typer.Option(
        "--trust",
        metavar="FOLDER",
        help="Let the study's code come from this folder, not only from what is installed.",
    ),
]


@contextmanager
def imports_from(trusted: Sequence[Path] | None) -> Iterator[None]:
    """Import code from what is installed and from trusted folders; from the working folder only if it is one.

    The processes of a pool that starts in the block look in the same places.
    """
    folders = [folder.resolve() for folder in trusted or ()]
    for folder in folders:
        if not folder.is_dir():
            raise StudyError(f"--trust {folder} is no folder: give the one that holds the module")
    before = sys.path[:]
    sys.path[:] = [*_without_working_folder(before), *map(str, folders)]
    try:
        yield
    finally:
        sys.path[:] = before


def _without_working_folder(path: list[str]) -> list[str]:
    """The path without what Python puts first by itself: the working folder, for `-m` and `-c`."""
    kept = [entry for entry in path if entry]
    here = os.getcwd()
    if getattr(sys.modules["__main__"], "__spec__", None) is not None and here in kept:
        kept.remove(here)
    return kept


def announce(line: str) -> None:
    """Say on stderr what is about to run."""
    typer.echo(f"inscape: {line}", err=True)
