"""The store of a study: one SQLite file, a row per (configuration hash, seed), inserted when finished.

Besides the rows there is a table of claims, by which several processes share the work: a claim is made before
a cell is worked on and renewed every few seconds; one whose process is gone, or that was not renewed for
`LEASE` seconds, counts as absent. Claims only save work: what is finished twice is still stored once.
"""

import json
import os
import socket
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from inscape.errors import StudyError
from inscape.studies.cells import Cell, Key, canonical
from inscape.studies.interrupts import interrupts_held
from inscape.studies.work import Outcome

if TYPE_CHECKING:
    import pandas as pd

LEASE = 30.0
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


class Store:
    """The rows of one study in one file, safe against other processes and against being killed."""

    def __init__(self, path: str | Path, study: str | None = None, function: str | None = None) -> None:
        """Open the store at `path`; `study`, its name, makes a new one if there is none.

        The rows belong to one `function`, the first that is named: another is refused.
        """
        self.path = Path(path)
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
        self.study = str(self._db.execute("SELECT name FROM study").fetchone()[0])
        if study not in (None, self.study):
            raise StudyError(
                f"{self.path} holds the study {self.study!r}, not {study!r}: give another folder"
            )

    def _check_function(self, function: str) -> None:
        with self._writing():
            self._db.execute("CREATE TABLE IF NOT EXISTS function (name TEXT NOT NULL)")
            found = self._db.execute("SELECT name FROM function").fetchone()
            if found is None:
                self._db.execute("INSERT INTO function VALUES (?)", (function,))
        if found is not None and found[0] != function:
            raise StudyError(f"{self.path} holds rows of {found[0]}, not of {function}: give another folder")

    def _tables(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])

    def _pragma(self, name: str) -> Any:
        return self._db.execute(f"PRAGMA {name}").fetchone()[0]

    def claim(self, cells: Sequence[Cell], retry_before: float = 0.0) -> tuple[list[Cell], list[Cell]]:
        """The cells that nobody has finished or works on, ours from now; and those that others work on.

        Failed rows older than `retry_before` count as not finished.
        """
        mine: list[Cell] = []
        others: list[Cell] = []
        with self._explained(), self._writing():
            for cell in cells:
                if self._is_finished(cell.key, retry_before):
                    continue
                (others if self._is_claimed(cell.key) else mine).append(cell)
            claims = [(*cell.key, self._owner, self._host, self._pid, time.time()) for cell in mine]
            self._db.executemany("INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?, ?)", claims)
        return mine, others

    def _is_finished(self, key: Key, retry_before: float) -> bool:
        sql = "SELECT error IS NULL OR finished >= ? FROM rows WHERE hash = ? AND seed = ?"
        found = self._db.execute(sql, (retry_before, *key)).fetchone()
        return found is not None and bool(found[0])

    def _is_claimed(self, key: Key) -> bool:
        sql = "SELECT host, pid, renewed FROM claims WHERE hash = ? AND seed = ?"
        owner = self._db.execute(sql, key).fetchone()
        return owner is not None and self._is_alive(*owner)

    def _is_alive(self, host: str, pid: int, renewed: float) -> bool:
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

    def insert(self, cells: Sequence[Cell], outcomes: Sequence[Outcome]) -> None:
        """Store finished cells, all or none, and end their claims; a failed row may be replaced, no other."""
        now = time.time()
        rows = [
            (*c.key, canonical(c.configuration), o.row, o.error, now, o.seconds, o.provenance)
            for c, o in zip(cells, outcomes, strict=True)
        ]
        with self._explained(), self._writing():
            self._db.executemany(
                "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "row = excluded.row, error = excluded.error, finished = excluded.finished, "
                "seconds = excluded.seconds, provenance = excluded.provenance WHERE rows.error IS NOT NULL",
                rows,
            )
            self._db.executemany("DELETE FROM claims WHERE hash = ? AND seed = ?", [c.key for c in cells])

    def finished(self, retry_before: float = 0.0) -> set[Key]:
        """The keys of all rows but those that failed before `retry_before`."""
        sql = "SELECT hash, seed FROM rows WHERE error IS NULL OR finished >= ?"
        with self._explained():
            return set(self._db.execute(sql, (retry_before,)).fetchall())

    def records(self) -> list[dict[str, Any]]:
        """Every row as it is stored, in the order of finishing, the JSON of it read."""
        sql = "SELECT hash, seed, configuration, row, error, finished, seconds, provenance FROM rows"
        with self._explained():
            found = self._db.execute(sql + " ORDER BY finished, hash, seed").fetchall()
        names = ("hash", "seed", "configuration", "row", "error", "finished", "seconds", "provenance")
        records = [dict(zip(names, values, strict=True)) for values in found]
        for record in records:
            for name in ("configuration", "row", "provenance"):
                record[name] = None if record[name] is None else json.loads(record[name])
        return records

    def frame(self, cells: Sequence[Cell] | None = None) -> "pd.DataFrame":
        """The rows that did not fail: of these cells, in their order; or all, in the order of finishing."""
        import pandas as pd

        done = {(r["hash"], r["seed"]): r for r in self.records() if r["error"] is None}
        keys = list(done) if cells is None else [c.key for c in cells if c.key in done]
        return pd.DataFrame([flat(done[key]) for key in keys])

    def provenance(self) -> dict[str, str]:
        """Versions and machine of the row that was finished last."""
        sql = "SELECT provenance FROM rows ORDER BY finished DESC LIMIT 1"
        with self._explained():
            found = self._db.execute(sql).fetchone()
        return {} if found is None else dict(json.loads(found[0]))

    def last_finished(self) -> float | None:
        """When the last row was finished, in seconds since 1970."""
        with self._explained():
            found = self._db.execute("SELECT max(finished) FROM rows").fetchone()[0]
        return None if found is None else float(found)

    def failures(self, cells: Sequence[Cell] | None = None) -> dict[str, str]:
        """The errors of the rows that failed, of these cells or of all, by configuration."""
        wanted = None if cells is None else {c.key for c in cells}
        return {
            canonical(r["configuration"]): r["error"]
            for r in self.records()
            if r["error"] is not None and (wanted is None or (r["hash"], r["seed"]) in wanted)
        }

    def remember_run(self, run: dict[str, Any]) -> None:
        """Keep what was asked for, plain JSON, as the last run."""
        with self._explained(), self._writing():
            self._db.execute("CREATE TABLE IF NOT EXISTS run (asked TEXT NOT NULL)")
            self._db.execute("DELETE FROM run")
            self._db.execute("INSERT INTO run VALUES (?)", (canonical(run),))

    def last_run(self) -> dict[str, Any] | None:
        """What the last finished run was asked for, if there was one."""
        with self._explained():
            if not self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'run'").fetchone():
                return None
            return dict(json.loads(self._db.execute("SELECT asked FROM run").fetchone()[0]))

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
                if self._db.in_transaction:  # an error at any place above
                    self._db.execute("ROLLBACK")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of the file system and of SQLite, with what to do."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StudyError(_explanation(self.path, error)) from error


def flat(record: dict[str, Any]) -> dict[str, Any]:
    """One line of a frame: configuration, its hash, seed and time, and the row."""
    run = {"configuration": record["hash"], "seed": record["seed"], "seconds": record["seconds"]}
    return {**record["configuration"], **run, **(record["row"] or {})}


def _explanation(path: Path, error: Exception) -> str:
    text = str(error)
    if isinstance(error, OSError):
        return f"cannot write into {path.parent}: {error.strerror or error}"
    if "full" in text or "disk I/O" in text:
        return f"cannot write {path} ({text}): make room on the disk and run again; finished rows are safe"
    if "readonly" in text or "unable to open" in text:
        return f"cannot write {path} ({text}): give a folder in which you may write"
    if "locked" in text:
        return f"{path} stays locked by another process ({text}): end that one, or wait, and run again"
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
        return f"{path} is damaged or no store ({text}): move it away, or restore a copy, and run again"
    return f"{path}: {text}"
