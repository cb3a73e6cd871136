"""Checks of the parts of a System beside its equations: names of formulas, invariants, events, constraints, closed forms."""

from keyword import iskeyword
from numbers import Integral
from typing import Any

from sympy.logic.boolalg import Boolean

from odesim.base.errors import SpecError, value_text
from odesim.symbolic.check_resets import Scope, check_resets
from odesim.symbolic.check_types import error_part
from odesim.symbolic.definition import Definition
from odesim.symbolic.expr import time

MOST = 1e300  # largest tolerance
SENSES = ("constant", "nonincreasing", "nondecreasing", "nonnegative")


def check_display(s: Definition, scope: Scope) -> None:
    """Raises SpecError unless each displayed name is free and stands for an expression."""
    taken = {**dict.fromkeys(s.states, "a state"), **{p.name: "a parameter" for p in s.params}}
    taken |= {**dict.fromkeys(s.size_names, "a size"), **{i.name: "an index" for i in s.axes}, time.name: "the time"}
    for number, (name, e) in enumerate(s.display.items()):
        with error_part("display", number):
            if not name.isidentifier() or iskeyword(name):
                raise SpecError(f"{s.name}: display {name!r}: a name in formulas is one word of letters, digits and _")
            if name in taken:
                raise SpecError(f"{s.name}: display {name!r} is {taken[name]} already: give the expression another name")
            if name in s.observables and s.observables[name] != e:
                raise SpecError(f"{s.name}: display {name!r} is an observable with another expression: give one of them another name")
            scope.check(e, set(s.axes), f"display {name!r}")


def check_laws(s: Definition, scope: Scope) -> None:
    for number, inv in enumerate(s.invariants):
        with error_part("invariants", number):
            _check_choice(inv.sense, SENSES, f"{s.name}: invariant {inv.name!r}: sense")
            scope.check(inv.expr, set(s.axes), f"invariant {inv.name!r}")
            if inv.tol is not None and not is_tolerance(inv.tol):
                raise SpecError(f"{s.name}: invariant {inv.name!r}: tol is a number of at least 0, or None, not {value_text(inv.tol)}")
            if not isinstance(inv.when, Boolean):
                raise SpecError(
                    f"{s.name}: invariant {inv.name!r}: when must be a condition, such as Eq(v[i], 0), not {value_text(inv.when)}"
                )
            scope.check(inv.when, set(s.axes), f"the condition of invariant {inv.name!r}")
            _check_timeless(inv.when, f"{s.name}: the condition of invariant {inv.name!r} is one on the start")
    for number, event in enumerate(s.events):
        with error_part("events", number):
            _check_choice(event.direction, (-1, 0, 1), f"{s.name}: event {event.name!r}: direction")
            if not isinstance(event.terminal, bool):
                raise SpecError(f"{s.name}: event {event.name!r}: terminal is True or False, not {value_text(event.terminal)}")
            if not isinstance(event.at_start, bool):
                raise SpecError(f"{s.name}: event {event.name!r}: at_start is True or False, not {value_text(event.at_start)}")
            if not isinstance(event.doc, str):
                raise SpecError(f"{s.name}: event {event.name!r}: doc says in words what the event means, not {value_text(event.doc)}")
            scope.check(event.expr, set(s.axes), f"event {event.name!r}")
            check_resets(s, event, scope)
    for number, c in enumerate(s.constraints):
        with error_part("constraints", number):
            _check_choice(c.sense, ("==0", ">=0"), f"{s.name}: constraint {c.name!r}: sense")
            if not is_tolerance(c.tol):
                raise SpecError(f"{s.name}: constraint {c.name!r}: tol is a number of at least 0, not {value_text(c.tol)}")
            scope.check(c.expr, set(s.axes), f"constraint {c.name!r}", states=False)
            _check_timeless(c.expr, f"{s.name}: constraint {c.name!r} is one on parameters and sizes")
    for number, form in enumerate(s.closed_forms):
        with error_part("closed_forms", number):
            _check_choice(form.kind, ("explicit", "implicit"), f"{s.name}: closed form {form.name!r}: kind")
            if not isinstance(form.where, str):
                raise SpecError(f"{s.name}: closed form {form.name!r}: where says in words where it holds, not {value_text(form.where)}")
            if not callable(form.function) or isinstance(form.function, type):
                raise SpecError(f"{s.name}: closed form {form.name!r}: function must be a function, not {value_text(form.function)}")


def _check_timeless(e: Any, what: str) -> None:
    if e.has(time):
        raise SpecError(f"{what}, and cannot hold the time t")


def is_tolerance(tol: Any) -> bool:
    """Whether tol is a number of at least 0."""
    return isinstance(tol, int | float) and not isinstance(tol, bool) and 0 <= tol <= MOST


def _check_choice(value: Any, choices: tuple[Any, ...], what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, str | Integral) or value not in choices:
        raise SpecError(f"{what} must be one of {', '.join(map(str, choices))}, not {value_text(value)}")
