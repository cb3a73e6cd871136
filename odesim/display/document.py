"""Pages as text: LaTeX, HTML, and Markdown for notebooks, all of the same rows.

Formulas are LaTeX in all three: a browser draws them by MathJax, notebooks have it built in. A printer of MathML of our own was four
times as long and knew every class of sympy a second time.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape as escape_html

from odesim.display.line_breaks import LETTERS, break_formula, letters, sized_brackets
from odesim.display.page import Page, Row, escape, formula_latex, page_of
from odesim.symbolic.definition import Definition

HEAD = r"""\documentclass{article}
\usepackage[a4paper,margin=20mm]{geometry}
\usepackage{amsmath,amssymb,graphicx}
\setlength{\parindent}{0pt}
\newsavebox{\formula}
% a line of a formula that is wider than the page is made smaller, never cut
\newcommand{\fit}[1]{\sbox{\formula}{$\displaystyle #1$}%
  \ifdim\wd\formula>\linewidth\resizebox{\linewidth}{!}{\usebox{\formula}}\else\usebox{\formula}\fi\par\medskip}
\begin{document}"""
BLOCK = r"\[", r"\]"
WEB_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="odesim">
<title>{title}</title>
<script id="MathJax-script" async src="https://cdn.jsdelivr.net/npm/mathjax@3/es5/tex-chtml.js"></script>
<style>
body {{ max-width: 56rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 Georgia, serif; color: #222; background: #fff; }}
h1, h2 {{ font-family: system-ui, sans-serif; font-weight: 600; }}
h1 {{ font-size: 1.6rem; margin-bottom: 0; }}
h2 {{ font-size: 1.1rem; margin: 2rem 0 .5rem; border-bottom: 1px solid #ddd; }}
p {{ margin: .3rem 0; }}
div {{ overflow: auto hidden; margin: 0 0 0 1.5rem; }}
</style>
</head>
<body class="mathjax_ignore">
"""


@dataclass(frozen=True)
class Markup:
    """How a language writes the parts of a page; each function takes text that is escaped, and formulas in LaTeX."""

    escape: Callable[[str], str]
    title: Callable[[str], str]
    heading: Callable[[str], str]
    paragraph: Callable[[str], str]
    named: Callable[[str, str], str]  # the name of a formula, and words about it
    inline: Callable[[str], str]
    display: Callable[[str], str]


def _web_math(left: str, right: str) -> Callable[[str], str]:
    # words stay out of MathJax's hands: a page of somebody's words may hold its delimiters
    return lambda formula: f'<span class="mathjax_process">{left}{escape_html(formula)}{right}</span>'


def _named(start: str, end: str) -> Callable[[str, str], str]:
    return lambda name, words: f"{start}{name}{end}{f': {words}' if words else ''}"


LATEX = Markup(
    escape=escape,
    title=lambda text: f"\\section*{{{text}}}",
    heading=lambda text: f"\\subsection*{{{text}}}",
    paragraph=lambda text: f"{text}\\par",
    named=_named(r"\textit{", "}"),
    inline=lambda formula: f"${formula}$",
    display=lambda formula: f"\\fit{{{in_lines(formula)}}}",
)
WEB = Markup(
    escape=escape_html,
    title=lambda text: f"<h1>{text}</h1>",
    heading=lambda text: f"<h2>{text}</h2>",
    paragraph=lambda text: f"<p>{text}</p>",
    named=_named("<b>", "</b>"),
    inline=_web_math(r"\(", r"\)"),
    display=lambda formula: f"<div>{_web_math(*BLOCK)(formula)}</div>",
)
MARKDOWN = Markup(
    escape=lambda text: re.sub(r"([\\`*_{}\[\]<>&$#|~])", r"\\\1", text),
    # no headings: the outline of a notebook is its author's
    title=lambda text: f"**{text}**\n",
    heading=lambda text: f"**{text}**\n",
    paragraph=lambda text: f"{text}\n",
    named=_named("*", "*"),
    inline=lambda formula: f"${formula}$",
    display=lambda formula: f"$$\n{formula}\n$$\n",
)


def latex_document(system: Definition) -> str:
    """A LaTeX document that compiles: equations, parameters, initial values, observables, laws, events, closed forms, source."""
    return "\n".join([HEAD, *_written(page_of(system), LATEX, source=lambda text: text), "\\end{document}"]) + "\n"


def html_page(system: Definition) -> str:
    """The same as a page of HTML."""
    page = page_of(system)
    return WEB_HEAD.format(title=escape_html(page.title)) + "\n".join(_written(page, WEB)) + "\n</body>\n</html>\n"


def markdown(system: Definition) -> str:
    """The same as Markdown, for notebooks."""
    return "\n".join(_written(page_of(system), MARKDOWN))


def _written(page: Page, to: Markup, source: Callable[[str], str] | None = None) -> Iterator[str]:
    """The lines of a page. source: how the line of the source is written; as a paragraph by default."""
    yield to.title(to.escape(page.title))
    yield (source or to.paragraph)(to.escape(page.source))
    for title, rows in page.sections.items():
        yield to.heading(title)
        for row in rows:
            yield from _row(page, row, to)


def _row(page: Page, row: Row, to: Markup) -> Iterator[str]:
    """A row: its name, words, and the formula, on a line of its own or in that of the words."""
    words = to.escape(row.words)
    if row.condition is not None:
        words += f", for starts with {to.inline(page.formulas.print_latex(row.condition))}"
    if row.formula is None:
        yield to.paragraph(words)
        return
    formula = formula_latex(page.formulas, row.formula)
    if row.inline:
        yield to.paragraph(f"{to.inline(formula)}{':' if row.formula.name else ','} {words}")
        return
    if row.name:
        yield to.paragraph(to.named(to.escape(row.name), words))
    yield to.display(formula)


def in_lines(formula: str) -> str:
    """A formula, broken into lines where it is wider than the page."""
    first, *others = map(sized_brackets, break_formula(formula, letters, LETTERS))
    rest = "".join(rf" \\ & \quad {line}" for line in others)
    return rf"\begin{{aligned}} & {first}{rest} \end{{aligned}}" if others else first
