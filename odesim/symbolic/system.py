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
from odesim.symbolic.checks import axes_of_resets, check_system, resets_as_written
from odesim.symbolic.definition import Definition, GradientFlow, error_part, twin_state
from odesim.symbolic.indices import base_name, check_boundary, our_element, time
from odesim.symbolic.layered import bounded
from odesim.symbolic.noise import noise_as_written
from odesim.symbolic.parts import UNPUBLISHED, ClosedForm, Constraint, Event, Invariant, Key, Param, Source, View, checked_expression
from odesim.symbolic.reductions import canonical
from odesim.symbolic.scope import check_parts
from odesim.symbolic.tables import table_constraints


@readable
@dataclass(frozen=True)
class System(Definition):
    """Ordinary differential equations d state / dt = right-hand side, for every value of the state's indices.

    Parameters
    ----------
    name : str
        FAMILY.MODEL.
    source : Source
        The paper, if there is one.
    axes : {index: extent}
        A size, or an affine expression of one; none where all states are numbers.
    equations : {state: expression}
        Right-hand sides.
    params : tuple of Param
        Parameters, with defaults and domains.
    initial : {state: expression}
        In parameters, sizes and indices.
    sizes : {size: int}
        Defaults.
    span : (float, float)
        Default (t0, t1).
    time : str
        The unit of t in a phrase.
    observables : {name: expression or function}
        The free indices of an expression, in the order of axes, are its dimensions; a function(t, states, derivatives, params) is in numpy.
    constraints, invariants, events, closed_forms : tuple
        Of Constraint, Invariant, Event, ClosedForm. Each table() adds the constraint that its places increase.

    Other Parameters
    ----------------
    growth : expression
        The positive rate at which the fastest component runs away, one smooth expression, for the rescaled clock ds = growth dt.
    sensitivities : {parameter or state: {state or observable: name}}
        Names of derivatives, as sensitivities() writes them.
    display : {name: expression}
        Formulas print the expression as that name, with its definition below; later names may be made of earlier ones.
    discrete : bool
        The equations give the next state, and t counts updates; Map() makes such a System.
    boundary : {index: "periodic", "zero" or "edge"}
        What x[i + 1] and x[i - 2] are beyond the ends of the axis: 0, the value at the end, or the axis is a ring. An index that is summed
        over has its own entry.
    noise : {state: {channel: factor}}
        As in d x[i] = f dt + s dB[i] of {x[i]: {B[i]: s}}: a Brownian motion for each element of a channel. An index of a channel that the
        state does not have is summed over.
    calculus : "ito" or "stratonovich"
        Of the noise.
    step : float
        The default step of runs with noise.
    views : tuple
        What pictures of its runs show, such as (Log("loss"), Matrix("V")); without views they choose by shapes.

    Raises
    ------
    SpecError
        Where its parts do not fit together.

    Examples
    --------
    >>> (m,), (M,) = index("m"), sizes("M")
    >>> w = IndexedBase("w", shape=(M,))
    >>> s = Param(IndexedBase("s", shape=(M,)), 1.0, doc="target")
    >>> flow = System(
    ...     name="my.linear", axes={m: M}, params=(s,),
    ...     equations={w[m]: s.symbol[m] - w[m]}, initial={w[m]: 0},
    ...     sizes={M: 3}, span=(0.0, 2.0),
    ... )
    >>> odesim.integrate(flow).final["w"].round(4).tolist()  # 1 - exp(-2)
    [0.8647, 0.8647, 0.8647]
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
        object.__setattr__(self, "axes", axes_of_resets(self))
        laws = tuple(
            replace(v, when=bounded(canonical(v.when), self.boundary)) if isinstance(v.when, sp.Basic) else v for v in self.invariants
        )
        object.__setattr__(self, "invariants", laws)
        if self.growth is not None:
            object.__setattr__(self, "growth", expression(self.growth, "growth"))
        with error_part("noise"):
            object.__setattr__(self, "noise", noise_as_written(self, lambda e: bounded(e, self.boundary)))
        check_system(self)
        axes, constraints = table_constraints(self)
        if len(constraints) > len(self.constraints):
            object.__setattr__(self, "axes", axes)
            object.__setattr__(self, "constraints", constraints)

    def _repr_markdown_(self) -> str:
        return str(import_module("odesim.display.document").markdown(self))

    def _repr_latex_(self) -> str:
        return f"$${import_module('odesim.display.formulas').latex(self)}$$"


@readable
def Map(
    name: str,
    source: Source = UNPUBLISHED,
    axes: Mapping[Symbol, Any] | None = None,
    updates: Mapping[Key, Expr] | None = None,
    params: tuple[Param, ...] = (),
    initial: Mapping[Key, Any] | None = None,
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

    Parameters
    ----------
    name, source, axes, params, initial, sizes, time, observables, constraints, invariants, events, closed_forms, display, boundary, views
        As of a System. An event counts at the first t after which its function has changed its sign, or is 0; the derivatives that an
        observable in Python is called with are the next states.
    updates : {state: next state}
        Expressions in the states before, parameters, sizes, indices and t, the number of updates done.
    steps : int
        Default number of updates, from t = 0.

    Returns
    -------
    System
        With discrete=True.

    Raises
    ------
    SpecError
        Where its parts do not fit together.

    Examples
    --------
    >>> x = Symbol("x", real=True)
    >>> r = Param(Symbol("r", real=True), 2.5, Interval(0, 4), "growth")
    >>> logistic = Map(
    ...     name="my.logistic", params=(r,),
    ...     updates={x: r.symbol * x * (1 - x)}, initial={x: 0.1},
    ... )
    >>> round(float(odesim.integrate(logistic, steps=200).final["x"]), 6)  # 1 - 1/r
    0.6
    """
    if isinstance(steps, bool) or not isinstance(steps, Integral) or steps < 1:
        error = SpecError(f"{name}: steps must be a whole number of at least 1, not {value_text(steps)}")
        error.part = ("steps", None)
        raise error
    try:
        return System(
            name, source, axes or {}, updates or {}, params, initial or {}, sizes or {}, (0.0, float(steps)), time, observables or {},
            constraints, invariants, events, closed_forms, display=display or {}, discrete=True, boundary=boundary or {}, views=views,
        )  # fmt: skip
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

    Parameters
    ----------
    system : System
        Torch's SGD where f is minus the gradient times learning rates.
    step : float
        The time of one update, the default of the parameter descent_step.
    momentum : float
        In [0, 1], the default of descent_momentum.

    Returns
    -------
    System
        A Map. Beside every state y stands y_velocity, from 0; without momentum there is neither that nor descent_momentum. Laws, events and
        observables are the System's alone.

    Raises
    ------
    SpecError
        For a System that is a Map already, or for a momentum outside [0, 1].

    Examples
    --------
    >>> steps = descent(odesim.load_model("joma.nonlinear"), step=0.1)
    >>> steps.discrete, float(odesim.integrate(steps, steps=10).t[-1])
    (True, 10.0)
    """
    SpecError.unless(isinstance(system, System) and not system.discrete, "descent() takes a System of differential equations", system)
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
