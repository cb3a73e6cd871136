"""Pages of models as files: everything is on them, and no file of others is lost."""

import re
from collections import ChainMap
from xml.dom import minidom

import numpy as np
import pytest
from sympy import Interval, Symbol, oo, symbols

from odesim.display.document import html_page
from odesim.display.page import page_of
from odesim.symbolic import ClosedForm, Event, IndexedBase, Invariant, Param, Source, System, index, sizes
from tests.support.models import Shipped
from tests.support.systems import SYSTEMS

MANY = symbols("q_:30", real=True)  # more than a sheet
(m,), (M,), rate = index("m"), sizes("M"), Symbol("rate_2", real=True)
v = IndexedBase("v", shape=(M,))
ODD = System(
    name="odd.names",
    source=Source("key", "eq. 1 < 2", "<script>alert(1)</script> & $x$"),
    axes={m: M},
    equations={v[m]: -rate * v[m] + sum(MANY)},
    params=(Param(rate, 1.0, Interval(-oo, oo), "<b>bold</b> & more in $ and _"), *(Param(q, 1.0, Interval(-oo, oo), "") for q in MANY)),
    initial={v[m]: 1.0},
    invariants=tuple(Invariant(f"law {q}", sum((q / p) ** 2 for p in MANY[:8]), "constant") for q in MANY[:12]),
    observables={"f_of_t": lambda t, y, dy, params: t},
    events=(Event("half <i>way</i>", v[m] - 0.5, -1, True, "a < b"),),
)
ALL = ChainMap({**SYSTEMS, ODD.name: ODD}, Shipped())  # type: ignore[arg-type]
QUICK = (ODD.name, "joma.linear", "gathered", "largest")
EACH = pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in ALL if name not in QUICK)])


@EACH
def test_a_web_page_is_complete_and_alone(name):
    """It is well-formed; names are escaped; MathJax, which draws the formulas, is the one script and the one address."""
    text = html_page(ALL[name])
    body = minidom.parseString(text[text.index("<body") :].replace("</html>", "")).documentElement
    assert body is not None and body.getAttribute("class") == "mathjax_ignore"
    assert len(re.findall(r"<script|https?:|src=|href=|@import", text)) == 3 and text.count("mathjax@3/es5/tex-chtml.js") == 1
    formulas = [part for part in body.getElementsByTagName("span") if part.getAttribute("class") == "mathjax_process"]
    assert len(formulas) == text.count("mathjax_process")
    for thing in (*ALL[name].observables, *(e.name for e in ALL[name].events), *(e.name for e in ALL[name].invariants)):
        assert thing in "".join(node.data for node in texts(body)).replace(r"\_", "_")


def texts(node):
    """The texts below a node of XML."""
    for child in node.childNodes:
        if child.nodeType == child.TEXT_NODE:
            yield child
        else:
            yield from texts(child)


def test_show_writes_a_page(folder, odesim):
    """A page that odesim wrote is replaced by the same bytes."""
    words = ("show", "joma.linear", "--html", "a.html")
    done = odesim(*words)
    assert done.exit_code == 0 and done.stdout == "written to a.html\n"
    before = (folder / "a.html").read_bytes()
    assert before.startswith(b"<!DOCTYPE html>")
    assert odesim(*words).exit_code == 0 and (folder / "a.html").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--html", "a.txt"), "ends in .html"),
        (("--html", "mine.html"), "mine.html is there"),
        (("--html", "no/a.html"), "no folder"),
        (("--html", "a.html", "--json"), "choose one"),
    ],
)
def test_a_page_that_cannot_be_written(words, sentence, folder, odesim):
    """One sentence, exit code 2; nothing is written, and files of others stay but with --overwrite."""
    (folder / "mine.html").write_text("mine")
    done = odesim("show", "joma.linear", *words)
    assert done.exit_code == 2 and sentence in done.stderr and done.stderr.count("\n") == 1
    assert [p.name for p in folder.iterdir()] == ["mine.html"] and (folder / "mine.html").read_text() == "mine"


def test_overwrite_replaces_a_file_of_others(folder, odesim):
    (folder / "mine.html").write_text("mine")
    assert odesim("show", "joma.linear", "--html", "mine.html", "--overwrite").exit_code == 0
    assert "joma.linear" in (folder / "mine.html").read_text()


def test_words_of_a_page() -> None:
    """Every word that a page prints beside its formulas."""
    u, c, x = Symbol("u", real=True), Symbol("c", real=True), IndexedBase("x", shape=(M,))
    events = (
        Event("kick", u - 1, 1, True, "it is hit", {u: 0}, at_start=True),
        Event("rest", u, -1),
        Event("either", u + c),
    )
    page = page_of(
        System(
            name="words",
            source=Source("key", "eq. 4", "a note"),
            axes={m: M},
            equations={x[m]: c * x[m + 1] - u, u: -u},
            params=(Param(c, 1.5, Interval(0, oo), "drive"), Param(rate, lambda sizes, params: 2.0, Interval(-oo, oo), "speed")),
            initial={x[m]: 1.0, u: 2.0},
            sizes={M: 3},
            span=(0.0, 2.5),
            time="seconds",
            boundary={m: "periodic"},
            observables={"total": u + c, "seen": lambda t, y, dy, params: t},
            invariants=tuple(Invariant(sense, u**2, sense) for sense in ("constant", "nonincreasing", "nondecreasing", "nonnegative")),
            events=events,
            closed_forms=(ClosedForm("decay", "from any start", lambda t, y0, params: {"u": y0["u"] * np.exp(-t)}),),
        )
    )
    words = {title: [(row.name, row.words) for row in rows if row.name or row.words] for title, rows in page.sections.items()}
    assert page.title == "words" and page.source == "key, eq. 4; a note"
    assert words == {
        "Equations": [("", "m is periodic")],
        "Initial values": [],
        "Parameters": [("", "in [0, inf), default 1.5: drive"), ("", "in (-inf, inf), default from the sizes: speed")],
        "Observables": [("", "a function")],
        "Invariants": [
            ("constant", "is constant"),
            ("nonincreasing", "does not rise"),
            ("nondecreasing", "does not fall"),
            ("nonnegative", "is at least 0"),
        ],
        "Events": [
            ("kick", "rises through 0, or is past it at the start, where states are set and ends the run; it is hit"),
            ("rest", "falls through 0"),
            ("either", "passes 0"),
        ],
        "Closed forms": [("", "decay: explicit, from any start")],
        "Defaults": [("", "M = 3, t from 0 to 2.5 (seconds)")],
    }
    noisy = System("noisy", Source("key", "here"), {}, {u: -u}, (), {u: 1}, noise={u: {c: 1}}, step=0.1, span=(0, 1))
    assert [row.words for rows in page_of(noisy).sections.values() for row in rows if row.words] == [
        "the noise is meant in the sense of Ito",
        "t from 0 to 1, steps of 0.1",
    ]
