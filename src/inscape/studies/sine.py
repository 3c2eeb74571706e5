"""The regression task of the minima-stability studies; the text of the paper gives none, so this one is ours."""

import numpy as np
import numpy.typing as npt

from inscape.univariate import ShallowNet

Array = npt.NDArray[np.float64]

N = 20
WIDTH = 100
WARM_UP = 20_000


def sine_data() -> tuple[Array, Array]:
    """sin 2x at 20 equally spaced places of [-1.5, 1.5]."""
    x = np.linspace(-1.5, 1.5, N)
    return x, np.sin(2 * x)


def sine_net(replicate: int) -> ShallowNet:
    """The common starting point of all runs of a replicate: width 100, torch's own initialisation."""
    return ShallowNet.random(WIDTH, random_state=replicate + 1)


def broken_line(net: ShallowNet, low: float, high: float) -> dict[str, Array]:
    """Ends, knots and values of a net on [low, high], to be drawn later."""
    inner = net.knots
    t = np.concatenate([[low], inner[(inner > low) & (inner < high)], [high]])
    return {"line_x": t, "line_y": net(t)}
