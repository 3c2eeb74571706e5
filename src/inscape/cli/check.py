"""`inscape check`: what theory says about one model, measured."""

from typing import TYPE_CHECKING, Annotated

import typer

from inscape.budget import BUDGET
from inscape.cli import options
from inscape.cli.output import line_width, print_json, print_lines, print_table
from inscape.text_table import notes_below

if TYPE_CHECKING:
    from inscape.theory import Check


@options.command
def check(
    model: options.Model,
    *,
    source: options.DataOptions,
    step_size: Annotated[
        float | None, typer.Option(help="Step size of the gradient descent that trained it.")
    ] = None,
    sigma: Annotated[float, typer.Option(help="Noise on the biases, for local complexity.")] = 0.1,
    eta: Annotated[float | None, typer.Option(help="How near a kink is near.", show_default="sigma")] = None,
    eps: Annotated[float, typer.Option(help="Smallest singular value that counts for the rank.")] = 0.1,
    noise: Annotated[int, typer.Option(min=2, help="How many noisy networks.")] = 32,
    max_points: Annotated[int, typer.Option(min=2, help="At most this many random points.")] = 200,
    seed: options.Seed = 0,
    budget: options.Budget = BUDGET,
    weights: options.Weights = None,
    loading: options.ModelOptions,
    json: options.Json = False,
) -> None:
    """Check the statements of four papers on one model: both sides, their ratio, a verdict, or a reason."""
    from inscape.measures.accuracy import warn_at_chance
    from inscape.theory import check_all
    from inscape.theory.check_all import COLUMNS

    loaded = source.read()
    wrapped = loading.read(model, weights, x=loaded.x)
    loaded = loaded.fitting(wrapped)
    warn_at_chance(wrapped, loaded.x, loaded.y)
    table = check_all(
        wrapped,
        loaded.x,
        loaded.y,
        step_size=step_size,
        sigma=sigma,
        eta=eta,
        eps=eps,
        n_noise=noise,
        max_points=max_points,
        random_state=seed,
        progress=True,
        budget=budget,
    )
    if json:
        print_json(table.to_dict())
        return
    about = f"{table.model} on {loaded.name} (seed {seed})"
    applied = [c for c in table if c.verdict != "does not apply"]
    if not applied:
        typer.echo(f"{about}: no statement applies")
    differing = {
        c.name for c in applied for other in applied if c.name == other.name and c.note != other.note
    }
    rows = [
        c.to_dict() | {"noted": f"{c.name} ({c.form})" if c.name in differing else c.name} for c in applied
    ]
    print_table(about, rows, COLUMNS, notes=("noted", "note"))
    refuted = [(c.name, c.refutes) for c in applied if c.verdict == "violated" and c.refutes]
    if refuted:
        print_lines("what a violation refutes", notes_below(refuted, width=line_width()))
    reasons = {c.name: c for c in table if c.verdict == "does not apply"}
    lines = notes_below([(name, _reason(c)) for name, c in reasons.items()], width=line_width())
    print_lines("what does not apply", lines)


def _reason(unfit: "Check") -> str:
    """Why a statement says nothing here."""
    unmet = "; ".join(unfit.unmet)
    return unmet if unmet == unfit.note else f"not met: {unmet}"
