"""Wide formulas are broken into lines that together are the formula, and each of which is one by itself."""

import re

import pytest
import sympy as sp

from odesim.display.line_breaks import CLOSE, OPEN, SHARES, TIMES, break_formula, letters, sized_brackets, unfolded

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
    again = " ".join(plain).replace(TIMES, r"\, ").replace(r" \\ \quad \text", r" & \text")
    assert again in (text, *(unfolded(text, letters, share * most) for share in SHARES))
    for line in lines:
        assert line.count(r"\left") == line.count(r"\right")
        assert line.count("{") == line.count("}")
        assert line.count(r"\begin") == line.count(r"\end")
    assert all(re.match(r"[+-] |= |\\times |\\qquad |[ij] =|\\ \\text", line) for line in plain[1:])
    assert len(lines) == 1 or max(map(letters, plain)) < letters(text)


def test_conditions_of_wide_cases_stand_below() -> None:
    text = r"\begin{cases} a + b & \text{for}\: c > 0 \\ d & \text{otherwise} \end{cases}"
    assert break_formula(f"x = {text}", letters, 20.0) == [f"x = {text}"]
    below = r"\begin{cases} a + b \\ \quad \text{for}\: c > 0 \\ d \\ \quad \text{otherwise} \end{cases}"
    assert break_formula(text, letters, 12.0) == [below]
    assert break_formula(text.replace("c >", r"c = d \ \text{and}\ c >"), letters, 12.0) == [
        below.replace("c >", r"c = d \\ \quad \ \text{and}\ c >")
    ]
    nested = break_formula(text.replace("a + b", text), letters, 12.0)
    assert nested == [below.replace("a + b", below)]


def test_only_wide_formulas_are_broken() -> None:
    assert break_formula("a + b", letters, 100.0) == ["a + b"]


def test_ranges_are_whole() -> None:
    """They stay with the last term if the formula can be broken before it, outside of brackets; else they stand alone."""
    ranges = r"\qquad i = 0, \dots, M - 1"
    assert break_formula(f"x = a + b + c {ranges}", letters, 22.0) == ["x = a + b", f"+ c {ranges}"]
    assert break_formula(rf"x = \left(a + b\right) c {ranges}", letters, 22.0) == [r"x = \left(a + b\right) c", ranges]
    assert break_formula(rf"x {ranges},\; j = 0, \dots, N - 1", letters, 22.0) == [rf"x {ranges},\;", r"j = 0, \dots, N - 1"]


def test_brackets_are_broken_only_if_that_is_necessary() -> None:
    text = r"a + b + \left(c + d\right) + e + f"
    assert break_formula(text, letters, 11.0) == ["a + b", r"+ \left(c + d\right) + e", "+ f"]
    assert any(CLOSE in line for line in break_formula(text, letters, 6.0))


@pytest.mark.parametrize(
    ("text", "width"), [("a", 1.0), ("abc", 3.0), (r"\alpha", 1.0), (r"\frac{abc}{d}", 3.3), ("a_{bc}", 2.6), (r"\mathrm{d}x", 2.0)]
)
def test_width_counts_letters(text: str, width: float) -> None:
    assert letters(text) == pytest.approx(width)


def value(formula: str) -> sp.Expr:
    """The number that a formula of letters, fractions, roots, brackets and powers has, where each letter has one."""
    for sign, text in {
        r"\left(": "(",
        r"\right)": ")",
        r"\, ": "* ",
        TIMES: "* ",
        r"\frac": "over",
        r"\sqrt": "sqrt",
        "^": "**",
        "}{": ")(",
        "{": "(",
        "}": ")",
    }.items():
        formula = formula.replace(sign, text)
    while (last := formula.rfind("over(")) >= 0:  # the innermost: over(above)(below)
        depth, middle = 0, last + 4
        for middle in range(last + 4, len(formula)):
            depth += {"(": 1, ")": -1}.get(formula[middle], 0)
            if depth == 0:
                break
        below, depth = middle + 1, 0
        for end in range(below, len(formula)):
            depth += {"(": 1, ")": -1}.get(formula[end], 0)
            if depth == 0:
                break
        formula = f"{formula[:last]}({formula[last + 4 : below]}/{formula[below : end + 1]}){formula[end + 1 :]}"
    numbers = {letter: sp.Rational(n + 3, 7) for n, letter in enumerate("abcdefgh")}
    return sp.N(sp.sympify(formula, locals=numbers), 30)


@pytest.mark.parametrize("most", [2.0, 5.0, 8.0])
@pytest.mark.parametrize(
    "text",
    [
        r"a - \frac{b + c - d}{e} + f",
        r"a - \frac{- b}{c + d} \, e",
        r"\frac{a}{\sqrt{b + c + d \, e}}",
        r"a \, \frac{b \, c \, \left(d + e \, f\right)}{g + h} - h",
        r"\frac{\frac{a + b}{c + d} - \frac{e}{f \, \left(g + h\right)}}{\sqrt{a \, b} \, \sqrt{c + d}}",
        r"\left(a + \frac{1}{b + \sqrt{c + d + e}}\right)^{2} \, \frac{1}{f + g}",
    ],
)
def test_a_fraction_as_a_product_has_its_value(text: str, most: float) -> None:
    product = unfolded(text, letters, most)
    lines = [line.replace(OPEN, "").replace(CLOSE, "") for line in break_formula(text, letters, most)]
    assert abs(value(product) - value(text)) < 1e-25  # rounding of 30 digits
    assert abs(value(" ".join(lines)) - value(text)) < 1e-25


def test_no_factor_comes_into_a_sum() -> None:
    """A sum that leaves a fraction keeps its end: brackets show it where a factor follows."""
    summed = r"\sum_{i=0}^{n} {a}_{i}"
    assert unfolded(rf"\frac{{{summed}}}{{b}} \, c", letters, 2.0) == rf"\frac{{1}}{{b}} \, \left({summed}\right) \, c"
    assert unfolded(rf"\frac{{2 \, {summed}}}{{b}}", letters, 2.0) == rf"\frac{{2}}{{b}} \, {summed}"


def test_halves_of_brackets_have_one_size() -> None:
    """None is unseen, which would leave a hole; what is whole on its line is as large as what is in it."""
    lines = break_formula(r"x = y \left(\left(a + b\right) + c + d + e\right)^{2} + f", letters, 12.0)
    assert [sized_brackets(line) for line in lines] == [
        r"x = y {\biggl(}\left(a + b\right)",
        r"{} + c + d + e{\biggr)}^{2}",
        "{} + f",
    ]
