"""A System as an HTML page."""

from html import escape
from typing import Any

from odesim.display.formulas import readable
from odesim.display.mathml import MathML, brackets, listed, row, sign, tag
from odesim.display.page import Formula, Page, Row, page_of
from odesim.symbolic.parts import Definition

HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="odesim">
<title>{title}</title>
<style>
body {{ max-width: 56rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 Georgia, serif; color: #222; background: #fff; }}
h1, h2 {{ font-family: system-ui, sans-serif; font-weight: 600; }}
h1 {{ font-size: 1.6rem; margin-bottom: 0; }}
h2 {{ font-size: 1.1rem; margin: 2rem 0 .5rem; border-bottom: 1px solid #ddd; }}
.source, .about {{ color: #555; }}
.formula {{ display: flex; flex-wrap: wrap; gap: 0 2rem; align-items: center; }}
.formula {{ overflow: auto hidden; margin: .3rem 0 .3rem 1.5rem; padding: .4rem 0; }}
.range {{ color: #555; font-size: .9rem; margin-left: auto; padding-left: 1rem; white-space: nowrap; }}
math {{ font: 1.1rem "STIX Two Math", "Latin Modern Math", "Cambria Math", "DejaVu Math TeX Gyre", math; }}
p {{ margin: .3rem 0; }}
</style>
</head>
<body>
"""

SPACE = '<mspace width="2em"/>'

RELATIONS = {"=": "=", ">=": "≥", "<-": "←"}


def html_page(system: Definition) -> str:
    """A page of HTML: equations, parameters, initial values, observables, laws, events, closed forms, source."""
    page = page_of(system)
    return HEAD.format(title=escape(page.title)) + html_body(page) + "\n</body>\n</html>\n"


def html_fragment(system: Definition) -> str:
    """A System in HTML, as part of another page such as a notebook: no styles and no scripts, which notebooks remove."""
    return f"<div>{html_body(page_of(system), beside=False)}</div>"


def html_body(page: Page, *, beside: bool = True) -> str:
    """Title, source and the sections of a page. beside: ranges of indices stand at the right edge, by its styles, else in the formula."""
    body = [tag("h1", escape(page.title)), f'<p class="source">{escape(page.source)}</p>']
    for title, rows in page.sections.items():
        body += [tag("h2", escape(title)), *(row_html(page, r, beside=beside) for r in rows)]
    return "\n".join(body)


class Formatter:
    """The formulas of a page as MathML."""

    def __init__(self, page: Page):
        self.constants, self.printer = page.formulas.constants, MathML()

    def __call__(self, e: Any) -> str:
        return self.printer.doprint(readable(e, self.constants))

    def formula(self, f: Formula) -> str:
        """A formula without the ranges of its indices."""
        left = self.left(f)
        if f.kind == "set":
            if not f.right:
                return left
            extents = [brackets(self(n)) if n.args else self(n) for n in f.right]
            times = [piece for n, extent in enumerate(extents) for piece in ([sign("×")] if n else []) + [extent]]
            return row(left, sign("∈"), tag("msup", tag("mi", "ℝ"), row(*times)))
        return left if f.right is None else row(left, sign(RELATIONS[f.relation]), self(f.right))

    def left(self, f: Formula) -> str:
        """The left side of a formula."""
        if f.name:
            name = tag("mtext", escape(f.name))
            return tag("msub", name, listed([self(i) for i in f.left])) if f.left else name
        left = self(f.left)
        if f.kind == "rate":
            return row(tag("mfrac", tag("mi", "d", mathvariant="normal"), row(tag("mi", "d", mathvariant="normal"), tag("mi", "t"))), left)
        arguments = {"start": tag("mn", "0"), "next": row(tag("mi", "t"), sign("+"), tag("mn", "1"))}
        return row(left, brackets(arguments[f.kind])) if f.kind in arguments else left

    def ranges(self, f: Formula) -> list[str]:
        """The values that each index takes, in words of mathematics."""
        return [row(self(i), sign("="), listed([tag("mn", "0"), sign("…"), self(last)])) for i, last in f.ranges]


def math(inner: str, **attributes: str) -> str:
    """inner as a formula of the page."""
    return tag("math", inner, **attributes)


def row_html(page: Page, r: Row, *, beside: bool = True) -> str:
    """A row: its name, words, and the formula, on a line of its own or in that of the words."""
    write = Formatter(page)
    words = escape(r.words)
    if r.condition is not None:
        words += f", for starts with {math(write(r.condition))}"
    if r.formula is None:
        return tag("p", words)
    if r.inline:
        return tag("p", math(write.formula(r.formula)), f" {words}")
    title = f'<p><b>{escape(r.name)}</b> <span class="about">{words}</span></p>\n' if r.name else ""
    ranges = write.ranges(r.formula)
    if not beside:  # a paragraph: its margins keep the fractions of two formulas apart
        inner = row(write.formula(r.formula), SPACE, listed(ranges)) if ranges else write.formula(r.formula)
        return f'{title}<p class="formula">{math(inner, display="block")}</p>'
    aside = f'<span class="range">{", ".join(map(math, ranges))}</span>' if ranges else ""
    return f'{title}<div class="formula">{math(write.formula(r.formula), display="block")}{aside}</div>'
