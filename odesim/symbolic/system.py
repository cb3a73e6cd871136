"""A System: ordinary differential equations of arrays, as data; a Map: the same in discrete time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from numbers import Integral
from typing import Any

import sympy as sp
from sympy import Expr, Interval, Symbol, oo

from odesim.base.errors import SpecError, value_text
from odesim.base.parsing import readable
from odesim.symbolic.checks import check_system, resets_as_written
from odesim.symbolic.fields import check_parts
from odesim.symbolic.indices import base_name, check_boundary, our_element, time
from odesim.symbolic.layered import bounded
from odesim.symbolic.noise import noise_as_written
from odesim.symbolic.parts import (
    ClosedForm,
    Constraint,
    Definition,
    Event,
    GradientFlow,
    Invariant,
    Key,
    Param,
    Source,
    View,
    checked_expression,
    error_part,
    twin_state,
)
from odesim.symbolic.reductions import canonical


@readable
@dataclass(frozen=True)
class System(Definition):
    """Ordinary differential equations d state / dt = right-hand side, for every value of the state's indices.

    axes: index -> extent (a size or an affine expression of one). equations: state -> right-hand side.
    initial: state -> expression in parameters, sizes and indices. sizes: default values. span: default (t0, t1).
    time: the unit of t in a phrase. observables: name -> expression (its free indices, in the order of axes, are
    its dimensions) or function(t, states, derivatives, params) in numpy.
    growth: the positive rate at which the fastest component runs away, one smooth expression, for the rescaled clock ds = growth dt.
    sensitivities: parameter, or state for its initial value -> {state or observable: name of its derivative}; see sensitivities().
    display: name -> expression that formulas print as that name, with its definition below; later names may be made of earlier ones.
    boundary: index -> "periodic", "zero" or "edge": what x[i + 1] and x[i - 2] are beyond the ends of the axis. zero: 0; edge: the value
    at the end; periodic: the axis is a ring. An index that is summed over has its own entry.
    noise: state -> {channel: factor}, as in d x[i] = f dt + s dB[i] of noise={x[i]: {B[i]: s}}: a Brownian motion for each element of a
    channel. An index of a channel that the state does not have is summed over. calculus: "ito" or "stratonovich". step: the
    default step of its runs.
    views: what pictures of its runs show, such as (Log("loss"), Matrix("V")); without views they choose by shapes.
    discrete: the equations give the next state, and t counts updates; Map() makes such a System.
    Raises SpecError where its parts do not fit together.
    """

    def __post_init__(self) -> None:
        def expression(e: Any, where: str) -> Any:
            return bounded(checked_expression(e, f"{self.name}: {where}"), self.boundary)

        def as_written(field: str, what: str) -> dict[Any, Any]:
            expressions = {}
            for number, (key, e) in enumerate(getattr(self, field).items()):
                with error_part(field, number):
                    function = field == "observables" and callable(e) and not isinstance(e, sp.Basic)
                    expressions[our_element(key)] = e if function else expression(e, f"{what} {key}")
            return expressions

        def exact(what: str) -> tuple[Any, ...]:
            checked = []
            for number, part in enumerate(getattr(self, f"{what}s")):
                with error_part(f"{what}s", number):
                    checked.append(replace(part, expr=expression(part.expr, f"{what} {part.name!r}")))
            return tuple(checked)

        check_parts(self)
        with error_part("boundary"):
            check_boundary(self.name, self.boundary)
        parts = {"equations": "the equation of", "initial": "the initial value of", "observables": "observable", "display": "display"}
        flow = self.equations
        for name, what in parts.items():
            object.__setattr__(self, name, as_written(name, what))
        if isinstance(flow, GradientFlow):
            object.__setattr__(self, "equations", GradientFlow(self.equations, flow.loss, flow.rates))
        for what in ("constraint", "invariant", "event"):
            object.__setattr__(self, f"{what}s", exact(what))
        events = []
        for number, event in enumerate(self.events):
            with error_part("events", number):
                events.append(replace(event, resets=resets_as_written(self.name, event, self.boundary)))
        object.__setattr__(self, "events", tuple(events))
        laws = tuple(
            replace(v, when=bounded(canonical(v.when), self.boundary)) if isinstance(v.when, sp.Basic) else v for v in self.invariants
        )
        object.__setattr__(self, "invariants", laws)
        if self.growth is not None:
            object.__setattr__(self, "growth", expression(self.growth, "growth"))
        with error_part("noise"):
            object.__setattr__(self, "noise", noise_as_written(self, lambda e: bounded(e, self.boundary)))
        check_system(self)

    def _repr_markdown_(self) -> str:
        return str(import_module("odesim.display.document").markdown(self))

    def _repr_latex_(self) -> str:
        return f"$${import_module('odesim.display.formulas').latex(self)}$$"


@readable
def Map(
    name: str,
    source: Source,
    axes: Mapping[Symbol, Any],
    updates: Mapping[Key, Expr],
    params: tuple[Param, ...],
    initial: Mapping[Key, Any],
    sizes: Mapping[Symbol, int] | None = None,
    steps: int = 100,
    time: str = "updates",
    observables: Mapping[str, Any] | None = None,
    constraints: tuple[Constraint, ...] = (),
    invariants: tuple[Invariant, ...] = (),
    events: tuple[Event, ...] = (),
    closed_forms: tuple[ClosedForm, ...] = (),
    display: Mapping[str, Any] | None = None,
    boundary: Mapping[Symbol, str] | None = None,
    views: tuple[View, ...] = (),
) -> System:
    """The System in discrete time that sets every state to its update, all at once: W[i, j] becomes updates[W[i, j]].

    updates: state -> next state, an expression in the states before, parameters, sizes, indices and t, the number of updates done.
    steps: default number of updates, from t = 0. All else is as in a System. An event counts at the first t after which its function
    has changed its sign, or is 0; the derivatives that an observable in Python is called with are the next states.
    Raises SpecError where its parts do not fit together.
    """
    if isinstance(steps, bool) or not isinstance(steps, Integral) or steps < 1:
        error = SpecError(f"{name}: steps must be a whole number of at least 1, not {value_text(steps)}")
        error.part = ("steps", None)
        raise error
    mappings: dict[str, Any] = {
        "sizes": sizes or {},
        "observables": observables or {},
        "display": display or {},
        "boundary": boundary or {},
    }
    parts: dict[str, Any] = {
        "constraints": constraints,
        "invariants": invariants,
        "events": events,
        "closed_forms": closed_forms,
        "views": views,
    }
    try:
        return System(name, source, axes, updates, params, initial, span=(0.0, float(steps)), time=time, discrete=True, **mappings, **parts)
    except SpecError as error:
        if error.part is not None and error.part[0] == "equations":
            error.part = ("updates", error.part[1])
            error.args = (str(error).replace("the equation of", "the update of").replace("equations ", "updates "),)
        raise


STEP, MOMENTUM = "descent_step", "descent_momentum"
"""Names of the parameters of descent()."""


@readable
def descent(system: System, *, step: float = 1.0, momentum: float = 0.0) -> System:
    """The Map v <- momentum v + step f(step t, y), then y <- y + v, for the equations dy/dt = f(t, y) of a System.

    That is torch's SGD where f is minus the gradient times learning rates. step: the time of one update, momentum: in [0, 1]; they are
    the defaults of the parameters descent_step and descent_momentum. Beside every state y stands y_velocity, from 0; without momentum
    there is neither that nor descent_momentum. Laws, events and observables are the System's alone. Raises SpecError.
    """
    if not isinstance(system, System) or system.discrete:
        raise SpecError(f"descent() takes a System of differential equations, not {value_text(system)}")
    if system.noise:
        raise SpecError(f"{system.name} has noise, which descent() does not take over: write the updates as a Map")
    if not (step > 0 and 0 <= momentum <= 1):
        raise SpecError(f"descent needs a step above 0 and a momentum in [0, 1], not {step:g} and {momentum:g}")
    h, beta = Symbol(STEP, real=True), Symbol(MOMENTUM, real=True)
    params = [*system.params, Param(h, step, Interval.open(0, oo), "time of one update")]
    updates, initial = {}, dict(system.initial)
    for key, rhs in system.equations.items():
        change = h * rhs.xreplace({time: h * time})
        if momentum:
            velocity = twin_state(key, f"{base_name(key)}_velocity")
            change += beta * velocity
            updates[velocity], initial[velocity] = change, 0.0
        updates[key] = key + change
    if momentum:
        params.append(Param(beta, momentum, Interval(0, 1), "part of the velocity that stays"))
    name = f"{system.name}.descent"
    return Map(name, system.source, system.axes, updates, tuple(params), initial, system.sizes, constraints=system.constraints)
