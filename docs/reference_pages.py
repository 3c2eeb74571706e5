"""What the API reference says beyond a docstring, made from the code so that it cannot grow stale.

A result's attributes as a table, those that it inherits among them; what high and low values mean, from the
head of the file that defines a measure; which functions return a result, with their executed example; and
what to see also.
"""

import importlib
import inspect
import logging
import re
import zlib
from functools import cache
from pathlib import Path
from types import BuiltinMethodType, MethodDescriptorType, NoneType, UnionType
from typing import Literal, Union, get_args, get_origin

import numpy as np
from numpy.typing import ArrayLike

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
MODULES = ("inscape.errors", "inscape.status", "inscape.provenance")
"""Modules whose classes are all public: what is raised, and what every result holds."""
HEADING = "What high and low mean"
LONGEST_DEFAULT = 60
"""Characters of a default that a signature shows."""
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
    for module in MODULES:
        for name, thing in vars(importlib.import_module(module)).items():
            if inspect.isclass(thing) and thing.__module__ == module and id(thing) not in named:
                found[f"{module}.{name}"] = thing
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
        sections = dict(re.findall(r"^(Attributes|Args):\n((?:    .*\n?|\n)+)", text, re.MULTILINE))
        section = sections.get("Attributes") or sections.get("Args")
        if section:
            for name, text in re.findall(r"^    (\w+): ((?:.*\n?(?:     .*\n?)*))", section, re.MULTILINE):
                found[name] = (_type_of(cls, name), " ".join(text.split()))
    return found


def _type_of(cls, name):
    for base in cls.__mro__:
        given = inspect.get_annotations(base).get(name)
        if given is not None:
            return type_text(given)
        held = base.__dict__.get(name)
        if isinstance(held, property) or hasattr(held, "func"):
            getter = held.fget if isinstance(held, property) else held.func
            return type_text(inspect.signature(getter).return_annotation)
    return ""


def high_and_low(thing):
    """What high and low values mean, None if nothing is said of it.

    It stands at the head of the file that defines a function, or else of the one that defines its result.
    """
    for place in [thing, *returned_classes(thing)]:
        text = inspect.getdoc(importlib.import_module(place.__module__)) or ""
        if found := re.search(rf"{HEADING}: (.*?)(?:\n\n|\Z)", text, re.DOTALL):
            return " ".join(found[1].split())
    return None


def returned_classes(thing):
    """The public classes that a function returns, by its annotation."""
    if not inspect.isfunction(thing):
        return []
    return [other for other in public_objects().values() if inspect.isclass(other) and _returns(thing, other)]


def example(thing):
    """The executed lines of a docstring; empty if there are none."""
    text = inspect.getdoc(thing) or ""
    start = text.find(">>>")
    return "" if start < 0 else text[start:].split("\n\n")[0]


@cache
def makers(cls):
    """The public functions that return a class, by their annotations."""
    return [
        name for name, thing in public_objects().items() if inspect.isfunction(thing) and _returns(thing, cls)
    ]


@cache
def _returns(function, cls):
    return cls in parts(inspect.signature(function).return_annotation)


def parts(kind):
    """A type and all that it is made of."""
    return [kind, *(part for inner in get_args(kind) for part in parts(inner))]


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
            f"     - ``{kind}``" if kind else "     -",
            f"     - {escaped(meaning)}",
        ]
    return [*lines, ""]


def see_also(name):
    """The group of a public name, the guides that it names, and its other members."""
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
    returned = [f":py:obj:`{n}`" for n, t in public_objects().items() if t in returned_classes(thing)]
    made = [f":py:obj:`{n}`" for n in makers(thing)] if inspect.isclass(thing) else []
    _, guides, others = see_also(name)
    lines += ["", ".. rubric:: See also", ""]
    lines += [f"- returns {', '.join(returned)}"] * bool(returned)
    lines += [f"- returned by {', '.join(made[:12])}"] * bool(made)
    lines += [f"- guide: {', '.join(f':doc:`{words} </{page}>`' for words, page in guides)}"] * bool(guides)
    lines += [f"- {', '.join(others)}", ""]


def type_text(kind, *, linked=False):
    """A type as a reader writes it: `ArrayLike`, not what numpy expands it to.

    With `linked`, public classes of ours have their full name behind a `~`, of which Sphinx makes a link.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if kind is None or kind is NoneType:
        return "None"
    if kind is Ellipsis or isinstance(kind, str):
        return "..." if kind is Ellipsis else kind
    if isinstance(kind, list):
        return f"[{', '.join(type_text(part, linked=linked) for part in kind)}]"
    if origin in (Union, UnionType):
        return " | ".join(_members(parts, linked))
    if origin is np.ndarray:
        return f"NDArray[{type_text(get_args(parts[1])[0])}]"
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, parts))}]"
    name = _class_name(origin or kind, linked)
    return f"{name}[{', '.join(type_text(part, linked=linked) for part in parts)}]" if parts else name


def _members(parts, linked):
    """The members of a union, those of numpy's ArrayLike as that one name."""
    array_like = get_args(ArrayLike)  # empty from Python 3.12 on, where numpy's alias keeps its name
    if array_like and set(array_like) <= set(parts):
        first = parts.index(array_like[0])
        parts = [*parts[:first], "ArrayLike", *(p for p in parts[first:] if p not in array_like)]
    return [type_text(part, linked=linked) for part in parts]


def _class_name(kind, linked):
    if linked:
        for name, thing in public_objects().items():
            if thing is kind:
                return f"~{name}"
    return getattr(kind, "__name__", None) or str(kind).removeprefix("typing.")


class _Written:
    """An annotation that prints as the text it is given."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def signature_text(thing, *, linked=False):
    """The arguments of a function or class, and what it returns, with types as a reader writes them."""
    signature = inspect.signature(thing)
    written = [
        given.replace(
            annotation=given.annotation
            if given.annotation is given.empty
            else _Written(type_text(given.annotation, linked=linked)),
            default=_shown_default(given.default),
        )
        for given in signature.parameters.values()
    ]
    returned = signature.return_annotation
    return (
        str(signature.replace(parameters=written, return_annotation=inspect.Signature.empty)),
        None if returned is inspect.Signature.empty else type_text(returned, linked=linked),
    )


def _shown_default(default):
    """A default as it is shown: those that a reader could not write, or would not read, as dots."""
    if default is inspect.Parameter.empty:
        return default
    text = repr(default)
    return _Written("...") if len(text) > LONGEST_DEFAULT or text.startswith("<") else default


def write_signature(app, what, name, thing, options, signature, returns):
    """Put the signature with readable types in place of the one that Sphinx expands."""
    if (
        signature is None
        or what == "exception"
        or isinstance(thing, MethodDescriptorType | BuiltinMethodType)
    ):
        return signature, returns
    text, returned = signature_text(thing, linked=True)
    if what == "method" and not signature.startswith("(self"):
        text = re.sub(r"^\(self(?:, )?", "(", text)
    return text, None if what == "class" else returned


def check_pages(app, env):
    """Fail if a public name has no page, or its page no entry."""
    known = env.get_domain("py").objects
    missing = sorted(name for name in public_objects() if name not in known)
    if missing:
        raise RuntimeError(f"public names without a page in the API reference: {', '.join(missing)}")


def setup(app):
    """Connect to Sphinx, before napoleon reads the sections of docstrings."""
    app.connect("autodoc-process-docstring", extend_docstring, priority=400)
    app.connect("autodoc-process-signature", write_signature)
    app.connect("env-check-consistency", check_pages)
    # What is written here is on every page: pages are read again when it changes.
    return {"parallel_read_safe": True, "env_version": zlib.crc32(Path(__file__).read_bytes())}


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
    """Start every example from matplotlib's own defaults and one thread; that loops compile is not shown."""
    logging.getLogger("inscape").setLevel(logging.ERROR)
    import matplotlib.pyplot as plt
    import torch

    plt.close("all")
    plt.rcdefaults()
    torch.set_num_threads(1)
