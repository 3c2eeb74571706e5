"""The rows of a store in a file: a table, or lines that another store can be merged with."""

import json
from pathlib import Path
from typing import Any

from inscape.errors import MissingExtraError, StudyError
from inscape.files import replacing
from inscape.reports.tables import write_csv
from inscape.sweeps.merge import as_text
from inscape.sweeps.store import Store, lines

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
