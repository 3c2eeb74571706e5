"""Stores and TOML files with any damage: a result or one of our errors, never another."""

import json
import random
import sqlite3
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from inscape.errors import InscapeError, StudyError
from inscape.studies import Chart, Finding, Store, Study, Summary, reopen, run
from inscape.sweeps.registry import read_study
from inscape.sweeps.row_files import export
from inscape.sweeps.tasks import grid

N_MUTATIONS = 50
TEXTS = [
    "",
    "{",
    "[]",
    "null",
    "3",
    '"a"',
    "{}",
    '{"a": NaN}',
    '{"scale": 3}',
    "[" * 3000,
    "\x00",
    '{"a": "\\ud800"}',
]
VALUES = [*TEXTS, None, -1, 2**62, 1e300, float("inf"), b"\xff\xfe", b"{}"]
JSON_VALUES = [None, True, -1, 10**400, 1e308, "", "a", [], [[]], {}, {"a": []}, float("nan")]


def summarise(frame, out):
    (out / "f.png").write_bytes(b"no picture")
    return Summary(
        findings={
            "grow": Finding(holds=True, evidence="all", value=0.5, interval=(0.2, 0.9), published="0.4")
        },
        figures={"f.png": "A caption"},
        notes="A note.",
        charts=[Chart(title="Squares", data=frame, x="n", y="value", colour="name")],
        tables={"All": frame[["n", "value", "name"]]},
        limits=["Nothing else."],
    )


SQUARES = Study(
    name="squares",
    title="Squares",
    claims={"grow": "They grow."},
    configurations=lambda scale: [{"n": n} for n in range(5)],
    cell=lambda c: {"value": c["n"] ** 2, "name": str(c["n"]), "list": [1, None]},
    summarise=summarise,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A store with rows, one of which failed, a claim, and a summary."""

    def cell(configuration):
        if configuration["n"] == 3:
            raise ValueError("three")
        return SQUARES.cell(configuration)

    study = Study(**vars(SQUARES) | {"cell": cell})
    out = tmp_path_factory.mktemp("whole")
    with ThreadPoolExecutor(1) as executor, pytest.warns(UserWarning, match="1 of 5 configurations failed"):
        path = run(study, out=out, executor=executor).store
    with Store(path) as store:
        store.claim(grid(study, "small", 1))
    return path


def use(path, out):
    """Everything that is done with a store; whether all of it could be."""
    uses = [
        lambda: reopen(path, out=out),
        lambda: reopen(path, SQUARES, out=out),
        lambda: export_of(path, out / "t.csv"),
        lambda: claims_of(path),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sum(succeeds(work) for work in uses) == len(uses)


def succeeds(work):
    try:
        work()
    except InscapeError:
        return False
    return True


def export_of(path, table):
    with Store(path) as store:
        export(store, table)


def claims_of(path):
    with Store(path, "squares") as store:
        store.claim(grid(SQUARES, "small", 1))
        store.finished()


def changed(path, statement, *values):
    db = sqlite3.connect(path)
    with db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        db.execute(statement, values)
    db.close()


def test_the_whole_one_can_be_used(whole, tmp_path):
    assert use(whole, tmp_path)


@pytest.mark.parametrize("seed", range(N_MUTATIONS))
def test_a_store_with_other_bytes(seed, whole, tmp_path):
    rng = random.Random(seed)
    content = bytearray(whole.read_bytes())
    for _ in range(rng.choice([1, 3, 30])):
        start = rng.randrange(len(content))
        length = rng.choice([1, 1, 8, 200])
        content[start : start + length] = rng.choice(
            [rng.randbytes(length), bytes(length), b"", content[start : start + length] * 2]
        )
    (tmp_path / "s.sqlite").write_bytes(content)
    use(tmp_path / "s.sqlite", tmp_path)


COLUMNS = [
    *(
        ("rows", name)
        for name in ("hash", "seed", "configuration", "row", "error", "finished", "seconds", "provenance")
    ),
    *(("claims", name) for name in ("host", "pid", "renewed")),
    *(("study", "name"), ("run", "asked"), ("summary", "said"), ("figures", "name"), ("figures", "content")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_a_store_with_other_values(table, column, whole, tmp_path):
    """Every value in every column; NOT NULL and UNIQUE, which SQLite keeps, are left out."""
    kept = whole.read_bytes()
    for i, value in enumerate(VALUES):
        path = tmp_path / f"{i}.sqlite"
        path.write_bytes(kept)
        try:
            changed(path, f"UPDATE {table} SET {column} = ? WHERE rowid = 1", value)
        except sqlite3.IntegrityError:
            continue
        use(path, tmp_path)


@pytest.mark.parametrize("table", ["rows", "claims", "study", "run", "summary", "figures", "function"])
@pytest.mark.parametrize("how", ["DELETE FROM", "DROP TABLE"])
def test_a_store_without_a_table_or_its_lines(how, table, whole, tmp_path):
    (tmp_path / "s.sqlite").write_bytes(whole.read_bytes())
    changed(tmp_path / "s.sqlite", f"{how} {table}")
    use(tmp_path / "s.sqlite", tmp_path)


def mutated(value, rng):
    """Plain JSON in which one value is another, or gone."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.15:
        return rng.choice(JSON_VALUES)
    copy = value.copy()
    key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
    if rng.random() < 0.15:
        del copy[key]
    else:
        copy[key] = mutated(value[key], rng)
    return copy


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("rows", "configuration"),
        ("rows", "row"),
        ("rows", "provenance"),
        ("run", "asked"),
        ("summary", "said"),
    ],
)
def test_a_store_with_other_json(table, column, whole, tmp_path):
    rng = random.Random(0)
    path, kept = tmp_path / "s.sqlite", whole.read_bytes()
    db = sqlite3.connect(whole)
    (text,) = db.execute(f"SELECT {column} FROM {table} WHERE rowid = 1").fetchone()
    db.close()
    for _ in range(N_MUTATIONS // 5):  # of five columns
        path.write_bytes(kept)
        other = json.dumps(mutated(json.loads(text), rng))
        changed(path, f"UPDATE {table} SET {column} = ? WHERE rowid = 1", other)
        use(path, tmp_path)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE rows SET row = '{' WHERE rowid = 1", r"is damaged \('\{' is no JSON\)"),
        ("UPDATE rows SET configuration = '[1]' WHERE rowid = 1", "where names and values are expected"),
        ("UPDATE rows SET row = CAST(x'7bff' AS TEXT) WHERE rowid = 1", "is damaged .*decode"),
        ("UPDATE rows SET finished = 'noon' WHERE rowid = 1", "'noon' stands where a number is expected"),
        ("DELETE FROM study", "None stands where a text is expected"),
        ("UPDATE run SET asked = '{}'", "None stands where a text is expected"),
        ("UPDATE summary SET said = '{}'", "the summary cannot be read: it has no 'title'"),
        ("DROP TABLE rows", "is damaged .*no such table: rows"),
    ],
)
@pytest.mark.filterwarnings("ignore::inscape.errors.InscapeWarning")
def test_the_damage_is_named(statement, message, whole, tmp_path):
    (tmp_path / "s.sqlite").write_bytes(whole.read_bytes())
    changed(tmp_path / "s.sqlite", statement)
    with pytest.raises(StudyError, match=message):
        reopen(tmp_path / "s.sqlite", out=tmp_path)


TOML = """
name = "depths"
title = "Depths"
replicates = 2
function = "inscape.sweeps.trained_model:cell"
[[grid]]
model = "tree"
max_depth = [2, 4]
[[grid]]
model = "mlp"
hidden = [[8, 8], [16]]
[correlate]
by = ["max_depth"]
[smoke]
replicates = 1
max_depth = 3
"""
PIECES = [
    "",
    "=",
    "[",
    "]",
    '"',
    "\n",
    "\x00",
    "\xff",
    "0",
    "-",
    "1e400",
    "inf",
    "nan",
    "9" * 30,
    "true",
    "{}",
    "1979-05-27",
]


@pytest.mark.parametrize("seed", range(N_MUTATIONS))
def test_a_toml_file_with_other_text(seed, tmp_path):
    rng = random.Random(seed)
    text = TOML
    for _ in range(rng.choice([1, 1, 2, 5])):
        start = rng.randrange(len(text))
        text = text[:start] + rng.choice(PIECES) + text[start + rng.choice([0, 1, 3]) :]
    path = tmp_path / "s.toml"
    path.write_text(text, encoding="latin-1")
    for scale in ("smoke", "small"):
        succeeds(lambda scale=scale: grid(read_study(path), scale, 0))
