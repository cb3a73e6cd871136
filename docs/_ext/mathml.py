"""Formulas as MathML, which browsers draw by themselves: no JavaScript, no network, no LaTeX; also those that prose has in ASCII."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from odesim.display.line_breaks import break_formula, letters, sized_brackets
from odesim.display.notation import pieces

WIDE, NARROW, INLINE = 63.0, 33.0, 28.0  # letters of a formula in a line of a window, of a telephone, of its text

APART = (nodes.literal, nodes.math, nodes.math_block, nodes.raw, nodes.FixedTextElement, nodes.comment, addnodes.desc_signature)
"""Nodes whose text is no prose."""
OF_CODE = {"reference", "command_line"}
"""Pages about code."""


def mathml(formula: str, display: str = "inline") -> str:
    """A formula as MathML."""
    text = re.sub(r"\\mathtt(\{(?:[^{}\\]|\\.)*\})", lambda name: r"\text" + name[1].replace(r"\_", "_"), formula)
    return convert(text, display=display)  # latex2mathml does not know mathtt, and shows the stroke before _


def visit_inline(writer: Any, node: nodes.math) -> None:
    """Writes a formula within a line, which may go on in the next one."""
    writer.body.append(in_lines(node.astext(), INLINE, "inline"))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    """Writes a formula on lines of its own: where a telephone needs more lines than a window, the page has both, and shows one."""
    formula = node.astext().strip()
    wide, narrow = (in_lines(formula, most) for most in (WIDE, NARROW))
    texts = {"formula": wide} if wide == narrow else {"formula wide": wide, "formula narrow": narrow}
    writer.body += [f'<div class="{names}">{text}</div>' for names, text in texts.items()]
    raise nodes.SkipNode


def in_lines(formula: str, most: float, display: str = "block") -> str:
    """The lines of a formula as MathML: a browser breaks none by itself."""
    return " ".join(mathml(sized_brackets(line), display) for line in break_formula(formula, letters, most))


class Notation(SphinxTransform):
    """Puts formulas in the place of mathematics in the text of a page."""

    default_priority = 890

    def apply(self, **options: Any) -> None:
        """Replaces the nodes of text that have any."""
        if self.env.docname in OF_CODE:
            return
        for text in list(self.document.findall(nodes.Text)):
            parent, above = text.parent, text.parent
            while above is not None and not isinstance(above, APART):
                above = above.parent
            if above is None:
                parts = [(formula, part) for formula, part in pieces(text.astext()) if part]
                if parts != [(False, text.astext())]:
                    parent.replace(text, [nodes.math(part, part) if formula else nodes.Text(part) for formula, part in parts])


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the renderer."""
    app.add_transform(Notation)
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    # a build reads all pages anew where the last one had another number
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
