"""Boxes and balls: what is in them, what is refused, and the way to JSON and back."""

import json

import numpy as np
import pytest

import inscape
from inscape.errors import ProbeError
from inscape.probes import Body


def test_a_box_is_between_its_corners():
    box = inscape.Box([[0, 1], [2, 3]], 5)
    assert (box.dim, box.input_shape, box.volume) == (4, (2, 2), 5 * 4 * 3 * 2)
    assert box.centre.tolist() == [[2.5, 3.0], [3.5, 4.0]]
    assert box.contains([box.low, box.high, box.high + 1e-9]).tolist() == [True, True, False]


def test_a_ball_is_around_its_centre():
    ball = inscape.Ball([1.0, 0.0, 0.0], 2)
    assert ball.half_widths.tolist() == [2.0, 2.0, 2.0]
    assert ball.contains([[3.0, 0.0, 0.0], [2.9, 0.9, 0.0]]).tolist() == [True, False]


@pytest.mark.parametrize("body", [inscape.Box([0.0, 0.0], [1.0, 3.0]), inscape.Ball([0.5, 0.5], 0.7)])
def test_random_points_fill_a_body(body):
    rng = np.random.default_rng(0)
    points = np.array([body.sample(rng) for _ in range(4000)])
    assert body.contains(points).all()
    assert points.mean(axis=0) == pytest.approx(body.centre, abs=0.06)
    far = np.abs(points - body.centre).max(axis=0)
    assert far == pytest.approx(body.half_widths, rel=0.05)


@pytest.mark.parametrize("body", [inscape.Box([0.0, 0.0], [1.0, 3.0]), inscape.Ball([0.5, 0.5], 0.7)])
def test_bodies_are_written_and_read(body):
    data = json.loads(json.dumps(body.to_dict()))
    for again in (Body.from_dict(data), type(body).from_dict(data)):
        assert type(again) is type(body)
        assert again.to_dict() == body.to_dict()
    with pytest.raises(ProbeError, match="not a ball or box"):
        Body.from_dict({"kind": "cube"})


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: inscape.Box([0, 1], [1, 1]), r"above low along every axis, it is not at index \[1\]"),
        (lambda: inscape.Box([0, 1], [1, 1, 1]), "one shape"),
        (lambda: inscape.Box([0, np.nan], 1), "NaN"),
        (lambda: inscape.Ball([0, 1], 0), "radius=0 must be a positive number"),
        (lambda: inscape.Ball([0, 1], True), "radius=True"),
    ],
)
def test_what_is_no_body(build, words):
    with pytest.raises(ProbeError, match=words):
        build()
