"""Formulas of a System as a paper writes them: parts that have a name are printed as that name.

The names are those of System(display=...), and softmax, logsumexp and entropy, which are recognised by their form.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from itertools import product as choices
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, Symbol
from sympy.concrete.expr_with_limits import ExprWithLimits

from odesim.symbolic.definition import Definition, GradientFlow, all_expressions, all_names
from odesim.symbolic.functions import Share, Weighted, XLogY
from odesim.symbolic.indices import IndexedBase, base_name
from odesim.symbolic.layered import Layer, Value, layers_in
from odesim.symbolic.parts import Key, free_in_order
from odesim.symbolic.reductions import REDUCTIONS, BoundIndex, Shift, inside, triangle, unevaluated

Table = dict[Expr, Expr]


# Formulas are searched as tables, a product as {base: power} and a sum as {term: coefficient}: a name may then be a part of either.
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


def multiple_in(part: Mapping[Expr, Expr], whole: Mapping[Expr, Expr], states: Collection[str] = ()) -> Any:
    """The number c for which whole has every term of c*part; 0 where there is none.

    states: given these, terms without them may differ, if two or more have some: of a loss with S/2, loss - S/4 has the multiple 1.
    """
    moving = [term for term in part if any(base_name(a) in states for a in term.atoms(Symbol, Indexed))] if states else []
    ratios = {whole.get(term, sp.S.Zero) / part[term] for term in (moving if len(moving) > 1 else part)}
    return ratios.pop() if len(ratios) == 1 else sp.S.Zero


class Slope(Expr):  # type: ignore[misc]
    """The derivative of a named number by an element of an array, in formulas alone: Slope(loss, W[i, j])."""

    is_commutative = True

    def __new__(cls, name: Symbol, key: Key) -> "Slope":
        return Expr.__new__(cls, name, key)


# Softmax, logsumexp and entropy are recognised by their form, after the shifts: whoever writes them by hand sees them too.
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


LONG = 40
"""Operations in an equation above which the sums that it shares get names."""
Scope = Mapping[Symbol, Any]
"""{index: extent} of the indices that an expression may use where it stands."""
Instance = tuple[Key, Table, Table, list[Expr]]
"""A name at some indices, its factors, its terms, and the factors that a product need not have."""


@dataclass(frozen=True)
class Name:
    """A name, the indices of its definition with their extents, and the definition, without shifts."""

    name: str
    indices: dict[Symbol, Any]
    definition: Expr

    @property
    def key(self) -> Key:
        """The name with its indices, as it stands on the left of its definition."""
        return self.at(tuple(self.indices))

    def at(self, indices: tuple[Any, ...]) -> Key:
        """The name at these indices."""
        return IndexedBase(self.name, shape=tuple(self.indices.values()))[indices] if indices else Symbol(self.name, real=True)

    @cached_property
    def spare(self) -> list[Expr]:
        """The factors of the definition that a product need not have: positive ones, where others are sums."""
        parts = factors(self.definition)
        return [b for b in parts if b.is_positive] if any(b.has(*REDUCTIONS) for b in parts) else []

    @cached_property
    def size(self) -> int:
        """The number of nodes that a formula has at least, in which this name stands."""
        return sum(nodes(base) for base in factors(self.definition) if base not in self.spare)

    def instances(self, scope: Scope) -> Iterator[tuple[Key, Expr]]:
        """The name and its definition at all indices in scope that run over the same axes."""
        fits = [[i for i, n in scope.items() if sp.expand(n - extent) == 0] for extent in self.indices.values()]
        for chosen in choices(*fits):
            yield self.at(chosen), self.definition.xreplace(dict(zip(self.indices, chosen, strict=True)))


class Display:
    """The formulas of a System, with names in the place of parts that have one."""

    def __init__(self, system: Definition):
        self.axes, self._states = system.axes, frozenset({*system.states, "t"})
        self.loss = loss_of(system)
        self.layers, self._beside = (
            layers_in(*(e for e in all_expressions(system, equations=all_of_it) if isinstance(e, sp.Basic))) for all_of_it in (True, False)
        )
        self._called = dict(_called_apart(self.layers))
        named = {name: plain(e) for name, e in system.display.items()} or ({} if self.loss else dict(shared_sums(system)))
        seen = {name: plain(e) for name, e in system.observables.items() if isinstance(e, Expr) and e.args and not isinstance(e, Indexed)}
        self.names, self._seen = (
            [Name(name, {i: system.axes[i] for i in free_in_order(e, system.axes)}, e) for name, e in part.items()]
            for part in (named, seen)
        )

    def shown(self, e: Any, names: int | None = None, *, observed: bool = False, along: Scope | None = None) -> Any:
        """e with the parts that have a name, the last and largest first. names: how many of them may be used, all by default.

        observed: with the names of observables too: an event on them reads as its author thinks of it. along: axes that e has by itself.
        """
        more, states = (self._seen, self._states) if observed else ((), ())
        written = _Writing([*self.names[:names], *more], states)(plain(sp.sympify(e)), {**self.axes, **(along or {})})
        again = {a: self._called[a.base][a.indices] for a in written.atoms(Indexed) if a.base in self._called}
        numbers = [a for a in written.atoms(Indexed) if isinstance(a.base, Value)]
        again |= {a: Symbol(str(self._called.get(a.base, a.base).label), real=True) for a in numbers}
        return written.xreplace(again) if again else written

    def definitions(self, *, equations: bool = True) -> dict[Key, Expr]:
        """{name: definition}, each in terms of the names before it; without equations: not of layers that only they read."""
        named = {name.key: self.shown(name.definition, n) for n, name in enumerate(self.names)}
        for layer in self.layers if equations else self._beside:
            named[self.shown(layer.element(layer.along))] = layer.value(self.shown(layer.definition, along=layer.axes))
        return named

    def definition_of(self, name: str, e: Any) -> Any:
        """e as it stands on the right of `name = `: in terms of the names before it, if it is the definition of that name itself."""
        number = next((n for n, known in enumerate(self.names) if known.name == name and known.definition == plain(sp.sympify(e))), None)
        return self.shown(e, number)


def loss_of(system: Definition) -> Symbol | None:
    """The name of the loss whose gradient the equations are; None where they are no gradient, or the loss is no observable."""
    if not isinstance(system.equations, GradientFlow):
        return None
    named = {**system.observables, **system.display}
    return next((Symbol(name, real=True) for name, e in named.items() if e == system.equations.loss), None)


def _called_apart(layers: list[Layer]) -> Iterator[tuple[Layer, IndexedBase]]:
    """(layer, what it is called) for the layers whose name another one has: h, h_2, h_3."""
    seen = Counter[str]()
    for layer in layers:
        seen[layer.name] += 1
        if seen[layer.name] > 1:
            yield layer, IndexedBase(f"{layer.name}_{seen[layer.name]}", shape=tuple(layer.shape))


def shared_sums(system: Definition) -> Iterator[tuple[str, Expr]]:
    """(name, sum) for the sums that stand more than once in the equations of a System without names of its own, if they are long."""
    rates = [plain(e) for e in system.equations.values()]
    if all(sp.count_ops(e) <= LONG for e in rates):
        return
    write, counts = _Writing([]), Counter[Expr]()
    sums = {e for rate in rates for e in rate.atoms(*REDUCTIONS)}
    for rate in rates:
        for e in sp.preorder_traversal(write(rate, system.axes)):
            if e in sums:
                counts[e] += 1
    taken = {*all_names(system), *(i.name for i in system.axes), "t"}
    names = (f"s{n}" for n in count(1) if f"s{n}" not in taken)
    for e, times in sorted(counts.items(), key=lambda pair: (sp.count_ops(pair[0]), str(pair[0]))):
        if times > 1 and not any(isinstance(s, BoundIndex) for s in e.free_symbols):
            yield next(names), e


class _Writing:
    """The search for these names in an expression; given states, for sums up to what does not move too."""

    def __init__(self, names: list[Name], states: Collection[str] = ()):
        self.names, self.states = names[::-1], states
        self._tables: dict[tuple[Any, ...], list[Instance]] = {}

    def __call__(self, e: Any, scope: Scope) -> Any:
        if isinstance(e, sp.Tuple):
            return sp.Tuple(*(self(a, scope) for a in e.args))
        if not isinstance(e, Expr) or isinstance(e, Indexed | Symbol | sp.Number):
            return e.func(*(self(a, scope) for a in e.args)) if isinstance(e, sp.Basic) and e.args and not isinstance(e, Expr) else e
        table, named = self._factors(e, scope)
        if named:
            return sp.Mul(*named, *(self(f, scope) for f in product(table)))
        if e.is_Add:
            table, named = self._terms(e, scope)
            return sp.Add(*named, *(number * self(term, scope) for term, number in table.items()))
        if isinstance(e, BINDING):
            return unevaluated(type(e), self(e.function, inside(e.limits, scope)), e.limits)
        logarithm = log_of_sum(e)
        if isinstance(logarithm, LogSumExp):
            return self(logarithm, scope)
        return e.func(*(self(a, scope) for a in e.args))

    def _factors(self, e: Expr, scope: Scope) -> tuple[Table, list[Expr]]:
        """(factors without a name, powers of names) of a product."""
        table, named = factors(e), []
        for name, part, _, spare in self._instances(e, scope):
            n = times_in(part, table, spare)
            if n:
                named.append(name**n)
                for base, power in part.items():
                    add(table, base, -n * power)
        while (match := softmax_in(table, dict(scope))) is not None:
            f, w, i = match[0].args
            named.append(type(match[0])(self(f, scope), self(w, scope), i))
            table = match[1]
        return table, named

    def _terms(self, e: Expr, scope: Scope) -> tuple[Table, list[Expr]]:
        """(terms without a name, multiples of names) of a sum."""
        table, named = terms(e), []
        for name, _, part, _ in self._instances(e, scope):
            c = multiple_in(part, table, self.states) if len(part) > 1 else 0
            if c != 0:
                named.append(c * name)
                for term, number in part.items():
                    add(table, term, -c * number)
        return table, named

    def _instances(self, e: Expr, scope: Scope) -> Iterator[Instance]:
        """Every name that may stand in e, at all indices in scope."""
        size, key = nodes(e), tuple(scope.items())
        for name in self.names:
            if name.size <= size:
                if (key, name.name) not in self._tables:
                    self._tables[key, name.name] = [_instance(name, *pair) for pair in name.instances(scope)]
                yield from self._tables[key, name.name]


def _instance(name: Name, key: Key, definition: Expr) -> Instance:
    """The name at some indices."""
    parts = factors(definition)
    return key, parts, terms(definition), [b for b in parts if b.is_positive] if name.spare else []


def nodes(e: Expr) -> int:
    """The number of nodes of an expression's tree."""
    return sum(1 for _ in sp.preorder_traversal(e))
