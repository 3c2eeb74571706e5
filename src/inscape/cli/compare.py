"""`inscape compare`: where two models or more differ, on a plane, a segment, or on random probes."""

from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import typer

from inscape.budget import BUDGET
from inscape.cli import options
from inscape.cli.output import check_picture, line_width, print_json, print_lines, save_picture
from inscape.cli.plot import class_names_of
from inscape.errors import InscapeError, ModelError
from inscape.text_table import Columns, text_table

COLUMNS: Columns = {
    "a": ("a", ""),
    "b": ("b", ""),
    "agreement": ("agreement", ".4f"),
    "std_error": ("+-", ".4f"),
    "at_points": ("at the data", ".4f"),
    "how": ("method", ""),
}


@options.command
def compare(
    models: options.Models,
    *,
    source: options.DataOptions,
    where: options.ChosenProbeOptions,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Picture: .png, .pdf, .svg or .jpg."),
    ] = None,
    probes: Annotated[
        int, typer.Option(min=1, help="Without --points, --segment and --out: over this many random probes.")
    ] = 100,
    dim: Annotated[int, typer.Option(min=1, max=2, help="Of the random probes.")] = 1,
    method: options.Method = "auto",
    resolution: options.Finest = None,
    scores: Annotated[
        str, typer.Option(help="What the largest difference is of: own, or softmax for probabilities.")
    ] = "own",
    seed: options.Seed = 0,
    weights: Annotated[
        list[Path] | None,
        typer.Option(help="Compare these states of the one factory that MODEL names; repeat it."),
    ] = None,
    title: options.Title = None,
    names: options.Names = None,
    loading: options.ModelOptions,
    budget: options.Budget = BUDGET,
    jobs: options.Jobs = None,
    json: options.Json = False,
) -> None:
    """Say where two models or more have different labels, on how much of a plane, and by how much."""
    if out is not None:
        check_picture(out)
    where.check()
    loaded = source.read()
    named = {
        name: loading.read(model, state, x=loaded.x)
        for name, (model, state) in options.candidates(models, weights or []).items()
    }
    loaded = loaded.fitting(*named.values())
    if len(named) < 2:
        raise ModelError("one model alone cannot be compared: give two or more, or two --weights")
    work = {"progress": True, "budget": budget, "n_jobs": jobs}
    if not where.are_given and out is None:
        counting = {"n_probes": probes, "dim": dim, "method": method, "resolution": resolution}
        _over_probes(named, loaded.x, counting | {"random_state": seed} | work, json)
        return
    probe = where.probe(loaded)
    settings: dict[str, Any] = {"method": method, "resolution": resolution, "scores": scores} | work
    if len(named) == 2:
        style = {"title": title, "points": options.points_on(probe, loaded)}
        style["class_names"] = class_names_of(names, next(iter(named.values())), loaded)
        _two(named, probe, settings, style, out, json)
    else:
        _several(named, probe, settings, title, out, json)


def _two(
    named: dict[str, Any],
    probe: Any,
    settings: dict[str, Any],
    style: dict[str, Any],
    out: Path | None,
    json: bool,
) -> None:
    """Two models on one probe."""
    from inscape.compare import compare as compare_models

    a, b = named.values()
    first, second = named
    comparison = compare_models(a, b, probe, names=(first, second), **settings)
    lines = [
        comparison.certificate,
        f"mean overlap of the classes (IoU) {comparison.iou:.4g}, {comparison.n_regions} regions",
    ]
    try:
        lines.append(repr(comparison.max_difference).strip("<>"))
    except InscapeError as error:
        lines.append(str(error))
    ax = None if out is None else comparison.plot(**style)
    _finish(comparison.to_dict(polygons=True), lines, ax, out, json)


def _several(
    named: dict[str, Any],
    probe: Any,
    settings: dict[str, Any],
    title: str | None,
    out: Path | None,
    json: bool,
) -> None:
    """More models on one probe."""
    from inscape.compare import compare as compare_models

    matrix = compare_models(named, probe, **settings)
    rows = [
        {"model": name} | {other: float(share) for other, share in zip(matrix.names, own, strict=True)}
        for name, own in zip(matrix.names, matrix.disagreement, strict=True)
    ]
    columns: Columns = {"model": ("labels differ on", "")} | {name: (name, ".2%") for name in matrix.names}
    lines = [text_table(rows, columns, width=line_width()), repr(matrix).strip("<>")]
    _finish(matrix.to_dict(), lines, None if out is None else matrix.plot(title=title), out, json)


def _finish(written: dict[str, Any], lines: list[str], ax: Any, out: Path | None, json: bool) -> None:
    """Draw, and print what was found."""
    if out is not None:
        save_picture(ax, out)
    if json:
        print_json(written | ({} if out is None else {"picture": str(out)}))
        return
    for line in lines:
        typer.echo(line)
    if out is not None:
        typer.echo(str(out))


def _over_probes(
    named: dict[str, Any],
    x: Any,
    settings: dict[str, Any],
    json: bool,
) -> None:
    """Each two models over random probes; the settings are those of `inscape.agreement`."""
    from inscape.compare import agreement

    agreements = {(a, b): agreement(named[a], named[b], x, **settings) for a, b in combinations(named, 2)}
    if json:
        print_json({"pairs": [{"a": a, "b": b} | r.to_dict() for (a, b), r in agreements.items()]})
        return
    rows = [
        {"a": a, "b": b, "agreement": r.mean, "std_error": r.std_error, "at_points": r.at_points}
        | {"how": f"{r.method}, {r.status.heading}"}
        for (a, b), r in agreements.items()
    ]
    kind = "segments" if settings["dim"] == 1 else "triangles"
    probes = f"{settings['n_probes']} random {kind} between data points"
    title = f"share of {probes} on which labels are equal (seed {settings['random_state']})"
    print_lines(title, text_table(rows, COLUMNS, width=line_width()))
