"""The rows of a store in a file: a table, or lines with which two machines share a study.

    inscape study export region-counts --to rows.jsonl      on one machine
    inscape study merge region-counts rows.jsonl            on another, then `inscape study run region-counts`

A .jsonl file has a line of JSON for each row, after one that names the study and its function. It is text and
holds all that a store knows of a row but the host, so that it can be kept under version control.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inscape.errors import MissingExtraError, StudyError
from inscape.files import replacing
from inscape.reports.tables import write_csv
from inscape.sweeps.references import current
from inscape.sweeps.store import Store, as_record, lines
from inscape.sweeps.tasks import canonical, hash_of

SCHEMA = 1


@dataclass(frozen=True)
class Merged:
    """How many rows were new, were there already with the same values, or with others, or had failed."""

    new: int
    known: int
    different: int
    failed: int

    def __str__(self) -> str:
        """What happened, in a sentence."""
        text = f"{self.new} rows are new, {self.known} were there"
        if self.different:
            text += f", {self.different} were there with other values, which stay"
        if self.failed:
            text += f"; {self.failed} failed ones were left out, to be worked on again"
        return text


def merge(store: Store, source: str | Path) -> Merged:
    """Put the rows of another store or of a .jsonl file into a store, all or none.

    What the store has stays; a row that failed there gives way. Rows are told by the hash of their
    configuration and by their seed, and the hash is computed anew.

    Args:
        store: of the same study.
        source: a store (.sqlite), the folder of one, or a file that `export` wrote (.jsonl).
    """
    path = Path(source)
    study, function, records = _read(path, store.study)
    if study != store.study:
        raise StudyError(f"{path} holds the study {study!r}, not {store.study!r}: nothing was merged")
    own_function = store.function()
    if function is not None and own_function is not None and current(function) != own_function:
        raise StudyError(f"{path} holds rows of {function}, not of {own_function}: nothing was merged")
    for record in records:
        if hash_of(record["configuration"]) != record["hash"]:
            raise StudyError(
                f"{path} is damaged: the hash {record['hash']!r} is not that of {record['configuration']}; "
                "nothing was merged"
            )
    there = {_key(r): _values(r) for r in store.records() if r["error"] is None}
    finished = [r for r in records if r["error"] is None]
    old = [r for r in finished if _key(r) in there]
    same = sum(_values(r) == there[_key(r)] for r in old)
    new = {_key(r): r for r in finished if _key(r) not in there}
    store.insert_records(list(new.values()))
    return Merged(len(new), same, len(old) - same, len(records) - len(finished))


def _key(record: dict[str, Any]) -> tuple[str, int]:
    return record["hash"], record["seed"]


def _values(record: dict[str, Any]) -> str:
    """What came out, as one text: equal values are equal there, those that are no numbers too."""
    return json.dumps(record["row"], sort_keys=True)


def _read(path: Path, study: str) -> tuple[str, str | None, Sequence[dict[str, Any]]]:
    """The study, its function if it is known, and the rows of a source."""
    if path.suffix.lower() == ".jsonl":
        return _from_text(path)
    with Store(path / f"{study}.sqlite" if path.is_dir() else path) as other:
        return other.study, other.function(), other.records()


def _from_text(path: Path) -> tuple[str, str | None, Sequence[dict[str, Any]]]:
    try:
        content = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        title, *lines = content
        if title["schema"] != SCHEMA:
            raise StudyError(f"{path} was written by another version of inscape: export it again")
        function = title["function"]
        return str(title["study"]), None if function is None else str(function), [as_record(x) for x in lines]
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StudyError(
            f"{path} is damaged, or not a file that `inscape study export --to rows.jsonl` wrote ({error}): "
            "nothing was merged"
        ) from error


def as_text(store: Store) -> Iterator[str]:
    """The lines of a .jsonl file, in the order of hash and seed, so that versions of it can be compared."""
    yield canonical({"schema": SCHEMA, "study": store.study, "function": store.function()})
    for record in sorted(store.records(), key=_key):
        provenance = {k: v for k, v in record["provenance"].items() if k != "host"}
        yield json.dumps(record | {"provenance": provenance}, sort_keys=True, separators=(",", ":"))


ENDINGS = (".csv", ".parquet", ".jsonl")


def export(store: Store, path: str | Path) -> int:
    """Write every row, failed ones too, into a .csv, .parquet or .jsonl file; returns how many.

    The last is for `merge`: it has the rows as they are stored, but the host. The others are tables.

    Besides the columns of a study's frame there are "error", "finished" (seconds since 1970) and "provenance"
    (JSON); where the study has a column of such a name, the store's is called "store_error" and so on. Lists
    are written as JSON. In a .csv file, texts that a spreadsheet would take for formulas have
    an apostrophe before them.
    """
    import pandas as pd

    path = Path(path)
    if path.suffix.lower() not in ENDINGS:
        raise StudyError(
            f"cannot export into {path}: the file must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
        )
    if path.suffix.lower() == ".jsonl":
        return _write_lines(store, path)
    frame = pd.DataFrame(
        {key: _text(value) for key, value in line.items()}
        for line in lines(store.records(), more=("error", "finished", "provenance"))
    )
    try:
        if path.suffix.lower() == ".csv":
            write_csv(frame, path)
        else:
            with replacing(path) as draft:
                frame.to_parquet(draft, index=False)
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet", "writing .parquet files") from error
    except OSError as error:
        raise StudyError(f"cannot write {path}: {error.strerror or error}") from error
    return len(frame)


def _write_lines(store: Store, path: Path) -> int:
    content = list(as_text(store))
    try:
        with replacing(path) as draft:
            draft.write_text("\n".join(content) + "\n", encoding="utf-8")
    except OSError as error:
        raise StudyError(f"cannot write {path}: {error.strerror or error}") from error
    return len(content) - 1


def _text(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value
