"""A long cell that is killed goes on from its checkpoint, and its row is that of an uninterrupted one."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from inscape.errors import InscapeWarning
from inscape.studies import run
from inscape.sweeps.checkpoints import checkpoint_of, checkpoints_in
from inscape.training import checkpoint
from inscape.training.checkpoint import Checkpoint
from inscape.training.many import train_many
from inscape.training.monitor import Monitor
from inscape.training.networks import mlp
from inscape.training.recipe import Recipe

STUDIES = {
    "local-rank-gaussian": {"width": 8, "n_steps": 700, "n_times": 5, "n_points": 3, "replicate": 0},
    "grokking": {
        "depth": 4,
        "width": 8,
        "n_steps": 200,
        "n_times": 5,
        "n_points": 3,
        "n_train": 100,
        "n_test": 20,
        "he_scale": 2.0,
        "loss": "softmax-cross-entropy",
        "replicate": 0,
    },
}
KILLED = """
import os, signal, sys
from concurrent.futures import ThreadPoolExecutor
from inscape.studies import run
from inscape.training import checkpoint

name, settings, out, n = sys.argv[1], eval(sys.argv[2]), sys.argv[3], int(sys.argv[4])
checkpoint.SECONDS_BETWEEN_WRITES, save, count = 0.0, checkpoint.Checkpoint.save, [0]

def save_and_die(self, state):
    save(self, state)
    count[0] += 1
    if count[0] == n:
        os.kill(os.getpid(), signal.SIGKILL)

checkpoint.Checkpoint.save = save_and_die
run(name, scale="smoke", settings=settings, out=out, executor=ThreadPoolExecutor(1))
"""


def _columns(out, name):
    with ThreadPoolExecutor(1) as executor:
        frame = run(name, scale="smoke", settings=STUDIES[name], out=out, executor=executor).frame
    (row,) = json.loads(frame.drop(columns="seconds").to_json(orient="records", double_precision=15))
    return row


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_a_killed_cell_goes_on_and_ends_with_the_same_row(name, tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    script = [sys.executable, "-c", KILLED, name, repr(STUDIES[name]), str(killed), "2"]
    child = subprocess.run(script, check=False, capture_output=True, text=True)
    assert child.returncode == -9, child.stderr
    (left,) = (killed / f"{name}.checkpoints").iterdir()
    assert Checkpoint(left, about={"inscape": _version()}).load()["n_done"] > 0
    assert _columns(killed, name) == _columns(whole, name)
    assert not (killed / f"{name}.checkpoints").exists()  # the row is stored, and nothing else was left


def _version():
    from inscape import __version__

    return __version__


class _StopError(Exception):
    pass


def _trained(place, stop_at=None):
    x = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    net = mlp(3, (6, 6), 2, random_state=0)

    def look(step):
        if step == stop_at:
            raise _StopError
        return step % 7 == 0

    monitor = Monitor(x, measures=["total_variation"], every=look, n_points=5)
    recipe = Recipe(1e-2, 8, 6, optimiser="adamw", weight_decay=0.1)
    (history,) = train_many(
        [net], x, x[:, 0] > 0, [recipe], random_states=[3], monitors=[monitor], checkpoints=[place]
    )
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in monitor.rows]
    return [p.detach().numpy() for p in net.parameters()], history, rows


def test_training_goes_on_to_the_last_bit(tmp_path):
    weights, history, rows = _trained(None)
    place = Checkpoint(tmp_path / "run.npz", about={}, every=0.0)
    with pytest.raises(_StopError):
        _trained(place, stop_at=25)
    assert place.load()["n_done"] == 21  # three epochs of seven steps
    again, same, seen = _trained(place)
    assert all(np.array_equal(a, b) for a, b in zip(weights, again, strict=True))
    assert same == history
    assert seen == rows


def test_a_checkpoint_of_another_run_or_a_damaged_one_is_left_aside(tmp_path):
    place = Checkpoint(tmp_path / "run.npz", about={"seed": 1})
    place.save({"n_done": np.int64(3), "value": np.array([1.5])})
    assert place.load() == {"n_done": 3, "value": np.array([1.5])}
    assert Checkpoint(place.path, about={"seed": 2}).load() is None
    place.path.write_bytes(place.path.read_bytes()[:50])
    with pytest.warns(InscapeWarning, match="damaged, so the run starts anew"):
        assert place.load() is None


def test_a_place_that_cannot_be_written_is_a_warning(tmp_path):
    place = Checkpoint(tmp_path / "missing" / "run.npz", about={})
    with pytest.warns(InscapeWarning, match="from which the run could go on"):
        place.save({"n_done": 1})


def test_it_is_written_now_and_then_only(tmp_path, monkeypatch):
    assert not Checkpoint(tmp_path / "a", about={}).is_due()
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN_WRITES", 0.0)
    assert Checkpoint(tmp_path / "a", about={}).is_due()


def test_cells_have_one_only_in_a_study(tmp_path):
    a, b = ({"n": n, "seed": 0, "replicate_seed": 0} for n in (1, 2))
    assert checkpoint_of(a) is None
    with checkpoints_in(tmp_path):
        assert checkpoint_of(a).path != checkpoint_of(b).path
    with checkpoints_in(tmp_path / "elsewhere"):  # another machine
        assert checkpoint_of(a) is None
