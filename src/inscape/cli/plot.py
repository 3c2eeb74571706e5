"""`inscape plot`: the picture of a plane or a segment through data points."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from inscape.budget import BUDGET
from inscape.cli import options
from inscape.cli.output import print_json
from inscape.errors import DataError, InscapeError, unknown_name, warn
from inscape.files import replacing

ENDINGS = (".png", ".pdf", ".svg", ".jpg")
_COLOURS = ("pattern", "layer", "slope")


@options.command
def plot(
    model: options.Model,
    *,
    source: options.DataOptions,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Picture: .png, .pdf, .svg or .jpg.")
    ],
    points: Annotated[
        tuple[int, int, int] | None,
        typer.Option(
            metavar="I J K", help="Rows of three data points that span the plane. [default: 3 classes]"
        ),
    ] = None,
    segment: Annotated[
        tuple[int, int] | None,
        typer.Option(metavar="I J", help="Draw the segment between two data points instead."),
    ] = None,
    method: options.Method = "auto",
    resolution: Annotated[
        int | None, typer.Option(help="Grid points per axis; with --method adaptive, its finest step.")
    ] = None,
    linear: Annotated[bool, typer.Option("--linear", help="Draw the linear regions of a network.")] = False,
    colour: Annotated[
        str | None, typer.Option(help="Of linear regions: pattern, layer or slope. [default: pattern]")
    ] = None,
    margin: Annotated[
        float, typer.Option(min=0.0, help="How far to look beyond the points, of their extent.")
    ] = 0.25,
    connectivity: options.Connectivity = "face",
    title: Annotated[
        str | None, typer.Option(help="Title of the picture. [default: model and count]")
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Class names by label. [default: the model's or the data's]"),
    ] = None,
    budget: options.Budget = BUDGET,
    weights: options.Weights = None,
    loading: options.ModelOptions,
    jobs: options.Jobs = None,
    json: options.Json = False,
) -> None:
    """Draw the decision regions on the plane through three data points, or on a segment between two."""
    from inscape.measures.accuracy import warn_at_chance

    _check(out, points, segment, method, resolution, linear, colour)
    loaded = source.read()
    wrapped = loading.read(model, weights, x=loaded.x)
    loaded = loaded.fitting(wrapped)
    warn_at_chance(wrapped, loaded.x, loaded.y)
    probe = probe_of(loaded, points, segment, margin)
    if linear:
        from inscape.partition import linear_regions

        regions: Any = linear_regions(wrapped, probe, progress=True, budget=budget, n_jobs=jobs)
        extra = {} if probe.dim == 1 else {"colour": colour or "pattern"}
    else:
        from inscape.partition import decision_regions
        from inscape.partition.decision.regions import UNCERTAIN

        regions = decision_regions(
            wrapped,
            probe,
            method=method,
            resolution=resolution,
            connectivity=connectivity,
            progress=True,
            budget=budget,
            n_jobs=jobs,
        )
        if regions.status.kind in UNCERTAIN:
            warn(f"the picture may be wrong ({regions.method}): {regions.status}")
        extra = {}
    ax = regions.plot(title=title, class_names=class_names_of(names, wrapped, loaded), **extra)
    if title is None:
        ax.title.set_text(f"{wrapped.name}: {ax.get_title()}")
    try:
        with replacing(out) as draft:
            ax.figure.savefig(draft, dpi=150)
    except OSError as error:
        raise InscapeError(f"cannot write {out}: {error.strerror or error}") from error
    if json:
        print_json(regions.to_dict(polygons=True) | {"picture": str(out)})
    else:
        typer.echo(str(out))


def class_names_of(given: str | None, model: Any, data: Any) -> Any:
    """The class names to be written: as given, or those of the data if the model has numbers only."""
    if given is not None:
        return [name.strip() for name in given.split(",")]
    if data.classes is None:
        return None
    if model.classes is not None:  # of these, numbers are classes of the data
        return {str(number): name for number, name in enumerate(data.classes)}
    fits = not model.has_scores or model.scores(data.x[:1]).shape[1] == len(data.classes)
    return dict(enumerate(data.classes)) if fits else None


def _check(
    out: Path,
    points: tuple[int, int, int] | None,
    segment: tuple[int, int] | None,
    method: str,
    resolution: int | None,
    linear: bool,
    colour: str | None,
) -> None:
    """Raise an error for options that do not go together."""
    from inscape.partition.decision.method import check_method

    if out.suffix.lower() not in ENDINGS:
        raise InscapeError(f"cannot draw into {out}: the file must end in {', '.join(ENDINGS)}")
    if points is not None and segment is not None:
        raise InscapeError("give --points for a plane or --segment for a line, not both")
    check_method(method)
    if linear and (method == "grid" or resolution is not None):
        raise InscapeError("--linear is exact: leave out --method grid and --resolution")
    if colour is not None and (not linear or segment is not None):
        raise InscapeError("--colour is for the linear regions of a plane: give it with --linear")
    if colour is not None and colour not in _COLOURS:
        raise InscapeError(unknown_name("colour", colour, _COLOURS))


def probe_of(
    data: Any, points: tuple[int, int, int] | None, segment: tuple[int, int] | None, margin: float
) -> Any:
    """The segment between two data points, or the plane through three."""
    from inscape.probes import Patch, Segment

    if segment is not None:
        a, b = _rows(data.x, segment)
        return Segment(a, b, (-margin, 1 + margin))
    return Patch.through(_rows(data.x, points or _of_three_classes(data.y)), margin=margin)


def _rows(x: Any, rows: tuple[int, ...]) -> Any:
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
