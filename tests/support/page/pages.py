"""One browser for all tests, which loads the page only where the test before left another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By

from .page import Look, Page


@dataclass
class Pages:
    """urls: of the server of each look. screenshots: the folder that keeps them. shown: look and
    language of the loaded page.
    """

    browser: webdriver.Chrome
    urls: Mapping[Look, str]
    screenshots: Path
    shown: tuple[Look, str] | None = None

    def show(self, look: Look, language: str = "en") -> Page:
        """The page without an open dialog; its graph is that of the test before."""
        page = Page(self.browser, self.urls[look], look, self.screenshots)
        dialogs = self.browser.find_elements(By.CSS_SELECTOR, "[role=dialog]")
        if self.shown != (look, language) or dialogs:
            page.load(Comfy_Locale=language)
            self.shown = (look, language)
        return page
