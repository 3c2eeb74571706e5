"""One browser for all pages of the explorer, and a page that may not complain."""

import pytest
from explored import images, network
from explored_page import CHROMIUM, DESKTOP, NAMES, settled

import inscape


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        options = ["--no-sandbox", "--enable-unsafe-swiftshader"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def shown():
    x, y = images()
    explorer = inscape.explore({"a": network(0), "b": network(1)}, x, y, class_names=NAMES, rows=(0, 1, 2))
    explorer.exhibit.warm()
    with explorer:
        yield explorer


@pytest.fixture
def opened(browser):
    """A function that opens a page; at the end it had nothing to complain of and asked nobody else."""
    contexts, problems = [], []

    def show(url, device=DESKTOP, expect=()):
        context = browser.new_context(**device)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(120_000)  # of a busy machine

        def note(message):
            if message.type in ("error", "warning") and not any(word in message.text for word in expect):
                problems.append(message.text)

        own = url.split("#")[0]
        page.on("console", note)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "request",
            lambda r: r.url.startswith((own, "file:", "data:", "blob:")) or problems.append(r.url),
        )
        page.add_init_script("window.evil = () => { window.harmed = true }")
        page.goto(url)
        page.wait_for_selector(".inscape-explorer[data-shown]")
        settled(page)
        return page

    yield show
    for context in contexts:
        for page in context.pages:
            assert page.evaluate("window.harmed") is None
        context.close()
    assert problems == []
