"""One pass over points and perturbed networks that serves several measures at once.

It hands each measure, a `Consumer`, one `Block` after the other. `Draws` says how networks are perturbed: a
perturbed bias is b_i = beta_i + N(0, sigma^2), as in Def. 1.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor

from inscape.arguments import positive_number, whole_number
from inscape.arrays import Ints
from inscape.budget import MEMORY
from inscape.errors import MeasureError, unknown_name
from inscape.measures.jacobian.forward import (
    Evaluation,
    Layer,
    LayerChain,
    PrefixedNetwork,
    as_chain,
    directions_at_once,
    evaluate,
    good_units,
    prefixed,
    push,
    push_alike,
    push_chain,
)
from inscape.measures.measurement import Measurement, graph_at
from inscape.models import Model
from inscape.models.graph import Graph, Node
from inscape.parallel import Job, Tell, in_order, single_products
from inscape.progress import Meter

DTYPES = {"float64": torch.float64, "float32": torch.float32}


KINDS = ("bias", "bias+weights")
"""What is perturbed."""


@dataclass(frozen=True)
class Draws:
    """How often and how a network is perturbed; `sigma=None` is the network as it is, once.

    Two consumers with equal draws see the same perturbed networks.
    """

    sigma: float | None = None
    n: int = 1
    kind: str = "bias"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise MeasureError(unknown_name("noise", self.kind, KINDS))
        if self.sigma is not None:
            sigma = positive_number(self.sigma, "sigma", MeasureError, ": the spread of the biases")
            object.__setattr__(self, "sigma", sigma)

    @classmethod
    def on_biases(cls, sigma: float | None, n: int, seed: int) -> Self:
        """`n` draws of the biases, perturbed, or the network as it is if `sigma` is None."""
        return (
            cls() if sigma is None else cls(sigma, whole_number(n, "n_noise", 1, MeasureError), "bias", seed)
        )

    def biases(self, k: int, layers: tuple[Layer, ...], dtype: torch.dtype) -> list[Tensor] | None:
        """What draw k adds to the bias of each unit, one (1, *shape) per layer; None if nothing."""
        if self.sigma is None or not layers:
            return None
        rng = np.random.default_rng([self.seed, k])
        perturbation = rng.standard_normal(sum(layer.size for layer in layers)) * self.sigma
        by_layer = np.split(perturbation, np.cumsum([layer.size for layer in layers])[:-1])
        return [
            torch.from_numpy(p).to(dtype).reshape(1, *layer.shape)
            for p, layer in zip(by_layer, layers, strict=True)
        ]

    def graph(self, k: int, graph: Graph) -> Graph:
        """The graph whose weights are those of draw k; the graph itself if only biases are perturbed."""
        if self.sigma is None or self.kind == "bias":
            return graph
        rng = np.random.default_rng([self.seed, k, 1])
        nodes = [_perturbed(node, self.sigma, rng) for node in graph.nodes]
        return Graph(nodes, output=graph.output, input_shape=graph.input_shape, head=graph.head)


def _perturbed(node: Node, sigma: float, rng: np.random.Generator) -> Node:
    """The node with N(0, sigma^2) added to each of its weights, if it has any."""
    op = node.affine
    if op is None or op.weight is None:
        return node
    perturbation = torch.from_numpy(rng.standard_normal(tuple(op.weight.shape)) * sigma)
    constants = (op.weight.double() + perturbation, *op.constants[1:])
    return replace(node, op=replace(op, constants=constants, then=None))


@dataclass(eq=False)
class Block:
    """Some points, each in a perturbed network, and what is known of its gradients there.

    Attributes:
        points: the number of each point, (n,).
        draws: the number of its perturbed network, (n,).
        start: the prefix's value there, from which the tail can be evaluated again.
        network: the perturbed network.
        perturbation: what was added to the biases, per layer (n, *shape).
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
    perturbation: list[Tensor] | None
    state: Evaluation
    norms: list[Tensor] = field(default_factory=list)
    spectra: list[Tensor] = field(default_factory=list)
    output: Tensor = field(default_factory=lambda: torch.empty(0))
    good: list[Tensor] = field(default_factory=list)


class Consumer(ABC):
    """A measure that sees every block once."""

    draws: Draws
    wants_spectra: bool = False
    wants_good: bool = False
    takes_estimates: bool = False
    """Whether norms of gradients may be estimated, without bias."""

    @abstractmethod
    def begin(self, layers: tuple[Layer, ...], n_points: int) -> None:
        """Allocate memory, before the first block."""

    @abstractmethod
    def see(self, block: Block) -> None:
        """Take what is needed from a block."""


@dataclass(frozen=True, eq=False)
class PassSettings:
    """How a pass computes.

    Attributes:
        precision: "float64" or "float32".
        memory: bytes that the tangents of a network that is no perceptron may fill.
        n_directions: None for exact gradients; else how many random directions estimate their norms, "auto"
            for `AUTO_DIRECTIONS` of them where exact gradients take over `ESTIMATE_ABOVE_INPUTS` evaluations.
        seed: of those directions.
        directions: orthonormal directions (k, ...) to which gradients are projected; None for all.
    """

    precision: str = "float64"
    memory: int = MEMORY
    n_directions: int | Literal["auto"] | None = None
    seed: int = 0
    directions: Tensor | None = None

    def for_network(self, network: PrefixedNetwork, consumers: "Sequence[Consumer]") -> "PassSettings":
        """The same with a number for "auto"."""
        if self.n_directions != "auto":
            return self
        few = (
            self.directions is not None
            or network.is_matrix
            or network.n_directions() <= ESTIMATE_ABOVE_INPUTS
        )
        is_exact = few or not all(c.takes_estimates for c in consumers)
        return replace(self, n_directions=None if is_exact else AUTO_DIRECTIONS)

    @property
    def dtype(self) -> torch.dtype:
        """The precision as torch names it."""
        return DTYPES[self.precision]


ESTIMATE_ABOVE_INPUTS = 64
"""Directions from which on a few random ones take the place of all, if they are left to us."""
AUTO_DIRECTIONS = 8
"""Random directions for each perturbed network: 32 of these see 256 different ones."""
POINTS_AT_ONCE = 256
"""In one network, or together in several."""
JOIN_DRAWS_FROM = 4
"""Perturbed networks from which on it pays to evaluate a point in all of them at once."""
DRAWS_AT_ONCE = 16
"""Perturbed networks in which a point is evaluated at a time."""


@dataclass(frozen=True, eq=False)
class JacobianRequest:
    """What one measure asks of a pass.

    Attributes:
        measure: its name in errors.
        consumer: what sees every block.
        result: of what the consumer saw, given the graph, the model and how the pass computed.
        settings: how the pass is to compute; None for a measure that goes along with any.
    """

    measure: str
    consumer: Consumer
    result: Callable[[Graph, Model, PassSettings], Measurement]
    settings: PassSettings | None = None


def measured(model: Model, x: Any, requests: Sequence[JacobianRequest], show: Meter) -> list[Measurement]:
    """The result of each request, all from one pass over the points."""
    settings = next((r.settings for r in requests if r.settings is not None), PassSettings())
    with graph_at(model, x, " and ".join(r.measure for r in requests)) as (graph, points):
        settings = jacobian_pass(graph, points, [r.consumer for r in requests], settings, show)
        return [r.result(graph, model, settings) for r in requests]


def jacobian_pass(
    graph: Graph, x: Tensor, consumers: Sequence[Consumer], settings: PassSettings, meter: Meter
) -> PassSettings:
    """Show every consumer its perturbed networks at all points; consumers with equal draws share them.

    Returns how it was computed.

    The cost per point and perturbed network is, for a perceptron of width h and depth L, about L k^2 h
    products with k active units per layer, whatever the dimension d of the input; for any other network it is
    that of d evaluations, or of `n_directions`.
    """
    network = prefixed(graph.cast(settings.dtype))
    settings = settings.for_network(network, consumers)
    for consumer in consumers:
        consumer.begin(network.layers, len(x))
    groups = {c.draws: [d for d in consumers if d.draws == c.draws] for c in consumers}
    total, done = sum(draws.n for draws in groups) * len(x), 0
    with single_products():
        shared = Engine(network, x.to(settings.dtype), settings)
        for draws, group in groups.items():
            if shared.works_on_groups(draws, group):
                jobs = shared.grouped(draws, group)
            else:
                jobs = _noisy(graph, shared, draws, group, x)
            for block in in_order(jobs):
                for consumer in group:
                    consumer.see(block)
                done += len(block.points)
                meter(done, total)
    return settings


def _noisy(
    graph: Graph, shared: "Engine", draws: Draws, group: Sequence[Consumer], x: Tensor
) -> Iterator[Job[Block]]:
    """Points in one perturbed network after the other."""
    network, settings = shared.network, shared.settings
    for k in range(draws.n):
        noisy = draws.graph(k, graph)
        engine = shared
        if noisy is not graph or settings.n_directions is not None:
            own = network if noisy is graph else prefixed(noisy.cast(settings.dtype))
            engine = Engine(own, x.to(settings.dtype), settings, k)
        perturbation = draws.biases(k, network.layers, settings.dtype)
        for stretch in engine.blocks():
            yield partial(
                _job, partial(engine.block, k, stretch, perturbation, group), torch.is_grad_enabled()
            )


def _job(block: Callable[[], Block], with_gradients: bool, tell: Tell) -> Block:
    """A block, with gradients as in the thread that asks for it."""
    tell(None)
    with torch.set_grad_enabled(with_gradients):
        return block()


class Engine:
    """A network ready to be differentiated at given points.

    Random directions are others for each draw, so that the spread over draws tells of theirs, too.
    """

    def __init__(self, network: PrefixedNetwork, x: Tensor, settings: PassSettings, draw: int = 0) -> None:
        self.network, self.points, self.settings, self.draw = network, x, settings, draw
        self.given = self._given()
        few = network.is_matrix or self.given is not None
        self.directions = (
            (self.given if self.given is not None else network.directions(settings.dtype)) if few else None
        )
        self.n_directions = network.n_directions() if self.directions is None else len(self.directions)
        exact = settings.n_directions is None and self.directions is not None
        self.chain: LayerChain | None = as_chain(network, self.directions) if exact else None  # type: ignore[arg-type]

    def _given(self) -> Tensor | None:
        """Directions that are not to be all of them: those asked for, or random ones."""
        given, k = self.settings.directions, self.settings.n_directions
        if given is None and isinstance(k, int):
            rng = np.random.default_rng([self.settings.seed, 3, self.draw])
            given = torch.from_numpy(rng.standard_normal((k, *self.network.input_shape)))
        if given is None:
            return None
        shaped = given.double().reshape(len(given), *self.network.input_shape)
        return self.network.through_prefix(shaped).to(self.settings.dtype)

    def _portions(self, size: int) -> Iterator[Tensor]:
        """The directions, `size` at a time; unit vectors are made as they are needed."""
        for i in range(0, self.n_directions, size):
            if self.directions is None:
                yield self.network.directions(self.settings.dtype, i, i + size)
            else:
                yield self.directions[i : i + size]

    def blocks(self) -> list[slice]:
        """The points in portions that fit into cache or memory."""
        n = len(self.points)
        if self.chain is not None:
            size = max(POINTS_AT_ONCE, self.chain.block_length())
        else:
            at_once = directions_at_once(self.network.tail, 1, self.settings.dtype, self.settings.memory)
            size = max(1, min(POINTS_AT_ONCE, at_once // self.n_directions))
        return [slice(i, min(i + size, n)) for i in range(0, n, size)]

    def block(
        self, draw: int, stretch: slice, perturbation: list[Tensor] | None, group: Sequence[Consumer]
    ) -> Block:
        """Points in one perturbed network."""
        n = stretch.stop - stretch.start
        points = np.arange(stretch.start, stretch.stop)
        each = None if perturbation is None else [b.expand(n, *b.shape[1:]) for b in perturbation]
        block = self._evaluated(points, np.full(n, draw), each, group)
        spectra = any(c.wants_spectra for c in group)
        if self.chain is not None:
            self._differentiate_chain(self.chain, block, spectra)
        else:
            self._differentiate(block, spectra)
        return block

    def works_on_groups(self, draws: Draws, group: Sequence[Consumer]) -> bool:
        """Whether to evaluate each point in all perturbed networks at once."""
        many = self.chain is not None and self.chain.has_many_coordinates and draws.n >= JOIN_DRAWS_FROM
        return many and draws.kind == "bias" and not any(c.wants_spectra for c in group)

    def grouped(self, draws: Draws, group: Sequence[Consumer]) -> Iterator[Job[Block]]:
        """Points, each in many perturbed networks."""
        assert self.chain is not None
        drawn = [draws.biases(k, self.network.layers, self.settings.dtype) or [] for k in range(draws.n)]
        for first in range(0, draws.n, DRAWS_AT_ONCE):
            chunk = drawn[first : first + DRAWS_AT_ONCE]
            m, size = len(chunk), max(1, POINTS_AT_ONCE // len(chunk))
            stacked = [torch.cat(layer) for layer in zip(*chunk, strict=True)]
            for i in range(0, len(self.points), size):
                points = np.arange(i, min(i + size, len(self.points)))
                block = partial(self._block_of_group, points, first, m, stacked, group)
                yield partial(_job, block, torch.is_grad_enabled())

    def _block_of_group(
        self, points: Ints, first: int, m: int, stacked: list[Tensor], group: Sequence[Consumer]
    ) -> Block:
        assert self.chain is not None
        perturbation = [b.repeat(len(points), 1) for b in stacked]
        numbers = np.tile(np.arange(first, first + m), len(points))
        block = self._evaluated(points, numbers, perturbation, group)
        self._differentiate_groups(self.chain, block, m)
        return block

    def _evaluated(
        self, points: Ints, draws: Ints, perturbation: list[Tensor] | None, group: Sequence[Consumer]
    ) -> Block:
        """Each of some points in as many of the draws, which are given point by point.

        The prefix is evaluated here and not at all points at once: on images that would fill the memory.
        """
        start, m = self.network.start(self.points[torch.from_numpy(points)]), len(draws) // len(points)
        if m > 1:
            start, points = start.repeat_interleave(m, dim=0), np.repeat(points, m)
        state = evaluate(self.network.tail, self.network.layers, start, perturbation)
        block = Block(points, draws, start, self.network, perturbation, state)
        if any(c.wants_good for c in group):
            block.good = [g.flatten(1) for g in good_units(self.network.tail, self.network.layers, state)]
        return block

    def _differentiate_groups(self, chain: LayerChain, block: Block, m: int) -> None:
        n, layers = len(block.points), self.network.layers
        norms: list[list[Tensor]] = [[] for _ in layers]
        output: list[Tensor] = []
        norms[0] = [torch.linalg.vector_norm(chain.start, dim=1).expand(n, -1)]
        slopes = [block.state.slopes[layer.node].reshape(n // m, m, -1) for layer in layers]
        size = max(1, 2 * chain.block_length() // m)
        for i in range(0, n // m, size):
            chunk = [s[i : i + size] for s in slopes]
            push_alike(chain, chunk, lambda layer, v: norms[layer].append(v), output.append)
        block.norms = [torch.cat(chunks) for chunks in norms]
        block.output = torch.cat(_padded(output))

    def _differentiate_chain(self, chain: LayerChain, block: Block, spectra: bool) -> None:
        n, layers = len(block.start), self.network.layers
        norms: list[list[Tensor]] = [[] for _ in layers]
        values: list[list[Tensor]] = [[] for _ in layers]
        output: list[Tensor] = []
        norms[0] = [torch.linalg.vector_norm(chain.start, dim=1).expand(n, -1)]
        if spectra:
            values[0] = [torch.linalg.svdvals(chain.start.double()).expand(n, -1)]

        def seen(layer: int, g: Tensor) -> None:
            if layer == len(layers):
                output.append(g)
                return
            norms[layer].append(g.square().sum(dim=2).sqrt())  # coordinates are not the innermost in memory
            if spectra:
                values[layer].append(torch.linalg.svdvals(g.double()))

        slopes = [block.state.slopes[layer.node] for layer in layers]
        size = chain.block_length()
        for i in range(0, n, size):
            push_chain(chain, [s[i : i + size] for s in slopes], seen, only_norms=not spectra)
        block.norms = [torch.cat(chunks) for chunks in norms]
        block.spectra = [torch.cat(chunks) for chunks in values] if spectra else []
        block.output = torch.cat(_padded(output))

    def _differentiate(self, block: Block, spectra: bool) -> None:
        tail, layers, n = self.network.tail, self.network.layers, len(block.start)
        squares = [torch.zeros(n, layer.size, dtype=torch.float64) for layer in layers]
        kept: dict[int, list[Tensor]] = {i: [] for i in [tail.output, *(layer.source for layer in layers)]}
        wanted = set(kept)

        def seen(node: int, tangents: Tensor) -> None:
            flat = tangents.flatten(2)
            for square, layer in zip(squares, layers, strict=True):
                if layer.source == node:
                    square += flat.square().sum(dim=1)
            if spectra or node == tail.output:
                kept[node].append(flat.clone())

        size = directions_at_once(tail, n, self.settings.dtype, self.settings.memory)
        for chunk in self._portions(size):
            push(tail, block.state, chunk, wanted, seen)
        k = self.settings.n_directions
        scale = _mean_chi(k) if isinstance(k, int) else 1.0
        block.norms = [(s.sqrt() / scale).to(self.settings.dtype) for s in squares]
        block.output = torch.cat(kept[tail.output], dim=1).transpose(1, 2)
        if spectra:
            block.spectra = [
                torch.linalg.svdvals(torch.cat(kept[layer.source], dim=1).double()) for layer in layers
            ]


def _padded(gradients: list[Tensor]) -> list[Tensor]:
    """Gradients in different numbers of coordinates, (n, c, r) each, filled with zeros to the largest."""
    widest = max(p.shape[2] for p in gradients)
    return [torch.nn.functional.pad(p, (0, widest - p.shape[2])) for p in gradients]


def _mean_chi(k: int) -> float:
    """The mean length of k independent N(0, 1): |g| times it is the mean length of k projections of g."""
    from scipy.special import gammaln

    return float(np.sqrt(2) * np.exp(gammaln((k + 1) / 2) - gammaln(k / 2)))
