"""Old spellings of arguments warn and mean what the new ones do; every warning points to the caller."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from syntax import forget, nodes_of

import inscape
from inscape.arguments import in_new_spelling, renamed
from inscape.errors import InscapeError, InscapeWarning, MeasureError
from inscape.theory import el_corollary51, el_theorem23, el_theorem42, margin_kkt
from inscape.training import Recipe, build, mlp, train
from inscape.training.data import split_data
from inscape.training.fitting import classical, fit, fit_many
from inscape.training.many import train_many
from inscape.univariate import (
    ShallowNet,
    gradient_descent,
    gradient_flow,
    kkt_residual,
    limit_regions,
    stability,
)

NET = mlp(2, (4,), 2, random_state=0).double()
X = np.random.default_rng(0).normal(size=(6, 2))
Y = np.arange(6) % 2
ONCE = {"sigma": 0.3, "n_noise": 2, "random_state": 0}
PATCH = inscape.Patch([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
START = ShallowNet([0.0, 0.0], [1.0, 0.0], [1.0, 0.0])
VALLEY = ShallowNet([1.0, -1.0], [1.0, 1.0], [1.0, 0.5])
TREE = {"model": "tree", "max_depth": 2}
DIGITS = split_data("digits", n_train=20, n_test=20)


def complexity(**settings):
    return inscape.local_complexity(NET, X, **ONCE, **settings).to_dict()


def one_map(**settings):
    return inscape.density_map(NET, PATCH, 3, **ONCE, **settings).to_dict()


def weights(make):
    return lambda **settings: [w.tolist() for w in make(**settings).parameters()]


def table(**settings):
    rows = inscape.measure(NET, X, measures={"local_complexity": settings}, random_state=0).rows
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def trained(**settings):
    return train(mlp(2, (3,), 2, random_state=0), X, Y, Recipe(0.1, 2, 2), **settings).losses


def trained_together(**settings):
    [history] = train_many([mlp(2, (3,), 2, random_state=0)], X, Y, [Recipe(0.1, 2, 2)], **settings)
    return history.losses


def curvature(**settings):
    return inscape.sharpness(NET, X, Y, method="lanczos", random_state=0, **settings).to_dict()


def descent(**settings):
    return gradient_descent(START, [-4, 4], [1, 1], 0.1, 50, **settings).to_dict()


def flow(**settings):
    return gradient_flow(START, [-4, 4], [1, 1], max_steps=50, **settings).to_dict()


def flows(**settings):
    how = {"sigma_hidden": 1.0, "sigma_output": 0.1, "max_steps": 20}
    return el_theorem23(VALLEY, [-4.0, 4.0], [1, 1], VALLEY, **how, **settings).to_dict()


def of_two_points(function, *more, on_rows=False):
    x = np.array([-4.0, 4.0])
    return lambda **settings: function(
        VALLEY, x[:, None] if on_rows else x, [1, 1], *more, **settings
    ).to_dict()


SPELLINGS = {
    "local_complexity n_probes": (complexity, {"n_probes": 5}, {"n_directions": 5}),
    "local_complexity with_density": (complexity, {"with_density": False}, {"form": "norms"}),
    "local_complexity with_density as it was": (complexity, {"with_density": True}, {}),
    "local_complexity estimator": (complexity, {"estimator": "authors"}, {"form": "authors"}),
    "local_complexity with_density and estimator": (
        complexity,
        {"with_density": False, "estimator": "theorem"},
        {"form": "norms"},
    ),
    "density_map with_density": (one_map, {"with_density": False}, {"form": "norms"}),
    "density_map estimator": (one_map, {"estimator": "authors"}, {"form": "authors"}),
    "local_complexity n_probes of measure": (table, {"n_probes": 5}, {"n_directions": 5}),
    "sharpness tol": (curvature, {"tol": 1e-3}, {"tolerance": 1e-3}),
    "gradient_descent tol": (descent, {"tol": 0.5}, {"tolerance": 0.5}),
    "gradient_flow tol": (flow, {"tol": 0.5}, {"tolerance": 0.5}),
    "gradient_flow step_tol": (flow, {"step_tol": 1e-3}, {"step_tolerance": 1e-3}),
    "kkt_residual active_tol": (of_two_points(kkt_residual), {"active_tol": 0.5}, {"active_tolerance": 0.5}),
    "kkt_residual kink_tol": (of_two_points(kkt_residual), {"kink_tol": 0.1}, {"kink_tolerance": 0.1}),
    "limit_regions active_tol": (
        of_two_points(limit_regions),
        {"active_tol": 0.5},
        {"active_tolerance": 0.5},
    ),
    "limit_regions kink_tol": (of_two_points(limit_regions), {"kink_tol": 0.1}, {"kink_tolerance": 0.1}),
    "stability knot_tol": (of_two_points(stability, 0.1), {"knot_tol": 0.1}, {"knot_tolerance": 0.1}),
    "stability fit_tol": (of_two_points(stability, 0.1), {"fit_tol": 0.1}, {"fit_tolerance": 0.1}),
    "n_linear_regions merge_tol": (VALLEY.n_linear_regions, {"merge_tol": 100.0}, {"merge_tolerance": 100.0}),
    "n_linear_regions jump_tol": (VALLEY.n_linear_regions, {"jump_tol": 2.0}, {"jump_tolerance": 2.0}),
    "region_table merge_tols": (
        lambda **tolerances: VALLEY.region_table(**tolerances).to_dict(),
        {"merge_tols": [0.1, 100.0]},
        {"merge_tolerances": [0.1, 100.0]},
    ),
    "region_table jump_tols": (
        lambda **tolerances: VALLEY.region_table(**tolerances).to_dict(),
        {"jump_tols": [0.1, 2.0]},
        {"jump_tolerances": [0.1, 2.0]},
    ),
    "el_theorem42 kkt_tol": (of_two_points(el_theorem42), {"kkt_tol": 10.0}, {"kkt_tolerance": 10.0}),
    "el_corollary51 kkt_tol": (
        of_two_points(el_corollary51, VALLEY),
        {"kkt_tol": 10.0},
        {"kkt_tolerance": 10.0},
    ),
    "el_theorem23 kkt_tol": (flows, {"kkt_tol": 10.0}, {"kkt_tolerance": 10.0}),
    "margin_kkt active_tol": (
        of_two_points(margin_kkt, on_rows=True),
        {"active_tol": 0.5},
        {"active_tolerance": 0.5},
    ),
    "train seed": (trained, {"seed": 3}, {"random_state": 3}),
    "fit seed": (lambda **s: fit(TREE, DIGITS, **s).model.fingerprint(), {"seed": 3}, {"random_state": 3}),
    "fit_many seeds": (
        lambda **s: [f.model.fingerprint() for f in fit_many([TREE], DIGITS, **s)],
        {"seeds": [3]},
        {"random_states": [3]},
    ),
    "classical seed": (lambda **s: repr(classical("tree", {}, **s)), {"seed": 3}, {"random_state": 3}),
    "mlp seed": (weights(lambda **s: mlp(2, (3,), 2, **s)), {"seed": 3}, {"random_state": 3}),
    "build seed": (
        weights(lambda **s: build("cnn", (1, 8, 8), 2, width=0.1, **s)),
        {"seed": 3},
        {"random_state": 3},
    ),
    "train_many seeds": (trained_together, {"seeds": [3]}, {"random_states": [3]}),
}


def old_spellings():
    """The functions of the package that take an old argument, and that argument."""
    for path in Path(inscape.__file__).parent.rglob("*.py"):
        for function in nodes_of(path):
            for call in getattr(function, "decorator_list", ()):
                name = getattr(getattr(call, "func", None), "id", "")
                if name == "renamed":
                    yield from ((function.name, keyword.arg) for keyword in call.keywords)
                elif name == "superseded":
                    yield from ((function.name, old.value) for old in call.args)
    forget()


def test_every_old_spelling_is_tried():
    assert {tuple(name.split()[:2]) for name in SPELLINGS} == set(old_spellings())


@pytest.mark.parametrize("name", SPELLINGS)
def test_an_old_spelling_warns_and_gives_the_same(name):
    function, old, new = SPELLINGS[name]
    with pytest.warns(DeprecationWarning, match=f"^{name.split()[0]}: {next(iter(old))}=.* is now ") as seen:
        before = function(**old)
    assert {w.filename for w in seen} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert function(**new) == before


def test_both_spellings_at_once_are_an_error():
    with pytest.raises(InscapeError, match="tol= is the old spelling of tolerance=: give tolerance= alone"):
        inscape.sharpness(NET, X, Y, tol=1e-3, tolerance=1e-3)
    with pytest.raises(MeasureError, match="exclude each other"):
        complexity(estimator="authors", with_density=False)


def test_a_generator_draws_initial_weights_anew():
    rng = np.random.default_rng(0)
    first, second = (mlp(2, (3,), 2, random_state=rng)[1].weight for _ in range(2))
    assert not torch.equal(first, second)


def test_the_signature_is_that_of_today():
    @renamed(a="b")
    @renamed(c="d")
    def add(b, d=1):
        return b + d

    assert in_new_spelling(add, {"b": 1}) == {"b": 1}
    with pytest.warns(DeprecationWarning, match="add: ") as seen:
        assert add(a=1, c=2) == 3
    assert [str(w.message) for w in seen] == ["add: c= is now d=", "add: a= is now b="]
    with pytest.raises(TypeError, match="unexpected"):
        add(e=1)


def test_a_warning_points_to_the_line_that_called_us():
    """However deep inside the package it is raised."""
    x, rng = np.array([[0.0], [1.0]]), np.random.default_rng(0)
    with pytest.warns(InscapeWarning, match="everywhere on the probes") as caught:
        inscape.region_count(lambda x: np.zeros(len(x), dtype=int), x, n_probes=3, random_state=0)
    with pytest.warns(InscapeWarning, match="not deterministic") as other:
        inscape.decision_regions(lambda x: rng.integers(2, size=len(x)), inscape.Segment([0.0], [1.0]))
    assert {w.filename for w in (*caught, *other)} == {__file__}
