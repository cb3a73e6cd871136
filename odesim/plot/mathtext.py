"""Formulas in LaTeX made good for matplotlib: large fractions, brackets that are not too small, roots that do not collide."""

import re
from typing import Any

import sympy as sp

from odesim.display.formulas import LatexPrinter

DELIMITER = r"(\\[a-zA-Z]+|\\.|.)"
BRACKET = re.compile(rf"\\left(?![a-z])\s*{DELIMITER}|\\right(?![a-z])\s*{DELIMITER}")
TALL = re.compile(r"\\(d?frac|sum|prod|int|sqrt|max|min|underset|substack|left)(?![a-z])")


class MathtextPrinter(LatexPrinter):
    """A printer of the LaTeX that matplotlib knows: cases stand in one line, roots above the second are powers."""

    upright = "mathrm"

    def _print_Piecewise(self, e: Any) -> str:
        cases = []
        for value, condition in e.args:
            when = r"\ \mathrm{otherwise}" if condition == sp.true else rf"\ \mathrm{{if}}\ {self._print(condition)}"
            cases.append(self._print(value) + when)
        return r"\left[" + r",\ \ ".join(cases) + r"\right]"

    def _print_Pow(self, e: Any) -> str:
        if e.exp.is_Rational and abs(e.exp.p) == 1 and e.exp.q > 2:
            base = self._print(e.base)
            root = (base if e.base.is_Symbol else rf"\left({base}\right)") + rf"^{{1/{e.exp.q}}}"
            return root if e.exp.p == 1 else rf"\frac{{1}}{{{root}}}"
        return str(super()._print_Pow(e))

    def _print_Mod(self, e: Any, exp: Any = None) -> str:
        text: str = super()._print_Mod(e, exp)
        return text.replace(r"\bmod", r"\ \mathrm{mod}\ ")


def large_fractions(text: str) -> str:
    """The LaTeX text with fractions of full size, but in indices and exponents."""
    scripts, pieces = [False], list[str]()
    for piece in re.split(r"(\\frac|[_^]?\{|\})", text):
        if piece.endswith("{"):
            scripts.append(scripts[-1] or len(piece) == 2)
        elif piece == "}":
            scripts.pop()
        pieces.append(r"\dfrac" if piece == r"\frac" and not scripts[-1] else piece)
    return "".join(pieces)


def plain_brackets(text: str) -> str:
    r"""The LaTeX text with \left( and \right) around letters alone as ( and ): matplotlib makes them smaller than the letters."""
    levels, opened, last = [""], list[str](), 0
    for found in BRACKET.finditer(text):
        levels[-1] += text[last : found.start()]
        last = found.end()
        if found[1]:
            opened.append(found[1])
            levels.append("")
        elif opened:
            inside, before = levels.pop(), opened.pop()
            levels[-1] += rf"\left{before}{inside}\right{found[2]}" if TALL.search(inside) else visible(before) + inside + visible(found[2])
    return "".join(levels) + text[last:]


def visible(bracket: str) -> str:
    """A LaTeX bracket as printed; `.` prints nothing."""
    return "" if bracket == "." else bracket
