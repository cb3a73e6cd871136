"""Sums and maxima over indices: what they bind, up to where they go, and how something is put into them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, Sum, Symbol
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.core.cache import cacheit

from odesim.base.errors import SpecError, value_text
from odesim.base.parsing import readable
from odesim.symbolic.indices import Condition, Inside, Neighbour, argument_expression, our_element

LIMIT_FORMS = "from 0 to a size - 1, from 0 to an index (i or i - 1), or from an index (i or i + 1) to a size - 1"


# Partial sums have an index as a limit. Their condition is a class of its own: it is no comparison of numbers that change in a run, and
# sympy leaves it as it is.
class UpTo(Condition):
    """The condition a <= b + c of two places and a number: UpTo(a, b, c)."""

    def readable(self) -> Any:
        """The condition in signs."""
        a, b, c = self.args
        return sp.Le(a, b + c)


@dataclass(frozen=True)
class Triangle:
    """The limits of a summed index j: j <= index + shift (op "prefix"), or j >= index + shift (op "suffix").

    index: an index, or a neighbour of one. Where shift is not 0 there is no j for some value of the index.
    """

    op: str
    index: Any
    shift: int

    def extent(self, extents: Mapping[Any, Any]) -> Any:
        """The number of places of the axis."""
        return self.index.args[2] if isinstance(self.index, Neighbour) else extents[self.index]

    def condition(self, j: Any) -> Any:
        """Whether j is within the limits."""
        return UpTo(j, self.index, self.shift) if self.op == "prefix" else UpTo(self.index, j, -self.shift)

    def count(self, extent: Any) -> Expr:
        """The number of values of j."""
        number = self.index + self.shift + 1 if self.op == "prefix" else extent - self.index - self.shift
        return sp.Max(0, number) if abs(self.shift) > 1 else number

    def text(self, j: Any) -> str:
        """The limits on one line, such as j<=i."""
        sign = "<=" if self.op == "prefix" else ">="
        if abs(self.shift) == 1:
            return f"{j}{sign[0]}{self.index}"
        return f"{j}{sign}{self.index}" + (f"{self.shift:+d}" if self.shift else "")


def is_index(x: Any) -> bool:
    """Whether x is a symbol such as index() makes: a whole number from 0. Sizes are positive."""
    return isinstance(x, Symbol) and bool(x.is_integer and x.is_nonnegative) and not x.is_positive


def triangle(low: Any, high: Any) -> Triangle | None:
    """The Triangle of the limits low <= j <= high; None where neither is an index, perhaps with a number."""
    for op, bound in (("prefix", high), ("suffix", low)):
        c, i = sp.Add(*sp.Add.make_args(sp.sympify(bound))).as_coeff_Add()
        if (is_index(i) or isinstance(i, Neighbour)) and c.is_Integer:
            return Triangle(op, i, int(c))
    return None


def extent_of(low: Any, high: Any, extents: Mapping[Symbol, Any]) -> Any:
    """The extent of the axis that an index with these limits runs over, or a part of."""
    t = triangle(low, high)
    return sp.expand(high - low + 1) if t is None else t.extent(extents)


def inside(limits: Any, extents: Mapping[Symbol, Any]) -> dict[Symbol, Any]:
    """The extents of indices inside a sum or maximum with these limits, from those around it."""
    inner = dict(extents)
    for k, low, high in reversed(limits):
        inner[k] = extent_of(low, high, inner)
    return inner


def rebuilt(e: Any, args: tuple[Any, ...]) -> Any:
    """e with these arguments, e itself where they are its own; the conditions of a Piecewise are not evaluated."""
    if args == e.args:
        return e
    return sp.Piecewise(*args, evaluate=False) if isinstance(e, sp.Piecewise) else e.func(*args)


def limit_text(limit: Any, printed: Callable[[Any], Any] = str) -> str:
    """The index of a sum on one line, with its limits where they are not the whole axis: j, j<=i, j<i."""
    j, low, high = limit
    t = triangle(low, high)
    return str(printed(j)) if t is None else t.text(printed(j))


def limit_latex(limit: Any, printer: Any) -> str:
    """limit_text() in LaTeX."""
    return limit_text(limit, printer._print).replace("<=", r" \le ").replace(">=", r" \ge ")


def has_triangle(e: Any) -> bool:
    """Whether some index of a sum or maximum has an index as a limit."""
    return any(triangle(low, high) for _, low, high in e.limits)


# Without evaluation the body stays as the model file has it: that is what keeps shifts beside what they protect, and a Piecewise inside.
@cacheit
def unevaluated(cls: type, body: Any, limits: Iterable[Any]) -> Any:
    """cls(body, *limits) without evaluation: sympy's own constructor moves a Piecewise out, past the index it depends on."""
    e = Expr.__new__(cls, sp.sympify(body), *(sp.Tuple(*lim) for lim in limits))
    e.is_commutative = True
    return e


class Reduction(ExprWithLimits):  # type: ignore[misc]
    """The base of sums and maxima. It looks up their free symbols once; sympy's own classes rebuild the body each time."""

    def __new__(cls, body: Any, *limits: Any, **_: Any) -> Any:
        return unevaluated(cls, body, limits)

    @cached_property
    def _free(self) -> frozenset[Any]:
        free = self.function.free_symbols
        for k, *bounds in self.limits:
            free = (free - {k}).union(*(bound.free_symbols for bound in bounds))
        return frozenset(free)

    @property
    def free_symbols(self) -> set[Any]:
        return {*self._free}

    @property
    def is_number(self) -> bool:
        return not self._free


class SumOver(Reduction, Sum):  # type: ignore[misc]
    """The sum of body over k, unevaluated."""

    def _latex(self, printer: Any) -> str:
        return str(printer._print_Sum(self))

    def doit(self, **_: Any) -> Expr:
        return self


@readable
class MaxOver(Reduction):
    """The maximum of body over k; its derivative is that of body at the first k where body is largest.

    Parameters
    ----------
    body, *limits
        As over(MaxOver, body, (k, M)) writes them.

    Examples
    --------
    >>> x, (k,), (M,) = IndexedBase("x", shape=sizes("M")), index("k"), sizes("M")
    >>> over(MaxOver, x[k], (k, M))
    MaxOver(x[k], (k, 0, M - 1))
    """

    is_extended_real = True

    def _eval_derivative(self, symbol: Any) -> Expr:
        return at_max(self, self.function.diff(symbol))

    def _latex(self, printer: Any) -> str:
        return rf"\max_{{{limit_latex(self.limits[0], printer)}}} {printer._print(self.function)}"

    def _pretty(self, printer: Any) -> Any:
        return printer._print(sp.Function(f"max_{limit_text(self.limits[0])}")(self.function))


class Shift(MaxOver):
    """A maximum that prevents overflow and cancels: its derivative is 0, and it is printed as 0.

    Parameters
    ----------
    body, *limits
        As over(Shift, body, (k, M)) writes them.

    Examples
    --------
    >>> x, (k,), (M,) = IndexedBase("x", shape=sizes("M")), index("k"), sizes("M")
    >>> over(Shift, x[k], (k, M)).diff(x[0])
    0
    """

    def _eval_derivative(self, symbol: Any) -> Expr:
        return sp.S.Zero


class AtMax(Reduction):
    """The value of g at the first k where f is largest: AtMax((f, g), (k, 0, M - 1))."""

    def _eval_derivative(self, symbol: Any) -> Expr:
        return at_max(self, self.function[1].diff(symbol))

    def _latex(self, printer: Any) -> str:
        f, g = (printer._print(a) for a in self.function)
        k = limit_latex(self.limits[0], printer)
        return rf"\left. {g} \right|_{{{k} = \arg\max_{{{k}}} {f}}}"

    def _pretty(self, printer: Any) -> Any:
        return printer._print(sp.Function("at_max")(*self.function))


def at_max(largest: Any, slope: Any) -> Any:
    """slope at the index where `largest`, a MaxOver or AtMax, takes its value."""
    f = largest.function[0] if isinstance(largest, AtMax) else largest.function
    return sp.S.Zero if slope == 0 else AtMax(sp.Tuple(f, slope), *largest.limits)


REDUCTIONS = (Sum, MaxOver, AtMax)


# Each sum has an index symbol of its own, so that a substitution into the sum cannot capture it: over(Sum, A[i, k]*x[k], (k, M)) holds k as
# BoundIndex("k", 1), which prints as k and is not the k of the model file. Its level is one more than any level inside the sum. So the same
# sum written twice is the same expression, and nested sums never share an index. A fresh Dummy for each sum would be as safe, but no two
# sums would be equal, and nothing could be computed once.
class BoundIndex(Symbol):  # type: ignore[misc]
    """The index of a reduction, identified by its printed name and its nesting level."""

    __slots__ = ("level",)
    level: int

    def __new__(cls, name: str, level: int) -> BoundIndex:
        symbol = Symbol.__xnew__(cls, name, integer=True, nonnegative=True)
        symbol.level = level
        return symbol

    def __getnewargs_ex__(self) -> tuple[tuple[str, int], dict[str, bool]]:
        return (self.name, self.level), {}

    def sort_key(self, order: Any = None) -> Any:
        return self.class_key(), (2, (self.name, self.level)), sp.S.One.sort_key(), sp.S.One

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*Symbol._hashable_content(self), self.level)

    def _sympyrepr(self, printer: Any) -> str:
        return f"BoundIndex({self.name!r}, {self.level})"


def canonical(e: Any, above: int = 0) -> Any:
    """e with a bound index in each of its sums and maxima, whose level is one more than those inside it and more than `above`.

    A Sum of sympy becomes a SumOver and an array of sympy one of ours, so that equal expressions are the same object tree.
    """
    e = sp.sympify(e)
    levels = _levels(e, {}) if above == 0 else None
    return e if levels is not None and not levels[1] else _Renumbering({}, 0, above)(e)


@readable
def at(e: Any, swap: Mapping[Any, Any]) -> Any:
    """e with symbols or array elements replaced, all at once: at(e, {i: k}) is e at index k.

    Parameters
    ----------
    e : expression
        Or a nested tuple, list or dict of them.
    swap : {symbol or element: expression}
        What is put where. An index that e sums over is never meant and never captured.

    Returns
    -------
    expression
        at(over(Sum, A[i, k], (k, M)), {i: k}) is the sum of row k of A.

    Examples
    --------
    >>> i, k = index("i k")
    >>> at(i + 2 * k, {i: k, k: i})
    2*i + k
    """
    new = {our_element(sp.sympify(old)): canonical(value) for old, value in swap.items()}
    highest = max((k.level for value in new.values() for k in value.atoms(BoundIndex)), default=0)
    return canonical(canonical(e, highest).xreplace(new))


def bind_indices(op: type, body: Any, limits: list[tuple[Any, Any, Any]]) -> Expr:
    """The reduction op of body over limits (k, low, high), with a bound index in place of every k."""
    e: Any = op.__new__(op, body, *limits)  # type: ignore[attr-defined]
    for k, _, _ in limits:
        _check_index(k)
    levels = _levels(e.function, {})
    if levels is None or levels[1] or any(bound.has(BoundIndex) for _, *bounds in e.limits for bound in bounds):
        return canonical(e)
    new = {k: BoundIndex(k.name, levels[0] + 1 + n) for n, (k, _, _) in enumerate(limits)}
    return e.func(e.function.xreplace(new), *_renamed(e.limits, new))


def _renamed(limits: Any, new: Mapping[Any, Any]) -> list[tuple[Any, Any, Any]]:
    """Limits, the innermost first, with new indices; the ends of each see those of the limits outside it, and no other."""
    renamed, outside = list[tuple[Any, Any, Any]](), dict[Any, Any]()
    for k, low, high in reversed(limits):
        renamed.insert(0, (new[k], low.xreplace(outside), high.xreplace(outside)))
        outside[k] = new[k]
    return renamed


_FACTS = BoundIndex("k", 1).assumptions0.items()


def _check_index(k: Symbol) -> None:
    """Raises SpecError where k assumes more than a summed index does, because sympy has rewritten the body by it."""
    more = sorted(k.assumptions0.items() - _FACTS)
    if more:
        extra = ", ".join(f"{fact}={value}" for fact, value in more if fact in k._assumptions_orig)
        raise SpecError(
            f"the symbol of index {k} assumes {extra}, but a summed index takes every whole number from 0: make it by index({k.name!r})"
        )


def _levels(e: Any, cache: dict[Any, Any]) -> tuple[int, frozenset[BoundIndex]] | None:
    """(highest level bound in e, bound indices that are free in e); None where e is not canonical. cache: {part of e: its result}."""
    if e not in cache:
        cache[e] = _levels_of(e, cache)
    return cache[e]  # type: ignore[no-any-return]


def _levels_of(e: Any, cache: dict[Any, Any]) -> tuple[int, frozenset[BoundIndex]] | None:
    if isinstance(e, BoundIndex):
        return 0, frozenset((e,))
    if isinstance(e, Indexed) and our_element(e) is not e:
        return None
    inside = e.args
    if isinstance(e, REDUCTIONS):
        inside = (e.function, *(bound for _, *bounds in e.limits for bound in bounds))
    elif isinstance(e, Indexed):
        inside = e.indices
    parts = [_levels(a, cache) for a in inside]
    if any(p is None for p in parts):
        return None
    highest = max((p[0] for p in parts if p), default=0)
    free = frozenset[BoundIndex]().union(*(p[1] for p in parts if p))
    if not isinstance(e, REDUCTIONS):
        return highest, free
    bound = [k for k, _, _ in e.limits]
    fits = all(isinstance(k, BoundIndex) and k.level == highest + 1 + n for n, k in enumerate(bound))
    if not fits or (isinstance(e, sp.Sum) and not isinstance(e, SumOver)):
        return None
    return highest + len(bound), free - {*bound}


class _Renumbering:
    """A function that gives an expression canonical bound indices.

    holes: {index of an outer sum: placeholder until its level is known}. depth: number of outer sums. above: levels already in use.
    """

    def __init__(self, holes: dict[Symbol, Symbol], depth: int, above: int):
        self.holes, self.depth, self.above = holes, depth, above
        self._cache: dict[Any, Any] = {}

    def __call__(self, e: Any) -> Any:
        if e not in self._cache:
            self._cache[e] = self._rebuild(e)
        return self._cache[e]

    def _rebuild(self, e: Any) -> Any:
        if isinstance(e, REDUCTIONS):
            return self._reduction(e)
        if isinstance(e, Symbol):
            return self.holes.get(e, e)
        if isinstance(e, Indexed):
            e = our_element(e)
            indices = tuple(map(self, e.indices))
            return e if indices == e.indices else e.base[indices]
        args = tuple(map(self, e.args))
        return e if args == e.args else e.func(*args)

    def _reduction(self, e: Any) -> Any:
        for k, _, _ in e.limits:
            _check_index(k)
        holes = {k: BoundIndex(k.name, -1 - self.depth - n) for n, (k, _, _) in enumerate(e.limits)}
        inner = _Renumbering({**self.holes, **holes}, self.depth + len(holes), self.above)
        body = inner(e.function)
        first = 1 + max((self.above, *(k.level for k in body.atoms(BoundIndex))))
        new = {hole: BoundIndex(hole.name, first + n) for n, hole in enumerate(holes.values())}
        cls = SumOver if isinstance(e, sp.Sum) else type(e)
        limits = [(new[k], self(low).xreplace(new), self(high).xreplace(new)) for k, low, high in _renamed(e.limits, holes)]
        return cls(body.xreplace(new), *limits)


def subexpressions(expressions: Iterable[Any], *kinds: type) -> set[Any]:
    """All subexpressions of these kinds; an expression is a subexpression of itself."""
    left: list[Any] = [sp.sympify(e) for e in expressions]
    seen = set(left)
    while left:
        new = {a for a in left.pop().args if isinstance(a, sp.Basic)} - seen
        seen |= new
        left += new
    return {e for e in seen if isinstance(e, kinds)}


@readable
def over(op: type, body: Any, *axes: tuple[Symbol, Any]) -> Expr:
    """Sum, MaxOver or Shift from 0: over(Sum, f, (k, M)) is sum_{k=0}^{M-1} f, and over(Sum, f, (k, i + 1)) goes up to the index i.

    Parameters
    ----------
    op : Sum, MaxOver or Shift
        What is done.
    body : expression
        Of what.
    *axes : (index, extent)
        Its k is a symbol of its own that prints as k: nothing that is put into the sum later can mean it (see at()).

    Returns
    -------
    expression
        Nothing is summed before a run.

    Examples
    --------
    >>> x, (k,), (M,) = IndexedBase("x", shape=sizes("M")), index("k"), sizes("M")
    >>> over(Sum, x[k] ** 2, (k, M))
    Sum(x[k]**2, (k, 0, M - 1))
    """
    if not (isinstance(op, type) and issubclass(op, Sum | MaxOver)):
        raise SpecError(f"over({value_text(getattr(op, '__name__', op))}, ...): the first argument is Sum or MaxOver")
    body, limits = argument_expression("over()", body), []
    for axis in axes:
        k, n = axis if isinstance(axis, tuple) and len(axis) == 2 else (None, None)
        if not isinstance(k, Symbol) or isinstance(n, bool) or not isinstance(n, Expr | Integral):
            raise SpecError(
                f"over({op.__name__}, {value_text(body)}, ...): write each axis as (index, extent), such as (k, M), not {value_text(axis)}"
            )
        limits.append((k, 0, n - 1))
    if twice := [k.name for k, _, _ in limits if [j.name for j, _, _ in limits].count(k.name) > 1]:
        raise SpecError(f"over({op.__name__}, {body}, ...): index {twice[0]} is there twice")
    if not limits:
        places = (pair for x in sorted(body.atoms(Indexed), key=str) for pair in zip(x.indices, x.base.shape or (), strict=False))
        k, n = next((pair for pair in places if is_index(pair[0])), ("k", "M"))
        raise SpecError(f"over({op.__name__}, {body}): name each index with its extent: over({op.__name__}, {body}, ({k}, {n}))")
    return bind_indices(op if issubclass(op, MaxOver) else SumOver, body, limits)


def free_indices(e: Any, declared: set[Symbol]) -> set[Symbol]:
    """The declared indices of e that no reduction inside it binds."""
    if isinstance(e, REDUCTIONS):
        bound = {lim[0] for lim in e.limits}
        inside = free_indices(e.function, declared | bound) & declared
        return inside.union(*(free_indices(end, declared) for _, *ends in e.limits for end in ends)) - bound
    if isinstance(e, Symbol):
        return {e} & declared
    indices: set[Symbol] = set()
    for a in e.args:
        indices |= free_indices(a, declared)
    return indices


# Generated code has `and` and `or` only. Conditions on places are hidden from sympy meanwhile: to_nnf() negates comparisons, and knows no
# other condition.
NOT_PLAIN = sp.Not | sp.ITE | sp.Xor | sp.Implies | sp.Equivalent


def plain_condition(e: Any) -> Any:
    """e without `not`, `xor` and choices between conditions.

    not (a > b or c > d)  ->  a <= b and c <= d        (a if c else b)  ->  (c and a) or (not c and b)
    """
    holes = {c: sp.Dummy(f"condition{n}") for n, c in enumerate(sorted(e.atoms(Inside, UpTo), key=str))}
    plain = sp.to_nnf(e.xreplace(holes))
    conditions = {sp.Not(hole): opposite(c) for c, hole in holes.items()} | {hole: c for c, hole in holes.items()}
    return plain.xreplace(conditions)


def opposite(c: Any) -> Any:
    """The condition that holds where c, a condition on places, does not."""
    if isinstance(c, UpTo):
        a, b, shift = c.args
        return UpTo(b, a, -shift - 1)
    i, shift, n = c.args
    return UpTo(i, 0, -shift - 1) if shift.is_negative else UpTo(n, i, shift)


def plain_cases(e: sp.Piecewise) -> sp.Piecewise:
    """A Piecewise with plain conditions: sympy makes choices of those that compare a Piecewise, such as a neighbour that may be 0.

    a if (x if c else 0) > b else d  ->  a if (c and x > b) or (not c and 0 > b) else d
    """
    if not e.has(sp.ITE):
        return e
    return e.func(*((value, plain_condition(c) if c.has(sp.ITE) else c) for value, c in e.args))
