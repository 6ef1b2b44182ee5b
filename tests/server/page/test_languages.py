"""The page in other languages: our nodes have the names of ``locales``."""

from __future__ import annotations

import json

import pytest
from support.page import scripts
from support.page.browser import wait_for

from devtools.comfyui import ROOT

FILES = {path.parent.name: path for path in (ROOT / "locales").glob("*/nodeDefs.json")}
LANGUAGES = sorted(set(FILES) - {"en"})


@pytest.fixture(scope="module", params=LANGUAGES)
def language(request) -> str:
    return request.param


@pytest.fixture
def foreign_page(pages, language):
    """The page in a language, in the newer look, which draws every name as text."""
    return pages.show("newer", language)


def test_there_are_chinese_and_korean():
    assert {"zh", "ko"} <= set(LANGUAGES)


def test_nodes_and_inputs_have_their_names_in_the_language(foreign_page, language):
    written = json.loads(FILES[language].read_text(encoding="utf-8"))
    for kind, names in written.items():
        foreign_page.open({"1": {"class_type": kind, "inputs": {}}})
        title, inputs = foreign_page.browser.execute_script(scripts.NAMES, "1")
        assert title == names["display_name"]
        assert inputs == {name: each["name"] for name, each in names["inputs"].items()}


def test_names_in_the_language_are_drawn(foreign_page, language):
    entry = json.loads(FILES[language].read_text(encoding="utf-8"))["TokenDownsample"]
    foreign_page.open({"1": {"class_type": "TokenDownsample", "inputs": {}}})
    names = [each["name"] for name, each in entry["inputs"].items() if name != "model"]
    assert foreign_page.widgets_of("1") == names
    foreign_page.keep(f"language-{language}.png")


def test_node_info_is_in_the_language(foreign_page, language):
    foreign_page.open({"1": {"class_type": "TokenDownsample", "inputs": {}}})
    foreign_page.centre("1")
    wait_for(lambda: foreign_page.find("node-title"))[0].click()
    wait_for(lambda: foreign_page.find("info-button"))[0].click()
    page = (ROOT / "web" / "docs" / "TokenDownsample" / f"{language}.md").read_text("utf-8")
    headings = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]
    shown = "return document.querySelector('.node-help-content')?.innerText ?? ''"
    wait_for(lambda: {*headings} <= {*foreign_page.browser.execute_script(shown).splitlines()})
    foreign_page.keep(f"help-{language}.png")
