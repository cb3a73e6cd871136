"""Guards: events that end a run where a state leaves the set that its symbol assumes.

A state x > 0 leaves where x <= -SLACK and x' < 0. A solution crosses the boundary of a set only where its derivative points outwards
(Nagumo 1942). So a small error of a step or an interpolant, as in a decay x' = -x long after its start, ends no run.
"""

from dataclasses import dataclass, replace

import sympy as sp
from sympy import Interval, Symbol

from odesim.base.errors import SpecError
from odesim.symbolic.assumed import assumed_intervals, set_text
from odesim.symbolic.expr import base_name, over
from odesim.symbolic.lowering import all_names
from odesim.symbolic.parts import Event, Param, key_indices
from odesim.symbolic.reductions import MaxOver
from odesim.symbolic.system import System

SLACK = "assumed_slack"
"""Name of the parameter for how far outside its set a state still counts as inside: the absolute tolerance of a run."""


@dataclass(frozen=True)
class Guard(Event):
    """The event that a component of a state is SLACK or more outside its set and moves further out.

    In a Map it is the event that the component is outside.
    state: its name. sign: sign * state is the distance from the boundary, positive inside. words: the set.
    """

    state: str = ""
    sign: int = 1
    words: str = ""


def add_guards(system: System) -> System:
    """The System with the parameter SLACK and with guards after its own events; the System itself where no state assumes a set."""
    sets = {name: interval for name, interval in assumed_intervals(system).items() if interval is not None}
    if not sets:
        return system
    if SLACK in all_names(system):
        raise SpecError(f"{system.name}: {SLACK!r} is needed where states assume a set; call it something else, such as {SLACK}_1")
    slack = Symbol(SLACK, real=True)
    guards = []
    for key in system.equations:
        name = base_name(key)
        if name in sets:
            sign = 1 if sets[name].start == 0 else -1
            axes = [(i, system.axes[i]) for i in key_indices(key)]
            out = -sign * key - slack
            if not system.discrete:
                out = sp.Min(out, -sign * system.equations[key], evaluate=False)
            words = set_text(sets[name])
            expr = -(over(MaxOver, out, *axes) if axes else out)
            guards.append(Guard(f"{name} leaves {words}", expr, -1, True, state=name, sign=sign, words=words))
    param = Param(slack, 1e-9, Interval(-sp.oo, sp.oo), "how far outside its set a state still counts as inside")
    return replace(system, events=(*system.events, *guards), params=(*system.params, param))
