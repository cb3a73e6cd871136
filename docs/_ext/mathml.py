"""Formulas as MathML, which browsers draw by themselves: no JavaScript, no network, no LaTeX."""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

from odesim.display.document import break_formula, letters

NARROW = 28.0  # letters of a formula in a line of a telephone


def mathml(formula: str, display: str = "inline") -> str:
    """A formula as MathML."""
    return convert(formula.replace(r"\mathtt", r"\text"), display=display)  # latex2mathml does not know mathtt


def visit_inline(writer: Any, node: nodes.math) -> None:
    """Writes a formula within a line."""
    writer.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    """Writes a formula on lines of its own, as parts that a browser puts in one line or in several: it breaks no formula by itself."""
    parts = (mathml(part, "block") for part in break_formula(node.astext().strip(), letters, NARROW))
    writer.body.append(f'<div class="formula">{" ".join(parts)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
