"""Teachers: nets of width r whose sign changes r times, and the labels that they give."""

import numpy as np
import numpy.typing as npt

from inscape.arguments import whole_number
from inscape.arrays import Floats
from inscape.errors import UnivariateError
from inscape.seeding import RandomState, as_generator
from inscape.univariate.net import ShallowNet


def teacher_of(changes: npt.ArrayLike) -> ShallowNet:
    """The zigzag of width r whose sign changes exactly at the r given places, from -1 on the far left.

    Its slope is 0 left of the first place, then +1 and -1 in turn, with a knot halfway between neighbouring
    places.

    >>> teacher_of([-0.5, 0.25]).sign_changes().tolist()
    [-0.5, 0.25]
    """
    places = np.asarray(changes, dtype=np.float64).reshape(-1)
    if len(places) == 0 or not np.isfinite(places).all() or not (np.diff(places) > 0).all():
        raise UnivariateError("changes must be one or more finite places in ascending order")
    knots = np.concatenate([places[:1], (places[1:] + places[:-1]) / 2])
    jumps = 2.0 * (-1.0) ** np.arange(len(places))
    jumps[0] = 1.0
    return ShallowNet(np.ones_like(knots), -knots, jumps)


def random_teacher(
    n_changes: int, *, radius: float = 1.0, shortest: float | None = None, random_state: RandomState = None
) -> ShallowNet:
    """A teacher of width r with r changes of sign at random places of [-radius, radius].

    Args:
        n_changes: r.
        radius: R.
        shortest: the least length of an interval of one sign, rho; R / (r + 1), half of what equal intervals
            have, if None. What is left of the length is shared out uniformly.
        random_state: seed.
    """
    r = whole_number(n_changes, "n_changes", 1, UnivariateError)
    least = radius / (r + 1) if shortest is None else shortest
    spare = 2 * radius - (r + 1) * least
    if not (0 < radius < np.inf and least >= 0 and spare >= 0):
        raise UnivariateError(
            f"{r + 1} intervals of length {least:g} do not fit into [-{radius:g}, {radius:g}]: "
            "make them shorter"
        )
    cuts = np.sort(as_generator(random_state).uniform(0, spare, r))
    return teacher_of(-radius + cuts + least * np.arange(1, r + 1))


def labels_of(net: ShallowNet, x: npt.ArrayLike) -> Floats:
    """The sign of the net at x, -1 or +1; that of 0 is -1, as in the paper."""
    return np.where(net(x) > 0, 1.0, -1.0)


def shortest_interval(net: ShallowNet, low: float, high: float) -> float:
    """Rho, the length of the shortest interval of [low, high] on which the sign of the net does not change.

    >>> shortest_interval(teacher_of([-0.5, 0.25]), -1, 1)
    0.5
    """
    ends = np.concatenate([[low], net.sign_changes(low, high), [high]])
    return float(np.diff(ends).min())
