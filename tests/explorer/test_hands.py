"""Hands on the page: dropping, dragging, pinching, sweeping, playing, cancelling; and pages of all sizes."""

import base64
import copy
import math
import time
from io import BytesIO

import numpy as np
import pytest
import torch
from explored import images, moons, network
from explored_page import CHROMIUM, PHONE, VIEWER, header, patch_of, pixel_of, place_at, settled, until
from PIL import Image
from torch import nn

import inscape
from inscape import decision_regions

pytest.importorskip("starlette")
pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"), pytest.mark.slow]


def drawn(page):
    """The pixels of the picture, without what lies over it."""
    url = page.evaluate(f"{VIEWER}.stages[0].base.toDataURL()")
    return np.asarray(Image.open(BytesIO(base64.b64decode(url.split(",")[1]))))


def n_regions_on(rows, found, net=None):
    return decision_regions(net or network(0), patch_of(images()[0], rows, found["window"])).n_regions


def test_a_point_is_dropped_onto_a_corner(opened, shown):
    page = opened(shown.url)
    box = page.locator(".surface").first.bounding_box()
    x, y = pixel_of(page, page.evaluate(f"{VIEWER}.corners[1]"))
    position = {"x": x - box["x"] + 6, "y": y - box["y"] - 4}
    page.drag_and_drop("button[data-row='9']", ".surface >> nth=0", target_position=position)
    until(page, f"{VIEWER}.state.plane.frame[1][0][0] === 9")
    settled(page)
    assert page.evaluate(f"{VIEWER}.state.plane.frame") == [[[0, 1]], [[9, 1]], [[2, 1]]]
    assert header(page)["n_regions"] == n_regions_on((0, 9, 2), header(page))
    before = page.evaluate(f"JSON.stringify({VIEWER}.state.plane)")
    away = {"x": 12, "y": 12}
    page.drag_and_drop("button[data-row='5']", ".surface >> nth=0", target_position=away)
    assert page.evaluate(f"JSON.stringify({VIEWER}.state.plane)") == before


def test_two_fingers_zoom_and_one_pans(opened, shown):
    page = opened(shown.url, PHONE)
    box = page.locator(".surface").first.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    before, unit = page.evaluate(f"{VIEWER}.camera.window()"), page.evaluate(f"{VIEWER}.camera.unit[0]")
    touch = page.context.new_cdp_session(page)

    def fingers(kind, *places):
        points = [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(places)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    at = place_at(page, *middle)
    fingers("touchStart", (middle[0] - 30, middle[1]), (middle[0] + 30, middle[1]))
    for reach in (45, 60, 75, 90):
        fingers("touchMove", (middle[0] - reach, middle[1]), (middle[0] + reach, middle[1]))
    fingers("touchEnd")
    settled(page)
    assert page.evaluate(f"{VIEWER}.camera.unit[0]") == pytest.approx(unit / 3, rel=0.02)
    np.testing.assert_allclose(place_at(page, *middle), at, atol=3 * unit)
    assert page.evaluate(f"{VIEWER}.state.pins.length") == 0
    found = header(page)
    assert found["window"][1] - found["window"][0] < 0.6 * (before[1] - before[0])
    assert found["n_regions"] == n_regions_on((0, 1, 2), found)
    start = page.evaluate(f"{VIEWER}.camera.centre")
    fingers("touchStart", (middle[0] + 20, middle[1] + 90))
    for step in (10, 20, 30, 40):
        fingers("touchMove", (middle[0] + 20 - step, middle[1] + 90))
    fingers("touchEnd")
    settled(page)
    assert page.evaluate(f"{VIEWER}.camera.centre[0]") == pytest.approx(
        start[0] + 40 * page.evaluate(f"{VIEWER}.camera.unit[0]"), abs=unit
    )


def test_a_sweep_moves_one_corner_towards_a_row(opened, shown):
    page = opened(shown.url)
    page.fill("input[aria-label='row to move towards']", "17")
    page.locator("input[aria-label='row to move towards']").press("Enter")
    slider = page.locator("input[aria-label='how far']")
    slider.evaluate("(e) => { e.value = '0.25'; e.dispatchEvent(new Event('input')); }")
    until(page, f"{VIEWER}.state.plane.frame[2].length === 2")
    settled(page)
    assert page.evaluate(f"{VIEWER}.state.plane.frame[2]") == [[2, 0.75], [17, 0.25]]
    x = images()[0]
    points = np.stack([x[0], x[1], 0.75 * x[2] + 0.25 * x[17]])
    assert (
        header(page)["n_regions"]
        == decision_regions(network(0), patch_of(points, (0, 1, 2), header(page)["window"])).n_regions
    )
    slider.evaluate("(e) => { e.value = '1'; e.dispatchEvent(new Event('input')); }")
    until(page, f"{VIEWER}.state.plane.frame[2][0][0] === 17")
    settled(page)
    assert header(page)["n_regions"] == n_regions_on((0, 1, 17), header(page))


@pytest.fixture(scope="module")
def training():
    """Four steps; in the second the scores are twice as large, so that no pattern and no label changes."""
    x, y = images()
    monitor = inscape.Monitor(x, y, measures=["margin"], every=1, keep_models=True)
    first = network(0)
    second = copy.deepcopy(first)
    second[-1].weight.mul_(2.0)
    second[-1].bias.mul_(2.0)
    for step, net in enumerate((first, second, network(1), network(2))):
        monitor.step(net, step)
    explorer = inscape.explore(monitor, x, y, rows=(0, 1, 2))
    explorer.exhibit.warm()
    with explorer:
        yield explorer


def test_checkpoints_play_and_patterns_keep_their_colours(opened, training):
    page = opened(training.url + "#fill=pattern&show=")
    slider = page.locator("input[aria-label=checkpoint]")
    assert page.evaluate(f"{VIEWER}.state.model") == 3

    def at(step):
        slider.evaluate(f"(e) => {{ e.value = '{step}'; e.dispatchEvent(new Event('input')); }}")
        until(page, f"{VIEWER}.stages[0].message.header.model === {step}")
        settled(page)
        return drawn(page)

    first, second, third = at(0), at(1), at(2)
    assert np.array_equal(first, second)
    assert not np.array_equal(first, third)
    assert page.locator(".timeline output").inner_text() == "step 2"
    page.click("button[aria-label=play]")
    for step in (3, 0, 1):
        until(page, f"{VIEWER}.state.model === {step}")
    page.click("button[aria-label=pause]")
    stopped = page.evaluate(f"{VIEWER}.state.model")
    page.wait_for_timeout(900)
    assert page.evaluate(f"{VIEWER}.state.model") == stopped
    settled(page)
    nets = (network(0), network(0), network(1), network(2))
    assert header(page)["n_regions"] == n_regions_on((0, 1, 2), header(page), nets[stopped])


def test_slow_work_is_announced_and_can_be_cancelled(opened):
    pause = [0.0]

    def model(x):
        time.sleep(pause[0])
        return np.c_[np.sin(3 * x[:, 0]) - x[:, 1], x[:, 1]]

    with inscape.explore(model, *moons()) as explorer:
        page = opened(explorer.url)
        pause[0] = 0.4
        page.locator(".surface").first.focus()
        page.keyboard.press("-")
        page.wait_for_selector(".progress:not([hidden])")
        assert page.locator(".badge").first.get_attribute("data-kind") in ("coarse", "adaptive")
        page.click(".progress button")
        assert "cancelled" in page.locator(".badge").first.inner_text()
        pause[0] = 0.0
        page.keyboard.press("-")
        page.wait_for_selector(".stage:first-child .badge[data-kind=adaptive]")
        settled(page)
        assert page.locator(".progress").first.is_hidden()
        page.close()


@pytest.mark.parametrize("size", [(3840, 2160), (1440, 900), (390, 844)])
def test_the_page_fits_screens_of_all_sizes(opened, shown, size):
    page = opened(shown.url, {"viewport": {"width": size[0], "height": size[1]}})
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    surface = page.locator(".surface").first.bounding_box()
    assert surface["width"] * surface["height"] > 0.35 * size[0] * size[1]
    font = float(page.evaluate("getComputedStyle(document.querySelector('.badge')).fontSize")[:-2])
    assert 13 <= font <= 24
    assert font >= size[0] / 180
    for part in page.locator(".top > *:visible, .stage footer:visible, .zooms:visible").all():
        box = part.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= size[0] + 0.5


def test_three_hundred_thousand_regions_move_without_being_drawn_anew(opened):
    h = 800
    slopes = np.random.default_rng(0).uniform(
        -1, 1, h
    )  # tangents of a parabola: all meet, no three in a point
    net = nn.Sequential(nn.Linear(2, h), nn.ReLU(), nn.Linear(h, 3)).double()
    with torch.no_grad():
        net[0].weight[:] = torch.from_numpy(np.stack([slopes, -np.ones(h)], axis=1))
        net[0].bias[:] = torch.from_numpy(-slopes * slopes)
    corners = np.array([[-2.5, -2.5], [2.5, 2.5], [-2.5, 2.5], [2.5, -2.5]])
    with inscape.explore(net, corners) as explorer:
        page = opened(explorer.url + "#show=edges", expect=("GPU stall",))
        found = header(page)
        assert found["n_faces"] >= 1 + h + math.comb(h, 2)
        assert f"{found['n_faces']:,} linear regions" in page.locator(".badge").first.inner_text()
        assert page.evaluate(f"{VIEWER}.stages[0].painter.isMany")
        before = drawn(page)
        page.evaluate(f"window.sheet = {VIEWER}.stages[0].painter.drawn")
        box = page.locator(".surface").first.bounding_box()
        x, y = box["x"] + 300, box["y"] + 300
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x - 20, y, steps=10)
        assert page.evaluate(f"{VIEWER}.stages[0].painter.drawn === window.sheet")
        page.mouse.up()
        settled(page)
        after = drawn(page)
        assert np.array_equal(before[100:-100, 120:-100], after[100:-100, 100:-120])
        page.close()


def test_names_stand_whole_inside_the_picture_off_buttons_images_points_and_each_other(opened):
    """On a phone a long name was cut at the edge, lay under the buttons, or on another."""
    names = [
        "agricultural tractor",
        "bird of paradise",
        "a name so long that no telephone has the width to show it",
    ]
    with inscape.explore(network(0), *images(), class_names=names, rows=(0, 1, 2)) as explorer:
        page = opened(explorer.url, PHONE)
        stage = f"{VIEWER}.stages[0]"
        place = f"{VIEWER}.camera.toPixels(n.at)"
        shown = page.evaluate(f"{stage}.names().map((n) => ({{ text: n.text, half: n.half, at: {place} }}))")
        width, height = page.evaluate(f"{VIEWER}.camera.size")
        thumbnails = page.evaluate(f"{stage}.thumbnailBoxes()")
        dots = page.evaluate(f"{stage}.dots()")
        picture, buttons = (page.locator(s).first.bounding_box() for s in (".surface", ".zooms"))
    assert len(shown) >= 2
    assert len(dots) > 5
    boxes = [(*name["at"], *name["half"]) for name in shown]
    for x, y, w, h in boxes:
        assert w < x < width - w
        assert h < y < height - h
    left, top = buttons["x"] - picture["x"], buttons["y"] - picture["y"]
    w, h = buttons["width"] / 2, buttons["height"] / 2
    boxes += [(left + w, top + h, w, h)] + [(b["x"], b["y"], *b["half"]) for b in thumbnails]
    boxes += [(dot["x"], dot["y"], dot["radius"], dot["radius"]) for dot in dots]
    for k, (x, y, w, h) in enumerate(boxes[: len(shown)]):
        for x2, y2, w2, h2 in boxes[k + 1 :]:
            assert abs(x - x2) > w + w2 or abs(y - y2) > h + h2
    assert all(name["text"] in names or "…" in name["text"] for name in shown)
