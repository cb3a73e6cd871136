"""A System as a LaTeX document: everything that `show` prints, in the symbols of the paper."""

import re
from collections.abc import Callable, Iterator

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


OPEN, CLOSE = r"\left. ", r" \right."  # brackets that are not seen, around the part of a line that lies in brackets of others

SIGN = re.compile(r"(?<=[^\s=({\[,&]) (?=[+-] |\\ \\(?:text|mathrm)\{and\})")  # the space before a sign between two terms, or "and"

RANGES = r" \qquad "  # before the ranges of the indices, which end a formula

TOKEN = re.compile(r"\\left\b|\\right\b|\\[a-zA-Z]+|\\.|[{}]")

PIECE = re.compile(r"\\(?:dfrac|frac)|\\[a-zA-Z]+|\\.|[{}_^]|\s+|.", re.DOTALL)

SCRIPT, WIDE = 0.7, {r"\sum": 1.6, r"\prod": 1.6, r"\qquad": 4.0, r"\quad": 2.0}  # widths in letters

UNSEEN = re.compile(r"\\(left|right|mathrm|mathtt|mathbb|text|operatorname|displaystyle|,|;|!)")


def break_formula(text: str, width: Callable[[str], float], most: float) -> list[str]:
    """The lines of a formula, no wider than `most` where it has places to break. width: of a formula."""
    if width(text) <= most:
        return [text]
    places = list(places_to_break(text))
    lines = [text]
    for depth in sorted({depth for _, depth in places}):
        lines = fill(text, [at for at, own in places if own <= depth], width, most)
        if max(map(width, lines)) <= most:
            break
    return lines


def places_to_break(text: str) -> Iterator[tuple[int, float]]:
    """(place of a space, number of pairs of brackets around it), not inside of fractions, scripts, cases and ranges.

    Before the ranges the number is 0.5: they stand alone rather than that brackets are broken.
    """
    text, mark, _ = text.partition(RANGES)
    signs, depth, braces, last = {m.start() for m in SIGN.finditer(text)}, 0, 0, 0
    for token in TOKEN.finditer(text):
        if braces == 0:
            yield from ((at, depth) for at in range(last, token.start()) if at in signs)
        depth += {r"\left": 1, r"\right": -1}.get(token[0], 0) if braces == 0 else 0
        braces += {"{": 1, "}": -1, r"\begin": 1, r"\end": -1}.get(token[0], 0)
        last = token.end()
    yield from ((at, depth) for at in range(last, len(text)) if at in signs)
    if mark:
        yield len(text), 0.5


def fill(text: str, places: list[int], width: Callable[[str], float], most: float) -> list[str]:
    """Lines of text, each as long as it can be, cut at some of these places."""
    lines, first = list[str](), 0
    while True:
        ends = [at for at in places if at > first] + [len(text)]
        end = ends[0]
        for further in ends[1:]:
            if width(closed(text, first, further)) > most:
                break
            end = further
        lines.append(closed(text, first, end))
        if end == len(text):
            return lines
        first = end


def closed(text: str, first: int, end: int) -> str:
    """text[first:end], with unseen brackets for those that begin before it or end after it."""
    before, inside = open_brackets(text[:first]), open_brackets(text[:end])
    return OPEN * before + text[first:end].strip() + CLOSE * inside


def open_brackets(text: str) -> int:
    """How many pairs of brackets are open at the end of text."""
    return len(re.findall(r"\\left\b", text)) - len(re.findall(r"\\right\b", text))


def letters(text: str) -> float:
    """About how wide a formula is, in letters: a fraction is as wide as its wider part, scripts are small, commands are one letter."""
    return sum(size for _, size in pieces(PIECE.findall(UNSEEN.sub("", text))))


def pieces(tokens: list[str]) -> list[tuple[str, float]]:
    """(first token, width) of the parts of a formula, in order."""
    found, queue = list[tuple[str, float]](), tokens[::-1]

    def group() -> float:
        """The width of the next part: one token, or what is in braces."""
        if not queue or queue[-1] != "{":
            return pieces([queue.pop()])[0][1] if queue else 0.0
        inner, depth = list[str](), 0
        while queue:
            token = queue.pop()
            depth += {"{": 1, "}": -1}.get(token, 0)
            if depth == 0:
                break
            inner.append(token)
        return sum(size for _, size in pieces(inner[1:]))

    while queue:
        token = queue.pop()
        if token in (r"\frac", r"\dfrac"):
            found.append((token, max(group(), group()) + 0.3))
        elif token in ("_", "^"):
            found.append((token, SCRIPT * group()))
        elif token == "{":
            queue.append(token)
            found.append((token, group()))
        elif token.strip() and token != "}":
            found.append((token, WIDE.get(token, 1.0) + 0.8 * (token in "+-=")))
    return found
