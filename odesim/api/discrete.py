"""Options of a run of a Map: those that go with whole numbers of updates."""

from dataclasses import replace
from typing import Any

from odesim.base.run_options import RunOptions
from odesim.errors import ParamError, SolveError, no_such
from odesim.inputs.times import check_span
from odesim.solve.integrate import METHOD_NAMES
from odesim.stepper.methods import MAP
from odesim.symbolic.system import System

CONTINUOUS = ("rtol", "atol", "max_step", "stop_at", "clock")
DEFAULT = RunOptions()


def span_of_steps(system: System, span: Any, steps: int | None) -> Any:
    """The span of a run, None for the model's own. Raises ParamError for steps of a System, and for a fraction of an update."""
    if not system.discrete:
        if steps is not None:
            raise ParamError(
                f"steps is the number of updates of a Map, and {system.name} is a System: give its span, and step for a fixed step"
            )
        return span
    if steps is not None:
        if span is not None:
            raise ParamError(f"steps={steps} is the span 0:{steps}: give one of them")
        if steps < 1:
            raise ParamError(f"steps must be at least 1, not {steps}")
        return 0.0, float(steps)
    if span is not None:
        t0, t1 = check_span(span)
        if not (t0.is_integer() and t1.is_integer() and t0 >= 0):
            raise ParamError(
                f"span {t0:g}:{t1:g}: t counts the updates of the Map {system.name}, so both are whole numbers from 0; or give steps"
            )
    return span


def options_for(system: System, options: RunOptions, t0: float, t1: float) -> RunOptions:
    """The options of a run from t0 to t1: of a Map, the method map with step 1. Raises an OdesimError for options that do not fit."""
    if not system.discrete:
        if options.method == MAP.name:
            raise SolveError(no_such("method", MAP.name, METHOD_NAMES, system.name))
        return options
    for name in CONTINUOUS:
        if getattr(options, name) != getattr(DEFAULT, name):
            raise SolveError(
                f"{name} is for differential equations, and {system.name} is a Map: its options are steps, save, backend, dtype, strict"
            )
    if options.method not in (DEFAULT.method, MAP.name):
        raise SolveError(f"{options.method} is a method for differential equations, and {system.name} is a Map: leave the method out")
    if options.step not in (None, 1):
        raise SolveError(f"an update of the Map {system.name} is a step of 1, not of {options.step:g}: leave step out")
    if options.max_steps < t1 - t0 and options.max_steps != DEFAULT.max_steps:
        raise SolveError(f"max_steps = {options.max_steps} is less than the {t1 - t0:g} updates of the run: give fewer steps")
    return replace(options, method=MAP.name, step=1.0, max_steps=max(options.max_steps, int(t1 - t0)))
