"""`inscape explore`: the page on which planes are dragged through a model's input space."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from inscape.cli import options
from inscape.drawing.palette import in_order
from inscape.errors import DataError, ModelError

MODELS = (".onnx", ".gz", ".skops", ".pt2")
STATES = (".safetensors", ".pt", ".pth")


@options.command
def explore(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...", help=f"{options.MODEL_HELP} Several to compare; or a folder of checkpoints."
        ),
    ],
    *,
    source: options.DataOptions,
    points: options.ThreeRows = None,
    weights: Annotated[
        list[Path] | None,
        typer.Option(
            help="States (.safetensors, .pt) of the factory that MODEL names, or a folder of them; repeat it."
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any port that is free.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page now.")] = True,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the page of the first plane into one .html file instead."),
    ] = None,
    names: options.Names = None,
    loading: options.ModelOptions,
) -> None:
    """Look around in a model's input space: a page on this machine, until Ctrl-C.

    Prints the address of the page, the token in it included; only who has it can see the page.
    """
    from inscape.explorer import Explorer
    from inscape.explorer.data_points import DataPoints
    from inscape.explorer.exhibit import Exhibit

    loaded = source.read()
    files, is_sequence = _in_folders(models, weights or [])
    by_name = {name: loading.read(*where, x=loaded.x) for name, where in options.candidates(*files).items()}
    loaded = loaded.fitting(*by_name.values())
    data = DataPoints.of(
        loaded.x, loaded.y, features=loaded.feature_names, units=None, image_shape=None, scale="auto"
    )
    if points is not None and (outside := [i for i in points if not 0 <= i < len(data)]):
        raise DataError(f"there is no row {outside[0]}: the page offers rows 0 to {len(data) - 1}")
    exhibit = Exhibit(
        by_name,
        data,
        class_names=_names(loaded, by_name) if names is None else options.listed(names),
        rows=points,
        is_sequence=is_sequence,
        source=_lines(by_name, files, source, loading),
        title=None if len(by_name) == 1 else loaded.name,
    )
    explorer = Explorer(exhibit)
    if save is not None:
        typer.echo(str(explorer.save(save)))
        return
    explorer.start(port=port, browser=browser)
    typer.echo(explorer.url)
    sys.stdout.flush()
    explorer.serve(browser=False)


def _in_folders(models: list[str], weights: list[Path]) -> tuple[tuple[list[str], list[Path]], bool]:
    """The models and weights with a folder as the files in it, in order; whether there was a folder."""
    is_sequence = any(Path(given).is_dir() for given in [*models, *map(str, weights)])
    typed = [file for model in models for file in _files(model, MODELS)]
    states = [Path(file) for given in weights for file in _files(str(given), STATES)]
    return (typed, states), is_sequence


def _files(given: str, endings: tuple[str, ...]) -> list[str]:
    """The files of a folder that have one of some endings, numbers in their names by size; else the name."""
    folder = Path(given)
    if not folder.is_dir():
        return [given]
    files = sorted(
        (p for p in folder.iterdir() if p.suffix.lower() in endings), key=lambda p: in_order(p.name)
    )
    if not files:
        raise ModelError(
            f"the folder {given} holds no model: expected files that end in {', '.join(endings)}"
        )
    return [str(path) for path in files]


def _names(data: Any, models: dict[str, Any]) -> Any:
    """The names of the data's classes, if the models have none."""
    has_own = any(model.classes is not None for model in models.values())
    return None if data.classes is None or has_own else dict(enumerate(data.classes))


def _lines(
    models: dict[str, Any],
    files: tuple[list[str], list[Path]],
    source: options.DataOptions,
    loading: options.ModelOptions,
) -> str:
    """Lines of Python that load the same models and data, for "copy as Python"."""
    split = "" if source.split is None else f", split={source.split!r}"
    lines = ["from inscape.models.loading import load", "from inscape.training import load_data", ""]
    lines.append(f"data = load_data({source.data!r}{split})")
    lines.append(f"x, y = data.x{'' if source.divide == 1 else f' / {source.divide}'}, data.y")
    named = {
        name: repr(model) if state is None else f"{model!r}, weights={str(state)!r}"
        for name, (model, state) in options.candidates(*files).items()
    }
    if loading != options.ModelOptions():
        lines.append("# load each model as the command line did: see inscape.wrap for its other options")
    if len(models) == 1:
        lines.append(f"model = load({next(iter(named.values()))})")
    else:
        inner = "".join(f"    {name!r}: load({call}),\n" for name, call in named.items())
        lines.append(f"models = {{\n{inner}}}")
    return "\n".join(lines) + "\n"
