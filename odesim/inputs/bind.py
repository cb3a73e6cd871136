"""A System and numbers: every size, parameter and initial value, checked."""

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from odesim.base.arrays import Array, on_host
from odesim.base.memory import SMALL, free_bytes
from odesim.errors import ModelError, ParamError, counted, no_such
from odesim.inputs.checks import check_cover, check_number, check_numbers, check_rules
from odesim.inputs.grammar import EXACT
from odesim.inputs.schema import Formula, Place, Schema, make_plan
from odesim.inputs.sizes import Sizes
from odesim.inputs.times import check_span
from odesim.inputs.values import Value, parse_value
from odesim.symbolic.expr import time
from odesim.symbolic.system import System


@dataclass(frozen=True)
class Numbers:
    """What a System needs to run. sizes: {name: n}; params: {name: float, int, or float64 or int64 array}.

    initial: {state: float64 array, () for a number}; the run goes from t0 to t1.
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
    """Numbers for a System: what is given, and defaults for the rest.

    params and initial hold numbers (which fill the shape), nested lists, arrays of numpy or cupy, VALUE texts or Values.
    A size comes from `sizes`, then from the shapes of arrays given, then from index parameters (largest value + 1),
    then from the System's defaults. uniform and normal draw from seed and the name, so that no other option changes them.
    Raises ParamError.
    """
    plan = make_plan(system)
    t0, t1 = plan.span if span is None else check_span(span)
    try:
        return _bind(plan, on_host(params or {}), on_host(initial or {}), sizes or {}, (t0, t1), _check_seed(seed))
    except MemoryError:
        asked = ", ".join(f"{name} = {n}" for name, n in {**plan.size_defaults, **(sizes or {})}.items())
        raise ParamError(f"{plan.name}: the arrays do not fit in memory{f' ({asked})' if asked else ''}") from None


def _bind(
    plan: Schema, params: Mapping[str, Any], initial: Mapping[str, Any], sizes: Mapping[str, int], span: tuple[float, float], seed: int
) -> Numbers:
    known = Sizes()
    for name, n in sizes.items():
        check_name(plan, "size", name)
        known.set(name, _whole(n, f"size {name}"), "as given")
    for name in params:
        check_name(plan, "parameter", name)
    for name in initial:
        check_name(plan, "state", name)
    given = {slot.name: _read(slot, params[slot.name]) for slot in plan.params if slot.name in params}
    given |= {slot.name: _read(slot, initial[slot.name]) for slot in plan.states if slot.name in initial}
    _sizes_of_arrays(plan, given, known)
    bound: dict[str, Any] = {}
    waiting = list(plan.params)
    _sizes_by_default(plan, known, {p.indexes for p in waiting if p.indexes})
    while waiting:
        ready = next((p for p in waiting if known.knows(p.extents)), None)
        if ready is None:
            _sizes_by_default(plan, known, set())
            continue
        waiting.remove(ready)
        bound[ready.name] = _param(plan, ready, given.get(ready.name), known, bound, seed)
    _sizes_by_default(plan, known, set())
    bound = {p.name: bound[p.name] for p in plan.params}
    for extent in plan.axes:  # one by one: no array has all axes
        known.shape((extent,), plan.name)
    _check_places(plan, known)
    check_rules(plan.rules, known.values, bound)
    values = {**bound, time.name: span[0]}
    start = {s.name: _initial(plan, s, given.get(s.name), known, values, seed) for s in plan.states}
    return Numbers({n: known.values[n] for n in plan.sizes}, bound, start, *span)


def _check_places(plan: Schema, known: Sizes) -> None:
    """Raises ParamError where an element that is named by a number lies outside its array."""
    for element, i, extent in plan.places:
        n = extent.value(known.values)
        if i >= n:
            said = f" ({extent.text} = {n})" if extent.terms else ""
            raise ParamError(f"{element} is out of range: that axis has {counted(n, 'element')}{said}")


def check_name(plan: Schema, kind: str, name: str) -> None:
    """Raises ParamError unless plan has a size, parameter or state of that name; says where it does belong."""
    kinds = {"size": plan.sizes, "parameter": [p.name for p in plan.params], "state": [s.name for s in plan.states]}
    if name in kinds[kind]:
        return
    say = {"size": "a size (--size {0}=N)", "parameter": "a parameter (--set {0}=VALUE)", "state": "a state (--init {0}=VALUE)"}
    for other, names in kinds.items():
        if name in names:
            raise ParamError(f"{name!r} is not a {kind} of {plan.name} but {say[other].format(name)}")
    raise ParamError(no_such(kind, str(name)[:60], kinds[kind], plan.name))


def _whole(n: Any, what: str) -> int:
    if isinstance(n, bool | np.bool_) or not isinstance(n, numbers.Integral):
        raise ParamError(f"{what} must be a whole number, not {n!r}")
    return int(n)


def _check_seed(seed: Any) -> int:
    if _whole(seed, "seed") < 0:
        raise ParamError(f"seed must be at least 0, not {seed}")
    return int(seed)


def _read(slot: Place, value: Any) -> Any:
    """value as an array of the slot's rank, or as a number or a Value that will fill its shape."""
    name = slot.name
    if isinstance(value, str):
        value = parse_value(value, name)
    if isinstance(value, Value):
        own = value.array(slot.rank)
        if own is None:
            return value.data if value.kind == "number" else value
        value = own
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return _scalar(name, value)
    if np.ma.is_masked(value):
        raise ParamError(f"{name} has masked entries; fill them first")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as e:
        raise ParamError(f"{name} is not an array of numbers: {' '.join(str(e).split())[:120]}") from None
    if array.dtype.kind not in "iuf":
        raise ParamError(f"{name} must hold numbers that fit in float64, not {array.dtype.name}")
    if array.ndim == 0:
        return _scalar(name, array.item())
    constant = all(n == e.const for n, e in zip(array.shape, slot.extents, strict=False) if not e.terms)
    if array.ndim != slot.rank or not constant:
        raise ParamError(f"{name} must {f'have shape {slot.words}' if slot.rank else 'be one number'}; got {array.shape}")
    if array.size == 0:
        raise ParamError(f"{name} is empty: it has shape {array.shape}")
    return check_numbers(slot, array)


def _scalar(name: str, value: Any) -> int | float:
    try:
        x = float(value)
    except OverflowError:
        raise ParamError(f"{name} overflows: numbers go up to 1.8e308") from None
    return int(x) if isinstance(value, numbers.Integral) and abs(x) <= EXACT else x


def _sizes_of_arrays(plan: Schema, given: Mapping[str, Any], known: Sizes) -> None:
    for slot in plan.params + plan.states:
        if isinstance(given.get(slot.name), np.ndarray):
            known.observe(slot.extents, given[slot.name].shape, slot.name)
    known.settle()
    for slot in plan.params:
        if slot.indexes and isinstance(given.get(slot.name), np.ndarray):
            check_cover(slot, given[slot.name], known)
    known.settle()


def _sizes_by_default(plan: Schema, known: Sizes, later: set[str]) -> None:
    """The System's sizes where nothing else says; those in later wait for an index parameter."""
    for name in plan.sizes:
        if name not in known.values and name not in later:
            if name not in plan.size_defaults:
                raise ParamError(f"size {name} of {plan.name} has no default: give it (--size {name}=N), or an array that has it")
            known.set(name, plan.size_defaults[name], "by default")
            known.settle()


def _param(plan: Schema, slot: Place, given: Any, known: Sizes, bound: Mapping[str, Any], seed: int) -> Any:
    """A checked array of the slot's shape, or a Python number."""
    shape = known.shape(slot.extents, slot.name)
    _check_room(plan, slot, shape, known)
    value = given
    if value is None:
        value = _default(plan, slot, shape, known, bound) if callable(slot.start) else slot.start
    if not shape and not isinstance(value, np.ndarray | Value):
        return check_number(slot, value)
    array = _filled(slot, value, shape, seed)
    if slot.indexes and given is not array:
        check_cover(slot, array, known)
        known.settle()
    return array if shape else array.item()


def _default(plan: Schema, slot: Place, shape: tuple[int, ...], known: Sizes, bound: Mapping[str, Any]) -> Any:
    """The number or checked array that the model's function gives."""
    assert callable(slot.start)
    try:
        value = slot.start(dict(known.values), dict(bound))
        array = np.asarray(value, dtype=float)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as e:  # a model file is somebody's code
        sizes = known.words(known.values)
        raise ModelError(f"{plan.name}: the default of {slot.name} fails with {sizes or 'no sizes'}: {type(e).__name__}: {e}") from e
    if array.shape not in (shape, ()):
        raise ModelError(f"{plan.name}: the default of {slot.name} has shape {array.shape}; {slot.words} is {shape}")
    return check_numbers(slot, array) if array.ndim else array.item()


def _initial(plan: Schema, slot: Place, given: Any, known: Sizes, bound: Mapping[str, Any], seed: int) -> Array:
    shape = known.shape(slot.extents, slot.name)
    _check_room(plan, slot, shape, known)
    value = slot.start if given is None else given
    if isinstance(value, Formula):
        value = check_numbers(slot, value(known.values, bound))
    return _filled(slot, value, shape, seed)


def _check_room(plan: Schema, slot: Place, shape: tuple[int, ...], known: Sizes) -> None:
    """Raises ParamError where a float64 array of this shape does not fit in memory."""
    need = 8 * prod(shape)
    free = free_bytes() if need > SMALL else None
    if free is not None and need > free:
        asked = known.words(dict.fromkeys(size for e in slot.extents for size, _ in e.terms))
        raise ParamError(f"{plan.name}: {slot.name} {slot.words} takes {need / 1e9:.3g} GB ({asked}), and {free / 1e9:.3g} GB are free")


def _filled(slot: Place, value: Any, shape: tuple[int, ...], seed: int) -> Array:
    """A new array of that shape: value itself, or filled with it."""
    if isinstance(value, Value):
        rng = np.random.default_rng([seed, *slot.name.encode()])
        value = check_numbers(slot, value.fill(shape, rng))
    if isinstance(value, np.ndarray):
        return value
    array = np.empty(shape, dtype=np.int64 if slot.integer else np.float64)
    array.fill(check_number(slot, value))
    return array
