"""Forward sensitivities: a System extended by the derivatives of its states and observables."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, count
from typing import Any

import sympy as sp
from sympy import Expr, Symbol

from odesim.base.errors import SpecError, no_such, value_text
from odesim.base.parsing import readable
from odesim.ir.derive import Direction, directional_derivative, twin_direction, unit_direction
from odesim.symbolic.definition import all_names, twin_state
from odesim.symbolic.indices import base_name, index
from odesim.symbolic.layered import with_layers
from odesim.symbolic.parts import Key, key_indices
from odesim.symbolic.system import System


@readable
def sensitivities(system: System, *names: str) -> System:
    """The System with a state dv_dp beside each state v, for every p of names: the derivative of v(t) with respect to p.

    Parameters
    ----------
    system : System
        Whose events and laws stay as they are.
    *names : str
        Parameters, and states u, which stand for their initial values: dv_du_start. An array p adds its axes behind those of v.

    Returns
    -------
    System
        S = dv_dp obeys dS/dt = (df/dv) S + df/dp from S(t0) = d v(t0)/dp, derived exactly. All other numbers are constant, also those that
        a default computes from p. An observable o that is an expression gets do_dp, with the axes that it depends on.

    Raises
    ------
    SpecError
        For an unknown name, a parameter of whole numbers and one that moves nothing.

    Examples
    --------
    >>> more = sensitivities(odesim.load_model("joma.nonlinear"), "mu")
    >>> more.states
    ('v', 'dv_dmu')
    """
    SpecError.unless(isinstance(system, System), "sensitivities() takes a System and names of it", system)
    if wrong := [name for name in names if not isinstance(name, str)]:
        raise SpecError(f"sensitivities() takes names of parameters and states, not {value_text(wrong[0])}")
    axes, equations, initial, observables = dict(system.axes), dict(system.equations), dict(system.initial), dict(system.observables)
    derivatives: dict[str, dict[str, str]] = {}
    expressions = {name: e for name, e in system.observables.items() if isinstance(e, Expr)}
    for name in names:
        if name in derivatives or name in system.sensitivities:
            raise SpecError(f"{system.name}: the sensitivities to {name} are requested twice")
        shape, of = shape_of(system, name), (f"{name}_start" if name in system.states else name)
        along = fresh_indices(of, len(shape), used_names(system) | {i.name for i in axes})
        more = dict(zip(along, shape, strict=True))
        axes.update(more)
        derivatives[name] = {what: f"d{what}_d{of}" for what in (*system.states, *expressions)}
        twins = {base_name(key): twin_state(key, derivatives[name][base_name(key)], along, shape) for key in system.equations}
        ways: dict[str, Direction] = {state: twin_direction(twin) for state, twin in twins.items()}
        if name not in system.states:
            ways[name] = unit_direction(along)
        equations |= {twins[base_name(key)]: directional_derivative(rhs, ways, more) for key, rhs in system.equations.items()}
        for key, start in system.initial.items():
            initial[_twin_at(key, twins[base_name(key)], along)] = _start_slope(system, name, key, start, along)
        observables |= {derivatives[name][o]: directional_derivative(e, ways, more) for o, e in expressions.items()}
    taken = used_names(system)
    for what, name, twin_label in ((what, name, twin_label) for name, pairs in derivatives.items() for what, twin_label in pairs.items()):
        if twin_label in taken:
            raise SpecError(f"{system.name}: the derivative of {what} by {name} would be called {twin_label}, a name that is taken")
        taken.add(twin_label)
    both = {**system.sensitivities, **derivatives}
    return replace(system, axes=axes, equations=equations, initial=initial, observables=observables, sensitivities=both)


def shape_of(system: System, name: str) -> tuple[Any, ...]:
    """The extents of the parameter or state with this name. Raises SpecError where there is no derivative with respect to it."""
    params = {p.name: p for p in system.params}
    if name in params and params[name].integer:
        raise SpecError(f"{system.name}: {name} takes whole numbers, so there is no derivative with respect to it")
    if name in params:
        if name not in names_that_matter(system):
            raise SpecError(f"{system.name}: no equation, start or observable has {name}; what a default computes from it is held")
        return params[name].shape
    if name in system.states:
        return system.shapes[name]
    real = [p.name for p in system.params if not p.integer]
    raise SpecError(no_such("parameter or state", str(name)[:60], [*real, *system.states], system.name))


def names_that_matter(system: System) -> set[str]:
    """Names of the symbols in equations, starts, observables and in events that set states."""
    parts = [*system.equations.values(), *system.initial.values(), *(e for e in system.observables.values() if isinstance(e, Expr))]
    parts += [e for event in system.events if event.resets for e in (event.expr, *event.resets.values())]
    return {base_name(x) for part in with_layers(parts) for x in part.atoms(sp.Indexed, sp.Symbol)}


def used_names(system: System) -> set[str]:
    """Every name in a System: of states, parameters, sizes, observables and all symbols."""
    parts = [*system.axes, *system.axes.values(), *system.equations.values(), *system.initial.values()]
    parts += [e for e in system.observables.values() if isinstance(e, Expr)]
    parts += [e for law in system.invariants for e in (law.expr, law.when)]
    parts += [*(event.expr for event in system.events), *(c.expr for c in system.constraints)]
    parts += [e for event in system.events for pair in event.resets.items() for e in pair]
    symbols = {s.name for e in with_layers(parts) for s in sp.sympify(e).atoms(Symbol)}
    return all_names(system) | set(system.observables) | symbols


def fresh_indices(of: str, rank: int, taken: set[str]) -> tuple[Symbol, ...]:
    """New indices for the axes of a parameter, mu_0, mu_1, ..., under names that are not taken."""
    indices: list[Symbol] = []
    for n in range(rank):
        name = next(name for name in chain([f"{of}_{n}"], (f"{of}_{n}_{k}" for k in count(1))) if name not in taken)
        indices += index(name)
    return tuple(indices)


def _twin_at(key: Key, twin: Key, along: tuple[Symbol, ...]) -> Key:
    """The twin of a state at the indices of key; an initial value may name its indices differently from the equation."""
    return twin if isinstance(twin, Symbol) else twin.base[(*key_indices(key), *along)]


def _start_slope(system: System, name: str, key: Key, start: Any, along: tuple[Symbol, ...]) -> Expr:
    """The derivative of the initial value of key by the entry `along` of `name`, a parameter or another initial value."""
    if name not in system.states:
        return directional_derivative(start, {name: unit_direction(along)}, dict(zip(along, shape_of(system, name), strict=True)))
    return unit_direction(along)(key_indices(key)) if base_name(key) == name else sp.S.Zero
