"""From statements to a Program: costly functions are shared, statements put in order and grouped into loops."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, Symbol
from sympy.codegen.cfunctions import expm1, log1p

from odesim.ir.lowering import Lowering, default_sizes, derivative, index_ranges
from odesim.ir.program import Program, Statement
from odesim.symbolic.definition import all_names
from odesim.symbolic.functions import Weighted, XLogY
from odesim.symbolic.indices import base_name
from odesim.symbolic.parts import Key, key_indices
from odesim.symbolic.reductions import canonical, subexpressions
from odesim.symbolic.system import System

# A power multiplies the relative error of its base: exp(x)**4 is about 4 units in the last place off exp(4*x).
MOST_POWER = 4
COSTLY = (
    sp.exp, sp.log, sp.tanh, sp.erf, sp.sin, sp.cos, sp.sinh, sp.cosh, log1p, expm1, Weighted, XLogY,
    sp.asinh, sp.acosh, sp.atanh, sp.erfc, sp.sinc, sp.jn, sp.LambertW,
)  # fmt: skip


def share(statements: list[Statement], work: "Lowering") -> list[Statement]:
    """The statements with each shared function in an array of its own.

    sum_k P[k]*exp(z[k]), d_z[i] = P[i]*exp(z[i]) / r0  ->  r1[i] = P[i]*exp(z[i]), sum_k r1[k], d_z[i] = r1[i] / r0
    """
    statements = _read_again(statements, work)
    for _ in range(8):  # a shared function may contain another one
        uses = _candidate(statements, work)
        if uses is None:
            break
        statements = _extract(statements, uses, work)
    return statements


def _read_again(statements: list[Statement], work: "Lowering") -> list[Statement]:
    """The statements with a function that is an array by itself read from there.

    r0 = sum_k exp(z[k]), r1[k] = exp(z[k])  ->  r0 = sum_k r1[k]
    """
    holders = [s for s in statements if s.op == "map" and isinstance(s.target, Indexed) and isinstance(s.body, COSTLY)]
    known = {(_key(s.body, work), _base(s.body)[0]): s for s in holders if set(s.free) == set(work.free(s.body))}
    out = []
    for s in statements:
        elsewhere = {f: known.get((_key(f, work), _base(f)[0])) for f in (_functions(s) if s not in holders else ())}
        out.append(replace(s, body=s.body.xreplace({f: _element_for(f, holder, work) for f, holder in elsewhere.items() if holder})))
    work.statements = out
    return out


def _element_for(f: Expr, holder: Statement, work: "Lowering") -> Expr:
    """The element of the holder's array that is f, which has other indices."""
    assert isinstance(holder.target, Indexed)
    names = dict(zip(work.free(holder.body), work.free(f), strict=True))
    return holder.target.base[tuple(names[i] for i in holder.free)]


def _functions(s: Statement) -> list[Expr]:
    """The costly function calls of a statement, largest first, in a fixed order."""
    if s.op == "dot":
        return []
    return sorted(subexpressions([s.body], *COSTLY), key=lambda f: (-sp.count_ops(f), str(f)))


def _holds(s: Statement, f: Expr) -> bool:
    """Whether s assigns f to an array, perhaps times array elements."""
    rest = [a for a in sp.Mul.make_args(s.body) if a != f]
    return s.op == "map" and s.body.has(f) and len(rest) < len(sp.Mul.make_args(s.body)) and all(isinstance(a, Indexed) for a in rest)


def _base(f: Expr) -> tuple[sp.Rational, Expr]:
    """(power, base) of a function, such as exp(3*x) -> (3, exp(x)): powers of one exponential share its base."""
    if isinstance(f, sp.exp):
        content, primitive = f.args[0].as_content_primitive()
        if content.is_Rational and content > 0:
            return content, sp.exp(primitive)
    return sp.S.One, f


def _key(f: Expr, work: "Lowering") -> tuple[Expr, tuple[Expr, ...]]:
    indices = work.free(f)
    return _base(f)[1].xreplace(_slots(indices)), tuple(work.extents[i] for i in indices)


def _candidate(statements: list[Statement], work: "Lowering") -> list[tuple[int, Expr]] | None:
    """Uses [(number of statement, function)] of the first function that two statements share or that is in too deep a loop.

    All of them are powers of the one with the least exponent, which is computed once. None where nothing is to be shared.
    """
    every = [(n, f) for n, s in enumerate(statements) for f in _functions(s) if not _holds(s, f)]
    uses_of: dict[tuple[Expr, tuple[Expr, ...]], list[tuple[int, Expr]]] = {}
    for n, f in every:
        uses_of.setdefault(_key(f, work), []).append((n, f))
    for n, f in every:
        indices, same = work.free(f), uses_of[_key(f, work)]
        least = min(_base(g)[0] for _, g in same if _is_power(_base(f)[0], _base(g)[0]))
        uses = [(k, g) for k, g in same if _is_power(_base(g)[0], least)]
        if (indices and set(indices) < set(statements[n].loops)) or any(k < n for k, _ in uses):
            return uses
    return None


def _is_power(exponent: sp.Rational, least: sp.Rational) -> bool:
    """Whether exp(exponent*x) is computed as a power of exp(least*x); only small powers are, because a power multiplies the error."""
    return (exponent / least).q == 1 and exponent / least <= MOST_POWER


def _extract(statements: list[Statement], uses: list[tuple[int, Expr]], work: "Lowering") -> list[Statement]:
    least = min(_base(f)[0] for _, f in uses)
    common = _common(statements, uses, work) if all(_base(f)[0] == least for _, f in uses) else set()
    out: list[Statement] = []
    for n, s in enumerate(statements):
        body = s.body
        for m, f in uses:
            if m == n:
                indices = work.free(f)
                here = {slot: i for i, slot in _slots(indices).items()}
                factors = [c.xreplace(here) for c in sorted(common, key=str)]
                content, base = _base(f)
                one = f if content == least else sp.exp(least * base.args[0])
                work.statements = out
                shared = work.new(sp.Mul(one, *factors), "map", indices)
                body = _replace(body, f, factors, shared ** (content / least))
        out.append(replace(s, body=body))
    work.statements = out
    return out


def _slots(indices: tuple[Symbol, ...]) -> dict[Symbol, Symbol]:
    """Names in the place of indices, so that what differs in these alone is equal."""
    return {i: Symbol(f"_{n}", integer=True) for n, i in enumerate(indices)}


def _common(statements: list[Statement], uses: list[tuple[int, Expr]], work: "Lowering") -> set[Expr]:
    """Array elements that multiply the function in all its uses, with indices replaced by slots."""
    common: set[Expr] | None = None
    for n, f in uses:
        indices = work.free(f)
        products = [m for m in statements[n].body.atoms(sp.Mul) if f in m.args]
        alone = statements[n].body.xreplace({m: sp.S.Zero for m in products}).has(f)
        for m in products:
            beside = {a.xreplace(_slots(indices)) for a in m.args if isinstance(a, Indexed) and set(work.free(a)) <= set(indices)}
            common = beside if common is None else common & beside
        if alone:
            return set()
    return common or set()


def _replace(body: Expr, f: Expr, factors: list[Expr], shared: Expr) -> Expr:
    """body with f * factors replaced by the array element `shared`."""
    if not factors:
        return body.xreplace({f: shared})
    swap = {m: shared * sp.Mul(*(a for a in m.args if a != f and a not in factors)) for m in body.atoms(sp.Mul) if f in m.args}
    return body.xreplace(swap)


# What shares a loop is read from memory once: for large systems a right-hand side costs what it reads.
def passes(statements: list[Statement], extents: Mapping[Symbol, Expr]) -> tuple[tuple[Statement, ...], ...]:
    """The statements in passes: those of one pass share a loop and read each other only at the same element.

    [r0[i] = ..., r1 = sum_i r0[i], d_z[i] = r0[i] / r1]  ->  [r0[i], r1], [d_z[i]]
    """
    assigned: dict[str, tuple[int, tuple[object, ...], Statement]] = {}
    groups: dict[tuple[object, ...], list[Statement]] = {}
    for n, s in enumerate(dependency_order(statements)):
        kind = _kind(s, n, extents)
        level = 0
        for name in s.reads():
            if name in assigned:
                earlier, other, writer = assigned[name]
                shares_loop = kind == other and kind[0] == "line" and writer.op == "map" and _local(s, name)
                level = max(level, earlier if shares_loop else earlier + 1)
        assigned[s.name] = (level, kind, s)
        groups.setdefault((level, *kind), []).append(s)
    order = sorted(groups, key=lambda g: g[0])  # type: ignore[arg-type,return-value]
    return tuple(tuple(groups[g]) for g in order)


def dependency_order(statements: list[Statement]) -> list[Statement]:
    """The statements, each after those it reads, otherwise in their order."""
    by_name = {s.name: s for s in statements}
    visited: dict[str, Statement] = {}

    def visit(s: Statement) -> None:
        if s.name not in visited:
            for name in sorted(s.reads()):
                if name in by_name and name != s.name:
                    visit(by_name[name])
            visited[s.name] = s

    for s in statements:
        visit(s)
    return list(visited.values())


def _kind(s: Statement, n: int, extents: Mapping[Symbol, Expr]) -> tuple[object, ...]:
    """The kind of loop of a statement: ("line", extent) for one index, ("number",) for none, ("own", n) for a pass of its own."""
    if s.op in ("map", "sum", "max") and len(s.loops) == 1:
        return ("line", extents[s.loops[0]])
    if s.op == "map" and not s.loops:
        return ("number",)
    return ("own", n)


def _local(s: Statement, name: str) -> bool:
    """Whether s reads the array `name` only at its own loop index."""
    reads = [a for a in s.body.atoms(Indexed) if base_name(a) == name]
    return bool(reads) and all(a.indices == s.loops for a in reads)


def lower(system: System, sizes: Mapping[str, int] | None = None) -> Program:
    """The Program of a System's right-hand sides; the output for state v is called d_v.

    sizes: {name: int}, those for which the order of sums over several indices is cheapest; default those of the System.
    """
    outputs = {derivative(key): rhs for key, rhs in system.equations.items()}
    numbers = default_sizes(system) if sizes is None else sizes
    return lower_expressions(outputs, system.axes, all_names(system), index_ranges(system), numbers)


def lower_expressions(
    outputs: Mapping[Key, Expr],
    axes: Mapping[Symbol, Any],
    taken: Iterable[str] = (),
    ranges: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Program:
    """The Program of {target: expression}, with outputs in this order.

    taken: names that no temporary (r0, r1, ...) and no summed index may have. ranges, sizes: those of a Lowering.
    """
    expressions = {target: canonical(e) for target, e in outputs.items()}
    work = Lowering(axes, expressions.values(), taken, ranges, sizes)
    for target, e in expressions.items():
        work.assign(target, e)
    statements = share(work.statements, work)
    indices = {base_name(t): key_indices(t) for t in outputs}
    return Program(indices, dict(work.extents), passes(statements, work.extents), tuple(work.orders))
