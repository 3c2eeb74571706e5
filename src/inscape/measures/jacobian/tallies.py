"""What local rank and total variation take from a pass."""

import numpy as np
import torch

from inscape.measures.jacobian.blocks import Block, Consumer
from inscape.measures.jacobian.layers import Layer
from inscape.measures.jacobian.noise import Draws


class RankTally(Consumer):
    """Counts the singular values of each layer's Jacobian that are at least eps."""

    wants_spectra = True

    def __init__(self, draws: Draws, eps: float) -> None:
        self.draws, self.eps = draws, eps

    def begin(self, layers: tuple[Layer, ...], n_points: int) -> None:
        """Make room."""
        self.layers = tuple(layer.name for layer in layers)
        self.ranks = np.zeros((n_points, self.draws.n, len(layers)))

    def see(self, block: Block) -> None:
        """Count in a block."""
        for k, values in enumerate(block.spectra):
            self.ranks[block.points, block.draws, k] = (values >= self.eps).sum(dim=1).numpy()


class VariationTally(Consumer):
    """Takes the norm of the gradient of all scores, or of the winning one."""

    def __init__(self, draws: Draws, of: str) -> None:
        self.draws, self.of = draws, of

    def begin(self, layers: tuple[Layer, ...], n_points: int) -> None:
        """Make room."""
        self.norms = np.zeros((n_points, self.draws.n))

    def see(self, block: Block) -> None:
        """Take the norms of a block."""
        self.norms[block.points, block.draws] = gradient_norms(
            block.output, block.state.output, self.of
        ).numpy()


def gradient_norms(gradients: torch.Tensor, scores: torch.Tensor, of: str) -> torch.Tensor:
    """The norm at each point of gradients (n, c, r): Frobenius over all scores, or of the winning one's."""
    norms = gradients.double().square().sum(dim=2).sqrt()
    if of == "scores":
        return norms.square().sum(dim=1).sqrt()
    best = scores.reshape(len(norms), -1).argmax(dim=1, keepdim=True)
    return norms.gather(1, best)[:, 0]
