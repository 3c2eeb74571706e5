"""Benchmarks by name, and the table of a GPU."""

import pytest
from elsewhere import NAME, elsewhere
from torch import nn

from benchmarks import __main__ as command
from benchmarks import gpu


def test_without_a_name_the_benchmarks_are_listed(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["benchmarks"])
    command.main()
    out, err = capsys.readouterr()
    assert out.startswith("usage: python -m benchmarks {")
    assert all(name in out for name in command.NAMES)
    assert err == ""


@pytest.mark.parametrize("names", [["nonsense"], ["networks"], command.NAMES[:2]])
def test_a_wrong_name_is_an_error_that_lists_them(names, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["benchmarks", *names])
    with pytest.raises(SystemExit, match="2"):
        command.main()
    out, err = capsys.readouterr()
    assert out == ""
    assert all(name in err for name in command.NAMES)


def small(n_classes=3):
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, n_classes))


def test_the_table_of_a_gpu_has_its_rows_on_a_device_that_is_not_the_processor(monkeypatch, capsys):
    for name in ("NETWORKS", "POINTS", "SEGMENTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(gpu, "accelerator", lambda: NAME)
    monkeypatch.setattr(gpu, "networks", lambda: {"small": (small(), (3, 8, 8))})
    with elsewhere(monkeypatch) as machine:
        gpu.main()
    rows = [line for line in capsys.readouterr().out.splitlines() if "points/s" in line]
    assert [line.split("  ")[1].strip() for line in rows] == ["cpu", NAME, f"{NAME} autocast"]
    assert all("labels equal 100.00%" in line for line in rows)
    assert "in full precision" in rows[2]
    assert sum(shape[0] for shape in machine.came if len(shape) == 4) > 2 * 512


def test_without_a_gpu_the_table_says_so_and_is_of_the_processor(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "accelerator", lambda: None)
    monkeypatch.setattr(gpu, "networks", lambda: {"small": (small(), (3, 8, 8)), "large": (None, ())})
    monkeypatch.setenv("NETWORKS", "small")
    gpu.main()
    lines = capsys.readouterr().out.splitlines()
    assert "sees no GPU here" in lines[0]
    assert [line.split("  ")[1].strip() for line in lines[2:]] == ["cpu", "cpu autocast"]
    assert all("labels equal 100.00%" in line for line in lines[2:])
