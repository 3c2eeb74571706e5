"""Sharpness: the curvature of the loss in the direction in which it bends most.

What high and low mean: gradient descent of step size eta is stable only where the top Hessian eigenvalue is
below 2 / eta, and trained networks sit near that edge; flat minima often generalise better. When it does not
hold: rescaling units (one layer times c, the next over c) changes the sharpness at will and leaves
function, regions and generalisation as they are, so it compares runs of one recipe, not arbitrary networks.
It is the curvature of this loss on these data, in eval mode, and that of cross-entropy goes to zero as
scores grow.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from inscape.arguments import positive_number, renamed, whole_number
from inscape.arrays import Array, Floats
from inscape.budget import BUDGET, as_budget, check_budget, timed
from inscape.errors import DataError, MeasureError, NotApplicableError, unknown_name
from inscape.measures.accuracy import check_columns, class_columns
from inscape.measures.measurement import (
    Measurement,
    TargetSource,
    as_targets,
    check_weights,
    measuring,
    points_of,
)
from inscape.models import Model, wrap
from inscape.pictures import Drawn
from inscape.probes.source import for_model
from inscape.progress import Meter, meter
from inscape.provenance import Provenance
from inscape.seeding import RandomState, as_seed
from inscape.status import COMPLETE, Status

LOSSES = ("cross_entropy", "mse")
METHODS = ("auto", "dense", "lanczos")
PRECISIONS = ("float64", "float32")
TIMED_POINTS = 64
"""Of which a product is timed, to foresee that of all."""
FORESEEN_FROM_NUMBERS = 2**22
"""Parameters times points up to which a product takes no time that is worth foreseeing."""
PRODUCTS_PER_EIGENVALUE = 30
"""Of all points in float64, or as much work in float32, as an iteration typically takes."""
DENSE_UP_TO_PARAMETERS = 500
"""Parameters up to which the whole Hessian is cheaper than an iteration."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Sharpness(Measurement, Drawn):
    """The top eigenvalues of the Hessian of the loss; the value is the largest.

    Attributes:
        eigenvalues: the largest eigenvalues, descending, (k,).
        residuals: |H v - lambda v| of each for its unit eigenvector v, (k,).
        n_products: how many products with the Hessian of all points were needed, in either precision.
        n_parameters: the size of the Hessian.
    """

    measure: ClassVar[str] = "sharpness"

    eigenvalues: Floats
    residuals: Floats
    n_products: int
    n_parameters: int

    @property
    def converged(self) -> bool:
        """Whether every residual is within the tolerance."""
        return self.status.kind == "complete"

    def _draw(self, ax: Any) -> Any:
        """The eigenvalues."""
        from inscape.drawing.measures import draw_layers

        names = [str(i + 1) for i in range(len(self.eigenvalues))]
        title = f"top Hessian eigenvalues of {self.provenance.model}"
        ax = draw_layers(self.eigenvalues, names, ylabel="eigenvalue", title=title, ax=ax)
        ax.set_xlabel("rank")
        return ax


@renamed(tol="tolerance")
def sharpness(
    model: Any,
    x: Any,
    y: npt.ArrayLike | None = None,
    *,
    loss: str | Callable[[Any, Any], Any] = "cross_entropy",
    k: int = 1,
    tolerance: float = 1e-6,
    method: str = "auto",
    max_products: int = 1000,
    batch_size: int | None = None,
    precision: str = "float64",
    random_state: RandomState = None,
    progress: bool | Meter | None = None,
    budget: float | None = BUDGET,
) -> Sharpness:
    """lambda_max of the Hessian of the mean loss over the data, in all trainable parameters.

    H v by two reverse differentiations; the largest eigenvalues from scipy's `eigsh` (implicitly restarted
    Lanczos), or from the whole Hessian if there are few parameters. Values and residuals come from products
    in float64; the iteration starts from approximate eigenvectors that cheaper products in float32 give. A
    product costs about three evaluations with gradient. Batch-norm and dropout are in eval mode.

    Args:
        model: a torch module.
        x: the points, as for `inscape.sample_probes`.
        y: their classes or, for "mse", targets (n,) or (n, c); classes become 0-1 targets there.
        loss: "cross_entropy", the mean over points (one score: logistic loss); "mse", 1 / (2 n) times the
            sum of squared errors; or a function of (scores, y) that returns the mean loss of a batch.
        k: how many of the largest eigenvalues.
        tolerance: the residual |H v - lambda v| at which an eigenvalue has converged, relative to the
            largest.
        method: "auto", "dense" or "lanczos".
        max_products: the most products before giving up, which the status then says.
        batch_size: points per product; as many as fit into memory if None.
        precision: "float64" or, twice as fast with residuals of some 1e-4, "float32".
        random_state: of the iteration's start.
        progress: None for a bar after two seconds, False for none; a function gets
            (products made, products at most).
        budget: seconds that it may take as a product on a few points foresees it, else a `BudgetError` says
            how long it would; None for no limit.

    Least squares, f(x) = w x: the Hessian of 1 / (2 n) sum (w x - y)^2 is the mean of x^2.

    >>> import torch
    >>> net = torch.nn.Linear(1, 1, bias=False)
    >>> round(sharpness(net, [[1.0], [3.0]], [0.0, 0.0], loss="mse").value, 6)
    5.0
    """
    import torch

    from inscape.measures.hessian import LossHessian

    _check(loss, method, precision)
    tolerance = positive_number(tolerance, "tolerance", MeasureError)
    wrapped, seed = wrap(model), as_seed(random_state)
    # cross-entropy is that of the scores that decide; other losses are of what the network returns
    module = getattr(wrapped if loss == "cross_entropy" else wrapped.undecided, "module", None)
    if not isinstance(module, torch.nn.Module):
        raise NotApplicableError(f"sharpness needs the parameters of a torch module, not {wrapped.name}")
    if batch_size is not None:
        batch_size = whole_number(batch_size, "batch_size", 1, MeasureError, ", or None")
    check_weights(wrapped)
    points, targets = _points_and_targets(wrapped, x, y, loss)
    wanted = _Wanted(
        k=whole_number(k, "k", 1, MeasureError),
        tolerance=tolerance,
        method=method,
        max_products=max_products,
        precision=precision,
        seed=seed,
        limit=as_budget(budget),
    )
    with measuring(wrapped), meter(progress, "Hessian products") as show:
        function = _loss_of(wrapped, points, targets, loss)

        def hessian_in(dtype: Any, every: int = 1) -> Any:
            x, y = points[::every], targets[::every]
            return LossHessian(module, x, y, function, dtype=dtype, batch_size=batch_size)

        values, residuals, hessian, is_dense = _top_eigenvalues(hessian_in, len(points), wanted, show)
    return Sharpness(
        value=float(values[0]),
        n=len(points),
        method="dense" if is_dense else "lanczos",
        status=_status(values, residuals, tolerance, hessian.n_products),
        settings={"loss": _name_of(loss), "tolerance": tolerance, "precision": precision},
        provenance=Provenance.of(wrapped, seed, precision),
        eigenvalues=values,
        residuals=residuals,
        n_products=hessian.n_products,
        n_parameters=hessian.size,
    )


def _name_of(loss: str | Callable[[Any, Any], Any]) -> str:
    return loss if isinstance(loss, str) else str(getattr(loss, "__name__", "function"))


def _status(values: Floats, residuals: Floats, tolerance: float, n_products: int) -> Status:
    """Whether every residual is within the tolerance."""
    scale = max(float(np.abs(values).max()), 1e-300)
    has_converged = bool((residuals <= max(2 * tolerance, 1e-12) * scale).all())
    return COMPLETE if has_converged else _not_converged(n_products)


class _Wanted(NamedTuple):
    """Which eigenvalues are asked for, and at what cost; `sharpness` says what the fields are."""

    k: int
    tolerance: float
    method: str
    max_products: int
    precision: str
    seed: int
    limit: float


def _top_eigenvalues(
    hessian_in: Callable[..., Any], n: int, wanted: _Wanted, show: Meter
) -> tuple[Floats, Floats, Any, bool]:
    """The largest eigenvalues, their residuals, the Hessian of the loss on n points, and if it was built."""
    import torch

    from inscape.measures.hessian import dense, lanczos

    k = wanted.k
    hessian = hessian_in(torch.float64 if wanted.precision == "float64" else torch.float32)
    if k > hessian.size:
        raise MeasureError(f"k={k} is more than the {hessian.size} parameters: give at most {hessian.size}")
    is_dense = wanted.method == "dense" or (
        wanted.method == "auto" and hessian.size <= max(DENSE_UP_TO_PARAMETERS, k + 1)
    )
    if hessian.size * n > FORESEEN_FROM_NUMBERS and wanted.limit < np.inf:
        few = hessian_in(hessian.dtype, -(-n // TIMED_POINTS))
        n_products = hessian.size if is_dense else PRODUCTS_PER_EIGENVALUE * k
        _check_seconds(few, n, n_products, wanted.limit)
    if is_dense:
        return *dense(hessian, k, show), hessian, True
    start = np.random.default_rng(wanted.seed).standard_normal(hessian.size)
    if wanted.precision == "float64":
        start = _rough_start(hessian_in, hessian, k, wanted.tolerance, start, show)
    values, residuals = lanczos(hessian, k, wanted.tolerance, wanted.max_products, start, show)
    return values, residuals, hessian, False


def _rough_start(
    hessian_in: Callable[..., Any], hessian: Any, k: int, tolerance: float, start: Floats, show: Meter
) -> Floats:
    """Where the iteration in float64 starts: approximate eigenvectors by products in float32."""
    import torch

    from inscape.measures.hessian import START_ON_SOME_FROM_POINTS, rough_start

    every = (8, 1) if len(hessian.x) >= START_ON_SOME_FROM_POINTS else (1,)
    rough = [hessian_in(torch.float32, e) for e in every]
    start = rough_start(rough, k, tolerance, start, show)
    hessian.n_products = sum(h.n_products for h in rough if len(h.x) == len(hessian.x))
    return start


def _check_seconds(few: Any, n: int, n_products: int, limit: float) -> None:
    """Refuse what would take longer than the limit on n points, by one product with the Hessian of a few."""
    seconds = timed(lambda: few.product(np.ones(few.size))) * n / len(few.x) * n_products
    work = f"sharpness on {n:,} points, some {n_products:,} products with the Hessian,"
    check_budget(work, seconds, limit, "give fewer points, or precision='float32'")


def _check(loss: Any, method: str, precision: str) -> None:
    if not callable(loss) and loss not in LOSSES:
        raise MeasureError(unknown_name("loss", loss, LOSSES))
    if method not in METHODS:
        raise MeasureError(unknown_name("method", method, METHODS))
    if precision not in PRECISIONS:
        raise MeasureError(unknown_name("precision", precision, PRECISIONS))


def _points_and_targets(model: Model, x: Any, y: Any, loss: Any) -> tuple[Floats, Array]:
    source = as_targets(for_model(model, x), y)
    if isinstance(source, TargetSource):
        truth = source.targets
    elif source.has_labels:
        known = source.everything()[1]
        assert known is not None
        truth = known
    else:
        raise NotApplicableError("sharpness needs y, the classes or targets of the loss")
    points = points_of(model, source)
    if callable(loss) and np.shape(y) == (len(points), 1):
        truth = truth[:, None]  # a function gets y in the shape it was given
    if loss == "cross_entropy" or truth.dtype.kind in "US":
        return points, class_columns(model, truth)
    if truth.dtype.kind not in "iubf":
        raise DataError(f"y holds {truth.dtype}: give classes or numbers")
    if loss == "mse" and not np.isfinite(truth).all():
        raise DataError("y has NaN or infinite entries: remove those points")
    return points, truth.astype(np.int64 if truth.dtype.kind in "iub" else np.float64)


def _loss_of(model: Model, x: Floats, y: Array, loss: Any) -> Callable[[Any, Any], Any]:
    from inscape.measures.hessian import cross_entropy, half_square

    if loss == "mse":
        return half_square
    if loss != "cross_entropy":
        return loss  # type: ignore[no-any-return]
    check_columns(y, model.scores(x[:1]).shape[1], model.name)
    return cross_entropy


def _not_converged(n_products: int) -> Status:
    after = f"after {n_products} products: raise max_products"
    return Status("not_converged", after, text=f"not converged {after}")
