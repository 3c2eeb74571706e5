"""`measure`: several measures of one model as one tidy table."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.errors import InscapeError, unknown_name
from inscape.measures.accuracy import correct
from inscape.measures.region_count import mean_with_error, region_count
from inscape.models import Model, wrap
from inscape.probes.source import PointSource
from inscape.progress import Meter
from inscape.seeding import RandomState, as_seed

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class MeasureTable:
    """One row per measure: measure, value, std_error, low, high, n, method, status, note, settings, seconds.

    A measure that does not apply to the model is a row whose value is None and whose note says why.
    """

    model: str
    rows: tuple[Row, ...]

    def to_frame(self) -> Any:
        """A pandas table."""
        import pandas as pd

        return pd.DataFrame(list(self.rows))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"schema": 1, "model": self.model, "rows": [dict(row) for row in self.rows]}

    def __getitem__(self, measure: str) -> Row:
        return next(row for row in self.rows if row["measure"] == measure)

    def __repr__(self) -> str:
        parts = [
            f"{r['measure']} {r['value']:.4g}" if r["value"] is not None else r["measure"] for r in self.rows
        ]
        return f"<measures of {self.model}: {', '.join(parts)}>"


def measure(
    model: Any,
    x: Any,
    y: npt.ArrayLike | None = None,
    *,
    measures: Sequence[str] | Mapping[str, Mapping[str, Any]] | None = None,
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
) -> MeasureTable:
    """A tidy table of measures of one model.

    Args:
        model: anything that `inscape.wrap` takes.
        x: data, as for `inscape.sample_probes`.
        y: the classes of x, if x does not carry them.
        measures: names ("region_count", "accuracy"), or name -> settings of that measure's function;
            by default the region count, and the accuracy if classes are known.
        random_state: a seed, a generator, or None; every measure starts from the same seed.
        progress: as for `inscape.region_count`.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(50, 2))
    >>> sign = lambda x: (x[:, 0] > 0).astype(int)
    >>> table = measure(sign, x, sign(x), measures={"region_count": {"n_probes": 20}, "accuracy": {}})
    >>> [(row["measure"], row["n"]) for row in table.rows]
    [('region_count', 20), ('accuracy', 50)]
    """
    wrapped, seed = wrap(model), as_seed(random_state)
    source = PointSource(x, y)
    if measures is None:
        measures = ("region_count", "accuracy") if source.has_labels else ("region_count",)
    settings = dict(measures) if isinstance(measures, Mapping) else {name: {} for name in measures}
    for name in settings:
        if name not in MEASURES:
            raise InscapeError(unknown_name("measure", name, MEASURES))
    rows = []
    for name, options in settings.items():
        start = time.perf_counter()
        row = MEASURES[name](wrapped, source, seed, progress, **options)
        rows.append({"measure": name, **row, "seconds": time.perf_counter() - start})
    return MeasureTable(wrapped.name, tuple(rows))


def _region_count(
    model: Model, source: PointSource, seed: int, progress: bool | Meter | None, **options: Any
) -> Row:
    result = region_count(model, source, random_state=seed, progress=progress, **options)
    off = result.classes_off_data
    return _row(
        (result.mean, result.std_error, *result.interval),
        n=len(result.counts),
        method=result.method,
        status=result.status,
        note=f"classes {', '.join(map(model.class_name, off))} appear only off the data" if off else "",
        settings=result.to_dict()["settings"] | {"seed": seed, "n_evaluations": result.n_evaluations},
    )


def _accuracy(model: Model, source: PointSource, seed: int, progress: bool | Meter | None) -> Row:
    x, y = source.everything()
    if y is None:
        return _row((None,) * 4, status="not applicable", note="needs y, the true classes")
    mean, error, interval = mean_with_error(correct(model, x, y).astype(np.float64))
    return _row((mean, error, *interval), n=len(y), method="count", status="complete")


def _row(
    numbers: tuple[float | None, ...],
    *,
    n: int = 0,
    method: str = "",
    status: str,
    note: str = "",
    settings: Row | None = None,
) -> Row:
    names = ("value", "std_error", "low", "high")
    plain = {k: None if v is None or np.isnan(v) else float(v) for k, v in zip(names, numbers, strict=True)}
    return plain | {"n": n, "method": method, "status": status, "note": note, "settings": settings or {}}


MEASURES: dict[str, Callable[..., Row]] = {"region_count": _region_count, "accuracy": _accuracy}
