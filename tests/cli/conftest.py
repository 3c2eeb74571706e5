"""What the tests of the command line share: a runner of commands."""

import pytest
from typer.testing import CliRunner

from inscape.cli import app


@pytest.fixture
def run():
    """Runs the command line with arguments, paths among them."""
    runner = CliRunner()
    return lambda *arguments: runner.invoke(app, [str(a) for a in arguments])
