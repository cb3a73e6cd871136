"""Functions of time in a right-hand side that may rest, rise and fall, so briefly that a step passes over them."""

from collections.abc import Iterator, Mapping
from typing import Any

import sympy as sp
from sympy import Expr, Symbol

from odesim.symbolic.indices import time
from odesim.symbolic.layered import layers_in, names_read
from odesim.symbolic.reductions import REDUCTIONS, extent_of
from odesim.symbolic.system import System
from odesim.symbolic.times import has_ranges

FLAT = 8
"""A whole power as high as that is flat where what is raised is small."""


def pulses_in(system: System) -> Iterator[tuple[Expr, Mapping[Symbol, Any]]]:
    """(function of time alone, {index: extent} around it) of each part of the right-hand sides that may be a pulse."""
    states = set(system.states)
    rates = list(system.equations.values())
    seen: set[Expr] = set()
    for e, axes in [*((rhs, system.axes) for rhs in rates), *((layer.definition, layer.axes) for layer in layers_in(*rates))]:
        for g, scope in _of_time(e, dict(axes), states):
            if g not in seen and may_pulse(g):
                seen.add(g)
                yield g, scope


def _of_time(e: Any, scope: dict[Symbol, Any], states: set[str]) -> Iterator[tuple[Expr, Mapping[Symbol, Any]]]:
    """The largest parts of e that change with time and not with states; of sums their terms, too."""
    if not getattr(e, "args", ()) or not e.has(time):
        return
    if isinstance(e, Expr) and not names_read(e) & states:
        yield e, scope
        if not e.is_Add:
            return
    if isinstance(e, REDUCTIONS):
        scope = dict(scope)
        for k, low, high in reversed(e.limits):
            scope[k] = extent_of(low, high, scope)
    elif e.is_Add or e.is_Mul:
        own = [a for a in e.args if a.has(time) and not names_read(a) & states]
        if 1 < len(own) < len(e.args):
            yield from _of_time(e.func(*own), scope, states)
            return
    for a in (e.function,) if isinstance(e, REDUCTIONS) else e.args:
        yield from _of_time(a, scope, states)


def may_pulse(g: Expr) -> bool:
    """Whether a function of time may rest, rise and fall, and its ranges are known.

    Sines, powers and one monotone function such as exp(-t/T) do not: a step sees from its ends that they change.
    """
    if not has_ranges(g):
        return False
    flat = set()
    for part in sp.preorder_traversal(g):
        if not part.args or not part.has(time) or part.is_Add or part.is_Mul or isinstance(part, (sp.sin, sp.cos, *REDUCTIONS)):
            continue
        if part.is_Pow and part.exp.is_integer and part.exp.is_positive and not part.exp >= FLAT:
            continue
        inner = part.exp if part.is_Pow and part.exp.has(time) else part.args[0]
        if inner.diff(time).has(time):
            return True
        flat.add((part.func, inner))
    return len(flat) > 1
