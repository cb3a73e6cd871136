"""The line of description of a picture: its mathematics as formulas, whole where lines are broken, with room for what is drawn."""

import re
from html import unescape

import numpy as np
import pytest
from matplotlib.mathtext import MathTextParser

from odesim.inputs.registry import summary
from odesim.plot.formulas import typeset, words_of
from odesim.plot.header import add_header, balanced, letter_count
from odesim.plot.html import to_plotly
from odesim.plot.style import WIDTH, compute_layout, new_figure, project_style
from tests.support.models import CHEAPEST_FIRST
from tests.support.notation import ASCII, NUMBER

PROSE = "The flow dx_i/dt = sum_j A_ij V x_j of tau^2 topics; |W_p W2 x|^2 <= P^l[r, s'], and a_(d in S) -> 10^-5 in `x_i` and z_(n-1)"


@pytest.mark.parametrize("name", CHEAPEST_FIRST)
def test_no_description_has_mathematics_of_terminals(name):
    """In pictures and on their pages; words, and names of models, are as they were."""
    words = summary(name)
    with project_style():
        shown = typeset(words)
        MathTextParser("path").parse(shown)
    formulas = re.sub(r"\$[^$]+\$", " ", shown)
    page = re.sub(r"<(sub|sup)>.*?</\1>", "", words_of(shown))
    for text in (formulas, unescape(re.sub("<[^>]*>", "", page))):
        assert not ASCII.search(text.replace("_", " ") if ASCII.search(name) else text) and not NUMBER.search(text)
    assert [word for word in re.findall(r"[a-z_]+\.[a-z_]+", words) if word not in shown] == []


@pytest.mark.parametrize(
    ("prose", "shown"),
    [
        ("tau of T topics", r"$\tau$ of T topics"),
        ("dx_i/dt = sum_j A_ij V x_j", "$dx_{i}$/dt = $∑_{j}$ $A_{ij}$ V $x_{j}$"),
        ("max_k x_k, a cost of 5$", r"$\mathrm{max}_{k}$ $x_{k}$, a cost of 5\$"),
        ("s_i <- x, `x_i` is code", "$s_{i}$ ← x, x_i is code"),
        (r"x_{\nosuch} of tau", r"x_{\nosuch} of tau"),
    ],
)
def test_prose_is_set(prose, shown):
    """Scripts of sums stand beside them; code stays, and so does a text with a formula that cannot be drawn."""
    with project_style():
        assert typeset(prose) == shown


@pytest.mark.parametrize("most", [12, 20, 33, 58])
def test_lines_are_broken_between_formulas(most):
    """Each line can be drawn by itself and has at most so many letters as are drawn; together they are the text."""
    with project_style():
        text = typeset(PROSE)
        lines = balanced(text, most).split("\n")
        for line in lines:
            MathTextParser("path").parse(line)
    assert " ".join(lines) == text and max(map(letter_count, lines)) <= most
    fewest = -(-letter_count(text) // most)
    assert fewest <= len(lines) <= fewest + 2  # marks count nothing: there are half as many letters as signs of the text


@pytest.mark.parametrize(
    ("formula", "letters"), [(r"$\tau$", 1), (r"$\bar{x}_{i}$", 3), (r"$\mathrm{max}_{k}$", 4), (r"cost \$5", 7), (r"$W_{p}$ W", 4)]
)
def test_letters_are_those_that_are_drawn(formula, letters):
    """Marks of formulas are none; an accent is a letter of its own in unicode."""
    assert letter_count(formula) == letters


@pytest.mark.parametrize(
    "about", ["One line", PROSE, "A long flow of words beside P^l[r, s'] and other words, of x_i^(k^2) and sum_(d in S)"]
)
@pytest.mark.parametrize("width", [40.0, WIDTH])
def test_a_description_has_room(about, width):
    """Between the title and the panels, within the figure, however high its formulas are."""
    with project_style():
        figure = new_figure(30.0, width=width)
        axes = figure.add_subplot()
        add_header(figure, "my.model", about=about)
        compute_layout(figure, last=True)
        head, words = figure.texts
        title, box, panel = (one.get_window_extent() for one in (head, words, axes))
    assert title.y0 >= box.y1 - 1 and box.y0 >= panel.y1 and box.x0 >= 0 and box.x1 <= figure.bbox.width  # a pixel of 400 to the inch
    assert all(line.count("$") % 2 == 0 for line in words.get_text().split("\n"))


def test_a_page_has_the_formulas_of_the_picture():
    """Unbroken where the window is wide, in lines of whole formulas where it is narrow."""
    with project_style():
        figure = new_figure(30.0)
        figure.add_subplot().plot(np.arange(3.0))
        add_header(figure, "my.model", about="The flow of tau topics by dx_i/dt = W_p x_i and |x|^2, in one more word, and another")
        page = to_plotly(figure)
    wide, narrow = (next(str(text) for text in way.values() if "flow" in str(text)) for way in page.layout.meta)
    formulas = ["flow of τ", "<i>d</i><i>x</i><sub><i>i</i></sub>/dt", "<i>W</i><sub><i>p</i></sub>", "|x|<sup>2</sup>"]
    assert [formula for formula in formulas for text in (wide, narrow) if formula not in text] == [], (wide, narrow)
    assert wide.count("<br>") < narrow.count("<br>")
