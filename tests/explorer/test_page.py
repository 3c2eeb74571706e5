"""The explorer in a browser: what it draws and says is what the library and the model say."""

import json

import numpy as np
import pytest
import torch
from explored import images, moons, network
from explored_page import CHROMIUM, NAMES, PHONE, VIEWER, header, patch_of, pixel_of, place_at, settled, until

import inscape
from inscape import Patch, Segment, decision_regions, linear_regions

pytest.importorskip("starlette")
pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"), pytest.mark.slow]


def test_the_page_shows_the_first_plane(opened, shown):
    page = opened(shown.url)
    found = header(page)
    regions = decision_regions(network(0), patch_of(images()[0], (0, 1, 2), found["window"]))
    assert found["n_regions"] == regions.n_regions
    badge = page.locator(".badge").first.inner_text()
    assert badge.startswith("exact")
    assert f"{regions.n_regions} decision region" in badge
    assert f"{regions.subdivision.planar.n_faces:,} linear regions" in badge
    assert NAMES[1] in page.locator(".strip").inner_text()


def test_three_clicks_span_a_plane(opened, shown):
    page = opened(shown.url)
    for row in (5, 11, 20):
        page.click(f"button[data-row='{row}']")
    until(page, f"{VIEWER}.state.plane.frame[0][0][0] === 5")
    settled(page)
    found = header(page)
    regions = decision_regions(network(0), patch_of(images()[0], (5, 11, 20), found["window"]))
    assert found["n_regions"] == regions.n_regions
    areas = page.evaluate(f"[...{VIEWER}.stages[0].message.arrays.region_areas]")
    np.testing.assert_allclose(areas, regions.areas, rtol=1e-4)
    page.focus("button[data-row='30']")
    page.keyboard.press("2")
    until(page, f"{VIEWER}.state.plane.frame[1][0][0] === 30")
    settled(page)
    regions = decision_regions(network(0), patch_of(images()[0], (5, 30, 20), header(page)["window"]))
    assert header(page)["n_regions"] == regions.n_regions


def test_pixels_have_the_colours_of_the_palette(opened, shown):
    page = opened(shown.url + "#fill=decision&show=")
    found = header(page)
    regions = decision_regions(network(0), patch_of(images()[0], (0, 1, 2), found["window"]))
    planar = regions.subdivision.planar
    areas, middles = planar.areas(), planar.centroids()
    colours = {c["label"]: c["colour"] for c in shown.exhibit.about["classes"]}
    largest = [
        own[areas[own].argmax()]
        for own in map(np.flatnonzero, regions.face_regions == np.arange(regions.n_regions)[:, None])
    ]
    drawn = page.evaluate(
        """(places) => {
        const viewer = document.querySelector('.inscape-explorer').viewer;
        const { base } = viewer.stages[0];
        const { data, width, height } = base.getContext('2d').getImageData(0, 0, base.width, base.height);
        return places.map((place) => {
          const ratio = base.width / viewer.camera.size[0];
          const [x, y] = viewer.camera.toPixels(place).map((v) => Math.floor(ratio * v));
          const first = 4 * (y * width + x);
          return x < 0 || y < 0 || x >= width || y >= height ? null : [...data.slice(first, first + 3)];
        });
        }""",
        middles[largest].tolist(),
    )
    n_seen = 0
    for region, colour in enumerate(drawn):
        if colour is not None and areas[largest[region]] > 1e-3 * areas.sum():
            n_seen += 1
            assert "#" + "".join(f"{v:02x}" for v in colour) == colours[int(regions.labels[region])]
    assert n_seen >= 2


def test_the_readout_has_the_scores_of_the_model(opened, shown):
    page = opened(shown.url)
    x, y = pixel_of(page, (0.3, 0.2))
    page.mouse.move(x, y)
    page.wait_for_selector(".readout figure:nth-child(2)")
    point = Patch.through(images()[0][:3]).points([place_at(page, x, y)])
    with torch.no_grad():
        scores = network(0)(torch.from_numpy(point))[0].numpy()
    rows = page.evaluate(
        "[...document.querySelectorAll('.readout')[0].querySelectorAll('.scores tr')]"
        ".map((row) => [Number(row.dataset.label), Number(row.querySelector('[data-score]').dataset.score)])"
    )
    assert [label for label, _ in rows] == np.argsort(-scores).tolist()
    np.testing.assert_allclose([score for _, score in rows], np.sort(scores)[::-1], rtol=1e-6)
    text = page.locator(".readout").first.inner_text()
    assert "away on this plane" in text
    assert "area" in text


def test_dragging_and_zooming_find_what_is_visible_anew(opened, shown):
    page = opened(shown.url)
    before = header(page)
    box = page.locator(".surface").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 300, y - 200, steps=6)
    page.mouse.up()
    settled(page)
    dragged = header(page)
    assert dragged["window"][0] > before["window"][0]
    assert dragged["window"][2] < before["window"][2]
    for _ in range(6):
        page.mouse.wheel(0, -400)
    settled(page)
    near = header(page)
    assert near["window"][1] - near["window"][0] < 0.2 * (before["window"][1] - before["window"][0])
    regions = decision_regions(network(0), patch_of(images()[0], (0, 1, 2), near["window"]))
    assert (near["n_regions"], near["n_faces"]) == (regions.n_regions, regions.subdivision.planar.n_faces)
    page.click("button[aria-label='show the whole plane']")
    settled(page)
    whole = header(page)
    regions = decision_regions(network(0), patch_of(images()[0], (0, 1, 2), whole["window"]))
    assert whole["n_faces"] == regions.subdivision.planar.n_faces
    np.testing.assert_allclose(whole["window"], before["window"], rtol=0.1)


def test_a_corner_is_dragged_along_the_plane(opened, shown):
    page = opened(shown.url)
    before = header(page)["window"]
    x, y = pixel_of(page, page.evaluate(f"{VIEWER}.corners[1]"))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 40, steps=4)
    page.mouse.up()
    settled(page)
    np.testing.assert_allclose(
        page.evaluate(f"{VIEWER}.corners[1]"), place_at(page, x + 60, y + 40), atol=1e-6
    )
    assert header(page)["window"] == before
    assert "corners=" in page.url
    page.reload()
    page.wait_for_selector(".inscape-explorer[data-shown]")
    settled(page)
    np.testing.assert_allclose(
        pixel_of(page, page.evaluate(f"{VIEWER}.corners[1]")), (x + 60, y + 40), atol=0.5
    )


def test_two_pins_have_the_exact_profile_between_them(opened, shown):
    page = opened(shown.url)
    pixels = [pixel_of(page, at) for at in ((-0.4, -0.3), (1.2, 0.9))]
    for x, y in pixels:
        page.mouse.click(x, y)
    page.wait_for_selector(".profile:not([hidden])")
    plane = Patch.through(images()[0][:3])
    segment = Segment(*plane.points(page.evaluate(f"{VIEWER}.state.pins")))
    regions, linear = decision_regions(network(0), segment), linear_regions(network(0), segment)
    words = page.locator(".profile .note").inner_text()
    assert words.startswith(f"{regions.n_regions} decision region")
    assert f"{linear.n_regions} linear piece" in words
    assert "exact" in words
    page.wait_for_selector(".readout:nth-child(3) .verdict")
    page.keyboard.press("Escape")
    page.locator(".surface").first.press("Escape")
    assert page.locator(".profile").is_hidden()


def test_layers_are_switched(opened, shown):
    page = opened(shown.url)
    for fill, name in (("pattern", "face_patterns"), ("layer", "face_layers"), ("slope", "face_slopes")):
        page.check(f"input[value={fill}]")
        until(page, f"Boolean({VIEWER}.stages[0].message.arrays.{name})")
        settled(page)
    page.check("input[value=density]")
    assert "length per area" in page.locator(".legend").first.inner_text()
    page.check("text=margin")
    until(page, f"Boolean({VIEWER}.stages[0].message.arrays.margins)")
    assert "fill=density" in page.url


def test_models_stand_side_by_side_with_one_camera(opened, shown):
    page = opened(shown.url)
    page.select_option("select[aria-label=compare]", "side")
    until(page, f"Boolean({VIEWER}.stages[1].message)")
    settled(page)
    page.mouse.move(*pixel_of(page, (0.2, 0.2)))
    page.mouse.wheel(0, -300)
    settled(page)
    both = [f"{VIEWER}.stages[{k}].message.header.window.join()" for k in (0, 1)]
    until(page, " === ".join(both))
    for k in (0, 1):
        found = header(page, k)
        regions = decision_regions(network(k), patch_of(images()[0], (0, 1, 2), found["window"]))
        assert found["n_regions"] == regions.n_regions
    assert page.locator(".heading:visible").all_inner_texts() == ["a", "b"]


def test_where_two_models_differ_is_shown_with_share_and_largest_difference(opened, shown):
    page = opened(shown.url + "#compare=difference.1")
    found = header(page)
    patch = patch_of(images()[0], (0, 1, 2), found["window"])
    comparison = inscape.compare(network(0), network(1), patch)
    assert found["n_regions"] == comparison.n_regions
    assert found["disagreement"] == pytest.approx(comparison.disagreement)
    until(page, "document.querySelector('.badge').textContent.includes('largest difference')")
    largest = page.evaluate(f"{VIEWER}.stages[0].largest")
    assert largest["value"] == pytest.approx(comparison.max_difference.value)
    assert "they differ on" in page.locator(".badge").first.inner_text()


def test_a_reload_comes_back_to_the_same_view(opened, shown):
    page = opened(shown.url)
    page.click("text=random three")
    settled(page)
    page.mouse.move(*pixel_of(page, (0.1, 0.1)))
    page.mouse.wheel(0, -500)
    page.check("input[value=layer]")
    settled(page)
    page.mouse.click(*pixel_of(page, (0.1, 0.1)))
    before = page.evaluate(
        f"JSON.stringify([{VIEWER}.state.plane, {VIEWER}.state.fill, {VIEWER}.state.pins.length])"
    )
    count, window = header(page)["n_faces"], page.evaluate(f"{VIEWER}.camera.window()")
    page.reload()
    page.wait_for_selector(".inscape-explorer[data-shown]")
    settled(page)
    after = page.evaluate(
        f"JSON.stringify([{VIEWER}.state.plane, {VIEWER}.state.fill, {VIEWER}.state.pins.length])"
    )
    assert after == before
    np.testing.assert_allclose(page.evaluate(f"{VIEWER}.camera.window()"), window, rtol=1e-5)
    assert header(page)["n_faces"] == pytest.approx(count, abs=2)


def test_an_address_that_makes_no_sense_is_the_first_view(opened, shown):
    page = opened(shown.url + "#plane=1,2,999&view=a,b&fill=evil&model=9&pins=x&compare=side.7&show=<b>")
    assert page.evaluate(f"{VIEWER}.state.plane.frame[0][0][0]") == 0
    assert page.evaluate(f"{VIEWER}.state.fill") == "decision"


def kept(page, text):
    page.click("summary:has-text('keep')")
    with page.expect_download() as download:
        page.click(f"text={text}")
    return download.value.path().read_bytes()


def test_what_is_kept_is_what_is_seen(opened, shown):
    page = opened(shown.url)
    found = header(page)
    regions = decision_regions(network(0), patch_of(images()[0], (0, 1, 2), found["window"]))
    assert kept(page, "PNG").startswith(b"\x89PNG")
    svg = kept(page, "SVG").decode()
    assert svg.startswith("<svg")
    assert "<img" not in svg
    written = json.loads(kept(page, "JSON"))
    assert written["n_regions"] == regions.n_regions
    assert len(written["faces"]) == regions.subdivision.planar.n_faces
    ring = np.array(written["faces"][0]["polygon"])
    first = regions.subdivision.planar.xy[regions.subdivision.planar.corners[: len(ring)]]
    np.testing.assert_allclose(ring, first, atol=1e-5)


def test_the_copied_lines_make_the_same_picture(opened, shown, monkeypatch, tmp_path):
    page = opened(shown.url)
    page.evaluate(f"{VIEWER}.copyPython()")
    until(page, f"Boolean({VIEWER}.copied)")
    x, y = images()
    known = {"models": {"a": network(0), "b": network(1)}, "x": x, "y": y}
    monkeypatch.chdir(tmp_path)
    exec(page.evaluate(f"{VIEWER}.copied"), known)
    visible = page.evaluate(f"{VIEWER}.camera.window()")
    expected = decision_regions(network(0), patch_of(x, (0, 1, 2), visible))
    assert known["regions"].n_regions == expected.n_regions
    assert (tmp_path / "plane.png").exists()


def test_everything_works_from_the_keyboard(opened, shown):
    page = opened(shown.url)
    reached = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.className || document.activeElement.tagName"))
        if "surface" in reached:
            break
    assert "surface" in reached
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    before = header(page)["window"]
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowUp", "+", "+", "+"):
        page.keyboard.press(key)
    settled(page)
    after = header(page)["window"]
    assert after[1] - after[0] < before[1] - before[0]
    page.keyboard.press("Shift+ArrowLeft")
    page.wait_for_selector(".readout .verdict")
    page.keyboard.press("Enter")
    for _ in range(3):
        page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(".profile:not([hidden])")
    page.keyboard.press("Escape")
    assert page.evaluate(f"{VIEWER}.state.pins.length") == 0
    page.keyboard.press("0")
    settled(page)
    assert header(page)["window"][1] - header(page)["window"][0] == pytest.approx(
        before[1] - before[0], rel=0.05
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_all_of_it(opened, shown, scheme):
    page = opened(shown.url, PHONE | {"color_scheme": scheme})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    box = page.locator(".surface").first.bounding_box()
    assert box["width"] == pytest.approx(390, abs=1)
    assert box["height"] > 300
    page.touchscreen.tap(box["x"] + 150, box["y"] + 150)
    page.wait_for_selector(".readout:nth-child(2) .verdict")
    background = page.evaluate(
        "getComputedStyle(document.querySelector('.inscape-explorer')).backgroundColor"
    )
    assert (max(map(int, background[4:-1].split(","))) < 60) == (scheme == "dark")


def test_two_pages_at_once_each_have_their_own_plane(opened, shown):
    first, second = opened(shown.url), opened(shown.url + "#plane=5,11,20")
    second.check("input[value=layer]")
    settled(second)
    settled(first)
    for page, rows in ((first, (0, 1, 2)), (second, (5, 11, 20))):
        regions = decision_regions(network(0), patch_of(images()[0], rows, header(page)["window"]))
        assert header(page)["n_regions"] == regions.n_regions


@pytest.mark.parametrize("answer", ["raises", "nan"])
def test_a_model_that_fails_is_shown_as_that(opened, answer):
    def model(x):
        if (x[:, 0] > 50).any():
            if answer == "raises":
                raise RuntimeError("<b onclick=evil()>no such weight</b>")
            return np.full((len(x), 2), np.nan)
        return np.c_[x[:, 0], 1 - x[:, 0]]

    with inscape.explore(model, *moons()) as explorer:
        page = opened(explorer.url)
        page.locator(".surface").first.focus()
        for _ in range(20):
            page.keyboard.press("-")
        page.wait_for_selector(".trouble:not([hidden])")
        text = page.locator(".trouble").first.inner_text()
        assert ("no such weight" if answer == "raises" else "NaN") in text
        page.keyboard.press("0")
        page.wait_for_selector(".stage:first-child .trouble", state="hidden")
        page.wait_for_selector(".badge[data-kind=adaptive]")
        page.close()


def test_a_first_look_that_fails_still_shows_where_the_data_lie(browser):
    def model(x):
        raise RuntimeError("no such weight")

    x, y = moons()
    with inscape.explore(model, x, y) as explorer:
        page = browser.new_page()
        page.goto(explorer.url)
        page.wait_for_selector(".trouble:not([hidden])", timeout=120_000)
        window = page.evaluate("document.querySelector('.inscape-explorer').viewer.camera.window()")
        assert window[0] <= x[:, 0].min() < x[:, 0].max() <= window[1]
        assert window[1] - window[0] < 3 * np.ptp(x[:, 0])
        page.close()


def test_a_saved_page_opens_offline(opened, shown, tmp_path):
    path = shown.save(tmp_path / "page.html", count=False)
    page = opened(path.as_uri())
    found = header(page)
    regions = decision_regions(network(0), patch_of(images()[0], (0, 1, 2), found["window"]))
    assert found["n_regions"] == regions.n_regions
    x, y = pixel_of(page, (0.3, 0.2))
    page.mouse.move(x, y)
    page.wait_for_selector(".readout .verdict")
    point = Patch.through(images()[0][:3]).points([place_at(page, x, y)])
    with torch.no_grad():
        scores = network(0)(torch.from_numpy(point))[0].numpy()
    rows = page.evaluate(
        "[...document.querySelectorAll('.scores [data-score]')].map((e) => Number(e.dataset.score))"
    )
    np.testing.assert_allclose(rows[:3], np.sort(scores)[::-1], atol=1e-4)
    page.select_option("select[aria-label=model]", "1")
    settled(page)
    other = decision_regions(network(1), patch_of(images()[0], (0, 1, 2), found["window"]))
    assert header(page)["n_regions"] == other.n_regions
    for fill in ("pattern", "layer", "slope", "density"):
        page.check(f"input[value={fill}]")
    assert "was saved into a file" in page.locator(".stored").inner_text()
    assert page.locator("text=random three").count() == 0
