"""Forward sensitivities: a System that has the derivatives of its states and observables beside them."""

from dataclasses import replace
from itertools import chain, count
from typing import Any

import sympy as sp
from sympy import Expr, Symbol

from odesim.errors import SpecError, no_such, value_text
from odesim.symbolic.derive import Direction, directional, element, twin_of, unit
from odesim.symbolic.expr import base_name, index
from odesim.symbolic.lowering import all_names
from odesim.symbolic.parts import Key, key_indices
from odesim.symbolic.system import System


def sensitivities(system: System, *names: str) -> System:
    """The System with a state dv_dp beside each state v, for every p of names: the derivative of v(t) with respect to p.

    p is a parameter, or a state u, which stands for its initial value: dv_du_start. An array p adds its axes behind those of v.
    S = dv_dp obeys dS/dt = (df/dv) S + df/dp from S(t0) = d v(t0)/dp, derived exactly; all other numbers are held, those too
    that a default computes from p. An observable o that is an expression has do_dp, with the axes that it depends on. Events and
    laws stay as they are. Raises SpecError for a name that is none, or of whole numbers.
    """
    if not isinstance(system, System):
        raise SpecError(f"sensitivities() takes a System and names of it, not {value_text(system)}")
    if wrong := [name for name in names if not isinstance(name, str)]:
        raise SpecError(f"sensitivities() takes names of parameters and states, not {value_text(wrong[0])}")
    axes, equations, initial, observables = dict(system.axes), dict(system.equations), dict(system.initial), dict(system.observables)
    found: dict[str, dict[str, str]] = {}
    seen = {name: e for name, e in system.observables.items() if isinstance(e, Expr)}
    for name in names:
        if name in found or name in system.sensitivities:
            raise SpecError(f"{system.name}: the sensitivities to {name} are asked for twice")
        shape, of = shape_of(system, name), start_name(system, name)
        along = _fresh(of, len(shape), names_in(system) | {i.name for i in axes})
        axes.update(zip(along, shape, strict=True))
        found[name] = {what: f"d{what}_d{of}" for what in (*system.states, *seen)}
        twins = {base_name(key): twin_of(key, found[name][base_name(key)], along, shape) for key in system.equations}
        ways: dict[str, Direction] = {state: element(twin) for state, twin in twins.items()}
        if name not in system.states:
            ways[name] = unit(along)
        equations |= {twins[base_name(key)]: directional(rhs, ways) for key, rhs in system.equations.items()}
        for key, start in system.initial.items():
            initial[_beside(key, twins[base_name(key)], along)] = _start_slope(system, name, key, start, along)
        observables |= {found[name][o]: directional(e, ways) for o, e in seen.items()}
    taken = names_in(system)
    for what, name, made in ((what, name, made) for name, pairs in found.items() for what, made in pairs.items()):
        if made in taken:
            raise SpecError(f"{system.name}: the derivative of {what} by {name} would be called {made}, a name that is taken")
        taken.add(made)
    both = {**system.sensitivities, **found}
    return replace(system, axes=axes, equations=equations, initial=initial, observables=observables, sensitivities=both)


def shape_of(system: System, name: str) -> tuple[Any, ...]:
    """The extents of the parameter or state of that name. Raises SpecError where there is no derivative with respect to it."""
    params = {p.name: p for p in system.params}
    if name in params and params[name].integer:
        raise SpecError(f"{system.name}: {name} takes whole numbers, so there is no derivative with respect to it")
    if name in params:
        return params[name].shape
    if name in system.states:
        return system.shapes[name]
    real = [p.name for p in system.params if not p.integer]
    raise SpecError(no_such("parameter or state", str(name)[:60], [*real, *system.states], system.name))


def start_name(system: System, name: str) -> str:
    """A parameter's own name; v_start for the initial value of a state v."""
    return f"{name}_start" if name in system.states else name


def names_in(system: System) -> set[str]:
    """Every name that a System uses: of states, parameters, sizes, observables and all symbols."""
    parts = [*system.axes, *system.axes.values(), *system.equations.values(), *system.initial.values()]
    parts += [e for e in system.observables.values() if isinstance(e, Expr)]
    parts += [e for law in system.invariants for e in (law.expr, law.when)]
    parts += [*(event.expr for event in system.events), *(c.expr for c in system.constraints)]
    return all_names(system) | set(system.observables) | {s.name for e in parts for s in sp.sympify(e).atoms(Symbol)}


def _fresh(of: str, rank: int, taken: set[str]) -> tuple[Symbol, ...]:
    """Indices for the axes of a parameter, mu_0, mu_1, ..., under names that nothing has."""
    found: list[Symbol] = []
    for n in range(rank):
        name = next(name for name in chain([f"{of}_{n}"], (f"{of}_{n}_{k}" for k in count(1))) if name not in taken)
        found += index(name)
    return tuple(found)


def _beside(key: Key, twin: Key, along: tuple[Symbol, ...]) -> Key:
    """The twin of a state at the indices of key: those of an initial value may have other names than those of the equation."""
    return twin if isinstance(twin, Symbol) else twin.base[(*key_indices(key), *along)]


def _start_slope(system: System, name: str, key: Key, start: Any, along: tuple[Symbol, ...]) -> Expr:
    """d(initial value of key)/d(entry `along` of name): initial values are expressions in parameters and sizes, never in states."""
    if name not in system.states:
        return directional(start, {name: unit(along)})
    return unit(along)(key_indices(key)) if base_name(key) == name else sp.S.Zero
