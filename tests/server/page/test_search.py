"""The search that a double click on the canvas opens: our nodes are in sight at once."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.keys import Keys
from support.page.browser import wait_for

MERGE, DOWNSAMPLE = "Token Merge (ToMe)", "Token Downsample (ToDo)"
ADVANCED = ["Token Merge (Advanced)", "Token Downsample (Advanced)"]

IN_SIGHT = """
    const list = document.querySelector('#results-list')?.getBoundingClientRect();
    return [...document.querySelectorAll('[data-testid=result-item]')]
        .filter((item) => item.getBoundingClientRect().bottom <= list.bottom)
        .map((item) => item.innerText.split('\\n')[0]);
"""


@pytest.fixture
def search(classic_page):
    """Types into the search and returns what it shows without scrolling."""
    classic_page.open({})
    field = classic_page.open_search()

    def type_in(word: str) -> list[str]:
        # A word that finds nothing comes first, so that no list of the word before is read.
        for text in ("nothing has this name", word):
            field.send_keys(Keys.CONTROL, "a")
            field.send_keys(text)
            empty = text != word
            wait_for(lambda empty=empty: bool(classic_page.find("no-results")) == empty)
        return wait_for(lambda: classic_page.browser.execute_script(IN_SIGHT))

    yield type_in
    field.send_keys(Keys.ESCAPE)
    wait_for(lambda: not classic_page.find("result-item"))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("tome", [MERGE]),
        ("todo", [DOWNSAMPLE, "Token Downsample (Advanced)"]),
        ("token", [MERGE, DOWNSAMPLE, *ADVANCED]),
        ("token merge", [MERGE, "Token Merge (Advanced)"]),
        ("compare", ["Compare Token Reduction"]),
        ("faster", [MERGE, DOWNSAMPLE, *ADVANCED]),
        ("accelerate", [MERGE, DOWNSAMPLE, *ADVANCED]),
        ("vram", [MERGE, DOWNSAMPLE, *ADVANCED]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_search_shows_our_nodes_without_scrolling(search, classic_page, word, expected):
    shown = search(word)
    classic_page.keep(f"search-{word.replace(' ', '-')}.png")
    assert [name for name in expected if name not in shown] == [], shown
