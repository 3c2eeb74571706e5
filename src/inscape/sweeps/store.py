"""The store of a study: one SQLite file, a row per (configuration hash, seed), inserted when finished.

What the last run was asked for and what it said of the rows is there too: a report needs nothing else. The
file may come from anywhere: nothing in it is run or imported, and what is not as we write it is an error.

Besides the rows there is a table of claims, by which several processes share the work: a claim is made before
a task is worked on and renewed every few seconds; one whose process is gone, or that was not renewed for
`LEASE` seconds, counts as absent. Claims only save work: what is finished twice is still stored once.
"""

import json
import math
import os
import socket
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from inscape.errors import StudyError
from inscape.sweeps.executors import interrupts_held
from inscape.sweeps.references import current
from inscape.sweeps.saved_summary import SavedSummary
from inscape.sweeps.tasks import Key, Task, canonical, read_json

if TYPE_CHECKING:
    import pandas as pd

LEASE = 30.0
_LAST_MOMENT = 250_000_000_000.0
"""Seconds since 1970, before the year 9999: the latest moment that has a date."""
APPLICATION_ID = 0x696E7363  # "insc", which marks the file as ours
SCHEMA = 1
_TABLES = """
CREATE TABLE study (name TEXT NOT NULL);
CREATE TABLE rows (
    hash TEXT NOT NULL, seed INTEGER NOT NULL, configuration TEXT NOT NULL,
    row TEXT, error TEXT, finished REAL NOT NULL, seconds REAL NOT NULL, provenance TEXT NOT NULL,
    PRIMARY KEY (hash, seed), CHECK ((row IS NULL) <> (error IS NULL)));
CREATE TABLE claims (
    hash TEXT NOT NULL, seed INTEGER NOT NULL, owner TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL,
    renewed REAL NOT NULL, PRIMARY KEY (hash, seed));
"""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A finished task: its row as JSON, or the error; how long it took, and with what."""

    row: str | None
    error: str | None
    seconds: float
    provenance: str


class Store:
    """The rows of one study in one file, safe against other processes and against being killed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder) / "rates.sqlite", study="rates")
    ...     print(store.study, len(store.frame()))
    ...     store.close()
    rates 0
    """

    def __init__(self, path: str | Path, study: str | None = None, function: str | None = None) -> None:
        """Open the store at `path`; `study`, its name, makes a new one if there is none.

        The rows belong to one `function`, the first that is named: another is refused.
        """
        self.path = Path(path)
        if self.path.is_dir():
            raise StudyError(f"{self.path} is a folder, not a store: move it away, or give another folder")
        if study is None and not self.path.is_file():
            raise StudyError(f"there is no store {self.path}: run the study first")
        self._owner, self._host, self._pid = uuid.uuid4().hex, socket.gethostname(), os.getpid()
        self._lock = threading.Lock()  # one transaction at a time: claims are renewed from another thread
        with self._explained():
            if study is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=60, isolation_level=None, check_same_thread=False)
            try:
                self._prepare(study)
                if function is not None:
                    self._check_function(function)
            except BaseException:
                self._db.close()
                raise

    def _prepare(self, study: str | None) -> None:
        """Check that the file is whole and ours, and make the tables of a new one."""
        self._db.execute("PRAGMA trusted_schema = OFF")
        if study is not None and not self._tables():
            with self._writing():
                if not self._tables():  # nobody was faster
                    for statement in _TABLES.strip().split(";\n"):
                        self._db.execute(statement)
                    self._db.execute("INSERT INTO study VALUES (?)", (study,))
                    self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    self._db.execute(f"PRAGMA user_version = {SCHEMA}")
        if self._pragma("application_id") != APPLICATION_ID:
            raise StudyError(f"{self.path} is not a store of inscape: give another file")
        if self._pragma("user_version") != SCHEMA:
            raise StudyError(f"{self.path} was written by another version of inscape: start a new store")
        if (answer := self._pragma("quick_check")) != "ok":
            raise sqlite3.DatabaseError(answer)
        self.study = _text(self._one("SELECT name FROM study"))
        if study not in (None, self.study):
            raise StudyError(
                f"{self.path} holds the study {self.study!r}, not {study!r}: give another folder"
            )

    def _check_function(self, function: str) -> None:
        with self._writing():
            self._db.execute("CREATE TABLE IF NOT EXISTS function (name TEXT NOT NULL)")
            name = self._one("SELECT name FROM function")
            if name is None:
                self._db.execute("INSERT INTO function VALUES (?)", (function,))
        if name is not None and current(_text(name)) != current(function):
            raise StudyError(f"{self.path} holds rows of {name}, not of {function}: give another folder")

    def function(self) -> str | None:
        """The function that the rows belong to, if one was named."""
        with self._explained():
            name = self._one("SELECT name FROM function") if self._has("function") else None
            return None if name is None else current(_text(name))

    def _tables(self) -> int:
        return int(self._one("SELECT count(*) FROM sqlite_master"))

    def _has(self, table: str) -> bool:
        return self._one("SELECT 1 FROM sqlite_master WHERE name = ?", table) is not None

    def _pragma(self, name: str) -> Any:
        return self._one(f"PRAGMA {name}")

    def _one(self, sql: str, *values: Any) -> Any:
        """The first value of the first line, None if there is no line."""
        row = self._db.execute(sql, values).fetchone()
        return None if row is None else row[0]

    def claim(self, tasks: Sequence[Task], retry_before: float = 0.0) -> tuple[list[Task], list[Task]]:
        """The tasks that nobody has finished or works on, ours from now; and those that others work on.

        Failed rows older than `retry_before` count as not finished.
        """
        mine: list[Task] = []
        others: list[Task] = []
        with self._explained(), self._writing():
            for task in tasks:
                if self._is_finished(task.key, retry_before):
                    continue
                (others if self._is_claimed(task.key) else mine).append(task)
            claims = [(*task.key, self._owner, self._host, self._pid, time.time()) for task in mine]
            self._db.executemany("INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?, ?)", claims)
        return mine, others

    def _is_finished(self, key: Key, retry_before: float) -> bool:
        sql = "SELECT error IS NULL OR finished >= ? FROM rows WHERE hash = ? AND seed = ?"
        row = self._db.execute(sql, (retry_before, *key)).fetchone()
        return row is not None and bool(row[0])

    def _is_claimed(self, key: Key) -> bool:
        sql = "SELECT host, pid, renewed FROM claims WHERE hash = ? AND seed = ?"
        owner = self._db.execute(sql, key).fetchone()
        return owner is not None and self._is_alive(*owner)

    def _is_alive(self, host: Any, pid: Any, renewed: Any) -> bool:
        if not isinstance(renewed, float) or not isinstance(pid, int) or not 0 < pid < 2**31:
            return False  # not written by us
        if time.time() - renewed > LEASE:
            return False
        if host != self._host or os.name != "posix":
            return True
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def renew(self) -> None:
        """Say that this process is alive and still works on what it claimed."""
        with self._explained(), self._writing():
            self._db.execute("UPDATE claims SET renewed = ? WHERE owner = ?", (time.time(), self._owner))

    def release(self) -> None:
        """Give up everything that this process claimed."""
        with self._explained(), self._writing():
            self._db.execute("DELETE FROM claims WHERE owner = ?", (self._owner,))

    def insert(self, tasks: Sequence[Task], outcomes: Sequence[Outcome]) -> None:
        """Store finished tasks, all or none, and end their claims; a failed row may be replaced, no other."""
        now = time.time()
        rows = [
            (*t.key, canonical(t.configuration), o.row, o.error, now, o.seconds, o.provenance)
            for t, o in zip(tasks, outcomes, strict=True)
        ]
        with self._explained(), self._writing():
            self.put(rows)
            self._db.executemany("DELETE FROM claims WHERE hash = ? AND seed = ?", [t.key for t in tasks])

    def insert_records(self, records: Sequence[dict[str, Any]]) -> None:
        """Store rows that another store had, as `records` gives them, all or none; see `insert`."""
        rows = [
            tuple(json.dumps(r[k]) if k in _AS_JSON and r[k] is not None else r[k] for k in _COLUMNS)
            for r in records
        ]
        with self._explained(), self._writing():
            self.put(rows)

    def put(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write rows inside a transaction that is under way; `insert` and `insert_records` begin one."""
        self._db.executemany(
            "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "row = excluded.row, error = excluded.error, finished = excluded.finished, "
            "seconds = excluded.seconds, provenance = excluded.provenance WHERE rows.error IS NOT NULL",
            rows,
        )

    def finished(self, retry_before: float = 0.0) -> set[Key]:
        """The keys of all rows but those that failed before `retry_before`."""
        sql = "SELECT hash, seed FROM rows WHERE error IS NULL OR finished >= ?"
        with self._explained():
            return set(self._db.execute(sql, (retry_before,)).fetchall())

    def records(self) -> list[dict[str, Any]]:
        """Every row as it is stored, in the order of finishing, the JSON of it read."""
        sql = f"SELECT {', '.join(_COLUMNS)} FROM rows ORDER BY finished, hash, seed"
        with self._explained():
            rows = self._db.execute(sql).fetchall()
            return [_record(dict(zip(_COLUMNS, values, strict=True))) for values in rows]

    def frame(self, tasks: Sequence[Task] | None = None) -> "pd.DataFrame":
        """The rows that did not fail: of these tasks, in their order; or all, in the order of finishing."""
        import pandas as pd

        done = {(r["hash"], r["seed"]): r for r in self.records() if r["error"] is None}
        keys = list(done) if tasks is None else [t.key for t in tasks if t.key in done]
        return pd.DataFrame(lines([done[key] for key in keys]))

    def provenance(self) -> dict[str, str]:
        """Versions and machine of the row that was finished last."""
        sql = "SELECT provenance FROM rows ORDER BY finished DESC LIMIT 1"
        with self._explained():
            text = self._one(sql)
            return {} if text is None else {key: str(value) for key, value in _table(text).items()}

    def last_finished(self) -> float | None:
        """When the last row was finished, in seconds since 1970."""
        with self._explained():
            last = self._one("SELECT max(finished) FROM rows")
            return None if last is None else _moment(last)

    def failures(self, tasks: Sequence[Task] | None = None) -> dict[str, str]:
        """The errors of the rows that failed, of these tasks or of all, by configuration."""
        wanted = None if tasks is None else {t.key for t in tasks}
        return {
            canonical(r["configuration"]): r["error"]
            for r in self.records()
            if r["error"] is not None and (wanted is None or (r["hash"], r["seed"]) in wanted)
        }

    def remember_run(self, run: dict[str, Any]) -> None:
        """Keep what was asked for, plain JSON, as the last run, of which nothing has been said yet."""
        with self._explained(), self._writing():
            for table in ("summary", "figures"):
                self._db.execute(f"DROP TABLE IF EXISTS {table}")
            self._db.execute("CREATE TABLE IF NOT EXISTS run (asked TEXT NOT NULL)")
            self._db.execute("DELETE FROM run")
            self._db.execute("INSERT INTO run VALUES (?)", (canonical(run),))

    def last_run(self) -> dict[str, Any] | None:
        """What the last finished run was asked for, if there was one."""
        with self._explained():
            if not self._has("run"):
                return None
            asked = _table(self._one("SELECT asked FROM run"))
            given = {name: asked.get(name, {}) for name in ("options", "settings")}
            for name, value in given.items():
                if not isinstance(value, dict):
                    raise _DamagedError(f"{name} {value!r}")
            return {
                "scale": _text(asked.get("scale")),
                "seed": _whole(asked.get("seed")),
                **given,
                "reference": _text(asked.get("reference", "")),
            }

    def remember_summary(self, saved: SavedSummary) -> None:
        """Keep what the last run said of its rows, and its figures."""
        with self._explained(), self._writing():
            self._db.execute("DROP TABLE IF EXISTS summary")
            self._db.execute("DROP TABLE IF EXISTS figures")
            self._db.execute("CREATE TABLE summary (said TEXT NOT NULL)")
            self._db.execute("CREATE TABLE figures (name TEXT PRIMARY KEY, content BLOB NOT NULL)")
            self._db.execute("INSERT INTO summary VALUES (?)", (saved.to_json(),))
            self._db.executemany("INSERT INTO figures VALUES (?, ?)", saved.figures.items())

    def last_summary(self) -> SavedSummary | None:
        """What the last run said of its rows, if it came to that, and by a version that keeps it."""
        with self._explained():
            if not self._has("summary") or not self._has("figures"):
                return None
            figures = self._db.execute("SELECT name, content FROM figures").fetchall()
            if not all(isinstance(content, bytes) for _, content in figures):
                raise _DamagedError("a figure is no file")
            try:
                return SavedSummary.from_json(_text(self._one("SELECT said FROM summary")), dict(figures))
            except StudyError as error:
                raise _DamagedError(f"the summary cannot be read: {error}") from error

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        """The store itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction that is written as a whole or not at all."""
        with interrupts_held(), self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:  # an error anywhere above
                    self._db.execute("ROLLBACK")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of the file system and of SQLite, and content that is not ours, with what to do."""
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeDecodeError, OverflowError, _DamagedError) as error:
            raise StudyError(_explanation(self.path, error)) from error


class _DamagedError(Exception):
    """A value in the file is not of the kind that is written there."""


def _table(value: Any) -> dict[str, Any]:
    try:
        table = read_json(_text(value))
    except (ValueError, RecursionError) as error:
        raise _DamagedError(f"{_short(value)} is no JSON") from error
    if not isinstance(table, dict):
        raise _DamagedError(f"{_short(value)} stands where names and values are expected")
    return table


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _DamagedError(f"{_short(value)} stands where a text is expected")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise _DamagedError(f"{_short(value)} stands where a whole number is expected")
    return value


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise _DamagedError(f"{_short(value)} stands where a number is expected")
    return float(value)


def _moment(value: Any) -> float:
    if _number(value) > _LAST_MOMENT:
        raise _DamagedError(f"{_short(value)} is no time")
    return float(value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _or_none(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


_COLUMNS: dict[str, Callable[[Any], Any]] = {
    "hash": _text,
    "seed": _whole,
    "configuration": _table,
    "row": _or_none(_table),
    "error": _or_none(_text),
    "finished": _moment,
    "seconds": _number,
    "provenance": _table,
}
"""Columns of the rows, and how the value of each is read."""
_AS_JSON = ("configuration", "row", "provenance")
"""Columns that hold JSON."""


def _record(values: dict[str, Any]) -> dict[str, Any]:
    return {name: read(values[name]) for name, read in _COLUMNS.items()}


def as_record(line: dict[str, Any]) -> dict[str, Any]:
    """A row as `Store.records` gives it, from its JSON; a ValueError if no store can hold it."""
    texts = {k: json.dumps(v) for k, v in line.items() if k in _AS_JSON and v is not None}
    try:
        record = _record(line | texts)
    except _DamagedError as error:
        raise ValueError(str(error)) from error
    if (record["row"] is None) == (record["error"] is None):
        raise ValueError("a row has either values or an error")
    return record


def lines(records: Sequence[dict[str, Any]], more: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The lines of a frame: each configuration, its hash, seed and time, and its row.

    The columns of a study keep their names. A column of the store that has the name of one of them is called
    "store_" and that name, in all lines.

    Args:
        records: as `Store.records` gives them.
        more: further columns of the store, such as "error".

    >>> record = {"configuration": {"width": 3}, "hash": "ab", "seed": 0, "seconds": 1.5, "error": None}
    >>> lines([{**record, "row": {"error": 0.25}}], more=["error"])
    [{'width': 3, 'configuration': 'ab', 'seed': 0, 'seconds': 1.5, 'error': 0.25, 'store_error': None}]
    """
    taken = {name for r in records for name in (*r["configuration"], *(r["row"] or {}))}
    names = {name: _free(name, taken) for name in (*_IN_EVERY_FRAME, *more)}
    return [
        {
            **r["configuration"],
            **{names[name]: r[column] for name, column in _IN_EVERY_FRAME.items()},
            **(r["row"] or {}),
            **{names[name]: r[name] for name in more},
        }
        for r in records
    ]


def _free(name: str, taken: set[str]) -> str:
    """A name that is not taken, as near to `name` as can be."""
    return _free(f"store_{name}", taken) if name in taken else name


_IN_EVERY_FRAME = {"configuration": "hash", "seed": "seed", "seconds": "seconds"}
"""What a frame calls a column of the store -> the column."""


def _explanation(path: Path, error: Exception) -> str:
    text = str(error)
    if isinstance(error, OSError):
        return f"cannot write into {path.parent}: {error.strerror or error}"
    not_ours = isinstance(error, _DamagedError | UnicodeDecodeError | OverflowError)
    if not_ours or text.lower().startswith(("could not decode", "no such table", "no such column")):
        return f"{path} is damaged ({text}): move it away, or restore a copy"
    if "full" in text or "disk I/O" in text:
        return f"cannot write {path} ({text}): make room on the disk and run again; finished rows are safe"
    if "readonly" in text or "unable to open" in text:
        return f"cannot write {path} ({text}): give a folder in which you may write"
    if "locked" in text:
        return f"{path} stays locked by another process ({text}): end that one, or wait, and run again"
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
        return f"{path} is damaged or no store ({text}): move it away, or restore a copy, and run again"
    return f"{path}: {text}"
