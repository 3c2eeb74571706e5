"""What every measure returns: a number, its error, and how it was made."""

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from inscape.errors import MeasureError
from inscape.provenance import Provenance

SCHEMA = 1
COMPLETE = "complete"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Measurement:
    """A measured number.

    Attributes:
        value: the measure.
        std_error: its standard error; NaN if it has none or shows none.
        interval: the 95 % interval of the value; NaN likewise.
        n: over how many points it is a mean.
        method: how it was computed.
        status: "complete", or what to know before trusting the number.
        settings: the arguments that it depends on.
        provenance: model, precision, seed, version.
    """

    measure: ClassVar[str]

    value: float
    std_error: float = math.nan
    interval: tuple[float, float] = (math.nan, math.nan)
    n: int
    method: str
    status: str = COMPLETE
    settings: dict[str, Any]
    provenance: Provenance

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back."""
        plain = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        return {"schema": SCHEMA, "measure": self.measure} | plain

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The result that `to_dict` wrote."""
        if data.get("schema") != SCHEMA or data.get("measure") != cls.measure:
            raise MeasureError(f"not a {cls.measure} of schema {SCHEMA}: {str(data)[:80]}")
        missing = [f.name for f in fields(cls) if f.name not in data]
        if missing:
            raise MeasureError(f"not a whole {cls.measure}: {', '.join(missing)} missing")
        return cls(**{f.name: _restored(str(f.type), data[f.name]) for f in fields(cls)})

    def __repr__(self) -> str:
        error = "" if math.isnan(self.std_error) else f" +- {self.std_error:.2g}"
        name = self.measure.replace("_", " ")
        return f"<{name} = {self.value:.4g}{error} of {self.provenance.model}, {self.method}, {self.status}>"


def _plain(value: Any) -> Any:
    if isinstance(value, Provenance):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and math.isnan(value) else value


def _restored(kind: str, value: Any) -> Any:
    """A field of the given annotation from its plain form."""
    if value is None and kind.endswith("None"):
        return None
    if "Provenance" in kind:
        return Provenance(**value)
    if "float64" in kind or kind == "Floats":
        return np.array(value, dtype=np.float64)
    if "int64" in kind:
        return np.array(value, dtype=np.int64)
    if "bool_" in kind:
        return np.array(value, dtype=np.bool_)
    if "tuple" in kind:
        return tuple(math.nan if v is None else v for v in value)
    return math.nan if value is None and "float" in kind and "None" not in kind else value
