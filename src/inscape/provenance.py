"""Where a result came from: enough to say whether two results are comparable, and to make one again."""

from dataclasses import asdict, dataclass
from typing import Any

from inscape.models import Model


@dataclass(frozen=True)
class Provenance:
    """The model, the precision in which it was evaluated, the seed of the probes, and our version.

    `layout` and `preprocess` say how points were transposed and normalised on their way into the model; None
    if they were not.
    """

    model: str
    fingerprint: str
    structure: str
    dtype: str
    seed: int | None
    version: str
    layout: str | None = None
    preprocess: dict[str, Any] | None = None

    @classmethod
    def of(cls, model: Model, seed: int | None = None, dtype: str | None = None) -> "Provenance":
        """The record of `model` as it is now; `dtype` if it was not evaluated in its own precision."""
        from inscape import __version__

        return cls(
            model=model.name,
            fingerprint=model.fingerprint(),
            structure=model.structure,
            dtype=dtype or model.dtype.name,
            seed=seed,
            version=__version__,
            layout=model.layout,
            preprocess=model.preprocess,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)
