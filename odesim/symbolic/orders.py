"""The order in which a sum over several indices is computed: the cheapest one, as numpy.einsum_path chooses it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import Any

import sympy as sp
from sympy import Expr, KroneckerDelta, Mul, Symbol

GENERIC = 100.0
"""The number of values of an index whose size has no default."""
MOST = 5
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


def sum_order(
    body: Expr, bound: list[Symbol], free: Callable[[Any], tuple[Symbol, ...]], extents: Mapping[Symbol, Expr]
) -> SumOrder | None:
    """The data on which the order of a sum of body depends; None where the order is as written.

    That is so for a sum over one index and one with a Kronecker delta. free: the indices of an expression.
    """
    if len(bound) < 2 or body.has(KroneckerDelta):
        return None
    factors = tuple((_unnamed(f, free(f)), free(f)) for f in Mul.make_args(body))
    return SumOrder(factors, tuple(bound), {i: extents[i] for i in (*bound, *(i for _, indices in factors for i in indices))})


def _unnamed(e: Expr, free: tuple[Symbol, ...]) -> str:
    """The text of e with numbers in place of its indices."""
    return str(e.xreplace({i: Symbol(f"_{n}") for n, i in enumerate(free)}))


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
        best = min(map(list, permutations(written)), key=self.cost) if len(written) <= MOST else self._greedy(written)
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
            made, rest = _summed(order[-1], factors)
            factors = (*rest, made)
        return order


def _summed(k: Symbol, factors: tuple[Factor, ...]) -> tuple[Factor, tuple[Factor, ...]]:
    """The sum over k of the factors that have k, a factor itself, and the others."""
    inside, rest = sorted((f for f in factors if k in f[1]), key=lambda f: f[0]), tuple(f for f in factors if k not in f[1])
    free = tuple(dict.fromkeys(i for _, indices in inside for i in indices if i != k))
    name = "; ".join(f"{label}({', '.join('k' if i == k else str(free.index(i)) for i in indices)})" for label, indices in inside)
    return (f"[{name}]", free), rest
