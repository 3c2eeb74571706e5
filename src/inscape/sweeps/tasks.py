"""The grid of a study: each configuration with its hash and its seeds."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from inscape.arguments import whole_number
from inscape.errors import InscapeError, StudyError, unknown_name
from inscape.sweeps.study import Configuration, Study

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
                f"two configurations of the grid are the same: {task.configuration} and {seen[task.key]}; "
                'number repetitions with "replicate"'
            )
        seen[task.key] = task.configuration
    return tasks


def grid(
    study: Study,
    scale: str,
    seed: int,
    options: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> list[Task]:
    """The tasks of a study at a scale, with its options, and with other settings; all checked."""
    if scale not in study.scales:
        raise StudyError(unknown_name("scale", scale, study.scales))
    for option in options or {}:
        if option not in study.options:
            known = sorted(study.options)
            hint = unknown_name("option", option, known) if known else "it has no options"
            raise StudyError(f"the study {study.name!r} does not take {option!r}: {hint}")
    asked = study.configurations(scale, **(options or {}))
    configurations = with_settings(asked, settings or {})
    if not configurations:
        raise StudyError(f"the study {study.name!r} has no configurations at the scale {scale!r}")
    tasks = as_tasks(configurations, seed)
    _check_each(study, tasks)
    for other in study.scales if study.check is not None else ():
        if (configurations := study.configurations(other, **(options or {}))) != asked:
            _check_each(study, as_tasks(configurations, seed), f" (at the scale {other})")
    return tasks


def with_settings(configurations: list[Configuration], settings: Mapping[str, Any]) -> list[Configuration]:
    """The configurations with other values of some keys, each once; one that lacks a key stays without it.

    Args:
        configurations: of the study.
        settings: key -> value, or a list of values, each of which then goes with each configuration.

    >>> rates = [{"rate": r, "replicate": i} for r in (0.1, 0.01) for i in (0, 1)]
    >>> with_settings(rates, {"rate": 0.5})
    [{'rate': 0.5, 'replicate': 0}, {'rate': 0.5, 'replicate': 1}]
    >>> len(with_settings(rates, {"rate": [1, 2, 3]}))
    6
    """
    known = settings_of(configurations)
    for key, value in settings.items():
        if key not in known:
            raise StudyError(unknown_name("setting", key, known))
        values = value if isinstance(value, list | tuple) else [value]
        if not values:
            raise StudyError(f"{key}={value!r} has no value: give one, or a list of some")
        for each in values:
            _check_kind(key, each, known[key])
        configurations = [c | {key: v} if key in c else c for c in configurations for v in values]
    return list({canonical(c): c for c in configurations}.values()) if settings else configurations


def settings_of(configurations: Iterable[Configuration]) -> dict[str, list[Any]]:
    """Key -> the values that it takes in configurations, in their order.

    >>> settings_of([{"rate": 0.1, "epochs": 5}, {"rate": 0.01, "epochs": 5}])
    {'rate': [0.1, 0.01], 'epochs': [5]}
    """
    settings: dict[str, dict[str, Any]] = {}
    for configuration in configurations:
        for key, value in configuration.items():
            settings.setdefault(key, {}).setdefault(canonical(value), value)
    return {key: list(values.values()) for key, values in settings.items()}


def _check_kind(key: str, value: Any, known: list[Any]) -> None:
    """Raise an error for a text where all known values are numbers, or the reverse."""
    kinds = {_kind(v) for v in known if v is not None}
    if value is not None and len(kinds) == 1 and _kind(value) not in kinds:
        raise StudyError(f"{key}={value!r} is {_kind(value)}: expected {kinds.pop()}, such as {known[0]!r}")


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    return "a text" if isinstance(value, str) else "a list" if isinstance(value, list | tuple) else "a table"


def _check_each(study: Study, tasks: list[Task], where: str = "") -> None:
    """Raise an error if some configurations cannot be worked on, as far as that can be told before."""
    if study.check is None:
        return
    errors: dict[str, str] = {}
    for task in {task.hash: task for task in tasks}.values():
        try:
            study.check(task.configuration)
        except InscapeError as error:
            errors[task.hash] = f"{_short(task.configuration)}: {error}"
    if errors:
        n = sum(task.hash in errors for task in tasks)
        raise StudyError(
            f"the study {study.name!r} was not started, {n} of its {len(tasks)} configurations cannot be"
            f"{where}: {next(iter(errors.values()))}"
        )


def _short(configuration: Configuration) -> str:
    return ", ".join(f"{k} = {v}" for k, v in configuration.items() if k != "replicate")


def _task(configuration: Configuration, study_seed: int) -> Task:
    for name in ("seed", "replicate_seed"):
        if name in configuration:
            raise StudyError(
                f'the configuration {configuration} has a "{name}": the study derives it; '
                'use "replicate" to repeat'
            )
    replicate = whole_number(configuration.get("replicate", 0), "replicate", 0, StudyError)
    digest = hash_of(configuration)
    seed = hashlib.sha256(canonical([study_seed, digest, replicate]).encode()).digest()
    return Task(
        dict(configuration), digest, int.from_bytes(seed[:4], "big"), replicate_seed(study_seed, replicate)
    )


def hash_of(configuration: Configuration) -> str:
    """The hash of all of a configuration but its replicate.

    >>> hash_of({"rate": 0.1, "replicate": 0}) == hash_of({"replicate": 1, "rate": 0.1})
    True
    """
    rest = {k: v for k, v in configuration.items() if k != "replicate"}
    return hashlib.sha256(canonical(rest).encode()).hexdigest()[:16]


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
