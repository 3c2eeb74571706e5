"""Where a result came from: enough to say whether two results are comparable, and to make one again."""

from dataclasses import asdict, dataclass
from typing import Any

from inscape.models import Model


@dataclass(frozen=True)
class Provenance:
    """The model, the precision in which it was evaluated, the seed of the probes, and our version."""

    model: str
    fingerprint: str
    structure: str
    dtype: str
    seed: int | None
    version: str

    @classmethod
    def of(cls, model: Model, seed: int | None = None, dtype: str | None = None) -> "Provenance":
        """The record of `model` as it is now; `dtype` if it was not evaluated in its own precision."""
        from inscape import __version__

        return cls(
            model.name, model.fingerprint(), model.structure, dtype or model.dtype.name, seed, __version__
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)
