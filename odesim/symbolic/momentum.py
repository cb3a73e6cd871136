"""Gradient descent with momentum on a System's right-hand side, as a Map."""

from __future__ import annotations

from sympy import Interval, Symbol, oo

from odesim.base.errors import SpecError, value_text
from odesim.base.parsing import readable
from odesim.symbolic.derive import twin_state
from odesim.symbolic.expr import base_name, time
from odesim.symbolic.maps import Map
from odesim.symbolic.parts import Param
from odesim.symbolic.system import System

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
