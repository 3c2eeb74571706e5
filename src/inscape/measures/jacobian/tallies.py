"""What local complexity, local rank, total variation and the bounds of theory take from a pass."""

import math

import numpy as np
import torch
from torch import Tensor

from inscape.arrays import Floats
from inscape.budget import check_budget, timed
from inscape.errors import NotApplicableError
from inscape.measures.jacobian.forward import AtKink, Layer, good_at_kink
from inscape.measures.jacobian.passes import Block, Consumer, Draws

EVERY_UNIT_UP_TO = 64
"""Up to this many units each is judged in its own kink; of a larger network a random one is."""
EVERY_UNIT_UP_TO_EVALUATIONS = 2**22
"""Of units, at all points in all perturbed networks; beyond, a random one is judged in small ones, too."""
TIMED_MATRIX = 256
"""The side of the matrix whose singular values are timed."""
WORTH_FORESEEING = 100.0
"""Times the work of that matrix: a second or so."""


class RankTally(Consumer):
    """Counts the singular values of each layer's Jacobian that are at least eps, or eps times the largest."""

    wants_spectra = True

    def __init__(self, draws: Draws, eps: float, relative: bool = False) -> None:
        self.draws, self.eps, self.relative = draws, eps, relative
        self.limit = math.inf
        """Seconds that singular values may be foreseen to take; the clock would see the first too late."""
        self.n_inputs = 0

    def begin(self, layers: tuple[Layer, ...], n_points: int) -> None:
        """Allocate memory, if the time allows it."""
        if not math.isinf(self.limit):
            self._check_time([layer.size for layer in layers], n_points)
        self.layers = tuple(layer.name for layer in layers)
        self.ranks = np.zeros((n_points, self.draws.n, len(layers)))

    def _check_time(self, sizes: list[int], n_points: int) -> None:
        """Raise an error if all singular values, of which a few are timed, would take too long."""
        inner = min(self.n_inputs, *sizes[:1]) if sizes else 0
        each = sum(min(h, inner) ** 2 * max(h, inner) for h in sizes)
        work = n_points * self.draws.n * each / TIMED_MATRIX**3
        if work > WORTH_FORESEEING:
            square = torch.rand(TIMED_MATRIX, TIMED_MATRIX, dtype=torch.float64)
            seconds = work * timed(lambda: torch.linalg.svdvals(square))
            what = f"singular values of {n_points * self.draws.n * len(sizes):,} Jacobians"
            check_budget(what, seconds, self.limit, "give fewer points")

    def see(self, block: Block) -> None:
        """Count in a block."""
        for k, values in enumerate(block.spectra):
            self.ranks[block.points, block.draws, k] = rank_of(values, self.eps, self.relative).numpy()


def rank_of(values: Tensor, eps: float, relative: bool) -> Tensor:
    """How many singular values (n, r), the largest first, are at least eps, or eps times the largest > 0."""
    least = eps * values[:, :1] if relative else eps
    return ((values >= least) & (values > 0)).sum(dim=1)


class VariationTally(Consumer):
    """Takes the norm of the gradient of what `total_variation` is of."""

    def __init__(self, draws: Draws, of: str) -> None:
        self.draws, self.of = draws, of

    def begin(self, layers: tuple[Layer, ...], n_points: int) -> None:
        """Allocate memory."""
        self.norms = np.zeros((n_points, self.draws.n))

    def see(self, block: Block) -> None:
        """Take the norms of a block."""
        if self.of == "hidden":
            if not block.norms:
                raise NotApplicableError('of="hidden" needs a hidden layer, and the network has none')
            norms = block.norms[-1].double().square().sum(dim=1).sqrt()
        else:
            norms = gradient_norms(block.output, block.state.output, self.of)
        self.norms[block.points, block.draws] = norms.numpy()


def gradient_norms(gradients: Tensor, scores: Tensor, of: str) -> Tensor:
    """The norm at each point of gradients (n, c, r): Frobenius over all scores, or of the winning one's.

    Of probabilities p, the softmax of the scores or, of a single one, its sigmoid and the rest, it is
    Frobenius of the rows p_i (g_i - sum_j p_j g_j).
    """
    gradients, scores = gradients.double(), scores.double().reshape(len(gradients), -1)
    if of == "probabilities":
        if scores.shape[1] == 1:
            scores, gradients = (torch.cat([v, torch.zeros_like(v)], dim=1) for v in (scores, gradients))
        p = scores.softmax(dim=1)[..., None]
        gradients = p * (gradients - (p * gradients).sum(dim=1, keepdim=True))
    norms = gradients.square().sum(dim=2).sqrt()
    if of != "predicted":
        return norms.square().sum(dim=1).sqrt()
    return norms.gather(1, scores.argmax(dim=1, keepdim=True))[:, 0]


class ComplexityTally(Consumer):
    """Sums |grad z_i| rho_i(z_i) 1{i good} over units, for every point and perturbed network.

    *Good* is judged with the unit at its kink, b_i = z_i(x), since that is where it bends: the layers after
    it see a unit of output zero, not the output that its perturbation would give. For small networks this is
    looked up for every unit. For large ones the sum is taken with good as judged at the drawn biases, and
    corrected without bias by one unit per point and network: unit s, drawn with probability t_s / T in
    proportion to its term, adds T (good at the kink - good).

    Args:
        draws: the perturbed networks.
        form: "theorem"; "density" for eq. (40), without good; "norms" for eq. (41), the sum of |grad z_i|;
            "authors" for the published code.
    """

    wants_good = True
    takes_estimates = True

    def __init__(self, draws: Draws, form: str) -> None:
        self.draws, self.form = draws, form

    def begin(self, layers: tuple[Layer, ...], n_points: int) -> None:
        """Allocate memory."""
        self.layers = layers
        self.terms = np.zeros((n_points, self.draws.n, len(layers)))
        self.heights = np.random.default_rng([self.draws.seed, 2]).random((n_points, self.draws.n))
        self.n_not_good = 0.0
        self.n_units = sum(layer.size for layer in layers)

    def see(self, block: Block) -> None:
        """Add up a block."""
        if not self.layers:
            return
        self.n_not_good += sum(float((~g).sum()) for g in block.good)
        terms = [self._terms(block, k) for k in range(len(self.layers))]
        if self.form == "theorem":
            sums = self._good_sums(block, terms)
        else:
            sums = torch.stack([torch.stack(t).sum(dim=(0, 2)) for t in terms], dim=1)
        self.terms[block.points, block.draws] = sums.numpy()

    def _terms(self, block: Block, k: int) -> list[Tensor]:
        """|grad z_i| rho_i at each kink of layer k, (n, units) for every kink."""
        norms = block.norms[k].double()
        if self.form == "norms":
            return [norms]
        sigma = self.draws.sigma
        assert sigma is not None
        u = block.state.pre[k].flatten(1).double()
        if self.form == "authors":
            z = u - _offset(block, self.layers[k]).double()
            return [norms * torch.exp(-0.5 * (z / sigma) ** 2)]
        density = 1 / (math.sqrt(2 * math.pi) * sigma)
        return [norms * density * torch.exp(-0.5 * ((u - b) / sigma) ** 2) for b in self.layers[k].kinks]

    def _good_sums(self, block: Block, terms: list[list[Tensor]]) -> Tensor:
        """The sum over good units of each layer, (n, L)."""
        sums = torch.stack(
            [(torch.stack(ts) * g).sum(dim=(0, 2)) for ts, g in zip(terms, block.good, strict=True)], dim=1
        )
        kinks = [(k, j) for k, ts in enumerate(terms) for j in range(len(ts))]
        n_kinks = sum(terms[k][j].shape[1] for k, j in kinks)
        n_evaluations = n_kinks * self.terms.shape[0] * self.terms.shape[1]
        if n_kinks <= EVERY_UNIT_UP_TO and n_evaluations <= EVERY_UNIT_UP_TO_EVALUATIONS:
            for k, j in kinks:
                t, g = terms[k][j], block.good[k]
                sums[:, k] += (t * (self._every_unit(block, k, j).double() - g.double())).sum(dim=1)
            return sums
        return self._corrected(block, terms, kinks, sums)

    def _every_unit(self, block: Block, k: int, j: int) -> Tensor:
        """Whether each unit of layer k is good at its kink j, (n, units)."""
        n, h = len(block.start), self.layers[k].size
        which = AtKink(torch.full((n * h,), k), torch.arange(h).repeat(n))
        x = block.start.repeat_interleave(h, dim=0)
        perturbation = (
            None
            if block.perturbation is None
            else [b.repeat_interleave(h, dim=0) for b in block.perturbation]
        )
        return good_at_kink(block.network.tail, block.network.layers, x, perturbation, which, j).reshape(n, h)

    def _corrected(
        self, block: Block, terms: list[list[Tensor]], kinks: list[tuple[int, int]], sums: Tensor
    ) -> Tensor:
        n = len(sums)
        flat = torch.cat([terms[k][j] for k, j in kinks], dim=1)
        total = flat.sum(dim=1)
        height = torch.from_numpy(self.heights[block.points, block.draws]) * total
        chosen = torch.searchsorted(flat.cumsum(dim=1), height[:, None], right=True)[:, 0]
        chosen = chosen.clamp(max=flat.shape[1] - 1)
        good = torch.cat([block.good[k] for k, _ in kinks], dim=1).gather(1, chosen[:, None])[:, 0]
        sizes = torch.tensor([terms[k][j].shape[1] for k, j in kinks])
        which = torch.searchsorted(sizes.cumsum(0), chosen, right=True)
        layer = torch.tensor([k for k, _ in kinks])[which]
        unit = chosen - (sizes.cumsum(0) - sizes)[which]
        number = torch.tensor([j for _, j in kinks])[which]
        at_kink = torch.zeros(n, dtype=torch.bool)
        for j in range(max(j for _, j in kinks) + 1):
            at = torch.nonzero(number == j)[:, 0]
            if len(at):
                units = AtKink(layer[at], unit[at])
                perturbation = None if block.perturbation is None else [b[at] for b in block.perturbation]
                at_kink[at] = good_at_kink(
                    block.network.tail, block.network.layers, block.start[at], perturbation, units, j
                )
        sums[torch.arange(n), layer] += total * (at_kink.double() - good.double())
        return sums


def _offset(block: Block, layer: Layer) -> Tensor:
    """What a layer's affine map adds to its linear part, -beta, flattened (1, units)."""
    network = block.network
    op = (
        network.tail.nodes[layer.source].op
        if layer.source
        else (network.prefix[-1] if network.prefix else None)
    )
    if op is None or (op.weight is None and op.per_channel is None):
        raise NotApplicableError(
            f'form="authors" needs units that follow a linear map or convolution; {layer.name} does not'
        )
    if layer.source:
        shape = network.tail.shapes[network.tail.nodes[layer.source].inputs[0]]
        return op(torch.zeros(1, *shape, dtype=block.start.dtype)).flatten(1)
    zeros = torch.zeros(1, *network.input_shape, dtype=block.start.dtype)
    for before in network.prefix[:-1]:
        zeros = torch.zeros_like(before.cast(zeros.dtype)(zeros))
    return op.cast(zeros.dtype)(zeros).flatten(1)


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
        """Allocate memory."""
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
