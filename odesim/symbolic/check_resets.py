"""Checks of what events set states to: each failure is one sentence."""

from collections.abc import Mapping
from typing import Any, Protocol

import sympy as sp
from sympy import Indexed, IndexedBase, Symbol

from odesim.base.errors import SpecError, no_such, value_text
from odesim.symbolic.check_types import element_text
from odesim.symbolic.crossings import zero_times
from odesim.symbolic.definition import Definition
from odesim.symbolic.elements import our_element
from odesim.symbolic.expr import base_name, time
from odesim.symbolic.layered import bounded
from odesim.symbolic.parts import Event, checked_expression, free_in_order, key_indices
from odesim.symbolic.program import names_read
from odesim.symbolic.times import KNOWN, UnknownTimesError


class Scope(Protocol):
    """The names of a System, for the check of an expression."""

    def check(self, e: Any, free: set[Symbol], where: str, *, states: bool = True) -> None: ...


def resets_as_written(system: str, event: Event, boundary: Mapping[Symbol, str]) -> dict[Any, sp.Expr]:
    """The resets of an event {state: expression}, with bound indices in their sums, and neighbours at the boundary of the System.

    Raises SpecError where they are of another type.
    """
    where = f"{system}: event {event.name!r}"
    if not isinstance(event.resets, Mapping):
        raise SpecError(f"{where}: resets must be a dict, such as {{v[i]: -v[i]}}, not {value_text(event.resets)}")
    for key in event.resets:
        if not isinstance(key, Indexed | Symbol):
            hint = f"an element of {key}" if isinstance(key, IndexedBase) else "a state, such as v[i]"
            raise SpecError(f"{where}: resets has the key {value_text(key)}: write {hint}")
    checked = {our_element(key): checked_expression(e, f"{where}: the reset of {key}") for key, e in event.resets.items()}
    return {key: bounded(e, boundary) for key, e in checked.items()}


def check_resets(s: Definition, event: Event, scope: Scope) -> None:
    """Raises SpecError unless the event resets states of s, by expressions of its own indices and theirs."""
    if not event.resets:
        return
    where = f"{s.name}: event {event.name!r}"
    own = set(free_in_order(event.expr, s.axes))
    for key, e in event.resets.items():
        name = base_name(key)
        if name in {p.name for p in s.params}:
            raise SpecError(f"{where}: {name} is a parameter, and resets change states: make it a state with the equation 0")
        if name not in s.states:
            raise SpecError(f"{where}: {no_such('state', name, s.states, 'resets')}")
        if isinstance(key, Symbol) and s.shapes[name]:
            raise SpecError(f"{where}: {name} is an array; did you mean {element_text(name, s.shapes[name], s)}?")
        free = own | {i for i in key_indices(key) if i in s.axes}
        scope.check(key, free, f"the resets of event {event.name!r}")
        scope.check(e, free, f"the reset of {key} by event {event.name!r}")
    _check_times(s, event, where)


def _check_times(s: Definition, event: Event, where: str) -> None:
    """Raises SpecError where an event on the time alone has times that cannot be computed, or never passes 0."""
    if not on_time(s, event.expr):
        return
    if any(isinstance(part, sp.Mod | sp.frac) and part.has(time) for part in sp.Mul.make_args(event.expr)):
        raise SpecError(
            f"{where}: {event.expr} falls to 0 and does not pass it: write sin(pi*t/T), or Mod(t, T) - T/2 with a direction, for every T"
        )
    try:
        zero_times(event.expr)
    except UnknownTimesError:
        raise SpecError(f"{where}: the times at which {event.expr} passes 0 cannot be computed: {KNOWN}") from None


def on_time(s: Definition, e: sp.Expr) -> bool:
    """Whether an expression changes with the time alone."""
    return bool(e.has(time)) and not names_read(e) & set(s.states)
