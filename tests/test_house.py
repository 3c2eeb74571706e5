"""The house stays walkable: the map in CONTRIBUTING.md is true, rooms are small, names tell rooms apart.

The bounds are what was measured last. Lower them when a number falls; before raising one, look whether the
new file is half of another or belongs into another room.
"""

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from syntax import forget, nodes_of, tree_of

import inscape

ROOT = Path(inscape.__file__).parent
REPOSITORY = Path(__file__).parents[1]
FILES = sorted(ROOT.rglob("*.py"))
FOLDERS = sorted({path.parent for path in FILES} - {ROOT})

MOST_FILES = 15
"""Files in a folder, its __init__ not counted."""
MOST_NAMES_USED_TWICE = 8
"""A command is called as what it runs; segments and planes, exact and adaptive, are natural pairs."""
MOST_USES_OF_A_NAME = 2
MOST_HALVES = 0.085
"""The fraction of all modules that exactly one other imports, an __init__ not counted."""
COMPILERS = {"choosing", "compiled", "inlined", "kernel", "njit", "summing"}


@pytest.fixture(scope="module", autouse=True)
def forgotten():
    yield
    forget()


def room(path):
    """A path as the map writes it."""
    return path.relative_to(ROOT).as_posix()


def modules():
    """Name of each module -> its file."""
    return {".".join(("inscape", *p.relative_to(ROOT).with_suffix("").parts)): p for p in FILES}


def listed(lines):
    return "\n  ".join(["", *sorted(lines)])


def mapped():
    """The folders that CONTRIBUTING.md names, in its order."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    section = text.split("\n## The house\n")[1].split("\n## ")[0]
    return re.findall(r"^- `([\w/]+)/`: \w", section, re.MULTILINE)


def test_the_map_names_every_folder_once():
    named, there = mapped(), {room(folder) for folder in FOLDERS}
    assert there - set(named) == set(), "folders that CONTRIBUTING.md does not name"
    assert set(named) - there == set(), "folders that CONTRIBUTING.md names and that do not exist"
    assert len(named) == len(set(named))


def test_every_file_says_what_it_is():
    """By a sentence at its head."""
    folders = ("src", "tests", "benchmarks", "docs")
    files = [path for name in folders for path in sorted((REPOSITORY / name).rglob("*.py"))]
    assert len(files) > 600
    silent = [p.relative_to(REPOSITORY).as_posix() for p in files if not ast.get_docstring(tree_of(p))]
    assert not silent, f"begin them with a sentence on what they hold:{listed(silent)}"


def recipes():
    """The recipes of CONTRIBUTING.md: the title and the text of each."""
    parts = re.split(r"^## (Add .*)$", (REPOSITORY / "CONTRIBUTING.md").read_text(), flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize(("title", "text"), recipes(), ids=[title for title, _ in recipes()])
def test_what_a_recipe_names_exists(title, text):
    missing = []
    for name in re.findall(r"`([\w./]+/[\w./]*(?:::\w+)?)`", text):
        path, _, function = name.partition("::")
        if "NAME" in path or "PAPER" in path:
            continue
        found = [base / path for base in (REPOSITORY, ROOT) if (base / path).exists()]
        if not found or (function and f"def {function}(" not in found[0].read_text()):
            missing.append(name)
    assert missing == []


def test_there_are_three_recipes():
    assert [title for title, _ in recipes()] == ["Add a measure", "Add a model front end", "Add a study"]


def test_folders_are_small():
    sizes = {room(d): sum(p.parent == d and p.stem != "__init__" for p in FILES) for d in (ROOT, *FOLDERS)}
    large = {name: n for name, n in sizes.items() if n > MOST_FILES}
    assert large == {}, f"folders of more than {MOST_FILES} files: divide them by what a reader looks for"


def test_a_file_name_says_in_which_room_you_are():
    uses = Counter(path.name for path in FILES if not path.stem.startswith("__"))
    twice = {name: n for name, n in uses.items() if n > 1}
    where = listed(room(p) for p in FILES if p.name in twice)
    assert max(twice.values()) <= MOST_USES_OF_A_NAME, f"one name in many folders:{where}"
    assert len(twice) <= MOST_NAMES_USED_TWICE, f"{len(twice)} names occur more than once:{where}"


def importers():
    """Name of each module -> the modules that import it."""
    known, found = modules(), defaultdict(set)
    for name, path in known.items():
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom):
                whole = {f"{node.module}.{alias.name}" for alias in node.names}
                targets = {full if full in known else node.module for full in whole}
            elif isinstance(node, ast.Import):
                targets = {alias.name for alias in node.names}
            else:
                continue
            for target in targets:
                found[target].add(name)
    return found


def test_few_modules_are_halves_of_another():
    known, found = modules(), importers()
    halves = []
    for name, path in known.items():
        others = [other for other in found[name] if known[other].stem != "__init__"]
        if path.stem != "__init__" and len(found[name]) == len(others) == 1:
            halves.append(f"{name}, by {others[0]}")
    assert len(halves) <= MOST_HALVES * len(known), f"imported by one module only:{listed(halves)}"


def compiled_functions(path):
    """Functions of a file that numba compiles."""
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef):
            decorators = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
            if any(isinstance(d, ast.Name) and d.id in COMPILERS for d in decorators):
                yield node


def long_functions(path):
    """Compiled functions of more than 20 lines, and whether comments number the steps of each."""
    lines = path.read_text().splitlines()
    for function in compiled_functions(path):
        first = function.body[0]
        n_said = first.end_lineno - first.lineno + 1 if ast.get_docstring(function) else 0
        own = lines[function.lineno - 1 : function.end_lineno]
        if len(own) - n_said > 20:
            steps = re.findall(r"^\s*# \((\d+)\) ", "\n".join(own), re.MULTILINE)
            is_told = len(steps) > 1 and steps == [str(k + 1) for k in range(len(steps))]
            yield f"{room(path)}: {function.name}, {len(own) - n_said} lines", is_told


def test_long_compiled_functions_say_their_steps():
    long = [each for path in FILES for each in long_functions(path)]
    assert len(long) > 40
    silent = [name for name, is_told in long if not is_told]
    assert not silent, f"number their steps in comments:{listed(silent)}"


ARRAYS = re.compile(r"Floats|Ints|Bools|Indices|Int32s|SignVectors|NDArray|Nodes|Tensor\b|^Any$")


def undocumented_fields(path):
    """The fields of tuples of arrays of which no line says what they hold, below or in `Attributes`."""
    for node in nodes_of(path):
        if not isinstance(node, ast.ClassDef) or "NamedTuple" not in map(ast.unparse, node.bases):
            continue
        fields = [field for field in node.body if isinstance(field, ast.AnnAssign)]
        if not any(ARRAYS.search(ast.unparse(field.annotation)) for field in fields):
            continue
        text = ast.get_docstring(node) or ""
        for field, after in zip(node.body, [*node.body[1:], None], strict=True):
            if isinstance(field, ast.AnnAssign):
                name = ast.unparse(field.target)
                is_said = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                if not is_said and not re.search(rf"^ *(\w+, )*{name}(, \w+)*: ", text, re.MULTILINE):
                    yield f"{node.name}.{name}"


def test_tuples_of_arrays_say_what_each_field_holds():
    silent = [f"{room(path)}: {name}" for path in FILES for name in undocumented_fields(path)]
    assert not silent, f"a line per field:{listed(silent)}"


def test_fields_without_a_line_are_noticed(tmp_path):
    path = tmp_path / "arrays.py"
    path.write_text("class A(NamedTuple):\n    x: Floats\n    y: Ints\n    'The labels, (n,).'\n")
    assert list(undocumented_fields(path)) == ["A.x"]


def private_names(path):
    """Names with an underscore that a test takes from modules and classes of the package."""
    nodes = nodes_of(path)
    ours = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "inscape":
            ours |= {alias.asname or alias.name for alias in node.names}
    yield from (name for name in ours if is_private(name))
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in ours:
                pass
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name):
                pass
            case ast.Call(args=[ast.Name(id=owner), ast.Constant(value=str(name)), *_]) if owner in ours:
                pass
            case ast.Constant(value=str(text)) if re.fullmatch(r"inscape(\.\w+)+", text):
                name = text.split(".")[-1]
            case _:
                continue
        if is_private(name):
            yield name


def private_members():
    """Methods and attributes with an underscore of classes of ours."""
    for path in FILES:
        for node in nodes_of(path):
            match node:
                case ast.ClassDef(body=body):
                    yield from (n.name for n in body if isinstance(n, ast.FunctionDef) and is_private(n.name))
                case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()) if is_private(name):
                    yield name


def members_read(path):
    """Attributes with an underscore that a test takes from others; notebooks read `_repr_..._`."""
    for node in nodes_of(path):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                continue
            case ast.Attribute(attr=name) if is_private(name) and not name.endswith("_"):
                yield name


def is_private(name):
    return re.match(r"_[a-zA-Z]", name) is not None


def test_tests_read_no_private_names_of_ours():
    tests = sorted((REPOSITORY / "tests").rglob("*.py"))
    ours = set(private_members())
    wrong = [
        f"{path.relative_to(REPOSITORY)}: {name}"
        for path in tests
        for name in (*private_names(path), *ours.intersection(members_read(path)))
    ]
    assert wrong == [], "test by what can be seen from outside, or make the name public"


def test_private_names_are_noticed(tmp_path):
    path = tmp_path / "test_it.py"
    path.write_text(
        "from inscape.a import _b, C\nC._d\nC.e\nother._f\nsetattr(C, '_g', 1)\npatch('inscape.a._h')\n"
        "class D(C):\n    def e(self):\n        super()._i()\n"
    )
    assert sorted(private_names(path)) == ["_b", "_d", "_g", "_h", "_i"]
    assert sorted(members_read(path)) == ["_d", "_f", "_i"]
    assert "_draw" in set(private_members())


def test_tests_import_no_benchmark():
    """But the one that runs them as commands."""
    wrong = [
        path.name
        for path in (REPOSITORY / "tests").rglob("*.py")
        if re.search(r"^(from|import) benchmarks", path.read_text(), re.MULTILINE)
    ]
    assert wrong == ["test_benchmarks.py"]


OPERATIONS = {"Affine", "Bend", "Clip", "Leaky", "Windows"}


def classes_asked_for(path):
    """The classes of operations that a file asks for by `isinstance`."""
    for node in nodes_of(path):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
            yield from OPERATIONS & {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}


def test_operations_answer_for_themselves():
    """Only a node says which kind of operation it holds."""
    asking = {room(path): sorted(classes_asked_for(path)) for path in FILES}
    assert {name: names for name, names in asking.items() if names} == {
        "models/graph/network.py": ["Affine", "Bend"]
    }


def evaluating_loops(path):
    """The lines of loops in which operations of nodes are applied."""
    for loop in nodes_of(path):
        if isinstance(loop, ast.For | ast.While):
            calls = [node.func for node in ast.walk(loop) if isinstance(node, ast.Call)]
            if any(isinstance(called, ast.Attribute) and called.attr == "op" for called in calls):
                yield loop.lineno


def test_a_graph_evaluates_itself():
    """By `Graph.walk` and `Graph.go_on`; others say what is done at a node."""
    loops = [f"{room(path)}:{line}" for path in FILES for line in evaluating_loops(path)]
    assert not loops, f"give a visitor to Graph.walk instead:{listed(loops)}"


def test_evaluating_loops_are_noticed(tmp_path):
    path = tmp_path / "loops.py"
    path.write_text(
        "while i < n:\n    live[i] = nodes[i].op(*inputs)\n"
        "for op in chain:\n    x = op(x)\n"
        "def visit(i, node, inputs):\n    return node.op(*inputs)\n"
    )
    assert list(evaluating_loops(path)) == [1]


def kinds(path):
    """Names of the classes and of the types that a file defines, without a leading underscore."""
    tree = tree_of(path)
    yield from (node.name.lstrip("_") for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                is_variable = isinstance(value, ast.Call) and ast.unparse(value.func) == "TypeVar"
                if re.fullmatch(r"_?[A-Z]\w*[a-z]\w*", name) and not is_variable:
                    yield name.lstrip("_")


def test_a_class_name_has_one_meaning():
    """Options of the command line are called as what they set; `drawing` imports no array types."""
    where = defaultdict(set)
    for path in FILES:
        for name in kinds(path):
            if room(path) != "drawing/__init__.py" and not room(path).startswith("cli/"):
                where[name].add(room(path))
    twice = [f"{name}: {', '.join(sorted(rooms))}" for name, rooms in where.items() if len(rooms) > 1]
    assert not twice, f"rename one, or make them one:{listed(twice)}"


def test_kinds_are_noticed(tmp_path):
    path = tmp_path / "kinds.py"
    path.write_text(
        "Pair = tuple[int, int]\nResult = TypeVar('Result')\n_Form: TypeAlias = 'A | B'\nFEW = 2\nx = 3\n"
        "def f():\n    class _Inner: ...\n"
    )
    assert sorted(kinds(path)) == ["Form", "Inner", "Pair"]


def test_arrays_have_one_name_each():
    """By what they hold, in `arrays.py`; `drawing`, which imports nothing of ours, has its own names."""
    spelt_out = [
        f"{room(path)}:{node.lineno}"
        for path in FILES
        if room(path) not in ("arrays.py", "drawing/__init__.py")
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute | ast.Name) and ast.unparse(node).endswith("NDArray")
    ]
    assert not spelt_out, f"take a name from arrays.py:{listed(spelt_out)}"


QUANTITIES = (
    "all alike at_once block caution cheaply different early edge enough every far few fine finer finest "
    "first inside large largest last late latest least long longest main many more most near nothing once "
    "patience places rest rows same share short small smallest soft tail tiny together"
)


def bare_constants(path):
    """Constants of a module whose name is a bare word of quantity or place."""
    for node in tree_of(path).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for name in (n.id for t in targets if t is not None for n in ast.walk(t) if isinstance(n, ast.Name)):
            if name.isupper() and name.lower().strip("_") in QUANTITIES.split():
                yield name


def test_constants_say_what_they_switch():
    bare = [f"{room(path)}: {name}" for path in FILES for name in bare_constants(path)]
    assert not bare, f"say of what there is so much, or what begins there:{listed(bare)}"


def test_bare_constants_are_noticed(tmp_path):
    path = tmp_path / "loops.py"
    path.write_text("_MANY = 2**14\nLAZY_FROM = 3\nFEW: int = 2\nEARLY, LATE_STEP = 1, 2\n")
    assert list(bare_constants(path)) == ["_MANY", "FEW", "EARLY"]


def test_only_one_place_warns():
    """So that every warning points to the caller's own line."""
    assert [room(p) for p in FILES if "warnings.warn(" in p.read_text()] == ["errors.py"]
