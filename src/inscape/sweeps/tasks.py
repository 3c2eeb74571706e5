"""The grid of a study: each configuration with its hash and its seeds."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from inscape.arguments import whole_number
from inscape.errors import StudyError, unknown_name
from inscape.sweeps.study import SCALES, Configuration, Study

Key = tuple[str, int]

_STRIDE = 0x9E3779B1
"""Between the replicate seeds of neighbouring study seeds: odd, so that all of 32 bits are taken in turn."""


@dataclass(frozen=True)
class Task:
    """One configuration, the hash of all of it but the replicate, its seed, and that of its replicate."""

    configuration: Configuration
    hash: str
    seed: int
    replicate_seed: int = 0

    @property
    def key(self) -> Key:
        """What the row is stored under."""
        return self.hash, self.seed

    @property
    def seeded(self) -> Configuration:
        """The configuration with its seeds, which the function of the study is given."""
        return {**self.configuration, "seed": self.seed, "replicate_seed": self.replicate_seed}


def as_tasks(configurations: Iterable[Configuration], study_seed: int) -> list[Task]:
    """A task for each configuration; two of the same are one too many.

    >>> a, b = as_tasks([{"rate": 0.1, "replicate": 0}, {"rate": 0.1, "replicate": 1}], 0)
    >>> a.hash == b.hash, a.seed == b.seed
    (True, False)
    """
    tasks = [_task(c, study_seed) for c in configurations]
    seen: dict[Key, Configuration] = {}
    for task in tasks:
        if task.key in seen:
            raise StudyError(
                f"two cells of the grid are the same: {task.configuration} and {seen[task.key]}; "
                'number repetitions with "replicate"'
            )
        seen[task.key] = task.configuration
    return tasks


def grid(study: Study, scale: str, seed: int, options: Mapping[str, Any] | None = None) -> list[Task]:
    """The tasks of a study at a scale, with its options."""
    if scale not in SCALES:
        raise StudyError(unknown_name("scale", scale, SCALES))
    for option in options or {}:
        if option not in study.options:
            known = sorted(study.options)
            hint = unknown_name("option", option, known) if known else "it has no options"
            raise StudyError(f"the study {study.name!r} does not take {option!r}: {hint}")
    tasks = as_tasks(study.configurations(scale, **(options or {})), seed)
    if not tasks:
        raise StudyError(f"the study {study.name!r} has no configurations at the scale {scale!r}")
    return tasks


def _task(configuration: Configuration, study_seed: int) -> Task:
    for name in ("seed", "replicate_seed"):
        if name in configuration:
            raise StudyError(
                f'the configuration {configuration} has a "{name}": the study derives it; '
                'use "replicate" to repeat'
            )
    replicate = whole_number(configuration.get("replicate", 0), "replicate", 0, StudyError)
    rest = {k: v for k, v in configuration.items() if k != "replicate"}
    digest = hashlib.sha256(canonical(rest).encode()).hexdigest()[:16]
    seed = hashlib.sha256(canonical([study_seed, digest, replicate]).encode()).digest()
    return Task(
        dict(configuration), digest, int.from_bytes(seed[:4], "big"), replicate_seed(study_seed, replicate)
    )


def replicate_seed(study_seed: int, replicate: int) -> int:
    """The seed of what all configurations of one replicate have in common, such as the start of training.

    It is the replicate itself where the study's seed is 0.

    >>> replicate_seed(0, 3), replicate_seed(7, 3)
    (3, 1401181146)
    """
    return (study_seed * _STRIDE + replicate) % 2**32


def read_json(text: str) -> Any:
    r"""The value of a JSON text; halves of characters, which no file can hold, become question marks.

    >>> read_json('{"a": "\\ud800b"}')
    {'a': '?b'}
    """
    value = json.loads(text)
    if "\\ud" in text.lower():
        value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    return value


def canonical(value: Any) -> str:
    """The one JSON text of a plain value.

    >>> canonical({"b": 1, "a": [0.1, None]})
    '{"a":[0.1,null],"b":1}'
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise StudyError(f"the configuration {value!r} is not plain JSON: {error}") from error
