"""The rule by which all studies judge a claim."""

import math

import pytest

from inscape.errors import StudyError
from inscape.reports.findings import NO_VARIATION, Finding, Summary, Verdict, all_of, judge


@pytest.mark.parametrize(
    ("interval", "published", "variation", "verdict"),
    [
        ((0.2, 0.9), 0.95, 0.5, "held"),  # a positive interval that reaches a strong correlation is a result
        ((-0.4, 0.4), 0.95, 3.0, "did not hold"),
        ((-0.4, 0.4), 0.3, 3.0, "cannot be said"),  # the published effect is inside the interval
        ((-0.4, 0.4), 0.95, 0.9, NO_VARIATION),
        ((-0.4, 0.4), 0.95, None, "cannot be said"),  # without repeated seeds a failure may be noise
        ((-0.4, 0.7), 0.95, 3.0, "cannot be said"),
        ((0.1, 0.4), 0.95, 3.0, "did not hold"),  # a weak one where a strong one is claimed
        ((math.nan, math.nan), 0.95, 3.0, "cannot be said"),
    ],
)
def test_a_failure_needs_power(interval, published, variation, verdict):
    found = judge(interval, strong=0.5, published=published, variation=variation)
    assert Finding(holds=found.holds, evidence="", unsaid=found.unsaid).verdict == verdict


def test_a_claim_of_a_sign_needs_no_published_number():
    assert [judge(ends).holds for ends in ((0.1, 0.2), (-0.2, -0.1), (-0.1, 0.1))] == [True, False, None]


def test_all_of_several():
    held, failed, unsaid = Verdict(holds=True), Verdict(holds=False), Verdict(holds=None)
    still = Verdict(holds=None, unsaid=NO_VARIATION)
    assert all_of([held, held]) == held
    assert all_of([held, still, failed]) == failed
    assert all_of([held, still]) == still
    assert all_of([still, unsaid]) == unsaid
    assert all_of([]) == unsaid


@pytest.mark.parametrize("name", ["figures", "limits"])
def test_one_text_in_place_of_a_list_is_refused(name):
    with pytest.raises(StudyError, match=f"{name}='late.png' is one text: give a list"):
        Summary(**{name: "late.png"})
