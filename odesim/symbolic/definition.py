"""The fields of a System, and the names and shapes that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy as sp
from sympy import Symbol

from odesim.symbolic.indices import base_name
from odesim.symbolic.parts import ClosedForm, Constraint, Event, Invariant, Key, Param, Source, free_in_order, key_indices


@dataclass(frozen=True)
class Definition:
    """The fields of a System before they are checked; System documents each field."""

    name: str
    source: Source
    axes: Mapping[Symbol, Any]
    equations: Mapping[Key, sp.Expr]
    params: tuple[Param, ...]
    initial: Mapping[Key, Any]
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
