"""A System as a page: titles, words and formulas, which documents of LaTeX and HTML, and notebooks, print each in its own way."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import sympy as sp
from sympy import IndexedBase, Symbol

from odesim.display.formulas import Formulas, equation_latex, rate_latex
from odesim.symbolic.definition import Definition
from odesim.symbolic.indices import boundary_words
from odesim.symbolic.parts import Constraint, Event, domain_text, free_in_order, key_indices

SENSES = {"constant": "is constant", "nonincreasing": "does not rise", "nondecreasing": "does not fall", "nonnegative": "is at least 0"}
SIGNS = {"==0": "=", ">=0": ">="}
WAYS = {-1: "falls through 0", 0: "passes 0", 1: "rises through 0"}
TIMES = r" \times "
RELATIONS = {"=": "=", ">=": r"\geq", "<-": r"\leftarrow"}


@dataclass(frozen=True)
class Formula:
    """One line of mathematics. left, right: expressions with their names (see Display), or None.

    kind: what is done to left: "rate" (its derivative), "next" (its value after an update), "start" (its initial value), "set" (it lies in
    R^right), or "".
    relation: "=", ">=" or "<-" (left becomes right). name: a word in the place of left, with left as its indices. ranges: indices and
    their last values, beside it.
    """

    left: Any
    right: Any = None
    kind: str = ""
    relation: str = "="
    name: str = ""
    ranges: tuple[tuple[Symbol, Any], ...] = ()


@dataclass(frozen=True)
class Row:
    """A formula with the name of what it is, and words about it; without one: words alone. condition: a formula that ends the words.

    inline: the formula stands in the line of the words.
    """

    formula: Formula | None = None
    name: str = ""
    words: str = ""
    condition: Any = None
    inline: bool = False


@dataclass(frozen=True)
class Page:
    """The title, the source, and the rows of each section that has any."""

    title: str
    source: str
    sections: dict[str, list[Row]]
    formulas: Formulas


def page_of(system: Definition) -> Page:
    """The page of a System: equations, initial values, parameters, observables, laws, events, closed forms, source."""
    formulas = Formulas(system)
    shown = formulas.display.shown
    sections = {
        "Equations": list(equations(system, formulas)),
        "Where": [Row(Formula(k, e)) for k, e in formulas.definitions().items()],
        "Initial values": [Row(Formula(k, shown(e), "start")) for k, e in system.initial.items()],
        "Parameters": list(parameters(system)),
        "Observables": list(observables(system, formulas)),
        "Constraints": [constraint_row(c, shown(c.expr)) for c in system.constraints],
        "Invariants": [Row(Formula(shown(v.expr)), v.name, SENSES[v.sense], condition(formulas, v.when)) for v in system.invariants],
        "Events": [row for v in system.events for row in event_rows(v, formulas)],
        "Closed forms": [Row(words=f"{c.name}: {c.kind}, {c.where}") for c in system.closed_forms],
        "Defaults": [Row(words=defaults(system))],
    }
    return Page(system.name, str(system.source), {title: rows for title, rows in sections.items() if rows}, formulas)


def equations(system: Definition, formulas: Formulas) -> Iterator[Row]:
    """The equations, each with the ranges of its indices."""
    kind = "next" if system.discrete else "rate"
    for key, e in formulas.equations().items():
        yield Row(Formula(key, e, kind, ranges=ranges(system, key_indices(key))))
    if system.boundary:
        yield Row(words=", ".join(boundary_words(system.boundary)))
    if system.noise:
        yield Row(words=f"the noise is meant in the sense of {system.calculus.capitalize()}")


def ranges(system: Definition, indices: Iterable[Symbol]) -> tuple[tuple[Symbol, Any], ...]:
    """The indices with the last values that they take."""
    return tuple((i, sp.sympify(system.axes[i]) - 1) for i in indices)


def parameters(system: Definition) -> Iterator[Row]:
    """Symbol and extents, domain, default and meaning of every parameter."""
    for p in system.params:
        symbol = p.symbol.label if isinstance(p.symbol, IndexedBase) else p.symbol
        default = "from the sizes" if callable(p.default) else f"{float(p.default):g}"
        words = f"in {domain_text(p.domain).removeprefix('the ')}, default {default}{': ' * bool(p.doc)}{p.doc}"
        yield Row(Formula(symbol, sp.Tuple(*p.shape), "set"), words=words, inline=True)


def observables(system: Definition, formulas: Formulas) -> Iterator[Row]:
    """Every observable with its indices and its expression; of a Python function, its docstring."""
    for name, e in system.observables.items():
        if not isinstance(e, sp.Basic):
            yield Row(Formula(sp.Tuple(), name=name), words=(e.__doc__ or "a function").strip().splitlines()[0], inline=True)
            continue
        free = free_in_order(e, system.axes)
        yield Row(Formula(sp.Tuple(*free), formulas.display.definition_of(name, e), name=name, ranges=ranges(system, free)))


def constraint_row(c: Constraint, expr: Any) -> Row:
    """What a constraint says of its expression."""
    if c.sense == "increasing":
        return Row(Formula(expr), c.name, "increases along its last index")
    return Row(Formula(expr, sp.S.Zero, "", SIGNS[c.sense]), c.name)


def condition(formulas: Formulas, when: Any) -> Any:
    """The condition on the start under which a law holds; None where it always does."""
    return None if when == sp.true else formulas.display.shown(when)


def event_rows(event: Event, formulas: Formulas) -> Iterator[Row]:
    """The function of an event, and what it sets states to."""
    shown = formulas.display.shown
    yield Row(Formula(shown(event.expr, observed=True)), event.name, event_words(event))
    for key, e in event.resets.items():
        yield Row(Formula(key, shown(e), relation="<-"))


def event_words(event: Event) -> str:
    """How an event passes 0, whether it sets states and ends the run, and what it means."""
    ends = " and ends the run" if event.terminal else ""
    start = ", or is past it at the start" if event.at_start else ""
    way = f"{WAYS[event.direction]}{start}{', where states are set' if event.resets else ''}{ends}"
    return "; ".join(filter(None, (way, event.doc)))


def defaults(system: Definition) -> str:
    """The default sizes and span, in words."""
    start, end = system.span
    sizes = [f"{name} = {n}" for name, n in system.sizes.items() if not callable(n)]
    steps = [f"steps of {system.step:g}"] if system.step else []
    return ", ".join([*sizes, f"t from {start:g} to {end:g}{f' ({system.time})' * bool(system.time)}", *steps])


def formula_latex(formulas: Formulas, f: Formula) -> str:
    """A formula as LaTeX, with the ranges of its indices."""
    text = " = ".join(equation_latex(formulas, f.left, f.right)) if f.kind == "rate" else left_latex(formulas, f)
    if f.kind == "set":
        extents = [f"({formulas.latex(n)})" if n.args else formulas.latex(n) for n in f.right]
        return text + (rf" \in \mathbb{{R}}^{{{TIMES.join(extents)}}}" if extents else "")
    if f.right is not None and f.kind != "rate":
        text += f" {RELATIONS[f.relation]} {formulas.print_latex(f.right)}"
    ranges = [rf"{formulas.print_latex(i)} = 0, \dots, {formulas.latex(last)}" for i, last in f.ranges]
    return text + (r" \qquad " + r",\; ".join(ranges) if ranges else "")


def left_latex(formulas: Formulas, f: Formula) -> str:
    """The left side of a formula as LaTeX."""
    if f.name:
        index = f"_{{{','.join(map(formulas.print_latex, f.left))}}}" if f.left else ""
        return rf"\mathtt{{{escape(f.name)}}}{index}"
    if f.kind == "next":
        return rate_latex(formulas, f.left, True)
    return formulas.print_latex(f.left) + "(0)" * (f.kind == "start")


def escape(text: str) -> str:
    """text with the special characters of LaTeX escaped."""
    signs = {"\\": r"\textbackslash{}", "^": r"\^{}", "~": r"\~{}", "<": r"\textless{}", ">": r"\textgreater{}"}
    text = "".join(signs.get(c, f"\\{c}" if c in "_&%#${}" else c) for c in text)
    return text if text.isascii() else "".join(c if c.isascii() else "?" for c in text)
