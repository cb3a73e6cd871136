"""The built site in a browser: `sphinx-build -W -j auto docs docs/_build/html`, then `pytest -m browser` (needs Chromium, chromedriver)."""

import inspect
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import odesim
from tests.support.chromium import SIZES, chromium, errors_of
from tests.support.notation import ASCII

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "_build" / "html"
SPLIT = """return [...document.querySelectorAll('.highlight .line')].filter(line => {
    const walk = document.createTreeWalker(line, NodeFilter.SHOW_TEXT), letter = document.createRange(), letters = []
    for (let part; part = walk.nextNode();) for (let i = 0; i < part.length; i++) {
        letter.setStart(part, i); letter.setEnd(part, i + 1)
        letters.push([part.data[i], letter.getBoundingClientRect()])
    }
    let word = []  // one that is longer than some 24 letters may have to break; between ) and [ is a place for it
    const breaks = k => word[k][1].top > word[k - 1][1].bottom - 2 && !/[\\])}][[({]/.test(word[k - 1][0] + word[k][0])
    for (const letter of [...letters, [' ', null]])
        if (/\\s/.test(letter[0])) {
            if (word.length < 24 && word.some((_, k) => k && breaks(k))) return true
            word = []
        } else word.push(letter)
}).map(line => line.textContent)"""
"""Lines of code that break inside a word: in a browser."""
PAGES = sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html") if not {"_static", "interactive"} & set(path.parts))
INTERACTIVE = sorted(SITE.glob("interactive/*.html"))
pytestmark = pytest.mark.browser


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that prints nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of the site, served on this machine."""
    if not PAGES:
        pytest.skip("no site: sphinx-build -W -j auto docs docs/_build/html")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def wait_for_title(browser: Any) -> None:
    """On a busy machine it comes after the page."""
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 600).until(lambda b: b.title)


@pytest.mark.parametrize("size", [*SIZES.values(), (360, 740)], ids="{0[0]}".format)
@pytest.mark.parametrize("page", PAGES)
def test_page_loads(page, size, address, browser):
    """No error in the console; pictures have appeared; neither page nor table scrolls sideways; code is not cut, nor broken in words."""
    browser.set_window_size(*size)
    browser.get_log("browser")
    browser.get(f"{address}/{page}")
    wait_for_title(browser)
    assert errors_of(browser) == []
    browser.execute_script("for (const image of document.images) image.loading = 'eager'")
    broken = "return [...document.images].filter(image => image.complete && !image.naturalWidth).map(image => image.src)"
    assert browser.execute_script(broken) == []
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert browser.execute_script(wide) <= 1
    tables = "return [...document.querySelectorAll('.table-wrapper')].filter(t => t.scrollWidth > t.clientWidth).map(t => t.textContent)"
    assert browser.execute_script(tables) == []
    cut = "return [...document.querySelectorAll('pre')].filter(p => p.scrollWidth > p.clientWidth + 1).map(p => p.textContent)"
    assert browser.execute_script(cut) == []
    assert browser.execute_script(SPLIT) == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("generated/models/")])
def test_formulas_fit(page, size, address, browser):
    """No formula is wider than its box, with the font of the site; what is shown of it has every bracket and no sign of LaTeX."""
    browser.set_window_size(*SIZES[size])
    browser.get(f"{address}/{page}")
    wait_for_title(browser)
    assert browser.execute_async_script("document.fonts.ready.then(() => arguments[0](document.fonts.check('16px \"STIX Two Math\"')))")
    wide = """return [...document.querySelectorAll('article math')].filter(m => m.offsetParent !== null || m.getClientRects().length)
        .filter(m => m.getBoundingClientRect().right > m.closest('.formula, p, li, td, dd').getBoundingClientRect().right + 1)
        .map(m => m.textContent)"""
    assert browser.execute_script(wide) == []
    shown = "return [...document.querySelectorAll('article math')].map(m => m.textContent)"
    assert [text for text in browser.execute_script(shown) if "\\" in text] == []


PROSE = """const walker = document.createTreeWalker(document.querySelector('article'), NodeFilter.SHOW_TEXT), texts = [];
    while (walker.nextNode())
        texts.push(walker.currentNode.parentElement.closest(
            'code, pre, math, dt, script, style, .cell_output') ? ' ' : walker.currentNode.data);
    return texts.join('')"""


@pytest.mark.parametrize(
    "page", [page for page in PAGES if Path(page).stem not in ("reference", "command_line", "genindex", "py-modindex")]
)
def test_prose_has_no_ascii_mathematics(page, address, browser):
    """Greek letters, powers, indices and sums are formulas, outside of code."""
    browser.get(f"{address}/{page}")
    wait_for_title(browser)
    text = browser.execute_script(PROSE)
    assert [text[max(0, m.start() - 30) : m.end() + 20] for m in ASCII.finditer(text)] == []


@pytest.mark.parametrize("page", INTERACTIVE, ids=lambda path: path.stem)
def test_interactive_picture_loads(page, address, browser):
    """Lines or maps are drawn, without an error, by the one file of plotly beside it."""
    browser.get_log("browser")
    browser.get(f"{address}/interactive/{page.name}")
    wait_for_title(browser)
    assert errors_of(browser) == []
    assert browser.execute_script("return document.querySelectorAll('.plot-container .xy, .plot-container .hm').length")


@pytest.mark.parametrize(("word", "page"), [("entropy", "models"), ("ensemble", "reference"), ("verify", "command_line")])
def test_search_finds(word, page, address, browser):
    """A word is found on the page that speaks of it."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(f"{address}/search.html?q={word}")
    WebDriverWait(browser, 600).until(lambda b: b.find_elements(By.CSS_SELECTOR, f"#search-results li a[href*='{page}']"))


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("own model", "own_model"),
        ("gradient_flow", "own_model"),
        ("phase diagram", "phase_diagrams"),
        ("noise", "noise"),
        ("fit", "fits"),
        ("why is my run slow", "slow"),
        ("cluster", "clusters"),
        ("steady state", "rest_states"),
        ("bifurcation", "branches"),
    ],
)
def test_search_finds_first(words, page, address, browser):
    """The page that explains it comes before all that mention it."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(f"{address}/search.html?q={words.replace(' ', '+')}")
    found = WebDriverWait(browser, 600).until(lambda b: b.find_elements(By.CSS_SELECTOR, "#search-results>ul>li>a"))
    assert f"/howto/{page}.html" in found[0].get_attribute("href")


def test_an_entry_fits_on_a_screen(address, browser):
    """integrate, whose further parameters and notes are folded, yet on the page."""
    browser.set_window_size(*SIZES["desktop"])
    browser.get(f"{address}/reference.html")
    entry = "document.getElementById('odesim.integrate').parentElement"
    height, screen, words = browser.execute_script(f"return [{entry}.offsetHeight, innerHeight, {entry}.textContent]")
    assert height < screen
    assert all(name in words for name in inspect.signature(odesim.integrate).parameters)


def test_formulas_are_drawn(address, browser):
    """A model's equations are MathML with a height."""
    browser.get(f"{address}/generated/models/joma.html")
    shown = "[...document.querySelectorAll('math')].map(m => m.getBoundingClientRect().height).filter(height => height)"
    heights = browser.execute_script(f"return {shown}")  # of a formula with lines for a telephone one of two is shown
    assert len(heights) > 20
    assert min(heights) > 5
