"""The command line: one file per command, errors as one line and exit code 2."""

import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from inscape import __version__
from inscape.cli.check import check
from inscape.cli.compare import compare
from inscape.cli.cost import cost
from inscape.cli.demo import demo
from inscape.cli.explore import explore
from inscape.cli.measure import measure
from inscape.cli.plot import plot
from inscape.cli.rank import rank
from inscape.cli.report import report
from inscape.cli.study import study
from inscape.errors import InscapeError, InscapeWarning
from inscape.stopping import EXIT_CODE, STOPPED, interrupts_raised


class _CommandGroup(TyperGroup):
    """A group whose commands end with one clear line on stderr when the user's input is at fault."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run, and turn an error of usage, which would be shown as a box, into that line as well."""
        try:
            code = super().main(*args, **{**options, "standalone_mode": False})
        except Exception as error:
            if not hasattr(error, "format_message"):  # not an error of usage
                raise
            message = " ".join(error.format_message().split())
            if message:  # without arguments the help says it all
                typer.echo(f"inscape: {message} (see --help)", err=True)
            code = 2
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            warnings.simplefilter("default", InscapeWarning)  # they are results too, whatever is filtered
            try:
                with interrupts_raised():
                    return super().invoke(ctx)
            except InscapeError as error:
                typer.echo(f"inscape: {' '.join(str(error).split())}", err=True)
                raise typer.Exit(2) from error
            except KeyboardInterrupt as error:
                typer.echo(STOPPED, err=True)
                raise typer.Exit(EXIT_CODE) from error


def _show_warning(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
    if issubclass(category, InscapeWarning):
        typer.echo(f"inscape: warning: {message}", err=True)
    else:
        sys.stderr.write(warnings.formatwarning(message, category, *where[:2]))


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"inscape {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=_CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Measure and draw the regions that a trained model cuts its input space into.",
)


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Measure and draw the regions that a trained model cuts its input space into."""


for command in (demo, measure, rank, plot, compare, check, cost, report, explore):
    app.command()(command)
app.add_typer(study, name="study")


def main() -> None:
    """Run the command line."""
    app()
