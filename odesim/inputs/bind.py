"""Numbers for a System: every size, parameter and initial value, checked."""

import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite, prod
from typing import Any

import numpy as np

from odesim.base.arrays import Array, entry, on_host
from odesim.base.device import SMALL, free_bytes
from odesim.base.errors import ModelError, ParamError, counted, failure_text, no_such
from odesim.inputs.grammar import EXACT, Value, parse_value
from odesim.inputs.schema import Extent, Formula, Place, Schema, check_rule, make_schema, number_text
from odesim.inputs.times import check_span
from odesim.symbolic.indices import time
from odesim.symbolic.system import System

MOST = 2**48  # entries of one array; beyond any memory


@dataclass
class Sizes:
    """The sizes known so far.

    values: {size: n}. sources: {size: "from P", "as given" or "by default"}. facts: observed lengths with unknown sizes in them.
    least: what a size must be at least, for the values of index parameters.
    """

    values: dict[str, int] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    facts: list[tuple[Extent, int, str]] = field(default_factory=list)
    least: dict[str, int] = field(default_factory=dict)

    def set(self, name: str, n: int, source: str) -> None:
        """Sets a size. Raises ParamError unless 1 <= n <= MOST."""
        if n < 1:
            raise ParamError(f"size {name} = {n} {source}: a size is at least 1")
        if n > MOST:
            raise ParamError(f"size {name} = {n} {source}: no memory holds that many")
        self.values[name], self.sources[name] = n, source

    def observe(self, extents: Iterable[Extent], shape: Iterable[int], name: str) -> None:
        """Records that the array `name` has this shape; solve() draws the conclusions."""
        self.facts.extend((extent, n, name) for extent, n in zip(extents, shape, strict=True) if extent.terms)

    # an extent is const + sum of factor * size, such as L - 1 or 2*n + 1. Eliminating one unknown at a time, as long as that gets
    # further, solves all that models have, and knows from which array each size is, which messages say.
    def solve(self) -> None:
        """Computes the sizes that follow from the recorded shapes. Raises ParamError where two shapes disagree."""
        before = -1
        while self.facts and before != len(self.facts):
            before = len(self.facts)
            self.facts = [fact for fact in self.facts if not self._use(*fact)]

    def _use(self, extent: Extent, n: int, name: str) -> bool:
        unknown = [term for term in extent.terms if term[0] not in self.values]
        if len(unknown) > 1:
            return False
        if not unknown:
            if extent.value(self.values) != n:
                raise ParamError(self._disagree(extent, n, name))
            return True
        size, factor = unknown[0]
        rest = n - extent.value({**self.values, size: 0})
        if rest % factor or rest // factor < 1:
            raise ParamError(f"{name} has an axis of {n}, which is {extent.text}: no {size} of at least 1 gives that")
        self.set(size, rest // factor, f"from {name}")
        return True

    def _disagree(self, extent: Extent, n: int, name: str) -> str:
        known = self.text(size for size, _ in extent.terms)
        size, factor = extent.terms[0]
        if len(extent.terms) == 1 and (n - extent.const) % factor == 0:
            return f"sizes disagree: {known}, {size} = {(n - extent.const) // factor} from {name}"
        return f"sizes disagree: {known}, {extent.text} = {n} from {name}"

    def has_all(self, extents: Iterable[Extent]) -> bool:
        """Whether all sizes in these extents are known."""
        return self.values.keys() >= {size for extent in extents for size, _ in extent.terms}

    def shape(self, extents: Iterable[Extent], name: str) -> tuple[int, ...]:
        """The shape of an array. Raises ParamError where an axis is empty or the array cannot exist."""
        out, entries = [], 1
        for extent in extents:
            n = extent.value(self.values)
            if n < 1:
                raise ParamError(
                    f"{name}: its axis {extent.text} is {n} long ({self.text(s for s, _ in extent.terms)}); it must be at least 1"
                )
            out.append(n)
            entries *= n
        if entries > MOST:
            raise ParamError(f"{name} would have {entries:.3g} entries ({self.text(self.values)}), more than any memory holds")
        return tuple(out)

    def text(self, names: Iterable[str]) -> str:
        """These sizes with their sources as text, such as `K = 3 from P, S = 4 by default`."""
        return ", ".join(f"{name} = {self.values[name]} {self.sources[name]}" for name in names)


def check_numbers(place: Place, array: Array) -> Array:
    """array as a new float64 (or int64) array in C order. Raises ParamError unless every entry is allowed at this place."""
    if array.dtype.kind == "f" and array.dtype != np.float64:
        with np.errstate(over="ignore"):  # of a longdouble; the next check raises
            array = array.astype(np.float64)
    if array.dtype.kind == "f":
        _refuse(place.name, array, ~np.isfinite(array), "is not a finite number")
    if place.integer and array.dtype.kind != "i":
        _refuse(place.name, array, (array % 1 != 0) | (abs(array) > EXACT), "is not a whole number")
    if place.domain.outside is not None:
        _refuse(place.name, array, place.domain.outside(array), f"lies outside {place.domain.text}")
    return np.array(array, dtype=np.int64 if place.integer else np.float64, order="C")


def _refuse(name: str, array: Array, bad: Any, what: str) -> None:
    """Raises ParamError where an entry is bad, with the first one: `P[1, 4] = -0.2 lies outside [0, 1]`."""
    if np.any(bad):
        indices = tuple(int(k) for k in np.unravel_index(int(np.argmax(bad)), np.shape(array)))
        raise ParamError(f"{entry(name, indices)} = {number_text(array[indices].item())} {what}")


def check_domain(place: Place, array: Array, first: int) -> None:
    """Raises ParamError where a finite entry of array (N, ...) lies outside the domain; row 0 is member `first`."""
    if place.domain.outside is None:
        return
    with np.errstate(invalid="ignore"):
        bad = place.domain.outside(array) & np.isfinite(array)
    member = int(np.argmax(bad.reshape(len(bad), -1).any(axis=1)))
    _refuse(place.name, array[member], bad[member], f"of member {first + member} lies outside {place.domain.text}")


def check_cover(place: Place, array: Array, known_sizes: Sizes) -> None:
    """Raises ParamError unless the values of an index parameter are 0 .. n-1, with cover each at least once.

    Sets the size n where it is unknown.
    """
    name, size = place.name, place.indexes
    assert size is not None
    if size not in known_sizes.values:
        known_sizes.set(size, max(int(array.max()) + 1, 1), f"from {name}")
    n = known_sizes.values[size]
    rows = f"0 .. {n - 1} ({known_sizes.text([size])})"
    _refuse(name, array, (array < 0) | (array >= n), f"is out of range: {name} names rows {rows}")
    if not place.cover:
        return
    used = np.zeros(min(n, array.size + 1), bool)
    used[array[array < used.size]] = True
    if not used.all():
        raise ParamError(f"{name} is out of range: it must use every row {rows}, and no entry is {int(used.argmin())}")


@dataclass(frozen=True)
class Numbers:
    """The numbers that a run of a System needs.

    sizes: {name: n}. params: {name: float, int, float64 or int64 array}. initial: {state: float64 array, () for a scalar}.
    The run goes from t0 to t1.
    """

    sizes: dict[str, int]
    params: dict[str, Any]
    initial: dict[str, Array]
    t0: float
    t1: float


def bind(
    system: System,
    *,
    params: Mapping[str, Any] | None = None,
    initial: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
    span: tuple[float, float] | None = None,
    seed: int = 0,
) -> Numbers:
    """The numbers for a run: the arguments, and the System's defaults for the rest.

    params and initial: {name: number (which fills the shape), nested list, array of numpy or cupy, VALUE text, or Value}.
    A size comes from `sizes`, else from the shape of an array, else from an index parameter (largest value + 1), else from
    the System's defaults. uniform and normal draw from the seed and the name, so that no other option changes them.
    Raises ParamError for a wrong name or value.
    """
    schema = make_schema(system)
    t0, t1 = schema.span if span is None else check_span(span)
    try:
        return _bind(
            schema, on_host(params) if params else {}, on_host(initial) if initial else {}, sizes or {}, (t0, t1), check_seed(seed)
        )
    except MemoryError:
        sizes_text = ", ".join(f"{name} = {n}" for name, n in {**schema.size_defaults, **(sizes or {})}.items())
        raise ParamError(f"{schema.name}: the arrays do not fit in memory{f' ({sizes_text})' if sizes_text else ''}") from None


def _bind(
    schema: Schema, params: Mapping[str, Any], initial: Mapping[str, Any], sizes: Mapping[str, int], span: tuple[float, float], seed: int
) -> Numbers:
    known_sizes = Sizes()
    for name, n in sizes.items():
        check_name(schema, "size", name)
        known_sizes.set(name, _to_whole_number(n, f"size {name}"), "as given")
    for name in params:
        check_name(schema, "parameter", name)
    for name in initial:
        check_name(schema, "state", name)
    arguments = {place.name: _read(place, params[place.name]) for place in schema.params if place.name in params}
    arguments |= {place.name: _read(place, initial[place.name]) for place in schema.states if place.name in initial}
    _sizes_of_arrays(schema, arguments, known_sizes)
    bound: dict[str, Any] = {}
    waiting = list(schema.params)
    _sizes_by_default(schema, known_sizes, {p.indexes for p in waiting if p.indexes and p.cover})
    # a default may be a function of sizes, and a size may follow from the values of an index parameter (its largest row): each parameter
    # is bound as soon as its shape is known, and only what nothing else determines falls back to the default size
    while waiting:
        ready = next((p for p in waiting if known_sizes.has_all(p.extents)), None)
        if ready is None:
            _sizes_by_default(schema, known_sizes, set())
            continue
        waiting.remove(ready)
        bound[ready.name] = _param(schema, ready, arguments.get(ready.name), known_sizes, bound, seed)
    _sizes_by_default(schema, known_sizes, set())
    bound = {p.name: bound[p.name] for p in schema.params}
    for extent in schema.axes:  # one by one: no array has all axes
        known_sizes.shape((extent,), schema.name)
    _check_numbered_elements(schema, known_sizes)
    _check_rules(schema, known_sizes, bound, of_start=False)
    values = {**bound, time.name: span[0]}
    start = {
        s.name: _initial(schema, s, arguments.get(s.name), known_sizes, values, seed)
        if s.plain is None or s.name in arguments
        else np.array(s.plain)
        for s in schema.states
    }
    _check_rules(schema, known_sizes, {**bound, **start}, of_start=True)
    return Numbers({n: known_sizes.values[n] for n in schema.sizes}, bound, start, *span)


def _check_rules(schema: Schema, known_sizes: Sizes, values: Mapping[str, Any], *, of_start: bool) -> None:
    for rule in schema.rules:
        if rule.of_start == of_start:
            check_rule(rule, rule.formula(known_sizes.values, values)[None])


def _check_numbered_elements(schema: Schema, known_sizes: Sizes) -> None:
    """Raises ParamError where an element with a number as index lies outside its array."""
    for element, i, extent, event in schema.numbered_elements:
        n = extent.value(known_sizes.values)
        if i >= n:
            length = f" ({extent.text} = {n})" if extent.terms else ""
            where = f" in the event {event!r}" if event else ""
            raise ParamError(f"{element}{where} is out of range: that axis has {counted(n, 'element')}{length}")


def check_name(schema: Schema, kind: str, name: str) -> None:
    """Raises ParamError unless there is a size, parameter or state (kind) with this name; the message says what else the name is."""
    kinds = {"size": schema.sizes, "parameter": [p.name for p in schema.params], "state": [s.name for s in schema.states]}
    if name in kinds[kind]:
        return
    options = {"size": "a size (--size {0}=N)", "parameter": "a parameter (--set {0}=VALUE)", "state": "a state (--init {0}=VALUE)"}
    for other, names in kinds.items():
        if name in names:
            raise ParamError(f"{name!r} is not a {kind} of {schema.name} but {options[other].format(name)}")
    raise ParamError(no_such(kind, str(name)[:60], kinds[kind], schema.name))


def _to_whole_number(n: Any, what: str) -> int:
    if isinstance(n, bool | np.bool_) or not isinstance(n, numbers.Integral):
        raise ParamError(f"{what} must be a whole number, not {n!r}")
    return int(n)


def check_seed(seed: Any) -> int:
    """seed as an int from 0 up. Raises ParamError."""
    if _to_whole_number(seed, "seed") < 0:
        raise ParamError(f"seed must be at least 0, not {seed}")
    return int(seed)


def as_array(value: Any, name: str) -> Array:
    """value as an array, a memory map as one. Raises ParamError."""
    try:
        return np.asanyarray(value)
    except (ValueError, TypeError) as e:  # numpy says no more of rows of several lengths than that the shape is inhomogeneous
        why = "its rows have different lengths" if "inhomogeneous" in str(e) else " ".join(str(e).split())[:120]
        raise ParamError(f"{name} is not an array of numbers: {why}") from None


def _read(place: Place, value: Any) -> Any:
    """value as an array of the right rank, or as a number or Value that will fill the shape. Raises ParamError."""
    name = place.name
    if isinstance(value, str):
        value = parse_value(value, name)
    if isinstance(value, Value):
        array = value.array(place.rank)
        if array is None:
            return value.data if value.kind == "number" else value
        value = array
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return _scalar(name, value)
    if np.ma.is_masked(value):
        raise ParamError(f"{name} has masked entries; fill them first")
    array = np.asarray(as_array(value, name))
    if array.dtype.kind == "c":
        raise ParamError(f"{name} must hold real numbers, not complex ones")
    if array.dtype.kind not in "iuf":
        raise ParamError(f"{name} must hold numbers that fit in float64, not {array.dtype.name}")
    if array.ndim == 0:
        return _scalar(name, array.item())
    constant = all(n == e.const for n, e in zip(array.shape, place.extents, strict=False) if not e.terms)
    if array.ndim != place.rank or not constant:
        raise ParamError(f"{name} must {f'have shape {place.shape_text}' if place.rank else 'be one number'}; it has shape {array.shape}")
    if array.size == 0:
        raise ParamError(f"{name} is empty: it has shape {array.shape}")
    return check_numbers(place, array)


def _scalar(name: str, value: Any) -> int | float:
    try:
        x = float(value)
    except OverflowError:
        raise ParamError(f"{name} overflows: numbers go up to 1.8e308") from None
    return int(x) if isinstance(value, numbers.Integral) and abs(x) <= EXACT else x


def _sizes_of_arrays(schema: Schema, arguments: Mapping[str, Any], known_sizes: Sizes) -> None:
    if not arguments:
        return
    for place in schema.params + schema.states:
        if isinstance(arguments.get(place.name), np.ndarray):
            known_sizes.observe(place.extents, arguments[place.name].shape, place.name)
    known_sizes.solve()
    for place in schema.params:
        values = arguments.get(place.name)
        if place.indexes and isinstance(values, np.ndarray):
            if place.cover or place.indexes in known_sizes.values:
                check_cover(place, values, known_sizes)
            else:
                known_sizes.least[place.indexes] = max(known_sizes.least.get(place.indexes, 1), int(values.max()) + 1)
    known_sizes.solve()


def _sizes_by_default(schema: Schema, known_sizes: Sizes, later: set[str]) -> None:
    """Gives sizes that are still unknown their default; those in `later` wait for an index parameter."""
    for name in schema.sizes:
        if name not in known_sizes.values and name not in later:
            if name not in schema.size_defaults:
                raise ParamError(f"size {name} of {schema.name} has no default: give it (--size {name}=N), or an array that has it")
            default, least = schema.size_defaults[name], known_sizes.least.get(name, 1)
            known_sizes.set(name, max(default, least), "by default" if default >= least else "from the values given")
            known_sizes.solve()


def _param(schema: Schema, place: Place, argument: Any, known_sizes: Sizes, bound: Mapping[str, Any], seed: int) -> Any:
    """The value of a parameter: a checked array, or a Python number where the shape is ()."""
    shape, value = _shape(schema, place, known_sizes), argument
    if value is None:
        value = _default(schema, place, shape, known_sizes, bound) if callable(place.start) else place.start
    if not shape and not isinstance(value, np.ndarray | Value):
        return check_numbers(place, np.asarray(value)).item()
    array = _to_array(place, value, shape, seed)
    if place.indexes and (argument is not array or not place.cover):
        check_cover(place, array, known_sizes)
        known_sizes.solve()
    return array if shape else array.item()


def _default(schema: Schema, place: Place, shape: tuple[int, ...], known_sizes: Sizes, bound: Mapping[str, Any]) -> Any:
    """The number or checked array that the model's default function returns. Raises ModelError where it fails."""
    assert callable(place.start)
    try:
        value = place.start(dict(known_sizes.values), dict(bound))
        array = np.asarray(value, dtype=float)
    except (KeyboardInterrupt, MemoryError, ParamError):  # the last is a sentence: a document's table is for other sizes
        raise
    # SystemExit too: exit() in a model file is no reason to end the caller without a word
    except BaseException as e:  # a model file is somebody's code
        sizes = known_sizes.text(known_sizes.values)
        raise ModelError(f"{schema.name}: the default of {place.name} fails with {sizes or 'no sizes'}: {failure_text(e)}") from e
    if array.shape not in (shape, ()):
        raise ModelError(f"{schema.name}: the default of {place.name} has shape {array.shape}; {place.shape_text} is {shape}")
    return check_numbers(place, array) if array.ndim else array.item()


def _initial(schema: Schema, place: Place, argument: Any, known_sizes: Sizes, bound: Mapping[str, Any], seed: int) -> Array:
    shape = _shape(schema, place, known_sizes)
    value = place.start if argument is None else argument
    if isinstance(value, Formula):
        value = check_numbers(place, value(known_sizes.values, bound))
    return _to_array(place, value, shape, seed)


def _shape(schema: Schema, place: Place, known_sizes: Sizes) -> tuple[int, ...]:
    """The shape of an array. Raises ParamError where one of float64 does not fit in memory."""
    if not place.extents:
        return ()
    shape = known_sizes.shape(place.extents, place.name)
    need = 8 * prod(shape)
    free = free_bytes() if need > SMALL else None
    if free is not None and need > free:
        sizes = known_sizes.text(dict.fromkeys(size for e in place.extents for size, _ in e.terms))
        raise ParamError(
            f"{schema.name}: {place.name} {place.shape_text} takes {need / 1e9:.3g} GB ({sizes}), and {free / 1e9:.3g} GB are free"
        )
    return shape


def _to_array(place: Place, value: Any, shape: tuple[int, ...], seed: int) -> Array:
    """An array of this shape: value itself, or a new array filled with it."""
    if isinstance(value, Value):
        # the name is part of the seed: setting one parameter more, or in another order, leaves the draws of all others as they were
        rng = np.random.default_rng([seed, *place.name.encode()])
        value = check_numbers(place, value.fill(shape, rng))
    if isinstance(value, np.ndarray):
        return value
    # most defaults: numbers that no check can refuse, which takes longer than the rest of a warm bind
    if type(value) is float and isfinite(value) and place.domain.outside is None and not place.integer:
        return np.full(shape, value)
    return np.full(shape, check_numbers(place, np.asarray(value)))
