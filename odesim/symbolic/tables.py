"""Tables: a function through given points, linear, monotone cubic or in steps, as an expression.

What is written is a sum over the points of Max, Min and conditions on times, which the language has. So a table of the time needs nothing
else: its points are found where kinks and jumps on time are found, runs stop there, and it prints, exports and has derivatives as any sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

import sympy as sp
from sympy import And, Expr, Indexed, Max, Min, Piecewise, Symbol
from sympy.core.relational import Relational

from odesim.base.errors import SpecError, value_text
from odesim.base.parsing import readable
from odesim.symbolic.definition import Definition, GradientFlow, all_names, computed_expressions
from odesim.symbolic.indices import Clipped, Inside, argument_expression, base_name, index
from odesim.symbolic.layered import Layer
from odesim.symbolic.parts import Constraint
from odesim.symbolic.reductions import BoundIndex, at, is_index, opposite, over, subexpressions


@readable
def table(x: Any, places: Any, values: Any, kind: str = "linear") -> Expr:
    """The function through the points (places[k], values[k]), at x: a measured input, a schedule, a curve that a data sheet gives.

    Parameters
    ----------
    x : expression
        Where: the time, or an expression in states. Runs stop at the points of a table of the time.
    places : element
        T[k] of a parameter with an axis of points, in increasing order: the System checks it. Its last index numbers the points.
    values : element
        u[k] of a parameter, or u[i, k], with this index.
    kind : "linear", "pchip" or "step"
        Straight lines; the cubic of Fritsch and Butland, which is smooth and as monotone as the points are; or each value up to the next
        place.

    Returns
    -------
    expression
        Before the first point the first value, behind the last one the last.

    Raises
    ------
    SpecError
        For another kind, or for places and values that are no elements with one index of points.

    Notes
    -----
    Each evaluation goes through all points: some microseconds for a thousand. A linear or cubic table is exact but for rounding of the sum
    of all its rises, steps are exact.

    References
    ----------
    F. N. Fritsch and J. Butland, SIAM J. Sci. Stat. Comput. 5 (1984) 300, doi:10.1137/0905021; slopes at the ends as SciPy's
    PchipInterpolator and C. Moler, Numerical Computing with MATLAB (2004), section 3.6.

    Examples
    --------
    >>> (k,), (K,) = index("k"), sizes("K")
    >>> T, u = IndexedBase("T", shape=(K,)), IndexedBase("u", shape=(K,))
    >>> x = Symbol("x", real=True)
    >>> real = Interval(-oo, oo)
    >>> driven = System(
    ...     name="my.driven", source=Source("own", "notes"), axes={k: K},
    ...     equations={x: table(time, T[k], u[k]) - x}, initial={x: 0},
    ...     params=(Param(T, lambda sizes: [0, 1, 3], real, "times"), Param(u, lambda sizes: [0, 2, 2], real, "input")),
    ...     sizes={K: 3}, span=(0.0, 3.0),
    ... )
    >>> round(float(odesim.integrate(driven).final["x"]), 4)  # 2 - 2 (e - 1) exp(-3)
    1.8289
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise SpecError(f"table(): no kind {value_text(kind)}; choose from {', '.join(KINDS)}")
    k = _point_index(places, values)
    return KINDS[kind](argument_expression("table()", x), places, values, k)


def _point_index(places: Any, values: Any) -> Symbol:
    """The index of points. Raises SpecError unless both are elements with it, on axes of one extent."""
    for name, e in (("places", places), ("values", values)):
        if not isinstance(e, Indexed) or e.base.shape is None:
            raise SpecError(f"table(): {name} are an element of an array with a shape, such as u[k], not {value_text(e)}")
    k = places.indices[-1]
    SpecError.unless(is_index(k), f"table(): the last index of {places} runs over the points, and is one of index()", k)
    if k not in values.indices:
        raise SpecError(f"table(): {values} lacks {k}, the index of the points of {places}")
    extent = values.base.shape[values.indices.index(k)]
    if sp.expand(extent - places.base.shape[-1]) != 0:
        raise SpecError(f"table(): the axis of {places} has the size {places.base.shape[-1]}, that of {values} {extent}")
    return k


def _moved(e: Indexed, k: Symbol, by: int) -> Indexed:
    """The element at the neighbouring point, or at the last one on that side."""
    return e.xreplace({k: Clipped(k, by, e.base.shape[e.indices.index(k)])})


def _count(e: Indexed, k: Symbol) -> Any:
    return e.base.shape[e.indices.index(k)]


# Each gap adds how far x has come in it, from 0 before it to its whole rise behind it. Beside a choice of the gap that x is in, this has
# no condition that jumps: a run stops at the points because of the kinks of Max and Min, and holds nothing. The last point has a gap of no
# width behind it, which adds 0; the length 1 keeps it from dividing by 0.
def _inside(x: Expr, places: Indexed, k: Symbol) -> Expr:
    """How far x is in the gap behind point k: 0 to its length."""
    return Max(places, Min(x, _moved(places, k, 1))) - places


def _one_unless(condition: Any) -> Expr:
    # added to a length that is 0 otherwise: JAX computes what it then leaves out, and a derivative of 1/0 there would be nan
    return Piecewise((sp.S.Zero, condition), (sp.S.One, True))


def _linear(x: Expr, places: Indexed, values: Indexed, k: Symbol) -> Expr:
    K = _count(places, k)
    length = _moved(places, k, 1) - places + _one_unless(Inside(k, 1, K))
    rise = (_moved(values, k, 1) - values) / length
    return at(values, {k: 0}) + over(sp.Sum, rise * _inside(x, places, k), (k, K))


def _pchip(x: Expr, places: Indexed, values: Indexed, k: Symbol) -> Expr:
    K = _count(places, k)
    first, last = opposite(Inside(k, -1, K)), opposite(Inside(k, 1, K))

    def across(e: Indexed) -> Expr:
        """Its difference over the gap behind point k, of the last point over the gap before it."""
        return Piecewise((_moved(e, k, 1) - e, Inside(k, 1, K)), (e - _moved(e, k, -1), True))

    def layer(name: str, definition: Expr, e: Indexed) -> Indexed:
        along = tuple(i for i in e.indices if is_index(i))
        shape = tuple(n for i, n in zip(e.indices, e.base.shape, strict=True) if is_index(i))
        return Layer(f"{base_name(e)}_{name}", along, definition, shape)[along]

    # the layers hold what one point needs of its neighbours, so that none is computed for each of its readers
    both = places if len(places.indices) > len(values.indices) else values
    gap = layer("gap", across(places) + _one_unless(sp.Or(Inside(k, 1, K), Inside(k, -1, K))), places)
    secant = layer("secant", across(values) / gap, both)
    gap_before, secant_before = _moved(gap, k, -1), _moved(secant, k, -1)

    def end(h: Expr, h_next: Expr, s: Expr, s_next: Expr) -> Expr:
        """The slope at an end: of the parabola through three points, unless that is not monotone."""
        plain = ((2 * h + h_next) * s - h * s_next) / (h + h_next)
        steep = sp.And(s * s_next < 0, sp.Abs(plain) > 3 * sp.Abs(s))
        return Piecewise((sp.S.Zero, plain * s <= 0), (3 * s, steep), (plain, True))

    weights = 2 * gap + gap_before, gap + 2 * gap_before
    same_sign = secant_before * secant > 0
    # 1 where a secant is not divided by, as a sum: sympy would take the division into a choice, and JAX computes both of its branches
    safe = [s + Piecewise((sp.S.Zero, same_sign), (1 - s, True)) for s in (secant_before, secant)]
    harmonic = sum(weights) / (weights[0] / safe[0] + weights[1] / safe[1])
    middle = Piecewise((harmonic, same_sign), (sp.S.Zero, True))
    # the last point repeats the gap before it, so the gap before that is two points back
    ends = [end(gap, _moved(gap, k, by), secant, _moved(secant, k, by)) for by in (1, -2)]
    slope = layer("slope", Piecewise((ends[0], first), (ends[1], last), (middle, True)), both)
    after, s = _moved(slope, k, 1), _inside(x, places, k)
    cubic = slope + s / gap * (3 * secant - 2 * slope - after + s / gap * (slope + after - 2 * secant))
    return at(values, {k: 0}) + over(sp.Sum, s * cubic, (k, K))


def _step(x: Expr, places: Indexed, values: Indexed, k: Symbol) -> Expr:
    K = _count(places, k)
    begun = sp.Or(opposite(Inside(k, -1, K)), x >= places)
    goes_on = sp.Or(opposite(Inside(k, 1, K)), x < _moved(places, k, 1))
    return over(sp.Sum, Piecewise((values, sp.And(begun, goes_on)), (sp.S.Zero, True)), (k, K))


KINDS: dict[str, Callable[[Expr, Indexed, Indexed, Symbol], Expr]] = {"linear": _linear, "pchip": _pchip, "step": _step}
"""{kind: what writes it}."""


# A table is known again by its form, and is no class of its own: one that a file of JSON holds is found as well, and no expression changes.
def _places(expressions: Iterable[Any]) -> set[Indexed]:
    """The places of the tables in expressions, elements T[k] with the index that the table sums over."""
    places = set[Indexed]()
    for e in subexpressions(expressions, Max, And):
        if isinstance(e, Max):
            ends = {a for inner in e.args if isinstance(inner, Min) for a in inner.args}
            places |= {p for p in e.args if _is_place(p) and _moved(p, p.indices[-1], 1) in ends}
            continue
        # sympy moves numbers and signs across, so what is compared is the difference of both sides
        passed = {sign * (r.lhs - r.rhs) for r in subexpressions([e], Relational) for sign in (1, -1)}
        terms = ((d, term.as_coeff_Mul()[1]) for d in passed for term in sp.Add.make_args(d))
        places |= {p for d, p in terms if _is_place(p) and d.xreplace({p: _moved(p, p.indices[-1], 1)}) in passed}
    return places


def _is_place(e: Any) -> bool:
    return isinstance(e, Indexed) and isinstance(e.indices[-1], BoundIndex) and e.base.shape is not None


def table_constraints(s: Definition) -> tuple[dict[Symbol, Any], tuple[Constraint, ...]]:
    """The axes and constraints of s, with the constraint that the places of each of its tables increase, where it has none yet.

    Only of places that are a parameter. An axis is added where none has the extent of the points.
    """
    axes, constraints = dict(s.axes), list(s.constraints)
    loss = [s.equations.loss] if isinstance(s.equations, GradientFlow) else []
    params = {p.name for p in s.params}
    for p in sorted((p for p in _places([*computed_expressions(s), *loss]) if base_name(p) in params), key=str):
        e = p.base[_indices(p, axes, {*all_names(s), *map(str, axes), *s.observables})]
        if not any(c.sense == "increasing" and _covers(c.expr, e) for c in constraints):
            row = "".join(f"[{i}]" for i in e.indices if i.is_Integer)
            constraints.append(Constraint(f"table over {base_name(e)}{row}", e, "increasing"))
    return axes, tuple(constraints)


def _indices(p: Indexed, axes: dict[Symbol, Any], taken: set[str]) -> tuple[Any, ...]:
    """The indices of p: an index of axes for each that is no number. One that axes lacks is added to it, by a name that is not taken."""
    indices: list[Any] = []
    for i, n in zip(p.indices, p.base.shape, strict=True):
        if i.is_Integer:
            indices.append(i)
            continue
        fits = [a for a, extent in axes.items() if a not in indices and sp.expand(extent - n) == 0]
        if not fits:
            name = str(i) if isinstance(i, Symbol) else "i"
            fits = [next(a for c in count() for a in index(f"{name}_{c}" if c else name) if a.name not in taken)]
            axes[fits[0]] = n
        indices.append(min(fits, key=lambda a: a.name != str(i)))
    return tuple(indices)


def _covers(known: Any, e: Indexed) -> bool:
    """Whether that a known expression increases says it of the element e too."""
    return (
        isinstance(known, Indexed)
        and base_name(known) == base_name(e)
        and all(is_index(a) or a == b for a, b in zip(known.indices, e.indices, strict=True))
    )
