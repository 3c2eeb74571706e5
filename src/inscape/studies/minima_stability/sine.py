"""The regression task of the minima-stability studies. The text of the paper names none: this one is ours."""

import numpy as np

from inscape.arrays import Floats
from inscape.univariate import ShallowNet


def sine_data(n: int) -> tuple[Floats, Floats]:
    """The function sin 2x at n equally spaced places of [-1.5, 1.5]."""
    x = np.linspace(-1.5, 1.5, n)
    return x, np.sin(2 * x)


def broken_line(net: ShallowNet, low: float, high: float) -> dict[str, Floats]:
    """Ends, knots and values of a net on [low, high], to be drawn later."""
    inner = net.knots
    t = np.concatenate([[low], inner[(inner > low) & (inner < high)], [high]])
    return {"line_x": t, "line_y": net(t)}
