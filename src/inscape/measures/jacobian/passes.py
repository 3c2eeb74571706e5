"""One pass over points and perturbed networks that serves several measures at once."""

from collections.abc import Sequence

from torch import Tensor

from inscape.measures.jacobian.blocks import Consumer, Settings
from inscape.measures.jacobian.engine import Engine
from inscape.measures.jacobian.split import split
from inscape.models.graph import Graph
from inscape.progress import Meter


def jacobian_pass(
    graph: Graph, x: Tensor, consumers: Sequence[Consumer], settings: Settings, meter: Meter
) -> None:
    """Show every consumer its perturbed networks at all points; consumers with equal draws share them.

    The cost per point and perturbed network is, for a perceptron of width h and depth L, about L k^2 h
    products with k active units per layer, whatever the dimension d of the input; for any other network it is
    that of d evaluations, or of `n_probes`.
    """
    cut = split(graph.cast(settings.dtype))
    for consumer in consumers:
        consumer.begin(cut.layers, len(x))
    groups = {c.draws: [d for d in consumers if d.draws == c.draws] for c in consumers}
    total, done = sum(draws.n for draws in groups) * len(x), 0
    shared = Engine(cut, x.to(settings.dtype), settings)
    for draws, group in groups.items():
        if shared.works_on_groups(draws, group):
            for block in shared.grouped(draws, group):
                for consumer in group:
                    consumer.see(block)
                done += len(block.points)
                meter(done, total)
            continue
        for k in range(draws.n):
            noisy = draws.graph(k, graph)
            engine = shared
            if noisy is not graph:
                engine = Engine(split(noisy.cast(settings.dtype)), x.to(settings.dtype), settings)
            noise = draws.biases(k, cut.layers, settings.dtype)
            for rows in engine.blocks():
                block = engine.block(k, rows, noise, group)
                for consumer in group:
                    consumer.see(block)
                done += rows.stop - rows.start
                meter(done, total)
