"""Ctrl-C while a command is being loaded, at moments fixed by what is imported then."""

import os
import signal
import subprocess
import sys

import pytest

from inscape import stopping

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them"),
    pytest.mark.usefixtures("interruptible"),
]

STRIKE = """
import os, signal, sys

class Strike:
    def find_spec(self, name, path=None, target=None):
        if name == {moment!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Strike())
"""


def run(tmp_path, moment, *command):
    """Run a command that is interrupted when it imports `moment`."""
    (tmp_path / "sitecustomize.py").write_text(STRIKE.format(moment=moment))
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moment", "words"),
    [
        ("importlib.metadata", ["--version"]),
        ("numpy", ["study", "list"]),
        ("inscape.measures", ["measure", "m.onnx", "--data", "digits"]),
        ("typer", ["demo"]),
        ("inscape.cli.study", ["rank", "--help"]),
        ("inscape.models.loading", ["measure", "m.onnx", "--data", "iris"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[:2]),
)
def test_an_interrupt_at_any_moment_is_one_line(tmp_path, moment, words):
    done = run(tmp_path, moment, "-m", "inscape", *words)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "inscape: stopped\n")


def test_the_script_too(tmp_path):
    script = tmp_path / "inscape"
    script.write_text("from inscape.cli import main\nmain()\n")
    done = run(tmp_path, "inscape.measures", str(script), "study", "list")
    assert (done.returncode, done.stderr) == (130, "inscape: stopped\n")


def test_other_programs_are_interrupted_as_ever(tmp_path):
    done = run(tmp_path, "inscape.measures", "-c", "import inscape")
    assert "KeyboardInterrupt" in done.stderr
    assert "inscape: stopped" not in done.stderr


def test_the_handler_is_put_aside_while_a_command_runs():
    signal.signal(signal.SIGINT, stopping.end)
    with stopping.interrupts_raised(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is stopping.end


def test_who_ignores_interrupts_goes_on_doing_so(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/usr/bin/inscape"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stopping.end_on_interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    signal.signal(signal.SIGINT, signal.default_int_handler)
    stopping.end_on_interrupt()
    assert signal.getsignal(signal.SIGINT) is stopping.end
