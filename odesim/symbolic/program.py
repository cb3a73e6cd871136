"""Programs: statements without sums over named arrays, grouped into passes, each of which is one loop."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp
from sympy import Basic, Expr, Indexed, IndexedBase, Symbol

from odesim.ir.program import SumOrder
from odesim.symbolic.indices import base_name
from odesim.symbolic.layered import Layer, layers_in


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

    @property
    def name(self) -> str:
        return base_name(self.target)

    @property
    def loops(self) -> tuple[Symbol, ...]:
        """All indices of the statement's loops, the summed one last."""
        if self.op == "scatter":
            return (*self.free[1:], *((self.bound,) if self.bound is not None else ()))
        return (*self.free, *((self.bound,) if self.bound is not None else ()))

    def reads(self) -> set[str]:
        """Names of the arrays and symbols in the body."""
        return names_read(self.body) | (names_read(self.via) if self.via is not None else set())


def names_read(e: Basic) -> set[str]:
    """Names of the arrays, numbers, sizes and indices that e reads; the extents of its arrays do not count."""
    if isinstance(e, Layer):
        return set[str]().union(*map(_names_in, (e, *layers_in(e.definition))))
    if isinstance(e, IndexedBase):
        return {str(e.label)}
    if isinstance(e, Symbol):
        return {e.name}
    return set[str]().union(*map(names_read, e.args))


@lru_cache(maxsize=4096)
def _names_in(layer: Layer) -> frozenset[str]:
    """names_read() of the definition of a layer, without what other layers in it read."""
    own = {a: sp.Function("element")(*a.indices) for a in layer.definition.atoms(Indexed) if isinstance(a.base, Layer)}
    return frozenset(names_read(layer.definition.xreplace(own)))


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
