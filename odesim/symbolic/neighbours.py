"""Neighbours on an axis: x[i + 1] and x[i - 2], with what stands beyond the ends of the axis."""

from collections.abc import Mapping
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, Symbol
from sympy.logic.boolalg import BooleanFunction

from odesim.base.errors import SpecError, value_text


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


class Inside(BooleanFunction):  # type: ignore[misc]
    """The condition that the place i + c is on an axis of n places: Inside(i, c, n)."""

    nargs = 3

    @classmethod
    def eval(cls, i: Any, c: Any, n: Any) -> Any:
        return sp.true if c == 0 else None

    def readable(self) -> Any:
        """The condition in signs, for a place i on the axis."""
        i, c, n = self.args
        return sp.Ge(i + c, 0) if c.is_negative else sp.Lt(i + c, n)

    def _sympystr(self, printer: Any) -> str:
        return str(printer._print(self.readable()))

    def _latex(self, printer: Any) -> str:
        return str(printer._print(self.readable()))


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
CHOICES = "'periodic', 'zero' (0 beyond the ends) or 'edge' (the value at the end)"


def shift_of(i: Any) -> tuple[Symbol, int] | None:
    """(index, number) of i + 1 as it is written; None for anything else."""
    if not isinstance(i, sp.Add):
        return None
    c, k = i.as_coeff_Add()
    return (k, int(c)) if isinstance(k, Symbol) and k.is_integer and c.is_Integer else None


def with_boundaries(e: Any, boundary: Mapping[Any, str]) -> Any:
    """e with each x[i + c] read at the Neighbour that the boundary of i gives; an index without one stays."""
    kinds = {k.name: BOUNDARIES[kind] for k, kind in boundary.items()}
    shifted = {a for a in sp.sympify(e).atoms(Indexed) if any(map(shift_of, a.indices))} if kinds else set[Indexed]()
    return e.xreplace({a: _neighbour(a, kinds) for a in shifted}) if shifted else e


def _neighbour(a: Indexed, kinds: Mapping[str, type[Neighbour]]) -> Indexed:
    indices = []
    for n, i in enumerate(a.indices):
        found = shift_of(i)
        known = found is not None and found[0].name in kinds and a.base.shape is not None
        indices.append(kinds[found[0].name](*found, a.base.shape[n]) if found and known else i)
    return a.base[tuple(indices)]


def check_boundary(where: str, boundary: Any) -> None:
    """Raises SpecError unless boundary is {index: one of the choices}. where: the beginning of the message."""
    if not isinstance(boundary, Mapping):
        raise SpecError(f"{where}: boundary must be a dict, such as {{i: 'periodic'}}, not {value_text(boundary)}")
    for i, kind in boundary.items():
        if not isinstance(i, Symbol):
            raise SpecError(f"{where}: boundary has the key {value_text(i)}, which is no index: write one of index()")
        if not isinstance(kind, str) or kind not in BOUNDARIES:
            raise SpecError(f"{where}: the boundary of {i} is {CHOICES}, not {value_text(kind)}")


def padded_as_choice(a: Indexed) -> Expr:
    """The element a, as a choice between an element of the array and 0 where a Padded index may be outside.

    x[i + 1]  ->  x[nearest place to i + 1] if i + 1 < N else 0
    """
    outside = [i for i in a.indices if isinstance(i, Padded)]
    if not outside:
        return a
    inside = a.base[tuple(Clipped(*i.args) if isinstance(i, Padded) else i for i in a.indices)]
    return sp.Piecewise((inside, sp.And(*(Inside(*i.args) for i in outside))), (sp.S.Zero, True))
