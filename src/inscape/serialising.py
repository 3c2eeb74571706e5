"""Results as plain JSON and back, by the types of their fields: no result has rules of its own for that.

A number that is NaN is None in JSON. A `Status` is its text, with its kind and detail beside it. What is left
out of a file since it would be large is `LeftOut` in a result that is read back: it says so when it is used.
"""

import math
import types
from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, ClassVar, NoReturn, Self, Union, get_args, get_origin, get_type_hints

import numpy as np

from inscape.errors import InscapeError
from inscape.status import Status

SCHEMA = 1
"""Of all results: goes up when what is written can no longer be read as before."""


class LeftOut:
    """Something that a result had when it was written, and that was left out of the file."""

    def __init__(
        self,
        name: str,
        error: type[InscapeError],
        *,
        length: int | None = None,
        remedy: str = "compute it again",
    ) -> None:
        self._name, self._error, self._length, self._remedy = name, error, length, remedy

    def __getattr__(self, attribute: str) -> NoReturn:
        """An error that says what is missing."""
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        self._refuse()

    def __getitem__(self, key: Any) -> NoReturn:
        self._refuse()

    def __iter__(self) -> NoReturn:
        self._refuse()

    def __len__(self) -> int:
        """How long it was, if that was written."""
        return self._refuse() if self._length is None else self._length

    def _refuse(self) -> NoReturn:
        raise self._error(
            f"{self._name.lstrip('_')} was left out when this result was written", remedy=self._remedy
        )


class Written:
    """A dataclass whose fields are written beside the name of what was measured.

    Attributes:
        measure: this name.
    """

    measure: ClassVar[str]
    _error: ClassVar[type[InscapeError]]
    _title: ClassVar[str] = ""
    """What an error calls it, if not by the name."""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back."""
        return {"schema": SCHEMA, "measure": self.measure} | plain_fields(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The result that `to_dict` wrote."""
        what = cls._title or cls.measure
        check_schema(data, "measure", cls.measure, what=what, error=cls._error)
        result: Self = restored_fields(cls, data, what=what, error=cls._error)
        return result


class OfKind:
    """A dataclass of a family, each of which is written beside the name of its class.

    The family is the class that has this one as its base: its `from_dict` reads all of them.
    """

    _error: ClassVar[type[InscapeError]]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back."""
        return {"schema": SCHEMA, "kind": type(self).__name__.lower()} | plain_fields(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """What `to_dict` wrote: of any kind if it is read by the family, else of this one."""
        members = cls.__subclasses__() if OfKind in cls.__bases__ else [cls]
        kinds = {c.__name__.lower(): c for c in members}
        kind = data.get("kind") if isinstance(data, dict) else None
        if kind not in kinds or data.get("schema") != SCHEMA:
            raise cls._error(f"not a {' or '.join(sorted(kinds))} of schema {SCHEMA}: {str(data)[:80]}")
        member: Self = restored_fields(kinds[kind], data, what=kind, error=cls._error)
        return member


def plain(value: Any) -> Any:
    """A value as JSON has it: numbers, texts, None, lists and dictionaries.

    >>> plain((np.float64(0.5), math.nan, np.arange(2)))
    [0.5, None, [0, 1]]
    """
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, Mapping):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, str):
        return str(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def plain_fields(record: Any, *, without: Collection[str] = ()) -> dict[str, Any]:
    """The fields of a dataclass as JSON has them."""
    written: dict[str, Any] = {}
    for field in fields(record):
        if field.name not in without:
            value = getattr(record, field.name)
            written[field.name] = plain(value)
            if isinstance(value, Status):
                written |= {f"{field.name}_kind": value.kind, f"{field.name}_detail": value.detail}
    return written


def restored(kind: Any, value: Any) -> Any:
    """A value of the annotated type from what `plain` made of it.

    >>> restored(tuple[float, ...], [1, None])
    (1.0, nan)
    >>> restored(np.ndarray[Any, np.dtype[np.int64]] | None, [3]).dtype
    dtype('int64')
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        others = [k for k in inner if k is not type(None)]
        return restored(others[0], value) if len(others) == 1 else value
    if kind is float:
        return math.nan if value is None else float(value)
    if origin is np.ndarray:
        (number,) = get_args(inner[1])
        return np.array(value, dtype=None if number is Any else number)
    if origin is tuple:
        each = (inner[0],) * len(value) if inner[-1] is Ellipsis else inner
        return tuple(restored(k, v) for k, v in zip(each, value, strict=True))
    if origin is list:
        return [restored(inner[0], v) for v in value]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: restored(inner[1], v) for key, v in value.items()}
    if hasattr(kind, "from_dict"):
        return kind.from_dict(value)
    if hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        return kind(**{name: restored(hints[name], value[name]) for name in kind._fields})
    return value


def restored_fields(
    cls: Any,
    data: Mapping[str, Any],
    *,
    what: str,
    error: type[InscapeError],
    left_out: Collection[str] = (),
    remedy: str = "compute it again",
    **given: Any,
) -> Any:
    """The dataclass of which `plain_fields` wrote `data`.

    Args:
        cls: the dataclass.
        data: what was written.
        what: what the result is called in an error.
        error: the kind of error for data that are not whole.
        left_out: fields that were not written, and have no default.
        remedy: what to do for those who want them.
        given: fields that are known otherwise.
    """
    unknown = {
        f.name: LeftOut(f.name, error, remedy=remedy)
        for f in fields(cls)
        if f.name in left_out and not _has_default(f)
    }
    known = unknown | given
    wanted = [f for f in fields(cls) if f.name not in known]
    missing = [f.name for f in wanted if f.name not in data and not _has_default(f)]
    if missing:
        raise error(f"not a whole {what}: {', '.join(missing)} missing")
    return cls(**known, **{f.name: _field(f, data) for f in wanted if f.name in data})


def check_schema(
    data: Any, key: str | None = None, name: str = "", *, what: str, error: type[InscapeError]
) -> None:
    """Raise an error unless data have our schema, and say under `key`, if any, that they are `name`."""
    is_ours = isinstance(data, Mapping) and data.get("schema") == SCHEMA
    if not is_ours or (key is not None and data.get(key) != name):
        raise error(f"not a {what} of schema {SCHEMA}: {str(data)[:80]}")


def _has_default(field: "Field[Any]") -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _field(field: "Field[Any]", data: Mapping[str, Any]) -> Any:
    value = data[field.name]
    if field.type is Status:
        return Status.read(value, data.get(f"{field.name}_kind"), data.get(f"{field.name}_detail"))
    return restored(field.type, value)
