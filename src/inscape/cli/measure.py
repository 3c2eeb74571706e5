"""`inscape measure`: the measures of one model, or their curves over a folder of checkpoints."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inscape.budget import BUDGET
from inscape.cli import options
from inscape.cli.output import check_picture, line_width, print_json, print_lines, print_table, save_picture
from inscape.errors import MeasureError, ModelError

if TYPE_CHECKING:
    from inscape.measures.measure import MeasureTable

CHECKPOINTS = ("checkpoints",)
MODEL_FILES = (".onnx", ".onnx.gz", ".skops", ".pt2")
WEIGHT_FILES = (".safetensors", ".pt", ".pth")
TAKES = {
    "sigma": {"local_complexity": ("sigma",)},
    "eps": {"local_rank": ("eps",)},
    "radius": {"hull_crossings": ("radius",), "adversarial_accuracy": ("eps",)},
}
"""Option -> the measures that take it, and as what."""


@dataclass(frozen=True, kw_only=True)
class ScaleOptions:
    """The settings that depend on the scale of the data, which no default can know."""

    sigma: Annotated[
        float | None, typer.Option(help="Noise on the biases, for local_complexity.", show_default="0.1")
    ] = None
    eps: Annotated[
        float | None,
        typer.Option(help="The least singular value that counts for local_rank.", show_default="0.001"),
    ] = None
    radius: Annotated[
        float | None,
        typer.Option(
            help="Of the ball, for adversarial_accuracy and hull_crossings.", show_default="0.03 and 0.1"
        ),
    ] = None

    def settings(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Measure -> what is set of it; an error for an option that none of the measures takes."""
        by_measure: dict[str, dict[str, Any]] = {name: {} for name in names}
        for option, takers in TAKES.items():
            value = getattr(self, option)
            if value is None:
                continue
            takers = {name: keys for name, keys in takers.items() if name in by_measure}
            if not takers:
                known = " or ".join(TAKES[option])
                raise MeasureError(f"--{option} is for {known}: ask for it with --measure")
            for name, keys in takers.items():
                by_measure[name] |= dict.fromkeys(keys, value)
        if "eps" in by_measure.get("adversarial_accuracy", {}):
            by_measure["adversarial_accuracy"]["step_size"] = by_measure["adversarial_accuracy"]["eps"] / 4
        return by_measure


@dataclass(frozen=True, kw_only=True)
class SeriesOptions:
    """Whether every checkpoint of a folder is measured, and the picture of their curves."""

    over: Annotated[
        str | None,
        typer.Option(
            metavar="checkpoints",
            help="Measure every model in the folder MODEL, or MODEL with every file of the folder --weights, "
            "in the order of the numbers in their names.",
        ),
    ] = None
    curve: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --over: draw the curves, as .png, .svg or .pdf.")
    ] = None

    def check(self) -> None:
        """Raise an error for options that do not go together."""
        if self.over not in (None, *CHECKPOINTS):
            raise MeasureError(f"--over {self.over} is not possible: write --over checkpoints")
        if self.curve is not None and self.over is None:
            raise MeasureError("--curve draws what --over checkpoints measures: give both")
        if self.curve is not None:
            check_picture(self.curve)


@options.command
def measure(
    model: options.Model,
    *,
    source: options.DataOptions,
    measures: options.Measures = None,
    scales: ScaleOptions,
    series: SeriesOptions,
    probing: options.ProbeOptions,
    seed: options.Seed = 0,
    budget: options.Budget = BUDGET,
    weights: options.Weights = None,
    loading: options.ModelOptions,
    jobs: options.Jobs = None,
    json: options.Json = False,
) -> None:
    """Measure one model: by default its region count and, if the data have classes, its accuracy."""
    from inscape.measures import measure as measure_model

    series.check()
    loaded = source.read()
    names = measures or ["region_count", *([] if loaded.y is None else ["accuracy"])]
    wanted = scales.settings(names)
    if "region_count" in wanted:
        wanted["region_count"] = probing.settings()

    def table_of(name: str, state: Path | None) -> "MeasureTable":
        wrapped = loading.read(name, state, x=loaded.x)
        data = loaded.fitting(wrapped)
        return measure_model(
            wrapped,
            data.x,
            data.y,
            measures=wanted,
            random_state=seed,
            progress=True,
            budget=budget,
            n_jobs=jobs,
        )

    if series.over is not None:
        files = checkpoints(model, weights)
        tables = {
            file: table_of(*((str(file), None) if weights is None else (model, file))) for file in files
        }
        _show_curve(tables, loaded.name, seed, json, series.curve)
        return
    table = table_of(model, weights)
    if json:
        print_json(table.to_dict())
    else:
        print_lines(f"{table.model} on {loaded.name} (seed {seed})", table.to_text(width=line_width()))


def checkpoints(model: str, weights: Path | None) -> list[Path]:
    """The files of a folder of models, or of weights for a model, in the order of their numbers."""
    folder = Path(model) if weights is None else weights
    if not folder.is_dir():
        raise ModelError(
            f"{folder} is no folder: --over checkpoints takes a folder of models as MODEL, or MODEL and a "
            "folder of weights as --weights"
        )
    kinds = MODEL_FILES if weights is None else WEIGHT_FILES
    files = [p for p in folder.iterdir() if p.is_file() and p.name.lower().endswith(kinds)]
    if not files:
        raise ModelError(f"{folder} has no file of {', '.join(kinds)}")
    return sorted(files, key=lambda p: (numbers_in(p.name), p.name))


def numbers_in(name: str) -> tuple[int, ...]:
    """The whole numbers in the name of a file.

    >>> numbers_in("run2-epoch-0010.safetensors")
    (2, 10)
    """
    return tuple(int(n) for n in re.findall(r"\d+", name))


def _show_curve(
    tables: "dict[Path, MeasureTable]", data: str, seed: int, json: bool, picture: Path | None
) -> None:
    """Print a row per checkpoint, or all tables as JSON; draw the curves if a file is given."""
    if picture is not None:
        _draw(tables, picture)
    if json:
        print_json({"checkpoints": [{"file": file.name, **t.to_dict()} for file, t in tables.items()]})
        return
    file, first = next(iter(tables.items()))
    names = [row["measure"] for row in first.rows]
    columns = {"file": ("checkpoint", "")}
    for name in names:
        columns |= {name: (name, ".4g"), f"{name} +-": ("+-", ".2g")}
    rows = [
        {"file": each.name}
        | {row["measure"]: row["value"] for row in table.rows}
        | {f"{row['measure']} +-": row["std_error"] for row in table.rows}
        for each, table in tables.items()
    ]
    print_table(f"{len(rows)} checkpoints on {data} (seed {seed})", rows, columns)
    print_lines(f"of {file.name}:", first.notes_and_settings(width=line_width()))


def _draw(tables: "dict[Path, MeasureTable]", picture: Path) -> None:
    import numpy as np

    from inscape.drawing.measures import draw_curves

    numbers = [numbers_in(file.name) for file in tables]
    is_numbered = all(numbers) and len({n[-1] for n in numbers}) == len(tables)
    steps = [float(n[-1]) for n in numbers] if is_numbered else [float(i) for i in range(len(tables))]
    curves = {}
    for i, row in enumerate(next(iter(tables.values())).rows):
        known = [(s, t.rows[i]["value"]) for s, t in zip(steps, tables.values(), strict=True)]
        values = np.array([pair for pair in known if pair[1] is not None], dtype=np.float64)
        if len(values):
            curves[row["measure"].replace("_", " ")] = (values[:, 0], values[:, 1])
    if not curves:
        raise MeasureError("no measure applies to these models: there is no curve to draw")
    ax = draw_curves(curves, xlabel="number in the file name" if is_numbered else "checkpoint")
    save_picture(ax, picture)
