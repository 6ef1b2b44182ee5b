"""ComfyUI's page in a real browser, with a server that keeps results, as a user's server does.

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
from support.page import unreached_model
from support.page.page import Look, Page
from support.page.pages import Pages

from devtools.server import Server, link, running


@pytest.fixture(scope="session")
def page_server(
    tmp_path_factory: pytest.TempPathFactory, files_before: dict[str, tuple[int, int]]
) -> Iterator[Server]:
    base = tmp_path_factory.mktemp("page-server")
    link(base / "custom_nodes" / "unreached-model", Path(unreached_model.__file__).parent)
    with running(base) as server:
        yield server


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
def pages(browser: webdriver.Chrome, page_server: Server, screenshots: Path) -> Pages:
    return Pages(browser, page_server.url, screenshots)


@pytest.fixture(scope="session", params=["classic", "newer"])
def look(request: pytest.FixtureRequest) -> Look:
    """How the page draws nodes. For the whole session: tests of one look come together."""
    return request.param


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
