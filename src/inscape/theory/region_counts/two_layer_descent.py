"""Gradient descent on the first layer of a two-layer network (Li et al. 2025, Appendix G)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inscape.arguments import positive_number, whole_number
from inscape.arrays import Floats
from inscape.errors import TheoryError
from inscape.theory.region_counts.two_layer import TwoLayer


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoLayerDescent:
    """A run of gradient descent on L = 1/(2N) sum (y - f)^2.

    Attributes:
        steps: after how many steps each record was made, (m,).
        losses: the loss there, (m,).
        nets: the network there.
        status: "converged" (loss below 1e-10), "diverged", or "step limit".
    """

    steps: npt.NDArray[np.int64]
    losses: Floats
    nets: tuple[TwoLayer, ...]
    status: str


def two_layer_descent(
    net: TwoLayer,
    x: Floats,
    y: Floats,
    step_size: float,
    n_steps: int,
    *,
    warm_up: int = 0,
    n_records: int = 16,
) -> TwoLayerDescent:
    """Full-batch gradient descent on w (b and c stay), recorded at about geometric times.

    Args:
        net: where to start.
        x: points, (N, d).
        y: targets, (N,).
        step_size: eta.
        n_steps: how many steps at most.
        warm_up: over how many steps the step size rises linearly from 0.
        n_records: how many networks to keep, the first and last among them.

    >>> start = TwoLayer(np.array([[1.0]]), np.ones(1), np.zeros(1))
    >>> run = two_layer_descent(start, np.ones((1, 1)), np.full(1, 3.0), 0.5, 100)  # w halves its way to 3
    >>> run.status, [n.w.item() for n in run.nets[:3]]
    ('converged', [1.0, 2.0, 2.5])
    """
    eta = positive_number(step_size, "step_size", TheoryError)
    n_steps = whole_number(n_steps, "n_steps", 1, TheoryError)
    n_records = whole_number(n_records, "n_records", 2, TheoryError)
    warm_up = whole_number(warm_up, "warm_up", 0, TheoryError)
    wanted = set((np.geomspace(1, n_steps + 1, n_records).round().astype(int) - 1).tolist())
    w, n = net.w.copy(), len(x)
    steps, losses, nets, status = [], [], [], "step limit"
    for t in range(n_steps + 1):
        z = x @ w.T + net.b
        rest = np.maximum(z, 0.0) @ net.a + net.c - y
        loss = float(rest @ rest) / (2 * n)
        if not loss < 1e12:
            status = "diverged"
            break
        done = loss < 1e-10 and t >= warm_up
        if t in wanted or done:
            steps.append(t)
            losses.append(loss)
            nets.append(TwoLayer(w.copy(), net.a, net.b, net.c))
        if done:
            status = "converged"
            break
        w -= eta * min(1.0, (t + 1) / (warm_up + 1)) / n * (((z > 0) * net.a).T * rest) @ x
    return TwoLayerDescent(steps=np.array(steps), losses=np.array(losses), nets=tuple(nets), status=status)
