"""Domains of parameters: sympy sets as numpy tests and as text."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from odesim.base.errors import SpecError

if TYPE_CHECKING:
    from odesim.base.arrays import Array

Outside = Callable[[Any], Any]
"""A test: numbers of any shape -> bools of that shape, True where a number lies outside."""


@dataclass(frozen=True)
class Domain:
    """A set of numbers. outside: None where every finite number lies inside. text: "[0, 1]", "the whole numbers from 1"."""

    text: str
    outside: Outside | None


def compile_domain(domain: Any) -> Domain:
    """The Domain of a sympy Set of real numbers. Raises SpecError where the set depends on symbols."""
    if domain.free_symbols:
        raise SpecError(f"domain {domain} depends on {sorted(map(str, domain.free_symbols))[0]}; write that as a Constraint")
    return Domain(_domain_text(domain), _outside(domain))


def _outside(domain: Any) -> Outside | None:
    import sympy as sp

    if domain in (sp.S.Reals, sp.S.UniversalSet, sp.S.Complexes):
        return None
    if isinstance(domain, sp.Interval):
        return _outside_interval(domain)
    if isinstance(domain, sp.Union | sp.Intersection):
        parts = [_outside(d) for d in domain.args]
        if isinstance(domain, sp.Union):
            return None if None in parts else _all_of([p for p in parts if p])
        tests = [p for p in parts if p]
        return _any_of(tests) if tests else None
    if isinstance(domain, sp.Range) and domain.size != 0:
        return _outside_range(domain)
    if domain in (sp.S.Integers, sp.S.Naturals, sp.S.Naturals0):
        lowest = {sp.S.Naturals: 1, sp.S.Naturals0: 0}.get(domain)
        return _any_of([_fractional, *([_below(lowest)] if lowest is not None else [])])
    if isinstance(domain, sp.FiniteSet) and all(x.is_number for x in domain):
        return _outside_list([float(x) for x in domain])
    return _outside_any(domain)


def _outside_interval(domain: Any) -> Outside | None:
    low, high = float(domain.start), float(domain.end)
    parts: list[Outside] = []
    if low > -float("inf"):
        parts.append((lambda x: x <= low) if domain.left_open else _below(low))
    if high < float("inf"):
        parts.append((lambda x: x >= high) if domain.right_open else (lambda x: x > high))
    return _any_of(parts) if parts else None


def _outside_range(domain: Any) -> Outside:
    low, high, step = float(domain.inf), float(domain.sup), abs(int(domain.step))
    anchor = int(domain.start) if domain.start.is_finite else int(domain.stop) if domain.stop.is_finite else 0
    parts: list[Outside] = [_fractional, lambda x: (x < low) | (x > high)]
    return _any_of([*parts, lambda x: (x - anchor) % step != 0] if step > 1 else parts)


def _outside_list(allowed: list[float]) -> Outside:
    def outside(x: Any) -> "Array":
        import numpy as np

        return ~np.isin(x, allowed)

    return outside


def _outside_any(domain: Any) -> Outside:
    """A slow test, for sets without a test of their own: sympy decides about each different number."""

    def outside(x: Any) -> "Array":
        import numpy as np
        import sympy as sp

        different, where = np.unique(x, return_inverse=True)
        bad = [domain.contains(sp.Rational(float(v))) is not sp.true for v in different]
        return np.array(bad)[where].reshape(np.shape(x))

    return outside


def _fractional(x: Any) -> Any:
    return x % 1 != 0


def _below(low: float) -> Outside:
    return lambda x: x < low


def _any_of(tests: list[Outside]) -> Outside:
    def outside(x: Any) -> Any:
        bad = tests[0](x)
        for test in tests[1:]:
            bad = bad | test(x)
        return bad

    return outside


def _all_of(tests: list[Outside]) -> Outside:
    def outside(x: Any) -> Any:
        bad = tests[0](x)
        for test in tests[1:]:
            bad = bad & test(x)
        return bad

    return outside


def _domain_text(domain: Any) -> str:
    import sympy as sp

    if domain in (sp.S.Integers, sp.S.Naturals, sp.S.Naturals0):
        return {sp.S.Integers: "the whole numbers", sp.S.Naturals: "the whole numbers from 1"}.get(domain, "the whole numbers from 0")
    if isinstance(domain, sp.Interval):
        left, right = "(" if domain.left_open else "[", ")" if domain.right_open else "]"
        return f"{left}{_number_text(domain.start)}, {_number_text(domain.end)}{right}"
    if isinstance(domain, sp.Range) and domain.size != 0 and abs(domain.step) == 1:
        if domain.sup.is_finite:
            return f"the whole numbers up to {domain.sup}" if domain.inf.is_infinite else f"the whole numbers {domain.inf} to {domain.sup}"
        return f"the whole numbers from {domain.inf}" if domain.inf.is_finite else "the whole numbers"
    if isinstance(domain, sp.Union):
        return " or ".join(map(_domain_text, domain.args))
    return str(domain)


def _number_text(x: Any) -> str:
    return str(x).replace("oo", "inf")
