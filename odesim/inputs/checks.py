"""What numbers must satisfy: finite, whole, inside a domain, rows of an array, constraints between parameters."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import sympy as sp
from sympy.printing.str import StrPrinter

from odesim.base.arrays import Array
from odesim.errors import ParamError
from odesim.inputs.grammar import EXACT
from odesim.inputs.schema import Place, Rule
from odesim.inputs.sizes import Sizes


def check_numbers(slot: Place, array: Array) -> Array:
    """array as a new float64 (or int64) array in C order. Raises ParamError unless every entry suits the slot."""
    if array.dtype.kind == "f" and array.dtype != np.float64:
        with np.errstate(over="ignore"):  # longdouble; the next line says so
            array = array.astype(np.float64)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        where, x = _first(slot.name, array, ~np.isfinite(array))
        raise ParamError(f"{where} = {x} is not a finite number")
    if slot.integer and array.dtype.kind != "i":
        bad = (array % 1 != 0) | (abs(array) > EXACT)
        if bad.any():
            where, x = _first(slot.name, array, bad)
            raise ParamError(f"{where} = {x} is not a whole number")
    if slot.domain.outside is not None:
        bad = slot.domain.outside(array)
        if bad.any():
            where, x = _first(slot.name, array, bad)
            raise ParamError(f"{where} = {x} lies outside {slot.domain.words}")
    return np.array(array, dtype=np.int64 if slot.integer else np.float64, order="C")


def check_number(slot: Place, x: float) -> float:
    """x, an int where the slot is for whole numbers. Raises ParamError unless it suits the slot."""
    if not math.isfinite(x):
        raise ParamError(f"{slot.name} = {_show(x)} is not a finite number")
    if slot.integer and (x % 1 != 0 or abs(x) > EXACT):
        raise ParamError(f"{slot.name} = {_show(x)} is not a whole number")
    if slot.domain.outside is not None and bool(slot.domain.outside(x)):
        raise ParamError(f"{slot.name} = {_show(x)} lies outside {slot.domain.words}")
    return int(x) if slot.integer else float(x)


def check_domain(slot: Place, array: Array, first: int) -> None:
    """Raises ParamError where a finite entry of array (N, ...) lies outside the slot's domain; row 0 is member `first`."""
    if slot.domain.outside is None:
        return
    with np.errstate(invalid="ignore"):
        bad = slot.domain.outside(array) & np.isfinite(array)
    if bad.any():
        at = tuple(map(int, np.unravel_index(int(np.argmax(bad)), bad.shape)))
        place = f"[{', '.join(map(str, at[1:]))}]" if len(at) > 1 else ""
        raise ParamError(f"{slot.name}{place} = {_show(float(array[at]))} of member {first + at[0]} lies outside {slot.domain.words}")


def check_cover(slot: Place, array: Array, known: Sizes) -> None:
    """Raises ParamError unless the values of an index parameter are 0 .. n-1, each at least once; n becomes known here if it was not."""
    name, size = slot.name, slot.indexes
    assert size is not None
    if size not in known.values:
        known.set(size, max(int(array.max()) + 1, 1), f"from {name}")
    n = known.values[size]
    bad = (array < 0) | (array >= n)
    rows = f"0 .. {n - 1} ({known.words([size])})"
    if bad.any():
        where, x = _first(name, array, bad)
        raise ParamError(f"{where} = {x} is out of range: {name} names rows {rows}")
    seen = np.zeros(min(n, array.size + 1), bool)
    seen[array[array < seen.size]] = True
    if not seen.all():
        raise ParamError(f"{name} is out of range: it must use every row {rows}, and no entry is {int(seen.argmin())}")


def check_rules(rules: Iterable[Rule], sizes: Mapping[str, int], values: Mapping[str, Any]) -> None:
    """Raises ParamError with the worst entry unless every constraint holds."""
    for rule in rules:
        check_rule(rule, rule.formula(sizes, values)[None])


def check_rule(rule: Rule, values: Array, first: int | None = None) -> None:
    """Raises ParamError with the worst entry of the first row of values (N, *shape) of the rule's formula that breaks it.

    first: rows are the members first, first + 1, ..., and the sentence names one.
    """
    x = values - rule.target
    over = abs(x) if rule.constraint.sense == "==0" else -x
    fine = (over <= rule.constraint.tol).reshape(len(x), -1).all(axis=1)  # NaN breaks a rule too
    if fine.all():
        return
    member = int(np.argmin(fine))
    row = np.where(np.isnan(over[member]), np.inf, over[member])
    worst = tuple(map(int, np.unravel_index(int(row.argmax()), row.shape)))
    sentence = _broken(rule, worst, float(x[member][worst]) + rule.target)
    raise ParamError(sentence if first is None else f"{sentence} in member {first + member}")


def _broken(rule: Rule, at: tuple[int, ...], value: float) -> str:
    """`rows of P must sum to 1: row 2 sums to 0.93 (tolerance 1e-06)`, `M is at least K: M - K must be at least 0; it is -1`.

    A name that says no more than the formula is left out: `L must be at least 2; it is 1`.
    """
    c, part = rule.constraint, rule.part
    need = f"{'be' if c.sense == '==0' else 'be at least'} {rule.target:g}"
    slack = f" (tolerance {c.tol:g})" if c.tol else ""
    array = _sum_of_last_axis(part)
    if array is not None and c.sense == "==0":
        rows = len(array.indices) == 2
        what, which = (f"rows of {array.base}", f"row {at[0]}") if rows else (str(array.base), "it")
        return f"{what} must sum to {rule.target:g}: {which} sums to {value:.6g}{slack}"
    place = "".join(f"{' at' if n == 0 else ','} {i} = {k}" for n, (i, k) in enumerate(zip(rule.formula.indices, at, strict=True)))
    said = f"{_say(part)} must {need}"
    name = "" if said.replace(" must be ", " is ") == c.name else f"{c.name}: "
    return f"{name}{said}; it is {value:.6g}{place}{slack}"


def _sum_of_last_axis(e: Any) -> Any:
    """P[n, l] where e is its sum over l, p[n] where e is its sum over n; else None."""
    if isinstance(e, sp.Sum) and isinstance(e.function, sp.Indexed) and len(e.limits) == 1 and len(e.function.indices) <= 2:
        inside = e.function.indices
        if inside[-1] == e.limits[0][0] and all(i.is_Symbol for i in inside):
            return e.function
    return None


def _say(e: Any) -> str:
    """e as text: its sums in words, what is subtracted last."""
    sums = sorted(e.atoms(sp.Sum), key=str)
    names = {s: sp.Symbol(f"sum of {s.function} over {', '.join(str(k) for k, *_ in s.limits)}") for s in sums}
    terms = sp.Add.make_args(e.xreplace(names))
    ordered = sp.Add(*sorted(terms, key=lambda x: x.could_extract_minus_sign()), evaluate=False) if len(terms) > 1 else terms[0]
    return StrPrinter({"order": "none"}).doprint(ordered)


def _first(name: str, array: Array, bad: Array) -> tuple[str, str]:
    """(`P[1, 4]`, `-0.2`): the first bad entry."""
    at = tuple(int(k) for k in np.unravel_index(int(np.argmax(bad)), np.shape(array)))
    return f"{name}[{', '.join(map(str, at))}]" if at else name, _show(array[at].item())


def _show(x: float) -> str:
    """x in six digits where they are all it has, else in full."""
    return f"{x:.6g}" if x == float(f"{x:.6g}") else repr(x)
