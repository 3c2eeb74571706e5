from inscape.progress import meter


def test_silent_by_default(capsys):
    with meter(None, "work") as show:
        show(1, 2)
    assert capsys.readouterr() == ("", "")


def test_a_function_is_called():
    seen = []
    with meter(lambda done, total: seen.append((done, total)), "work") as show:
        show(1, 2)
        show(2, 2)
    assert seen == [(1, 2), (2, 2)]


def test_a_bar_goes_to_stderr(capsys):
    with meter(True, "work") as show:
        show(1, 2)
    assert capsys.readouterr().out == ""
