"""How far training has moved the parameters.

What high and low mean: a short way from the initial weights says that training stayed near its start, the
regime in which a network is almost linear in its parameters. When it does not hold: rescaling units changes
the distance and not the function, longer training usually lengthens it, and networks of different size do not
compare.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from inscape.arrays import Floats
from inscape.errors import MeasureError, NotApplicableError
from inscape.measures.measurement import Measurement
from inscape.models import wrap
from inscape.pictures import Drawn
from inscape.provenance import Provenance


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ParameterDistance(Measurement, Drawn):
    """The Frobenius distance of the parameters to an initial state; n is the number of parameters.

    Attributes:
        per_layer: the distance of each parameter tensor.
        layers: the names of the tensors.
        relative: the distance over the norm of the initial parameters.
    """

    measure: ClassVar[str] = "parameter_distance"

    per_layer: Floats
    layers: tuple[str, ...]
    relative: float

    def _draw(self, ax: Any) -> Any:
        """The distance of each tensor."""
        from inscape.drawing.measures import draw_layers

        title = f"distance to the initial state of {self.provenance.model}"
        return draw_layers(self.per_layer, self.layers, ylabel="Frobenius distance", title=title, ax=ax)


def parameter_distance(model: Any, initial_state: Any) -> ParameterDistance:
    """|theta - theta_0|, the Frobenius distance of all parameters together (Li et al. 2025, Example 1).

    Buffers, such as batch-norm statistics, are no parameters and do not count.

    Args:
        model: a torch module.
        initial_state: its `state_dict()` before training, copied then, of tensors or arrays; or a module.

    >>> import copy, torch
    >>> net = torch.nn.Linear(2, 1)
    >>> before = copy.deepcopy(net.state_dict())
    >>> with torch.no_grad():
    ...     _ = net.weight.add_(torch.tensor([[3.0, 4.0]]))
    >>> round(parameter_distance(net, before).value, 5)
    5.0
    """
    import torch

    wrapped = wrap(model)
    module = getattr(wrapped.undecided, "module", None)
    if module is None:
        raise NotApplicableError(f"parameter distance needs a torch module, not {wrapped.name}")
    before = initial_state.state_dict() if hasattr(initial_state, "state_dict") else initial_state
    if not isinstance(before, Mapping):
        raise MeasureError(
            f"initial_state is a {type(initial_state).__name__}: "
            "give a state_dict() that was copied before training"
        )
    names, squares, norm = [], [], 0.0
    for name, parameter in module.named_parameters():
        start = None if before.get(name) is None else torch.as_tensor(before[name])
        if start is None or tuple(start.shape) != tuple(parameter.shape):
            problem = "is missing" if start is None else f"has shape {tuple(start.shape)}"
            raise MeasureError(f"{name} {problem} in initial_state: expected shape {tuple(parameter.shape)}")
        now, then = parameter.detach().cpu().double(), start.detach().cpu().double()
        names.append(name)
        squares.append(float(((now - then) ** 2).sum()))
        norm += float((then**2).sum())
    value = float(np.sqrt(sum(squares)))
    return ParameterDistance(
        value=value,
        n=sum(p.numel() for p in module.parameters()),
        method="exact",
        settings={},
        provenance=Provenance.of(wrapped),
        per_layer=np.sqrt(squares),
        layers=tuple(names),
        relative=value / np.sqrt(norm) if norm else float("nan"),
    )
