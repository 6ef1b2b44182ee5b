"""Headless Chromium, and waiting for what it shows."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import TypeVar

from selenium import webdriver
from selenium.common.exceptions import WebDriverException

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
WAIT_SECONDS = 60
SIZE = (1600, 1000)
"""The page is so large, in pixels."""

Found = TypeVar("Found")


def start() -> webdriver.Chrome:
    """A new browser, to be ended by ``quit``."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    # Without a sandbox: Chromium refuses to start one for root, which is who runs in a container.
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{argument}")
    browser = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    browser.set_script_timeout(WAIT_SECONDS)
    metrics = {"width": SIZE[0], "height": SIZE[1], "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    return browser


def wait_for(find: Callable[[], Found], seconds: float = WAIT_SECONDS) -> Found:
    """What ``find`` returns, once that is true."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            found = find()
        except WebDriverException:  # an element that is just being drawn anew
            found = None
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"the page did not show it within {seconds} s")
        time.sleep(0.1)
