"""The named parts of formulas that people read: softmax, logsumexp and entropy, each as one node."""

from typing import Any

import sympy as sp
from sympy import Expr, Symbol
from sympy.concrete.expr_with_limits import ExprWithLimits

from odesim.display.naming import factors, product
from odesim.symbolic.functions import Share, Weighted, XLogY
from odesim.symbolic.reductions import REDUCTIONS, Shift, triangle, unevaluated


class SoftmaxAt(sp.Function):  # type: ignore[misc]
    """One component of a softmax: SoftmaxAt(f_l, w_l, l) is w_l exp(f_l) / sum_l w_l exp(f_l)."""

    nargs = 3

    def written(self, extent: Expr) -> Expr:
        """The quotient that it stands for."""
        f, w, i = self.args
        k = sp.Dummy(i.name, integer=True)
        return w * sp.exp(f) / unevaluated(sp.Sum, (w * sp.exp(f)).xreplace({i: k}), [(k, 0, extent - 1)])


class LogSumExp(ExprWithLimits):  # type: ignore[misc]
    """The logarithm of sum_l w_l exp(f_l): LogSumExp((f, w), (l, 0, M - 1))."""

    def written(self) -> Expr:
        """The logarithm that it stands for."""
        f, w = self.function
        return sp.log(unevaluated(sp.Sum, w * sp.exp(f), self.limits))


class Entropy(ExprWithLimits):  # type: ignore[misc]
    """The entropy -sum_l p_l log(p_l): Entropy(p, (l, 0, M - 1))."""

    def written(self) -> Expr:
        """The sum that it stands for."""
        return -unevaluated(sp.Sum, self.function * sp.log(self.function), self.limits)


BINDING = (*REDUCTIONS, LogSumExp, Entropy)
"""Nodes that bind indices."""


def plain(e: Any) -> Any:
    """e without what protects numbers: shifts become 0, weighted terms products; an entropy becomes one node.

    A divisor x + 1 - sign(x), which is x wherever x > 0, becomes x. Bound indices stay as they are, so that equal parts of two
    expressions stay equal.
    """
    if isinstance(e, Shift):
        return sp.S.Zero
    if isinstance(e, REDUCTIONS):
        limits = [tuple(map(plain, lim)) for lim in e.limits]
        if isinstance(e, sp.Sum) and isinstance(e.function, XLogY) and e.function.args[0] == e.function.args[1]:
            return -unevaluated(Entropy, plain(e.function.args[0]), limits)
        return unevaluated(type(e), plain(e.function), limits)
    parts = e.func(*map(plain, e.args)) if e.args and not isinstance(e, sp.Indexed) else e
    if isinstance(parts, sp.Piecewise):
        return without_branches(parts)
    if isinstance(parts, sp.Pow) and parts.exp.is_negative:
        return sp.Pow(without_guard(parts.base), parts.exp)
    return parts.readable() if isinstance(parts, Weighted | XLogY | Share) else parts


def without_guard(e: Expr) -> Expr:
    """x of x + 1 - sign(x), a divisor that is not 0 where x is; every other expression as it is."""
    signs = [-term for term in sp.Add.make_args(e) if isinstance(-term, sp.sign)]
    guarded = [s.args[0] for s in signs if e == s.args[0] + 1 - s]
    return guarded[0] if guarded else e


def without_branches(e: Any) -> Any:
    """A choice without the choices by the same conditions inside it; exponentials that all cases share stand before it.

    (a*exp((x if c, else 0)) if c, else exp((0 if c, else x)))  ->  exp(x)*(a if c, else 1)
    """
    conditions = [c for _, c in e.args]
    tables = []
    for n, (value, _) in enumerate(e.args):
        inner = {a: a.args[n][0] for a in value.atoms(sp.Piecewise) if [c for _, c in a.args] == conditions}
        tables.append(factors(value.xreplace(inner)))
    shared = {b: p for b, p in tables[0].items() if isinstance(b, sp.exp) and all(t.get(b) == p for t in tables)}
    rest = [sp.Mul(*product({b: p for b, p in t.items() if b not in shared})) for t in tables]
    return sp.Mul(*product(shared), sp.Piecewise(*zip(rest, conditions, strict=True)))


def exponential_terms(e: Any) -> tuple[Expr, Expr] | None:
    """(f, w) of a sum of w*exp(f); None for another expression."""
    if not isinstance(e, sp.Sum) or len(e.limits) != 1:
        return None
    table = factors(e.function)
    exponents = {b: p for b, p in table.items() if isinstance(b, sp.exp)}
    if not any(b.has(e.limits[0][0]) for b in exponents):
        return None
    weight = sp.Mul(*product({b: p for b, p in table.items() if b not in exponents}))
    return sp.Add(*(p * b.args[0] for b, p in exponents.items())), weight


def log_of_sum(e: Any) -> Any:
    """log(sum_l w exp(f)) as one node; every other expression as it is."""
    parts = exponential_terms(e.args[0]) if isinstance(e, sp.log) else None
    return e if parts is None else unevaluated(LogSumExp, sp.Tuple(*parts), e.args[0].limits)


def softmax_in(table: dict[Expr, Expr], indices: dict[Symbol, Any]) -> tuple[SoftmaxAt, dict[Expr, Expr]] | None:
    """(softmax, the factors beside it) of a product {base: power} that has one; None else. indices: {index in scope: extent}.

    A weight that the product lacks is divided by, if it is a power of a positive number.
    """
    for total in [b for b, p in table.items() if p <= -1]:
        parts = exponential_terms(total)
        if parts is None:
            continue
        k, low, high = total.limits[0]
        if triangle(low, high) is not None:
            continue
        for i in [i for i, extent in indices.items() if sp.expand(high + 1 - extent) == 0]:
            f, w = (part.xreplace({k: i}) for part in parts)
            rest = dict(table)
            rest[total] += 1
            for b, p in factors(sp.exp(f)).items():
                rest[b] = rest.get(b, sp.S.Zero) - p
            exact = all(abs(rest[b]) < abs(table.get(b, sp.S.Zero)) or rest[b] == 0 for b in factors(sp.exp(f)))
            for b, p in factors(w).items():
                exact &= abs(table.get(b, sp.S.Zero)) >= abs(p) or bool(b.is_positive)
                rest[b] = rest.get(b, sp.S.Zero) - p
            if exact:
                return SoftmaxAt(f, w, i), {b: p for b, p in rest.items() if p != 0}
    return None
