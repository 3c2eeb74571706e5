"""The output margin: by how much the right class wins.

What high and low mean: a positive margin is a right prediction, a large one is far from being a wrong one in
units of the scores. When it does not hold: scaling the scores scales the margin, though no prediction
changes; raw margins of different networks, or of one network over training, do not compare. The normalised
forms do: "gradient" is a distance in the input space to first order, "spectral" divides by what the weights
could stretch at most.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from inscape.arrays import Array, Floats, Ints, Streamed
from inscape.errors import MeasureError, NotApplicableError, unknown_name
from inscape.measures.accuracy import check_columns, class_columns
from inscape.measures.measurement import Measurement, as_column, labelled_points, mean_with_error, measuring
from inscape.models import Model, wrap
from inscape.pictures import Drawn
from inscape.progress import Meter, meter
from inscape.provenance import Provenance

NORMALISE = ("none", "gradient", "spectral")
POINTS_AT_ONCE = 64


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Margin(Measurement, Drawn):
    """The mean output margin.

    Attributes:
        margins: the margin of each point, (n,).
    """

    measure: ClassVar[str] = "margin"

    margins: Floats

    def _draw(self, ax: Any) -> Any:
        """How the margins are distributed."""
        from inscape.drawing.measures import draw_values

        title = f"margins of {self.provenance.model}"
        return draw_values(self.margins, self.value, xlabel="margin", title=title, ax=ax)


def margin(
    model: Any,
    x: Any,
    y: npt.ArrayLike | None = None,
    *,
    normalise: str = "none",
    progress: bool | Meter | None = None,
) -> Margin:
    """E [ f_y(x) - max_{j != y} f_j(x) ], the output margin (Li et al. 2025, arXiv 2505.11370, Example 1).

    A single score s is that of a binary model: its margin is s if y is 1, -s if y is 0.

    Args:
        model: anything that `inscape.wrap` takes and that has scores.
        x: the points, as for `inscape.sample_probes`.
        y: their classes, if x does not carry them.
        normalise: "none"; "gradient" for min_j (f_y - f_j) / |grad (f_y - f_j)|, the distance to the nearest
            boundary of the linearised network, which a linear model has exactly (networks that torch can
            differentiate); "spectral" for the margin over the product of the operator norms of all layers, as
            in Bartlett et al. 2017 without its correction for 2,1-norms (piecewise-affine networks).
        progress: None for a bar after two seconds, False for none; a function gets (points done, n).

    >>> import numpy as np
    >>> scores = lambda x: np.concatenate([x, -x], axis=1)
    >>> margin(scores, [[1.0], [-3.0]], [0, 0]).margins.tolist()
    [2.0, -6.0]
    """
    if normalise not in NORMALISE:
        raise MeasureError(unknown_name("normalise", normalise, NORMALISE))
    wrapped = wrap(model)
    points: Any
    if isinstance(x, Streamed) and y is not None and normalise == "none":
        points, truth = x, as_column(y)
    else:
        points, truth = labelled_points(wrapped, x, y, "margin")
    columns = class_columns(wrapped, truth)
    with measuring(wrapped):
        if normalise == "gradient":
            margins = _distances(wrapped, points, columns, progress)
        else:
            scores = _scores(wrapped, points, progress)
            margins = differences(scores, columns, wrapped.name).min(axis=1)
        if normalise == "spectral":
            from inscape.measures.parameters.norms import spectral_norm

            margins = margins / spectral_norm(wrapped, points, progress=progress).value
        value, error, interval = mean_with_error(margins)
        return Margin(
            value=value,
            std_error=error,
            interval=interval,
            n=len(margins),
            method="scores",
            settings={"normalise": normalise},
            provenance=Provenance.of(wrapped),
            margins=margins,
        )


def _scores(model: Model, x: Any, progress: bool | Meter | None) -> Array:
    scores = model.predict(x, with_scores=True, progress=progress).scores
    if scores is None:
        raise NotApplicableError(f"margin needs a score per class, and {model.name} has labels only")
    return scores


def differences(scores: Array, columns: Ints, name: str) -> Floats:
    """f_y - f_j for each point and class j, infinite for j = y, (n, c); of one score, (n, 1)."""
    f = scores.astype(np.float64)
    check_columns(columns, f.shape[1], name)
    if f.shape[1] == 1:
        return f * (2 * columns[:, None] - 1)
    rows = np.arange(len(f))
    gaps = f[rows, columns][:, None] - f
    gaps[rows, columns] = np.inf
    return gaps


def _distances(model: Model, x: Floats, columns: Ints, progress: bool | Meter | None) -> Floats:
    import torch

    from inscape.measures.jacobian.reverse import differentiable_scores, jacobian

    scores = differentiable_scores(model, x.shape[1:], "a margin over gradients")
    distances = []
    with meter(progress, "margins") as show:
        for i in range(0, len(x), POINTS_AT_ONCE):
            points = torch.from_numpy(x[i : i + POINTS_AT_ONCE]).requires_grad_()
            values = scores(points)
            j, c = jacobian(values, points).numpy(), columns[i : i + POINTS_AT_ONCE]
            gaps = differences(values.detach().numpy(), c, model.name)
            slopes = j if j.shape[1] == 1 else j[np.arange(len(c)), c][:, None] - j
            norms = np.linalg.norm(slopes, axis=2)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = np.where(np.isinf(gaps), np.inf, gaps / norms)
            distances.append(np.nanmin(np.where(np.isnan(ratios), 0.0, ratios), axis=1))
            show(min(i + POINTS_AT_ONCE, len(x)), len(x))
    return np.concatenate(distances)
