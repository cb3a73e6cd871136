"""A System: the ordinary differential equations of arrays, as data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import sympy as sp
from sympy import Indexed, IndexedBase, Symbol
from sympy.logic.boolalg import Boolean

from odesim.errors import SpecError, shown
from odesim.symbolic.bound import canonical
from odesim.symbolic.elements import own, own_element
from odesim.symbolic.expr import base_name

Key: TypeAlias = Any
"""A state as it stands in an equation: an Indexed such as v[i], or a Symbol."""


@dataclass(frozen=True)
class Source:
    """Where a statement comes from: a key of references.bib, the place in it, and what was changed."""

    key: str
    where: str
    note: str = ""

    def __post_init__(self) -> None:
        for name, value in (("key", self.key), ("where", self.where), ("note", self.note)):
            if not isinstance(value, str):
                raise SpecError(f"the {name} of a Source is a text, not {shown(value)}")


@dataclass(frozen=True)
class Param:
    """A parameter: an array (IndexedBase with a shape) or a number (Symbol).

    default: a number that fills the shape, or a function of {size: int} (and {name: array} of parameters
    already known) that gives the array. domain: a sympy Set; a subset of the integers makes it an integer parameter.
    indexes: the size whose rows the values name (0..size-1, each at least once): needed to gather with it.
    """

    symbol: IndexedBase | Symbol
    default: float | Callable[..., Any]
    domain: sp.Set
    doc: str
    indexes: Symbol | None = None

    def __post_init__(self) -> None:
        from odesim.symbolic.parts import check_param

        object.__setattr__(self, "symbol", own(self.symbol))
        check_param(self)

    @property
    def name(self) -> str:
        return base_name(self.symbol)

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(self.symbol.shape) if isinstance(self.symbol, IndexedBase) else ()

    @property
    def integer(self) -> bool:
        return self.indexes is not None or bool(self.domain.is_subset(sp.S.Integers))


@dataclass(frozen=True)
class Constraint:
    """expr == 0 or expr >= 0 (up to tol) on parameters and sizes, for every value of its free indices."""

    name: str
    expr: sp.Expr
    sense: str
    tol: float = 0.0


@dataclass(frozen=True)
class Invariant:
    """A law along a run: expr is "constant", "nonincreasing", "nondecreasing" or "nonnegative".

    when: a condition on the initial state, parameters and sizes, for every value of its free indices; where it does not hold, the
    law says nothing of the run. tol: how far a run may be from the law; the message of one that is further says so. None: it never does.
    """

    name: str
    expr: sp.Expr
    sense: str
    when: Boolean = sp.true
    tol: float | None = None


@dataclass(frozen=True)
class Event:
    """expr passes 0, upward (direction 1), downward (-1) or either way (0); a terminal event ends the run."""

    name: str
    expr: sp.Expr
    direction: int = 0
    terminal: bool = False


@dataclass(frozen=True)
class ClosedForm:
    """A solution known by other means.

    explicit: function(t, y0, params) -> {state: array}; implicit: function(t, y, y0, params) -> residual, 0 on a solution.
    """

    name: str
    where: str
    function: Callable[..., Any]
    kind: str = "explicit"


@dataclass(frozen=True)
class System:
    """d state / dt = right side, for every value of the state's indices.

    axes: index -> extent (a size or an affine expression of one). equations: state -> right side.
    initial: state -> expression in parameters, sizes and indices. sizes: default values. span: default (t0, t1).
    time: the unit of t in a phrase. observables: name -> expression (its free indices, in the order of axes, are
    its dimensions) or function(t, states, derivatives, params) in numpy.
    growth: the positive rate at which the fastest component runs away, one smooth expression, for the rescaled clock ds = growth dt.
    sensitivities: parameter, or state for its initial value -> {state or observable: name of its derivative}; see sensitivities().
    Raises SpecError when a part does not fit.
    """

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

    def __post_init__(self) -> None:
        from odesim.symbolic.check import check_system
        from odesim.symbolic.parts import check_parts, of_part

        def as_written(field: str, what: str) -> dict[Any, Any]:
            made = {}
            for number, (key, e) in enumerate(getattr(self, field).items()):
                with of_part(field, number):
                    function = field == "observables" and callable(e) and not isinstance(e, sp.Basic)
                    made[own_element(key)] = e if function else expression(e, f"{self.name}: {what} {key}")
            return made

        def exact(what: str) -> tuple[Any, ...]:
            made = []
            for number, part in enumerate(getattr(self, f"{what}s")):
                with of_part(f"{what}s", number):
                    made.append(replace(part, expr=expression(part.expr, f"{self.name}: {what} {part.name!r}")))
            return tuple(made)

        check_parts(self)
        for name, what in (("equations", "the equation of"), ("initial", "the initial value of"), ("observables", "observable")):
            object.__setattr__(self, name, as_written(name, what))
        for what in ("constraint", "invariant", "event"):
            object.__setattr__(self, f"{what}s", exact(what))
        laws = tuple(replace(v, when=canonical(v.when)) if isinstance(v.when, sp.Basic) else v for v in self.invariants)
        object.__setattr__(self, "invariants", laws)
        if self.growth is not None:
            object.__setattr__(self, "growth", expression(self.growth, f"{self.name}: growth"))
        check_system(self)

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the states, in the order of the equations."""
        return tuple(base_name(k) for k in self.equations)

    @property
    def shapes(self) -> dict[str, tuple[Any, ...]]:
        """State -> extents of its axes."""
        return {base_name(k): tuple(self.axes[i] for i in key_indices(k)) for k in self.equations}

    @property
    def size_names(self) -> tuple[str, ...]:
        """Names of the sizes, in the order in which axes and parameters name them."""
        found: dict[str, None] = {}
        extents = [*self.axes.values(), *(d for p in self.params for d in p.shape)]
        for extent in map(sp.sympify, extents):
            found.update(dict.fromkeys(sorted(s.name for s in extent.free_symbols)))
        return tuple(found)

    def param(self, name: str) -> Param:
        """The parameter of that name. Raises KeyError."""
        return {p.name: p for p in self.params}[name]

    def observable_indices(self, name: str) -> tuple[Symbol, ...]:
        """The free indices of an expression observable, in the order of axes."""
        return free_in_order(self.observables[name], self.axes)

    def _repr_latex_(self) -> str:
        from odesim.symbolic.show import latex

        return f"$${latex(self)}$$"


def expression(e: Any, where: str) -> sp.Expr:
    """e as a sympy expression with bound indices in its sums. Raises SpecError for text, lists, arrays and conditions."""
    try:
        made = sp.sympify(e, strict=True)
    except Exception:  # sympy asks an unknown object what it is
        made = None
    if not isinstance(made, sp.Expr) or made.is_Matrix:
        hint = ""
        if hasattr(e, "__len__") and not isinstance(e, str) and "the initial value" in where:
            hint = "; for an array give a Param with that default, and write its element"
        elif isinstance(made, Boolean) and not isinstance(e, bool):
            hint = "; write Piecewise((a, condition), (b, True))"
        raise SpecError(f"{where} must be an expression, not {shown(e)}{hint}")
    return canonical(made)


def key_indices(key: Key) -> tuple[Symbol, ...]:
    """The indices of a state: none for a number."""
    return tuple(key.indices) if isinstance(key, Indexed) else ()


def free_in_order(e: Any, axes: Mapping[Symbol, Any]) -> tuple[Symbol, ...]:
    """The free indices of e in the order of axes."""
    from odesim.symbolic.expr import free_indices

    free = free_indices(sp.sympify(e), set(axes))
    return tuple(i for i in axes if i in free)
