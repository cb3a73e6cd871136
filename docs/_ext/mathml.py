"""Formulas as MathML, which browsers draw by themselves: no JavaScript, no network, no LaTeX."""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def visit_inline(writer: Any, node: nodes.math) -> None:
    """Writes a formula within a line."""
    writer.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    """Writes a formula on lines of its own; one that is wider than the page scrolls."""
    writer.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
