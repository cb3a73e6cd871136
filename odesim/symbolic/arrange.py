"""Formulas in the order in which people write them, and with a different name for each index."""

from itertools import count
from typing import Any

import sympy as sp
from sympy import Indexed, Symbol

from odesim.display.naming import BINDING, Entropy, LogSumExp, SoftmaxAt
from odesim.symbolic.reductions import unevaluated


def readable(e: Any, constants: frozenset[str] = frozenset()) -> Any:
    """e in the form to print, with sympy's own sums; print it with order="none". constants: names that stand first in a product.

    sum_j(log(sum_j(f[j])) - f[j])  ->  sum_j(log(sum_j'(f[j'])) - f[j])        -K + M  ->  M - K        sum_j(-f[j])  ->  -sum_j(f[j])
    """
    free = {s.name for s in e.free_symbols if isinstance(s, Symbol) and s.is_integer}
    return _arranged(_signed(_primed(e, frozenset(free))), constants)


def _primed(e: Any, taken: frozenset[str]) -> Any:
    """e with a name for each bound index that nothing around it has."""
    if isinstance(e, BINDING):
        body, limits, swap = e.function, [], dict[Any, Any]()
        for k, low, high in e.limits:
            j = Symbol(next(name for name in (k.name + "'" * n for n in count()) if name not in taken), integer=True, nonnegative=True)
            body, taken, swap = body.xreplace({k: j}), taken | {j.name}, {**swap, k: j}
            limits.append((j, low, high))
        limits = [(j, low.xreplace(swap), high.xreplace(swap)) for j, low, high in limits]
        return unevaluated(sp.Sum if isinstance(e, sp.Sum) else type(e), _primed(body, taken), limits)
    return e.func(*(_primed(a, taken) for a in e.args)) if e.args and not isinstance(e, Indexed) else e


def _signed(e: Any) -> Any:
    """e with minus signs before its sums, not behind them, where they would stand beside other signs.

    -sum_j(-f[j]) - sum_j(g[j])  ->  sum_j(f[j]) - sum_j(g[j])
    """
    if isinstance(e, Indexed) or not e.has(sp.Sum):
        return e
    if isinstance(e, BINDING):
        body = _signed(e.function)
        if isinstance(e, sp.Sum) and body.is_Mul and body.as_coeff_Mul()[0].is_negative:
            return -unevaluated(sp.Sum, -body, e.limits)
        return unevaluated(sp.Sum if isinstance(e, sp.Sum) else type(e), body, e.limits)
    parts = [_signed(a) for a in e.args]
    return e if all(a is b for a, b in zip(parts, e.args, strict=True)) else e.func(*parts)


def _arranged(e: Any, constants: frozenset[str]) -> Any:
    """e with its terms and factors in order, unevaluated."""
    if not e.args or isinstance(e, Indexed):
        return e
    if isinstance(e, BINDING):
        limits = [(k, _arranged(low, constants), _arranged(high, constants)) for k, low, high in e.limits]
        return unevaluated(type(e), _arranged(e.function, constants), limits)
    if e.is_Add:
        parts = sorted(e.as_ordered_terms(), key=lambda a: a.could_extract_minus_sign())
        if not all(a.as_coeff_Mul()[1].is_Symbol or a.is_Number for a in parts):  # 1 + exp(u), but K + 1
            parts.sort(key=lambda a: not (a.is_Number and a > 0))
        return sp.Add(*(_arranged(a, constants) for a in parts), evaluate=False)
    if e.is_Mul:
        number, rest = e.as_coeff_Mul()
        parts = sorted(rest.as_ordered_factors(), key=lambda a: _rank(a, constants))
        return sp.Mul(*([] if number == 1 else [number]), *(_arranged(a, constants) for a in parts), evaluate=False)
    if isinstance(e, sp.Eq) and _side(e.rhs) < _side(e.lhs):
        return sp.Eq(e.rhs, e.lhs, evaluate=False)
    parts = [_arranged(a, constants) for a in e.args]
    return e.func(*parts, evaluate=False) if isinstance(e, sp.Pow | sp.exp | sp.log | sp.Piecewise) else e.func(*parts)


def _side(e: Any) -> int:
    """The place in an equality: an index stands left of a size, both left of arrays' elements, numbers on the right."""
    if isinstance(e, Symbol) and e.is_integer:
        return int(bool(e.is_positive))
    return 3 if e.is_number else 2


def _rank(e: Any, constants: frozenset[str]) -> int:
    """The place of a factor: numbers, constants, arrays, brackets, functions, sums."""
    base = e.base if e.is_Pow and not isinstance(e, sp.exp) else e
    if base.is_Number:
        return 0
    if isinstance(base, sp.KroneckerDelta):
        return 1
    if isinstance(base, Symbol):
        return 2 if base.name in constants else 4
    if isinstance(base, Indexed):
        return 3 if str(base.base.label) in constants else 4
    if isinstance(base, sp.Sum | LogSumExp | Entropy):
        return 8
    return 5 if base.is_Add else 6 if isinstance(base, SoftmaxAt) else 7
