"""`inscape plot`: the picture of a plane or a segment through data points."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from inscape.budget import BUDGET
from inscape.cli import options
from inscape.cli.output import check_folder, check_picture, print_json, save_picture
from inscape.errors import InscapeError, unknown_name, warn

_COLOURS = ("pattern", "layer", "slope")

Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Picture: .png, .pdf, .svg or .jpg; or the regions: .json, .csv or .geojson.",
    ),
]


@options.command
def plot(
    model: options.Model,
    *,
    source: options.DataOptions,
    out: Out = None,
    where: options.ChosenProbeOptions,
    method: options.Method = "auto",
    resolution: options.Finest = None,
    linear: Annotated[bool, typer.Option("--linear", help="Draw the linear regions of a network.")] = False,
    colour: Annotated[
        str | None, typer.Option(help="Of linear regions: pattern, layer or slope.", show_default="pattern")
    ] = None,
    connectivity: options.Connectivity = "face",
    title: options.Title = None,
    names: options.Names = None,
    budget: options.Budget = BUDGET,
    weights: options.Weights = None,
    loading: options.ModelOptions,
    jobs: options.Jobs = None,
    json: options.Json = False,
) -> None:
    """Draw the decision regions on the plane through three data points, or on a segment between two."""
    from inscape.measures.accuracy import warn_at_chance

    _check_file(out, json)
    _check(where, method, resolution, linear, colour)
    loaded = source.read()
    wrapped = loading.read(model, weights, x=loaded.x)
    loaded = loaded.fitting(wrapped)
    warn_at_chance(wrapped, loaded.x, loaded.y)
    probe = where.probe(loaded)
    work: dict[str, Any] = {"progress": True, "budget": budget, "n_jobs": jobs}
    if linear:
        from inscape.partition import linear_regions

        regions: Any = linear_regions(wrapped, probe, **work)
    else:
        how = {"method": method, "resolution": resolution, "connectivity": connectivity}
        regions = _decision_regions(wrapped, probe, how | work)
    class_names = class_names_of(names, wrapped, loaded)
    if out is not None and is_table(out):
        _named(regions, class_names).save(out)
    elif out is not None:
        style: dict[str, Any] = {"title": title, "class_names": class_names}
        style["points"] = options.points_on(probe, loaded)
        if linear and probe.dim == 2:
            style["colour"] = colour or "pattern"
        _draw(regions, wrapped.name, out, style)
    if json:
        written = _named(regions, class_names).to_dict(polygons=True)
        print_json(written | {"picture": None if out is None else str(out)})
    else:
        typer.echo(str(out))


def _decision_regions(model: Any, probe: Any, settings: dict[str, Any]) -> Any:
    """The regions to be drawn, and a warning if they may be wrong."""
    from inscape.partition import decision_regions
    from inscape.partition.decision.regions import UNCERTAIN

    regions: Any = decision_regions(model, probe, **settings)
    if regions.status.kind in UNCERTAIN:
        warn(f"the picture may be wrong ({regions.method}): {regions.status}")
    return regions


def _draw(regions: Any, model: str, out: Path, style: dict[str, Any]) -> None:
    """The picture in its file; a title that is not given says which model it is of."""
    ax = regions.plot(**style)
    if style["title"] is None:
        ax.title.set_text(f"{model}: {ax.get_title()}")
    save_picture(ax, out)


def _named(regions: Any, class_names: Any) -> Any:
    """The regions with the class names that a picture of them has."""
    from inscape.pictures import Style

    labels = regions._drawn_labels
    n = max(len(regions.class_names or ()), int(labels.max(initial=-1)) + 1)
    if class_names is None or n == 0 or labels.min(initial=0) < 0:
        return regions
    names = Style(class_names).classes(range(n), regions.class_names)[0].names
    return replace(regions, class_names=tuple(names[label] for label in range(n)))


def class_names_of(given: str | None, model: Any, data: Any) -> Any:
    """The class names to be written: as given, or those of the data if the model has numbers only."""
    if given is not None:
        return options.listed(given)
    if data.classes is None:
        return None
    if model.classes is not None:  # of these, numbers are classes of the data
        return {str(number): name for number, name in enumerate(data.classes)}
    fits = not model.has_scores or model.scores(data.x[:1]).shape[1] == len(data.classes)
    return dict(enumerate(data.classes)) if fits else None


def is_table(path: Path) -> bool:
    """Whether a file takes the regions themselves, not their picture."""
    from inscape.partition.region_files import TABLES

    return path.suffix.lower() in TABLES


def _check_file(out: Path | None, json: bool) -> None:
    """Raise an error if there is nowhere to write, or a file that takes neither a picture nor regions."""
    if out is None and not json:
        raise InscapeError(
            "where to? -o plane.png draws, -o plane.geojson writes polygons, --json prints them"
        )
    if out is not None:
        (check_folder if is_table(out) else check_picture)(out)


def _check(
    where: options.ChosenProbeOptions,
    method: str,
    resolution: int | None,
    linear: bool,
    colour: str | None,
) -> None:
    """Raise an error for options that do not go together."""
    from inscape.partition.decision.method import check_method

    where.check()
    check_method(method)
    if linear and (method == "grid" or resolution is not None):
        raise InscapeError("--linear is exact: leave out --method grid and --resolution")
    if colour is not None and (not linear or where.segment is not None):
        raise InscapeError("--colour is for the linear regions of a plane: give it with --linear")
    if colour is not None and colour not in _COLOURS:
        raise InscapeError(unknown_name("colour", colour, _COLOURS))
