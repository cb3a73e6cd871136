"""A System as a LaTeX document: everything that `show` prints, in the symbols of the paper."""

from collections.abc import Iterable
from typing import Any

import sympy as sp
from sympy import IndexedBase, Symbol

from odesim.symbolic.describe import domain_text
from odesim.symbolic.parts import Param, free_in_order, key_indices
from odesim.symbolic.show import Formulas, rate_latex
from odesim.symbolic.system import System

HEAD = r"""\documentclass{article}
\usepackage[a4paper,margin=20mm]{geometry}
\usepackage{amsmath,amssymb,graphicx}
\setlength{\parindent}{0pt}
\newsavebox{\formula}
% a formula wider than the page is made smaller, never cut
\newcommand{\fit}[1]{\sbox{\formula}{$\displaystyle #1$}%
  \ifdim\wd\formula>\linewidth\resizebox{\linewidth}{!}{\usebox{\formula}}\else\usebox{\formula}\fi\par\medskip}
\begin{document}"""
SENSES = {"constant": "is constant", "nonincreasing": "does not rise", "nondecreasing": "does not fall", "nonnegative": r"is at least $0$"}
RELATIONS = {"==0": "=", ">=0": r"\geq"}
TIMES = r" \times "
WAYS = {-1: "falls through", 0: "passes", 1: "rises through"}


def latex_document(system: System) -> str:
    """A LaTeX document that compiles: equations, parameters, initial values, observables, laws, events, closed forms, source."""
    formulas = Formulas(system)
    parts = {
        "Equations": [
            *(_row(formulas, rate_latex(formulas, k), e, _range(formulas, system, key_indices(k))) for k, e in system.equations.items()),
            *(rf"\fit{{{formulas.print_latex(k)} = {formulas.print_latex(e)}}}" for k, e in formulas.display.definitions().items()),
        ],
        "Initial values": [_row(formulas, f"{formulas.print_latex(k)}(0)", e) for k, e in system.initial.items()],
        "Parameters": [_parameter(formulas, p) for p in system.params],
        "Observables": [_observable(formulas, system, name, e) for name, e in system.observables.items()],
        "Constraints": [_named(c.name, f"{formulas.latex(c.expr)} {RELATIONS[c.sense]} 0") for c in system.constraints],
        "Invariants": [_named(v.name, formulas.latex(v.expr), f"{SENSES[v.sense]}{_when(formulas, v.when)}") for v in system.invariants],
        "Events": [
            _named(v.name, formulas.latex(v.expr), f"{WAYS[v.direction]} $0${' and ends the run' if v.terminal else ''}", v.doc)
            for v in system.events
        ],
        "Closed forms": [f"{escape(f'{c.name}: {c.kind}, {c.where}')}\\par" for c in system.closed_forms],
        "Defaults": [escape(_defaults(system)) + r"\par"],
    }
    source = escape("; ".join(filter(None, (f"{system.source.key}, {system.source.where}", system.source.note))))
    body = [f"\\section*{{{escape(system.name)}}}", source]
    for title, rows in parts.items():
        if rows:
            body += [f"\\subsection*{{{title}}}", *rows]
    return "\n".join([HEAD, *body, "\\end{document}"]) + "\n"


def escape(text: str) -> str:
    """text with the special characters of LaTeX escaped."""
    signs = {"\\": r"\textbackslash{}", "^": r"\^{}", "~": r"\~{}", "<": r"\textless{}", ">": r"\textgreater{}"}
    text = "".join(signs.get(c, f"\\{c}" if c in "_&%#${}" else c) for c in text)
    return text if text.isascii() else "".join(c if c.isascii() else "?" for c in text)


def _row(formulas: Formulas, left: str, right: Any, suffix: str = "") -> str:
    """The formula left = right, at most as wide as the page, and what follows it."""
    return rf"\fit{{{left} = {formulas.latex(right)}{suffix}}}"


def _named(name: str, formula: str, remark: str = "", doc: str = "") -> str:
    """A law: its name, a remark, its meaning, its formula."""
    words = "".join([f": {remark}" if remark else "", f"; {escape(doc)}" if doc else ""])
    return f"\\textit{{{escape(name)}}}{words}\\par\n\\fit{{{formula}}}"


def _range(formulas: Formulas, system: System, indices: Iterable[Symbol]) -> str:
    """The values that these indices take, beside an equation."""
    ranges = [rf"{formulas.print_latex(i)} = 0, \dots, {formulas.latex(sp.sympify(system.axes[i]) - 1)}" for i in indices]
    return r" \qquad " + r",\; ".join(ranges) if ranges else ""


def _parameter(formulas: Formulas, p: Param) -> str:
    """Symbol and extents, domain, default and meaning of a parameter."""
    name = formulas.print_latex(p.symbol.label if isinstance(p.symbol, IndexedBase) else p.symbol)
    shape = [f"({formulas.latex(n)})" if sp.sympify(n).args else formulas.latex(n) for n in p.shape]
    extents = rf" \in \mathbb{{R}}^{{{TIMES.join(shape)}}}" if shape else ""
    default = "from the sizes" if callable(p.default) else f"{float(p.default):g}"
    return f"${name}{extents}$, {escape(f'in {domain_text(p.domain)}, default {default}')}: {escape(p.doc)}\\par"


def _observable(formulas: Formulas, system: System, name: str, e: Any) -> str:
    """An observable with its indices and its expression; of a Python function, its docstring."""
    title = rf"\mathtt{{{escape(name)}}}"
    if not isinstance(e, sp.Basic):
        return f"${title}$: {escape((e.__doc__ or 'a function').strip().splitlines()[0])}\\par"
    free = free_in_order(e, system.axes)
    index = f"_{{{','.join(map(formulas.print_latex, free))}}}" if free else ""
    definition = formulas.print_latex(formulas.display.definition_of(name, e))
    return rf"\fit{{{title}{index} = {definition}{_range(formulas, system, free)}}}"


def _when(formulas: Formulas, condition: Any) -> str:
    """The condition on the start under which a law holds, in words."""
    return "" if condition == sp.true else rf", for starts with ${formulas.latex(condition)}$"


def _defaults(system: System) -> str:
    """The default sizes and span, in words."""
    start, end = system.span
    sizes = [f"{name} = {n}" for name, n in system.sizes.items() if not callable(n)]
    return ", ".join([*sizes, f"t from {start:g} to {end:g} {system.time}".strip()])
