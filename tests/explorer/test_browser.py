"""The explorer in a browser: `pytest -m browser tests/explorer` (needs Chromium, chromedriver)."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import odesim
from odesim.explorer.controls import POINTS
from tests.support.chromium import SIZES, chromium, errors_of

pytestmark = pytest.mark.browser
MODEL = "hopfield.two_patterns"
MODEL_NAMED = "return Bokeh.documents[0].get_model_by_name(arguments[0])"
WAIT = 120  # s: the first run compiles, on a busy machine


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of an explorer, which ends by a signal as by Ctrl-C."""
    pytest.importorskip("bokeh", reason="the explorer needs bokeh: pip install 'odesim[explore]'")
    command = [sys.executable, "-m", "odesim", "explore", MODEL, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout and server.stderr
        line = server.stdout.readline()
        yield line.split()[1]
        server.terminate()
        assert server.wait(30) == 0
        assert server.stderr.read() == ""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Chromium without a window."""
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def value(browser: Any, name: str, attribute: str) -> Any:
    """An attribute of a widget by its name, as the page has it."""
    return browser.execute_script(f"{MODEL_NAMED}?.{attribute}", name)


def wait(browser: Any, condition: Any) -> None:
    """Waits until a condition of the browser holds."""
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, WAIT, 0.05).until(condition)


def drawn(browser: Any) -> bool:
    """Whether no run is being computed."""
    return bool(browser.execute_script("return window.Bokeh?.documents.length > 0")) and "ms" in (value(browser, "status", "text") or "")


def curve(browser: Any, title: str) -> Any:
    """The line of the panel with this title, as the page has it."""
    script = """
    for (const model of Bokeh.documents[0]._all_models.values())
        if (model.type == "Figure" && model.title.text == arguments[0])
            return Array.from(Bokeh.index.find_one(model.renderers[0]).glyph.ys.get(0))
    """
    return np.array(browser.execute_script(script, title))


def element(browser: Any, name: str, selector: str) -> Any:
    """An element inside a widget, whose parts stand in shadow trees."""
    script = """
    const find = view => view.model.name == arguments[0] ? view : [...view.children()].map(find).find(Boolean)
    const view = Bokeh.index.roots.map(find).find(Boolean)
    view.el.scrollIntoView({block: "center"})
    return view.shadow_el.querySelector(arguments[1])
    """
    return browser.execute_script(script, name, selector)


@pytest.mark.parametrize("size", SIZES)
def test_explorer_in_the_browser(size, address, browser):
    """Load, drag, type, copy: curves are those of integrate at the number shown, bad input is a sentence, no error, no wider page."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    width, height = SIZES[size]
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone"}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    errors_of(browser)
    browser.get(address)
    wait(browser, drawn)
    assert np.array_equal(curve(browser, "u"), odesim.integrate(MODEL, save=POINTS).y["u"])

    handle = element(browser, "slider.params.beta", ".noUi-handle")
    ActionChains(browser).click_and_hold(handle).move_by_offset(20, 0).move_by_offset(20, 0).release().perform()
    wait(browser, lambda b: float(value(b, "params.beta", "value")) > 2 and drawn(b))
    beta = float(value(browser, "params.beta", "value"))
    right = odesim.integrate(MODEL, params={"beta": beta}, save=POINTS).y["u"]
    wait(browser, lambda b: np.array_equal(curve(b, "u"), right))

    field = element(browser, "params.beta", "input")
    field.send_keys(Keys.END, Keys.BACKSPACE * 20, "-3", Keys.ENTER)
    wait(browser, lambda b: value(b, "sentence", "visible"))
    assert value(browser, "sentence", "text") == "beta = -3 lies outside (0, inf)"
    element(browser, "reset", "button").click()
    wait(browser, lambda b: not value(b, "sentence", "visible") and drawn(b))

    element(browser, "copy.command", "button").click()
    wait(browser, lambda b: value(b, "copied", "visible"))
    assert value(browser, "copied", "text") == f"odesim integrate {MODEL} --save {POINTS}"
    assert errors_of(browser) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
