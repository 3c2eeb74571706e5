"""The moments that a pass over perturbed networks adds up; apart from `moments`, which loads no torch."""

import numpy as np
import torch

from inscape.arrays import Floats
from inscape.measures.jacobian.forward import AtKink, good_at_kink
from inscape.measures.jacobian.passes import Block, Consumer
from inscape.measures.jacobian.units import Draws, Layer

EVERY_UNIT_UP_TO = 64
"""Up to this many units each is put at its kink at every point; of more, one at random."""


class MomentTally(Consumer):
    """Sums over units of gradients, of squares, and of units that are not good.

    Args:
        draws: the perturbed networks.
        eta: how near to its kink a unit is near.
        offsets: what each layer adds, -beta.
    """

    wants_good = True

    def __init__(self, draws: Draws, eta: float, offsets: tuple[Floats, ...]) -> None:
        self.draws, self.eta = draws, eta
        self._offsets = [torch.from_numpy(c) for c in offsets]
        self._rng = np.random.default_rng([draws.seed, 3])

    def begin(self, layers: tuple[Layer, ...], n_points: int) -> None:
        """Make room."""
        self._layers, self._n = layers, n_points
        shape = (self.draws.n, len(layers))
        self._gradients, self._far = np.zeros(shape), np.zeros(shape)
        self._squares, self._not_good, self._at_kink = np.zeros((3, self.draws.n))
        self.largest = 0.0

    def see(self, block: Block) -> None:
        """Add up a block."""
        sigma = self.draws.sigma or 0.0
        for k, norms in enumerate(block.norms):
            u = block.state.pre[k].flatten(1)
            self.largest = max(self.largest, float(norms.max()))
            np.add.at(self._gradients[:, k], block.draws, norms.sum(dim=1).numpy())
            np.add.at(self._far[:, k], block.draws, (norms * (u.abs() > self.eta)).sum(dim=1).numpy())
            offset = self._offsets[k]
            squares = ((u - offset) ** 2 + offset**2 + sigma**2).sum(dim=1)
            np.add.at(self._squares, block.draws, squares.numpy())
            np.add.at(self._not_good, block.draws, (~block.good[k]).flatten(1).sum(dim=1).numpy())
        np.add.at(self._at_kink, block.draws, self._not_good_at_kink(block))

    def means(self) -> dict[str, Floats]:
        """The means over points, per draw."""
        sums = {
            "gradients": self._gradients,
            "far": self._far,
            "squares": self._squares,
            "not_good": self._not_good,
            "not_good_at_kink": self._at_kink,
        }
        return {name: total / self._n for name, total in sums.items()}

    def _not_good_at_kink(self, block: Block) -> Floats:
        """How many units are not good with their own bias at the kink; estimated if there are many."""
        n, sizes = len(block.start), [layer.size for layer in self._layers]
        total = sum(sizes)
        chosen = np.tile(np.arange(total), n)
        if total > EVERY_UNIT_UP_TO:
            chosen = self._rng.integers(total, size=n)
        each = len(chosen) // n
        layer = np.searchsorted(np.cumsum(sizes), chosen, side="right")
        unit = chosen - (np.cumsum(sizes) - sizes)[layer]
        which = AtKink(torch.from_numpy(layer), torch.from_numpy(unit))
        x = block.start.repeat_interleave(each, dim=0)
        perturbation = (
            None
            if block.perturbation is None
            else [_per_point(b, n).repeat_interleave(each, dim=0) for b in block.perturbation]
        )
        good = good_at_kink(block.network.tail, block.network.layers, x, perturbation, which, 0).reshape(
            n, each
        )
        return np.asarray((~good).sum(dim=1).numpy() * (total / each))


def _per_point(perturbation: torch.Tensor, n: int) -> torch.Tensor:
    """The perturbation of each point of the block."""
    return perturbation if len(perturbation) == n else perturbation.expand(n, *perturbation.shape[1:])
