"""The cells of a study: each configuration with its hash and its seed."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from inscape.errors import StudyError
from inscape.studies.study import Configuration

Key = tuple[str, int]


@dataclass(frozen=True)
class Cell:
    """One configuration, the hash of all of it but the replicate, and the seed of this replicate."""

    configuration: Configuration
    hash: str
    seed: int

    @property
    def key(self) -> Key:
        """What the row is stored under."""
        return self.hash, self.seed

    @property
    def task(self) -> Configuration:
        """What the function of the study is given."""
        return {**self.configuration, "seed": self.seed}


def as_cells(configurations: Iterable[Configuration], study_seed: int) -> list[Cell]:
    """The cells of some configurations; two of the same are one too many.

    >>> a, b = as_cells([{"rate": 0.1, "replicate": 0}, {"rate": 0.1, "replicate": 1}], 0)
    >>> a.hash == b.hash, a.seed == b.seed
    (True, False)
    """
    cells = [_cell(c, study_seed) for c in configurations]
    seen: dict[Key, Configuration] = {}
    for cell in cells:
        if cell.key in seen:
            raise StudyError(
                f"two cells of the grid are the same: {cell.configuration} and {seen[cell.key]}; "
                'number repetitions with "replicate"'
            )
        seen[cell.key] = cell.configuration
    return cells


def _cell(configuration: Configuration, study_seed: int) -> Cell:
    if "seed" in configuration:
        raise StudyError(
            f'the configuration {configuration} has a "seed": the study derives it; use "replicate" to repeat'
        )
    replicate = configuration.get("replicate", 0)
    rest = {k: v for k, v in configuration.items() if k != "replicate"}
    digest = hashlib.sha256(canonical(rest).encode()).hexdigest()[:16]
    seed = hashlib.sha256(canonical([study_seed, digest, replicate]).encode()).digest()
    return Cell(dict(configuration), digest, int.from_bytes(seed[:4], "big"))


def canonical(value: Any) -> str:
    """The one JSON text of a plain value.

    >>> canonical({"b": 1, "a": [0.1, None]})
    '{"a":[0.1,null],"b":1}'
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise StudyError(f"the configuration {value!r} is not plain JSON: {error}") from error
