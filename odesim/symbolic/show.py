"""A System as LaTeX, as plain text, and as a description in plain data."""

from itertools import count
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, Symbol

from odesim.symbolic.definition import Definition
from odesim.symbolic.expr import base_name
from odesim.symbolic.logs import Share, XLogY
from odesim.symbolic.lowering import Lowering, all_names, derivative
from odesim.symbolic.parts import Key, free_in_order
from odesim.symbolic.reductions import REDUCTIONS, Shift, unevaluated
from odesim.symbolic.weighted import Weighted

LONG = 40
"""Operations in a right-hand side above which its sums are named and listed separately."""


def latex(system: Definition) -> str:
    """The equations as a LaTeX aligned block, without the shifts that cancel; the sums of long equations are named."""
    rates, where = named_sums(system)
    rows = [rf"\frac{{\mathrm{{d}}}}{{\mathrm{{d}}t}}\, {sp.latex(key)} &= {latex_of(rhs)}" for key, rhs in rates.items()]
    rows += [rf"{sp.latex(key)} &= {latex_of(e)}" for key, e in where.items()]
    return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"


def named_sums(system: Definition) -> tuple[dict[Key, Expr], dict[Key, Expr]]:
    """({state: right-hand side}, {name: sum}): where an equation is long, all are written in terms of named sums."""
    rates = {key: readable(e) for key, e in system.equations.items()}
    if all(sp.count_ops(e) <= LONG for e in rates.values()):
        return rates, {}
    work = Lowering(system.axes, rates.values(), all_names(system))
    for key, e in rates.items():
        work.assign(derivative(key), e)
    statements = {s.name: s for s in work.statements}
    where: dict[Key, Expr] = {}
    for s in work.statements:
        if s.name in {f"d_{n}" for n in system.states}:
            continue
        e = s.body
        if s.op == "scatter":
            e = sp.KroneckerDelta(s.free[0], s.via) * e
        where[s.target] = unevaluated(sp.Sum, e, [(s.bound, 0, work.extents[s.bound] - 1)]) if s.bound is not None else e
    return {key: statements[f"d_{n}"].body for n, key in zip(system.states, rates, strict=True)}, where


def latex_of(e: Any) -> str:
    """An expression as LaTeX, without the shifts that cancel."""
    return str(sp.latex(readable(sp.sympify(e))))


def equations_text(system: Definition) -> str:
    """The equations as plain text, one per line; sums of long equations are named below them."""
    rates, where = named_sums(system)
    rows = [f"d{text_of(key)}/dt = {text_of(rhs)}" for key, rhs in rates.items()]
    return "\n".join([*rows, *(f"{text_of(key)} = {text_of(e)}" for key, e in where.items())])


def text_of(e: Any) -> str:
    """An expression on one line: sum_l(f), max_l(f), without the shifts that cancel."""
    return str(_Text({"full_prec": False}).doprint(readable(sp.sympify(e))))


def readable(e: Any) -> Any:
    """e in the form to print: without the shifts that cancel, with sympy's own sums, and a different name for each index.

    sum_j(log(sum_j(f[j])) - f[j])  ->  sum_j(log(sum_j'(f[j'])) - f[j])
    """
    return _readable(e, frozenset(s.name for s in _free(e)))


def _readable(e: Any, taken: frozenset[str]) -> Any:
    if isinstance(e, Shift):
        return sp.S.Zero
    if isinstance(e, REDUCTIONS):
        body, limits = e.function, []
        for k, low, high in e.limits:
            j = Symbol(next(name for name in (k.name + "'" * n for n in count()) if name not in taken), integer=True)
            body, taken = body.xreplace({k: j}), taken | {j.name}
            limits.append((j, low, high))
        return unevaluated(sp.Sum if isinstance(e, sp.Sum) else type(e), _readable(body, taken), limits)
    printable = e.func(*(_readable(a, taken) for a in e.args)) if e.args and not isinstance(e, Indexed) else e
    return printable.readable() if isinstance(printable, Weighted | XLogY | Share) else printable


def _free(e: Any) -> set[Symbol]:
    """Integer symbols that are free in e."""
    return {s for s in e.free_symbols if isinstance(s, Symbol) and s.is_integer}


class _Text(sp.printing.str.StrPrinter):  # type: ignore[misc]
    """A printer of expressions on one line, with short sums and powers."""

    def _print_Sum(self, e: Any) -> str:
        indices = ",".join(str(lim[0]) for lim in e.limits)
        return f"sum_{indices}({self._print(e.function)})"

    def _print_MaxOver(self, e: Any) -> str:
        return f"max_{e.limits[0][0]}({self._print(e.function)})"

    def _print_AtMax(self, e: Any) -> str:
        f, g = map(self._print, e.function)
        return f"({g} where {f} is largest over {e.limits[0][0]})"

    def _print_Pow(self, e: Any, rational: bool = False) -> str:
        return str(super()._print_Pow(e, rational)).replace("**", "^")

    def _print_Piecewise(self, e: Any) -> str:
        cases = [f"{self._print(v)} if {self._print(c)}" if c is not sp.true else f"else {self._print(v)}" for v, c in e.args]
        return f"({', '.join(cases)})"

    def _print_Equality(self, e: Any) -> str:
        return f"{self._print(e.lhs)} = {self._print(e.rhs)}"

    def _print_KroneckerDelta(self, e: Any) -> str:
        return f"[{self._print(e.args[0])} = {self._print(e.args[1])}]"


def describe(system: Definition) -> dict[str, Any]:
    """Everything `show` prints, as plain data: equations, parameters, states, observables, laws, closed forms, source."""
    return {
        "name": system.name,
        "source": {"key": system.source.key, "where": system.source.where, "note": system.source.note},
        "time": system.time,
        "span": list(system.span),
        "sizes": {str(k): int(v) for k, v in system.sizes.items() if not callable(v)},
        "states": [
            {"name": name, "shape": _shape(shape), "initial": _number(_initial(system, key))}
            for (name, shape), key in zip(system.shapes.items(), system.equations, strict=True)
        ],
        "equations": equations_text(system).splitlines(),
        "parameters": [
            {
                "name": p.name,
                "shape": _shape(p.shape),
                "default": "from the sizes" if callable(p.default) else float(p.default),
                "domain": domain_text(p.domain),
                "doc": p.doc,
            }
            for p in system.params
        ],
        "observables": [_observable(system, n) for n in system.observables],
        "constraints": [{"name": c.name, "expression": f"{text_of(c.expr)} {c.sense[:2]} 0"} for c in system.constraints],
        "invariants": [
            {"name": v.name, "expression": text_of(v.expr), "sense": v.sense, "when": condition_text(v.when), "tolerance": v.tol}
            for v in system.invariants
        ],
        "events": [
            {"name": v.name, "expression": text_of(v.expr), "direction": v.direction, "terminal": v.terminal} for v in system.events
        ],
        "closed_forms": [{"name": c.name, "where": c.where, "kind": c.kind} for c in system.closed_forms],
        "growth": None if system.growth is None else text_of(system.growth),
    }


def condition_text(when: Any) -> str:
    """A condition on one line, such as `a = b and c >= 0`; empty where it always holds."""
    if when == sp.true:
        return ""
    return " and ".join(sorted(map(text_of, when.args), key=lambda s: (" = " not in s, s))) if isinstance(when, sp.And) else text_of(when)


def _number(e: Expr) -> float | str:
    """The number that e is, or its text."""
    return float(e) if e.is_number else text_of(e)


def _initial(system: Definition, key: Key) -> Expr:
    return next(e for k, e in system.initial.items() if base_name(k) == base_name(key))


def _observable(system: Definition, name: str) -> dict[str, Any]:
    e = system.observables[name]
    if not isinstance(e, sp.Basic):
        return {"name": name, "shape": [], "expression": (e.__doc__ or "a function").strip().splitlines()[0]}
    return {"name": name, "shape": _shape(tuple(system.axes[i] for i in free_in_order(e, system.axes))), "expression": text_of(e)}


def _shape(shape: tuple[Any, ...]) -> list[str]:
    return [str(n).replace(" ", "") for n in shape]


def domain_text(domain: sp.Set) -> str:
    """A domain in a word: "[0, 1]", "(0, inf)", "whole numbers from 0"."""
    if domain == sp.S.Naturals0:
        return "whole numbers from 0"
    if domain == sp.S.Naturals:
        return "whole numbers from 1"
    if isinstance(domain, sp.Interval):
        low = "(" if domain.left_open or domain.start.is_infinite else "["
        high = ")" if domain.right_open or domain.end.is_infinite else "]"
        return f"{low}{domain.start}, {domain.end}{high}".replace("oo", "inf")
    return str(domain).replace("oo", "inf")
