"""Integer parameters in generated code: they become float64 before any arithmetic, because int64 would overflow."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import sympy as sp
from sympy import Expr, Indexed

from odesim.ir.program import Program, Statement
from odesim.symbolic.indices import IndexedBase, Inside, base_name
from odesim.symbolic.reductions import UpTo

REAL = sp.Function("real", real=True)
PLACES = (sp.KroneckerDelta, Inside, UpTo)
"""What compares places on an axis, which stay whole numbers."""


def integers_as_real(program: Program, integers: set[str]) -> Program:
    """The Program in which elements of integer arrays (names `integers`) become float64 where they are read, matrix products apart.

    p[m]**9 + z[psi[n]]  ->  real(p[m])**9 + z[psi[n]]
    """

    def real(e: Expr) -> Expr:
        if isinstance(e, Indexed):
            return REAL(e) if base_name(e) in integers else e
        return e.func(*map(real, e.args)) if e.args and not isinstance(e, PLACES) else e

    def convert(s: Statement) -> Statement:
        reads = any(base_name(a) in integers for a in s.body.atoms(Indexed))
        return replace(s, body=real(s.body)) if reads and s.op != "dot" else s

    return replace(program, passes=tuple(tuple(map(convert, group)) for group in program.passes))


def copy_integer_factors(program: Program, integers: set[str], taken: set[str]) -> Program:
    """The Program in which each integer array of a matrix product is first copied to an array of float64.

    integers: names of the integer arrays. taken: names that the copies cannot have.

    r0[a, b] = sum_k J[a, k] * x[k, b]  ->  [w0[a, k] = J[a, k]], [r0[a, b] = sum_k w0[a, k] * x[k, b]]
    """
    dots = [s for s in program.statements() if s.op == "dot"]
    factors = {f for s in dots for f in s.body.args if isinstance(f, Indexed) and base_name(f) in integers}
    if not factors:
        return program
    used = taken | {s.name for s in program.statements()} | {i.name for i in program.extents} | program.inputs() | program.sizes
    names = _fresh(used)
    copies: dict[str, tuple[Statement, IndexedBase]] = {}
    for f in sorted(factors, key=str):
        if base_name(f) not in copies:
            base = IndexedBase(next(names), shape=tuple(program.extents[i] for i in f.indices))
            copies[base_name(f)] = Statement(base[f.indices], tuple(f.indices), "map", f), base
    copy_of = {f: copies[base_name(f)][1][f.indices] for f in factors}

    def use_copies(s: Statement) -> Statement:
        return replace(s, body=sp.Mul(*(copy_of.get(f, f) for f in s.body.args), evaluate=False)) if s.op == "dot" else s

    first = tuple((copy,) for copy, _ in copies.values())
    return replace(program, passes=(*first, *(tuple(map(use_copies, group)) for group in program.passes)))


def _fresh(used: set[str]) -> Iterator[str]:
    return (f"w{n}" for n in count() if f"w{n}" not in used)
