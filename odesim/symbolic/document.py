"""A System as a LaTeX document: everything that `show` prints, in the symbols of the paper."""

from odesim.display.document import break_formula, letters
from odesim.display.formulas import Formulas, rate_latex
from odesim.display.page import Formula, Page, Row, page_of
from odesim.symbolic.system import System

HEAD = r"""\documentclass{article}
\usepackage[a4paper,margin=20mm]{geometry}
\usepackage{amsmath,amssymb,graphicx}
\setlength{\parindent}{0pt}
\newsavebox{\formula}
% a line of a formula that is wider than the page is made smaller, never cut
\newcommand{\fit}[1]{\sbox{\formula}{$\displaystyle #1$}%
  \ifdim\wd\formula>\linewidth\resizebox{\linewidth}{!}{\usebox{\formula}}\else\usebox{\formula}\fi\par\medskip}
\begin{document}"""
RELATIONS = {"=": "=", ">=": r"\geq", "<-": r"\leftarrow"}
TIMES = r" \times "
LETTERS = 80.0  # in a line of a formula


def latex_document(system: System) -> str:
    """A LaTeX document that compiles: equations, parameters, initial values, observables, laws, events, closed forms, source."""
    page = page_of(system)
    body = [f"\\section*{{{escape(page.title)}}}", escape(page.source)]
    for title, rows in page.sections.items():
        body += [f"\\subsection*{{{title}}}", *(row_latex(page, row) for row in rows)]
    return "\n".join([HEAD, *body, "\\end{document}"]) + "\n"


def escape(text: str) -> str:
    """text with the special characters of LaTeX escaped."""
    signs = {"\\": r"\textbackslash{}", "^": r"\^{}", "~": r"\~{}", "<": r"\textless{}", ">": r"\textgreater{}"}
    text = "".join(signs.get(c, f"\\{c}" if c in "_&%#${}" else c) for c in text)
    return text if text.isascii() else "".join(c if c.isascii() else "?" for c in text)


def row_latex(page: Page, row: Row) -> str:
    """A row: its name, words, and the formula, on a line of its own or in that of the words."""
    words = escape(row.words)
    if row.condition is not None:
        words += rf", for starts with ${page.formulas.print_latex(row.condition)}$"
    if row.formula is None:
        return f"{words}\\par"
    formula = formula_latex(page.formulas, row.formula)
    if row.inline:
        return f"${formula}${':' if row.formula.name else ','} {words}\\par"
    title = f"\\textit{{{escape(row.name)}}}{f': {words}' if words else ''}\\par\n" if row.name else ""
    return f"{title}\\fit{{{in_lines(formula)}}}"


def in_lines(formula: str) -> str:
    """A formula, broken into lines where it is wider than the page."""
    first, *others = break_formula(formula, letters, LETTERS)
    rest = "".join(rf" \\ & \quad {line}" for line in others)
    return rf"\begin{{aligned}} & {first}{rest} \end{{aligned}}" if others else first


def formula_latex(formulas: Formulas, f: Formula) -> str:
    """A formula as LaTeX."""
    text = left_latex(formulas, f)
    if f.kind == "set":
        extents = [f"({formulas.latex(n)})" if n.args else formulas.latex(n) for n in f.right]
        return text + (rf" \in \mathbb{{R}}^{{{TIMES.join(extents)}}}" if extents else "")
    if f.right is not None:
        text += f" {RELATIONS[f.relation]} {formulas.print_latex(f.right)}"
    ranges = [rf"{formulas.print_latex(i)} = 0, \dots, {formulas.latex(last)}" for i, last in f.ranges]
    return text + (r" \qquad " + r",\; ".join(ranges) if ranges else "")


def left_latex(formulas: Formulas, f: Formula) -> str:
    """The left side of a formula as LaTeX."""
    if f.name:
        index = f"_{{{','.join(map(formulas.print_latex, f.left))}}}" if f.left else ""
        return rf"\mathtt{{{escape(f.name)}}}{index}"
    if f.kind in ("rate", "next"):
        return rate_latex(formulas, f.left, f.kind == "next")
    return formulas.print_latex(f.left) + "(0)" * (f.kind == "start")
