"""The API reference: every public name has an entry, an executed example, and explained attributes."""

import dataclasses
import importlib
import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import inscape
from inscape.measures.measure import FUNCTIONS, measure

DOCS = Path(__file__).parents[1] / "docs"
spec = importlib.util.spec_from_file_location("reference_pages", DOCS / "reference_pages.py")
pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pages)
PUBLIC = pages.public_objects()
RESULTS = {n: t for n, t in PUBLIC.items() if inspect.isclass(t) and dataclasses.is_dataclass(t)}


def is_error(thing):
    return inspect.isclass(thing) and issubclass(thing, BaseException | Warning)


NO_NUMBERS = {
    *("inscape.animate", "inscape.side_by_side", "inscape.explore"),  # pictures
    *("inscape.wrap", "inscape.quantile_levels", "inscape.sample_probes"),  # what is looked at, and where
    *("inscape.reports.build_report", "inscape.reports.write_report"),
    *("inscape.studies.cell", "inscape.studies.reopen", "inscape.studies.run"),
    *("inscape.training.build", "inscape.training.load_data", "inscape.training.mlp"),
    *("inscape.training.train", "inscape.training.train_many"),
    *("inscape.theory.layers_of", "inscape.theory.two_layer_descent", "inscape.theory.vc_dimension"),
    *("inscape.measure", "inscape.theory.check_all"),  # tables of numbers that have their own pages
}
"""Functions whose result is no number that could be high or low."""


def test_every_public_name_is_in_the_index_once():
    listed = [name for _, names in pages.groups().values() for name in names]
    assert sorted(listed) == sorted(PUBLIC)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_the_page_of_measures_and_the_docstring_of_measure_name_each(name):
    """The count of regions has pages of its own."""
    page = (DOCS / "measures.md").read_text()
    assert name == "region_count" or re.search(rf"^\|.*`{name}\(", page, re.MULTILINE)
    assert f'"{name}"' in measure.__doc__


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example(name):
    """Its own, or that of a function which returns it; `pytest` executes the examples of `src`."""
    thing = PUBLIC[name]
    made_by = pages.makers(thing) if inspect.isclass(thing) else []
    assert any(pages.example(t) for t in (thing, *(PUBLIC[maker] for maker in made_by)))


@pytest.mark.parametrize("name", [n for n, t in PUBLIC.items() if not is_error(t)])
def test_every_signature_has_types_as_a_reader_writes_them(name):
    thing = PUBLIC[name]
    given = inspect.signature(thing).parameters.values()
    assert [p.name for p in given if p.annotation is p.empty] == []
    text, returned = pages.signature_text(thing)
    assert inspect.isclass(thing) or returned
    for expansion in ("_Supports", "_Buffer", "numpy.", "ndarray[", "dtype[", "typing.", "<", "inscape."):
        assert expansion not in f"{text} -> {returned}"


@pytest.mark.parametrize("name", [n for n, t in PUBLIC.items() if inspect.isclass(t)])
def test_signatures_of_methods_can_be_written(name):
    for member in (m for m in dir(PUBLIC[name]) if not m.startswith("_")):
        method = getattr(PUBLIC[name], member)
        if inspect.isfunction(method):
            text, _ = pages.write_signature(None, "method", f"{name}.{member}", method, None, "()", None)
            assert not re.search(r"_Supports|_Buffer|ndarray\[|\(self", text)


@pytest.mark.parametrize("name", [n for n, t in PUBLIC.items() if inspect.isfunction(t)])
def test_what_a_function_returns_has_a_page(name):
    """Types of ours that are seen in results are public too."""
    found = pages.parts(inspect.signature(PUBLIC[name]).return_annotation)
    ours = [t for t in found if inspect.isclass(t) and t.__module__.startswith("inscape")]
    assert [t for t in ours if t not in PUBLIC.values()] == []


@pytest.mark.parametrize("name", sorted(NO_NUMBERS))
def test_functions_without_numbers_are_public(name):
    assert name in PUBLIC


@pytest.mark.parametrize(
    "name", [n for n, t in PUBLIC.items() if inspect.isfunction(t) and n not in NO_NUMBERS]
)
def test_every_function_that_returns_numbers_says_what_high_and_low_mean(name):
    words = pages.high_and_low(PUBLIC[name])
    assert "When it does not hold: " in words


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_something_to_see_also(name):
    _, guides, others = pages.see_also(name)
    assert guides or others


@pytest.mark.parametrize("name", RESULTS)
def test_every_attribute_of_a_result_is_explained(name):
    public = {field.name for field in dataclasses.fields(RESULTS[name]) if not field.name.startswith("_")}
    explained = pages.attributes(RESULTS[name])
    assert public <= set(explained)
    assert all(kind and meaning for kind, meaning in explained.values())


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_measure_says_itself_what_high_and_low_mean(name):
    measure = getattr(inscape.measures, name)
    assert pages.HEADING in inspect.getdoc(importlib.import_module(measure.__module__))


def test_prose_becomes_markup():
    lines = ["The norm |x_| of *one* (*start, *end) and `a|b`:", "", "    LC = sum |grad|", "", "Next |y|."]
    assert pages.as_restructured_text(lines) == [
        r"The norm \|x\_\| of *one* (\*start, \*end) and `a|b`::",
        "",
        "    LC = sum |grad|",
        "",
        r"Next \|y\|.",
    ]
