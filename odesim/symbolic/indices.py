"""Arrays and places on their axes: indices, sizes, elements such as x[i], and neighbours x[i + 1] with what stands beyond the ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import sympy
import sympy as sp
from sympy import Expr, Indexed, Symbol
from sympy.logic.boolalg import BooleanFunction
from sympy.tensor.indexed import IndexedBase as PlainBase

from odesim.base.errors import SpecError, counted, value_text
from odesim.base.memo import ForkLock
from odesim.base.parsing import readable


class EndlessError(SpecError, TypeError):
    """An array of symbols was used as if it had an end."""


# sympy goes through an IndexedBase without end (it has __getitem__ and no length), so that sum(x) in a model file hangs.
class IndexedBase(PlainBase):  # type: ignore[misc]
    """An array of symbols: x = IndexedBase("x", shape=(M,)), and x[i], x[0] are its elements.

    Parameters
    ----------
    label : str
        Its name.
    shape : tuple
        Sizes, or affine expressions of them.
    offset, strides
        As of sympy's IndexedBase; no System uses them.

    Notes
    -----
    It has no length, so sum(x), max(x), list(x) and `a in x` raise one sentence; with sympy's own IndexedBase they never return.

    Examples
    --------
    >>> x, (i,) = IndexedBase("x", shape=sizes("M")), index("i")
    >>> x[i] + x[0]
    x[0] + x[i]
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


def array_at(name: str, indices: tuple[Symbol, ...], axes: Mapping[Symbol, Any]) -> Any:
    """name[indices], an element of an array along these axes {index: extent}; without indices a real number."""
    return IndexedBase(name, shape=tuple(axes[i] for i in indices))[indices] if indices else Symbol(name, real=True)


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


time = Symbol("t", real=True)
"""The independent variable, for right-hand sides that depend on it (schedules)."""


@readable
def index(names: str) -> tuple[Symbol, ...]:
    """Loop indices: plain integer symbols that start at 0 (never sympy.Idx, which breaks .subs and LaTeX).

    Parameters
    ----------
    names : str
        One or several, with spaces or commas between them.

    Returns
    -------
    tuple of Symbol
        One for each name.

    Examples
    --------
    >>> m, k = index("m k")
    >>> m.is_integer
    True
    """
    return sp.symbols(_check_names("index", names), integer=True, nonnegative=True, seq=True)


@readable
def sizes(names: str) -> tuple[Symbol, ...]:
    """Extents of axes: positive integer symbols.

    Parameters
    ----------
    names : str
        One or several, with spaces or commas between them.

    Returns
    -------
    tuple of Symbol
        One for each name.

    Examples
    --------
    >>> M, K = sizes("M K")
    >>> M.is_positive
    True
    """
    return sp.symbols(_check_names("sizes", names), integer=True, positive=True, seq=True)


def _check_names(call: str, names: Any) -> str:
    if not isinstance(names, str) or not names.replace(",", " ").strip():
        raise SpecError(
            f"{call}() takes names in one text, such as {call}({'i j' if call == 'index' else 'M N'!r}), not {value_text(names)}"
        )
    return names


def argument_expression(call: str, e: Any) -> Expr:
    """e as an expression. Raises SpecError; call: the function named in the message."""
    try:
        expression = sp.sympify(e, strict=True)
    except Exception:  # sympy calls methods of an unknown object, which may raise anything
        expression = None
    SpecError.unless(isinstance(expression, Expr) and not expression.is_Matrix, f"{call} takes an expression", e)
    return expression


def base_name(x: Any) -> str:
    """The name of a state or parameter, written as an Indexed, an IndexedBase or a Symbol."""
    symbol = x.base.label if isinstance(x, Indexed) else x.label if isinstance(x, PlainBase) else x
    # a printer of sympy takes ten times as long, and this is asked some thousand times for a System
    return symbol.name if type(symbol) is Symbol else str(symbol)


# x[i + 1] is not an element at the index i + 1 (there is none at the last i): a Neighbour says what is read there, so that every printer,
# derivative and check sees the boundary.
class Neighbour(sp.Function):  # type: ignore[misc]
    """The place i + c on an axis of n places: Neighbour(i, c, n)."""

    nargs = 3
    is_integer = True

    @classmethod
    def eval(cls, i: Any, c: Any, n: Any) -> Any:
        return i if c == 0 else None

    def _sympystr(self, printer: Any) -> str:
        i, c, _ = self.args
        return f"{printer._print(i)} {'-' if c < 0 else '+'} {abs(c)}"

    _latex = _sympystr


class Wrapped(Neighbour):
    """The place i + c on a ring of n places."""

    @classmethod
    def eval(cls, i: Any, c: Any, n: Any) -> Any:
        if isinstance(i, Wrapped) and i.args[2] == n:
            return cls(i.args[0], i.args[1] + c, n)
        return i if c == 0 else None


class Clipped(Neighbour):
    """The place i + c, or the end of the axis that is nearest to it."""


class Padded(Neighbour):
    """The place i + c; an array is 0 outside its axis."""


class Condition(BooleanFunction):  # type: ignore[misc]
    """A condition on places that is a class of its own, and prints as readable(), in signs."""

    nargs = 3

    def _sympystr(self, printer: Any) -> str:
        return str(printer._print(self.readable()))

    def _latex(self, printer: Any) -> str:
        return str(printer._print(self.readable()))

    def _eval_as_set(self) -> Any:
        # sympy asks for the set when a Piecewise stands in the condition of another one, and goes on where there is none
        raise NotImplementedError("a condition on places is no set of real numbers")


class Inside(Condition):
    """The condition that the place i + c is on an axis of n places: Inside(i, c, n)."""

    @classmethod
    def eval(cls, i: Any, c: Any, n: Any) -> Any:
        return sp.true if c == 0 else None

    def readable(self) -> Any:
        """The condition in signs, for a place i on the axis."""
        i, c, n = self.args
        return sp.Ge(i + c, 0) if c.is_negative else sp.Lt(i + c, n)


def index_of(place: Any) -> Any:
    """The index of a place on an axis: of a neighbour of a neighbour that of the first."""
    while isinstance(place, Neighbour):
        place = place.args[0]
    return place


def boundary_words(boundary: Mapping[Symbol, str]) -> list[str]:
    """Phrases for the values beyond the ends of each index."""
    words = {"periodic": "{} is periodic", "zero": "0 beyond the ends of {}", "edge": "the last value beyond the ends of {}"}
    return [words[kind].format(i) for i, kind in boundary.items()]


BOUNDARIES = {"periodic": Wrapped, "zero": Padded, "edge": Clipped}
BOUNDARY_CHOICES = "'periodic', 'zero' (0 beyond the ends) or 'edge' (the value at the end)"


def shift_of(i: Any) -> tuple[Symbol, int] | None:
    """(index, number) of i + 1 as it is written; None for anything else."""
    if not isinstance(i, sp.Add):
        return None
    c, k = i.as_coeff_Add()
    return (k, int(c)) if isinstance(k, Symbol) and k.is_integer and c.is_Integer else None


def with_boundaries(e: Any, boundary: Mapping[Any, str]) -> Any:
    """e with each x[i + c] read at the Neighbour that the boundary of i gives; an index without one stays."""
    kinds = {k.name: BOUNDARIES[kind] for k, kind in boundary.items()}
    rule = dict[Any, Any]()
    for a in sorted(sp.sympify(e).atoms(Indexed), key=lambda a: len(a.atoms(Indexed))) if kinds else ():
        new = a.base[tuple(i.xreplace(rule) for i in a.indices)]  # x[psi[i + 1], i + 1]: what is replaced whole has new parts already
        if (changed := _neighbour(new, kinds)) != a:
            rule[a] = changed
    return e.xreplace(rule) if rule else e


def _neighbour(a: Indexed, kinds: Mapping[str, type[Neighbour]]) -> Indexed:
    indices = []
    for n, i in enumerate(a.indices):
        shifted = shift_of(i)
        known = shifted is not None and shifted[0].name in kinds and a.base.shape is not None
        indices.append(kinds[shifted[0].name](*shifted, a.base.shape[n]) if shifted and known else i)
    return a.base[tuple(indices)]


def check_boundary(where: str, boundary: Any) -> None:
    """Raises SpecError unless boundary is {index: one of the choices}. where: the beginning of the message."""
    SpecError.unless(isinstance(boundary, Mapping), f"{where}: boundary must be a dict, such as {{i: 'periodic'}}", boundary)
    for i, kind in boundary.items():
        if not isinstance(i, Symbol):
            raise SpecError(f"{where}: boundary has the key {value_text(i)}, which is no index: write one of index()")
        SpecError.unless(isinstance(kind, str) and kind in BOUNDARIES, f"{where}: the boundary of {i} is {BOUNDARY_CHOICES}", kind)


def padded_as_choice(a: Indexed) -> Expr:
    """The element a, as a choice between an element of the array and 0 where a Padded index may be outside.

    x[i + 1]  ->  x[nearest place to i + 1] if i + 1 < N else 0
    """
    outside = [i for i in a.indices if isinstance(i, Padded)]
    if not outside:
        return a
    inside = a.base[tuple(Clipped(*i.args) if isinstance(i, Padded) else i for i in a.indices)]
    return sp.Piecewise((inside, sp.And(*(Inside(*i.args) for i in outside))), (sp.S.Zero, True))
