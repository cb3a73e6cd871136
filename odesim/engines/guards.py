"""Guards: events that end a run when a state leaves the set that its symbol assumes."""

from collections.abc import Iterable
from dataclasses import replace

from odesim.base.memo import IdentityKey, Memo
from odesim.inputs.bind import Numbers
from odesim.stepper.memory import slack_of
from odesim.stepper.problem import EventSpec, Guarded
from odesim.symbolic.system import System
from odesim.transforms.events import SLACK, Guard, add_guards, is_affine

_GUARDED: Memo[System] = Memo()


def guarded_system(system: System) -> System:
    """The System with a guard for each state whose symbol assumes a set, made once a process."""
    return _GUARDED(IdentityKey(system), lambda: add_guards(system))


def guard_names(system: System) -> frozenset[str]:
    """The names of the System's guards, which are not events of the model."""
    return frozenset(e.name for e in system.events if isinstance(e, Guard))


def with_slack(system: System, numbers: Numbers, rtol: float, atol: float, dtype: str) -> Numbers:
    """Numbers for a System that may have guards: a state within the absolute tolerance of its set counts as inside."""
    if not any(isinstance(e, Guard) for e in system.events):
        return numbers
    return replace(numbers, params={**numbers.params, SLACK: slack_of(rtol, atol, dtype)})


def event_specs(system: System, shapes: Iterable[tuple[int, ...]]) -> tuple[EventSpec, ...]:
    """The EventSpecs of the System's events, whose shapes are these."""
    guards = (Guarded(e.state, e.sign, e.words) if isinstance(e, Guard) else None for e in system.events)
    facts = zip(system.events, shapes, guards, strict=True)
    return tuple(EventSpec(e.name, s, e.direction, e.terminal, g, bool(e.resets), is_affine(system, e.expr)) for e, s, g in facts)
