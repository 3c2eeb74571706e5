"""Options of studies, and stores that are opened again."""

from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

import inscape
from inscape.errors import StudyError
from inscape.studies import Store, Study, Summary, reopen, run

POWERS = Study(
    name="powers",
    title="Powers of small numbers",
    configurations=lambda scale, power="2": [{"n": n, "power": int(power)} for n in range(3)],
    cell=lambda configuration: {"value": configuration["n"] ** configuration["power"]},
    summarise=lambda frame, out: Summary(tables={"Powers, all": frame[["n", "value"]]}),
    options={"power": "what the number is raised to"},
)


def test_options_reach_the_grid_and_a_store_can_be_opened_again(tmp_path):
    with ThreadPoolExecutor(1) as executor:
        first = run(POWERS, out=tmp_path, options={"power": "3"}, random_state=5, executor=executor)
    again = reopen(tmp_path, POWERS)
    assert first.frame["value"].tolist() == again.frame["value"].tolist() == [0, 1, 8]
    assert (again.scale, again.seed, again.options) == ("small", 5, {"power": "3"})
    assert again.provenance["inscape"] == inscape.__version__
    assert pd.read_csv(tmp_path / "powers-all.csv")["value"].tolist() == [0, 1, 8]
    assert "| 2 | 8 |" in (tmp_path / "summary.md").read_text()


def test_an_option_that_the_study_does_not_have(tmp_path):
    with pytest.raises(StudyError, match=r"'pwer'.*did you mean 'power'"):
        run(POWERS, out=tmp_path, options={"pwer": "3"})
    assert list(tmp_path.iterdir()) == []


def test_only_a_finished_run_can_be_opened_again(tmp_path):
    with pytest.raises(StudyError, match="0 stores"):
        reopen(tmp_path)
    Store(tmp_path / "a.sqlite", "a").close()
    with pytest.raises(StudyError, match="no run has finished"):
        reopen(tmp_path)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"out": None}, "not a folder"),
        ({"executor": 3}, "Executor"),
        ({"n_workers": 0}, "n_workers=0 is too small"),
        ({"name": 3}, "the name of one, got 3"),
    ],
)
def test_wrong_arguments_are_refused_before_any_work(wrong, words, tmp_path):
    arguments = {"name": POWERS, "out": tmp_path} | wrong
    with pytest.raises(StudyError, match=words):
        run(arguments.pop("name"), **arguments)
    assert list(tmp_path.iterdir()) == []
