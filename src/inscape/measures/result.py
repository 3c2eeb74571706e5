"""What every measure returns: a number, its error, and how it was made."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from inscape.errors import MeasureError
from inscape.provenance import Provenance
from inscape.serialising import SCHEMA, check_schema, plain_fields, restored_fields
from inscape.status import COMPLETE, Status


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
    status: Status = COMPLETE
    settings: dict[str, Any]
    provenance: Provenance

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back."""
        return {"schema": SCHEMA, "measure": self.measure} | plain_fields(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The result that `to_dict` wrote."""
        check_schema(data, "measure", cls.measure, what=cls.measure, error=MeasureError)
        result: Self = restored_fields(cls, data, what=cls.measure, error=MeasureError)
        return result

    def __repr__(self) -> str:
        error = "" if math.isnan(self.std_error) else f" +- {self.std_error:.2g}"
        value = f"{self.measure.replace('_', ' ')} = {self.value:.4g}{error}"
        return f"<{value} of {self.provenance.model}, {self.method}, {self.status.heading}>"
