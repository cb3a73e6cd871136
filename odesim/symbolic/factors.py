"""Expressions as tables: a product as {base: power}, a sum as {term: coefficient}."""

from collections.abc import Iterable, Mapping
from typing import Any

import sympy as sp
from sympy import Expr

Table = dict[Expr, Expr]


def factors(e: Expr) -> Table:
    """{base: power} of a product, with exp(2*x + y) as {exp(x): 2, exp(y): 1}."""
    table: Table = {}
    for factor in sp.Mul.make_args(e):
        if isinstance(factor, sp.exp):
            for term in sp.Add.make_args(factor.args[0]):
                number, rest = term.as_coeff_Mul()
                add(table, sp.exp(rest) if rest != 1 else sp.exp(sp.S.One), number)
        elif factor.is_Pow and factor.exp.is_Rational:
            add(table, factor.base, factor.exp)
        else:
            add(table, factor, sp.S.One)
    return table


def add(table: Table, base: Expr, power: Expr) -> None:
    """Multiplies the product by base**power."""
    table[base] = table.get(base, sp.S.Zero) + power
    if table[base] == 0:
        del table[base]


def product(table: Mapping[Expr, Expr]) -> list[Expr]:
    """The factors of a product, with one exponential of all exponents."""
    exponent = sp.Add(*(p * b.args[0] for b, p in table.items() if isinstance(b, sp.exp)))
    plain = [b**p for b, p in table.items() if not isinstance(b, sp.exp)]
    return plain if exponent == 0 else [*plain, sp.exp(exponent)]


def terms(e: Expr) -> Table:
    """{term: coefficient} of a sum."""
    table: Table = {}
    for term in sp.Add.make_args(e):
        number, rest = term.as_coeff_Mul()
        add(table, rest, number)
    return table


def times_in(part: Mapping[Expr, Expr], whole: Mapping[Expr, Expr], spare: Iterable[Expr] = ()) -> int:
    """The whole number n of largest size for which part**n divides whole; 0 where there is none. 1/x is no part of x.

    spare: bases of part that whole need not have.
    """
    ratios = [whole.get(base, sp.S.Zero) / power for base, power in part.items() if base not in spare]
    if not ratios or not (all(r >= 1 for r in ratios) or all(r <= -1 for r in ratios)):
        return 0
    if ratios[0] < 0:
        return int(max(ratios)) if any(power > 0 for power in part.values()) else 0
    return int(min(ratios))


def multiple_in(part: Mapping[Expr, Expr], whole: Mapping[Expr, Expr]) -> Any:
    """The number c for which whole has every term of c*part; 0 where there is none."""
    ratios = {whole.get(term, sp.S.Zero) / number for term, number in part.items()}
    return ratios.pop() if len(ratios) == 1 else sp.S.Zero
