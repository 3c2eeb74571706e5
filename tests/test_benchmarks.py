import pytest

from benchmarks import __main__ as command


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
