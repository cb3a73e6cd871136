"""A Chromium without a window, for the tests that look at pages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """A driver of Chromium with this folder as its profile; skips the test where there is none."""
    selenium = pytest.importorskip("selenium.webdriver", reason="pip install selenium")
    programs = shutil.which("chromium"), shutil.which("chromedriver")
    if None in programs:
        pytest.skip("no chromium or chromedriver on this machine")
    options = selenium.ChromeOptions()
    options.binary_location = programs[0]
    for word in ("headless", "no-sandbox", "disable-gpu", "no-first-run", "disable-background-networking", f"user-data-dir={profile}"):
        options.add_argument(f"--{word}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = selenium.Chrome(options=options, service=selenium.ChromeService(programs[1]))
    try:
        yield driver
    finally:
        driver.quit()


def errors_of(browser: Any) -> list[str]:
    """What stands in the console as an error since the last call."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
