"""A System: ordinary differential equations of arrays, as data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import sympy as sp

from odesim.base.parsing import readable
from odesim.symbolic.bound import canonical
from odesim.symbolic.definition import Definition
from odesim.symbolic.elements import our_element
from odesim.symbolic.flows import GradientFlow
from odesim.symbolic.layered import bounded
from odesim.symbolic.neighbours import check_boundary
from odesim.symbolic.parts import checked_expression


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
    discrete: the equations give the next state, and t counts updates; Map() makes such a System.
    Raises SpecError where its parts do not fit together.
    """

    def __post_init__(self) -> None:
        from odesim.symbolic.check import check_system
        from odesim.symbolic.check_resets import resets_as_written
        from odesim.symbolic.check_types import check_parts, error_part

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
        given = self.equations
        for name, what in parts.items():
            object.__setattr__(self, name, as_written(name, what))
        if isinstance(given, GradientFlow):
            object.__setattr__(self, "equations", GradientFlow(self.equations, given.loss, given.rates))
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
        check_system(self)

    def _repr_html_(self) -> str:
        from odesim.symbolic.html import html_fragment

        return html_fragment(self)

    def _repr_latex_(self) -> str:
        from odesim.symbolic.show import latex

        return f"$${latex(self)}$$"
