"""Norms of the weights: spectral and path norms, to compare other measures with.

What high and low mean: both bound how much a network could stretch distances, and appear in bounds of the
generalisation gap. When it does not hold: they are worst cases over all inputs, so off by orders of magnitude
at data, they grow with depth and width, and over trained networks they often go with the gap the wrong way
round (Jiang et al. 2020).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from inscape.arrays import Floats
from inscape.errors import MeasureError, PictureError
from inscape.measures.measurement import Measurement, graph_at
from inscape.models import wrap
from inscape.pictures import Drawn
from inscape.progress import Meter, meter
from inscape.provenance import Provenance


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Norm(Measurement, Drawn):
    """A norm of the weights.

    Attributes:
        per_layer: the norm of each layer, where the value is a product of them, else empty.
        layers: their names.
    """

    measure: ClassVar[str] = "norm"

    per_layer: Floats
    layers: tuple[str, ...]

    def _noun(self) -> str:
        return f"{self.settings['norm']} norm"

    def _draw(self, ax: Any) -> Any:
        """The norm of each layer."""
        from inscape.drawing.measures import draw_layers

        if not self.layers:
            raise PictureError(f"the {self._noun()} is one number for all layers: there is nothing to draw")
        return draw_layers(
            self.per_layer, self.layers, ylabel=self._noun(), title=self.provenance.model, ax=ax
        )


def spectral_norm(model: Any, x: Any, *, progress: bool | Meter | None = None) -> Norm:
    """The product of the operator norms of all layers with weights, batch-norm merged in.

    For a chain of layers and activations of slope at most 1 it bounds the Lipschitz constant; a residual
    network has no such product, and the number is a comparison measure only. Exact for linear maps; for
    convolutions the norm on the size of the points, from scipy's `eigsh` on A'A to 1e-10.

    Args:
        model: anything that `inscape.wrap` takes whose structure is piecewise affine.
        x: points, of which only the shape matters.
        progress: None for a bar after two seconds, False for none; a function gets (layers done, in all).

    >>> import torch
    >>> net = torch.nn.Linear(2, 2)
    >>> with torch.no_grad():
    ...     _ = net.weight.copy_(torch.tensor([[3.0, 0.0], [0.0, -4.0]]))
    >>> spectral_norm(net, torch.zeros(1, 2)).value
    4.0
    """
    from inscape.measures.parameters.operators import operator_norms

    wrapped = wrap(model)
    with meter(progress, "layers") as show, graph_at(wrapped, x, "the spectral norm") as (graph, _):
        by_layer = operator_norms(graph, show)
        norms = np.array([norm for _, norm in by_layer])
        return Norm(
            value=float(norms.prod()),
            n=len(norms),
            method="product of operator norms",
            settings={"norm": "spectral"},
            provenance=Provenance.of(wrapped),
            per_layer=norms,
            layers=tuple(name for name, _ in by_layer),
        )


def path_norm(model: Any, x: Any, *, p: int = 2) -> Norm:
    """(sum over paths from an input to an output of |product of the weights|^p)^(1/p), biases left out.

    Neyshabur et al. 2015 (arXiv 1503.00036). One evaluation of the network with weights |w|^p and inputs 1.
    It does not change when units are rescaled. Activations count as open; max-pooling takes the largest.

    Args:
        model: anything that `inscape.wrap` takes whose structure is piecewise affine.
        x: points, of which only the shape matters.
        p: 1 or 2.

    >>> import torch
    >>> net = torch.nn.Linear(2, 1)
    >>> with torch.no_grad():
    ...     _ = net.weight.copy_(torch.tensor([[3.0, -4.0]]))
    >>> path_norm(net, torch.zeros(1, 2)).value, path_norm(net, torch.zeros(1, 2), p=1).value
    (5.0, 7.0)
    """
    from inscape.measures.parameters.operators import sum_over_paths

    if p not in (1, 2):
        raise MeasureError(f"p={p!r} is not possible: give 1 or 2")
    wrapped = wrap(model)
    with graph_at(wrapped, x, "the path norm") as (graph, _):
        return Norm(
            value=sum_over_paths(graph, p) ** (1 / p),
            n=len(graph.nodes) - 1,
            method="one evaluation",
            settings={"norm": "path", "p": p},
            provenance=Provenance.of(wrapped),
            per_layer=np.empty(0),
            layers=(),
        )
