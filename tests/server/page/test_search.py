"""The search that a double click on the canvas opens: our nodes are in sight at once."""

from __future__ import annotations

from contextlib import suppress

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


SPEED = [DOWNSAMPLE, "Token Downsample (Advanced)"]
EXPECTED = {
    "tome": [MERGE],
    "todo": SPEED,
    "token": [MERGE, DOWNSAMPLE, *ADVANCED],
    "token merge": [MERGE, "Token Merge (Advanced)"],
    "compare": ["Compare Token Reduction"],
    **dict.fromkeys(
        ("faster", "speed up", "accelerate", "sparse attention", "sageattention"), SPEED
    ),
}
"""Each word has to show these without scrolling; the first of them stands before the others.

"sage" alone does not: the page takes it for a misspelt "image", and puts what is used most first.
"""


def search(page, field, word: str) -> list[str]:
    """Type a word, and read what is shown without scrolling, once that is what we expect.

    The list is drawn in steps. Where what we expect never comes, what there is at the end.
    """
    # A word that finds nothing comes first, so that no list of the word before is read.
    for text in ("nothing has this name", word):
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(text)
        empty = text != word
        wait_for(lambda empty=empty: bool(page.find("no-results")) == empty)
    with suppress(AssertionError):
        wait_for(lambda: {*EXPECTED[word]} <= {*in_sight(page)}, seconds=10)
    return in_sight(page)


def in_sight(page) -> list[str]:
    """From top to bottom."""
    return page.browser.execute_script(IN_SIGHT)


def test_search_shows_our_nodes_without_scrolling(classic_page):
    classic_page.open({})
    field = classic_page.open_search()
    shown = {word: search(classic_page, field, word) for word in EXPECTED}
    classic_page.keep("search.png")
    missing = {word: {*names} - {*shown[word]} for word, names in EXPECTED.items()}
    field.send_keys(Keys.ESCAPE)
    wait_for(lambda: not classic_page.find("result-item"))
    assert not any(missing.values()), missing
    ours = {
        word: [name for name in shown[word] if name in names] for word, names in EXPECTED.items()
    }
    assert {word: names[0] for word, names in ours.items()} == {
        word: names[0] for word, names in EXPECTED.items()
    }
