"""The API reference: every public name has an entry, an executed example, and explained attributes."""

import dataclasses
import importlib.util
import inspect
from pathlib import Path

import pytest

import inscape
from inscape.measures.measure import FUNCTIONS

DOCS = Path(__file__).parents[1] / "docs"
spec = importlib.util.spec_from_file_location("reference_pages", DOCS / "reference_pages.py")
pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pages)
PUBLIC = pages.public_objects()
RESULTS = {n: t for n, t in PUBLIC.items() if inspect.isclass(t) and dataclasses.is_dataclass(t)}


def test_every_public_name_is_in_the_index_once():
    listed = [name for _, names in pages.groups().values() for name in names]
    assert sorted(listed) == sorted(PUBLIC)


@pytest.mark.parametrize("name", [n for n, t in PUBLIC.items() if inspect.isfunction(t)])
def test_every_function_has_an_example(name):
    """`pytest` executes the examples of `src`."""
    assert pages.example(PUBLIC[name])


@pytest.mark.parametrize("name", RESULTS)
def test_every_attribute_of_a_result_is_explained(name):
    public = {field.name for field in dataclasses.fields(RESULTS[name]) if not field.name.startswith("_")}
    explained = pages.attributes(RESULTS[name])
    assert public <= set(explained)
    assert all(meaning for _, meaning in explained.values())


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_measure_says_what_high_and_low_mean(name):
    words = pages.high_and_low(getattr(inscape.measures, name))
    assert "When it does not hold: " in words


def test_prose_becomes_markup():
    lines = ["The norm |x_| of *one* (*start, *end) and `a|b`:", "", "    LC = sum |grad|", "", "Next |y|."]
    assert pages.as_restructured_text(lines) == [
        r"The norm \|x\_\| of *one* (\*start, \*end) and `a|b`::",
        "",
        "    LC = sum |grad|",
        "",
        r"Next \|y\|.",
    ]
