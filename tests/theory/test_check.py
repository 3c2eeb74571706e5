"""Verdicts of checks, and the table of statements."""

import json
import math

import numpy as np
import pytest

import inscape
from inscape.theory import Check
from inscape.theory.check import compare, compare_means, inapplicable


def test_every_named_statement_exists_and_is_documented():
    names = """rc_theorem5 rc_lemma7 rc_lemma8 rc_theorem6 el_theorem42 el_theorem31 el_theorem32
    el_theorem23 el_breakpoints el_pl_condition
    el_corollary51 el_example1 lc_corollary3_upper lc_corollary3_lower lc_theorem5_upper lc_theorem5_lower
    lc_corollary14 lc_proposition6 lc_theorem7 lc_proposition8 lc_proposition9 lc_corollary10 lc_proposition17
    ms_lemma1 ms_lemma4 ms_theorem1 ms_theorem2 survey Check"""
    for name in names.split():
        assert getattr(inscape.theory, name).__doc__, name
        assert name in inscape.theory.__all__


@pytest.mark.parametrize(
    ("lhs", "rhs", "more", "verdict"),
    [
        (1.0, 2.0, {}, "holds"),
        (2.0, 2.0 * (1 - 1e-12), {}, "holds"),
        (1.0, 1e4, {}, "vacuous"),
        (-1.0, 1.0, {}, "vacuous"),
        (0.2, 3.0, {"trivial": 1.0}, "vacuous"),
        (0.2, math.inf, {}, "vacuous"),
        (2.0, 1.0, {}, "violated"),
        (2.0, 1.0, {"interval": (-1.5, -0.5)}, "violated"),
        (2.0, 1.0, {"interval": (-2.5, 0.5)}, "undecided"),
        (2.0, 1.0, {"assumptions": {"a": True, "b": None}}, "violated"),
        (1.0, 2.0, {"assumptions": {"a": False}}, "does not apply"),
        (math.nan, 2.0, {}, "does not apply"),
        (0.0, 0.0, {}, "holds"),
        (math.inf, math.inf, {}, "vacuous"),
        (1e-20, 0.0, {"scale": 1.0}, "holds"),
    ],
)
def test_verdicts(lhs, rhs, more, verdict):
    check = compare("name", lhs, rhs, **more)
    assert check.verdict == verdict
    assert check.holds == {"holds": True, "vacuous": True, "violated": False}.get(verdict)
    assert verdict in repr(check)
    assert json.loads(json.dumps(check.to_dict(), allow_nan=False))["verdict"] == verdict


def test_a_check_does_not_change():
    check = compare("name", 1.0, 2.0)
    assert (check.slack, check.ratio, check.form) == (1.0, 2.0, "stated")
    with pytest.raises(AttributeError):
        check.lhs = 3.0
    with pytest.raises(TypeError):
        Check("name", 1.0, 2.0, True, 1.0, "stated", {}, "")


def test_reasons_are_kept():
    check = inapplicable("name", "two classes")
    assert (check.unmet, check.holds) == (("two classes",), None)
    with pytest.raises(inscape.InscapeError, match="unknown form 'state'"):
        compare("name", 1.0, 2.0, form="state")


def test_the_jackknife_of_a_mean_is_its_standard_error(rng):
    a, b = rng.normal(size=(2, 50))
    check = compare_means("name", {"a": a, "b": b}, lambda mean: (mean.a, 2 * mean.b))
    from inscape.measures.measurement import mean_with_error

    assert check.interval == pytest.approx(mean_with_error(2 * b - a)[2])


def test_intervals_cover(rng):
    # lhs = rhs in truth: sqrt of the mean square of normal numbers is 1
    table = rng.normal(size=(300, 40)) ** 2
    checks = [compare_means("name", {"a": row}, lambda mean: (1.0, np.sqrt(mean.a))) for row in table]
    covered = np.mean([c.interval[0] <= 0 <= c.interval[1] for c in checks])
    assert 0.88 <= covered <= 0.99
    assert np.mean([c.holds is False for c in checks]) < 0.07
