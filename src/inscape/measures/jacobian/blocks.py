"""What a pass over points and perturbed networks hands to the measures."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inscape.arrays import Ints
from inscape.measures.jacobian.affine_prefix import PrefixedNetwork
from inscape.measures.jacobian.forward import State
from inscape.measures.jacobian.perturbation import Draws
from inscape.measures.jacobian.units import Layer
from inscape.memory import MEMORY

DTYPES = {"float64": torch.float64, "float32": torch.float32}


@dataclass(eq=False)
class Block:
    """Some points, each in a perturbed network, and what is known of its gradients there.

    Attributes:
        points: the number of the point of each row, (n,).
        draws: the number of its perturbed network, (n,).
        start: the prefix's value there, from which the tail can be evaluated again.
        network: the perturbed network.
        noise: what was added to the biases, per layer (n, *shape).
        state: the evaluation.
        norms: per layer the norm of each unit's gradient, (n, units).
        spectra: per layer the singular values of the Jacobian, (n, rank at most); only if asked for.
        output: the gradients of the scores in r orthonormal coordinates, (n, c, r).
        good: per layer whether each unit is good, (n, units); only if asked for.
    """

    points: Ints
    draws: Ints
    start: Tensor
    network: PrefixedNetwork
    noise: list[Tensor] | None
    state: State
    norms: list[Tensor] = field(default_factory=list)
    spectra: list[Tensor] = field(default_factory=list)
    output: Tensor = field(default_factory=lambda: torch.empty(0))
    good: list[Tensor] = field(default_factory=list)


class Consumer(ABC):
    """A measure that looks at every block once."""

    draws: Draws
    wants_spectra: bool = False
    wants_good: bool = False

    @abstractmethod
    def begin(self, layers: tuple[Layer, ...], n_points: int) -> None:
        """Make room, before the first block."""

    @abstractmethod
    def see(self, block: Block) -> None:
        """Take what is needed from a block."""


@dataclass(frozen=True, eq=False)
class Settings:
    """How a pass computes.

    Attributes:
        precision: "float64" or "float32".
        memory: bytes that the tangents of a network that is no perceptron may fill.
        n_directions: None for exact gradients; else how many random directions estimate their norms.
        seed: of those directions.
        directions: orthonormal directions (k, ...) to which gradients are projected; None for all.
    """

    precision: str = "float64"
    memory: int = MEMORY
    n_directions: int | None = None
    seed: int = 0
    directions: Tensor | None = None

    @property
    def dtype(self) -> torch.dtype:
        """The precision as torch names it."""
        return DTYPES[self.precision]
