"""Checks of numbers: finite, whole, inside a domain, valid row numbers, constraints between parameters."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import sympy as sp
from sympy.printing.str import StrPrinter

from odesim.base.arrays import Array
from odesim.base.errors import ParamError
from odesim.inputs.grammar import EXACT
from odesim.inputs.schema import Place, Rule, Sizes


def check_numbers(place: Place, array: Array) -> Array:
    """array as a new float64 (or int64) array in C order. Raises ParamError unless every entry is allowed at this place."""
    if array.dtype.kind == "f" and array.dtype != np.float64:
        with np.errstate(over="ignore"):  # of a longdouble; the next check raises
            array = array.astype(np.float64)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        where, x = _first_bad_entry(place.name, array, ~np.isfinite(array))
        raise ParamError(f"{where} = {x} is not a finite number")
    if place.integer and array.dtype.kind != "i":
        bad = (array % 1 != 0) | (abs(array) > EXACT)
        if bad.any():
            where, x = _first_bad_entry(place.name, array, bad)
            raise ParamError(f"{where} = {x} is not a whole number")
    if place.domain.outside is not None:
        bad = place.domain.outside(array)
        if bad.any():
            where, x = _first_bad_entry(place.name, array, bad)
            raise ParamError(f"{where} = {x} lies outside {place.domain.text}")
    return np.array(array, dtype=np.int64 if place.integer else np.float64, order="C")


def check_number(place: Place, x: float) -> float:
    """x, as an int where whole numbers are required. Raises ParamError unless x is allowed at this place."""
    if not math.isfinite(x):
        raise ParamError(f"{place.name} = {_number_text(x)} is not a finite number")
    if place.integer and (x % 1 != 0 or abs(x) > EXACT):
        raise ParamError(f"{place.name} = {_number_text(x)} is not a whole number")
    if place.domain.outside is not None and bool(place.domain.outside(x)):
        raise ParamError(f"{place.name} = {_number_text(x)} lies outside {place.domain.text}")
    return int(x) if place.integer else float(x)


def check_domain(place: Place, array: Array, first: int) -> None:
    """Raises ParamError where a finite entry of array (N, ...) lies outside the domain; row 0 is member `first`."""
    if place.domain.outside is None:
        return
    with np.errstate(invalid="ignore"):
        bad = place.domain.outside(array) & np.isfinite(array)
    if bad.any():
        worst = tuple(map(int, np.unravel_index(int(np.argmax(bad)), bad.shape)))
        entry = f"{place.name}[{', '.join(map(str, worst[1:]))}]" if len(worst) > 1 else place.name
        raise ParamError(f"{entry} = {_number_text(float(array[worst]))} of member {first + worst[0]} lies outside {place.domain.text}")


def check_cover(place: Place, array: Array, known_sizes: Sizes) -> None:
    """Raises ParamError unless the values of an index parameter are 0 .. n-1, with cover each at least once.

    Sets the size n where it is unknown.
    """
    name, size = place.name, place.indexes
    assert size is not None
    if size not in known_sizes.values:
        known_sizes.set(size, max(int(array.max()) + 1, 1), f"from {name}")
    n = known_sizes.values[size]
    bad = (array < 0) | (array >= n)
    rows = f"0 .. {n - 1} ({known_sizes.text([size])})"
    if bad.any():
        where, x = _first_bad_entry(name, array, bad)
        raise ParamError(f"{where} = {x} is out of range: {name} names rows {rows}")
    if not place.cover:
        return
    used = np.zeros(min(n, array.size + 1), bool)
    used[array[array < used.size]] = True
    if not used.all():
        raise ParamError(f"{name} is out of range: it must use every row {rows}, and no entry is {int(used.argmin())}")


def check_rules(rules: Iterable[Rule], sizes: Mapping[str, int], values: Mapping[str, Any]) -> None:
    """Raises ParamError, naming the worst entry, unless every constraint holds."""
    for rule in rules:
        check_rule(rule, rule.formula(sizes, values)[None])


def check_rule(rule: Rule, values: Array, first: int | None = None) -> None:
    """Raises ParamError where values (N, *shape) of the rule's formula break it, naming the worst entry of the first such row.

    first: the rows are members first, first + 1, ..., and the message names the member.
    """
    x = values - rule.target
    violation = abs(x) if rule.constraint.sense == "==0" else -x
    valid = (violation <= rule.constraint.tol).reshape(len(x), -1).all(axis=1)  # NaN breaks a rule too
    if valid.all():
        return
    member = int(np.argmin(valid))
    row = np.where(np.isnan(violation[member]), np.inf, violation[member])
    worst = tuple(map(int, np.unravel_index(int(row.argmax()), row.shape)))
    sentence = _broken_rule_text(rule, worst, float(x[member][worst]) + rule.target)
    raise ParamError(sentence if first is None else f"{sentence} in member {first + member}")


def _broken_rule_text(rule: Rule, indices: tuple[int, ...], value: float) -> str:
    """The sentence about a broken rule, for the value of its formula at these indices.

    `rows of P must sum to 1: row 2 sums to 0.93 (tolerance 1e-06)`, `M is at least K: M - K must be at least 0; it is -1`.
    A name that says no more than the formula is left out: `L must be at least 2; it is 1`.
    """
    c, expr = rule.constraint, rule.expr
    need = f"{'be' if c.sense == '==0' else 'be at least'} {rule.target:g}"
    tolerance = f" (tolerance {c.tol:g})" if c.tol else ""
    array = _sum_of_last_axis(expr)
    if array is not None and c.sense == "==0":
        rows = len(array.indices) == 2
        what, which = (f"rows of {array.base}", f"row {indices[0]}") if rows else (str(array.base), "it")
        return f"{what} must sum to {rule.target:g}: {which} sums to {_unlike(value, rule.target)}{tolerance}"
    place = "".join(f"{' at' if n == 0 else ','} {i} = {k}" for n, (i, k) in enumerate(zip(rule.formula.indices, indices, strict=True)))
    requirement = f"{_formula_text(expr)} must {need}"
    name = "" if requirement.replace(" must be ", " is ") == c.name else f"{c.name}: "
    return f"{name}{requirement}; it is {_unlike(value, rule.target)}{place}{tolerance}"


def _unlike(value: float, target: float) -> str:
    """A value in six digits, or in as many as show that it is not the target."""
    return next(text for digits in (6, 9, 12, 17) if (text := f"{value:.{digits}g}") != f"{target:.{digits}g}" or digits == 17)


def _sum_of_last_axis(e: Any) -> Any:
    """The array element that e sums over its last index: P[n, l] or p[n]. None where e is anything else."""
    if (
        isinstance(e, sp.Sum)
        and isinstance(e.function, sp.Indexed)
        and len(e.limits) == 1
        and e.limits[0][1] == 0
        and len(e.function.indices) <= 2
    ):
        inside = e.function.indices
        if inside[-1] == e.limits[0][0] and all(i.is_Symbol for i in inside):
            return e.function
    return None


def _formula_text(e: Any) -> str:
    """e as text: sums in words, subtracted terms last."""
    sums = sorted(e.atoms(sp.Sum), key=str)
    names = {s: sp.Symbol(f"sum of {s.function} over {', '.join(str(k) for k, *_ in s.limits)}") for s in sums}
    terms = sp.Add.make_args(e.xreplace(names))
    ordered = sp.Add(*sorted(terms, key=lambda x: x.could_extract_minus_sign()), evaluate=False) if len(terms) > 1 else terms[0]
    return StrPrinter({"order": "none"}).doprint(ordered)


def _first_bad_entry(name: str, array: Array, bad: Array) -> tuple[str, str]:
    """The first bad entry as text: its element and its value, such as (`P[1, 4]`, `-0.2`)."""
    indices = tuple(int(k) for k in np.unravel_index(int(np.argmax(bad)), np.shape(array)))
    return f"{name}[{', '.join(map(str, indices))}]" if indices else name, _number_text(array[indices].item())


def _number_text(x: float) -> str:
    """x as text: in six digits where these are exact, else in full."""
    return f"{x:.6g}" if x == float(f"{x:.6g}") else repr(x)
