"""Gradients of multilayer perceptrons: matrices small enough to multiply, active units only.

With slopes D_l of layer l, the gradients of layer l + 1 are the rows of G_{l+1} = W_{l+1} D_l G_l. Three
savings: G_1 is W_1 in the coordinates of its row space, h x h instead of h x d; units of slope zero are left
out of the product; and if only norms are wanted, the active rows of G_1 are replaced by the Cholesky factor
of their Gram matrix, which has as many columns as there are active units.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from inscape.measures.jacobian.forward import PrefixedNetwork

CACHE_BYTES = 5 * 2**19
"""Bytes of the gradients of one layer of one block of rows: past some 2.5 MB products wait for memory."""


CHOOSE_UNITS_ABOVE_COORDINATES = 32
"""Coordinates of the gradients up to which units of slope zero are not left out."""


@dataclass(frozen=True, eq=False)
class Chain:
    """A tail that alternates elementwise bends and linear maps on vectors.

    Attributes:
        weights: transposed, (h_l, h_{l+1}) for the map after each layer of units; the last leads to the
            output, and is missing if the network ends in a bend.
        start: the gradients G_1 of the first layer, (h_1, r).
        gram: G_1 G_1'.
    """

    weights: tuple[Tensor, ...]
    start: Tensor
    gram: Tensor

    @property
    def has_many_coordinates(self) -> bool:
        """Whether gradients have enough coordinates for active units to be worth choosing."""
        return self.start.shape[1] > CHOOSE_UNITS_ABOVE_COORDINATES

    def block_length(self) -> int:
        """How many rows to work on at once."""
        widest = max([*(max(w.shape) for w in self.weights), len(self.start)])
        bytes_per_row = widest * self.start.shape[1] * self.start.element_size()
        return max(8, min(4096, CACHE_BYTES // max(1, bytes_per_row)))


def as_chain(network: PrefixedNetwork, directions: Tensor) -> Chain | None:
    """The chain that a network is, or None if it is something else.

    Args:
        network: the network.
        directions: of `PrefixedNetwork.directions`, in the precision of the work.
    """
    tail = network.tail
    if len(tail.input_shape) != 1 or tail.output != len(tail.nodes) - 1:
        return None
    weights, bends, expect_bend = [], 0, True
    for i, node in enumerate(tail.nodes[1:], start=1):
        if node.inputs != (i - 1,) or node.op.is_elementwise != expect_bend:
            return None
        if expect_bend:
            bends += 1
        elif node.op.matrix is not None:
            weights.append(node.op.matrix.to(directions.dtype).T.contiguous())
        else:
            return None
        expect_bend = not expect_bend
    if bends != len(network.layers):
        return None  # a bend without a kink
    start = directions.T.contiguous()
    return Chain(tuple(weights), start, (start.double() @ start.double().T).to(start.dtype))


Seen = Callable[[int, Tensor], None]
"""Called with the number of a layer, or that of the output, and its gradients (n, units, r)."""


def push_chain(chain: Chain, slopes: list[Tensor], seen: Seen, *, only_norms: bool) -> None:
    """Hand the gradients of every later layer and of the output, for n rows, to `seen`.

    Args:
        chain: the network.
        slopes: the slope of each unit of each layer, (n, h_l).
        seen: gets the gradients; layer 0 is left out, since its gradients are `chain.start` everywhere.
        only_norms: whether only norms of gradients matter, so that the coordinates may be changed.
    """
    if chain.start.shape[1] <= CHOOSE_UNITS_ABOVE_COORDINATES:
        _push_few(chain, slopes, seen)
        return
    rows = torch.arange(len(slopes[0]))[:, None]
    index, slope = _active(slopes[0])
    g = _cholesky(chain, index, slope) if only_norms and index.shape[1] < chain.start.shape[1] else None
    g = (chain.start[index] if g is None else g) * slope[..., None]
    for layer, weight in enumerate(chain.weights, start=1):
        g = torch.bmm(weight[index].transpose(1, 2), g)
        seen(layer, g)
        if layer < len(chain.weights):
            index, slope = _active(slopes[layer])
            g = g[rows, index]
            g *= slope[..., None]
    if len(chain.weights) < len(slopes):  # the network ends in a bend
        last = g if chain.weights else chain.start
        seen(len(slopes), last * slopes[-1][..., None])


def push_alike(
    chain: Chain, slopes: list[Tensor], norms_seen: Seen, output_seen: Callable[[Tensor], None]
) -> None:
    """Norms of gradients for groups of m rows that hardly differ: one point in m perturbed networks.

    Units that are active in any row of a group stand for all its rows, with their slopes, zero or not: the
    factor of the Gram matrix and the rows of the weights are chosen once per group, and one product serves
    it.

    Args:
        chain: the network.
        slopes: the slope of each unit of each layer, (groups, m, h_l).
        norms_seen: gets the number of each layer after the first and the norms, (groups m, h_l).
        output_seen: gets the gradients of the output, (groups m, c, r).
    """
    groups, m = slopes[0].shape[:2]
    rows = torch.arange(groups)[:, None]
    index, slope = _active_anywhere(slopes[0])
    g = _cholesky(chain, index, slope.abs().amax(dim=2)) if index.shape[1] < chain.start.shape[1] else None
    g = chain.start[index] if g is None else g
    g = g[:, :, None] * slope[..., None]  # (groups, units, m, r)
    for layer, weight in enumerate(chain.weights, start=1):
        g = torch.bmm(weight[index].transpose(1, 2), g.flatten(2)).reshape(groups, -1, m, g.shape[3])
        if layer == len(slopes):
            output_seen(g.transpose(1, 2).flatten(0, 1))
            return
        norms_seen(layer, torch.linalg.vector_norm(g, dim=3).transpose(1, 2).flatten(0, 1))
        if layer < len(chain.weights):
            index, slope = _active_anywhere(slopes[layer])
            g = g[rows, index]
            g *= slope[..., None]
    g = g if chain.weights else chain.start[None, :, None].expand(groups, -1, m, -1)
    output_seen((g * slopes[-1].transpose(1, 2)[..., None]).transpose(1, 2).flatten(0, 1))


def _active_anywhere(slopes: Tensor) -> tuple[Tensor, Tensor]:
    """The units active in any of m rows, (groups, k), padded, and their slopes there, (groups, k, m)."""
    index, _ = _active(slopes.abs().amax(dim=1))
    return index, slopes.gather(2, index[:, None].expand(-1, slopes.shape[1], -1)).transpose(1, 2)


def _push_few(chain: Chain, slopes: list[Tensor], seen: Seen) -> None:
    """The same with few coordinates: one product over all rows costs less than choosing active units."""
    g = chain.start.T * slopes[0][:, None]
    for layer, weight in enumerate(chain.weights, start=1):
        g = g @ weight
        seen(layer, g.transpose(1, 2))
        if layer < len(slopes):
            g = g * slopes[layer][:, None]
    if len(chain.weights) < len(slopes):
        seen(len(slopes), g.transpose(1, 2))


def _active(slopes: Tensor) -> tuple[Tensor, Tensor]:
    """The units of slope not zero in each row, (n, k), padded with units of slope zero, and their slopes."""
    active = slopes != 0
    k = max(1, int(active.sum(dim=1).max()))
    index = torch.argsort(active, dim=1, stable=True, descending=True)[:, :k]
    return index, slopes.gather(1, index)


def _cholesky(chain: Chain, index: Tensor, slope: Tensor) -> Tensor | None:
    """L with L L' the Gram matrix of the chosen rows of G_1; None if one is not positive definite."""
    padding = slope == 0
    gram = chain.gram[index].gather(2, index[:, None].expand(-1, index.shape[1], -1))
    gram.masked_fill_(padding[:, :, None] | padding[:, None, :], 0.0)
    gram.diagonal(dim1=1, dim2=2).add_(padding.to(gram.dtype))
    factor, info = torch.linalg.cholesky_ex(gram)
    return factor if int(info.abs().max()) == 0 else None
