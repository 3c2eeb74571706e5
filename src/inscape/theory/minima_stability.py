"""Mulayoff, Michaeli, Soudry 2021: what stability of a minimum says about the function.

Theorem 2 is printed with a Delta that is half of what eq. (34) and Lemma 2 give. With a = C sqrt(3 q) these
say lambda <= 2/eta + 2 a sqrt(lambda), hence lambda <= 2/eta + 2 a^2 + 2 a sqrt(a^2 + 2/eta), where eq. (35)
has a^2 + a sqrt(a^2 + 2/eta). Only the larger follows from what is printed; the appendix that
might improve on it is not part of our text.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.arguments import positive_number
from inscape.arrays import Floats
from inscape.errors import TheoryError
from inscape.theory.check import Check, checked_form, compare, only_stated
from inscape.theory.layers import as_shallow
from inscape.univariate import ShallowNet, Stability, gradient_descent, stability, strong_stability
from inscape.univariate.stability.gram import features, toggling
from inscape.univariate.stability.linearised import KNOT_TOLERANCE, modes_of

_PUSH_FROM_MINIMUM = 1e-6
"""How far from the minimum the trial run starts, relative to the size of the parameters."""
_TRIAL_STEPS = 20_000
"""For which a minimum that was left a little is watched."""
_LEFT_BEYOND = 20.0
"""A trial run that ends this many pushes away has left the minimum."""
_EDGE_TOLERANCE = 1e-3
"""Up to which relative difference sharpness is not told apart from 2 / eta."""


def ms_lemma1(
    net: Any, x: npt.ArrayLike, y: npt.ArrayLike, step_size: float, *, form: str = "stated"
) -> Check:
    """Lemma 1: at a linearly stable minimum the sharpness is at most 2 / eta.

    Whether the minimum is stable is not read off its sharpness but tried: gradient descent starts a millionth
    away, along the top eigenvector and a random direction, and must not go further away than twenty times
    that in 20,000 steps. So sharpness within 0.1 % of 2 / eta is not told apart from it.

    Args:
        net: a `ShallowNet`, or a torch module Linear(1, k), ReLU, Linear(k, 1).
        x: places, (n,).
        y: values, (n,).
        step_size: eta.
        form: "stated" is the only one: it holds so.

    >>> net = ShallowNet([1.0, 1.0], [1.5, -0.5], [1.0, -2.0])
    >>> ms_lemma1(net, [-1, 0, 1], net([-1, 0, 1]), 0.25)
    <ms_lemma1 (stated): 6.736 <= 8, holds>
    >>> ms_lemma1(net, [-1, 0, 1], net([-1, 0, 1]), 0.4).unmet
    ('gradient descent stays near the minimum',)
    """
    only_stated("ms_lemma1", form)
    net, measured = _measured(net, x, y, step_size)
    met = _minimum(measured) | {"no knot on a data point": measured.n_knots_on_data == 0}
    if False not in met.values():
        stays = _stays(net, np.asarray(x, dtype=np.float64).reshape(-1), y, step_size)
        met["gradient descent stays near the minimum"] = stays
    return compare(
        "ms_lemma1",
        measured.sharpness,
        measured.limit,
        assumptions=met,
        note=_note(measured),
        tolerance=_EDGE_TOLERANCE,
    )


def ms_lemma2(
    net: Any, x: npt.ArrayLike, y: npt.ArrayLike, step_size: float, *, form: str = "stated"
) -> Check:
    """Lemma 2: at a strongly stable minimum lambda_lower <= 2 / eta + delta.

    q is the top eigenvector of the sharpest mode. The lemma lets one choose the lambda_m of which
    lambda_lower is the least and delta the largest |H_m q - lambda_m q|: here q' H_m q, or that of the
    sharpest mode for all m as in eq. (34), whichever asks for more. gamma is zero at an interpolating
    minimum. Strongly stable is not met where the switching system was seen to go further away, and on trust
    where it was not.

    Args:
        net: as for `ms_lemma1`.
        x: places, (n,).
        y: values, (n,).
        step_size: eta.
        form: "stated" is the only one: it holds so.

    >>> net = ShallowNet([1.0, 1.0], [1.5, -0.5], [1.0, -2.0])
    >>> x = [-1.0, 0.0, 1.0]
    >>> ms_lemma2(net, x, net(x), 0.25)
    <ms_lemma2 (stated): 6.736 <= 8, holds>
    """
    only_stated("ms_lemma2", form)
    net, measured = _measured(net, x, y, step_size)
    met = _minimum(measured)
    if not measured.interpolates:
        return compare("ms_lemma2", np.nan, np.nan, assumptions=met)
    strong = strong_stability(net, x, y, step_size)
    met["strongly stable"] = strong.is_strongly_stable
    choices = {"q'H_m q": (strong.lower, strong.residual), "the largest": (strong.upper, strong.deviation)}
    which, (least, delta) = max(choices.items(), key=lambda choice: choice[1][0] - choice[1][1])
    modes = f"{strong.n_modes} modes{'' if strong.every_mode else ' of more'}"
    note = f"lambda_m is {which}, delta {delta:.4g}, {modes}"
    return compare("ms_lemma2", least, strong.limit + delta, assumptions=met, note=note)


def ms_lemma3(
    net: Any, x: npt.ArrayLike, y: npt.ArrayLike, step_size: float, *, form: str = "stated"
) -> Check:
    """Lemma 3: if every mode has sharpness at most 2 / eta, the minimum is strongly stable.

    Left is the largest growth of the distance that the switching system shows from many starts, right is 1.

    Args:
        net: as for `ms_lemma1`.
        x: places, (n,).
        y: values, (n,).
        step_size: eta.
        form: "stated" is the only one: it holds so.

    >>> net = ShallowNet([1.0, 1.0], [0.0, -1.0], [1.0, -2.0])
    >>> ms_lemma3(net, [-1, 0, 1, 2], net([-1, 0, 1, 2]), 0.1)
    <ms_lemma3 (stated): 1 <= 1, holds>
    """
    only_stated("ms_lemma3", form)
    net, measured = _measured(net, x, y, step_size)
    met = _minimum(measured) | {
        "the sharpness of every mode <= 2 / eta": measured.bracket[1] <= measured.limit
    }
    if False in met.values():
        return compare("ms_lemma3", np.nan, 1.0, assumptions=met, note=_note(measured))
    strong = strong_stability(net, x, y, step_size)
    return compare("ms_lemma3", strong.growth, 1.0, assumptions=met, note=f"{strong.n_modes} modes")


def ms_lemma5(net: Any, x: npt.ArrayLike, y: npt.ArrayLike, *, form: str = "stated") -> Check:
    """Lemma 5, eq. (33): |H_m q - lambda q| <= sqrt(3) C (sqrt lambda + sqrt lambda_m) sqrt(p_max / n).

    q and lambda are the top eigenpair of any mode, lambda_m the sharpness of another, C the largest entry of
    a gradient of f, p_max the most neurons that toggle on one point. The pair of modes with the least slack
    is reported; with the sharpest mode for the first it is eq. (34).

    Args:
        net: as for `ms_lemma1`.
        x: places, (n,).
        y: values, (n,).
        form: "stated" is the only one: it holds so.

    >>> net = ShallowNet([1.0, 1.0], [0.0, -1.0], [1.0, -2.0])  # two knots on data points
    >>> x = [-1.0, 0.0, 1.0, 2.0]
    >>> ms_lemma5(net, x, net(x))
    <ms_lemma5 (stated): 2.652 <= 21.09, holds>
    """
    only_stated("ms_lemma5", form)
    net, measured = _measured(net, x, y, 1.0)
    places = np.asarray(x, dtype=np.float64).reshape(-1)
    modes, every = modes_of(net, places, np.random.default_rng(0))
    phis = [features(net, places, mode) for mode in modes]
    n, c = len(places), max(float(np.abs(phi).max()) for phi in phis)
    p_max = int(toggling(net, places, KNOT_TOLERANCE).sum(axis=1).max())
    tops = [np.linalg.svd(phi, full_matrices=False) for phi in phis]
    roots = np.array([s[0] / np.sqrt(n) for _, s, _ in tops])
    pairs = []
    for (_, _, v), root in zip(tops, roots, strict=True):
        for phi, other in zip(phis, roots, strict=True):
            left = float(np.linalg.norm(phi.T @ (phi @ v[0]) / n - root**2 * v[0]))
            pairs.append((left, float(np.sqrt(3) * c * (root + other) * np.sqrt(p_max / n))))
    worst = min(pairs, key=lambda pair: pair[1] - pair[0])
    met = _minimum(measured) | {"a knot lies on a data point": p_max > 0}
    note = f"C {c:.4g}, p_max {p_max}, {len(modes)} modes{'' if every else ' of more'}"
    return compare("ms_lemma5", *worst, assumptions=met, note=note, scale=float(roots.max() ** 2))


def ms_lemma4(net: Any, x: npt.ArrayLike, y: npt.ArrayLike, *, form: str = "stated") -> Check:
    """Lemma 4: 1 + 2 int |f''| g is at most the sharpness of every implementation of f.

    Right is the flattest implementation over rescalings of the neurons, certified to a relative gap of 1e-9;
    the paper's minimum, over all networks that compute f, may be smaller still.

    Args:
        net: as for `ms_lemma1`.
        x: places, (n,).
        y: values, (n,).
        form: "stated" is the only one: it holds so.

    >>> net = ShallowNet([1.0, 1.0], [1.5, -0.5], [1.0, -2.0])
    >>> x = [-1.0, 0.0, 1.0]
    >>> ms_lemma4(net, x, net(x))
    <ms_lemma4 (stated): 1.314 <= 4.797, holds>
    """
    only_stated("ms_lemma4", form)
    net, measured = _measured(net, x, y, 1.0)
    met = _minimum(measured) | {"no knot on a data point": measured.n_knots_on_data == 0}
    note = f"sharpness {measured.sharpness:.4g}"
    return compare("ms_lemma4", measured.lower_bound, measured.flattest, assumptions=met, note=note)


def ms_theorem1(
    net: Any, x: npt.ArrayLike, y: npt.ArrayLike, step_size: float, *, form: str = "stated"
) -> Check:
    """Theorem 1: int |f''| g <= 1/eta - 1/2 at a twice differentiable stable solution.

    Stable is taken as sharpness <= 2 / eta, which for gradient descent is the same.

    Args:
        net: as for `ms_lemma1`.
        x: places, (n,).
        y: values, (n,).
        step_size: eta.
        form: "stated" is the only one: it holds so.

    >>> net = ShallowNet([1.0, 1.0], [1.5, -0.5], [1.0, -2.0])
    >>> x = [-1.0, 0.0, 1.0]
    >>> ms_theorem1(net, x, net(x), 0.25)
    <ms_theorem1 (stated): 0.1571 <= 3.5, holds>
    """
    only_stated("ms_theorem1", form)
    net, measured = _measured(net, x, y, step_size)
    met = _minimum(measured) | {
        "no knot on a data point": measured.n_knots_on_data == 0,
        "sharpness <= 2 / eta": measured.sharpness <= measured.limit * (1 + _EDGE_TOLERANCE),
    }
    rhs = measured.limit / 2 - 0.5
    return compare(
        "ms_theorem1",
        measured.roughness,
        rhs,
        assumptions=met,
        note=_note(measured),
        tolerance=_EDGE_TOLERANCE,
        scale=measured.limit,
    )


def ms_theorem2(
    net: Any, x: npt.ArrayLike, y: npt.ArrayLike, step_size: float, *, form: str = "corrected"
) -> Check:
    """Theorem 2: int |f''| g <= 1/eta - 1/2 + Delta at a strongly stable solution, knots on data or not.

    Strongly stable is met if the sharpness of every mode is at most 2 / eta (Lemma 3); between that and the
    bound of eq. (36) it is taken on trust.

    Args:
        net: as for `ms_lemma1`.
        x: places, (n,).
        y: values, (n,).
        step_size: eta.
        form: "stated" with the Delta of eq. (25); "corrected" with twice that (see the module).

    >>> net = ShallowNet([1.0, 1.0], [0.0, -1.0], [1.0, -2.0])  # two knots on data points
    >>> x = [-1.0, 0.0, 1.0, 2.0]
    >>> ms_theorem2(net, x, net(x), 0.1)
    <ms_theorem2 (corrected): 0.3679 <= 72.12, holds>
    """
    corrected = checked_form(form)
    net, measured = _measured(net, x, y, step_size)
    top = measured.bracket[1]
    strongly = (
        True
        if top <= measured.limit * (1 + _EDGE_TOLERANCE)
        else (False if top > measured.limit_on_data else None)
    )
    met = _minimum(measured) | {"strongly stable": strongly}
    delta = measured.delta if corrected else measured.delta_stated
    rhs = measured.limit / 2 - 0.5 + delta
    note = f"Delta {delta:.4g}, {measured.n_knots_on_data} knots on data points; {_note(measured)}"
    return compare(
        "ms_theorem2",
        measured.roughness,
        rhs,
        form=form,
        assumptions=met,
        note=note,
        tolerance=_EDGE_TOLERANCE,
        scale=measured.limit,
    )


def _measured(net: Any, x: npt.ArrayLike, y: npt.ArrayLike, step_size: float) -> tuple[ShallowNet, Stability]:
    shallow = as_shallow(net)
    return shallow, stability(shallow, x, y, positive_number(step_size, "step_size", TheoryError))


def _minimum(measured: Stability) -> dict[str, bool | None]:
    return {"the net interpolates": measured.interpolates}


def _note(measured: Stability) -> str:
    top, least = measured.sharpness, measured.flattest
    return f"sharpness {top:.4g}, flattest {least:.4g}, 2 / eta = {measured.limit:.4g}"


def _stays(net: ShallowNet, x: Floats, y: npt.ArrayLike, step_size: float) -> bool:
    """Whether gradient descent from close by stays close by."""
    phi = features(net, x)
    push = np.linalg.svd(phi, full_matrices=False)[2][0]
    push = push + 0.1 * np.random.default_rng(0).standard_normal(len(push)) / np.sqrt(len(push))
    centre = np.concatenate([net.w, net.b, net.v, [net.c]])
    push *= _PUSH_FROM_MINIMUM * (1 + np.linalg.norm(centre)) / np.linalg.norm(push)
    k = net.width
    near = centre + push
    start = ShallowNet(near[:k], near[k : 2 * k], near[2 * k : 3 * k], near[3 * k])
    run = gradient_descent(start, x, y, step_size, _TRIAL_STEPS, tolerance=0.0, record=_TRIAL_STEPS)
    end = np.concatenate([run.net.w, run.net.b, run.net.v, [run.net.c]])
    return run.status.kind != "diverged" and bool(
        np.linalg.norm(end - centre) <= _LEFT_BEYOND * np.linalg.norm(push)
    )
