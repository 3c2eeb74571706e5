"""Where a result came from: enough to say whether two results are comparable, and to make one again."""

from dataclasses import dataclass
from typing import Any, Self

from inscape.errors import InscapeError
from inscape.models import Model
from inscape.serialising import plain_fields, restored_fields


@dataclass(frozen=True)
class Provenance:
    """The model, the precision in which it was evaluated, the seed of the probes, and our version.

    Attributes:
        model: the model's name.
        fingerprint: a hash of its parameters; equal for equal models.
        structure: "piecewise-affine", "trees" or "black-box".
        dtype: the precision in which it was evaluated.
        seed: of the probes; None where nothing was drawn.
        version: of inscape.
        layout: how points were transposed on their way into the model; None if they were not.
        preprocess: how they were normalised; None if they were not.
        one_by_one: whether the model was given single points, since the rest of a batch matters to it.
        decision: which output decided and which rule made labels of it; None if the model was left to
            its own.

    >>> import inscape
    >>> count = inscape.region_count(lambda x: x[:, 0] > 0, [[-1.0], [1.0]], n_probes=3, random_state=7)
    >>> count.provenance.structure, count.provenance.seed
    ('black-box', 7)
    """

    model: str
    fingerprint: str
    structure: str
    dtype: str
    seed: int | None
    version: str
    layout: str | None = None
    preprocess: dict[str, Any] | None = None
    one_by_one: bool = False
    decision: dict[str, Any] | None = None

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
            one_by_one=model.one_by_one,
            decision=model.decision,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; `from_dict` reads it back."""
        return plain_fields(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The record that `to_dict` wrote."""
        record: Self = restored_fields(cls, data, what="provenance", error=InscapeError)
        return record
