"""Models of the user's own in the tables of the study: a folder of files, and what is known of each.

    folder/models.csv      file,model,data,learning_rate,batch_size,weight_decay,replicate
    folder/a.pt2           any file that `inscape.wrap` opens

`model` names the family whose configurations are correlated with each other, `data` the data set, by name or
as a file. Every other column is a hyper-parameter; `replicate` numbers the seeds of one configuration.
"""

import hashlib
from pathlib import Path
from typing import Any

from inscape.errors import StudyError
from inscape.sweeps.study import Configuration

TABLE = "models.csv"
NEEDED = ("file", "model", "data")


def own_configurations(folder: Path, counts: dict[str, Any]) -> list[Configuration]:
    """A configuration for each line of the folder's table; a file is told by its content, not its place."""
    configurations = []
    for line in _lines(folder / TABLE):
        path = folder / str(line["file"])
        if not path.is_file():
            raise StudyError(f"{folder / TABLE} names {line['file']!r}, which is not in {folder}")
        base: Configuration = {
            "part": "sweep",
            "n_train": None,
            "n_test": None,
            "counts": counts,
            "replicate": 0,
        }
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        configurations.append(base | line | {"file": str(path.resolve()), "content": digest})
    return configurations


def _lines(table: Path) -> list[dict[str, Any]]:
    import pandas as pd

    try:
        frame = pd.read_csv(table)
    except (OSError, ValueError) as error:
        raise StudyError(
            f"cannot read {table} ({error}): expected a table with the columns {', '.join(NEEDED)}, and one "
            "for each hyper-parameter"
        ) from error
    missing = [name for name in NEEDED if name not in frame]
    if missing or not len(frame):
        what = f"no column {missing[0]!r}" if missing else "no models"
        raise StudyError(
            f"{table} has {what}: expected {', '.join(NEEDED)}, and one for each hyper-parameter"
        )
    lines = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{str(k): _plain(v) for k, v in line.items() if v is not None} for line in lines]


def _plain(value: Any) -> Any:
    """A number of Python; whole ones as such, since columns with gaps hold floats."""
    plain = value.item() if hasattr(value, "item") else value
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain


def own_model(configuration: Configuration) -> Any:
    """The wrapped model of a configuration; an error if the file has changed since."""
    from inscape.models import wrap

    path = Path(configuration["file"])
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror or error}") from error
    if hashlib.sha256(content).hexdigest()[:16] != configuration["content"]:
        raise StudyError(f"{path} has changed since the study began: run `inscape study add` again")
    return wrap(path)
