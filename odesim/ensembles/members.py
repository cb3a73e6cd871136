"""Parameters and initial values of many members: some are shared, others have a row for each member.

The rank decides: an array of the parameter's rank is shared, one with a leading axis more has a row for each member.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, Protocol

import numpy as np
import sympy as sp
from sympy import Expr, Indexed, IndexedBase, Symbol

from odesim.base.arrays import Array
from odesim.base.errors import ModelError, ParamError, failure_text
from odesim.inputs.bind import Numbers, as_array, bind, check_domain, check_name, check_numbers
from odesim.inputs.schema import Extent, Formula, Place, Rule, Schema, check_rule, make_extent, make_schema
from odesim.ir.noise import MEMBER as NOISE_MEMBER
from odesim.ir.passes import lower_expressions
from odesim.symbolic.indices import array_at, base_name, index, time
from odesim.symbolic.indices import sizes as size_symbols
from odesim.symbolic.layered import Layer, names_read
from odesim.symbolic.reductions import at
from odesim.symbolic.system import System
from odesim.targets.numpy_text import ArrayFunction

(MEMBER,), (MEMBERS,) = index("_member"), size_symbols("_members")  # no name of a model begins with _
# 8 MB a temporary: an ensemble of 10^7 members must not need arrays of its own size for each step of a formula
ENTRIES = 1 << 20  # of the largest temporary array: more members are evaluated in parts


def own_names_read(formula: Formula, varying: frozenset[str]) -> frozenset[str]:
    """The names that a formula reads among `varying`, those that differ between members."""
    return _names_among(formula.expr, varying)


@lru_cache(maxsize=1024)
def _names_among(expr: Expr, varying: frozenset[str]) -> frozenset[str]:
    return varying & names_read(expr)


def member_values(
    formula: Formula, axes: Mapping[Symbol, Any], sizes: Mapping[str, int], shared: Mapping[str, Any], varying: Mapping[str, Array]
) -> Array:
    """The formula's values (N, *shape) for members with rows varying {name: (N, *shape)}; it reads at least one of them.

    shared {name: value}: what all members have in common.
    """
    function, loops = _batch_function(formula.expr, formula.indices, tuple(axes.items()), frozenset(varying))
    count = len(next(iter(varying.values())))
    most = max((prod(e.value(sizes) for e in space) for space in loops), default=1)
    step = max(1, ENTRIES // max(most, 1))
    out = np.empty((count, *(e.value(sizes) for e in formula.extents)))
    for first in range(0, count, step):
        part = {name: values[first : first + step] for name, values in varying.items()}
        size = len(next(iter(part.values())))
        out[first : first + size] = function({**sizes, MEMBERS.name: size}, {**shared, **part})["_value"]
    return out


@lru_cache(maxsize=64)
def _batch_function(
    expr: Expr, indices: tuple[Symbol, ...], axes: tuple[tuple[Symbol, Any], ...], varying: frozenset[str]
) -> tuple[ArrayFunction, tuple[tuple[Extent, ...], ...]]:
    """An expression as a function of many members, and the extents of its loops, without the one over members.

    a*x[m]  ->  a[_member]*x[_member, m] where both differ between members
    """
    extents = {MEMBER: MEMBERS, **dict(axes)}
    program = lower_expressions({array_at("_value", (MEMBER, *indices), extents): _with_member_index(expr, varying)}, extents)
    loops = {tuple(i for i in s.loops if i != MEMBER) for s in program.statements()}
    return ArrayFunction(program, products=False), tuple(tuple(make_extent(program.extents[i]) for i in space) for space in loops)


def _with_member_index(e: Any, varying: frozenset[str]) -> Any:
    if isinstance(e, Symbol):
        return IndexedBase(e.name, shape=(MEMBERS,))[MEMBER] if e.name in varying else e
    if isinstance(e, Indexed) and isinstance(e.base, Layer):
        return _with_member_index(at(e.base.definition, e.base.places(e)), varying)
    if isinstance(e, Indexed):
        name, indices = base_name(e), [_with_member_index(i, varying) for i in e.indices]
        return IndexedBase(name, shape=(MEMBERS, *e.base.shape))[(MEMBER, *indices)] if name in varying else e.base[tuple(indices)]
    if isinstance(e, sp.Tuple) and len(e) == 3:  # the limits of a sum are sizes
        return e
    return e.func(*(_with_member_index(a, varying) for a in e.args)) if e.args else e


class MemberRows(Protocol):
    """A source of the values that differ between members."""

    @property
    def count(self) -> int:
        """Number of members."""

    @property
    def names(self) -> frozenset[str]:
        """Parameters and states that differ between members."""

    def rows(self, first: int, end: int) -> dict[str, Array]:
        """{name: (end - first, *shape)} of the members first to end - 1, independent of earlier calls."""


@dataclass(frozen=True)
class ArrayRows:
    """MemberRows in memory: arrays {name: (N, *shape)}."""

    arrays: Mapping[str, Array]

    @property
    def count(self) -> int:
        return len(next(iter(self.arrays.values())))

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.arrays)

    def rows(self, first: int, end: int) -> dict[str, Array]:
        return {name: values[first:end] for name, values in self.arrays.items()}


@dataclass(frozen=True)
class Members:
    """The members of an ensemble of one System. shared: Numbers of a typical member, valid for what all members share.

    dependent: parameters and states, in order, whose default is computed from values that differ between members.
    """

    system: System
    shared: Numbers
    source: MemberRows
    dependent: tuple[Place, ...] = ()

    @property
    def varying(self) -> frozenset[str]:
        """Parameters and states that differ between members, those that follow from others included."""
        return self.source.names | {place.name for place in self.dependent}

    def chunk(self, first: int, end: int) -> tuple[dict[str, Array], dict[str, Array]]:
        """(params, initial) {name: (end - first, *shape)} of members, float64, for the names that differ between them.

        Raises ParamError for finite values outside a domain; a member with values that are not finite fails alone, later.
        """
        schema, rows = make_schema(self.system), dict(self.source.rows(first, end))
        states = {place.name for place in schema.states}
        for place in self.dependent:
            rows[place.name] = self._dependent_values(place, {name: v for name, v in rows.items() if name not in states}, first)
        results: list[dict[str, Array]] = []
        for places, typical in ((schema.params, self.shared.params), (schema.states, self.shared.initial)):
            results.append({s.name: check_values(s, rows[s.name], np.shape(typical[s.name]), first) for s in places if s.name in rows})
        params, initial = results
        self._check_rules(schema.rules, {**params, **initial}, first)
        if self.system.noise:  # a path belongs to the number of a member, whatever chunk or attempt it is in
            params[NOISE_MEMBER] = np.arange(first, end, dtype=np.float64)
        return params, initial

    def _dependent_values(self, place: Place, varying: Mapping[str, Array], first: int) -> Array:
        """The default (N, *shape) of a place for members with these values {name: (N, ...)}, NaN where one is not finite."""
        finite = finite_members(varying)
        if isinstance(place.start, Formula):
            varying = {name: varying[name] for name in own_names_read(place.start, frozenset(varying))}
            shared = {**self.shared.params, time.name: self.shared.t0}
            values = member_values(place.start, self.system.axes, self.shared.sizes, shared, varying)
            values[~finite] = np.nan
            return values
        assert callable(place.start)
        values = np.full((len(finite), *np.shape({**self.shared.initial, **self.shared.params}[place.name])), np.nan)
        for i in np.flatnonzero(finite):
            try:
                values[i] = place.start(
                    dict(self.shared.sizes), {**self.shared.params, **{name: rows[i] for name, rows in varying.items()}}
                )
            except Exception as error:  # the code of a model file can raise anything
                what = failure_text(error)
                raise ModelError(f"{self.system.name}: the default of {place.name} fails for member {first + int(i)}: {what}") from error
        return values

    def _check_rules(self, rules: tuple[Rule, ...], rows: Mapping[str, Array], first: int) -> None:
        """Raises ParamError for the first member that breaks a constraint; members with values that are not finite are skipped."""
        for rule in rules:
            varying = {name: rows[name] for name in own_names_read(rule.formula, frozenset(rows))}
            if varying:
                shared = {**self.shared.params, **self.shared.initial}
                values = member_values(rule.formula, self.system.axes, self.shared.sizes, shared, varying)
                values[~finite_members(rows)] = rule.target
                check_rule(rule, values, first)


def finite_members(arrays: Mapping[str, Array]) -> Array:
    """Whether all values {name: (N, ...)} of a member are finite: (N,)."""
    parts = [np.isfinite(v).reshape(len(v), -1).all(axis=1) for v in arrays.values()]
    return np.logical_and.reduce(parts)


# A default may be any Python function of the other parameters. Which of them it reads is seen by running it once over a dict that writes
# that down; the alternative, computing every default anew for each member, costs a Python call for each of 10^7.
class ReadRecorder(dict[str, Any]):
    """A dict that records which of its keys are read, in `names`."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, default)


def dependent_places(schema: Schema, numbers: Numbers, fixed: Collection[str], names: Collection[str]) -> tuple[Place, ...]:
    """Places that are not fixed and whose default reads names that differ between members, directly or through others.

    fixed: names with values from the caller; names: names that differ between members.
    """
    varied, places = set(names), []
    for place in (*schema.params, *schema.states):
        if place.name in fixed or place.name in varied or not callable(place.start):
            continue
        recorder = ReadRecorder({**numbers.params, **({time.name: numbers.t0} if isinstance(place.start, Formula) else {})})
        place.start(dict(numbers.sizes), recorder)
        if recorder.names & varied:
            varied.add(place.name)
            places.append(place)
    return tuple(places)


def check_values(place: Place, values: Array, shape: tuple[int, ...], first: int) -> Array:
    """values (N, *shape) as float64 in C order. Raises ParamError for a wrong shape or finite values outside the domain."""
    array = np.ascontiguousarray(values, np.float64)
    if array.shape[1:] != shape:
        raise ParamError(f"{place.name} must have shape (member, {', '.join(map(str, shape))}), not {array.shape}")
    check_domain(place, array, first)
    if place.integer:
        check_numbers(place, array)
    return array


def make_members(
    system: System,
    params: Mapping[str, Any],
    initial: Mapping[str, Any],
    *,
    sizes: Any,
    span: Any,
    seed: int,
    source: MemberRows | None = None,
) -> Members:
    """Members from arrays with a leading axis, or from a source of rows. Raises ParamError.

    Sizes follow from the first member with finite values.
    """
    schema = make_schema(system)
    ranks = {place.name: place.rank for place in (*schema.params, *schema.states)}
    for kind, values in (("parameter", params), ("state", initial)):
        for name in values:
            check_name(schema, kind, name)
    arrays = {}
    for name, value in {**params, **initial}.items():
        if name in ranks and isinstance(value, np.ndarray | list | tuple) and (array := as_array(value, name)).ndim == ranks[name] + 1:
            arrays[name] = np.asarray(array)
    if source is None:
        counts = {name: len(values) for name, values in arrays.items()}
        if len(set(counts.values())) > 1:
            raise ParamError(f"members disagree: {', '.join(f'{name} has {n}' for name, n in counts.items())}")
        if not counts or not next(iter(counts.values())):
            raise ParamError(
                "an ensemble needs members: vary, grid or zip a number, or give an array with a leading axis, one row per member"
            )
        source = ArrayRows(arrays)
    for place in schema.params:
        if place.name in source.names and place.indexes:
            raise ParamError(f"{place.name} names rows of arrays and is the same for all members: give it once")
    typical = {name: typical_row(name, source, ranks[name]) for name in source.names}
    numbers = bind(
        system,
        params={**params, **{n: v for n, v in typical.items() if any(s.name == n for s in schema.params)}},
        initial={**initial, **{n: v for n, v in typical.items() if any(s.name == n for s in schema.states)}},
        sizes=sizes,
        span=span,
        seed=seed,
    )
    return Members(system, numbers, source, dependent_places(schema, numbers, {*params, *initial}, source.names))


def typical_row(name: str, source: MemberRows, rank: int) -> Any:
    """The value of the first member whose value is finite. Raises ParamError if there is none."""
    for first in range(0, source.count, 4096):
        rows = np.asarray(source.rows(first, min(first + 4096, source.count))[name])
        if rows.dtype.kind not in "iufb":
            raise ParamError(f"{name} must hold numbers, not {rows.dtype}")
        finite = np.flatnonzero(np.isfinite(rows.reshape(len(rows), -1)).all(axis=1))
        if len(finite):
            return rows[finite[0]] if rank else rows[finite[0]].item()
    raise ParamError(f"{name} is not finite in any member")
