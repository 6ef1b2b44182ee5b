"""ComfyUI's page in a real browser, with a server that keeps results, as a user's server does.

The screenshots of the tests are kept in the folder that TOKEN_MERGE_SCREENSHOTS names, else among
pytest's temporary files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from support.page import browser as browsers
from support.page import unreached_model
from support.page.page import Look, Page

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
def make_page(
    browser: webdriver.Chrome, page_server: Server, screenshots: Path
) -> Callable[[Look], Page]:
    """A page in this look, not loaded yet."""
    return lambda look: Page(browser, page_server.url, look, screenshots)


@pytest.fixture(scope="module", params=["classic", "newer"])
def page(request: pytest.FixtureRequest, make_page: Callable[[Look], Page]) -> Page:
    """The page in both looks of the nodes, loaded once for the tests of a file."""
    page = make_page(request.param)
    page.load(Comfy_Locale="en")
    return page


@pytest.fixture(scope="module")
def classic_page(make_page: Callable[[Look], Page]) -> Page:
    """The page as a new user has it."""
    page = make_page("classic")
    page.load(Comfy_Locale="en")
    return page


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Keep what the page showed when a test failed."""
    report = yield
    names = getattr(item, "fixturenames", ())
    if report.when == "call" and report.failed and "make_page" in names:
        name = "".join(each if each.isalnum() else "-" for each in item.name)
        item.funcargs["make_page"]("classic").keep(f"failed-{name}.png")
    return report
