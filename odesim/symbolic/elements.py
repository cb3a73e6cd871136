"""Arrays of symbols, with elements such as x[i]."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sympy
from sympy import Expr, Indexed
from sympy.tensor.indexed import IndexedBase as PlainBase

from odesim.base.errors import SpecError, counted
from odesim.base.memo import ForkLock


class EndlessError(SpecError, TypeError):
    """An array of symbols was used as if it had an end."""


class IndexedBase(PlainBase):  # type: ignore[misc]
    """An array of symbols: x = IndexedBase("x", shape=(M,)), and x[i], x[0] are its elements.

    It has no length, so sum(x), max(x), list(x) and `a in x` raise one sentence; with sympy's own IndexedBase they never return.
    """

    def __getitem__(self, indices: Any, **_: Any) -> Any:
        if isinstance(indices, slice) or indices is ...:
            raise SpecError(f"{self}[:] is no element of {self}: write one with an index, such as {self}[m]; sums are over(Sum, ...)")
        subscripts = tuple(indices) if isinstance(indices, tuple | list | sympy.Tuple) else (indices,)
        if self.shape and len(self.shape) != len(subscripts):
            count, rank = counted(len(subscripts), "index", "indices"), counted(len(self.shape), "axis", "axes")
            raise SpecError(f"{self}[{', '.join(map(str, subscripts))}] has {count}, {self} has {rank}")
        # not Indexed(...): sympy takes a class with __iter__ for a list of numbers
        element = Expr.__new__(Indexed, self, *map(sympy.sympify, subscripts))
        PlainBase._set_assumptions(element, self.assumptions0)
        return element

    def __contains__(self, _: Any) -> bool:
        return bool(iter(self))  # raises

    def __iter__(self) -> Iterator[Any]:
        names = "ijklmnpq"[: len(self.shape)] if self.shape else "i"
        extents = self.shape or ("M",)
        axes = ", ".join(f"({i}, {n})" for i, n in zip(names, extents, strict=False))
        raise EndlessError(
            f"{self} is an array of symbols, which Python cannot count through: "
            f"write over(Sum, {self}[{', '.join(names)}], {axes}) for its sum, over(MaxOver, ...) for its maximum"
        )


def our_array(x: Any) -> Any:
    """x, where an array of sympy's class becomes one of ours."""
    return IndexedBase(*x.args) if type(x) is PlainBase else x


def our_element(e: Any) -> Any:
    """e, where an element x[i] of sympy's array class becomes an element of ours."""
    return our_array(e.base)[e.indices] if isinstance(e, Indexed) and type(e.base) is PlainBase else e


_loading = ForkLock()
_depth = 0


@contextmanager
def patch_sympy_arrays() -> Iterator[None]:
    """A context for loading a model file in which `sympy.IndexedBase` is ours: `sum(x)` raises a sentence and does not hang."""
    global _depth
    with _loading:
        _depth += 1
        sympy.IndexedBase = IndexedBase
    try:
        yield
    finally:
        with _loading:
            _depth -= 1
            if not _depth:
                sympy.IndexedBase = PlainBase
