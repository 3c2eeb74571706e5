"""What the API reference says beyond a docstring, made from the code so that it cannot grow stale.

A result's attributes as a table, those that it inherits among them; what high and low values mean, from the
head of the file that defines a measure; which functions return a result, with their executed example; and
what to see also.
"""

import importlib
import inspect
import re
from functools import cache
from pathlib import Path

PACKAGES = (
    "inscape",
    "inscape.measures",
    "inscape.models",
    "inscape.partition",
    "inscape.probes",
    "inscape.compare",
    "inscape.reports",
    "inscape.studies",
    "inscape.training",
    "inscape.theory",
    "inscape.univariate",
    "inscape.explorer",
)
"""Where public names stand: what `__all__` lists there is promised."""
HEADING = "What high and low mean"
INDEX = Path(__file__).parent / "reference" / "index.md"


@cache
def public_objects():
    """The full name of every public function and class -> the object; the first name if it has several."""
    found, named = {}, set()
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            thing = getattr(module, name)
            if (inspect.isclass(thing) or inspect.isfunction(thing)) and id(thing) not in named:
                named.add(id(thing))
                found[f"{package}.{name}"] = thing
    errors = importlib.import_module("inscape.errors")
    for name, thing in vars(errors).items():
        if inspect.isclass(thing) and thing.__module__ == "inscape.errors" and id(thing) not in named:
            found[f"inscape.errors.{name}"] = thing
    return found


@cache
def groups():
    """The groups of the index page: title -> its text and its names."""
    parts = re.split(r"^## (.+)$", INDEX.read_text(), flags=re.MULTILINE)
    return {
        title: (text, re.findall(r"^ +(inscape\.[\w.]+)$", text, re.MULTILINE))
        for title, text in zip(parts[1::2], parts[2::2], strict=True)
    }


@cache
def attributes(cls):
    """Name -> (type, meaning) of each documented attribute of a class, those of its bases first."""
    found = {}
    for base in reversed(cls.__mro__):
        text = inspect.cleandoc(base.__doc__ or "")
        section = re.search(r"^(?:Attributes|Args):\n((?:    .*\n?|\n)+)", text, re.MULTILINE)
        if section:
            for name, text in re.findall(r"^    (\w+): ((?:.*\n?(?:     .*\n?)*))", section[1], re.MULTILINE):
                found[name] = (_type_of(cls, name), " ".join(text.split()))
    return found


def _type_of(cls, name):
    for base in cls.__mro__:
        given = inspect.get_annotations(base).get(name)
        if given is not None:
            return given if isinstance(given, str) else inspect.formatannotation(given)
        held = base.__dict__.get(name)
        if isinstance(held, property) or hasattr(held, "func"):
            getter = held.fget if isinstance(held, property) else held.func
            return inspect.formatannotation(inspect.signature(getter).return_annotation)
    return ""


def high_and_low(thing):
    """What the head of the defining file says of high and low values; None if it says nothing."""
    text = inspect.getdoc(importlib.import_module(thing.__module__)) or ""
    found = re.search(rf"{HEADING}: (.*?)(?:\n\n|\Z)", text, re.DOTALL)
    return " ".join(found[1].split()) if found else None


def example(thing):
    """The executed lines of a docstring; empty if there are none."""
    text = inspect.getdoc(thing) or ""
    start = text.find(">>>")
    return "" if start < 0 else text[start:].split("\n\n")[0]


@cache
def makers(cls):
    """The public functions that return a class, by their annotations."""
    word = re.compile(rf"\b{cls.__name__}\b")
    return [
        name
        for name, thing in public_objects().items()
        if inspect.isfunction(thing)
        and word.search(inspect.formatannotation(inspect.signature(thing).return_annotation))
    ]


def as_restructured_text(lines):
    """Plain text with `code`, *emphasis* and indented formulas, as markup: other signs mean themselves."""
    made, formula, doctest = [], False, False
    for i, line in enumerate(lines):
        indented = line.startswith("    ")
        if not line.strip():
            doctest = False
        elif line.lstrip().startswith(">>>"):
            doctest = True
        if (
            indented
            and not formula
            and i > 1
            and not lines[i - 1].strip()
            and lines[i - 2].rstrip().endswith(":")
        ):
            made[-2] += ":"
            formula = True
        elif line.strip() and not indented:
            formula = False
        made.append(line if formula or doctest else escaped(line))
    return made


def escaped(line):
    """A line of prose in which only `code` and *emphasis* are markup."""
    parts = re.split(r"(`+[^`]*`+|(?<![\w*(])\*[A-Za-z][^*]*\*(?![\w*]))", line)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([|*])|(?<=\w)(_)(?!\w)", r"\\\g<0>", parts[i])
    return "".join(parts)


def _table(found):
    lines = [".. list-table::", "   :class: attributes", "   :header-rows: 1", "   :widths: 20 25 55", ""]
    lines += ["   * - attribute", "     - type", "     - meaning"]
    for name, (kind, meaning) in found.items():
        lines += [
            f"   * - ``{name}``",
            f"     - ``{short_type(kind)}``" if kind else "     -",
            f"     - {escaped(meaning)}",
        ]
    return [*lines, ""]


def _see_also(name):
    for title, (text, names) in groups().items():
        if name in names:
            guides = re.findall(r"\[([^\]]+)\]\(\.\./([\w-]+)\.md\)", text)
            others = [f":py:obj:`{other}`" for other in names if other != name][:12]
            return title, guides, others
    return None, [], []


def extend_docstring(app, what, name, thing, options, lines):
    """Make a docstring reStructuredText, and complete that of a public name, before it is parsed."""
    lines[:] = as_restructured_text(lines)
    if name not in public_objects():
        return
    if inspect.isclass(thing) and "Attributes:" in lines:
        start = lines.index("Attributes:")
        end = start + 1
        while end < len(lines) and (not lines[end] or lines[end].startswith(" ")):
            end += 1
        del lines[start:end]
    if inspect.isclass(thing) and attributes(thing) and "Args:" not in lines:
        lines += ["", ".. rubric:: Attributes", "", *_table(attributes(thing))]
    if not example(thing) and inspect.isclass(thing):
        for maker in makers(thing)[:1]:
            shown = example(public_objects()[maker])
            lines += [
                "",
                ".. rubric:: Example",
                "",
                f"As :py:obj:`{maker}` makes it:",
                "",
                *shown.splitlines(),
                "",
            ]
    words = high_and_low(thing)
    if words and (inspect.isfunction(thing) or not makers(thing)):
        holds, _, fails = words.partition("When it does not hold: ")
        lines += ["", f".. rubric:: {HEADING}", "", escaped(holds[0].upper() + holds[1:]), ""]
        lines += [f"**When it does not hold:** {escaped(fails)}", ""] * bool(fails)
    if what not in ("class", "function", "exception"):
        return
    returned = [
        f":py:obj:`{n}`"
        for n, other in public_objects().items()
        if inspect.isclass(other) and name in makers(other)
    ]
    made = [f":py:obj:`{n}`" for n in makers(thing)] if inspect.isclass(thing) else []
    _, guides, others = _see_also(name)
    lines += ["", ".. rubric:: See also", ""]
    lines += [f"- returns {', '.join(returned)}"] * bool(returned)
    lines += [f"- returned by {', '.join(made[:12])}"] * bool(made)
    lines += [f"- guide: {', '.join(f':doc:`{words} </{page}>`' for words, page in guides)}"] * bool(guides)
    lines += [f"- {', '.join(others)}", ""]


SHORT = (
    (r"_Buffer \| _SupportsArray.*?_NestedSequence\[complex \| bytes \| str\]", "ArrayLike"),
    (
        r"(?:numpy\.)?ndarray\[tuple\[(?:typing\.)?Any, \.\.\.\], "
        r"(?:numpy\.)?dtype\[(?:numpy\.|typing\.)?(\w+)\]\]",
        r"NDArray[\1]",
    ),
    (r"\b(?:inscape|typing|collections|numpy|pathlib|pandas)\.(?:[a-z_]\w*\.)*([A-Z]\w*)", r"\1"),
)
"""Types as numpy expands them, and as a reader writes them."""


def short_type(text):
    """A type without the modules of its parts and without numpy's expansions."""
    for long, short in SHORT:
        text = re.sub(long, short, text)
    return text


def shorten_signature(app, what, name, thing, options, signature, returns):
    """Types in signatures as a reader writes them."""
    return signature and short_type(signature), returns and short_type(returns)


def check_pages(app, env):
    """Fail if a public name has no page, or its page no entry."""
    known = env.get_domain("py").objects
    missing = sorted(name for name in public_objects() if name not in known)
    if missing:
        raise RuntimeError(f"public names without a page in the API reference: {', '.join(missing)}")


def setup(app):
    """Connect to Sphinx, before napoleon reads the sections of docstrings."""
    app.connect("autodoc-process-docstring", extend_docstring, priority=400)
    app.connect("autodoc-process-signature", shorten_signature)
    app.connect("env-check-consistency", check_pages)
    return {"parallel_read_safe": True}


def scrape_files(block, block_vars, gallery_conf):
    """Show what matplotlib's own scraper does not see: animations as `*.gif`, and figures without pyplot."""
    from matplotlib.figure import Figure
    from sphinx_gallery.scrapers import figure_rst

    folder = Path(block_vars["src_file"]).parent
    shown = []
    for figure in block_vars["example_globals"].values():
        if isinstance(figure, Figure) and not hasattr(figure, "number") and not hasattr(figure, "is_shown"):
            figure.is_shown = True
            shown.append(str(next(block_vars["image_path_iterator"])))
            figure.savefig(shown[-1], dpi=100)
    for path in sorted(folder.glob("*.gif")):
        target = Path(next(block_vars["image_path_iterator"])).with_suffix(".gif")
        path.replace(target)
        shown.append(str(target))
    return figure_rst(shown, gallery_conf["src_dir"]) if shown else ""


def reset(gallery_conf, fname):
    """Start every example from matplotlib's own defaults and one thread."""
    import matplotlib.pyplot as plt
    import torch

    plt.close("all")
    plt.rcdefaults()
    torch.set_num_threads(1)
