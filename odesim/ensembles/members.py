"""Numbers of many members: what all share, and for what is a member's own, the rows of a chunk.

The rank decides: an array of a parameter's own rank is shared, one rank more (a leading axis) is one value a member.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from odesim.base.arrays import Array
from odesim.ensembles.batch_formulas import member_values, own_names_read
from odesim.errors import ModelError, ParamError
from odesim.inputs.bind import Numbers, bind, check_name
from odesim.inputs.checks import check_domain, check_numbers, check_rule
from odesim.inputs.schema import Formula, Place, Rule, Schema, make_schema
from odesim.symbolic.expr import time
from odesim.symbolic.system import System


class MemberRows(Protocol):
    """Where the rows of members come from."""

    @property
    def count(self) -> int:
        """How many members there are."""

    @property
    def names(self) -> frozenset[str]:
        """Parameters and states that are a member's own."""

    def rows(self, first: int, end: int) -> dict[str, Array]:
        """{name: (end - first, *shape)} of the members first to end - 1: the same whatever was asked for before."""


@dataclass(frozen=True)
class ArrayRows:
    """Rows held in memory: {name: (N, *shape)}."""

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
    """The members of an ensemble of one System. shared: numbers of a typical member, whose own values mean nothing.

    following: parameters and states, in order, whose default or start is computed from what is a member's own.
    """

    system: System
    shared: Numbers
    source: MemberRows
    dependent: tuple[Place, ...] = ()

    def chunk(self, first: int, end: int) -> tuple[dict[str, Array], dict[str, Array]]:
        """(params, initial) {name: (end - first, *shape)} of members, float64; values outside a domain raise ParamError, but a value
        that is not finite is that member's own affair."""
        plan, rows = make_schema(self.system), dict(self.source.rows(first, end))
        states = {slot.name for slot in plan.states}
        for slot in self.dependent:
            rows[slot.name] = self._dependent_values(slot, {name: v for name, v in rows.items() if name not in states}, first)
        found: list[dict[str, Array]] = []
        for slots, typical in ((plan.params, self.shared.params), (plan.states, self.shared.initial)):
            found.append({s.name: check_values(s, rows[s.name], np.shape(typical[s.name]), first) for s in slots if s.name in rows})
        params, initial = found
        self._check_rules(plan.rules, params, first)
        return params, initial

    def _dependent_values(self, slot: Place, own: Mapping[str, Array], first: int) -> Array:
        """(N, *shape): the default or start of a slot for members with these values of their own (N, ...), NaN where one is not finite."""
        fine = finite_members(own)
        if isinstance(slot.start, Formula):
            own = {name: own[name] for name in own_names_read(slot.start, frozenset(own))}
            shared = {**self.shared.params, time.name: self.shared.t0}
            found = member_values(slot.start, self.system.axes, self.shared.sizes, shared, own)
            found[~fine] = np.nan
            return found
        assert callable(slot.start)
        found = np.full((len(fine), *np.shape({**self.shared.initial, **self.shared.params}[slot.name])), np.nan)
        for i in np.flatnonzero(fine):
            try:
                found[i] = slot.start(dict(self.shared.sizes), {**self.shared.params, **{name: values[i] for name, values in own.items()}})
            except Exception as error:  # a model file is somebody's code
                what = f"{type(error).__name__}: {error}"
                raise ModelError(f"{self.system.name}: the default of {slot.name} fails for member {first + int(i)}: {what}") from error
        return found

    def _check_rules(self, rules: tuple[Rule, ...], params: Mapping[str, Array], first: int) -> None:
        """Raises ParamError with the first member that breaks a constraint; one with values that are not finite breaks none."""
        for rule in rules:
            own = {name: params[name] for name in own_names_read(rule.formula, frozenset(params))}
            if own:
                values = member_values(rule.formula, self.system.axes, self.shared.sizes, self.shared.params, own)
                values[~finite_members(params)] = rule.target
                check_rule(rule, values, first)


def finite_members(arrays: Mapping[str, Array]) -> Array:
    """(N,): whether all of a member's values {name: (N, ...)} are finite."""
    parts = [np.isfinite(v).reshape(len(v), -1).all(axis=1) for v in arrays.values()]
    return np.logical_and.reduce(parts)


class ReadRecorder(dict[str, Any]):
    """Values that note which of them are read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().get(name, default)


def dependent_places(plan: Schema, numbers: Numbers, given: Collection[str], own: Collection[str]) -> tuple[Place, ...]:
    """Slots that nobody gave and whose default or start reads what is a member's own, or what follows from it."""
    varied, found = set(own), []
    for slot in (*plan.params, *plan.states):
        if slot.name in given or slot.name in varied or not callable(slot.start):
            continue
        watched = ReadRecorder({**numbers.params, **({time.name: numbers.t0} if isinstance(slot.start, Formula) else {})})
        slot.start(dict(numbers.sizes), watched)
        if watched.read & varied:
            varied.add(slot.name)
            found.append(slot)
    return tuple(found)


def check_values(slot: Place, values: Array, shape: tuple[int, ...], first: int) -> Array:
    """values (N, *shape) as float64 in C order. Raises ParamError for a wrong shape and for finite values outside the domain."""
    array = np.ascontiguousarray(values, np.float64)
    if array.shape[1:] != shape:
        raise ParamError(f"{slot.name} must have shape (member, {', '.join(map(str, shape))}), not {array.shape}")
    check_domain(slot, array, first)
    if slot.integer:
        check_numbers(slot, array)
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
    """Members of arrays in memory, or of a source, whose first row stands for all in finding sizes. Raises ParamError."""
    plan = make_schema(system)
    ranks = {slot.name: slot.rank for slot in (*plan.params, *plan.states)}
    for kind, given in (("parameter", params), ("state", initial)):
        for name in given:
            check_name(plan, kind, name)
    held = {}
    for name, value in {**params, **initial}.items():
        if name in ranks and isinstance(value, np.ndarray | list | tuple) and np.ndim(np.asarray(value)) == ranks[name] + 1:
            held[name] = np.asarray(value)
    if source is None:
        counts = {name: len(values) for name, values in held.items()}
        if len(set(counts.values())) > 1:
            raise ParamError(f"members disagree: {', '.join(f'{name} has {n}' for name, n in counts.items())}")
        if not counts or not next(iter(counts.values())):
            raise ParamError("an ensemble needs members: give a parameter or an initial value with a leading axis, one row a member")
        source = ArrayRows(held)
    for slot in plan.params:
        if slot.name in source.names and slot.indexes:
            raise ParamError(f"{slot.name} names rows of arrays and is the same for all members: give it once")
    typical = {name: typical_row(name, source, ranks[name]) for name in source.names}
    numbers = bind(
        system,
        params={**params, **{n: v for n, v in typical.items() if any(s.name == n for s in plan.params)}},
        initial={**initial, **{n: v for n, v in typical.items() if any(s.name == n for s in plan.states)}},
        sizes=sizes,
        span=span,
        seed=seed,
    )
    return Members(system, numbers, source, dependent_places(plan, numbers, {*params, *initial}, source.names))


def typical_row(name: str, source: MemberRows, rank: int) -> Any:
    """The value of the first member that has finite ones."""
    for first in range(0, source.count, 4096):
        rows = np.asarray(source.rows(first, min(first + 4096, source.count))[name])
        if rows.dtype.kind not in "iufb":
            raise ParamError(f"{name} must hold numbers, not {rows.dtype}")
        fine = np.flatnonzero(np.isfinite(rows.reshape(len(rows), -1)).all(axis=1))
        if len(fine):
            return rows[fine[0]] if rank else rows[fine[0]].item()
    raise ParamError(f"{name} is not finite in any member")
