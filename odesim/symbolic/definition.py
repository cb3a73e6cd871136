"""What a System and a Map have in common: their fields, and what is read from all of these together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, Symbol

from odesim.base.errors import SpecError
from odesim.symbolic.indices import IndexedBase, PlainBase, base_name
from odesim.symbolic.layered import with_layers
from odesim.symbolic.parts import (
    UNPUBLISHED,
    ClosedForm,
    Constraint,
    Event,
    Invariant,
    Key,
    Param,
    Source,
    View,
    free_in_order,
    key_indices,
    required_arguments,
)
from odesim.symbolic.reductions import subexpressions


# A dict with a memory of its loss: formulas show a long gradient as d loss/d W, as long as the equation is still that gradient.
class GradientFlow(dict[Any, Any]):
    """Equations {W[i, j]: right-hand side} that follow from a loss. rates: of those without a metric."""

    def __init__(self, equations: Mapping[Key, Expr], loss: Expr, rates: Mapping[Key, Expr]):
        super().__init__(equations)
        self.loss, self._rates, self._written = loss, dict(rates), dict(equations)

    @property
    def rates(self) -> dict[Key, Expr]:
        """{W[i, j]: rate} of the equations that are -rate * dloss/dW still: nobody has put others in their place."""
        return {key: rate for key, rate in self._rates.items() if self.get(key) == self._written[key]}

    def __reduce__(self) -> tuple[Any, ...]:
        return GradientFlow, (dict(self), self.loss, self.rates)


@dataclass(frozen=True)
class Definition:
    """The fields of a System before they are checked; System documents each field."""

    name: str
    source: Source = UNPUBLISHED
    axes: Mapping[Symbol, Any] = field(default_factory=dict)
    equations: Mapping[Key, sp.Expr] = field(default_factory=dict)
    params: tuple[Param, ...] = ()
    initial: Mapping[Key, Any] = field(default_factory=dict)
    sizes: Mapping[Symbol, int] = field(default_factory=dict)
    span: tuple[float, float] = (0.0, 1.0)
    time: str = ""
    observables: Mapping[str, Any] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    invariants: tuple[Invariant, ...] = ()
    events: tuple[Event, ...] = ()
    closed_forms: tuple[ClosedForm, ...] = ()
    growth: Any = None
    sensitivities: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    display: Mapping[str, Any] = field(default_factory=dict)
    discrete: bool = False
    boundary: Mapping[Symbol, str] = field(default_factory=dict)
    noise: Mapping[Key, Mapping[Key, Any]] = field(default_factory=dict)
    calculus: str = "ito"
    step: float | None = None
    views: tuple[View, ...] = ()

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the states, in the order of the equations."""
        return tuple(base_name(k) for k in self.equations)

    @property
    def shapes(self) -> dict[str, tuple[Any, ...]]:
        """{state: extents of its axes}."""
        return {base_name(k): tuple(self.axes[i] for i in key_indices(k)) for k in self.equations}

    @property
    def size_names(self) -> tuple[str, ...]:
        """Names of the sizes, in the order in which axes, arrays and the values of index parameters use them."""
        names: dict[str, None] = {}
        extents = [
            *self.axes.values(),
            *(d for p in self.params for d in p.shape),
            *(p.indexes for p in self.params if p.indexes is not None),
        ]
        for extent in map(sp.sympify, extents):
            names.update(dict.fromkeys(sorted(s.name for s in extent.free_symbols)))
        return tuple(names)

    def param(self, name: str) -> Param:
        """The parameter with this name. Raises KeyError."""
        return {p.name: p for p in self.params}[name]

    def observable_indices(self, name: str) -> tuple[Symbol, ...]:
        """The free indices of an expression observable, in the order of axes."""
        return free_in_order(self.observables[name], self.axes)


def all_names(system: Definition) -> set[str]:
    """Names of the states, parameters and sizes of a System, all of which a kernel may use."""
    return {*system.states, *(p.name for p in system.params), *system.size_names}


def twin_state(key: Key, name: str, along: tuple[Symbol, ...] = (), extents: tuple[Any, ...] = ()) -> Key:
    """The twin of a state: a state with this name, the indices of key and then `along`, as it stands in an equation."""
    if not key_indices(key) and not along:
        return Symbol(name, real=True)
    shape = (*(key.base.shape if isinstance(key, Indexed) else ()), *extents)
    return IndexedBase(name, shape=shape)[(*key_indices(key), *along)]


@contextmanager
def error_part(field: str, number: int | None = None) -> Iterator[None]:
    """A context: a SpecError raised inside is attributed to this field of a System, or to its item of this number."""
    try:
        yield
    except SpecError as error:
        if error.part is None:
            error.part = (field, number)
        raise


def element_text(label: Any, shape: Iterable[Any] | None, s: Definition) -> str:
    """The text of an array's element, such as `T[m]`, with indices that run over its axes."""
    places: list[str] = []
    for extent in shape or ("",):
        fits = [str(i) for i, n in s.axes.items() if extent == "" or sp.expand(sp.sympify(n) - extent) == 0]
        places.append(next((i for i in fits if i not in places), "i"))
    return f"{label}[{', '.join(places)}]"


def all_expressions(s: Definition, *, equations: bool = True) -> Iterator[Any]:
    """Every expression of s, keys and extents included, with or without right-hand sides; declarations of parameters are not."""
    yield from computed_expressions(s, equations=equations)
    yield from with_layers(s.display.values())


def computed_expressions(s: Definition, *, equations: bool = True) -> Iterator[Any]:
    """Every expression of s that a run computes, with or without right-hand sides, definitions of layers included."""
    parts: list[Any] = [*s.axes, *s.axes.values(), *s.equations, *s.initial, *s.initial.values()]
    parts += s.equations.values() if equations else ()
    parts += [e for e in s.observables.values() if isinstance(e, sp.Basic)]
    parts += [part for law in s.invariants for part in (law.expr, law.when)]
    parts += [*(c.expr for c in s.constraints), *(event.expr for event in s.events)]
    parts += [e for event in s.events for pair in event.resets.items() for e in pair]
    parts += [factor for channels in s.noise.values() for factor in channels.values()]
    yield from with_layers(parts if s.growth is None else [*parts, s.growth])


def unused_params(s: Definition) -> tuple[str, ...]:
    """Names of the parameters that s never reads; empty where a function of the model takes all parameters and could read any."""
    functions = [e for e in s.observables.values() if not isinstance(e, sp.Basic)]
    functions += [p.default for p in s.params if callable(p.default) and required_arguments(p.default) != 1]
    if functions:
        return ()
    read = {base_name(x) for x in subexpressions(computed_expressions(s), Symbol, PlainBase)}
    return tuple(p.name for p in s.params if p.name not in read)
