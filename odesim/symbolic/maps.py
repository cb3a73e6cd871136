"""A Map: discrete time, in which the equations of a System give the next state."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

from sympy import Expr, Symbol

from odesim.base.errors import SpecError, value_text
from odesim.base.parsing import readable
from odesim.symbolic.parts import ClosedForm, Constraint, Event, Invariant, Key, Param, Source
from odesim.symbolic.system import System


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
    given: dict[str, Any] = {"sizes": sizes or {}, "observables": observables or {}, "display": display or {}, "boundary": boundary or {}}
    laws: dict[str, Any] = {"constraints": constraints, "invariants": invariants, "events": events, "closed_forms": closed_forms}
    try:
        return System(name, source, axes, updates, params, initial, span=(0.0, float(steps)), time=time, discrete=True, **given, **laws)
    except SpecError as error:
        if error.part is not None and error.part[0] == "equations":
            error.part = ("updates", error.part[1])
            error.args = (str(error).replace("the equation of", "the update of").replace("equations ", "updates "),)
        raise
