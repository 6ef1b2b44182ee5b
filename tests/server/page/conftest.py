"""ComfyUI's page in a real browser.

The screenshots of the tests are kept in the folder that TOKEN_MERGE_SCREENSHOTS names, else among
pytest's temporary files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from support.page import browser as browsers
from support.page.page import Look, Page
from support.page.pages import Pages

from devtools.server import Server


@pytest.fixture(scope="session")
def browser() -> Iterator[webdriver.Chrome]:
    if not (browsers.CHROMIUM and browsers.DRIVER):
        pytest.skip("no chromium with chromedriver on this machine")
    browser = browsers.start()
    yield browser
    browser.quit()


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chosen = os.environ.get("TOKEN_MERGE_SCREENSHOTS")
    folder = Path(chosen) if chosen else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def pages(
    browser: webdriver.Chrome, user_server: Server, newer_page_server: Server, screenshots: Path
) -> Pages:
    urls: dict[Look, str] = {"classic": user_server.url, "newer": newer_page_server.url}
    return Pages(browser, urls, screenshots)


@pytest.fixture(params=["classic", "newer"])
def look(request: pytest.FixtureRequest) -> Look:
    """How the page draws nodes."""
    return request.param


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the same page come together: another look or language is loaded anew."""
    here = Path(__file__).parent
    places = [place for place, item in enumerate(items) if here in item.path.parents]
    for place, item in zip(
        places, sorted((items[each] for each in places), key=_order), strict=True
    ):
        items[place] = item


def _order(item: pytest.Item) -> int:
    wanted = getattr(item, "callspec", None)
    values = wanted.params if wanted else {}
    return 2 if "language" in values else int(values.get("look") == "newer")


@pytest.fixture
def page(pages: Pages, look: Look) -> Page:
    """The page in both looks of the nodes."""
    return pages.show(look)


@pytest.fixture
def classic_page(pages: Pages) -> Page:
    """The page as a new user has it."""
    return pages.show("classic")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Keep what the page showed when a test failed."""
    report = yield
    names = getattr(item, "fixturenames", ())
    if report.when == "call" and report.failed and "pages" in names:
        name = "".join(each if each.isalnum() else "-" for each in item.name)
        Page.keep(item.funcargs["pages"], f"failed-{name}.png")
    return report
