"""Checks of a request as a whole: options that depend on each other, the steps of a Map, sensitivities, tolerances."""

import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from odesim.base.arrays import Array, Layout, check_dtype, extreme, largest, on_host
from odesim.base.backends import BACKENDS, METHODS, RUN, find_backend
from odesim.base.device import check_fits, check_saves_fit
from odesim.base.errors import ParamError, SolveError, ToleranceWarning, no_such, value_text
from odesim.base.memo import IdentityKey, Memo
from odesim.base.options import CLOCKS, NAMES, OPTIONS, REST, RunOptions
from odesim.base.signals import check_seconds
from odesim.inputs.bind import Numbers, bind, check_name
from odesim.inputs.events import event_attributes, events_until_rest, with_events
from odesim.inputs.registry import load_with_origin
from odesim.inputs.schema import make_schema
from odesim.inputs.times import Save, check_span, stop_times, to_save
from odesim.run.integrate import METHOD_NAMES
from odesim.run.noise import options_of_noise, times_of
from odesim.run.overflow import REMEDY, first_overflow
from odesim.run.problem import parts_of
from odesim.run.signs import returned
from odesim.stepper.methods import MAP
from odesim.stepper.problem import usable
from odesim.symbolic.system import System
from odesim.transforms.sensitivity import sensitivities

DEFAULTS = RunOptions()
CLASHES = tuple((name, other, sentence) for name, row in OPTIONS.items() for other, sentence in row.excludes.items())
ARRAYS = tuple(dict.fromkeys(kind for backend in BACKENDS.values() for kind in backend.arrays))


@dataclass(frozen=True)
class Request:
    """What is asked of odesim.integrate, checked.

    plain: the System of the model; loaded: with added events; system: with sensitivities too. origin: attributes that say where it is from.
    grid: the saved times as they were given, times (T,): as they are.
    """

    plain: System
    loaded: System
    system: System
    origin: dict[str, Any]
    options: RunOptions
    numbers: Numbers
    grid: Save | Array
    times: Array


def read_request(model: Any, arguments: Mapping[str, Any]) -> Request:
    """The Request of these arguments of odesim.integrate. Raises an OdesimError."""
    options = RunOptions(**{name: arguments[name] for name in NAMES})
    if arguments["max_seconds"] is not None:
        check_seconds(arguments["max_seconds"])
    check_run_options(options, RUN)
    check_array_kind(arguments["arrays"], options)
    plain, origin = load_with_origin(model)
    loaded, names, initial = plain, arguments["sensitivities"], arguments["initial"] or {}
    texts = events_until_rest(plain, arguments["events"], arguments["until_rest"], options.rtol)
    if texts:
        loaded = with_events(plain, texts)
    origin = {**origin, **event_attributes(loaded, texts)}
    system, still = with_sensitivities(loaded, names, initial)
    span = span_of_steps(system, arguments["span"], arguments["steps"])
    numbers = bind(system, params=arguments["params"], initial={**still, **initial}, sizes=arguments["sizes"], span=span, seed=options.seed)
    options = options_for(system, options, numbers)
    check_range(system, numbers, options.dtype)
    check_sensitivities(system, numbers)
    grid = to_save(arguments["save"])
    if arguments["arrays"] == "numpy":
        rows = len(times_of(system, grid, numbers, options) if system.discrete else grid)  # a flow's may be too many to list
        check_saves_fit(rows, sum(value.size for value in numbers.initial.values()), np.dtype(options.dtype).itemsize)
    times = times_of(system, grid, numbers, options)
    if stops := stop_times(options.stop_at, numbers.t0, numbers.t1):
        options = replace(options, stop_at=stops)
    return Request(plain, loaded, system, origin, options, numbers, grid, times)


def check_run_options(options: RunOptions, use: str) -> None:
    """Raises an OdesimError for an unknown backend, clock or dtype, and for what the backend does not support in this use."""
    backend, method = find_backend(options.backend, use), options.method
    check_clock(options)
    if options.dtype not in backend.dtypes:
        check_dtype(options.dtype)
        raise ParamError(f"the backend {backend.name} has no {options.dtype}; it has {', '.join(backend.dtypes)}")
    ability = backend.uses[use]
    if method in METHODS and method not in ability.methods:
        others = [name for name, other in BACKENDS.items() if use in other.uses and method in other.uses[use].methods]
        has = f"it has {', '.join(ability.methods)} and auto"
        elsewhere = f"; {', '.join(others)} can do {method}" if others else ""
        raise SolveError(f"{method} is no method of the backend {backend.name} for {use}; {has}{elsewhere}")
    if options.strict and method in METHODS and method not in ability.strict:
        others = [name for name, other in BACKENDS.items() if use in other.uses and method in other.uses[use].strict]
        elsewhere = f"; {method} has one on {', '.join(others)}" if others else ""
        raise SolveError(
            f"{method} has no strict mode on the backend {backend.name}, where {', '.join(ability.strict)} have one{elsewhere}"
        )


def check_clock(options: RunOptions) -> None:
    """Raises SolveError for an unknown clock, or one that does not go with the other options."""
    if options.clock not in CLOCKS:
        raise SolveError(no_such("clock", str(options.clock), CLOCKS))
    for name, other, sentence in CLASHES:
        if _is_given(options, name) and _is_given(options, other):
            raise SolveError(sentence)


def _is_given(options: RunOptions, name: str) -> bool:
    """Whether an option is another than its default; stop_at may be an array."""
    value, default = getattr(options, name), getattr(DEFAULTS, name)
    return value is not default and (bool(np.size(value)) if name == "stop_at" else value != default)


def check_array_kind(arrays: str, options: RunOptions) -> None:
    """Raises ParamError for a library of arrays that results cannot be in. The backend must exist."""
    if arrays == "numpy":  # of every backend
        return
    if arrays not in ARRAYS:
        raise ParamError(no_such("kind of arrays", str(arrays), ARRAYS))
    if arrays not in options.on.arrays:
        able = ", ".join(name for name, backend in BACKENDS.items() if arrays in backend.arrays)
        raise ParamError(
            f"arrays={arrays!r} leaves results on the GPU of the backend {able}; those of the backend {options.backend} are numpy's"
        )
    if arrays == "cupy" and options.rescaled:
        raise ParamError("arrays='cupy' is for the ordinary clock: the processor tells a run in the rescaled one in the time t")


def sizes_text(numbers: Numbers) -> str:
    """The sizes as ` (M = 1000, K = 3)`; empty without sizes."""
    return f" ({', '.join(f'{name} = {n}' for name, n in numbers.sizes.items())})" if numbers.sizes else ""


def check_range(system: System, numbers: Numbers, dtype: str) -> None:
    """Raises ParamError if a number overflows this dtype, or a part of the right-hand side at the start, which is another number then."""
    values = {**numbers.params, **numbers.initial}
    if extreme(values.values(), dtype):
        name, size = max(largest(values).items(), key=itemgetter(1))
        if size > (most := float(np.finfo(dtype).max)):
            raise ParamError(f"{name} = {size:g} overflows {dtype}: numbers go up to {most:.2g}")
        start = {name: value[None] for name, value in numbers.initial.items()}
        if wrong := first_overflow(system, numbers.sizes, numbers.params, {**start, "t": np.array([numbers.t0])}, dtype):
            raise ParamError(f"{wrong[1]}; {REMEDY}")
        size, span, least = max(largest(numbers.initial).values(), default=0.0), numbers.t1 - numbers.t0, float(np.finfo(dtype).tiny)
        if not system.discrete and size > 0 and size / span < least:
            slope = f"changes of states of {size:g} over a span of {span:g} are slopes below {least:.2g}, which {dtype} lacks"
            raise ParamError(f"{system.name}: {slope}: give other units of the states or the time")


def span_of_steps(system: System, span: Any, steps: int | None) -> Any:
    """The span of a run, None for the model's own. Raises ParamError for steps of a System, and for a fraction of an update."""
    if not system.discrete:
        if steps is not None:
            raise ParamError(
                f"steps is the number of updates of a Map, and {system.name} is a System: give its span, and step for a fixed step"
            )
        return span
    if steps is not None:
        if span is not None:
            raise ParamError(f"steps={steps} is the span 0:{steps}: give one of them")
        if steps < 1:
            raise ParamError(f"steps must be at least 1, not {steps}")
        return 0.0, float(steps)
    if span is not None:
        t0, t1 = check_span(span)
        if not (t0.is_integer() and t1.is_integer() and t0 >= 0):
            raise ParamError(
                f"span {t0:g}:{t1:g}: t counts the updates of the Map {system.name}, so both are whole numbers from 0; or give steps"
            )
    return span


def options_for(system: System, options: RunOptions, numbers: Numbers) -> RunOptions:
    """The options of a run with these numbers: of a Map, the method map with step 1; with noise, a scheme.

    Raises an OdesimError for options that do not fit.
    """
    t0, t1 = numbers.t0, numbers.t1
    if not system.discrete:
        if options.method == MAP.name:
            raise SolveError(no_such("method", MAP.name, METHOD_NAMES, system.name))
        if options.first_step is not None and t1 - t0 < options.first_step < np.inf:
            raise SolveError(f"first_step = {options.first_step:g} is longer than the span {t0:g}:{t1:g}")
        if options.by_state:
            options = replace(options, atol=by_state(system, numbers, options.atol))
        return options_of_noise(system, options)
    for name in NAMES:
        if not OPTIONS[name].of_maps and getattr(options, name) != getattr(DEFAULTS, name):
            raise SolveError(
                f"{name} is for differential equations, and {system.name} is a Map: its options are steps, save, backend, dtype, strict"
            )
    if options.method not in (DEFAULTS.method, MAP.name):
        raise SolveError(f"{options.method} is a method for differential equations, and {system.name} is a Map: leave the method out")
    if options.step not in (None, 1):
        raise SolveError(f"an update of the Map {system.name} is a step of 1, not of {options.step:g}: leave step out")
    if options.max_steps < t1 - t0 and options.max_steps != DEFAULTS.max_steps:
        raise SolveError(f"max_steps = {options.max_steps} is less than the {t1 - t0:g} updates of the run: give fewer steps")
    return replace(options, method=MAP.name, step=1.0, max_steps=max(options.max_steps, int(t1 - t0)))


def by_state(system: System, numbers: Numbers, atol: Any) -> dict[str, Any]:
    """The absolute tolerances by state as plain data. Raises an OdesimError for an unknown state or a wrong shape."""
    tolerances: dict[str, Any] = {}
    for name, value in on_host(atol).items():
        if name != REST:
            check_name(make_schema(system), "state", name)
        shape, array = np.shape(numbers.initial.get(name, 0.0)), to_reals(f"atol of {name}", value)
        if array.shape not in ((), shape):
            raise SolveError(
                f"atol of {name} must {f'be one number or have shape {shape}' if shape else 'be one number'}; it has shape {array.shape}"
            )
        tolerances[name] = array.tolist()
    return tolerances


def to_reals(what: str, value: Any) -> Array:
    """A number or nested list as an array of float64. Raises SolveError for anything else."""
    try:
        array = np.asarray(value)
    except ValueError:  # a ragged list
        array = np.empty(0, object)
    if array.dtype.kind not in "iuf":
        raise SolveError(f"{what} must be a number or an array of numbers, not {value_text(value)}")
    return array.astype(np.float64)


ROWS = 16  # vectors of the length of the state that an integrator holds, about: stages, the state, its scale
_EXTENDED: Memo[System] = Memo(32)  # what is compiled is remembered by the System


def with_sensitivities(system: System, names: str | Iterable[str], fixed: Collection[str]) -> tuple[System, dict[str, float]]:
    """The System extended by sensitivities to these parameters and initial values, and its initial values.

    fixed: states whose initial value somebody gave: it does not move with a parameter, whatever the model's own start would do.
    Raises SpecError and ParamError.
    """
    if isinstance(names, str):
        names = [names]
    chosen = tuple(names)
    for name in chosen:
        if not isinstance(name, str):
            raise ParamError(f"sensitivities takes names of parameters and states, not {name!r}")
    extended = _EXTENDED((IdentityKey(system), chosen), lambda: sensitivities(system, *chosen)) if chosen else system
    still: dict[str, float] = {}
    for name, pairs in extended.sensitivities.items():
        if name not in extended.states:
            still |= {twin: 0.0 for of, twin in pairs.items() if of in extended.states and (of in fixed or of in still)}
    return extended, still


def check_sensitivities(system: System, numbers: Numbers) -> None:
    """Raises ParamError if the sensitivities do not fit in memory."""
    for name, pairs in system.sensitivities.items():
        parts = {twin: ROWS * numbers.initial[twin].size for twin in pairs.values() if twin in numbers.initial}
        check_fits(f"{system.name}: integrating the sensitivities to {name}", parts, 8)


NEAR = 10
"""A number below so many times its absolute tolerance may have no right digit."""


# A state that starts at 1e-12 with atol 1e-9 may grow by e^30 and be wrong in every digit, and each of its steps was accepted. The sum of
# start and slope times span is a guess that lets the usual small states pass without a word; nothing is refused for it.
def warn_below_tolerance(system: System, numbers: Numbers, options: RunOptions) -> list[str]:
    """Those states whose every number starts below NEAR times atol and, by its slope there, stays below: a warning names them.

    What starts at 0 is no such state, and a fixed step has no tolerance.
    """
    if options.step is not None or system.discrete:
        return []
    twins = {twin for pairs in system.sensitivities.values() for twin in pairs.values()}
    starts = {name: value for name, value in numbers.initial.items() if name not in twins}
    if isinstance(options.atol, Mapping):
        layout = Layout(tuple(starts), tuple(map(np.shape, starts.values())))
        atol: Mapping[str, Any] = layout.split(usable(options, layout, "float64")[1])
        with np.errstate(over="ignore"):
            units = largest({name: start / atol[name] for name, start in starts.items()})
    else:
        least = options.atol or 1e-300
        atol, units = dict.fromkeys(starts, least), {name: size / least for name, size in largest(starts).items()}
    if not any(0 < size < NEAR for size in units.values()):
        return []
    compiled = parts_of(system, "numpy", "float64", False).compiled
    with np.errstate(all="ignore"):
        rates = compiled.arrays(numbers.sizes, {**numbers.params, **numbers.initial, "t": numbers.t0})
    span = numbers.t1 - numbers.t0
    below = [n for n, size in units.items() if size > 0 and size + float(np.max(np.abs(rates[f"d_{n}"]) / atol[n])) * span < NEAR]
    if below:
        sizes = {atol_ for name in below for atol_ in np.ravel(atol[name]).tolist()}
        what = f"atol = {sizes.pop():g}" if len(sizes) == 1 else "its atol" if len(below) == 1 else "their atol"
        remedy = {n: float(f"{10.0 ** np.floor(np.log10(options.rtol * float(np.max(np.abs(starts[n]))))):.0e}") for n in below}
        what = f"{' and '.join(below)} {'starts' if len(below) == 1 else 'start'} below {NEAR} times {what}, where errors are hardly seen"
        warnings.warn(f"{what}: these numbers, and what grows from them, may be wrong; give atol={remedy}", ToleranceWarning, 4)
    return below


def warn_below_between(kept: Collection[str], y: Array, layout: Layout, options: RunOptions, dtype: str) -> list[str]:
    """Those states that fall below atol and grow again, as far as states y (..., R, n) in the order of time show it: a warning names them.

    kept: the states that keep their sign.

    What falls and grows between two saved times is not seen: to look at each step would cost all runs that have such states.
    """
    if not kept or options.step is not None or y.shape[-2] < 2:
        return []
    if isinstance(options.atol, float) and not (abs(y) < options.atol).any():  # most often, and cheap to see
        return []
    fallen = returned(kept, on_host(y), layout, usable(options, layout, dtype)[1])
    if fallen:
        remedy = {n: float(f"{10.0 ** np.floor(np.log10(max(options.rtol * least, 1e-300))):.0e}") for n, least in fallen.items()}
        what = f"{' and '.join(fallen)} {'falls' if len(fallen) == 1 else 'fall'} below atol, where errors are hardly seen, and later"
        what += " grows again" if len(fallen) == 1 else " grow again"
        warnings.warn(f"{what}: these numbers may be wrong from there on; give atol={remedy}", ToleranceWarning, 4)
    return list(fallen)
