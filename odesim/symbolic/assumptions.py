"""Assumptions of symbols, such as positive=True: sympy rewrites by them, so every value of a System has to satisfy them.

Symbol("g", positive=True): sqrt(g**2) becomes g, Abs(g) becomes g, and g > 0 becomes true, before odesim sees the expression.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import sympy as sp
from sympy import IndexedBase, Symbol

from odesim.base.errors import SpecError
from odesim.symbolic.definition import Definition, all_expressions
from odesim.symbolic.indices import base_name, time
from odesim.symbolic.parts import HALF_LINES, domain_text
from odesim.symbolic.reductions import subexpressions

# Only what a domain guarantees is allowed: the model would be another one at a value outside, without a word. A state is different, as its
# values are not known before a run: there a half-line is watched by an event (odesim.transforms.events).

OPPOSITE = {"positive": "nonpositive", "negative": "nonnegative", "nonnegative": "negative", "nonpositive": "positive"}
NEGATION = {"zero": "nonzero", "integer": "noninteger", "rational": "irrational", "even": "odd"}
"""{fact: the fact that holds of a real number where the first does not}; for even, of an integer."""
REAL = frozenset((
    *((fact, True) for fact in ("commutative", "complex", "extended_real", "finite", "hermitian", "real")),
    *((fact, False) for fact in ("antihermitian", "imaginary", "infinite", "polar")),
))  # fmt: skip
"""Facts that hold for every real number."""
ORDER = (*HALF_LINES, "nonzero", "zero", "prime", "composite", "even", "odd", "integer", "noninteger", "rational", "irrational")


def check_assumptions(s: "Definition") -> None:
    """Raises SpecError where a symbol of s assumes more than its domain guarantees, or a state what no solution keeps."""
    domains: dict[str, tuple[str, Any]] = {p.name: (f"parameter {p.name}", p.domain) for p in s.params}
    for p in s.params:
        if p.indexes is not None:
            domains[p.name] = (f"index parameter {p.name}", sp.Intersection(p.domain, sp.S.Naturals0, evaluate=False))
    domains |= {name: (f"size {name}", sp.S.Naturals) for name in s.size_names}
    states = assumed_intervals(s)
    for key, start in s.initial.items():
        interval = states[base_name(key)]
        if interval is not None and start.is_number and interval.contains(start) is not sp.true:
            raise SpecError(f"{s.name}: {key} starts at {start}, outside {set_text(interval)}, which its symbol assumes")
    for symbol in _symbols(s):
        name = base_name(symbol)
        if name in states or symbol == time:
            continue
        what, domain = domains.get(name, (f"index {name}", sp.S.Naturals0))
        for fact, value in facts(symbol):
            if not holds(domain, fact, value):
                hint = ", or declare a smaller domain" if any(p.name == name for p in s.params) else ""
                raise SpecError(
                    f"{s.name}: the symbol of {what} assumes {fact}={value}, but its domain {set_text(domain)} holds other values, "
                    f"and sympy has rewritten the expressions by it: write the symbol without it{hint}"
                )


def assumed_intervals(s: "Definition") -> "dict[str, sp.Interval | None]":
    """{state: the interval that its symbols assume}, None where they assume nothing.

    Raises SpecError for an assumption that no solution of a differential equation keeps, such as integer.
    """
    intervals: dict[str, sp.Interval | None] = dict.fromkeys(s.states)
    for symbol in _symbols(s):
        name = base_name(symbol)
        if name in intervals:
            new, old = _interval(s, symbol), intervals[name]
            both = new if old is None else old if new is None else sp.Intersection(old, new)
            if both is not None and not isinstance(both, sp.Interval):
                raise SpecError(f"{s.name}: state {name} is written by symbols whose assumptions leave it no interval: {both}")
            intervals[name] = both
    return intervals


def _interval(s: "Definition", symbol: Any) -> "sp.Interval | None":
    """The interval that one symbol of a state assumes; None for all real numbers."""
    assumptions = facts(symbol)
    lines = [HALF_LINES[fact if value else OPPOSITE[fact]] for fact, value in assumptions if fact in HALF_LINES]
    interval = sp.Intersection(sp.S.Reals, *lines)
    for fact, value in assumptions:
        if not isinstance(interval, sp.Interval) or not holds(interval, fact, value):
            raise SpecError(
                f"{s.name}: the symbol of state {base_name(symbol)} assumes {fact}={value}, which a solution of a differential equation "
                "does not keep; write it without, or with real, positive, negative, nonnegative or nonpositive"
            )
    return interval if lines else None


@lru_cache(maxsize=4096)
def facts(symbol: Any) -> tuple[tuple[str, bool], ...]:
    """Assumptions of a Symbol or IndexedBase beyond those of every real number, strongest first: (("positive", True), ...)."""
    assumptions = {(fact.removeprefix("extended_") if fact != "extended_real" else fact, v) for fact, v in symbol.assumptions0.items()}
    special = {(fact, bool(value)) for fact, value in assumptions if value is not None} - REAL
    rank = {fact: n for n, fact in enumerate(ORDER)}
    return tuple(sorted(special, key=lambda f: (not f[1], rank.get(f[0], len(rank)), f[0])))


@lru_cache(maxsize=4096)
def holds(domain: Any, fact: str, value: bool = True) -> bool:
    """Whether the fact is known to be value for every real number of the domain, a sympy Set."""
    if isinstance(domain, sp.Union):
        return all(holds(part, fact, value) for part in domain.args)
    if isinstance(domain, sp.Intersection):
        return any(holds(part, fact, value) for part in domain.args)
    if isinstance(domain, sp.FiniteSet):
        return all(getattr(sp.nsimplify(x, rational=True), f"is_{fact}", None) is value for x in domain)
    if not value:
        return _excludes(domain, fact)
    if fact in HALF_LINES:
        return bool(domain.is_subset(HALF_LINES[fact]))
    if fact == "nonzero":
        return domain.contains(0) is sp.false and domain not in (sp.S.UniversalSet, sp.S.Complexes)
    if fact in ("even", "odd"):
        return isinstance(domain, sp.Range) and domain.step % 2 == 0 and _end(domain) % 2 == (fact == "odd")
    if fact == "integer":
        return bool(domain.is_subset(sp.S.Integers))
    if fact in ("rational", "algebraic"):
        return bool(domain.is_subset(sp.S.Rationals))
    if fact == "noninteger":
        return sp.Intersection(domain, sp.S.Integers) is sp.S.EmptySet
    return (fact, True) in REAL


def _excludes(domain: Any, fact: str) -> bool:
    """Whether the fact is false for every real number of the domain."""
    if fact in HALF_LINES:
        return holds(domain, OPPOSITE[fact])
    if fact in ("even", "odd", "prime", "composite") and holds(domain, "noninteger"):
        return True
    if fact in NEGATION:
        return holds(domain, NEGATION[fact]) and (fact != "even" or holds(domain, "integer"))
    if fact in NEGATION.values():
        return holds(domain, next(a for a, b in NEGATION.items() if b == fact)) and (fact != "odd" or holds(domain, "integer"))
    if fact in ("prime", "composite"):
        return bool(domain.is_subset(sp.Interval.open(-sp.oo, 2)))
    return (fact, False) in REAL or (fact == "transcendental" and holds(domain, "algebraic"))


def _end(domain: Any) -> Any:
    return domain.start if domain.start.is_finite else domain.stop if domain.stop.is_finite else sp.S.Zero


def _symbols(s: "Definition") -> Iterator[Any]:
    """Every Symbol and IndexedBase in s, each once, in a fixed order."""
    written = (*all_expressions(s), *(p.symbol for p in s.params), *(d for p in s.params for d in p.shape))
    symbols = subexpressions(written, Symbol, IndexedBase)
    return iter(sorted(symbols, key=lambda x: (base_name(x), str(sorted(facts(x))))))


def set_text(domain: Any) -> str:
    """A set of numbers as text, such as (0, inf)."""
    names = {sp.S.Reals: "(-inf, inf)", sp.S.Naturals: "1, 2, ...", sp.S.Naturals0: "0, 1, ...", sp.S.Integers: "all whole numbers"}
    if isinstance(domain, sp.Intersection):
        return " and ".join(map(set_text, domain.args))
    if isinstance(domain, sp.Interval):
        return domain_text(domain)
    return names.get(domain, str(domain))
