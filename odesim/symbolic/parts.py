"""The parts of a System: parameters, laws, events, sources, views."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar, TypeAlias

import sympy as sp
from sympy import Indexed, Interval, Symbol, oo
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean

from odesim.base.errors import SpecError, value_text
from odesim.base.parsing import readable
from odesim.symbolic.indices import IndexedBase, PlainBase, base_name, our_array
from odesim.symbolic.reductions import canonical, free_indices, subexpressions

Key: TypeAlias = Any
"""A state as it stands in an equation: an Indexed such as v[i], or a Symbol."""


@readable
@dataclass(frozen=True)
class Source:
    """The source of a model.

    Parameters
    ----------
    key : str
        Of references.bib; "own" of a System that is in no paper.
    where : str
        The place in it, such as an equation.
    note : str
        What was changed.

    Examples
    --------
    >>> Source("tian2023joma", "Theorem 4").where
    'Theorem 4'
    """

    key: str = "own"
    where: str = ""
    note: str = ""

    def __str__(self) -> str:
        return "; ".join(filter(None, (", ".join(filter(None, (self.key, self.where))), self.note)))

    def __post_init__(self) -> None:
        for name, value in (("key", self.key), ("where", self.where), ("note", self.note)):
            SpecError.unless(isinstance(value, str), f"the {name} of a Source is a text", value)


UNPUBLISHED = Source()


@readable
@dataclass(frozen=True)
class Param:
    """A parameter: an array (IndexedBase with a shape) or a number (Symbol).

    Parameters
    ----------
    symbol : IndexedBase or Symbol
        How expressions write it.
    default : float or callable
        A number that fills the shape, or a function of {size: int} (and {name: array} of parameters already known) that gives the array.
    domain : sympy Set
        Values that are allowed; a subset of the integers makes it an integer parameter. Without it what the symbol assumes: positive,
        nonnegative, negative, nonpositive and integer are understood, and any other symbol is a real number.
    doc : str
        Its meaning.
    indexes : Symbol
        The size whose rows the values name, 0..size-1: needed to gather with it.
    cover : bool
        Each row must be named at least once; the size is then the largest value + 1. Without cover it is the size's default, or more where
        a given value needs more.

    Examples
    --------
    >>> tau = Param(symbols("tau", positive=True), 1.0, doc="time constant")
    >>> tau.name, tau.domain
    ('tau', Interval.open(0, oo))
    """

    symbol: IndexedBase | Symbol
    default: float | Callable[..., Any]
    domain: sp.Set = sp.S.UniversalSet
    doc: str = ""
    indexes: Symbol | None = None
    cover: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "symbol", our_array(self.symbol))
        if self.domain is sp.S.UniversalSet and isinstance(self.symbol, Symbol | PlainBase):
            object.__setattr__(self, "domain", assumed_domain(self.symbol))
        check_param(self)

    @property
    def name(self) -> str:
        return base_name(self.symbol)

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(self.symbol.shape) if isinstance(self.symbol, PlainBase) else ()

    @cached_property
    def integer(self) -> bool:
        return self.indexes is not None or bool(self.domain.is_subset(sp.S.Integers))


HALF_LINES = {
    "positive": Interval.open(0, oo),
    "negative": Interval.open(-oo, 0),
    "nonnegative": Interval(0, oo),
    "nonpositive": Interval(-oo, 0),
}


def assumed_domain(symbol: Symbol | PlainBase) -> sp.Set:
    """The real numbers, or integers, that a symbol with its assumptions can be."""
    facts = (symbol if isinstance(symbol, Symbol) else symbol.label).assumptions0
    return sp.Intersection(
        sp.S.Integers if facts.get("integer") else sp.S.Reals, *(line for fact, line in HALF_LINES.items() if facts.get(fact))
    )


def domain_text(domain: sp.Set) -> str:
    """A set of numbers in words: "[0, 1]", "(0, inf)", "the whole numbers from 0"."""
    if domain in (sp.S.Integers, sp.S.Naturals, sp.S.Naturals0):
        return {sp.S.Integers: "the whole numbers", sp.S.Naturals: "the whole numbers from 1"}.get(domain, "the whole numbers from 0")
    if isinstance(domain, sp.Interval):
        left, right = "(" if domain.left_open else "[", ")" if domain.right_open else "]"
        return f"{left}{domain.start}, {domain.end}{right}".replace("oo", "inf")
    if isinstance(domain, sp.Range) and domain.size != 0 and abs(domain.step) == 1:
        if domain.sup.is_finite:
            return f"the whole numbers up to {domain.sup}" if domain.inf.is_infinite else f"the whole numbers {domain.inf} to {domain.sup}"
        return f"the whole numbers from {domain.inf}" if domain.inf.is_finite else "the whole numbers"
    return " or ".join(map(domain_text, domain.args)) if isinstance(domain, sp.Union) else str(domain)


@readable
@dataclass(frozen=True)
class Constraint:
    """A condition on parameters, sizes and the initial state, for every value of its free indices.

    Parameters
    ----------
    name, expr : str, expression
        What it says.
    sense : "==0", ">=0" or "increasing"
        Of the expression; increasing is each value along its last index above the one before.
    tol : float
        Up to which it holds.

    Examples
    --------
    >>> p, (l,), (L,) = IndexedBase("p", shape=sizes("L")), index("l"), sizes("L")
    >>> Constraint("shares", over(Sum, p[l], (l, L)) - 1, "==0", 1e-9).sense
    '==0'
    """

    name: str
    expr: sp.Expr
    sense: str
    tol: float = 0.0


@readable
@dataclass(frozen=True)
class Invariant:
    """A law along every run.

    Parameters
    ----------
    name, expr : str, expression
        What it is about.
    sense : "constant", "nonincreasing", "nondecreasing" or "nonnegative"
        What expr is.
    when : condition
        On the initial state, parameters and sizes, for every value of its free indices; without it the law is not checked.
    tol : float
        The violation beyond which a run's message reports the law; default: never.

    Examples
    --------
    >>> x, y = symbols("x y", real=True)
    >>> Invariant("radius", x**2 + y**2, "constant").sense
    'constant'
    """

    name: str
    expr: sp.Expr
    sense: str
    when: Boolean = sp.true
    tol: float | None = None


@readable
@dataclass(frozen=True)
class Event:
    """An event: expr passes 0.

    Parameters
    ----------
    name, expr : str, expression
        With a free index it is an event of every component.
    direction : int
        Upwards (1), downwards (-1) or either way (0).
    terminal : bool
        It ends the run.
    doc : str
        Its meaning.
    resets : {state: expression}
        The states are set to these there, and the run goes on. v[i] with an index of expr is the component that passed; other indices run
        over their axes, and beside v[i] v[j] is all other components. Every expression sees the states before the reset.
    at_start : bool
        It also happens where a run starts, if its function is past 0 there in its direction, or is 0 and goes on that way; without
        direction, if it is 0.

    Notes
    -----
    Five or more samples of every step show where. A dip between two of them is found where the samples beside it fall and rise towards it;
    two dips there, a pulse much narrower than a step, or, where more than 64 components are watched, dips of many at once of functions with
    corners may be missed: a smaller max_step finds them. A function that touches zero exactly where a step ends counts.

    Runs stop at the times of an event on the time alone that sets states or happens more than once, where a formula gives them: none is
    missed, and one that only touches zero does not count.

    The events that happen at one time are collected before any of them sets a state. They act one after another, in the order of the
    System's list and of their components. A reset that takes another event's function across 0, or to it, sets that event off, at the same
    time and before later ones of the list. So an event acts once each time its function changes sides. Its own resets do not set it off,
    and a function that is at 0 counts again once it has left 0.

    Examples
    --------
    >>> V, (i,), (N,) = IndexedBase("V", shape=sizes("N")), index("i"), sizes("N")
    >>> spike = Event("spike", V[i] - 1, direction=1, resets={V[i]: 0})
    >>> spike.terminal
    False
    """

    name: str
    expr: sp.Expr
    direction: int = 0
    terminal: bool = False
    doc: str = ""
    resets: Mapping[Key, Any] = field(default_factory=dict)
    at_start: bool = False


@readable
@dataclass(frozen=True)
class ClosedForm:
    """An exact solution, or a relation along it, for tests.

    Parameters
    ----------
    name : str
        Of the formula.
    where : str
        In words, where it holds.
    function : callable
        function(t, y0, params) -> {state: array}; of an implicit one function(t, y, y0, params) -> residual, 0 on a solution.
    kind : "explicit" or "implicit"
        Which of both.

    Examples
    --------
    >>> decay = ClosedForm("exponential", "everywhere", lambda t, y0, params: {"y": y0["y"] * 2.0**-t})
    >>> decay.function(0.0, {"y": 2.0}, {})
    {'y': 2.0}
    """

    name: str
    where: str
    function: Callable[..., Any]
    kind: str = "explicit"


@readable
@dataclass(frozen=True)
class View:
    """How pictures show a state or observable, `name`: one of the kinds below. axes: how many it has, at least and at most."""

    axes: ClassVar[tuple[int, float]] = (0, math.inf)
    name: str


class Lines(View):
    """A line for each component; of many a faint bundle, with those that end far apart in colour."""


class Log(View):
    """Lines over a logarithmic axis of values."""


class Matrix(View):
    """The lines of an array, and beside them the array as a map at four times: start, end, and two at equal parts of its way."""

    axes = (2, math.inf)


class Attention(View):
    """As Matrix, with colours from 0: rows are queries, columns are what they attend to."""

    axes = Matrix.axes


class Points(View):
    """As Matrix, with points in the place of maps, for angles x[i] or vectors x[i, a] of 2 or 3 components; tails show their way."""

    axes = (1, 2)


def checked_expression(e: Any, where: str) -> sp.Expr:
    """e as a sympy expression with bound indices in its sums. Raises SpecError for text, lists, arrays, conditions and functions."""
    try:
        result = sp.sympify(e, strict=True)
    except Exception:  # sympy calls methods of an unknown object, which may raise anything
        result = None
    if not isinstance(result, sp.Expr) or result.is_Matrix:
        hint = ""
        if hasattr(e, "__len__") and not isinstance(e, str) and "the initial value" in where:
            hint = "; for an array give a Param with that default, and write its element"
        elif isinstance(result, Relational) and where.split(":")[-1].strip().startswith("event"):
            hint = f"; it passes 0 where that changes: write {sp.sstr(result.lhs - result.rhs)}"
        elif isinstance(result, Boolean) and not isinstance(e, bool):
            hint = "; write Piecewise((a, condition), (b, True))"
        raise SpecError(f"{where} must be an expression, not {value_text(e)}{hint}")
    if subexpressions([result], sp.Lambda):
        raise SpecError(f"{where} holds a function, {value_text(e)}: write its value, such as f(x)")
    return canonical(result)


def key_indices(key: Key) -> tuple[Symbol, ...]:
    """The indices of a state; () for a scalar."""
    return tuple(key.indices) if isinstance(key, Indexed) else ()


def free_in_order(e: Any, axes: Mapping[Symbol, Any]) -> tuple[Symbol, ...]:
    """The free indices of e in the order of axes."""
    free = free_indices(sp.sympify(e), set(axes))
    return tuple(i for i in axes if i in free)


def check_param(p: Param) -> None:
    """Raises SpecError unless every field of a Param has its type."""
    if not isinstance(p.symbol, Symbol | PlainBase):
        array = isinstance(p.symbol, Indexed)
        hint = f"its array, {p.symbol.base}" if array else "a symbol, or an IndexedBase with a shape"
        raise SpecError(f"the symbol of a Param is {value_text(p.symbol)}: write {hint}")
    where = f"Param {p.symbol}"
    if isinstance(p.symbol, PlainBase) and p.symbol.shape is None:
        raise SpecError(f"{where} needs a shape: IndexedBase({str(p.symbol.label)!r}, shape=(...))")
    if not isinstance(p.domain, sp.Set):
        pair = isinstance(p.domain, tuple | list) and len(p.domain) == 2
        hint = f"Interval({p.domain[0]}, {p.domain[1]})" if pair else "a set of sympy, such as Interval(-oo, oo) or S.Naturals"
        raise SpecError(f"{where}: the domain must be {hint}, not {value_text(p.domain)}")
    SpecError.unless(isinstance(p.doc, str), f"{where}: doc says what it is in words", p.doc)
    if p.indexes is not None and not isinstance(p.indexes, sp.Expr):
        raise SpecError(f"{where}: indexes is the size whose rows the values name, not {value_text(p.indexes)}")
    if not isinstance(p.cover, bool) or (not p.cover and p.indexes is None):
        reason = "it is for a parameter with indexes" if isinstance(p.cover, bool) else f"not {value_text(p.cover)}"
        raise SpecError(f"{where}: cover says with True or False whether every row must be named; {reason}")
    _check_default(where, p.default)
    if isinstance(p.default, Real | sp.Expr) and not p.domain.free_symbols:
        _check_inside(where, float(p.default), p.domain)


def _check_inside(where: str, default: float, domain: sp.Set) -> None:
    """Raises SpecError where a default is surely outside the domain; what sympy cannot decide is decided at a run."""
    if math.isfinite(default) and domain.contains(sp.Rational(default)) == sp.false:
        raise SpecError(f"{where}: the default {default:g} is outside its domain, {domain}")


def _check_default(where: str, default: Any) -> None:
    if callable(default) and not isinstance(default, type | sp.Basic):
        count = required_arguments(default)
        if count is not None and count not in (1, 2):
            raise SpecError(f"{where}: the default is called with (sizes) or (sizes, params), but takes {count} arguments")
        return
    number = isinstance(default, Real) or (isinstance(default, sp.Expr) and default.is_number and default.is_real)
    if isinstance(default, Integral) and abs(int(default)) >= 2**1023:
        raise SpecError(f"{where}: the default overflows: numbers go up to 1.8e308")
    if isinstance(default, bool) or not number:
        hint = (
            "" if isinstance(default, str | type(None)) or not hasattr(default, "__len__") else ": write lambda sizes: [...] for an array"
        )
        raise SpecError(f"{where}: the default must be a number or a function of the sizes, not {value_text(default)}{hint}")
    if not math.isfinite(float(default)):
        raise SpecError(f"{where}: the default {float(default):g} is not a finite number")


def required_arguments(function: Callable[..., Any]) -> int | None:
    """The number of arguments to call a function with; at least 2 where it takes any number, None where it has no signature.

    An argument with a default, such as a in `lambda sizes, a=a: ...`, does not count.
    """
    import inspect

    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some functions written in C have no signature
        return None
    if any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters):
        return 0
    least = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters)
    return max(least, 2) if any(p.kind is p.VAR_POSITIONAL for p in parameters) else least
