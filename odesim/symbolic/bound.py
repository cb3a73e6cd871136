"""Bound indices: each sum has an index symbol of its own, so that a substitution into the sum cannot capture it.

over(Sum, A[i, k]*x[k], (k, M)) holds k as BoundIndex("k", 1), which prints as k and is not the k of the model file. Its level is one
more than any level inside the sum. So the same sum written twice is the same expression, and nested sums never share an index.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, Symbol

from odesim.base.errors import SpecError
from odesim.base.parsing import readable
from odesim.symbolic.elements import our_element
from odesim.symbolic.reductions import REDUCTIONS, SumOver


class BoundIndex(Symbol):  # type: ignore[misc]
    """The index of a reduction, identified by its printed name and its nesting level."""

    __slots__ = ("level",)
    level: int

    def __new__(cls, name: str, level: int) -> BoundIndex:
        symbol = Symbol.__xnew__(cls, name, integer=True, nonnegative=True)
        symbol.level = level
        return symbol  # type: ignore[no-any-return]

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

    An index that e sums over is never meant and never captured: at(over(Sum, A[i, k], (k, M)), {i: k}) is the sum of row k of A.
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
        return canonical(e)  # type: ignore[no-any-return]
    new = {k: BoundIndex(k.name, levels[0] + 1 + n) for n, (k, _, _) in enumerate(limits)}
    return e.func(e.function.xreplace(new), *_renamed(e.limits, new))  # type: ignore[no-any-return]


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


Levels = tuple[int, frozenset[BoundIndex]]


def _levels(e: Any, cache: dict[Any, Levels | None]) -> Levels | None:
    """(highest level bound in e, bound indices that are free in e); None where e is not canonical. cache: {part of e: its result}."""
    if e not in cache:
        cache[e] = _levels_of(e, cache)
    return cache[e]


def _levels_of(e: Any, cache: dict[Any, Levels | None]) -> Levels | None:
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
        inside = max((k.level for k in body.atoms(BoundIndex)), default=0)
        first = max(inside, self.above) + 1
        new = {hole: BoundIndex(hole.name, first + n) for n, hole in enumerate(holes.values())}
        cls = SumOver if isinstance(e, sp.Sum) else type(e)
        limits = [(new[k], self(low).xreplace(new), self(high).xreplace(new)) for k, low, high in _renamed(e.limits, holes)]
        return cls(body.xreplace(new), *limits)
