"""Programs: statements without sums over named arrays, grouped into passes, each of which is one loop."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from math import prod
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, KroneckerDelta, Mul, Symbol

from odesim.symbolic.indices import base_name
from odesim.symbolic.layered import names_read

GENERIC = 100.0
"""The number of values of an index whose size has no default."""
MOST_ORDERS = 5
"""Summed indices of which every order is tried; of more, the cheapest sum comes first each time."""
Factor = tuple[str, tuple[Symbol, ...]]
"""The name of a factor, the same for equal ones with other indices, and its indices."""


@dataclass(frozen=True)
class SumOrder:
    """A sum over several indices, whose order may depend on sizes: its factors, the indices as written, the extents of all indices."""

    factors: tuple[Factor, ...]
    bound: tuple[Symbol, ...]
    extents: Mapping[Symbol, Expr]

    def best(self, sizes: Mapping[str, int]) -> list[Symbol]:
        """The summed indices in the order that is cheapest with these sizes."""

        def count(i: Symbol) -> float:
            extent = self.extents[i].xreplace({s: sp.Integer(sizes[s.name]) for s in self.extents[i].free_symbols if s.name in sizes})
            return float(extent) if extent.is_number else GENERIC

        return Contraction(self.factors, count).cheapest(self.bound)


# The cheapest order is a matter of sizes that are known when a System is bound: the data of each sum is kept, to see then whether another
# text pays.
def sum_order(
    body: Expr, bound: list[Symbol], free: Callable[[Any], tuple[Symbol, ...]], extents: Mapping[Symbol, Expr]
) -> SumOrder | None:
    """The data on which the order of a sum of body depends; None where the order is as written.

    That is so for a sum over one index and one with a Kronecker delta. free: the indices of an expression.
    """
    if len(bound) < 2 or body.has(KroneckerDelta):
        return None
    factors = tuple((str(f.xreplace({i: Symbol(f"_{n}") for n, i in enumerate(free(f))})), free(f)) for f in Mul.make_args(body))
    return SumOrder(factors, tuple(bound), {i: extents[i] for i in (*bound, *(i for _, indices in factors for i in indices))})


class Contraction:
    """A product of factors that is summed over some of their indices; two sums of the same factors are computed once.

    size: the number of values of an index.
    """

    def __init__(self, factors: Sequence[Factor], size: Callable[[Symbol], float]) -> None:
        self.factors, self._size = tuple(factors), size

    def cheapest(self, bound: Sequence[Symbol]) -> list[Symbol]:
        """The summed indices in the order that takes fewest multiplications; as they are where no order is cheaper.

        sum_k sum_j A[i, j]*B[j, k]*x[k]  ->  k before j: A (B x), two matrices times a vector, and no product of matrices
        """
        written = list(bound)
        if len(written) < 2 or len(self.factors) < 2:
            return written
        best = min(map(list, permutations(written)), key=self.cost) if len(written) <= MOST_ORDERS else self._greedy(written)
        return best if self.cost(best) < 0.99 * self.cost(written) else written

    def cost(self, order: Sequence[Symbol]) -> float:
        """Multiplications of the sums in this order."""
        factors, done, total = self.factors, set[str](), 0.0
        for k in order:
            (name, free), rest = _summed(k, factors)
            total += 0.0 if name in done else self._loops(k, free)
            done.add(name)
            factors = (*rest, (name, free))
        return total

    def _loops(self, k: Symbol, free: tuple[Symbol, ...]) -> float:
        return self._size(k) * prod(map(self._size, free))

    def _greedy(self, written: list[Symbol]) -> list[Symbol]:
        """The order in which each sum is the cheapest of those left."""
        factors, left, order = self.factors, list(written), list[Symbol]()
        while left:
            costs = {k: self._loops(k, _summed(k, factors)[0][1]) for k in left}
            order.append(min(left, key=costs.__getitem__))
            left.remove(order[-1])
            total, rest = _summed(order[-1], factors)
            factors = (*rest, total)
        return order


def _summed(k: Symbol, factors: tuple[Factor, ...]) -> tuple[Factor, tuple[Factor, ...]]:
    """The sum over k of the factors that have k, a factor itself, and the others."""
    inside, rest = sorted((f for f in factors if k in f[1]), key=lambda f: f[0]), tuple(f for f in factors if k not in f[1])
    free = tuple(dict.fromkeys(i for _, indices in inside for i in indices if i != k))
    name = "; ".join(f"{label}({', '.join('k' if i == k else str(free.index(i)) for i in indices)})" for label, indices in inside)
    return (f"[{name}]", free), rest


def is_plain(e: Expr) -> bool:
    """Whether e is an element of an array at indices that are all different."""
    return isinstance(e, Indexed) and all(isinstance(i, Symbol) for i in e.indices) and len(set(e.indices)) == len(e.indices)


@dataclass(frozen=True)
class Statement:
    """One assignment, for all values of the indices in `free`.

    op is one of these.
    - "map": target = body.
    - "sum", "max": target = op over bound of body.
    - "dot": target[a, b] = sum over bound of left * right, where body is their product.
    - "scatter": target[via, ...] += body for all values of bound and free[1:].
    - "inverse": target = inverse of the matrices of the array body, over the last two of free. It destroys them, and via keeps them.
    - "prefix", "suffix": target = sum of body over the values of `along` up to, or from, its own.

    more: indices beside bound over which a matrix product is summed; generated code alone has them.
    slopes: a maximum is a value that has a derivative, and no shift that cancels; its body is then an element of an array.
    """

    target: Indexed | Symbol
    free: tuple[Symbol, ...]
    op: str
    body: Expr
    bound: Symbol | None = None
    via: Indexed | None = None
    slopes: bool = False
    more: tuple[Symbol, ...] = ()
    along: Symbol | None = None

    @cached_property  # a Jacobian with numbers asks for both in each of its products
    def name(self) -> str:
        return base_name(self.target)

    @cached_property
    def loops(self) -> tuple[Symbol, ...]:
        """All indices of the statement's loops, the summed one last."""
        if self.op == "scatter":
            return (*self.free[1:], *((self.bound,) if self.bound is not None else ()))
        return (*self.free, *((self.bound,) if self.bound is not None else ()))

    def reads(self) -> set[str]:
        """Names of the arrays and symbols in the body."""
        return names_read(self.body) | (names_read(self.via) if self.via is not None else set())


@dataclass(frozen=True)
class Program:
    """Statements in passes; those of one pass share one loop.

    outputs: {output: its indices}. extents: {index: number of its values}. orders: the sums whose order may depend on sizes.
    """

    outputs: Mapping[str, tuple[Symbol, ...]]
    extents: Mapping[Symbol, Expr]
    passes: tuple[tuple[Statement, ...], ...]
    orders: tuple[SumOrder, ...] = ()

    def orders_for(self, sizes: Mapping[str, int]) -> tuple[tuple[Symbol, ...], ...]:
        """The order of each sum over several indices that is cheapest with these sizes."""
        return tuple(tuple(order.best(sizes)) for order in self.orders)

    def statements(self) -> Iterator[Statement]:
        for group in self.passes:
            yield from group

    @property
    def temporaries(self) -> dict[str, tuple[Expr, ...]]:
        """{temporary array: its extents}, with () for a number."""
        return {s.name: tuple(self.extents[i] for i in s.free) for s in self.statements() if s.name not in self.outputs}

    @property
    def sizes(self) -> set[str]:
        """Names of the sizes in the extents of its loops."""
        used = {i for s in self.statements() for i in (*s.loops, *s.free, *s.more)}
        return {x.name for i in used for x in self.extents[i].free_symbols}

    def inputs(self) -> set[str]:
        """Names that the statements read and do not assign, without indices and sizes of extents."""
        assigned = {s.name for s in self.statements()}
        indices = {i.name for i in self.extents}
        return set[str]().union(*(s.reads() for s in self.statements())) - assigned - self.sizes - indices
