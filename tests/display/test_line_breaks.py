"""Wide formulas are broken into lines that together are the formula, and each of which is one by itself."""

import re

import pytest

from odesim.display.document import CLOSE, OPEN, break_formula, letters

FRACTION = r"\frac{a + b - c + d + e}{f - g}"
FORMULAS = {
    "terms": " + ".join("abcdefghij"),
    "brackets": r"x = y \left(" + " - ".join("abcdefghij") + r"\right)",
    "brackets in brackets": r"x = \left(a + y \left(b + c + d + e + f\right) - z \left(g + h + i + j\right)\right) + k + l",
    "fractions": " + ".join([FRACTION] * 6),
    "cases": r"x = \begin{cases} a + b & \text{for}\: c > 0 \\ d + e & \text{otherwise} \end{cases} + f + g + h + i + j + k + l",
    "unary": r"x = - a - \left(- b + c\right) - d + e + f + g + h + i",
    "ranges": r"x = a + b + c + d + e + f \qquad i = 0, \dots, M - 1,\; j = 0, \dots, N - 1",
    "conditions": r"a + b \leq 0 \ \text{and}\ \left(c - d + e\right)^{2} \leq 0 \ \text{and}\ f \geq 0",
    "scripts": r"v^{a + b + c + d + e + f + g + h + i + j} + x",
}


@pytest.mark.parametrize("most", [8, 12, 20, 200])
@pytest.mark.parametrize("name", FORMULAS)
def test_lines_are_the_formula(name: str, most: float) -> None:
    text = FORMULAS[name]
    lines = break_formula(text, letters, most)
    plain = [line.replace(OPEN, "").replace(CLOSE, "") for line in lines]
    assert " ".join(plain) == text
    for line in lines:
        assert line.count(r"\left") == line.count(r"\right")
        assert line.count("{") == line.count("}")
        assert line.count(r"\begin") == line.count(r"\end")
    assert all(re.match(r"[+-] |\\qquad |\\ \\text", line) for line in plain[1:])
    assert len(lines) == 1 or max(map(letters, plain)) < letters(text)


def test_only_wide_formulas_are_broken() -> None:
    assert break_formula("a + b", letters, 100.0) == ["a + b"]


def test_ranges_are_whole() -> None:
    """They stay with the last term if the formula can be broken before it, outside of brackets; else they stand alone."""
    ranges = r"\qquad i = 0, \dots, M - 1"
    assert break_formula(f"x = a + b + c {ranges}", letters, 22.0) == ["x = a + b", f"+ c {ranges}"]
    assert break_formula(rf"x = \left(a + b\right) c {ranges}", letters, 22.0) == [r"x = \left(a + b\right) c", ranges]


def test_brackets_are_broken_only_if_that_is_necessary() -> None:
    text = r"a + b + \left(c + d\right) + e + f"
    assert break_formula(text, letters, 11.0) == ["a + b", r"+ \left(c + d\right) + e", "+ f"]
    assert any(CLOSE in line for line in break_formula(text, letters, 6.0))


@pytest.mark.parametrize(
    ("text", "width"), [("a", 1.0), ("abc", 3.0), (r"\alpha", 1.0), (r"\frac{abc}{d}", 3.3), ("a_{bc}", 2.4), (r"\mathrm{d}x", 2.0)]
)
def test_width_counts_letters(text: str, width: float) -> None:
    assert letters(text) == pytest.approx(width)
