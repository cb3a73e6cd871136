"""A System as plain data and text: what `show` prints."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import sympy as sp
from sympy import Expr

from odesim.display.formulas import Formulas, definitions_text, equations_text, text_of
from odesim.ir.noise import noise_kind
from odesim.ir.passes import lower
from odesim.ir.program import Program, Statement
from odesim.symbolic.definition import Definition
from odesim.symbolic.indices import base_name
from odesim.symbolic.parts import Key, domain_text, free_in_order
from odesim.symbolic.reductions import MaxOver, unevaluated
from odesim.symbolic.system import System


def describe(system: Definition) -> dict[str, Any]:
    """Everything `show` prints, as plain data: equations, parameters, states, observables, laws, closed forms, source."""
    formulas = Formulas(system)
    return {
        "name": system.name,
        "source": asdict(system.source),
        "time": system.time,
        "span": list(system.span),
        "sizes": {str(k): int(v) for k, v in system.sizes.items() if not callable(v)},
        "states": [
            {"name": name, "shape": _shape(shape), "initial": _number(formulas, _initial(system, key))}
            for (name, shape), key in zip(system.shapes.items(), system.equations, strict=True)
        ],
        "equations": equations_text(system).splitlines(),
        "boundary": {str(i): kind for i, kind in system.boundary.items()},
        "noise": {"calculus": system.calculus, "kind": noise_kind(system), "step": system.step} if system.noise else {},
        "definitions": definitions_text(system).splitlines(),
        "parameters": [
            {
                "name": p.name,
                "shape": _shape(p.shape),
                "default": "from the sizes" if callable(p.default) else float(p.default),
                "domain": domain_text(p.domain).removeprefix("the "),
                "doc": p.doc,
            }
            for p in system.params
        ],
        "observables": [_observable(system, formulas, n) for n in system.observables],
        "constraints": [{"name": c.name, "expression": constraint_text(formulas.text(c.expr), c.sense)} for c in system.constraints],
        "invariants": [
            {
                "name": v.name,
                "expression": formulas.text(v.expr),
                "sense": v.sense,
                "when": condition_text(formulas, v.when),
                "tolerance": v.tol,
            }
            for v in system.invariants
        ],
        "events": [
            {
                "name": v.name,
                "expression": formulas.print_text(formulas.display.shown(v.expr, observed=True)),
                "direction": v.direction,
                "terminal": v.terminal,
                "at_start": v.at_start,
                "doc": v.doc,
                "resets": {formulas.print_text(key): formulas.text(e) for key, e in v.resets.items()},
            }
            for v in system.events
        ],
        "closed_forms": [{"name": c.name, "where": c.where, "kind": c.kind} for c in system.closed_forms],
        "growth": None if system.growth is None else formulas.text(system.growth),
    }


def constraint_text(expression: str, sense: str) -> str:
    """A constraint as text, such as `M - K >= 0`."""
    return f"{expression} increases" if sense == "increasing" else f"{expression} {sense[:2]} 0"


def condition_text(formulas: Formulas, when: Any) -> str:
    """A condition on one line, such as `a = b and c >= 0`; empty where it always holds."""
    if when == sp.true:
        return ""
    parts = when.args if isinstance(when, sp.And) else (when,)
    return " and ".join(sorted(map(formulas.text, parts), key=lambda s: (" = " not in s, s)))


def _number(formulas: Formulas, e: Expr) -> float | str:
    """The number that e is, or its text."""
    return float(e) if e.is_number else formulas.text(e)


def _initial(system: Definition, key: Key) -> Expr:
    return next(e for k, e in system.initial.items() if base_name(k) == base_name(key))


def _observable(system: Definition, formulas: Formulas, name: str) -> dict[str, Any]:
    e = system.observables[name]
    if not isinstance(e, sp.Basic):
        return {"name": name, "shape": [], "expression": (e.__doc__ or "a function").strip().splitlines()[0]}
    shape = _shape(tuple(system.axes[i] for i in free_in_order(e, system.axes)))
    return {"name": name, "shape": shape, "expression": formulas.print_text(formulas.display.definition_of(name, e))}


def _shape(shape: tuple[Any, ...]) -> list[str]:
    return [str(n).replace(" ", "") for n in shape]


def derived_text(system: System) -> Iterator[str]:
    """The statements of the right-hand side in the order in which they are computed, one per line.

    d_v is the derivative of v, next_v the next state of a Map.
    """
    program = lower(system)
    for statement in program.statements():
        text = statement_text(statement, program)
        following = system.discrete and base_name(statement.target) in program.outputs
        yield text.replace("d_", "next_", 1) if following else text


def statement_text(s: Statement, program: Program) -> str:
    """One assignment, with its sum or maximum over the bound index."""
    body = sp.KroneckerDelta(s.free[0], s.via) * s.body if s.op == "scatter" else s.body
    if s.bound is not None:
        body = unevaluated(MaxOver if s.op == "max" else sp.Sum, body, [(s.bound, 0, program.extents[s.bound] - 1)])
    return f"{text_of(s.target)} = {text_of(body)}"
