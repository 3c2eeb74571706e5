"""The report in a browser: nothing is loaded, nothing fails, and what can be used works."""

import shutil
from dataclasses import replace

import pytest
from finished_study import evil, finished

from inscape.reports import write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
DESKTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
LONG = "unbroken" * 40


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    run = finished(folder)
    long = replace(
        run,
        title=LONG,
        claims=dict.fromkeys(run.claims, LONG),
        options={"data": LONG},
        failed={LONG: LONG},
        summary=replace(run.summary, notes=f"{LONG}\n\n```\n{LONG}\n```", limits=(LONG,)),
    )
    runs = {"example": run, "evil": evil(folder), "long": long}
    return {name: write_report(r, folder / f"{name}.html") for name, r in runs.items()}


@pytest.fixture(scope="module")
def pages(browser, files):
    """A function that opens a report once for each device: the page, and what it complained of."""
    known = {}

    def open_page(name, device):
        page = browser.new_context(**device).new_page()
        page.set_default_timeout(120_000)  # of a busy machine
        problems = []
        page.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda r: r.url.startswith(("file:", "data:", "blob:")) or problems.append(r.url))
        page.add_init_script("window.evil = () => { window.harmed = true }")
        page.goto(files[name].as_uri())
        page.wait_for_selector("#explorer .point")
        return page, problems

    def show(name="example", device=DESKTOP):
        key = name, str(device)
        if key not in known:
            known[key] = open_page(name, device)
        return known[key]

    return show


@pytest.fixture
def opened(pages):
    """A function that gives an open page; at the end of the test it had nothing to complain of."""
    used = []

    def show(name="example", device=DESKTOP):
        page, problems = pages(name, device)
        used.append(problems)
        page.evaluate("delete document.documentElement.dataset.theme")
        page.emulate_media(media="screen", color_scheme="light")
        return page

    yield show
    assert [p for problems in used for p in problems] == []


def style(page, selector, name):
    return page.eval_on_selector(selector, "(e, name) => getComputedStyle(e).getPropertyValue(name)", name)


def hover(page, chart):
    """What is shown where the pointer meets the first point of a chart."""
    page.locator(f"{chart} .canvas").first.scroll_into_view_if_needed()
    box = page.locator(f"{chart} .point").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector(f"{chart} .hovertext:not([hidden])")
    return "; ".join(page.locator(f"{chart} .hovertext div").all_text_contents())


@pytest.mark.slow
def test_a_point_says_what_it_is(opened):
    page = opened()
    for chart in ("#chart-1", "#chart-2", "#explorer"):
        said = hover(page, chart)
        assert "learning rate: 0.001" in said
    assert all(word in said for word in ("batch size: 256", "test accuracy: 0.8", "gap: 0.1"))


def test_a_click_or_a_key_on_a_head_sorts(opened):
    page = opened()
    table = page.locator("#rows table")

    def column(name):
        heads = table.locator("th").all_inner_texts()
        cells = table.locator(f"tbody td:nth-child({1 + heads.index(name)})")
        return cells.evaluate_all("cells => cells.map((c) => c.dataset.value ?? '')")

    def check(name, direction):
        head = table.locator("th").filter(has=page.get_by_role("button", name=name, exact=True))
        assert head.get_attribute("aria-sort") == direction
        assert table.locator("th:not([aria-sort=none])").count() == 1
        values = column(name)
        known = [float(v) for v in values if v]
        assert known == sorted(known, reverse=direction == "descending")
        assert values.index("") == len(known) if "" in values else len(known) == 81

    gap = table.get_by_role("button", name="gap", exact=True)
    gap.click()
    check("gap", "ascending")
    gap.press("Enter")
    check("gap", "descending")
    table.get_by_role("button", name="region count").press("Space")
    check("region count", "ascending")
    notes = page.locator("#notes table")
    notes.get_by_role("button", name="r", exact=True).click()
    assert notes.locator("tbody td:first-child").all_inner_texts() == ["lenet", "mlp"]


def test_the_reader_chooses_the_axes(opened):
    page = opened()
    page.select_option("select[name=x]", "test_accuracy")
    page.select_option("select[name=colour]", "seconds")  # many numbers: a scale instead of a legend
    page.wait_for_selector("#explorer .colorbar")
    assert page.locator("#explorer .xtitle").text_content() == "test accuracy"
    assert page.locator("#explorer .legend").count() == 0


def test_a_group_can_be_hidden_and_a_part_looked_at_closely(opened):
    page = opened()
    page.select_option("select[name=x]", "region_count")
    page.select_option("select[name=colour]", "learning_rate")
    whole = page.locator("#explorer .point").count()
    first = page.locator("#explorer .legend button").first
    first.click()
    fewer = page.locator("#explorer .point").count()
    assert 0 < fewer < whole
    page.locator("#explorer .legend button").first.click()
    assert page.locator("#explorer .point").count() == whole
    page.locator("#explorer .canvas").scroll_into_view_if_needed()
    ticks = page.locator("#explorer .tick").all_text_contents()
    box = page.locator("#explorer .canvas").bounding_box()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.6 * box["height"], steps=3)
    page.mouse.up()
    assert page.locator("#explorer .tick").all_text_contents() != ticks
    page.mouse.dblclick(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    assert page.locator("#explorer .tick").all_text_contents() == ticks


def test_light_and_dark(opened):
    page = opened()

    def look():
        ground = style(page, "body", "background-color")
        return sum(map(int, ground[4:-1].split(","))), style(page, "#chart-1 .xtitle", "fill")

    light = look()
    page.emulate_media(color_scheme="dark")
    dark = look()
    assert light[0] > 700 > 100 > dark[0]
    assert light[1] != dark[1]
    page.click("#theme")
    assert look() == light
    assert page.locator("#theme").get_attribute("aria-label") == "Use dark colours"
    page.emulate_media(color_scheme="light")
    page.click("#theme")  # what the reader chose stays, whatever the system does
    assert look() == dark
    page.emulate_media(color_scheme="dark")
    page.emulate_media(color_scheme="light")
    assert look() == dark
    page.click("#theme")
    assert look() == light


@pytest.mark.parametrize("device", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_first_screen_has_claim_number_interval_and_verdict(opened, device):
    page = opened(device=device)
    for selector in (
        "#claim",
        ".headline .verdict",
        ".headline strong",
        ".headline .ours span",
        ".theirs dd",
    ):
        box = page.locator(selector).first.bounding_box()
        assert box["y"] + box["height"] <= device["viewport"]["height"], selector


@pytest.mark.parametrize("name", ["example", "long"])
def test_a_phone_never_scrolls_sideways(opened, name):
    page = opened(name, PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    inside = page.eval_on_selector("#rows .scroll", "e => [e.scrollWidth, e.clientWidth]")
    assert inside[0] > inside[1]  # the table scrolls in its box


def test_paper_is_white_and_shows_all_of_a_table(opened):
    page = opened()
    page.click("#theme")
    page.emulate_media(media="print", color_scheme="dark")
    assert style(page, "body", "background-color") == "rgb(255, 255, 255)"
    assert style(page, "#theme", "display") == "none"
    whole, seen = page.eval_on_selector("#rows .scroll", "e => [e.scrollHeight, e.clientHeight]")
    assert whole == seen > 81 * 10
    assert style(page, "th button", "display") == "contents"  # else Chromium does not repeat the head
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert style(page, "#chart-1 .xtitle", "fill") == "rgb(29, 33, 41)"
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert style(page, "#chart-1 .xtitle", "fill") == "rgb(232, 234, 238)"


def test_no_text_of_a_study_does_anything(opened):
    page = opened("evil")
    assert "<b>bold</b><script>evil()</script>" in hover(page, "#chart-1")
    assert "<script>evil()</script>" in page.locator("h1").text_content()
    assert page.evaluate("window.harmed") is None
