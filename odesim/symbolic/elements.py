"""Arrays of symbols: what `x[i]` is an element of."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import sympy
from sympy import Expr, Indexed
from sympy.tensor.indexed import IndexedBase as PlainBase

from odesim.errors import SpecError, counted


class EndlessError(SpecError, TypeError):
    """An array of symbols was used as if it had an end."""


class IndexedBase(PlainBase):  # type: ignore[misc]
    """An array of symbols: x = IndexedBase("x", shape=(M,)), and x[i], x[0] are its elements.

    It has no end to count to, so that sum(x), max(x), list(x) and `a in x` raise a sentence; sympy's own IndexedBase never returns.
    """

    def __getitem__(self, indices: Any, **_: Any) -> Any:
        given = tuple(indices) if isinstance(indices, tuple | list | sympy.Tuple) else (indices,)
        if self.shape and len(self.shape) != len(given):
            have, need = counted(len(given), "index", "indices"), counted(len(self.shape), "axis", "axes")
            raise SpecError(f"{self}[{', '.join(map(str, given))}] has {have}, {self} has {need}")
        # not Indexed(...): sympy takes a class with __iter__ for a list of numbers
        made = Expr.__new__(Indexed, self, *map(sympy.sympify, given))
        PlainBase._set_assumptions(made, self.assumptions0)
        return made

    def __iter__(self) -> Iterator[Any]:
        names = "ijklmnpq"[: len(self.shape)] if self.shape else "i"
        extents = self.shape or ("M",)
        axes = ", ".join(f"({i}, {n})" for i, n in zip(names, extents, strict=False))
        raise EndlessError(
            f"{self} is an array of symbols, which Python cannot count through: "
            f"write over(Sum, {self}[{', '.join(names)}], {axes}) for its sum, over(MaxOver, ...) for its maximum"
        )


def own(x: Any) -> Any:
    """An array of sympy's own class as ours; anything else as it is."""
    return IndexedBase(*x.args) if type(x) is PlainBase else x


def own_element(e: Any) -> Any:
    """x[i] as an element of our IndexedBase; anything else as it is."""
    return own(e.base)[e.indices] if isinstance(e, Indexed) and type(e.base) is PlainBase else e


_loading = Lock()
_depth = 0


@contextmanager
def own_arrays() -> Iterator[None]:
    """While a model file is loaded, `sympy.IndexedBase` is ours: `sum(x)` in it says what to write and does not hang."""
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
