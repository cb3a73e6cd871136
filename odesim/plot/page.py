"""Pages of a System as figures, in the formulas of matplotlib: a pdf needs no installation of LaTeX."""

import re
import textwrap
from pathlib import Path
from typing import Any

import sympy as sp
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import MathTextParser

from odesim.display.formulas import Formulas, LatexPrinter
from odesim.display.line_breaks import break_formula
from odesim.display.page import Formula, Page, Row, formula_latex, page_of
from odesim.plot.files import METADATA, write_atomically
from odesim.plot.style import project_style
from odesim.symbolic.system import System

PAPER = (595.0, 842.0)  # A4, in points
MARGIN, INDENT = 62.0, 14.0
TITLE, HEADING, WORDS, MATHS, LEAST = 16.0, 11.0, 9.0, 11.0, 4.0  # type; a line of a formula that is too wide shrinks, to LEAST
INK, SOFT = "#222222", "#666666"
WIDTH = PAPER[0] - 2 * MARGIN - INDENT  # of a formula
CHARACTERS, CODE = 98, 84  # of words in a line, of formulas as text, which have wider letters
STYLE: Any = {"font.family": "DejaVu Sans", "mathtext.fontset": "cm", "text.color": INK}
DELIMITER = r"(\\[a-zA-Z]+|\\.|.)"
BRACKET = re.compile(rf"\\left(?![a-z])\s*{DELIMITER}|\\right(?![a-z])\s*{DELIMITER}")
TALL = re.compile(r"\\(d?frac|sum|prod|int|sqrt|max|min|underset|substack|left)(?![a-z])")


def save_pages(system: System, path: Path) -> None:
    """Writes the pages of a System as a pdf, replacing a file there. Raises StoreError."""
    with project_style(STYLE):
        figures = Sheets(page_of(system, MathtextPrinter)).figures()

        def write(temporary: Path) -> None:
            with PdfPages(temporary, metadata=METADATA["pdf"]) as pdf:
                for figure in figures:
                    pdf.savefig(figure)

        write_atomically(path, write)


class Sheets:
    """Sheets of paper that are filled from the top."""

    def __init__(self, page: Page):
        self.page, self.sheets, self.y = page, list[Figure](), 0.0
        self.parser: Any = MathTextParser("path")
        self.new_sheet()

    def figures(self) -> list[Figure]:
        """The sheets with everything on them."""
        self.line(self.page.title, TITLE, weight="bold")
        self.words(self.page.source, color=SOFT)
        for title, rows in self.page.sections.items():
            first = self.height(rows[0])
            self.room(HEADING * 2.8 + first)
            self.y -= HEADING
            self.line(title, HEADING, weight="bold")
            for row in rows:
                self.row(row)
        return self.sheets

    def new_sheet(self) -> None:
        """Begins a sheet."""
        self.sheets.append(Figure(figsize=(PAPER[0] / 72, PAPER[1] / 72)))
        self.y = PAPER[1] - MARGIN

    def room(self, height: float) -> None:
        """Begins a sheet where this one has not this much room."""
        if self.y - height < MARGIN:
            self.new_sheet()

    def put(self, x: float, text: str, size: float, **style: Any) -> None:
        """Text on the current line, x points from the margin."""
        self.sheets[-1].text((MARGIN + x) / PAPER[0], self.y / PAPER[1], text, fontsize=size, va="baseline", **style)

    def line(self, text: str, size: float, **style: Any) -> None:
        """A line of words."""
        self.room(size * 1.5)
        self.y -= size * 1.4
        self.put(0, text, size, parse_math=False, **style)

    def words(self, text: str, indent: float = 0.0, most: int = CHARACTERS, **style: Any) -> None:
        """A paragraph, of at most so many characters a line."""
        for piece in textwrap.wrap(text, most, break_on_hyphens=False):
            self.room(WORDS * 1.5)
            self.y -= WORDS * 1.5
            self.put(indent, piece, WORDS, parse_math=False, **style)

    def height(self, row: Row) -> float:
        """About how much room a row needs."""
        return 2 * WORDS if row.formula is None else 2 * WORDS + self.measured(self.text(row.formula))[2]

    def row(self, row: Row) -> None:
        """A row: its name and words, then the formula; or both in one line."""
        if row.formula is None:
            self.words(row.words)
        elif row.inline:
            self.inline(self.text(row.formula), row.words)
        else:
            if row.name:
                self.room(self.height(row))
                self.words(f"{row.name}: {row.words}" if row.words else row.name)
            text = self.text(row.formula)
            if self.fits(text):
                self.formula(text)
            else:
                self.words(plain_text(self.page.formulas, row.formula), INDENT, CODE)
        if row.condition is not None:
            self.formula(rf"\mathrm{{for\ starts\ with}}\ {self.page.formulas.print_latex(row.condition)}")

    def inline(self, text: str, words: str) -> None:
        """A formula and words in one line; further lines of words below it."""
        size, width, height, depth = self.measured(text)
        first, *others = textwrap.wrap(words, CHARACTERS - int(width / 4.6), break_on_hyphens=False)
        self.room(max(height, WORDS * 1.6))
        self.y -= max(height - depth + 3, WORDS * 1.6)
        self.put(0, f"${plain_brackets(text)}$", size)
        self.put(width + 7, first, WORDS, parse_math=False)
        self.y -= max(depth - 2, 0)
        self.words(" ".join(others), INDENT)

    def formula(self, text: str) -> None:
        """A formula on lines of its own."""
        for line in self.lines(text):
            size, _, height, depth = self.measured(line)
            self.room(height + 8)
            self.y -= height - depth + 6
            self.put(INDENT, f"${plain_brackets(line)}$", size)
            self.y -= depth + 2

    def lines(self, text: str) -> list[str]:
        """The lines of a formula that is wider than the page: the further ones begin to the right."""
        first, *others = break_formula(text, lambda line: self.extents(line)[0], WIDTH - INDENT)
        return [first, *(rf"\qquad {line}" for line in others)]

    def fits(self, text: str) -> bool:
        """Whether a line of a formula, at the smallest type, is no wider than the page."""
        return all(self.measured(line)[1] < WIDTH + 1 for line in self.lines(text))

    def measured(self, text: str) -> tuple[float, float, float, float]:
        """(size of type, width, height, depth) of a formula that fits the page, in points."""
        width, height, depth = self.extents(text)
        part = max(min(1.0, WIDTH / width), LEAST / MATHS)
        return MATHS * part, width * part, height * part, depth * part

    def extents(self, text: str) -> tuple[float, float, float]:
        """(width, height, depth) of a formula in points, at its full size."""
        width, height, depth, *_ = self.parser.parse(f"${plain_brackets(text)}$", 72, FontProperties(size=MATHS))
        return width, height, depth

    def text(self, f: Formula) -> str:
        """A formula in the language of matplotlib."""
        return large_fractions(formula_latex(self.page.formulas, f))


def plain_text(formulas: Formulas, f: Formula) -> str:
    """A formula that is too wide for the page as plain text, which breaks into lines."""
    form = {"rate": "d{}/dt", "next": "{}(t + 1)", "start": "{}(0)"}.get(f.kind, "{}")
    left = f.name or form.format(formulas.print_text(f.left))
    return left + (f" {f.relation} {formulas.print_text(f.right)}" if f.right is not None else "")


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


# matplotlib sets every fraction in the small type of a line of text, where those of an equation stand alone
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
    for bracket in BRACKET.finditer(text):
        levels[-1] += text[last : bracket.start()]
        last = bracket.end()
        if bracket[1]:
            opened.append(bracket[1])
            levels.append("")
        elif opened:
            inside, before = levels.pop(), opened.pop()
            levels[-1] += (
                rf"\left{before}{inside}\right{bracket[2]}" if TALL.search(inside) else visible(before) + inside + visible(bracket[2])
            )
    return "".join(levels) + text[last:]


def visible(bracket: str) -> str:
    """A LaTeX bracket as printed; `.` prints nothing."""
    return "" if bracket == "." else bracket
