"""The rescaled clock: a System in a time s with ds = growth dt, in which a blow-up at a finite t* is never reached.

dv/dt = f, growth g  ->  dv/ds = f / g, dclock/ds = 1 / g: t is a state. Near a finite-time blow-up g is the rate at which the
solution runs away. So dv/ds stays moderate, and the time left, about (1/g) / (d ln g/ds), falls to 0.
"""

from dataclasses import replace
from typing import Any

import sympy as sp
from sympy import Expr, Symbol

from odesim.base.errors import SpecError
from odesim.ir.derive import Direction, directional_derivative
from odesim.symbolic.definition import all_names
from odesim.symbolic.functions import Weighted
from odesim.symbolic.indices import Inside, Padded, base_name, time
from odesim.symbolic.parts import Event, Param, key_indices
from odesim.symbolic.reductions import at
from odesim.symbolic.system import System
from odesim.transforms.events import happens_often, known_times
from odesim.transforms.modes import hold_conditions

BLOW_UP, END = "blow_up", "the end of the span"
BLOW_UP_MARGIN = 1e-15
"""The time left at which a blow-up counts as reached, relative to the time since the start."""
CLOCK, START, STOP = "clock", "clock_start", "clock_stop"
LONGEST = 1e15
"""The span in s: more than any run takes."""


def rescaled_clock_system(system: System) -> System:
    """The System in the rescaled time s, from 0; its last state `clock` is the time t.

    New parameters clock_start and clock_stop: the span in t. New terminal events: the blow-up, and the end of the span.
    Raises SpecError where no growth rate is declared, for events that a run stops at, and for inputs that it could step over.
    """
    if system.growth is None:
        raise SpecError(
            f"{system.name} declares no growth rate, so that it has no rescaled clock: give the System growth=..., the positive rate at "
            "which its fastest component runs away"
        )
    for event in system.events:
        if event.resets:
            raise SpecError(f"{system.name}: event {event.name!r} resets states, which the rescaled clock cannot do: take the ordinary one")
        if event.at_start:
            raise SpecError(f"{system.name}: event {event.name!r} happens at the start, which needs the ordinary clock")
        if happens_often(event, known_times(system, event)):
            raise SpecError(
                f"{system.name}: event {event.name!r} happens at several known times, and the rescaled clock could step over some: take "
                "the ordinary one"
            )
    if hold_conditions(replace(system, events=())).kinks:
        # steps end at times of conditions, which are events of the clock; at kinks and pulses they end in the ordinary clock alone
        raise SpecError(
            f"{system.name}: its right-hand side has kinks or pulses in time, as those of a table, and the rescaled clock could step over "
            "some: take the ordinary one"
        )
    check_clock_names(system)
    t, start, stop = (Symbol(name, real=True) for name in (CLOCK, START, STOP))
    growth = system.growth.xreplace({time: t})
    rates = {key: divide_terms(rhs.xreplace({time: t}), growth) for key, rhs in system.equations.items()}
    tick = divide_terms(sp.S.One, growth)
    ways: dict[str, Direction] = {base_name(key): rate_direction(key, rhs) for key, rhs in rates.items()}
    faster = directional_derivative(sp.expand_log(sp.log(growth), force=True), {**ways, CLOCK: lambda _: tick})
    events = tuple(replace(e, expr=e.expr.xreplace({time: t})) for e in system.events)
    ends = (Event(BLOW_UP, BLOW_UP_MARGIN * (t - start) * faster - tick, 1, True), Event(END, t - stop, 1, True))
    laws = tuple(replace(v, expr=v.expr.xreplace({time: t})) for v in system.invariants)
    bounds = tuple(Param(p, value, sp.Interval(-sp.oo, sp.oo), "of the span") for p, value in ((start, 0.0), (stop, 1.0)))
    return System(
        name=f"{system.name}.rescaled",
        source=system.source,
        axes=system.axes,
        equations={**rates, t: tick},
        params=(*system.params, *bounds),
        initial={**system.initial, t: start},
        sizes=system.sizes,
        time="rescaled time",
        constraints=system.constraints,
        invariants=laws,
        events=(*events, *ends),
        sensitivities=system.sensitivities,
    )


def check_clock_names(system: System) -> None:
    """Raises SpecError where the System uses a name that its rescaled form needs."""
    for name in sorted({CLOCK, f"d_{CLOCK}", START, STOP} & all_names(system)):
        raise SpecError(f"{system.name}: {name!r} is needed for the rescaled clock; call it something else, such as {name}_1")
    for event in system.events:
        if event.name in (BLOW_UP, END):
            raise SpecError(f"{system.name}: the event {event.name!r} is that of the rescaled clock; call yours something else")


def divide_terms(e: Expr, growth: Expr) -> Expr:
    """e / growth, term by term, with one exponential in each.

    exp(z) / (exp(top) sum)  ->  exp(z - top) / sum, which cannot overflow
    """
    return sp.Add(*(merge_exponentials(term / growth) for term in sp.Add.make_args(e)))


def merge_exponentials(term: Expr) -> Expr:
    """A product with its exponentials, weighted ones included, merged into one."""
    factors = sp.Mul.make_args(term)
    powers = [f.exp for f in factors if isinstance(f, sp.exp)]
    weighted = [f for f in factors if isinstance(f, Weighted)]
    if len(powers) + len(weighted) < 2 or len(weighted) > 1:
        return term
    others = (f for f in factors if not isinstance(f, sp.exp | Weighted))
    x = sp.Add(*powers, *(f.args[1] for f in weighted))
    return sp.Mul(*others, *(Weighted(f.args[0], x) for f in weighted), *(() if weighted else (sp.exp(x),)))


def rate_direction(key: Any, rhs: Expr) -> Direction:
    """The function that gives the right-hand side rhs of state `key` at the indices of any element; 0 beyond the ends of an axis."""
    names = key_indices(key)

    def rate(indices: tuple[Any, ...]) -> Any:
        there, outside = at(rhs, dict(zip(names, indices, strict=True))), [i for i in indices if isinstance(i, Padded)]
        return sp.Piecewise((there, sp.And(*(Inside(*i.args) for i in outside))), (0, True)) if outside else there

    return rate
