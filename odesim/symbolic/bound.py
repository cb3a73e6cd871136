"""Bound indices: the index of a sum is a symbol of its own, so that nothing put into the sum can mean it.

over(Sum, A[i, k]*x[k], (k, M)) holds k as BoundIndex("k", 1), which prints as k and is not the k of the model file. Its level is one
more than any level inside the sum: the same sum written twice is the same expression, and nested sums never share an index.
"""

from collections.abc import Mapping
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, Symbol

from odesim.errors import SpecError
from odesim.symbolic.elements import own_element
from odesim.symbolic.reductions import REDUCTIONS, SumOver


class BoundIndex(Symbol):  # type: ignore[misc]
    """The index of a reduction: a name to show and a level, which together say which one it is."""

    __slots__ = ("level",)
    level: int

    def __new__(cls, name: str, level: int) -> "BoundIndex":
        made = Symbol.__xnew__(cls, name, integer=True, nonnegative=True)
        made.level = level
        return made  # type: ignore[no-any-return]

    def __getnewargs_ex__(self) -> tuple[tuple[str, int], dict[str, bool]]:
        return (self.name, self.level), {}

    def sort_key(self, order: Any = None) -> Any:
        return self.class_key(), (2, (self.name, self.level)), sp.S.One.sort_key(), sp.S.One

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*Symbol._hashable_content(self), self.level)

    def _sympyrepr(self, printer: Any) -> str:
        return f"BoundIndex({self.name!r}, {self.level})"


def canonical(e: Any, above: int = 0) -> Any:
    """e with bound indices in all its sums and maxima, of levels beyond `above`, each one more than those inside it.

    Sums of sympy's own become SumOver, and arrays of sympy's own ours: an expression means the same however it was written.
    """
    e = sp.sympify(e)
    found = _levels(e, {}) if above == 0 else None
    return e if found is not None and not found[1] else _Scope({}, 0, above)(e)


def at(e: Any, swap: Mapping[Any, Any]) -> Any:
    """e with symbols or array elements replaced, all at once: at(e, {i: k}) is e at index k.

    An index that e sums over is never meant and never captured: at(over(Sum, A[i, k], (k, M)), {i: k}) is the sum of row k of A.
    """
    new = {own_element(sp.sympify(old)): canonical(value) for old, value in swap.items()}
    highest = max((k.level for value in new.values() for k in value.atoms(BoundIndex)), default=0)
    return canonical(canonical(e, highest).xreplace(new))


def bound_to(op: type, body: Any, limits: list[tuple[Any, Any, Any]]) -> Expr:
    """op over limits (k, low, high) of body, with bound indices in the place of every k."""
    e: Any = op.__new__(op, body, *limits)  # type: ignore[attr-defined]
    for k, _, _ in limits:
        _check_index(k)
    found = _levels(e.function, {})
    if found is None or found[1]:
        return canonical(e)  # type: ignore[no-any-return]
    new = {k: BoundIndex(k.name, found[0] + 1 + n) for n, (k, _, _) in enumerate(limits)}
    return e.func(e.function.xreplace(new), *((new[k], low, high) for k, low, high in limits))  # type: ignore[no-any-return]


_FACTS = BoundIndex("k", 1).assumptions0.items()


def _check_index(k: Symbol) -> None:
    """Raises SpecError where sympy has rewritten what is summed by more than k is."""
    more = sorted(k.assumptions0.items() - _FACTS)
    if more:
        extra = ", ".join(f"{fact}={value}" for fact, value in more if fact in k._assumptions_orig)
        raise SpecError(
            f"the symbol of index {k} assumes {extra}, but a summed index takes every whole number from 0: make it by index({k.name!r})"
        )


Levels = tuple[int, frozenset[BoundIndex]]


def _levels(e: Any, known: dict[Any, Levels | None]) -> Levels | None:
    """(the highest level bound in e, the bound indices that e leaves free); None where e is not canonical. known: of parts."""
    if e not in known:
        known[e] = _levels_of(e, known)
    return known[e]


def _levels_of(e: Any, known: dict[Any, Levels | None]) -> Levels | None:
    if isinstance(e, BoundIndex):
        return 0, frozenset((e,))
    if isinstance(e, Indexed) and own_element(e) is not e:
        return None
    parts = [_levels(a, known) for a in (e.args[:1] if isinstance(e, REDUCTIONS) else e.indices if isinstance(e, Indexed) else e.args)]
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


class _Scope:
    """Rebuilds expressions inside the sums that bind `holes`: index as written -> what stands for it until its level is known."""

    def __init__(self, holes: dict[Symbol, Symbol], depth: int, above: int):
        self.holes, self.depth, self.above = holes, depth, above
        self._known: dict[Any, Any] = {}

    def __call__(self, e: Any) -> Any:
        if e not in self._known:
            self._known[e] = self._rebuilt(e)
        return self._known[e]

    def _rebuilt(self, e: Any) -> Any:
        if isinstance(e, REDUCTIONS):
            return self._bound(e)
        if isinstance(e, Symbol):
            return self.holes.get(e, e)
        if isinstance(e, Indexed):
            e = own_element(e)
            indices = tuple(map(self, e.indices))
            return e if indices == e.indices else e.base[indices]
        args = tuple(map(self, e.args))
        return e if args == e.args else e.func(*args)

    def _bound(self, e: Any) -> Any:
        for k, _, _ in e.limits:
            _check_index(k)
        holes = {k: BoundIndex(k.name, -1 - self.depth - n) for n, (k, _, _) in enumerate(e.limits)}
        body = _Scope({**self.holes, **holes}, self.depth + len(holes), self.above)(e.function)
        inside = max((k.level for k in body.atoms(BoundIndex)), default=0)
        first = max(inside, self.above) + 1
        new = {hole: BoundIndex(hole.name, first + n) for n, hole in enumerate(holes.values())}
        cls = SumOver if isinstance(e, sp.Sum) else type(e)
        limits = [(new[holes[k]], self(low), self(high)) for k, low, high in e.limits]
        return cls(body.xreplace(new), *limits)
