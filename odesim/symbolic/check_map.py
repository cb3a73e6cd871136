"""Checks of a System in discrete time."""

from odesim.base.errors import SpecError
from odesim.symbolic.check_types import error_part
from odesim.symbolic.definition import Definition


def check_map(s: Definition) -> None:
    """Raises SpecError where a System in discrete time has what needs a derivative, or times that are no whole numbers."""
    if not s.discrete:
        return
    with error_part("span"):
        if not all(float(t).is_integer() and t >= 0 for t in s.span):
            raise SpecError(f"{s.name}: t counts the updates of a Map, so its span is two whole numbers from 0, not {s.span}")
    if s.growth is not None:
        with error_part("growth"):
            raise SpecError(f"{s.name}: growth is the rate of differential equations, and the time of a Map is whole numbers")
    for number, event in enumerate(s.events):
        if event.resets:
            with error_part("events", number):
                raise SpecError(f"{s.name}: event {event.name!r} sets states: in a Map write that into the updates, with Piecewise")
        if event.at_start:
            with error_part("events", number):
                raise SpecError(f"{s.name}: event {event.name!r} happens at the start: in a Map write that into the initial values")
