"""Several models on one probe: how far each two of them differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np

from inscape.arrays import Floats
from inscape.compare.comparison import Comparison
from inscape.errors import ModelError, PartitionError
from inscape.models import wrap
from inscape.pictures import Drawn
from inscape.probes import Probe
from inscape.provenance import Provenance
from inscape.serialising import SCHEMA, LeftOut, check_schema, plain_fields, restored_fields
from inscape.status import Status

KIND = "comparison of several models"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ComparisonMatrix(Drawn):
    """Several models on one probe, two by two.

    Attributes:
        names: of the models, (m,).
        disagreement: the share of the probe on which the labels of each two differ, (m, m).
        iou: mean intersection over union of each two, (m, m).
        probe: where we looked.
        is_exact: whether all shares are exact.
        status: that of the pair of which least is known.
        provenance: of each model.
        comparisons: the comparisons themselves, by the places of both models, i < j; left out of files.

    >>> import inscape
    >>> above = lambda t: lambda x: (x[:, 0] > t).astype(int)
    >>> models = {"a": above(0.2), "b": above(0.5), "c": above(0.6)}
    >>> m = inscape.compare(models, inscape.Segment([0.0], [1.0]))
    >>> m.disagreement.round(2).tolist()
    [[0.0, 0.3, 0.4], [0.3, 0.0, 0.1], [0.4, 0.1, 0.0]]
    """

    _left_out: ClassVar[tuple[str, ...]] = ("probe", "comparisons")

    names: tuple[str, ...]
    disagreement: Floats
    iou: Floats
    probe: Probe
    is_exact: bool
    status: Status
    provenance: tuple[Provenance, ...]
    comparisons: dict[tuple[int, int], Comparison]

    @classmethod
    def of(cls, names: tuple[str, ...], pairs: dict[tuple[int, int], Comparison]) -> Self:
        """From the comparisons of all pairs of models, on one probe."""
        m = len(names)
        differ, overlap = np.zeros((m, m)), np.eye(m)
        provenance: dict[int, Provenance] = {}
        for (i, j), d in pairs.items():
            differ[i, j] = differ[j, i] = d.disagreement
            overlap[i, j] = overlap[j, i] = d.iou
            provenance[i], provenance[j] = d.provenance
        every = list(pairs.values())
        worst = min(every, key=lambda d: (d.is_exact, d.status.kind in ("complete", "converged")))
        return cls(
            names=names,
            disagreement=differ,
            iou=overlap,
            probe=every[0].probe,
            is_exact=all(d.is_exact for d in every),
            status=worst.status,
            provenance=tuple(provenance[i] for i in range(m)),
            comparisons=pairs,
        )

    def between(self, a: str, b: str) -> Comparison:
        """The comparison of two models, by their names, in the order in which the models were given."""
        for name in (a, b):
            if name not in self.names:
                raise PartitionError(f"no model is called {name!r}: there are {', '.join(self.names)}")
        i, j = sorted((self.names.index(a), self.names.index(b)))
        if i == j:
            raise PartitionError(f"{a!r} was not compared with itself")
        return self.comparisons[i, j]

    def to_frame(self) -> Any:
        """A pandas table of disagreements, a row and a column for each model."""
        import pandas as pd

        return pd.DataFrame(self.disagreement, index=list(self.names), columns=list(self.names))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, without the regions of the pairs; `from_dict` reads it back."""
        about = {"schema": SCHEMA, "kind": KIND, "probe_data": self.probe.to_dict()}
        return about | plain_fields(self, without=self._left_out)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The matrix that `to_dict` wrote."""
        check_schema(data, "kind", KIND, what=KIND, error=PartitionError)
        matrix: Self = restored_fields(
            cls,
            data,
            what=KIND,
            error=PartitionError,
            probe=Probe.from_dict(data["probe_data"]),
            comparisons=LeftOut("comparisons", PartitionError),
        )
        return matrix

    def _draw(self, ax: Any) -> Any:
        """The shares of disagreement as a table of colours."""
        from inscape.drawing.pairs import draw_matrix

        return draw_matrix(
            100 * self.disagreement, self.names, title="labels differ on, %", text="{:.3g}", ax=ax
        )

    def __repr__(self) -> str:
        above = self.disagreement[np.triu_indices(len(self.names), 1)]
        how = "exactly" if self.is_exact else "not exactly"
        share = f"differ on {100 * above.min():.3g} to {100 * above.max():.3g} %"
        return f"<{len(self.names)} models {share} of {self.probe!r}, {how}, {self.status.heading}>"


def named_models(models: Any) -> dict[str, Any]:
    """Name -> wrapped model, of a list or a dictionary of at least two; equal names are numbered."""
    if isinstance(models, Mapping):
        named = {str(name): wrap(model) for name, model in models.items()}
    else:
        wrapped = [wrap(model) for model in models]
        names = [m.name for m in wrapped]
        once = [n if names.count(n) == 1 else f"{n} {i + 1}" for i, n in enumerate(names)]
        named = dict(zip(once, wrapped, strict=True))
    if len(named) < 2:
        raise ModelError(f"there is nothing to compare among {len(named)} models: give at least two")
    return named


def all_pairs(n: int) -> list[tuple[int, int]]:
    """The pairs i < j of n models.

    >>> all_pairs(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return list(combinations(range(n), 2))
