"""What a person does in ComfyUI's page, and what the page then shows."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import requests
from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from devtools.client import Prompt

from . import mouse, scripts
from .browser import WAIT_SECONDS, wait_for

Look = Literal["classic", "newer"]
"""It says how the page draws its nodes: on a canvas, or as elements of the document (Nodes 2.0)."""

CLICKS = 12
"""So many double-clicks are tried at most to open the search."""

SETTINGS = {
    "Comfy.TutorialCompleted": True,
    "Comfy.Workflow.Persist": False,
    # Nothing over the graph.
    "Comfy.Minimap.Visible": False,
    "Comfy.Graph.CanvasInfo": False,
}


@dataclass(frozen=True)
class Page:
    """screenshots: the folder that keeps them."""

    browser: webdriver.Chrome
    url: str
    look: Look
    screenshots: Path

    def load(self, **settings: object) -> None:
        """The page past what it shows to a new user. Settings: ``Comfy_Locale`` and the like."""
        values = {name.replace("_", "."): value for name, value in settings.items()}
        values = {**SETTINGS, "Comfy.VueNodes.Enabled": self.look == "newer", **values}
        requests.post(f"{self.url}/api/settings", json=values, timeout=30).raise_for_status()
        self.browser.get(self.url)
        wait_for(lambda: self.browser.execute_script(scripts.READY))
        self.browser.execute_script(scripts.LISTEN)

    def call(self, script: str, *arguments: object) -> Any:
        """What a script with ``await`` returns; its arguments are in ``args``."""
        reply = self.browser.execute_async_script(scripts.CALL.format(script), *arguments)
        assert "error" not in reply, reply["error"]
        return reply["value"]

    def find(self, test_id: str) -> list[WebElement]:
        """The visible elements that ComfyUI's own tests know by this name."""
        found = self.browser.find_elements(By.CSS_SELECTOR, f'[data-testid="{test_id}"]')
        return [element for element in found if element.is_displayed()]

    def open(self, prompt: Prompt) -> None:
        """A graph in a tab of its own. Its seeds are fixed."""
        self.call(scripts.OPEN, prompt)

    def set(self, node_id: str, **values: object) -> None:
        """Values of a node's widgets."""
        self.call(scripts.SET, node_id, values)

    def type_into(self, node_id: str, widget: str, text: str) -> None:
        """Change a number on a node with mouse and keyboard."""
        self.centre(node_id)
        place = wait_for(lambda: self.browser.execute_script(scripts.WIDGET_PLACE, node_id, widget))
        mouse.double_click(self.browser, place)
        field = wait_for(self._find_field)
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(text, Keys.ENTER)

    def press_run(self) -> None:
        wait_for(lambda: self.find("queue-button"))[0].click()

    def run(self) -> list[tuple[str, str]]:
        """Press Run and wait for the end. Returns (node, text in one line) of all told."""
        return self.wait_for_runs(self.press_run)

    def wait_for_runs(self, start: Callable[[], object], prompts: int = 1) -> list[tuple[str, str]]:
        """The same for what ``start`` puts into the queue."""
        ended, told = self.browser.execute_script("return [ended.length, told.length]")
        start()
        wait_for(lambda: self.browser.execute_script("return ended.length") >= ended + prompts)
        ends = self.browser.execute_script("return ended.slice(arguments[0])", ended)
        assert set(ends) == {"execution_success"}, ends
        new = self.browser.execute_script("return told")[told:]
        return [(node, " ".join(text.split())) for node, text in new]

    def centre(self, node_id: str) -> None:
        self.browser.execute_script(scripts.CENTRE, node_id)

    def text_on(self, node_id: str) -> str:
        """What the server wrote on a node, as the page shows it inside the node, in one line."""
        return " ".join(self._read_text(node_id)["text"].split())

    def lines_on(self, node_id: str) -> list[str]:
        """The same, line by line as the page shows it."""
        return self._read_text(node_id)["text"].splitlines()

    def count_lines_seen_on(self, node_id: str) -> int:
        """So many lines of that text can be read without scrolling."""
        return self._read_text(node_id)["seen"]

    def _read_text(self, node_id: str) -> dict[str, Any]:
        self.centre(node_id)
        return wait_for(lambda: self.browser.execute_script(scripts.READ_TEXT, node_id))

    def open_search(self) -> WebElement:
        """Double-click on the canvas, below any node of these tests; returns the field.

        Where the machine is busy, the page may take the two clicks for single ones: then again.
        """
        for _ in range(CLICKS):
            mouse.double_click(self.browser, (700, 620))
            with suppress(AssertionError):
                return wait_for(self._find_field, WAIT_SECONDS / CLICKS)
        raise AssertionError(f"{CLICKS} double-clicks opened no search")

    def _find_field(self) -> WebElement | None:
        """The field that the keys go to."""
        active = self.browser.switch_to.active_element
        return active if active.tag_name == "input" else None

    def widgets_of(self, node_id: str) -> list[str]:
        """Names of the widgets that a node shows, from top to bottom."""
        self.centre(node_id)
        classic = self.look == "classic"
        script = scripts.CLASSIC_WIDGETS if classic else scripts.NEWER_WIDGETS
        return wait_for(lambda: self.browser.execute_script(script, node_id))

    def keep(self, name: str, box: tuple[int, int, int, int] | None = None) -> None:
        """Save a screenshot, or the part of it in (left, top, right, bottom)."""
        shot = Image.open(io.BytesIO(self.browser.get_screenshot_as_png())).convert("RGB")
        shot.crop(box or (0, 0, *shot.size)).save(self.screenshots / name, quality=92)
